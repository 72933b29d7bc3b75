"""A few processes that run ISIS, driven by hand: whoever writes the test chooses what arrives when.

Everything that is said arrives at once, in the order in which it was said, unless its direction is held. Disks
sync at once, unless they are slow. Membership says what the test says, to whom the test says. After every step
each machine checks itself.
"""

import zlib
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ordercast.core.machine import (
    ChannelReset,
    Deliver,
    Effect,
    Event,
    Interrupted,
    LogRead,
    Persist,
    ReadLog,
    Receive,
    ResetLog,
    Send,
    SetTimer,
    Start,
    TimerFired,
    ViewChanged,
)
from ordercast.core.view import LateView
from ordercast.protocols.isis.era import Era
from ordercast.protocols.isis.machine import Isis
from ordercast.protocols.isis.replica import Replica, seen_of
from ordercast.protocols.isis.settings import Settings
from ordercast.protocols.isis.stamps import stamp_in
from ordercast.protocols.isis.telling import TellOne, Told
from ordercast.sim.disk import Log
from ordercast.v1.common_pb2 import Envelope
from ordercast.v1.isis_pb2 import Cast, Seen, Submit
from ordercast.v1.membership_pb2 import Configuration, DomainView, GroupView
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered
from tests.unit.driving import LIVES, envelope_of

#: The gateway that submits everything, and to which receipts go.
GATEWAY = "g1"


