"""Cells and groups: what protocols order among, and the logs that live there.

A cell is a set of replicas; papers call it a group. A group is a named log that lives in one cell. Machines know
a group by its *address*: `cell/group`, or just the cell's name if the group has a cell to itself. So nobody has to
be told where a group lives. A message to some groups is ordered among their cells.

An envelope goes to cells, and its messages may be for different groups of them. Then its header has *targets*, and
each range of a producer's messages has *runs*: so many messages one after the other for the same target. Where a
message is in a group's log follows from the envelope, from what became of its ranges, and from where each group's
log ended before: `Tally` counts it, for replicas, gateways and readers alike.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
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
#: Envelopes whose targets are.
ENVELOPES_REMEMBERED = 256


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


def told_as(cells: Names, groups: Names) -> Names:
    """How requests and replies say by which cells they are numbered; nothing if these are simply the groups."""
    return cells if cells != groups else ()


@lru_cache(SETS_REMEMBERED)
def told_cells(groups: Names) -> Names:
    """The same for groups that are named by their addresses."""
    return told_as(cells_of(groups), groups)


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


def targets_of(header: Header) -> Sequence[Names]:
    """
    >>> header = Header(groups=["a", "b", "c"], targets=[1, 2, 2, 0, 1])
    >>> targets_of(header)
    (('c',), ('a', 'b'))
    """
    return _targets_of(tuple(header.targets), tuple(header.groups))


@lru_cache(ENVELOPES_REMEMBERED)
def _targets_of(told: tuple[int, ...], groups: Names) -> tuple[Names, ...]:
    return tuple([tuple([groups[place] for place in target]) for target in places_of(told, len(groups))])


@lru_cache(SETS_REMEMBERED)
def is_target(groups: Names, cells: Names) -> bool:
    """Whether it is a sorted set of groups, some in each of these cells."""
    is_sorted = all(earlier < later for earlier, later in pairwise(groups))
    return is_sorted and len(groups) <= TARGET_GROUPS_MAX and cells_of(groups) == cells


def places_of(told: Iterable[int], groups: int) -> Sequence[tuple[int, ...]]:
    """The same as places in so many groups: as many machines of a process read it, it is read once.

    >>> places_of([1, 2, 2, 0, 1], 3)
    ((2,), (0, 1))
    """
    return _places_of(tuple(told), groups)


@lru_cache(ENVELOPES_REMEMBERED)
def _places_of(told: tuple[int, ...], groups: int) -> tuple[tuple[int, ...], ...]:
    targets = []
    at = 0
    while at < len(told):
        end = at + 1 + told[at]
        targets.append(told[at + 1 : end])
        at = end
    if at > len(told):
        raise RemoteProtocolError("the last target is cut short")
    if max([max(target) for target in targets if target], default=-1) >= groups:
        raise RemoteProtocolError("a target has a group that is not named")
    return tuple(targets)


def groups_within(cell: str, header: Header) -> Names:
    """The groups of the cell that messages of the envelope are for. `LogEntry.bases` is in their order."""
    return within(cell, tuple(header.groups))


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
    cells = tuple([destination.group for destination in header.destinations])
    groups = tuple(header.groups)
    if any(later <= earlier for earlier, later in pairwise(groups)):
        raise RemoteProtocolError("an envelope names the groups of its targets, sorted, and no others")
    targets = targets_of(header)
    if not all(is_target(target, cells) for target in targets):
        raise RemoteProtocolError("a target is a sorted set of groups, some in each destination cell")
    if len(set(targets)) < len(targets):
        raise RemoteProtocolError("an envelope names a target twice")
    if len(set(chain.from_iterable(targets))) < len(groups):
        raise RemoteProtocolError("an envelope names the groups of its targets, sorted, and no others")
    for range_ in header.ranges:
        runs = range_.runs
        if bool(runs) != bool(targets and range_.count):
            raise RemoteProtocolError("ranges have runs if, and only if, there are targets")
        if runs and (len(runs) % 2 or sum(runs[1::2]) != range_.count or not all(runs[1::2])):
            raise RemoteProtocolError("the runs of a range have as many messages as the range")
        if runs and max(runs[::2]) >= len(targets):
            raise RemoteProtocolError("a run for a target that is not there")


class Runs(NamedTuple):
    """Messages of a range, one after the other, and where they are in the logs of a cell's groups."""

    #: Of each run: how many messages, for which target, and how many of its groups live in the cell.
    counts: Sequence[int]
    targets: Sequence[int]
    sizes: Sequence[int]
    #: Of the first message of each run, in each of these groups; one run after the other.
    offsets: Sequence[int]


@dataclass(slots=True)
class Tally:
    """Counts the messages of one envelope into the logs of a cell's groups."""

    #: Those that it has messages for, and the offset that is given next in each.
    groups: Names
    ends: list[int]
    #: By target: the places of its groups among these.
    local: list[tuple[int, ...]]

    @classmethod
    def of(cls, cell: str, header: Header, bases: Sequence[int]) -> "Tally":
        """`bases`: as in LogEntry. Refuses another number of them."""
        groups = checked_groups(cell, header, bases)
        targets = places_of(header.targets, len(header.groups))
        if len(groups) == len(header.groups):
            return cls(groups, list(bases), list(targets))
        places = {group: place for place, group in enumerate(groups)}
        here = [places.get(group) for group in header.groups]
        local = [tuple([at for p in target if (at := here[p]) is not None]) for target in targets]
        return cls(groups, list(bases), local)

    def take(self, range_: ProducerRange, first: int, end: int) -> Runs:
        """These sequences of the range come next in their groups' logs."""
        runs = range_.runs
        counts, targets = runs[1::2], runs[::2]
        if first != range_.first_sequence or end != first + range_.count:
            parts = list(parts_of(range_, first, end))
            counts, targets = [count for _, count, _ in parts], [target for _, _, target in parts]
        ends, local = self.ends, self.local
        offsets = []
        for target, count in zip(targets, counts, strict=True):
            for place in local[target]:
                offset = ends[place]
                offsets.append(offset)
                ends[place] = offset + count
        return Runs(counts, targets, [len(local[target]) for target in targets], offsets)


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
            taken = tally.take(range_, first, end)
            at = 0
            for count, target, size in zip(taken.counts, taken.targets, taken.sizes, strict=True):
                offsets = tuple(taken.offsets[at : at + size])
                found.append(Placed(first, count, target, offsets, span.order_key, False))
                first, at = first + count, at + size
            continue
        for sequence, count, target in parts_of(range_, first, end):
            known = _offsets_from(span.offsets, sequence - first, len(tally.local[target]))
            found.append(Placed(sequence, count, target, known, span.order_key, True))
    return found


def _offsets_from(offsets: Sequence[int], ahead: int, count: int) -> tuple[int, ...] | None:
    return tuple(offset + ahead for offset in offsets) if len(offsets) == count else None
