"""What is measured: the shape of the cluster and its messages, and the patterns in which they are sent."""

from dataclasses import dataclass
from random import Random

from ordercast.core.level import LEVEL
from ordercast.core.protocol import Traits
from ordercast.protocols import catalogue

#: One producer, and one set of groups.
SAME = "same"
#: Many producers, and random sets of the same size.
RANDOM = "random"
#: `groups-64`: so many groups, each with a producer that publishes to it alone, and they share what is in flight.
GROUPS_PREFIX = "groups-"
#: One producer and one group: where two protocols of ours are compared.
ONE = "one"
#: Each message to a few of many groups, chosen at random: by the name, producers, and connections that they share.
RANDOM_SETS = {"random-64": (64, 64), "random-8": (64, 8), "random-1": (1, 1)}
#: `cells-6`: random sets as well, of groups that live in so many cells. Producers have a connection each.
CELLS_PREFIX = "cells-"
CELLS_SIX = "cells-6"
#: Messages in flight of patterns that say themselves how many, of all producers together.
FIXED_IN_FLIGHT = 1024

#: The protocol of the domain that is always there: others take turns with it.
DEFAULT = catalogue.DEFAULT.name
CAUSAL, TOTAL = "causal", "total"

Groups = tuple[str, ...]

#: Pattern `random`: producers, how many groups they choose from for each that a message goes to, and how many
#: sets a producer takes turns with.
PRODUCERS = 16
GROUPS_TO_CHOOSE_FROM = 2
SETS_PER_PRODUCER = 16

#: Patterns of RANDOM_SETS: groups, to how many of them a message goes at most, and after how many messages a
#: producer begins anew.
MANY_GROUPS = 12
FEW_GROUPS_MAX = 3
MESSAGES_PER_ROUND = 1024


@dataclass(frozen=True, slots=True)
class BenchPlan:
    nodes: int = 3
    #: Groups that each message goes to.
    groups: int = 2
    replicas: int = 3
    size: int = 256
    seconds: float = 10.0
    #: Instead of so many seconds.
    messages: int | None = None
    #: Of the domain that our own groups are in; and what it orders, if the protocol lets a domain choose.
    protocol: str = DEFAULT
    ordering: str = ""
    #: Our groups share cells. Otherwise each has one to itself.
    shared: bool = False

    @property
    def traits(self) -> Traits:
        return catalogue.named(self.protocol).traits

    @property
    def settings(self) -> dict[str, str]:
        """Of the domain."""
        return {"ordering": self.ordering} if self.ordering else {}

    @property
    def has_several(self) -> bool:
        """Whether a message can go to several groups."""
        return catalogue.named(self.protocol).parse(self.settings, LEVEL).spans_groups

    @property
    def protocol_text(self) -> str:
        return f"{self.protocol} {self.ordering}".rstrip()


@dataclass(frozen=True, slots=True)
class Pattern:
    """Who publishes where."""

    name: str
    #: All that there are.
    groups: Groups
    #: For each producer, the sets of groups that it takes turns with.
    sets: tuple[tuple[Groups, ...], ...]
    #: Connections that producers share; otherwise each has its own.
    connections: int | None = None
    #: Messages without a receipt, of all producers together, if that belongs to the pattern; otherwise it has a
    #: row for each depth.
    in_flight: int | None = None
    #: Cells that the groups share, one after the other in turn. Otherwise the plan says where they live.
    cells: int | None = None

    def by_connection(self, producers: int) -> list[list[int]]:
        """The numbers of that many producers, for each connection."""
        count = min(self.connections or producers, producers)
        return [list(range(first, producers, count)) for first in range(count)]

    def depths(self, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """Messages in flight, of one row after the other."""
        return wanted if self.in_flight is None else (self.in_flight,)


def pattern_named(name: str, plan: BenchPlan) -> Pattern:
    if name == SAME:
        groups = group_names(plan.groups)
        return Pattern(name, groups, ((groups,),))
    if name == ONE:
        groups = group_names(1)
        return Pattern(name, groups, ((groups,),))
    if name == RANDOM:
        groups = group_names(plan.groups * GROUPS_TO_CHOOSE_FROM)
        return Pattern(name, groups, tuple(random_sets(groups, plan.groups, seed) for seed in range(PRODUCERS)))
    if name in RANDOM_SETS:
        producers, connections = RANDOM_SETS[name]
        groups = group_names(MANY_GROUPS)
        sets = tuple(random_few(groups, seed) for seed in range(producers))
        return Pattern(name, groups, sets, connections, FIXED_IN_FLIGHT)
    if name.startswith(CELLS_PREFIX):
        producers, connections = RANDOM_SETS["random-64"]
        cells = int(name.removeprefix(CELLS_PREFIX))
        groups = group_names(max(MANY_GROUPS, cells))
        sets = tuple(random_few(groups, seed) for seed in range(producers))
        return Pattern(name, groups, sets, connections, FIXED_IN_FLIGHT, cells)
    groups = group_names(int(name.removeprefix(GROUPS_PREFIX)))
    return Pattern(name, groups, tuple(((group,),) for group in groups), in_flight=FIXED_IN_FLIGHT)


def is_pattern(name: str) -> bool:
    """
    >>> is_pattern("groups-64"), is_pattern("groups-0"), is_pattern("groups"), is_pattern("cells-6")
    (True, False, False, True)
    """
    count = name.removeprefix(GROUPS_PREFIX).removeprefix(CELLS_PREFIX)
    is_count = count != name and count.isascii() and count.isdecimal() and int(count) > 0
    return is_count or name in (SAME, RANDOM, *RANDOM_SETS)


def group_names(count: int) -> Groups:
    return tuple(f"g{number}" for number in range(count))


def random_sets(groups: Groups, size: int, seed: int) -> tuple[Groups, ...]:
    random = Random(seed)
    return tuple(tuple(sorted(random.sample(groups, size))) for _ in range(SETS_PER_PRODUCER))


def random_few(groups: Groups, seed: int) -> tuple[Groups, ...]:
    """One to a few of them, each number as often as the others."""
    random = Random(seed)
    return tuple(
        tuple(sorted(random.sample(groups, random.randint(1, FEW_GROUPS_MAX)))) for _ in range(MESSAGES_PER_ROUND)
    )
