"""Vector time over many groups [BSS91 4.3, 6.1], and how little of it travels [5.4, 6.3].

A time is a view number and a count for each member that has cast in that view, by the member's place in it. A
later view's time covers every time of an earlier one: what the earlier view delivered, its flush delivered
everywhere.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX
from ordercast.core.view import View
from ordercast.v1.isis_pb2 import Cast, CastStamp, GroupTime, Seen

#: A view has no more members than this: places beyond it are no work of ours.
MEMBERS_MAX = 1024


@dataclass(slots=True)
class Time:
    view: int = 0
    counts: dict[int, int] = field(default_factory=dict)

    def copy(self) -> "Time":
        return Time(self.view, dict(self.counts))

    def merge(self, view: int, counts: dict[int, int]) -> None:
        if view < self.view:
            return
        if view > self.view:
            self.view, self.counts = view, dict(counts)
            return
        mine = self.counts
        for member, count in counts.items():
            if count > mine.get(member, 0):
                mine[member] = count

    def is_covered(self, view: int, counts: Sequence[int]) -> bool:
        """[6.1 rule 2.3'] By what was delivered in that view, member by member. Of a newer view: not yet.

        Places beyond its members are nobody's: nothing was cast there, and nothing is waited for.
        """
        if self.view != view:
            return self.view < view
        return all(m >= len(counts) or count <= counts[m] for m, count in self.counts.items())

    def covers(self, other: "Time") -> bool:
        """All that the other names is named by this one, or is from before this one's view."""
        if self.view != other.view:
            return self.view > other.view
        return all(count <= self.counts.get(member, 0) for member, count in other.counts.items())


#: By group. A group that is not in it has nothing.
Times = dict[str, Time]


def copy_of(times: Times) -> Times:
    return {group: time.copy() for group, time in times.items()}


def merge(times: Times, other: Times) -> None:
    for group, time in other.items():
        merge_one(times, group, time.view, time.counts)


def merge_one(times: Times, group: str, view: int, counts: dict[int, int]) -> None:
    mine = times.get(group)
    if mine is None:
        mine = times[group] = Time()
    mine.merge(view, counts)


@dataclass(slots=True)
class Stamp:
    """What precedes a cast: what its sender sent and delivered, and what others told it of."""

    times: Times = field(default_factory=dict)
    carried: Times = field(default_factory=dict)
    #: Of a client's token, and of nothing else: groups of whose messages to several groups, up to that time, some
    #: may not be cast everywhere; and groups of which all of those are, and the times name all their casts.
    open: dict[str, None] = field(default_factory=dict)
    confirmed: dict[str, None] = field(default_factory=dict)

    def copy(self) -> "Stamp":
        return Stamp(copy_of(self.times), copy_of(self.carried), dict(self.open), dict(self.confirmed))

    def merge(self, other: "Stamp") -> None:
        if self.open or self.confirmed or other.open or other.confirmed:
            self._merge_marks(other)
        merge(self.times, other.times)
        merge(self.carried, other.carried)

    def _merge_marks(self, other: "Stamp") -> None:
        names = sorted({**self.open, **self.confirmed, **other.open, **other.confirmed})
        pairs = ((self, other), (other, self))
        open_ = [
            name for name in names if any(name in one.open and not two.settles(name, one) for one, two in pairs)
        ]
        confirmed = [
            name
            for name in names
            if name not in open_ and any(one._confirms_for_both(name, two) for one, two in pairs)
        ]
        self.open, self.confirmed = dict.fromkeys(open_), dict.fromkeys(confirmed)

    def settles(self, group: str, other: "Stamp") -> bool:
        """What is open in the other one is confirmed in this one.

        A time that covers it is not enough, for a stamp names casts of a group whose predecessors nobody joined:
        those of a confirmation. m is for b and d, and open in d; n is for a and d, behind m in d, and confirmed.
        Whoever reads n in a hears of its cast in d, which covers m's, and nothing of where m is in b.
        """
        mine, theirs = self.times.get(group, Time()), other.times.get(group, Time())
        return group in self.confirmed and mine.covers(theirs)

    def _confirms_for_both(self, group: str, other: "Stamp") -> bool:
        if group not in self.confirmed:
            return False
        mine, theirs = self.times.get(group, Time()), other.times.get(group, Time())
        return group in other.confirmed or mine.covers(theirs)

    def all(self) -> Times:
        """Both: what must be delivered first."""
        if not self.carried:
            return self.times
        both = copy_of(self.times)
        merge(both, self.carried)
        return both


def collect(known: Times, view: View) -> None:
    """[6.4] Not by age, for a clock is no argument. What a later view covers shrinks to that view's number, and is
    dropped when all of its members have installed it.
    """
    for name in list(known):
        group = view.groups.get(name)
        if group is None:
            del known[name]
            continue
        completed = group.former.number if group.former is not None else group.configuration
        if known[name].view < completed:
            known[name] = Time(completed, {})
        time = known[name]
        if not time.counts and group.former is None and not group.starting and time.view <= completed:
            del known[name]


# ---------------------------------------------------------------------------------------------- on the wire


def encode(times: Times, known: Times | None = None) -> list[GroupTime]:
    """[5.4, 6.3] What the receiver does not know yet: fields that changed since `known`; all of it without."""
    result: list[GroupTime] = []
    for group in sorted(times):
        time = times[group]
        before = known.get(group) if known is not None else None
        counts = time.counts
        if before is not None and before.view == time.view:
            counts = {m: c for m, c in counts.items() if before.counts.get(m, 0) != c}
            if not counts:
                continue
        members = sorted(counts)
        result.append(GroupTime(group=group, view=time.view, members=members, counts=[counts[m] for m in members]))
    return result


def decode(messages: Iterable[GroupTime]) -> Times:
    result: Times = {}
    last = ""
    for message in messages:
        if message.group <= last:
            raise RemoteProtocolError("times must be sorted by group, each group once")
        last = message.group
        if len(message.members) != len(message.counts) or message.view > CLOCK_MAX:
            raise RemoteProtocolError("not a vector time")
        counts = dict(zip(message.members, message.counts, strict=True))
        if any(m >= MEMBERS_MAX for m in counts) or any(not 0 < c <= CLOCK_MAX for c in counts.values()):
            raise RemoteProtocolError("not a vector time")
        result[message.group] = Time(message.view, counts)
    return result


def stamp_from(message: Cast | CastStamp | Seen) -> Stamp:
    stamp = Stamp(decode(message.times), decode(message.carried))
    if isinstance(message, Seen) and (message.open or message.confirmed):
        stamp.open = dict.fromkeys(sorted(message.open))
        stamp.confirmed = dict.fromkeys(sorted(set(message.confirmed).difference(message.open)))
    return stamp


def seen_from(stamp: Stamp, epoch: int) -> Seen:
    seen = Seen(times=encode(stamp.times), carried=encode(stamp.carried), epoch=epoch)
    if stamp.open or stamp.confirmed:
        seen.open.extend(sorted(stamp.open))
        seen.confirmed.extend(sorted(stamp.confirmed))
    return seen


def merged(seen: Sequence[Seen]) -> Seen:
    """One for all that each of them stands for."""
    together = Stamp()
    for one in seen:
        together.merge(stamp_from(one))
    return seen_from(together, max((one.epoch for one in seen), default=0))
