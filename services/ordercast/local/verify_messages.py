"""What groups show at one order key, and whether it is the same messages.

Where no message is for a group that shares a cell, all groups show the same envelope. Otherwise each shows what is
its own, and it is compared message by message: what it is, for whom, and that all of these show it, in one order.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

from ordercast.core.cells import Names, cell_of, shares_cell
from ordercast.local.messages import Told, cells_in, new_messages
from ordercast.v1.common_pb2 import Header
from ordercast.v1.sequencer_pb2 import LogEntry

#: (producer, epoch, sequence): within one envelope no two messages have the same.
Id = tuple[bytes, int, int]
#: And a checksum of the payload.
Content = tuple[Id, int]


def id_of(told: Told) -> Id:
    return told.producer, told.epoch, told.sequence


def contents(entry: LogEntry) -> Iterator[Content]:
    for told in new_messages(entry):
        yield id_of(told), zlib.crc32(told.payload)


@dataclass
class MessagePlace:
    key: bytes
    #: By the addresses of the groups that show something there.
    entries: Mapping[str, LogEntry]

    @property
    def first(self) -> str:
        return next(iter(self.entries))

    @cached_property
    def has_targets(self) -> bool:
        return any(entry.envelope.header.targets for entry in self.entries.values())

    @cached_property
    def shown(self) -> dict[str, dict[Id, Told]]:
        """What was shown, by group and in the group's order."""
        return {
            group: {id_of(told): told for told in new_messages(entry)} for group, entry in self.entries.items()
        }

    def problems(self, is_kept: Callable[[str], bool]) -> Iterator[str]:
        """`is_kept`: by a group that is there, and has not dropped it."""
        first, one = self.first, self.entries[self.first]
        about = _about(one) if self.has_targets else one.envelope
        for group, entry in self.entries.items():
            if (_about(entry) if self.has_targets else entry.envelope) != about:
                yield f"{group} and {first} show different messages at {self.key.hex()}"
            elif not self.has_targets and group not in cells_in(entry):
                yield f"{group} has {self.key.hex()}, which is not for it"
        if self.has_targets:
            yield from self._problems_of_messages(is_kept)

    def _problems_of_messages(self, is_kept: Callable[[str], bool]) -> Iterator[str]:
        for one, other in combinations(self.shown, 2):
            yield from self._differences(one, other)
        for group, messages in self.shown.items():
            for told in messages.values():
                if group not in told.groups:
                    yield f"{group} has {self._name(told)}, which is not for it"
                for lacking in told.groups:
                    is_shown = id_of(told) in self.shown.get(lacking, (id_of(told),))
                    if not is_shown and is_kept(lacking):
                        yield f"{group} has {self._name(told)}, and {lacking} does not"

    def _differences(self, one: str, other: str) -> Iterator[str]:
        first, second = self.shown[one], self.shown[other]
        for id_, told in first.items():
            known = second.get(id_, told)
            if (known.payload, known.groups) != (told.payload, told.groups):
                yield f"{one} and {other} show different messages as {self._name(told)}"
        if [id_ for id_ in first if id_ in second] != [id_ for id_ in second if id_ in first]:
            yield f"{one} and {other} show messages in different orders at {self.key.hex()}"

    def _name(self, told: Told) -> str:
        return f"message {told.sequence} of producer {told.producer.hex()} at {self.key.hex()}"

    def wanted(self) -> dict[str, None]:
        """The groups that should show something."""
        if not self.has_targets:
            return dict.fromkeys(group for entry in self.entries.values() for group in cells_in(entry))
        messages = (told for of_group in self.shown.values() for told in of_group.values())
        return dict.fromkeys(group for told in messages for group in told.groups)

    def expected_in(self, group: str) -> dict[Content, None]:
        """As far as others show it."""
        everything = {id_: told for messages in self.shown.values() for id_, told in messages.items()}
        return {(id_, zlib.crc32(told.payload)): None for id_, told in everything.items() if group in told.groups}


def _about(entry: LogEntry) -> Header:
    """All that the header says but for the messages."""
    about = Header()
    about.CopyFrom(entry.envelope.header)
    about.ClearField("ranges")
    return about


@dataclass
class Sequences:
    """Of producers, over all groups of a cell: a number comes once, and they rise.

    That none is left out cannot be told from what is shown: it may have been for a group that is gone by now.
    """

    #: By cell, producer and the cells that it counts by: epoch and sequence.
    last: dict[tuple[str, bytes, Names], tuple[int, int]] = field(default_factory=dict)

    def take(self, place: MessagePlace) -> Iterator[str]:
        """The next place of the domain."""
        found: dict[tuple[str, bytes, Names], set[tuple[int, int]]] = {}
        for group, entry in place.entries.items():
            if shares_cell(group):
                for producer, epoch, sequence in place.shown[group]:
                    of_cell = (cell_of(group), producer, cells_in(entry))
                    found.setdefault(of_cell, set()).add((epoch, sequence))
        for of_cell, numbers in found.items():
            epoch, last = self.last.get(of_cell, (0, 0))
            if any(at == epoch and sequence <= last for at, sequence in numbers):
                cell, producer, _ = of_cell
                where = f"at {place.key.hex()}"
                yield f"{cell}: producer {producer.hex()} is not beyond its message {last} {where}"
            self.last[of_cell] = max(numbers)
