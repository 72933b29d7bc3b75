"""What an entry of a cell's log is once some groups of the cell have dropped their messages in it.

Retention is of groups, and the log is of their cell. An entry stays as long as one group needs it; the bodies of
messages that no group needs any more may go before that. Such an entry says which groups have dropped what they
had there. All else in it is as it was: places of messages, verdicts, and what the log leads to. So whoever copies
it reaches the same state, and begins these groups behind it.
"""

from collections.abc import Collection

from google.protobuf.message import DecodeError

from ordercast.core.cells import groups_within, shares_cell, targets_of, within
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.projection import new_parts
from ordercast.v1.common_pb2 import Batch, Message
from ordercast.v1.sequencer_pb2 import LogEntry

NOTHING = Message()


def dropped_in(cell: str, entry: LogEntry) -> tuple[str, ...]:
    """Groups of the cell whose messages are no longer in the entry."""
    if not entry.dropped:
        return ()
    groups = groups_within(cell, entry.envelope.header)
    return tuple([groups[place] for place in entry.dropped])


def check_dropped(cell: str, entry: LogEntry) -> None:
    """Refuse an entry that does not say plainly which groups have dropped it."""
    if entry.dropped:
        groups = groups_within(cell, entry.envelope.header)
        places = list(entry.dropped)
        if places != sorted(set(places)) or places[-1] >= len(groups):
            raise RemoteProtocolError("an entry names the groups that have dropped it, each once, and no others")
        if not all(shares_cell(groups[place]) for place in places):
            raise RemoteProtocolError("an entry is dropped by a group that has its cell to itself")


def without(cell: str, entry: LogEntry, groups: Collection[str]) -> LogEntry:
    """The entry when these groups have dropped it, besides those that have already."""
    header = entry.envelope.header
    found = LogEntry()
    found.CopyFrom(entry)
    gone = {*groups, *dropped_in(cell, entry)}
    found.dropped[:] = [place for place, name in enumerate(groups_within(cell, header)) if name in gone]
    is_needed = [any(name not in gone for name in within(cell, target)) for target in targets_of(header)]
    try:
        messages = Batch.FromString(entry.envelope.body).messages
    except DecodeError:
        return found  # No gateway of ours made this body. Readers refuse it, and here it stays as it is.
    kept = [NOTHING] * len(messages)
    start = 0
    for range_, outcome in zip(header.ranges, entry.outcomes, strict=True):
        ahead = start - range_.first_sequence
        start += range_.count
        for sequence, count, target in new_parts(range_, outcome):
            if is_needed[target]:
                kept[ahead + sequence : ahead + sequence + count] = messages[ahead + sequence :][:count]
    found.envelope.body = Batch(messages=kept).SerializeToString()
    return found


def is_worth_it(entry: LogEntry, smaller: LogEntry) -> bool:
    """To write it again. An entry is left as it is until half of its messages' bytes are of no use to anybody."""
    return len(entry.envelope.body) >= 2 * len(smaller.envelope.body) and entry.dropped != smaller.dropped
