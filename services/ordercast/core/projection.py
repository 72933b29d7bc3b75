"""What an entry of a cell's log is for one group of the cell.

Readers of a group get its messages and nobody else's, in entries that look as if the group had the cell to itself:
whoever can read one can read the other, and pages and clients need not know of cells. Only targets and runs are
still there, so that an audit sees for which other groups a message was.
"""

from collections.abc import Iterator

from ordercast.core.cells import Tally, parts_of, runs_of, shares_cell, targets_of
from ordercast.v1.common_pb2 import Batch, Header, Message, ProducerRange, RangeOutcome, Span
from ordercast.v1.sequencer_pb2 import LogEntry


def ends_after(cell: str, entry: LogEntry) -> dict[str, tuple[int, int]]:
    """Of groups that share the cell and have new messages in an entry: the first's offset, and the next one."""
    tally = _tally(cell, entry)
    before = dict(tally.ends)
    for range_, outcome in zip(entry.envelope.header.ranges, entry.outcomes, strict=True):
        for span in outcome.spans:
            if not span.duplicate:
                tally.take(range_, span.first_sequence, span.first_sequence + span.count)
    moved = {group: (before[group], end) for group, end in tally.ends.items() if end > before[group]}
    return {group: offsets for group, offsets in moved.items() if shares_cell(group)}


def projected(cell: str, group: str, entry: LogEntry) -> LogEntry:
    """The group's own messages in the entry, with their offsets."""
    header = entry.envelope.header
    result = _without_messages(entry)
    ours = result.envelope.header
    tally = _tally(cell, entry)
    result.first_offset = tally.ends.get(group, 0)
    has_group = [group in target for target in targets_of(header)]
    offset = result.first_offset
    messages = Batch.FromString(entry.envelope.body).messages
    kept: list[Message] = []
    for at, range_, sequence, count, target in _new_runs(entry):
        if has_group[target]:
            _add_range(ours, range_, sequence, count, target)
            result.outcomes.append(_fresh(sequence, count, offset, entry.order_key))
            kept += messages[at : at + count]
            offset += count
    result.envelope.body = Batch(messages=kept).SerializeToString()
    return result


def _fresh(sequence: int, count: int, offset: int, order_key: bytes) -> RangeOutcome:
    span = Span(first_sequence=sequence, count=count, first_offset=offset, order_key=order_key)
    return RangeOutcome(spans=[span], last_sequence=sequence + count - 1)


def _without_messages(entry: LogEntry) -> LogEntry:
    """All that is about the envelope as a whole."""
    result = LogEntry()
    for field, value in entry.ListFields():
        if field.name not in ("envelope", "outcomes", "bases", "first_offset"):
            if field.message_type is not None:
                getattr(result, field.name).CopyFrom(value)
            else:
                setattr(result, field.name, value)
    header = result.envelope.header
    header.CopyFrom(entry.envelope.header)
    header.ClearField("ranges")
    return result


def _tally(cell: str, entry: LogEntry) -> Tally:
    return Tally.of(cell, entry.envelope.header, entry.bases)


def _new_runs(entry: LogEntry) -> Iterator[tuple[int, ProducerRange, int, int, int]]:
    """Of messages that are no repetitions: where they begin in the body, range, first sequence, number, target."""
    start = 0
    for range_, outcome in zip(entry.envelope.header.ranges, entry.outcomes, strict=True):
        for span in outcome.spans:
            if span.duplicate:
                continue
            first, end = span.first_sequence, span.first_sequence + span.count
            for sequence, count, target in parts_of(range_, first, end):
                yield start + sequence - range_.first_sequence, range_, sequence, count, target
        start += range_.count


# ---------------------------------------------------------------------------------------------------------- live


def projected_live(group: str, entry: LogEntry) -> LogEntry:
    """Of an entry without verdicts, which has no place in a log yet: the messages for the group."""
    header = entry.envelope.header
    result = _without_messages(entry)
    messages = Batch.FromString(entry.envelope.body).messages
    has_group = [group in target for target in targets_of(header)]
    kept: list[Message] = []
    start = 0
    for range_ in header.ranges:
        at = 0
        for target, count in runs_of(range_):
            if has_group[target]:
                _add_range(result.envelope.header, range_, range_.first_sequence + at, count, target)
                kept += messages[start + at : start + at + count]
            at += count
        start += range_.count
    result.envelope.body = Batch(messages=kept).SerializeToString()
    return result


def _add_range(header: Header, range_: ProducerRange, sequence: int, count: int, target: int) -> None:
    header.ranges.add(
        producer=range_.producer,
        epoch=range_.epoch,
        first_sequence=sequence,
        count=count,
        client=range_.client,
        runs=(target, count),
    )
