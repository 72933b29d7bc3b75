"""Cells and groups: what protocols order among, and the logs that live there.

A cell is a set of replicas; papers call it a group. A group is a named log that lives in one cell. Machines know
a group by its *address*: `cell/group`, or just the cell's name if the group has a cell to itself. So nobody has to
be told where a group lives. A message to some groups is ordered among their cells.

An envelope goes to cells, and its messages may be for different groups of them. Then its header has *targets*, and
each range of a producer's messages has *runs*: so many messages one after the other for the same target. Where a
message is in a group's log follows from the envelope, from what became of its ranges, and from where each group's
log ended before: `Tally` counts it, for replicas, gateways and readers alike.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from ordercast.core.errors import RemoteProtocolError
from ordercast.v1.common_pb2 import Header, ProducerRange, RangeOutcome

#: The addresses of groups, or the names of cells; sorted.
Names = tuple[str, ...]

SLASH = "/"
#: Groups that one message may be for, in all cells together.
TARGET_GROUPS_MAX = 255
#: Sets of groups whose cells are remembered.
SETS_REMEMBERED = 65_536


def cell_of(group: str) -> str:
    """
    >>> cell_of("c1/orders#17"), cell_of("orders#17")
    ('c1', 'orders#17')
    """
    return group.partition(SLASH)[0]


def shares_cell(group: str) -> bool:
    """Whether other groups may live where this one does."""
    return SLASH in group


@lru_cache(SETS_REMEMBERED)
def cells_of(groups: Names) -> Names:
    """
    >>> cells_of(("a/x", "a/y", "b"))
    ('a', 'b')
    """
    return tuple(sorted(dict.fromkeys(map(cell_of, groups))))


@lru_cache(SETS_REMEMBERED)
def told_cells(groups: Names) -> Names:
    """The cells by which messages to these groups are numbered; nothing if these are simply the groups."""
    cells = cells_of(groups)
    return cells if cells != groups else ()


@lru_cache(SETS_REMEMBERED)
def within(cell: str, groups: Names) -> Names:
    """Those that live in the cell."""
    return tuple(group for group in groups if cell_of(group) == cell)


def put_targets(header: Header, targets: Sequence[Names]) -> None:
    """Each group is named once, however many of the targets have it: names are long, and there may be hundreds."""
    header.groups[:] = sorted({group for target in targets for group in target})
    places = {group: place for place, group in enumerate(header.groups)}
    for target in targets:
        header.targets.append(len(target))
        header.targets.extend(places[group] for group in target)


def targets_of(header: Header) -> list[Names]:
    """
    >>> header = Header(groups=["a", "b", "c"], targets=[1, 2, 2, 0, 1])
    >>> targets_of(header)
    [('c',), ('a', 'b')]
    """
    groups, told = list(header.groups), list(header.targets)
    targets = []
    at = 0
    try:
        while at < len(told):
            end = at + 1 + told[at]
            targets.append(tuple([groups[place] for place in told[at + 1 : end]]))
            at = end
    except IndexError:
        raise RemoteProtocolError("a target has a group that the envelope does not name") from None
    if at > len(told):
        raise RemoteProtocolError("the last target is cut short")
    return targets


def groups_within(cell: str, header: Header) -> Names:
    """The groups of the cell that messages of the envelope are for. `LogEntry.bases` is in their order."""
    return tuple([group for group in header.groups if cell_of(group) == cell])


def checked_groups(cell: str, header: Header, bases: Sequence[int]) -> Names:
    """The same, if there is an offset for each of them."""
    groups = groups_within(cell, header)
    if len(bases) != len(groups):
        raise RemoteProtocolError("not as many offsets as the cell has groups in this envelope")
    return groups


def names_group(header: Header, address: str) -> bool:
    """Whether messages of the envelope may be for this group of a shared cell."""
    return address in header.groups


def runs_of(range_: ProducerRange) -> Iterator[tuple[int, int]]:
    """Of a range with runs: the index of a target, and how many messages are for it."""
    runs = list(range_.runs)
    return zip(runs[::2], runs[1::2], strict=True)


def parts_of(range_: ProducerRange, first: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Of these sequences of a range with runs: where each part for one target begins, how many, and the target."""
    at = range_.first_sequence
    for target, count in runs_of(range_):
        low, high = max(at, first), min(at + count, end)
        at += count
        if low < high:
            yield low, high - low, target


