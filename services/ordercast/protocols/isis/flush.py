"""View change: define, flush, complete [BSS91 5.5].

Membership defines a view and says so to everyone. From then on nothing of the view that ends is sent, taken or
acknowledged; each of its surviving members contributes what it has (Forward, then Flush). The cut (cut.py) follows
from all contributions: everyone computes it (flush: all), or one does and tells (flush: coordinator). Whoever has
the cut on disk tells membership so, and once a majority of the new view has, membership records that the view is
complete. Only then does anyone act on it. A view that is defined meanwhile makes this one void: everything begins
again, with the same last completed view and, for that reason, with contributions that no crash can shrink.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import Receive, Send
from ordercast.core.view import Group
from ordercast.protocols.celllog.idempotence import Record
from ordercast.protocols.isis import cut, records, times
from ordercast.protocols.isis.checking import (
    FORWARDED_MAX,
    check_cast,
    check_contribution,
    check_cut,
    check_cut_of_mine,
    check_held,
)
from ordercast.protocols.isis.cut import Contribution, Ending
from ordercast.protocols.isis.era import Era, key_of, message_of
from ordercast.protocols.isis.records import Key
from ordercast.protocols.isis.settings import FlushKind
from ordercast.protocols.isis.times import MEMBERS_MAX, Stamp, Times
from ordercast.v1.isis_pb2 import Cast, Cut, CutRecord, CutSynced, Flush, Forward, Seen, Submit

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis
    from ordercast.protocols.isis.replica import Replica


@dataclass(slots=True)
class Attempt:
    """One view that was defined, and what has come for its flush."""

    view: int
    #: The last completed one, which ends, and its members: counts are by their places.
    ends: int
    members: tuple[str, ...]
    #: Of those, who must contribute: survivors, and those that leave of their own will.
    contributors: tuple[str, ...]
    #: Of those, who computes the cut for all, if one does.
    coordinator: str
    #: Which life of each member of the new view is meant.
    lives: dict[str, int] = field(default_factory=dict)
    #: It was complete when we heard of it: all there is to do is to copy the log up to it.
    is_late: bool = False
    flushes: dict[str, Flush] = field(default_factory=dict)
    casts: dict[Key, Cast] = field(default_factory=dict)
    times: dict[Key, Times] = field(default_factory=dict)
    #: Messages to several groups that are open elsewhere, and where the parts of the others are.
    held: dict[bytes, Submit] = field(default_factory=dict)
    confirmed: list[Seen] = field(default_factory=list)
    ending: Ending | None = None

    def add(self, cast: Cast, stamp: Stamp) -> None:
        key = key_of(cast.key)
        if key not in self.casts:
            self.casts[key] = cast
            self.times[key] = stamp.all()

    def contributions(self) -> list[Contribution]:
        return [
            Contribution(
                list(flush.received),
                list(flush.settled_counts),
                flush.settled,
                flush.epoch,
                dict(zip(flush.positions, map(key_of, flush.keys), strict=True)),
            )
            for flush in self.flushes.values()
            if not flush.behind
        ]

    @property
    def is_heard(self) -> bool:
        return all(name in self.flushes for name in self.contributors)


def attempt_for(group: Group) -> Attempt:
    former = group.former
    lives = dict(zip(group.replicas, group.incarnations, strict=True))
    if former is None:
        return Attempt(group.configuration, 0, (), (), "", lives, is_late=True)
    there = (*group.replicas, *group.leaving)
    contributors = tuple(n for n in former.replicas if n in there and n not in former.lost)
    staying = [name for name in contributors if name in group.replicas]
    first = (staying or list(contributors) or [""])[0]
    return Attempt(group.configuration, former.number, former.replicas, contributors, first, lives)


class Flushing:
    def __init__(self, machine: "Isis") -> None:
        self.machine = machine

    # ------------------------------------------------------------------------------------- contributing

    def begin(self, replica: "Replica") -> None:
        """A view is defined. Whatever was tried before it is void."""
        machine, group = self.machine, replica.group
        attempt = replica.attempt = attempt_for(group)
        replica.has_synced_cut = False
        if replica.cut is not None and replica.cut.view != attempt.view:
            machine.changes += replica.forget_cut(keeping=replica.ending if self.contributes(replica) else None)
        era = replica.ending if self.contributes(replica) else None
        if era is not None:
            for cast in era.casts.values():
                attempt.add(cast, times.stamp_from(cast))
        if machine.process in attempt.contributors:
            attempt.flushes[machine.process] = self.flush_of(replica)
        if not attempt.is_late:
            self.tell(replica, self.targets(replica))
        machine.replay_early(replica.name, attempt.view)
        self.compute(replica)

    def contributes(self, replica: "Replica") -> bool:
        """It has the whole past of the view that ends; otherwise it is behind, and has nothing to add."""
        attempt = replica.attempt
        assert attempt is not None
        return not attempt.is_late and replica.view == attempt.ends and replica.process in attempt.contributors

    def targets(self, replica: "Replica") -> list[str]:
        attempt, group = replica.attempt, replica.group
        assert attempt is not None
        if self.machine.settings.flush == FlushKind.ALL:
            return [name for name in (*group.replicas, *group.leaving) if name != self.machine.process]
        return [attempt.coordinator] if attempt.coordinator not in ("", self.machine.process) else []

    def flush_of(self, replica: "Replica") -> Flush:
        attempt = replica.attempt
        assert attempt is not None
        flush = Flush(group=replica.name, view=attempt.view, ends=attempt.ends)
        era = replica.ending
        if not self.contributes(replica) or era is None:
            flush.behind = True
            return flush
        flush.received.extend(era.received)
        flush.settled, flush.settled_counts[:] = era.settled, era.settled_counts
        flush.epoch = max((self.machine.epochs.epoch, *(cast.epoch for cast in era.casts.values())))
        for position in sorted(era.places):
            flush.positions.append(position)
            flush.keys.append(message_of(era.places[position]))
        return flush

    def tell(self, replica: "Replica", to: Iterable[str]) -> None:
        """Our contribution: what the others may lack, then what we have. Again after a new connection."""
        names, attempt = list(to), replica.attempt
        assert attempt is not None
        flush = attempt.flushes.get(self.machine.process)
        if not names or flush is None:
            return
        era = replica.ending
        if era is not None and not flush.behind:
            self.forward(attempt.view, era.casts.values(), names)
            self._say_parts(replica, attempt.view, flush, names)
        self.machine.out.append(Send(names, flush))

    def _say_parts(self, replica: "Replica", view: int, message: Flush | Cut, to: list[str]) -> None:
        """What of messages to several groups is open here, and where the parts of the others are, as of now.

        Whoever begins with our log holds the former as we do, and knows the latter: its answers come behind them.
        """
        machine = self.machine
        message.open[:] = machine.parts.open_in(replica.name)
        confirmed = machine.confirmed.of(replica.name)
        if confirmed.times or confirmed.epoch:
            message.confirmed.CopyFrom(confirmed)
        for id_ in message.open:
            held = machine.parts.message_of(replica.name, id_)
            machine.out.append(Send(to, Forward(view=view, held=held)))

    def forward(self, view: int, casts: Iterable[Cast], to: list[str]) -> None:
        for cast in casts:
            self.machine.out.append(Send(to, Forward(view=view, cast=cast)))

    def tell_again(self, replica: "Replica", peer: str) -> None:
        """The connection is new: what was in flight may be lost."""
        if replica.attempt is None:
            return
        if peer in self.targets(replica):
            self.tell(replica, [peer])
        concerned = (*replica.group.replicas, *replica.group.leaving)
        if self._is_coordinator(replica) and replica.attempt.ending is not None and peer in concerned:
            self._tell_cut(replica, [peer])

    # ------------------------------------------------------------------------------------------ hearing

    def _attempt(self, event: Receive, name: str, view: int) -> "Replica | None":
        """The replica whose attempt this is about; kept for later if we have not heard of that view yet."""
        machine = self.machine
        replica = machine.replicas.get(name)
        if replica is None or replica.attempt is None or replica.attempt.view != view:
            machine.keep_early(event, name, view)
            return None
        return replica

    def on_forward(self, event: Receive) -> None:
        message: Forward = event.message
        is_held = message.HasField("held")
        replica = self._attempt(event, message.held.group if is_held else message.cast.group, message.view)
        if replica is None or replica.attempt is None:
            return
        if is_held:
            check_held(message.held)
            if len(replica.attempt.held) >= FORWARDED_MAX:
                raise RemoteProtocolError("more open messages than a view leaves behind")
            replica.attempt.held[message.held.envelope.header.id] = message.held
            return
        if replica.attempt.is_late:
            return
        attempt = replica.attempt
        stamp = check_cast(message.cast, len(attempt.members))
        if message.cast.view != attempt.ends or not message.cast.whole:
            raise RemoteProtocolError("not a cast of the view that ends")
        if len(attempt.casts) >= FORWARDED_MAX:
            raise RemoteProtocolError("more casts than a view leaves behind")
        attempt.add(message.cast, stamp)

    def on_flush(self, event: Receive) -> None:
        message: Flush = event.message
        mine = self.machine.replicas.get(message.group)
        if mine is not None and mine.view >= message.view:
            if mine.last_cut is not None and mine.last_cut.view == message.view:
                self._say_cut(mine, mine.last_cut, event.source)
            return
        replica = self._attempt(event, message.group, message.view)
        if replica is None or replica.attempt is None:
            return
        attempt = replica.attempt
        if attempt.is_late:
            return
        is_contributor = event.source in attempt.contributors
        if not message.behind:
            if not is_contributor:
                raise RemoteProtocolError(f"{event.source} has nothing to contribute")
            era = replica.ending if self.contributes(replica) else None
            check_contribution(message, attempt.ends, len(attempt.members), attempt.casts, era)
        if is_contributor:
            attempt.flushes[event.source] = message
        if attempt.ending is not None and (message.behind or self._is_coordinator(replica)):
            self._tell_cut(replica, [event.source])
        self.compute(replica)

    def _is_coordinator(self, replica: "Replica") -> bool:
        attempt = replica.attempt
        return (
            attempt is not None
            and self.machine.settings.flush == FlushKind.COORDINATOR
            and attempt.coordinator == self.machine.process
        )

    def compute(self, replica: "Replica") -> None:
        """All have contributed: this is how the view ends."""
        attempt = replica.attempt
        if attempt is None or attempt.ending is not None or not attempt.is_heard:
            return
        computes = self.machine.settings.flush == FlushKind.ALL or self._is_coordinator(replica)
        contributions = attempt.contributions()
        if not computes or not contributions:
            return
        said = {name: flush for name, flush in attempt.flushes.items() if not flush.behind}
        # What we said ourselves may be confirmed by now, and forgotten: nobody would tell us of it again.
        by_others = [flush for name, flush in said.items() if name != self.machine.process]
        if any(key not in attempt.casts for key in cut.needed(contributions)) or self._lacks(attempt, by_others):
            return  # It comes again, behind a new connection.
        attempt.ending = cut.compute(
            contributions,
            replica.name,
            attempt.ends,
            lambda key: attempt.times[key],
            lambda key: attempt.casts[key].epoch,
        )
        attempt.confirmed = [flush.confirmed for flush in said.values()]
        self._take_over(replica)
        if self._is_coordinator(replica):
            concerned = (*replica.group.replicas, *replica.group.leaving)
            self._tell_cut(replica, [name for name in concerned if name != self.machine.process])
        self._accept(replica, attempt.ending)

    def _lacks(self, attempt: Attempt, said: Iterable[Flush | Cut]) -> bool:
        """Of what is open somewhere: neither told, nor known here."""
        known = self.machine.parts.is_known
        return any(id_ not in attempt.held and not known(id_) for message in said for id_ in message.open)

    def _take_over(self, replica: "Replica") -> None:
        """To the disk with the cut: what is open in the log that it ends, and where the other parts are."""
        attempt = replica.attempt
        assert attempt is not None
        for held in attempt.held.values():
            self.machine.parts.hold(held)
        for confirmed in attempt.confirmed:
            self.machine.confirmed.hear(replica.name, confirmed)
        attempt.held, attempt.confirmed = {}, []

    def _say_cut(self, replica: "Replica", record: CutRecord, to: str) -> None:
        message = cut_message(replica.name, record)
        self._say_parts(replica, record.view, message, [to])
        self.machine.out.append(Send((to,), message))

    def _tell_cut(self, replica: "Replica", to: Iterable[str]) -> None:
        attempt = replica.attempt
        assert attempt is not None and attempt.ending is not None
        record = self._record(attempt, attempt.ending)
        for name in to:
            flush = attempt.flushes.get(name)
            received = list(flush.received) if flush is not None and not flush.behind else None
            lacking = [k for k in attempt.ending.keys if received is None or k[1] > received[k[0]]]
            self.forward(attempt.view, (attempt.casts[k] for k in lacking if k in attempt.casts), [name])
            self._say_cut(replica, record, name)

    def on_cut(self, event: Receive) -> None:
        message: Cut = event.message
        replica = self._attempt(event, message.group, message.view)
        if replica is None or replica.attempt is None:
            return
        attempt = replica.attempt
        if message.ends >= message.view or (not attempt.is_late and message.ends != attempt.ends):
            raise RemoteProtocolError("not an end of that view")
        check_cut(message, MEMBERS_MAX if attempt.is_late else len(attempt.members))
        era = replica.ending if replica.view == message.ends else None
        if era is not None:
            check_cut_of_mine(message, era, replica.position)
        if event.source not in (*replica.group.replicas, *replica.group.leaving):
            self.machine.stale(event)
            return
        if self._lacks(attempt, [message]):
            return  # What is open comes again with the cut, behind a new connection.
        ending = Ending(message.first_position, [key_of(key) for key in message.keys], message.epoch)
        if attempt.ending is not None and (attempt.ending == ending or not replica.lacks_of_cut()):
            return
        if attempt.ending is not None:
            # Not all of its casts are here. A view has one end, so one of the two is a mistake: and whoever waits
            # for casts that nobody has waits for ever.
            self.machine.changes += replica.forget_cut(keeping=era)
        attempt.ends = message.ends
        attempt.confirmed = [message.confirmed]
        self._take_over(replica)
        attempt.ending = ending
        self._accept(replica, attempt.ending)

    # ----------------------------------------------------------------------------------------- the cut

    def _record(self, attempt: Attempt, ending: Ending) -> CutRecord:
        return CutRecord(
            view=attempt.view,
            ends=attempt.ends,
            first_position=ending.first_position,
            keys=[message_of(key) for key in ending.keys],
            epoch=ending.epoch,
        )

    def _accept(self, replica: "Replica", ending: Ending) -> None:
        """To the disk with it. A member that is behind copies the log up to it first, or beyond it later."""
        machine, attempt = self.machine, replica.attempt
        assert attempt is not None
        replica.cut = self._record(attempt, ending)
        replica.cut_casts = {key: attempt.casts[key] for key in ending.keys if key in attempt.casts}
        era = replica.ending if self.contributes(replica) else None
        changes: list[Record] = []
        for key, cast in replica.cut_casts.items():
            if era is None or key not in era.casts:
                changes.append((records.cast(replica.name, attempt.ends, key), cast.SerializeToString()))
        if era is not None and replica.is_concerned:
            machine.log.append_to(replica, era, ending.first_position)
        machine.changes += changes
        machine.changes.append((records.cut(replica.name), replica.cut.SerializeToString()))
        self.report(replica)
        machine.copying.look(replica)

    def report(self, replica: "Replica") -> None:
        """Once all of it is on disk, the log before it included: for membership."""
        cut_ = replica.cut
        if cut_ is None or replica.has_synced_cut or replica.lacks_of_cut():
            return
        if replica.position >= cut_.first_position and replica.copied is None:
            synced = CutSynced(group=replica.name, view=cut_.view)
            self.machine.then.append(Send((self.machine.process,), synced))

    def on_synced(self, event: Receive) -> None:
        message: CutSynced = event.message
        if event.source != self.machine.process:
            raise RemoteProtocolError("what is on our disk, nobody else knows")
        replica = self.machine.replicas.get(message.group)
        if replica is not None and replica.cut is not None and replica.cut.view == message.view:
            replica.has_synced_cut = True

    # -------------------------------------------------------------------------------------- completion

    def is_ready(self, replica: "Replica", view: int) -> bool:
        """It has all that is before the view: as a log, or as a log and a cut."""
        cut_ = replica.cut
        if cut_ is None or cut_.view != view or replica.copied is not None:
            return False
        if replica.position >= cut_.first_position + len(cut_.keys):
            return True
        return replica.position >= cut_.first_position and not replica.lacks_of_cut()

    def complete(self, replica: "Replica", view: int, members: tuple[str, ...]) -> None:
        """Membership has recorded it: the cut is the end of the log before, and the view is there to act in."""
        machine, cut_ = self.machine, replica.cut
        assert cut_ is not None and self.is_ready(replica, view)
        keys = [key_of(key) for key in cut_.keys]
        era = replica.ending if replica.view == cut_.ends else None
        for index, key in enumerate(keys):
            # Who is out of the group has no log any more, and only delivers the rest.
            if cut_.first_position + index == replica.position and machine.process in members:
                machine.log.append(replica, replica.cut_casts[key], reports=True)
        if era is not None and self._has_all(replica, era, keys):
            self._close(era, replica, cut_.first_position, keys)
        else:
            self._begin_anew(replica, era)
        self._adopt(replica, view, members)

    def _has_all(self, replica: "Replica", era: Era, keys: list[Key]) -> bool:
        """All that is left of the view can be delivered. What was copied as a learner is in the log alone."""
        return all(key in era.casts or era.is_delivered(key) or key in replica.cut_casts for key in keys)

    def _begin_anew(self, replica: "Replica", era: Era | None) -> None:
        """A view was missed, or its end: what it had is in the log, and to the next one we come as if new."""
        machine = self.machine
        if era is not None:
            machine.changes += replica.forget_era(era)
            replica.saved = None
        if replica.eras:
            machine.views.out_of(replica)
            machine.left_out_of(replica.name)

    def _close(self, era: Era, replica: "Replica", first: int, keys: list[Key]) -> None:
        """All that this view will ever deliver is here; orphans are not among it."""
        machine = self.machine
        machine.changes += replica.forget_era(era)
        era.is_closed = True
        era.places = {place: key for place, key in era.places.items() if place < first}
        counts = list(era.settled_counts)
        for key in era.places.values():
            counts[key[0]] = max(counts[key[0]], key[1])
        for index, key in enumerate(keys):
            era.places[first + index] = key
            counts[key[0]] = max(counts[key[0]], key[1])
            if key not in era.casts and not era.is_delivered(key):
                cast = replica.cut_casts[key]
                era.keep(key, cast, times.stamp_from(cast))
        era.place_of = {key: place for place, key in era.places.items()}
        era.passed, era.ordered = min(era.passed, first), first + len(keys)
        era.received = counts
        orphans = [key for key in era.casts if key[1] > counts[key[0]]]
        for key in orphans:
            era.lose(key)
            machine.parts.lost(replica.name, era.view, key)
        if any(key[0] == era.me for key in orphans):
            # A client read something before it was safe, and answered through us; then that was lost. What came
            # behind the answer must not overtake it when it comes again.
            machine.left_out_of(replica.name)

    def _adopt(self, replica: "Replica", view: int, members: tuple[str, ...]) -> None:
        """The log is whole up to the view: act in it, if this life is a member of it."""
        machine, attempt = self.machine, replica.attempt
        # Without an attempt the cut was on disk, and the life that put it there is over.
        lives = attempt.lives if attempt is not None and attempt.view == view else {}
        replica.last_cut = replica.cut
        machine.changes += replica.forget_cut(keeping=None)
        if replica.saved is not None:
            machine.changes += replica.forget_era(replica.saved)
        replica.attempt = None
        replica.start(view, members, lives, machine.incarnation)
        machine.changes.append(replica.position_record())
        machine.epochs.entered(replica)
        machine.replay_early(replica.name, view)
        machine.receiving.entered(replica)
        machine.touched[replica.name] = None


def cut_message(group: str, record: CutRecord) -> Cut:
    return Cut(
        group=group,
        view=record.view,
        ends=record.ends,
        first_position=record.first_position,
        keys=record.keys,
        epoch=record.epoch,
    )
