"""The messages of one envelope, as the entries of several groups have them, in the order of the batch."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError

from ordercast.core.errors import RemoteProtocolError
from ordercast.v1.common_pb2 import Batch, Message, ProducerRange
from ordercast.v1.sequencer_pb2 import LogEntry


class Found(NamedTuple):
    """A message in a group's log."""

    #: In the batch of its envelope.
    nth: int
    offset: int
    sequence: int
    range_: ProducerRange
    message: Message


def messages_of(entry: LogEntry) -> Iterator[Found]:
    """Those that are new to the group, in the order of the batch. Refuses an entry that contradicts itself."""
    try:
        messages = Batch.FromString(entry.envelope.body).messages
    except DecodeError as error:
        raise RemoteProtocolError(f"a damaged batch: {error}") from error
    header = entry.envelope.header
    if len(header.ranges) != len(entry.outcomes) or sum(range_.count for range_ in header.ranges) != len(messages):
        raise RemoteProtocolError("an entry that contradicts itself")
    start = 0
    for range_, outcome in zip(header.ranges, entry.outcomes, strict=True):
        # In an entry that has only one group's messages the range says where it was; otherwise it is where it is.
        index = range_.index or start
        for span in outcome.spans:
            if span.duplicate:
                continue
            first = span.first_sequence - range_.first_sequence
            if first < 0 or first + span.count > range_.count:
                raise RemoteProtocolError("an entry that contradicts itself")
            for ahead in range(span.count):
                at = first + ahead
                sequence, offset = span.first_sequence + ahead, span.first_offset + ahead
                yield Found(index + at, offset, sequence, range_, messages[start + at])
        start += range_.count


def in_order(parts: Sequence[tuple[str, LogEntry]]) -> list[tuple[Found, dict[str, int]]]:
    """The messages of an envelope, each once, with their offsets in the groups whose entries these are."""
    if len(parts) == 1:
        group, entry = parts[0]
        return [(found, {group: found.offset}) for found in messages_of(entry)]
    by_nth: dict[int, tuple[Found, dict[str, int]]] = {}
    for group, entry in parts:
        for found in messages_of(entry):
            known = by_nth.setdefault(found.nth, (found, {}))
            known[1][group] = found.offset
    return [by_nth[nth] for nth in sorted(by_nth)]
