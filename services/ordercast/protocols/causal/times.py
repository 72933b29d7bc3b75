"""Vector time over many groups [BSS91 4.3, 6.1], and how little of it travels [5.4, 6.3].

A time is a view number and a count for each member that has cast in that view, by the member's place in it. A
later view's time covers every time of an earlier one: what the earlier view delivered, its flush delivered
everywhere.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX
from ordercast.v1.causal_pb2 import GroupTime

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
