"""Several logs of a domain of virtually synchronous groups, as one stream in causal order. Without I/O.

[BSS91 7.1] Clients are no members of groups: whoever reads several of them applies rule 2' [6.1] itself. An entry
of a log says what it comes after, in its own group and in others, as vector times (core/causal.py). It is released
when all that it names in the other logs that are read here is released. Within its own group the log's order sees
to that.

Three things are not in the paper.

*Not all casts are shown.* Entries without a new message, such as repetitions, are casts as well, and others name
them; so is what lies before the place where reading began. Whether a cast was seen is therefore the wrong
question. It is done with if it lies in the part of its log that was received, and does not wait here. What a log
has received follows from what its entries name in their own group, since an entry never comes before what it
names.

*A view in which nothing was cast.* A time may be a bare view number: all from before that view. If the log shows
nothing of the view, or of a later one, its replicas know (`asks`, `told`): one that has installed the view has all
from before it in its log.

*The order within a log may have to give way.* Positions in a log without total order are given by one member, and
two members of two groups may give them so that the logs contradict each other: with logs [a1, a2] and [b1, b2],
where a1 comes after b2 and b1 after a2, no order of all four keeps both. Members do not mind, as they deliver by
causality alone. Here, too, causality is kept always, and a log's order unless all that the waiting entries wait
for is here and cannot come out in any other way. Casts with a total order are never passed: in their logs that
does not happen.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ordercast.client.errors import Internal, ResourceExhausted
from ordercast.core.causal import CastPlace

#: What may wait of one group, in entries and their bytes. One entry may go beyond.
WAITING_ENTRIES_MAX = 1024
WAITING_BYTES_MAX = 8 << 20

T = TypeVar("T")


@dataclass(slots=True)
class Time:
    """Of one group: all from before the view, and in it so many casts of each member, by its place."""

    view: int = 0
    counts: dict[int, int] = field(default_factory=dict)

    def merge(self, view: int, counts: Mapping[int, int]) -> None:
        """A later view covers all of an earlier one."""
        if view > self.view:
            self.view, self.counts = view, dict(counts)
        elif view == self.view:
            for member, count in counts.items():
                self.counts[member] = max(count, self.counts.get(member, 0))

    def covers(self, other: "Time") -> bool:
        if self.view != other.view:
            return self.view > other.view
        return all(count <= self.counts.get(member, 0) for member, count in other.counts.items())


@dataclass(slots=True, eq=False)
class _Waiting(Generic[T]):
    """An entry that is received and not released."""

    item: T
    log: "_Log[T]"
    #: They are counted over all groups, in the order in which they came.
    arrival: int
    offset: int
    size: int
    view: int
    member: int
    number: int
    is_total: bool
    #: What it comes after in its own view of its own group, and in each other group that is read.
    own: Mapping[int, int]
    past: list[tuple["_Log[T]", Time]]

    def is_named(self, time: Time) -> bool:
        """By a time of its own group."""
        if self.view != time.view:
            return self.view < time.view
        return self.number <= time.counts.get(self.member, 0)

    def precedes(self, other: "_Waiting[T]") -> bool:
        """Of two entries of one log, the first of which is this one: whether that is more than chance."""
        if self.view != other.view or self.member == other.member:
            return True
        return self.is_total or other.is_total or self.number <= other.own.get(self.member, 0)


@dataclass(slots=True, eq=False)
class _Log(Generic[T]):
    id: str
    #: Entries that wait, as the log has them.
    queue: list[_Waiting[T]] = field(default_factory=list)
    bytes: int = 0
    #: The same, by view and caster: their numbers, rising.
    numbers: dict[tuple[int, int], deque[int]] = field(default_factory=dict)
    #: Where the next entry begins that comes; and what lies before that for certain.
    end: int = 0
    received: Time = field(default_factory=Time)
    #: (time, offset): all that the time names lies before the offset, which is not reached.
    told: list[tuple[Time, int]] = field(default_factory=list)
    #: How often something changed that others may wait for; and what the first entry waits for, with that number.
    changes: int = 0
    blocked: "tuple[_Log[T], int] | None" = None

    @property
    def has_room(self) -> bool:
        return len(self.queue) < WAITING_ENTRIES_MAX and self.bytes < WAITING_BYTES_MAX

    def reach(self, end: int) -> None:
        self.end = max(self.end, end)
        for time, offset in self.told:
            if offset <= self.end:
                self.received.merge(time.view, time.counts)
        self.told = [(time, offset) for time, offset in self.told if offset > self.end]
        self.changes += 1

    def append(self, waiting: _Waiting[T]) -> None:
        self.queue.append(waiting)
        self.bytes += waiting.size
        self.numbers.setdefault((waiting.view, waiting.member), deque()).append(waiting.number)

    def remove(self, waiting: _Waiting[T]) -> None:
        """The first, or one that passes others; but none passes an earlier one of its own caster."""
        self.queue.remove(waiting)
        self.bytes -= waiting.size
        caster = (waiting.view, waiting.member)
        self.numbers[caster].popleft()
        if not self.numbers[caster]:
            del self.numbers[caster]
        self.changes += 1
        self.blocked = None

    def holds_up(self, time: Time) -> bool:
        """Whether something that the time names is not released."""
        if not self.received.covers(time):
            return True
        # A log is in the order of its views.
        if self.queue and self.queue[0].view < time.view:
            return True
        for member, count in time.counts.items():
            numbers = self.numbers.get((time.view, member))
            if numbers is not None and numbers[0] <= count:
                return True
        return False


class CausalMerge(Generic[T]):
    def __init__(self, ids: Mapping[str, str]) -> None:
        """The groups that are read, by name: their ids, by which stamps name them."""
        self._logs: dict[str, _Log[T]] = {name: _Log(id_) for name, id_ in ids.items()}
        self._by_id = {log.id: log for log in self._logs.values()}
        self._arrivals = 0
        #: What was missing when nothing could be released: for each group's first entry what was found first.
        self._missing: list[tuple[_Log[T], Time]] = []

    # ------------------------------------------------------------------------------------------ what comes

    def begin(self, group: str, offset: int) -> None:
        """Reading begins here. What lies before counts as released."""
        self._logs[group].reach(offset)

    def has_room(self, group: str) -> bool:
        """Whether another entry should be read."""
        return self._logs[group].has_room

    def add(self, group: str, place: CastPlace, item: T, *, offset: int, end: int, size: int) -> None:
        """The next entry of a log that has something for the consumer: from the offset on, up to the end."""
        log = self._logs[group]
        own, past = self._read(log, place)
        self._arrivals += 1
        waiting = _Waiting(
            item=item,
            log=log,
            arrival=self._arrivals,
            offset=offset,
            size=size,
            view=place.view,
            member=place.member,
            number=place.number,
            is_total=place.is_total,
            own=own,
            past=past,
        )
        log.append(waiting)
        self._receive(log, place, own, end)

    def pass_over(self, group: str, place: CastPlace, *, end: int) -> None:
        """An entry from before the place where the consumer begins: only what it tells of the log counts."""
        log = self._logs[group]
        self._receive(log, place, self._read(log, place)[0], end)

    def _receive(self, log: _Log[T], place: CastPlace, own: Mapping[int, int], end: int) -> None:
        """What precedes an entry in its own group is before it in the log."""
        log.received.merge(place.view, own)
        log.received.merge(place.view, {place.member: place.number})
        log.reach(end)

    def _read(self, log: _Log[T], place: CastPlace) -> tuple[Mapping[int, int], list[tuple[_Log[T], Time]]]:
        """What an entry says of the entry's own group, and of the others that are read."""
        if not place.view or log.received.covers(Time(place.view, {place.member: place.number})):
            raise Internal(f"an entry in the log of {log.id!r} contradicts what came before it")
        own: dict[int, int] = {}
        past: dict[str, Time] = {}
        for time in place.past:
            if time.group == log.id:
                if time.view == place.view:
                    own |= {member: max(count, own.get(member, 0)) for member, count in time.counts.items()}
            elif time.group in self._by_id:
                past.setdefault(time.group, Time()).merge(time.view, time.counts)
        return own, [(self._by_id[id_], time) for id_, time in past.items()]

    # ------------------------------------------------------------------------------------------- what goes

    def next(self) -> T | None:
        """The item of the next entry that may be released, of those the one that came first; None while none may.

        `ResourceExhausted` if that can not change any more within the bounds.
        """
        found: _Log[T] | None = None
        for log in self._logs.values():
            if log.queue and (found is None or log.queue[0].arrival < found.queue[0].arrival):
                found = log if self._is_free(log) else found
        self._missing = []
        if found is not None:
            return self._release(found.queue[0])
        for log in self._logs.values():
            passing = self._passing(log.queue[0]) if log.queue else None
            if passing is not None:
                return self._release(passing)
        return None

    def _is_free(self, log: _Log[T]) -> bool:
        """Whether its first entry may be released. It is looked at again when what held it up has changed."""
        if log.blocked is not None and log.blocked[1] == log.blocked[0].changes:
            return False
        log.blocked = None
        for other, time in log.queue[0].past:
            if other.holds_up(time):
                log.blocked = (other, other.changes)
                return False
        return True

    def _release(self, waiting: _Waiting[T]) -> T:
        waiting.log.remove(waiting)
        return waiting.item

    # ------------------------------------------------------------------------ when logs contradict each other

    def _passing(self, first: _Waiting[T]) -> _Waiting[T] | None:
        """All first entries are held up. If this one waits for nothing that can still come: an entry, of those it
        waits for, that goes before the first of its own log, as causality allows.
        """
        past = self._waited_for(first)
        if past is None:
            return None
        for waiting in past:
            ahead = waiting.log.queue[: waiting.log.queue.index(waiting)]
            if any(other.precedes(waiting) for other in ahead):
                continue
            if not any(log.holds_up(time) for log, time in waiting.past):
                return waiting
        raise ResourceExhausted(
            f"more than {WAITING_ENTRIES_MAX} entries or {WAITING_BYTES_MAX} bytes of a group would have to wait"
        )

    def _waited_for(self, first: _Waiting[T]) -> list[_Waiting[T]] | None:
        """Whatever has to come out before it, by causality or by the order of a log.

        None if not all of it is here, and some of it can still come.
        """
        if self._is_incomplete(first):
            return None
        found: dict[int, _Waiting[T]] = {}
        pending = [first]
        while pending:
            waiting = pending.pop()
            if waiting.arrival in found:
                continue
            if self._lacks(waiting):
                return None
            found[waiting.arrival] = waiting
            for log, time in waiting.past:
                # What is not here comes behind all that is, once there is room.
                is_here = log.received.covers(time)
                pending += [other for other in log.queue if not is_here or other.is_named(time)]
            queue = waiting.log.queue
            pending += queue[: queue.index(waiting)]
        return [found[arrival] for arrival in sorted(found)]

    def _is_incomplete(self, first: _Waiting[T]) -> bool:
        """The same question, of the first entries alone, which answer it most often: one stream is late."""
        found: dict[str, None] = {}
        pending = [first]
        while pending:
            waiting = pending.pop()
            if self._lacks(waiting):
                return True
            found[waiting.log.id] = None
            held_up = [log for log, time in waiting.past if log.queue and log.holds_up(time)]
            pending += [log.queue[0] for log in held_up if log.id not in found]
        return False

    def _lacks(self, waiting: _Waiting[T]) -> bool:
        """It waits for something that is not here, and may come."""
        for log, time in waiting.past:
            if log.has_room and not log.received.covers(time):
                self._missing.append((log, time))
                return True
        return False

    # ------------------------------------------------------------------------------------------ what is known

    def asks(self) -> list[str]:
        """Groups of which something is waited for that their logs have not shown, and may never show."""
        found = [
            log.id
            for log, time in self._missing
            if not log.received.covers(time) and not any(told.covers(time) for told, _ in log.told)
        ]
        return [name for name, log in self._logs.items() if log.id in found]

    def told(self, group: str, time: Time, offset: int) -> None:
        """By a replica: all that the time names lies before the offset."""
        log = self._logs[group]
        if not log.received.covers(time):
            log.told = [one for one in log.told if not time.covers(one[0]) or one[1] < offset]
            log.told.append((time, offset))
            log.reach(log.end)

    @property
    def waiting(self) -> dict[str, int]:
        """By group: entries that are here and held up, or not asked for yet."""
        return {name: len(log.queue) for name, log in self._logs.items()}

    @property
    def offsets(self) -> dict[str, int]:
        """By group: all before it is released."""
        return {
            name: min((waiting.offset for waiting in log.queue), default=log.end)
            for name, log in self._logs.items()
        }
