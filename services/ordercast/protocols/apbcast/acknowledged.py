"""Counting acknowledgements: what a majority of one configuration has on its disks (R2 in README.md).

An acknowledgement names the group and the configuration that it was given in. Two from different configurations
do not add up: the majority of either need not meet the majority of the other.
"""

from collections.abc import Mapping, Sequence

from ordercast.core.quorums import majority

#: Configurations of a group whose acknowledgements still count.
KEPT = 4


def of_majority(members: Sequence[str], numbers: Mapping[str, int]) -> int:
    """The highest number that a majority of them has reached."""
    reached = sorted((numbers.get(member, 0) for member in members), reverse=True)
    return reached[majority(len(reached)) - 1] if reached else 0


class Acknowledged:
    """Of one stream, in all groups."""

    def __init__(self) -> None:
        self.members: dict[tuple[str, int], tuple[str, ...]] = {}
        self.numbers: dict[tuple[str, int], dict[str, int]] = {}

    def configure(self, group: str, number: int, members: Sequence[str]) -> None:
        if (group, number) in self.members or not number:
            return
        self.members[group, number] = tuple(members)
        numbers = sorted(known for name, known in self.members if name == group)
        for old in numbers[:-KEPT]:
            del self.members[group, old]
            self.numbers.pop((group, old), None)

    def add(self, group: str, configuration: int, member: str, number: int) -> None:
        if (group, configuration) in self.members:
            told = self.numbers.setdefault((group, configuration), {})
            told[member] = max(number, told.get(member, 0))

    def by(self, group: str, configuration: int) -> int:
        """What a majority of one configuration has."""
        key = (group, configuration)
        return of_majority(self.members.get(key, ()), self.numbers.get(key, {}))

    def by_group(self, group: str) -> int:
        """What a majority of any one configuration has: it was handed over since, if that one is over."""
        return max((self.by(*key) for key in self.members if key[0] == group), default=0)