class Member:
    """One process, with its disk and what its application has seen."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self.settings = settings
        self.incarnation = LIVES[name]
        self.machine = Isis(name, settings)
        self.is_up = True
        self.disk: dict[bytes, bytes] = {}
        self.logs: dict[str, Log] = {}
        self.has_slow_disk = False
        self.unsynced: list[Effect] = []
        self.timers: dict[str, None] = {}
        #: Of this life: casts in the order of delivery, by group and name; and what others told it alone.
        self.live: list[tuple[str, str]] = []
        self.told: list[bytes] = []

    def read(self, read: ReadLog) -> tuple[Any, ...]:
        """What it has delivered, be it on disk or not."""
        log = self.logs.get(read.group, Log())
        ahead = [one.entry for one in self.unsynced if isinstance(one, Deliver) and one.group == read.group]
        first = read.position - log.begins
        entries = [*log.entries, *ahead][first : first + read.count_max] if first >= 0 else []
        return (read.group, read.position, entries, log.begins, read.tag)

    def write(self, effect: Effect) -> None:
        if isinstance(effect, Persist):
            for key, value in effect.records:
                self.disk.pop(key, None) if value is None else self.disk.update({key: value})
        elif isinstance(effect, Deliver):
            self.logs.setdefault(effect.group, Log()).write(effect.position, effect.entry)
        elif isinstance(effect, ResetLog):
            self.logs.setdefault(effect.group, Log()).write(effect.position, None)


class Company:
    def __init__(self, groups: dict[str, str], *, spare: str = "", **settings: Any) -> None:
        """{"a": "n1 n2 n3"}: first views. Spare processes have no part in them."""
        self.now = 100.0
        self.number = 1
        self.groups = {name: GroupView(group=name, configuration=1) for name in groups}
        names = sorted({*spare.split(), *(name for members in groups.values() for name in members.split())})
        self.members = {name: Member(name, Settings(**settings)) for name in names}
        self.links: dict[tuple[str, str], deque[tuple[int, Any]]] = {}
        self.held: dict[tuple[str, str], None] = {}
        self.said = 0
        self.envelopes: dict[str, Envelope] = {}
        self.streams = 0
        #: Names of casts whose receipts have come, by group.
        self.receipts: list[tuple[str, str]] = []
        #: All that happened, for those who tell it: what kind of thing, and to whom.
        self.history: list[tuple[Any, ...]] = []
        for name, members in groups.items():
            self._set(self.groups[name], members)
        for name in names:
            self._start(name)
        for name in names:
            self._connect(name)
        self.run()
        self.history.clear()

    # ------------------------------------------------------------------------------------------- looking

    def machine(self, name: str) -> Isis:
        return self.members[name].machine

    def replica(self, name: str, group: str = "a") -> Replica:
        return self.machine(name).replicas[group]

    def era(self, name: str, group: str = "a") -> Era:
        era = self.replica(name, group).current
        assert era is not None
        return era

    def live(self, name: str, group: str = "") -> str:
        """What it has delivered in this life, in one group or in all: "m1 m2"."""
        return " ".join(label for where, label in self.members[name].live if group in ("", where))

    def log(self, name: str, group: str = "a") -> str:
        """As a subscriber reads it: what was cast twice is there once."""
        entries = self.members[name].logs.get(group, Log()).entries
        spans = {id(entry): [span for outcome in entry.outcomes for span in outcome.spans] for entry in entries}
        first = [entry for entry in entries if not all(span.duplicate for span in spans[id(entry)])]
        return " ".join(self.label(entry.envelope) for entry in first)

    def on_the_way(self, source: str, to: str, type_: type = object) -> list[Any]:
        return [message for _, message in self.links.get((source, to), ()) if isinstance(message, type_)]

    def casts_on_the_way(self, source: str, to: str) -> str:
        return " ".join(self.label(cast.envelope) for cast in self.on_the_way(source, to, Cast))

    def label(self, envelope: Envelope) -> str:
        return next(label for label, one in self.envelopes.items() if one.header.id == envelope.header.id)

    def holder(self, group: str) -> str:
        """Who has the token of its present view to begin with."""
        view = self.groups[group]
        return view.replicas[zlib.crc32(f"{group} {view.configuration}".encode()) % len(view.replicas)]

    def seen_at(self, name: str, group: str) -> Seen:
        """What a client has seen that has read the last entry of that log."""
        stamp = stamp_in(self.members[name].logs[group].entries[-1])
        seen = seen_of(group, stamp)
        read = Seen.FromString(self.machine(name).read_besides(group))
        seen.MergeFrom(Seen(open=read.open, confirmed=read.confirmed))
        return seen

    # ------------------------------------------------------------------------------------------ speaking

    def cast(
        self, through: str, groups: str, label: str, *, total: bool = False, seen: Seen | None = None
    ) -> None:
        """A client publishes that through a member of one of these groups."""
        if label not in self.envelopes:
            self.envelopes[label] = envelope_of(len(self.envelopes), *groups.split(), gateway=GATEWAY)
        envelope = self.envelopes[label]
        if seen is not None:
            envelope.header.session = seen.SerializeToString()
        self.streams += 1
        group = next(name for name in groups.split() if name in self.machine(through).replicas)
        submit = Submit(group=group, envelope=envelope, total=total, stream=self.streams, index=1)
        self.step(through, Receive, GATEWAY, LIVES[GATEWAY], submit)
        self.run()

    def tell_one(self, source: str, to: str, payload: str) -> None:
        self.step(source, TellOne, to, payload.encode())
        self.run()

    def say(self, source: str, to: str, message: Any) -> None:
        """As if that process had said it."""
        self.step(to, Receive, source, self.members[source].incarnation, message)
        self.run()

    # ------------------------------------------------------------------------------------------- network

    def hold(self, source: str, *to: str) -> None:
        for name in to:
            self.held[(source, name)] = None

    def release(self, source: str, *to: str) -> None:
        for name in to:
            self.held.pop((source, name), None)
        self.run()

    def arrive(self, source: str, to: str, count: int = 1) -> None:
        """The first of what is held there, and what comes of it."""
        for _ in range(count):
            self._arrive(source, to)
        self.run()

    def lose(self, source: str, to: str) -> None:
        """What is held there is lost, and nobody notices."""
        self.links.get((source, to), deque()).clear()

    def reconnect(self, one: str, other: str) -> None:
        """The connection breaks, and what was under way is lost with it; then there is another one."""
        for pair in ((one, other), (other, one)):
            self.lose(*pair)
        for name, peer in ((one, other), (other, one)):
            self.step(name, ChannelReset, peer, self.members[peer].incarnation)
        self.run()

    def run(self) -> None:
        """Until nothing is under way that is not held."""
        while True:
            ready = [pair for pair, link in self.links.items() if link and pair not in self.held]
            if not ready:
                return
            self._arrive(*min(ready, key=lambda pair: self.links[pair][0][0]))

    def _arrive(self, source: str, to: str) -> None:
        _, message = self.links[(source, to)].popleft()
        self.history.append(("arrives", source, to, message))
        with suppress(LateView):
            self.step(to, Receive, source, self.members[source].incarnation, message)

    def _post(self, source: str, to: str, message: Any) -> None:
        if to == GATEWAY:
            if isinstance(message, EnvelopeDelivered):
                label = next(label for label, one in self.envelopes.items() if one.header.id == message.id)
                self.receipts.append((message.group, label))
                self.history.append(("receipt", source, message.group, label))
        elif to == source:
            self.history.append(("arrives", source, to, message))
            self.step(to, Receive, source, self.members[source].incarnation, message)
        elif self.members[to].is_up:
            self.said += 1
            self.links.setdefault((source, to), deque()).append((self.said, message))
            if (source, to) in self.held:
                self.history.append(("held", source, to, message))

    # ---------------------------------------------------------------------------------- processes, disks

    def step(self, name: str, event: type[Event], *fields: Any) -> list[Effect]:
        member = self.members[name]
        effects = member.machine.step(event(self.now, 0.0, *fields))
        member.machine.check_invariants()
        sends: list[Send] = []
        for effect in effects:
            if isinstance(effect, Send):
                sends.append(effect)
            else:
                self._perform(member, effect)
        for send in sends:
            self._send(name, send)
        if not member.has_slow_disk:
            self._sync(member)
        for effect in effects:
            if isinstance(effect, ReadLog):
                self.step(name, LogRead, *member.read(effect))
        return effects

    def _perform(self, member: Member, effect: Effect) -> None:
        if isinstance(effect, Deliver):
            label = self.label(effect.entry.envelope)
            self.history.append(("shows" if effect.final else "delivers", member.name, effect.group, label))
            if effect.final:
                member.unsynced.append(effect)
            else:
                member.live.append((effect.group, label))
        elif isinstance(effect, Persist | ResetLog):
            member.unsynced.append(effect)
        elif isinstance(effect, SetTimer):
            member.timers[effect.name] = None
        elif isinstance(effect, Told):
            member.told.append(effect.payload)
            self.history.append(("told", member.name, effect.source, effect.payload.decode()))
        elif isinstance(effect, Interrupted):
            self.history.append(("interrupted", member.name, effect.group))

    def _send(self, source: str, send: Send) -> None:
        for to in send.to:
            self._post(source, to, send.message)

    def _sync(self, member: Member) -> None:
        unsynced, member.unsynced = member.unsynced, []
        for effect in unsynced:
            member.write(effect)
        for effect in unsynced:
            for send in effect.then if isinstance(effect, Persist) else ():
                assert isinstance(send, Send)
                self._send(member.name, send)

    def slow_disk(self, name: str) -> None:
        self.members[name].has_slow_disk = True

    def sync(self, name: str) -> None:
        """Its disk is as quick as the others' again."""
        self.members[name].has_slow_disk = False
        self._sync(self.members[name])
        self.run()

    def crash(self, *names: str) -> None:
        for name in names:
            member = self.members[name]
            member.is_up, member.has_slow_disk, member.unsynced = False, False, []
            for pair in self.links:
                if name in pair:
                    self.lose(*pair)

    def restart(self, *names: str) -> None:
        """In another life, with what was on disk; membership tells it the latest."""
        for name in names:
            member = self.members[name]
            member.incarnation += 100
            member.machine, member.is_up, member.live = Isis(name, member.settings), True, []
            member.timers = {}
            self._start(name)
        for name in names:
            self._connect(name)
        self.run()

    def _start(self, name: str) -> None:
        member = self.members[name]
        self.step(name, Start, member.incarnation, list(member.disk.items()))
        self.step(name, ViewChanged, self.view)

    def _connect(self, name: str) -> None:
        for other in self.members:
            if other != name and self.members[other].is_up:
                self.step(name, ChannelReset, other, self.members[other].incarnation)
                self.step(other, ChannelReset, name, self.members[name].incarnation)

    def wait(self, seconds: float = 1.0) -> None:
        """All timers that are set fire once; with them goes what nobody was in a hurry to say."""
        self.now += seconds
        for name, member in self.members.items():
            timers, member.timers = member.timers, {}
            for timer in timers if member.is_up else ():
                self.step(name, TimerFired, timer, 0)
        self.run()

    # ----------------------------------------------------------------------------------------- membership

    @property
    def view(self) -> DomainView:
        return DomainView(domain="test", number=self.number, groups=self.groups.values())

    def _set(self, group: GroupView, members: str) -> None:
        group.replicas[:] = members.split()
        group.incarnations[:] = [self.members[name].incarnation for name in group.replicas]

    def define(
        self, group: str, members: str, *, leaving: str = "", learners: str = "", told: str = "all"
    ) -> None:
        """The group's next view, of these in their present lives."""
        view = self.groups[group]
        if not view.HasField("previous"):
            view.previous.CopyFrom(Configuration(number=view.configuration, replicas=view.replicas))
        view.configuration += 1
        self._set(view, members)
        view.starting[:], view.leaving[:], view.learners[:] = members.split(), leaving.split(), learners.split()
        self.announce(told)

    def complete(self, group: str, *, told: str = "all") -> None:
        """A majority of it has the cut on disk, as they must have told membership."""
        view = self.groups[group]
        have = [name for name in view.replicas if self.has_cut(name, group)]
        assert 2 * len(have) > len(view.replicas), f"only {have} have the cut"
        view.ClearField("previous")
        view.leaving[:] = []
        view.epoch = max(view.epoch, *(self.machine(name).progress()[group].epoch for name in have))
        self.announce(told)

    def installed(self, group: str, *, told: str = "all") -> None:
        """Everyone in it has said so."""
        self.groups[group].starting[:] = []
        self.announce(told)

    def change(self, group: str, members: str, **fields: Any) -> None:
        """From definition to installation, without anything that goes wrong."""
        self.define(group, members, **fields)
        self.complete(group)
        self.installed(group)

    def has_cut(self, name: str, group: str = "a") -> bool:
        if not self.members[name].is_up:
            return False
        progress = self.machine(name).progress().get(group)
        current = self.groups[group].configuration
        return progress is not None and progress.started and progress.configuration == current

    def announce(self, told: str = "all") -> None:
        """Membership's latest to these, or to all that are up, in this order."""
        self.number += 1
        self.tell(
            *([name for name in self.members if self.members[name].is_up] if told == "all" else told.split())
        )

    def tell(self, *names: str) -> None:
        """What was announced, to somebody who has not heard it."""
        for name in names:
            self.step(name, ViewChanged, self.view)
        self.run()


def labels(company: Company, casts: Sequence[Cast]) -> str:
    return " ".join(company.label(cast.envelope) for cast in casts)