def check_targets(header: Header) -> None:
    """Refuse an envelope that does not say plainly, and once, for whom each of its messages is.

    Messages of one envelope are for the same cells: whatever it goes through as a whole is right for each of them.
    """
    cells = tuple(destination.group for destination in header.destinations)
    targets = targets_of(header)
    for groups in targets:
        if any(later <= earlier for earlier, later in pairwise(groups)) or cells_of(groups) != cells:
            raise RemoteProtocolError("a target is a sorted set of groups, some in each destination cell")
        if len(groups) > TARGET_GROUPS_MAX:
            raise RemoteProtocolError(f"a target has at most {TARGET_GROUPS_MAX} groups")
    if len(dict.fromkeys(targets)) < len(targets):
        raise RemoteProtocolError("an envelope names a target twice")
    if list(header.groups) != sorted({group for groups in targets for group in groups}):
        raise RemoteProtocolError("an envelope names the groups of its targets, sorted, and no others")
    for range_ in header.ranges:
        runs = range_.runs
        if bool(runs) != bool(targets and range_.count):
            raise RemoteProtocolError("ranges have runs if, and only if, there are targets")
        if runs and (len(runs) % 2 or sum(runs[1::2]) != range_.count or not all(runs[1::2])):
            raise RemoteProtocolError("the runs of a range have as many messages as the range")
        if any(index >= len(targets) for index in runs[::2]):
            raise RemoteProtocolError("a run for a target that is not there")


class Run(NamedTuple):
    """Messages of a producer, one after the other, for the same groups, and where they are in those of a cell."""

    first_sequence: int
    messages: int
    target: int
    #: Of the first of them, in each group of the target that lives in the cell.
    offsets: tuple[int, ...]


@dataclass(slots=True)
class Tally:
    """Counts the messages of one envelope into the logs of a cell's groups."""

    #: By target: its groups in this cell.
    local: list[Names]
    #: By group: the offset that is given next.
    ends: dict[str, int]

    @classmethod
    def of(cls, cell: str, header: Header, bases: Sequence[int]) -> "Tally":
        """`bases`: as in LogEntry. Refuses another number of them."""
        groups = checked_groups(cell, header, bases)
        local = [within(cell, target) for target in targets_of(header)]
        return cls(local, dict(zip(groups, bases, strict=True)))

    def take(self, range_: ProducerRange, first: int, end: int) -> list[Run]:
        """These sequences of the range come next in their groups' logs."""
        taken = []
        for sequence, count, target in parts_of(range_, first, end):
            groups = self.local[target]
            taken.append(Run(sequence, count, target, tuple(self.ends[group] for group in groups)))
            for group in groups:
                self.ends[group] += count
        return taken


class Placed(NamedTuple):
    """Messages of one range, one after the other, for the same groups, and where they are in a cell's logs."""

    first_sequence: int
    messages: int
    target: int
    #: In each group of the target that lives in the cell; None if their place is no longer known.
    offsets: tuple[int, ...] | None
    order_key: bytes
    duplicate: bool


def placed(tally: Tally, range_: ProducerRange, outcome: RangeOutcome) -> list[Placed]:
    """Where the messages of a range are, given what became of it; the tally has counted the ranges before."""
    found: list[Placed] = []
    for span in outcome.spans:
        first, end = span.first_sequence, span.first_sequence + span.count
        if not span.duplicate:
            for run in tally.take(range_, first, end):
                found.append(Placed(*run, span.order_key, False))
            continue
        for sequence, count, target in parts_of(range_, first, end):
            offsets = _offsets_from(span.offsets, sequence - first, len(tally.local[target]))
            found.append(Placed(sequence, count, target, offsets, span.order_key, True))
    return found


def _offsets_from(offsets: Sequence[int], ahead: int, count: int) -> tuple[int, ...] | None:
    return tuple(offset + ahead for offset in offsets) if len(offsets) == count else None
