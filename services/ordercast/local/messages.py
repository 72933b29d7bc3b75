"""The messages in entries of logs, for those who judge them.

Readers of a group that shares its cell are shown entries with its messages alone (core/projection.py). Entries of
a group that has its cell to itself are whole, and so are those of cells. So it is messages that are compared.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ordercast.core.cells import Names, runs_of, targets_of
from ordercast.v1.common_pb2 import Batch, ProducerRange
from ordercast.v1.sequencer_pb2 import LogEntry


class Told(NamedTuple):
    """A message that is new in an entry."""

    offset: int
    payload: bytes
    producer: bytes
    epoch: int
    #: The producer counts its messages to the same cells.
    sequence: int
    #: The groups that it is for, by their addresses.
    groups: Names


def cells_in(entry: LogEntry) -> Names:
    return tuple(destination.group for destination in entry.envelope.header.destinations)


def new_messages(entry: LogEntry) -> Iterator[Told]:
    header = entry.envelope.header
    cells, targets = cells_in(entry), targets_of(header)
    body = Batch.FromString(entry.envelope.body).messages
    start = 0
    for range_, outcome in zip(header.ranges, entry.outcomes, strict=True):
        groups = list(_groups_of(range_, targets)) or [cells] * range_.count
        for span in outcome.spans:
            for ahead in range(0 if span.duplicate else span.count):
                sequence = span.first_sequence + ahead
                place = sequence - range_.first_sequence
                payload = body[start + place].payload
                offset = span.first_offset + ahead
                yield Told(offset, payload, range_.producer, range_.epoch, sequence, groups[place])
        start += range_.count


def _groups_of(range_: ProducerRange, targets: Sequence[Names]) -> Iterator[Names]:
    """Yield the groups of each message of the range; nothing if all are simply for the destinations."""
    for target, count in runs_of(range_):
        yield from [targets[target]] * count
