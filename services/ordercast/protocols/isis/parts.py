"""A message to several groups: one cast in each, all of them or none, and causal across them.

The paper lets a member multicast to one group [BSS91 6.1]. Here the origin stamps the message, casts it in its own
group and hands it, with that stamp, to a member of each other group. Everyone who holds a part is responsible for
the others: if it does not hear that all are cast, it hands them on itself. Until then nobody who sent or delivered
a part speaks in another group; then it knows where each part is, and what it says comes behind all of them. Who
comes to a group later takes over what is open there (flush.py), and who speaks for a client that has read a part
asks first (confirmed.py, asking.py).
A part that was cast twice in a group is one in the log: idempotence tells.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import Receive, Send
from ordercast.core.quorums import majority
from ordercast.core.view import names_of
from ordercast.protocols.isis import records, times
from ordercast.protocols.isis.checking import check_part
from ordercast.protocols.isis.era import Era, message_of
from ordercast.protocols.isis.records import Key
from ordercast.protocols.isis.replica import Replica
from ordercast.protocols.isis.settings import Causality
from ordercast.protocols.isis.times import Stamp, Times
from ordercast.v1.common_pb2 import Envelope
from ordercast.v1.isis_pb2 import Part, PartCast, PartsCast, Seen, Submit

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis

#: Finished ones that are remembered, for those who ask late.
REMEMBERED = 1024


@dataclass(slots=True)
class Spread:
    """A message to several groups of which a part is here."""

    envelope: Envelope
    groups: tuple[str, ...]
    origin: Stamp
    epoch: int
    #: Where a part was cast that is here; groups in which it was sent or delivered by this process.
    here: dict[str, tuple[int, Key]] = field(default_factory=dict)
    spoken: dict[str, None] = field(default_factory=dict)
    #: Groups in whose log or cut it was when we came: others have it there.
    told: dict[str, None] = field(default_factory=dict)
    #: Parts that are delivered and safe.
    cast: dict[str, Part] = field(default_factory=dict)
    #: Who wants to hear of our part of each group.
    askers: dict[tuple[str, str], None] = field(default_factory=dict)
    #: When to hand the others on, and how often that was done.
    due: float = 0.0
    tries: int = 0


class Parts:
    def __init__(self, machine: "Isis") -> None:
        self.machine = machine
        self.spreads: dict[bytes, Spread] = {}
        self.finished: dict[bytes, dict[str, Part]] = {}

    def holds(self, id_: bytes) -> bool:
        return id_ in self.spreads

    def check_group(self, id_: bytes, group: str) -> None:
        """One id is of one envelope: whoever names a group for it that is not among its groups is wrong."""
        spread = self.spreads.get(id_)
        if spread is not None and group not in spread.groups:
            raise RemoteProtocolError("this message has no part in that group")

    def _spread_in(self, group: str, id_: bytes) -> Spread | None:
        """What is open under this id, if it has a part in the group.

        Two members may have been told different envelopes under one id. Each of them goes on with its own. What
        comes from the other, in a cast or at the end of a view, is not refused: that would lose the view.
        """
        spread = self.spreads.get(id_)
        return spread if spread is not None and group in spread.groups else None

    def open_in(self, group: str) -> list[bytes]:
        """Messages that are for the group, among others, and not known to be cast in all of them."""
        return [id_ for id_, spread in self.spreads.items() if group in spread.groups]

    def is_known(self, id_: bytes) -> bool:
        """As open, or as confirmed."""
        return id_ in self.spreads or id_ in self.finished

    def unconfirmed(self, group: str) -> dict[bytes, None]:
        """Those that keep this process from speaking in the group; in all groups, without a name."""
        return {id_: None for id_, spread in self.spreads.items() if any(g != group for g in spread.spoken)}

    # -------------------------------------------------------------------------------------------- submitting

    def hand_on(self, event: Receive) -> None:
        """To us as a member of the group, with its origin's stamp: cast it, unless somebody has."""
        submit: Submit = event.message
        machine, group, id_ = self.machine, submit.group, submit.envelope.header.id
        done = self.finished.get(id_)
        if done is not None and group in done:
            machine.out.append(Send((event.source,), PartCast(id=id_, part=done[group])))
            if submit.again and not machine.is_here(machine.replicas[group], id_):
                origin = times.stamp_from(submit.origin)
                machine.speaking.submit_part(group, submit.envelope, origin, submit.origin.epoch)
            return
        if submit.again:
            return  # Not known here: whoever sent this casts it, and hands it on, as if for the first time.
        spread = self.spreads.get(id_)
        if spread is not None and group in spread.cast:
            machine.out.append(Send((event.source,), PartCast(id=id_, part=spread.cast[group])))
            return
        if spread is None:
            spread = self._hear_of(submit.envelope, times.stamp_from(submit.origin), submit.origin.epoch)
        spread.askers[(group, event.source)] = None
        self._cast_here(spread, group)

    def submitted(self, group: str, id_: bytes) -> bool:
        """From a gateway, and known here: its part of this group is cast if it is not; nothing else happens."""
        spread = self.spreads.get(id_)
        if spread is not None:
            self._cast_here(spread, group)
        return spread is not None

    def _cast_here(self, spread: Spread, group: str) -> None:
        if group not in spread.here and group not in spread.cast:
            self.machine.speaking.submit_part(group, spread.envelope, spread.origin.copy(), spread.epoch)

    def is_cast(self, group: str, id_: bytes) -> bool:
        """Here, or by somebody else: then what waits here to be cast need not be."""
        spread = self.spreads.get(id_)
        return spread is not None and (group in spread.here or group in spread.cast)

    def ask_again(self, submit: Submit) -> None:
        """A gateway repeats what may be visible, for it has not heard so.

        Whoever remembers it says it again; we begin afresh: in the log it is the same message.
        """
        machine = self.machine
        self.finished.pop(submit.envelope.header.id, None)
        assert machine.view is not None
        stamp = machine.known.copy()
        machine.speaking.carry(stamp, times.stamp_from(Seen.FromString(submit.envelope.header.session)).all())
        origin = times.seen_from(stamp, machine.epochs.epoch)
        for name in names_of(submit.envelope.header.destinations):
            group = machine.view.groups.get(name)
            if name != submit.group and group is not None and group.working:
                again = Submit(group=name, envelope=submit.envelope, origin=origin, again=True)
                machine.out.append(Send((group.working[submit.stream % len(group.working)],), again))

    def _hear_of(self, envelope: Envelope, origin: Stamp, epoch: int) -> Spread:
        machine = self.machine
        groups = names_of(envelope.header.destinations)
        due = machine.now + machine.settings.silence_s
        spread = self.spreads[envelope.header.id] = Spread(envelope, groups, origin, epoch, due=due)
        record = Submit(envelope=envelope, origin=times.seen_from(origin, epoch))
        machine.changes.append((records.parts(envelope.header.id), record.SerializeToString()))
        machine.wake()
        return spread

    def load(self, record: Submit) -> None:
        """From disk. Where its parts are is not known: they are handed on, and whoever has one says so."""
        spread = self._hear_of(record.envelope, times.stamp_from(record.origin), record.origin.epoch)
        spread.tries = 1
        # An earlier life may have shown it to others, and this one goes on with its log.
        spread.spoken = dict.fromkeys(spread.groups)

    def message_of(self, group: str, id_: bytes) -> Submit:
        """For somebody who begins with the group's log: it holds the message from then on, as we do."""
        spread = self.spreads[id_]
        origin = times.seen_from(spread.origin, spread.epoch)
        return Submit(group=group, envelope=spread.envelope, origin=origin)

    def hold(self, held: Submit) -> None:
        """It was open in a group whose log we begin with, or whose view we saw end. As if we had delivered it."""
        id_ = held.envelope.header.id
        if id_ in self.finished:
            self._confirm(held.group, id_)
            return
        spread = self.spreads.get(id_)
        if spread is None:
            spread = self._hear_of(held.envelope, times.stamp_from(held.origin), held.origin.epoch)
        if held.group in spread.groups:
            spread.spoken[held.group] = None
            spread.told[held.group] = None

    def counts_as_delivered(self, group: str, id_: bytes) -> None:
        spread = self._spread_in(group, id_)
        if spread is not None:
            spread.spoken[group] = None

    def _confirm(self, group: str, id_: bytes) -> None:
        """Whoever reads the group's log here is told where all parts are."""
        cast = self.finished[id_]
        self.machine.confirmed.add(group, self.stamp_of(cast.values()), max(part.epoch for part in cast.values()))

    def took(self, replica: Replica, era: Era, key: Key, origin: Stamp | None = None) -> None:
        """A cast came, or was sent: if it is a part, we hold it."""
        cast = era.casts[key]
        id_ = cast.envelope.header.id
        if len(cast.envelope.header.destinations) < 2:
            return
        if id_ in self.finished:
            self._confirm(replica.name, id_)
            return
        spread = self.spreads.get(id_)
        if spread is None:
            if origin is None:
                origin = times.stamp_from(cast)
                before = {key[0]: key[1] - 1} if key[1] > 1 else {}
                times.merge_one(origin.times, replica.name, era.view, before)
                if self.machine.settings.causality != Causality.TIMESTAMPS:
                    # Its origin waited until it was safe to leave that out; whoever casts a part has not.
                    times.merge_one(origin.carried, replica.name, era.view, before)
            spread = self._hear_of(cast.envelope, origin.copy(), cast.epoch)
        if replica.name in spread.groups:
            spread.here.setdefault(replica.name, (era.view, key))

    def sent(self, replica: Replica, era: Era, key: Key) -> None:
        """The origin hands the other parts on as it casts its own."""
        spread = self._spread_in(replica.name, era.casts[key].envelope.header.id)
        if spread is not None:
            spread.spoken[replica.name] = None
            if not spread.tries and not spread.askers:
                self._relay(spread)

    def delivered(self, replica: Replica, era: Era, key: Key) -> None:
        id_ = era.casts[key].envelope.header.id
        spread = self._spread_in(replica.name, id_)
        if spread is not None:
            spread.here.setdefault(replica.name, (era.view, key))
            spread.spoken[replica.name] = None
        elif id_ in self.finished:
            self._knows_all(id_)

    def _knows_all(self, id_: bytes) -> None:
        """All parts were cast before we delivered one: what we say from now on comes behind all of them."""
        self.machine.speaking.carry(self.machine.known, self.stamp_of(self.finished[id_].values()))

    def _relay(self, spread: Spread) -> None:
        """Each part that is not known to be safe, to one member of its group: another one each time."""
        machine = self.machine
        view = machine.view
        assert view is not None
        spread.tries += 1
        spread.due = machine.now + machine.settings.silence_s * min(spread.tries, 8)
        origin = times.seen_from(spread.origin, spread.epoch)
        for name in spread.groups:
            group = view.groups.get(name)
            if name in spread.cast:
                continue
            if group is None:
                # The group is gone, and what was for it goes with it.
                spread.cast[name] = Part(group=name)
                continue
            if name in spread.here and spread.tries < 4:
                continue  # ours is on its way
            members = group.working
            if name in spread.told:
                members = tuple(member for member in members if member != machine.process) or members
            to = machine.process if machine.process in members else members[spread.tries % len(members)]
            if spread.tries > 3:
                to = members[spread.tries % len(members)]
            submit = Submit(group=name, envelope=spread.envelope, origin=origin)
            machine.out.append(Send((to,), submit))

    def left_out_of(self, group: str) -> None:
        """Our casts there that are not safe may be lost. To come back in a later view says nothing about them, so
        they are handed on again, as if they had never been here.
        """
        for spread in self.spreads.values():
            spread.here.pop(group, None)

    def lost(self, group: str, view: int, key: Key) -> None:
        """A view ended without that cast."""
        for spread in self.spreads.values():
            if spread.here.get(group) == (view, key):
                del spread.here[group]

    # ------------------------------------------------------------------------------------------ confirming

    def advance(self) -> None:
        """Our parts that have become safe; messages whose parts all are."""
        for id_ in list(self.spreads):
            spread = self.spreads[id_]
            for name, (view, key) in spread.here.items():
                if name not in spread.cast and self._is_safe(name, view, key):
                    epoch = self.machine.epochs.epoch
                    spread.cast[name] = Part(group=name, view=view, key=message_of(key), epoch=epoch)
            for group, asker in list(spread.askers):
                if group in spread.cast:
                    del spread.askers[(group, asker)]
                    self.machine.out.append(Send((asker,), PartCast(id=id_, part=spread.cast[group])))
            if len(spread.cast) == len(spread.groups):
                self._finish(id_, spread.cast, tells=True)

    def _is_safe(self, name: str, view: int, key: Key) -> bool:
        """Delivered, and on the disks of a majority at least; or a later view began with it."""
        replica = self.machine.replicas.get(name)
        if replica is None or replica.view > view:
            return True
        if not replica.eras or replica.eras[-1].view != view:
            return False
        era = replica.eras[-1]
        k = max(self.machine.stability.k(era), majority(len(era.members)))
        return era.is_delivered(key) and era.synced_by(key) >= k

    def on_part(self, event: Receive) -> None:
        message: PartCast = event.message
        spread = self.spreads.get(message.id)
        if spread is None:
            return
        if message.part.group not in spread.groups:
            raise RemoteProtocolError("no part of this message")
        check_part(message.part)
        spread.cast.setdefault(message.part.group, message.part)

    def on_parts(self, event: Receive) -> None:
        message: PartsCast = event.message
        if message.HasField("until"):
            self.machine.asking.on_message(event)
            return
        spread = self.spreads.get(message.id)
        if spread is not None:
            cast = {part.group: part for part in message.parts}
            if sorted(cast) != list(spread.groups):
                raise RemoteProtocolError("not the parts of this message")
            for part in message.parts:
                check_part(part)
            self._finish(message.id, cast, tells=False)

    def _finish(self, id_: bytes, cast: dict[str, Part], *, tells: bool) -> None:
        """All of it is cast: whoever speaks on speaks after all of it."""
        machine = self.machine
        spread = self.spreads.pop(id_)
        self.finished[id_] = cast
        while len(self.finished) > REMEMBERED:
            del self.finished[next(iter(self.finished))]
        machine.changes.append((records.parts(id_), None))
        for group, asker in spread.askers:
            machine.out.append(Send((asker,), PartCast(id=id_, part=cast[group])))
        if tells:
            assert machine.view is not None
            others = [p for p in machine.view.replicas_of(spread.groups) if p != machine.process]
            if others:
                message = PartsCast(id=id_, group=spread.groups[0], parts=list(cast.values()))
                machine.out.append(Send(others, message))
        stamp = self.stamp_of(cast.values())
        machine.epochs.rise(max(part.epoch for part in cast.values()))
        if spread.spoken:
            machine.speaking.carry(machine.known, stamp)
        machine.speaking.confirmed(id_, stamp)
        machine.telling.confirmed(id_, stamp)
        for name in spread.groups:
            if name in machine.replicas:
                self._confirm(name, id_)
                machine.touched[name] = None

    def stamp_of(self, parts: Iterable[Part]) -> Times:
        stamp: Times = {}
        for part in parts:
            if part.view:
                times.merge_one(stamp, part.group, part.view, {part.key.member: part.key.number})
        return stamp

    def on_tick(self) -> None:
        for spread in list(self.spreads.values()):
            if self.machine.now >= spread.due:
                self._relay(spread)
