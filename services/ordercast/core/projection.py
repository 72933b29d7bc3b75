"""What an entry of a cell's log is for one group of the cell.

Readers of a group get its messages and nobody else's, in entries that look as if the group had the cell to
itself: whoever can read one can read the other, and pages and clients need not know of cells. Only targets and
runs are still there, so that an audit sees for which other groups a message was; and where in the whole batch
messages were, so that who reads several groups of the cell brings them into their order again.
"""

from collections.abc import Iterator

from ordercast.core.cells import checked_groups, parts_of, runs_of, shares_cell, targets_of
from ordercast.v1.common_pb2 import Batch, Header, Message, ProducerRange, RangeOutcome, Span
from ordercast.v1.sequencer_pb2 import LogEntry


def ends_after(cell: str, entry: LogEntry) -> dict[str, tuple[int, int]]:
    """Of groups that share the cell and have new messages in an entry: the first's offset, and the next one."""
    groups = checked_groups(cell, entry.envelope.header, entry.bases)
    counted = zip(groups, entry.bases, entry.news, strict=True)
    return {group: (base, base + new) for group, base, new in counted if new and shares_cell(group)}


def new_parts(range_: ProducerRange, outcome: RangeOutcome) -> Iterator[tuple[int, int, int]]:
    """Of messages that are no repetitions: the first sequence, how many follow on it, and for which target."""
    for span in outcome.spans:
        if not span.duplicate:
            yield from parts_of(range_, span.first_sequence, span.first_sequence + span.count)


def projected(cell: str, group: str, entry: LogEntry) -> LogEntry:
    """The group's own messages in the entry, with their offsets."""
    header = entry.envelope.header
    result = _without_messages(entry)
    ours = result.envelope.header
    bases = dict(zip(checked_groups(cell, header, entry.bases), entry.bases, strict=True))
    result.first_offset = offset = bases.get(group, 0)
    has_group = [group in target for target in targets_of(header)]
    messages = Batch.FromString(entry.envelope.body).messages
    kept: list[Message] = []
    start = 0
    for range_, outcome in zip(header.ranges, entry.outcomes, strict=True):
        ahead = start - range_.first_sequence
        start += range_.count
        if not any(map(has_group.__getitem__, range_.runs[::2])):
            continue
        for sequence, count, target in new_parts(range_, outcome):
            if has_group[target]:
                _add_range(ours, range_, sequence, count, target, ahead + sequence)
                result.outcomes.append(_fresh(sequence, count, offset, entry.order_key))
                kept += messages[ahead + sequence : ahead + sequence + count]
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
        if field.name not in ("envelope", "outcomes", "bases", "news", "first_offset", "dropped"):
            if field.message_type is not None:
                getattr(result, field.name).CopyFrom(value)
            else:
                setattr(result, field.name, value)
    header = result.envelope.header
    header.CopyFrom(entry.envelope.header)
    header.ClearField("ranges")
    return result


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
                _add_range(result.envelope.header, range_, range_.first_sequence + at, count, target, start + at)
                kept += messages[start + at : start + at + count]
            at += count
        start += range_.count
    result.envelope.body = Batch(messages=kept).SerializeToString()
    return result


def _add_range(header: Header, range_: ProducerRange, sequence: int, count: int, target: int, index: int) -> None:
    header.ranges.add(
        producer=range_.producer,
        epoch=range_.epoch,
        first_sequence=sequence,
        count=count,
        client=range_.client,
        runs=(target, count),
        index=index,
    )
