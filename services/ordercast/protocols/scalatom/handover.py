"""From one configuration of a group to the next: what the sealed hand over, and how their followers start.

README.md in this folder, "Changing the replicas of a group", has the argument. In short: a member of the new
configuration asks the sealed ones for what they had, and its fellows for what they started from. With that of a
majority of the sealed, or of one fellow, whose logs its own has reached, it starts: above the highest clock, with
the lowest history entry of every open envelope, and with a stamp for each.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, ID_BYTES, sn_of
from ordercast.core.machine import Observe, Persist, Receive, Send
from ordercast.core.view import names_of
from ordercast.protocols.celllog import collect
from ordercast.protocols.celllog.collect import Collect
from ordercast.protocols.celllog.idempotence import Record
from ordercast.protocols.scalatom import records
from ordercast.protocols.scalatom.held import Held
from ordercast.protocols.scalatom.replica import Replica
from ordercast.v1.scalatom_pb2 import HandedOver, HandOver, HandOverAsk, StartedRecord

if TYPE_CHECKING:
    from ordercast.protocols.scalatom.machine import Scalatom


@dataclass(slots=True)
class Part(collect.Part):
    clock: int = 0
    position: int = 0
    envelopes: dict[bytes, HandedOver] = field(default_factory=dict)


class Starting(Collect[Part]):
    ask_at = 0.0


class Handing:
    def __init__(self, machine: "Scalatom") -> None:
        self.machine = machine
        #: By group: those in whose configuration we have not started; and what we started from, for others.
        self.starting: dict[str, Starting] = {}
        self.kept: dict[str, Part] = {}

    def on_view(self) -> None:
        machine = self.machine
        for name, replica in machine.replicas.items():
            starting = self.starting.get(name)
            if replica.is_active or not replica.is_member:
                self.starting.pop(name, None)
            elif starting is not None and starting.configuration == replica.group.configuration:
                starting.follow(replica.group)
            else:
                self.starting[name] = Starting(machine.process, replica.group, Part, is_acceptor=False)
                self._ask(replica)
            if name in self.kept and (not replica.is_active or not replica.group.starting):
                machine.changes += self.forget(name)
                if replica.is_active:
                    machine.changes.append(self._started_record(replica))

    def forget(self, name: str) -> list[Record]:
        """Nobody has to start from it any more, or nobody will from ours."""
        kept = self.kept.pop(name, None)
        return [] if kept is None else [(records.handed(name, id_), None) for id_ in kept.envelopes]

    # ------------------------------------------------------------------------------------------- asking

    def on_tick(self, replica: Replica) -> None:
        starting = self.starting.get(replica.name)
        if starting is not None and self.machine.now >= starting.ask_at:
            self._ask(replica)

    def _ask(self, replica: Replica) -> None:
        starting = self.starting[replica.name]
        starting.ask_at = self.machine.now + self.machine.patience_s()
        for source, after in starting.missing():
            self._ask_one(replica, source, after)

    def _ask_one(self, replica: Replica, source: str, after: bytes) -> None:
        ask = HandOverAsk(group=replica.name, configuration=replica.group.configuration, after=after)
        self.machine.out.append(Send((source,), ask))

    # ------------------------------------------------------------------------------------------- answering

    def on_ask(self, event: Receive) -> None:
        ask: HandOverAsk = event.message
        machine = self.machine
        assert machine.view is not None
        group = machine.view.present(ask.group, ask.configuration)
        if event.source not in group.replicas:
            raise RemoteProtocolError(f"{event.source} is no replica of {ask.group!r}")
        replica = machine.replicas.get(ask.group)
        if replica is None:
            return
        kept = self.kept.get(ask.group)
        if kept is not None:
            answer = self._answer(replica, kept.clock, kept.position, kept.envelopes, ask.after)
            answer.whole = True
        elif replica.is_sealed:
            answer = self._answer(replica, replica.clock, replica.position, self._sealed(replica), ask.after)
        elif replica.is_idle:
            answer = self._answer(replica, 0, 0, {}, ask.after)
            answer.idle = True
        else:
            return
        # Behind everything that this rests on: that we know of the new configuration, and all stamps in the old.
        machine.then.append(Send((event.source,), answer))

    def _sealed(self, replica: Replica) -> dict[bytes, HandedOver]:
        """The envelopes that this replica has stamped and not delivered."""
        found: dict[bytes, HandedOver] = {}
        for id_, held in self.machine.held.items():
            rec_ts = held.own.get(replica.name)
            if rec_ts is not None and replica.name in held.undelivered and held.envelope is not None:
                entry = replica.history.entry(id_)
                handed = HandedOver(
                    envelope=held.envelope, rec_ts=rec_ts, entry=rec_ts if entry is None else entry
                )
                if held.sn is not None:
                    handed.sn = held.sn
                found[id_] = handed
        return found

    def _answer(
        self, replica: Replica, clock: int, position: int, envelopes: dict[bytes, HandedOver], after: bytes
    ) -> HandOver:
        settings = self.machine.settings
        answer = HandOver(
            group=replica.name,
            configuration=replica.group.configuration,
            clock=clock,
            position=position,
            after=after,
        )
        size = 0
        for id_ in sorted(id_ for id_ in envelopes if id_ > after):
            if answer.envelopes and (
                len(answer.envelopes) >= settings.hand_over or size > settings.log_chunk_bytes
            ):
                answer.more = True
                break
            answer.envelopes.append(envelopes[id_])
            size += envelopes[id_].ByteSize()
        return answer

    # ------------------------------------------------------------------------------------------- hearing

    def on_hand_over(self, event: Receive) -> None:
        message: HandOver = event.message
        machine = self.machine
        assert machine.view is not None
        machine.view.present(message.group, message.configuration)
        starting = self.starting.get(message.group)
        if starting is None:
            return
        self._check(message)
        replica = machine.replicas[message.group]
        part = starting.part(event.source, is_whole=message.whole, is_idle=message.idle)
        if part.is_complete:
            return
        if part.after == message.after:
            part.clock = message.clock
            part.position = max(part.position, message.position)
            for handed in message.envelopes:
                part.after = handed.envelope.header.id
                part.envelopes[part.after] = handed
            part.is_complete = not message.more
        if part.is_complete:
            self.on_progress(replica)
        else:
            self._ask_one(replica, event.source, part.after)

    def _check(self, message: HandOver) -> None:
        if message.clock > CLOCK_MAX or (message.after and len(message.after) != ID_BYTES):
            raise RemoteProtocolError("not a hand-over")
        last = message.after
        for handed in message.envelopes:
            header = handed.envelope.header
            self.machine.stamping.check_form(header)
            if message.group not in names_of(header.destinations) or header.id <= last:
                raise RemoteProtocolError("a hand-over of other envelopes than it says")
            has_stamp = handed.HasField("rec_ts") or message.whole
            if max(handed.entry, handed.rec_ts, handed.sn) > CLOCK_MAX or not has_stamp:
                raise RemoteProtocolError("a hand-over with no stamp")
            last = header.id

    # ------------------------------------------------------------------------------------------- starting

    def on_progress(self, replica: Replica) -> None:
        """Something came: perhaps it is enough.

        What asks for a log that we have not reached is left out if the rest is enough: its sender may be gone.
        """
        starting = self.starting.get(replica.name)
        if starting is None or replica.copied is not None:
            return
        complete = starting.complete()
        parts = starting.enough(self.reached(replica, complete))
        if not parts:
            self._fetch(replica, starting.enough(complete))
            return
        del self.starting[replica.name]
        self.start(replica, self.merged(replica, list(parts.values())))

    def reached(self, replica: Replica, complete: dict[str, Part]) -> dict[str, Part]:
        """Those from which we may start, as our log goes as far as theirs did."""
        return {name: part for name, part in complete.items() if part.position <= replica.position}

    def _fetch(self, replica: Replica, parts: dict[str, Part]) -> None:
        """The log is all that is missing."""
        if parts and self.machine.now >= replica.fetch_due:
            self.machine.catch_up.fetching.fetch(replica, max(parts, key=lambda name: parts[name].position))

    def merged(self, replica: Replica, parts: list[Part]) -> Part:
        """What a majority had, as one: the highest clock, the lowest entries, and stamps where all had stamped."""
        if parts[0].is_whole:
            return parts[0]
        whole = Part(is_whole=True, is_complete=True)
        whole.clock = max(part.clock for part in parts)
        # What we have delivered ourselves is not among the open ones: who starts from this needs it too.
        whole.position = max(replica.position, *(part.position for part in parts))
        for id_ in sorted({id_ for part in parts for id_ in part.envelopes}):
            if replica.has_delivered(id_):
                continue
            found = [part.envelopes[id_] for part in parts if id_ in part.envelopes]
            handed = HandedOver(envelope=found[0].envelope, entry=self.lowest(found))
            rec_ts = self.stamp_of(found, len(parts))
            if rec_ts is not None:
                handed.rec_ts = rec_ts
            decided = [one.sn for one in found if one.HasField("sn")]
            if decided:
                handed.sn = decided[0]
            whole.envelopes[id_] = handed
        return whole

    def lowest(self, found: Iterable[HandedOver]) -> int:
        return min(one.entry for one in found)

    def stamp_of(self, found: list[HandedOver], members: int) -> int | None:
        """The highest, if all have stamped it: as a quorum of theirs would have had it decided.

        Otherwise one who had not may have told a clock above these stamps, and somebody delivered by that.
        """
        return max(one.rec_ts for one in found) if len(found) == members else None

    def start(self, replica: Replica, whole: Part) -> None:
        """All of this is durable before anybody hears a word of it."""
        machine = self.machine
        name = replica.name
        replica.begin(replica.group.configuration)
        self.keep(name, whole)
        self.raise_clock(replica, whole)
        self.floor(replica)
        replica.forget_queue()
        changes: list[Record] = [self._started_record(replica)]
        changes += [(records.handed(name, id_), h.SerializeToString()) for id_, h in whole.envelopes.items()]
        news, brought = self.take_over(replica, whole)
        stamped = self._stamp(replica, whole)
        changes += [machine.stamping.record(held) for held in stamped]
        machine.out.append(Persist([*machine.changes, *changes, *machine.reservation()]))
        machine.changes = []
        for held in stamped:
            if held.own:
                others = machine.others(held.names)
                machine.out += [Send(others, message) for message in machine.stamping.messages(held, ask=True)]
                machine.propose_if_coordinator(held)
        for held in brought:
            self._take_elsewhere(held)
        for held in news:
            machine.resolve(held)
        machine.gossiper.tell_all(replica)
        machine.touched[name] = None
        machine.wake()
        if machine.observe:
            machine.out.append(Observe("started", b"", f"{name} in {replica.started} at {replica.clock}"))

    def keep(self, name: str, whole: Part) -> None:
        """For those who have not started, when the sealed are gone."""
        self.kept[name] = whole

    def floor(self, replica: Replica) -> None:
        """What is delivered here is in no history any more: who has not delivered it is not to count on ours."""
        held = self.machine.held
        is_open = [i for i in held if replica.name in held[i].names and not replica.has_delivered(i)]
        replica.history.keep(frozenset(is_open), replica.clock, replica.last_key)

    def raise_clock(self, replica: Replica, whole: Part) -> None:
        """Above what any sealed one said or stamped, and above every number that we know."""
        machine = self.machine
        concerned = [h for h in machine.held.values() if replica.name in h.names or h.id in whole.envelopes]
        known = [h.sn + 1 for h in concerned if h.sn is not None]
        known += [handed.sn + 1 for handed in whole.envelopes.values() if handed.HasField("sn")]
        replica.clock = max(replica.clock, whole.clock, sn_of(replica.last_key) + 1, *known, 0)
        machine.clock = max(machine.clock, replica.clock)

    def take_over(self, replica: Replica, whole: Part) -> tuple[list[Held], list[Held]]:
        """Hold what was open. Returns that of which we did not know that it is decided, and what is new."""
        machine = self.machine
        assert machine.view is not None
        news, brought = [], []
        for id_, handed in whole.envelopes.items():
            if replica.has_delivered(id_):
                continue
            held = machine.hear_of(id_)
            if held.envelope is None:
                held.names = machine.view.known(d.group for d in handed.envelope.header.destinations)
                held.envelope = handed.envelope
                brought.append(held)
            if held.sn is None and handed.HasField("sn"):
                held.sn = handed.sn
                news.append(held)
        return news, brought

    def _take_elsewhere(self, held: Held) -> None:
        """It is for other groups here as well, and they have not had it from anyone."""
        others = [r for r in self.machine.replicas_for(held) if r.is_active and r.name not in held.own]
        others = [r for r in others if not r.has_delivered(held.id)]
        if others:
            held.undelivered.update(dict.fromkeys(r.name for r in others))
            self.machine.stamping.stamp(held, others)

    def _stamp(self, replica: Replica, whole: Part) -> list[Held]:
        """Everything that we hold for the group. What is delivered there needs none, but the record says so."""
        machine, name = self.machine, replica.name
        stamped = []
        for id_, held in sorted(machine.held.items()):
            if name not in held.names:
                continue
            held.own.pop(name, None)
            if held.envelope is None:
                if not held.own and replica.has_delivered(id_):
                    del machine.held[id_]  # kept for the history alone
                continue
            stamped.append(held)
            if replica.has_delivered(id_):
                continue
            held.undelivered[name] = None
            held.owners[machine.process] = None
            held.deadline, held.tries = machine.now, 0
            handed = whole.envelopes.get(id_)
            rec_ts = self.own_stamp(replica, handed)
            if rec_ts is None:
                machine.stamping.follow_session(held.envelope.header)
                rec_ts = replica.clock
            replica.clock = max(replica.clock, rec_ts + 1)
            machine.clock = max(machine.clock, replica.clock)
            held.stamp(name, machine.process, rec_ts)
            self.enter(replica, id_, rec_ts, handed)
            if held.sn is not None:
                replica.decide(id_, held.sn)
        return stamped

    def own_stamp(self, replica: Replica, handed: HandedOver | None) -> int | None:
        """None: a fresh one, from the clock."""
        return handed.rec_ts if handed is not None and handed.HasField("rec_ts") else None

    def enter(self, replica: Replica, id_: bytes, rec_ts: int, handed: HandedOver | None) -> None:
        """Into the history, at the lowest place that anyone gave it."""
        entry = rec_ts if handed is None else min(rec_ts, handed.entry)
        replica.stamp(id_, entry)
        lowest = replica.history.entry(id_)
        if lowest is not None and lowest < entry:
            replica.note_entry(id_, lowest)

    def _started_record(self, replica: Replica) -> Record:
        kept = self.kept.get(replica.name)
        record = StartedRecord(configuration=replica.started, is_kept=kept is not None)
        if kept is not None:
            record.clock, record.position = kept.clock, kept.position
        return (records.started(replica.name), record.SerializeToString())

    def recover(self, name: str, started: StartedRecord, handed: HandedOver | None) -> None:
        if started.is_kept:
            kept = self.kept.setdefault(
                name, Part(is_whole=True, clock=started.clock, position=started.position, is_complete=True)
            )
            if handed is not None:
                kept.envelopes[handed.envelope.header.id] = handed
