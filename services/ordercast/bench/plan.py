"""What is measured: the shape of the cluster and its messages, and the patterns in which they are sent."""

from dataclasses import dataclass
from random import Random

from ordercast.core.level import LEVEL
from ordercast.core.protocol import Traits
from ordercast.protocols import catalogue

#: The one that peers can be compared in: one producer, and one set of groups.
SAME = "same"
#: Many producers, and random sets of the same size.
RANDOM = "random"
#: `groups-64`: so many groups, each with a producer that publishes to it alone, and they share what is in flight.
GROUPS_PREFIX = "groups-"
#: One producer and one group: where two protocols of ours are compared.
ONE = "one"
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


@dataclass(frozen=True, slots=True)
class Plan:
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
    #: Of all producers together, if that belongs to the pattern; otherwise it has a row for each depth.
    in_flight: int | None = None

    def depths(self, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """Messages in flight, of one row after the other."""
        return wanted if self.in_flight is None else (self.in_flight,)


def pattern_named(name: str, plan: Plan) -> Pattern:
    if name == SAME:
        groups = group_names(plan.groups)
        return Pattern(name, groups, ((groups,),))
    if name == ONE:
        groups = group_names(1)
        return Pattern(name, groups, ((groups,),))
    if name == RANDOM:
        groups = group_names(plan.groups * GROUPS_TO_CHOOSE_FROM)
        return Pattern(name, groups, tuple(random_sets(groups, plan.groups, seed) for seed in range(PRODUCERS)))
    groups = group_names(int(name.removeprefix(GROUPS_PREFIX)))
    return Pattern(name, groups, tuple(((group,),) for group in groups), FIXED_IN_FLIGHT)


def is_pattern(name: str) -> bool:
    """
    >>> is_pattern("groups-64"), is_pattern("groups-0"), is_pattern("groups")
    (True, False, False)
    """
    count = name.removeprefix(GROUPS_PREFIX)
    is_count = count != name and count.isascii() and count.isdecimal() and int(count) > 0
    return is_count or name in (SAME, RANDOM)


def group_names(count: int) -> Groups:
    return tuple(f"g{number}" for number in range(count))


def random_sets(groups: Groups, size: int, seed: int) -> tuple[Groups, ...]:
    random = Random(seed)
    return tuple(tuple(sorted(random.sample(groups, size))) for _ in range(SETS_PER_PRODUCER))
