"""Where a new group lives: in a cell to itself, or in one that it shares with other groups of its domain.

Groups that share a cell cost next to nothing each, and share the fate of its replicas. All of it are functions of
the agreed state alone.
"""

from collections.abc import Iterable, Mapping

from ordercast.core.level import CELLS_LEVEL
from ordercast.core.members import places_of
from ordercast.core.quorums import has_majority
from ordercast.membership.changes import has_survivors
from ordercast.membership.placement import usable_nodes
from ordercast.membership.refusals import bad_argument, precondition
from ordercast.membership.settings import PLACED_MAX, REPLICAS_DEFAULT
from ordercast.v1.membership_pb2 import CreateGroup, Group, Node


def lives_apart(create: CreateGroup, level: int) -> bool:
    """Whether the group gets a cell to itself. In clusters with older software all do, whatever is asked for: that
    software does not know that anything else can be asked for, and would judge otherwise.
    """
    return level < CELLS_LEVEL or not (create.shared or create.beside or create.new_cell)


def check_one_place(create: CreateGroup) -> None:
    if sum((create.own_cell, bool(create.beside), create.shared, create.new_cell)) > 1:
        raise bad_argument(
            "a group has a cell to itself, lives beside another group, shares some cell, or a new one: one of them"
        )


def cells_wanted(nodes: int, replicas: int) -> int:
    """How many cells groups of one kind share, with so many nodes that can take replicas.

    As many as use all of them: on three nodes random sets of groups are six times as fast in one cell as across
    three (docs/performance.md). More cells than that only divide what could travel together.
    """
    return max(1, nodes // max(replicas, REPLICAS_DEFAULT))


class Choice:
    """Chooses one of a domain's cells for a group with these wishes. 0 `replicas`: any usual number."""

    def __init__(
        self,
        domain: str,
        replicas: int,
        settings: Mapping[str, str],
        nodes: Mapping[str, Node],
        cells: Iterable[Group],
        living: Mapping[str, int],
    ) -> None:
        self.nodes = nodes
        self.replicas = replicas
        #: As many as a group with a cell to itself would get, were all nodes well that are to stay.
        staying = [
            node for node in nodes.values() if "sequencer" in node.services and not (node.ended or node.draining)
        ]
        self.usual = replicas or min(REPLICAS_DEFAULT, len(staying))
        #: The one with the fewest groups first.
        self.fitting = sorted(
            (
                cell
                for cell in cells
                if cell.domain == domain and dict(cell.settings) == dict(settings) and self._fits(cell)
            ),
            key=lambda cell: (living[cell.id], cell.name),
        )

    def _fits(self, cell: Group) -> bool:
        places = places_of(cell)
        there = [name for name in places if not self.nodes[name].ended]
        is_large_enough = len(places) == self.replicas if self.replicas else len(places) >= self.usual
        return is_large_enough and has_survivors(cell) and has_majority(places, there)

    def is_enough(self) -> bool:
        """There are as many cells as there should be. Otherwise a new one is placed."""
        usable = len(usable_nodes(self.nodes.values(), "sequencer"))
        return len(self.fitting) >= cells_wanted(usable, self.usual)


def check_fits_beside(create: CreateGroup, settings: Mapping[str, str], other: Group, cell: Group) -> None:
    """It gets what that one has: whoever asks for anything else is told."""
    if create.domain and create.domain != other.domain:
        raise precondition(
            f"the group {other.name} is in the domain {other.domain}, and so is what lives beside it"
        )
    if create.replicas and create.replicas != len(places_of(cell)):
        raise precondition(
            f"the group {other.name} has {len(places_of(cell))} replicas, and so has what lives beside it"
        )
    if settings and dict(settings) != dict(cell.settings):
        raise precondition(f"the group {other.name} has other settings, and what lives beside it has the same")


def no_more_placed(level: int) -> str:
    if level < CELLS_LEVEL:  # in the words of older software: members remember the same answers
        return f"there are {PLACED_MAX} groups: no more fit"
    return (
        f"there are {PLACED_MAX} cells, with those of groups that have one to themselves: no more fit, but groups "
        "may share them"
    )


def new_name(taken: Iterable[Mapping[str, Group]], count: int) -> str:
    """Return a name for a cell that neither a group nor a cell has."""
    taken = list(taken)
    while any(f"cell-{count}" in names for names in taken):
        count += 1
    return f"cell-{count}"
