"""Vector time over many groups [BSS91 4.3, 6.1], and how little of it travels [5.4, 6.3].

A time is a view number and a count for each member that has cast in that view, by the member's place in it. A
later view's time covers every time of an earlier one: what the earlier view delivered, its flush delivered
everywhere.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX
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
        """[6.1 rule 2.3'] By what was delivered in that view, member by member. Of a newer view: not yet."""
        if self.view != view:
            return self.view < view
        return all(count <= counts[member] for member, count in self.counts.items())


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

    def copy(self) -> "Stamp":
        return Stamp(copy_of(self.times), copy_of(self.carried))

    def merge(self, other: "Stamp") -> None:
        merge(self.times, other.times)
        merge(self.carried, other.carried)

    def all(self) -> Times:
        """Both: what must be delivered first."""
        if not self.carried:
            return self.times
        both = copy_of(self.times)
        merge(both, self.carried)
        return both


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
    return Stamp(decode(message.times), decode(message.carried))


def seen_from(stamp: Stamp, epoch: int) -> Seen:
    return Seen(times=encode(stamp.times), carried=encode(stamp.carried), epoch=epoch)


def merged(seen: Sequence[Seen]) -> Seen:
    """One for all that each of them stands for."""
    together = Stamp()
    for one in seen:
        together.merge(stamp_from(one))
    return seen_from(together, max((one.epoch for one in seen), default=0))
