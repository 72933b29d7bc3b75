"""The messages of one envelope, found again in the entries of several groups, in the order of the batch."""

import pytest

from ordercast.core.batch_order import in_order, messages_of
from ordercast.core.cells import put_targets
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.projection import projected
from ordercast.v1.common_pb2 import Batch, Envelope, Message, ProducerRange, RangeOutcome, Span
from ordercast.v1.sequencer_pb2 import LogEntry

#: Two producers; of each message the groups of cell c that it is for.
FIRST, SECOND = (("c/u",), ("c/u", "c/v"), ("c/v",)), (("c/v",), ("c/u",))


def shared_entry() -> LogEntry:
    """Five messages, in a cell whose groups had 10 and 20 before."""
    targets = [("c/u",), ("c/v",), ("c/u", "c/v")]
    envelope = Envelope(body=Batch(messages=[Message(payload=b"%d" % n) for n in range(5)]).SerializeToString())
    header = envelope.header
    header.destinations.add(group="c", configuration=1)
    put_targets(header, targets)
    entry = LogEntry(order_key=b"k", envelope=envelope, bases=[10, 20], news=[3, 3])
    for producer, messages in ((b"p", FIRST), (b"q", SECOND)):
        runs = [number for groups in messages for number in (targets.index(groups), 1)]
        entry.envelope.header.ranges.append(
            ProducerRange(producer=producer, first_sequence=1, count=len(messages), runs=runs)
        )
        span = Span(first_sequence=1, count=len(messages))
        entry.outcomes.append(RangeOutcome(spans=[span], last_sequence=len(messages)))
    return entry


def of(*groups: str) -> list[tuple[int, bytes, dict[str, int]]]:
    parts = [(group, projected("c", group, shared_entry())) for group in groups]
    return [(found.nth, found.message.payload, offsets) for found, offsets in in_order(parts)]


def test_messages_of_two_groups_of_a_cell_come_in_the_order_of_the_batch_and_once():
    assert of("c/u", "c/v") == of("c/v", "c/u")
    assert of("c/u", "c/v") == [
        (0, b"0", {"c/u": 10}),
        (1, b"1", {"c/u": 11, "c/v": 20}),
        (2, b"2", {"c/v": 21}),
        (3, b"3", {"c/v": 22}),
        (4, b"4", {"c/u": 12}),
    ]


def test_a_reader_of_one_group_sees_its_messages_at_the_same_places():
    assert of("c/u") == [(0, b"0", {"c/u": 10}), (1, b"1", {"c/u": 11}), (4, b"4", {"c/u": 12})]


def test_an_entry_of_a_group_with_its_own_cell_has_all_of_the_batch():
    body = Batch(messages=[Message(payload=b"a"), Message(payload=b"b"), Message(payload=b"c")])
    entry = LogEntry(envelope=Envelope(body=body.SerializeToString()))
    entry.envelope.header.ranges.add(producer=b"p", first_sequence=1, count=1)
    entry.envelope.header.ranges.add(producer=b"q", first_sequence=7, count=2)
    entry.outcomes.append(RangeOutcome(spans=[Span(first_sequence=1, count=1, duplicate=True)]))
    entry.outcomes.append(RangeOutcome(spans=[Span(first_sequence=7, count=2, first_offset=4)]))
    found = [(one.nth, one.offset, one.sequence, one.message.payload) for one in messages_of(entry)]
    assert found == [(1, 4, 7, b"b"), (2, 5, 8, b"c")], "a repetition is no message of its own"


@pytest.mark.parametrize("damage", ["body", "ranges", "outcomes", "span"])
def test_an_entry_that_contradicts_itself_is_refused(damage):
    entry = shared_entry()
    match damage:
        case "body":
            entry.envelope.body = b"\xff"
        case "ranges":
            entry.envelope.header.ranges[0].count += 1
        case "outcomes":
            del entry.outcomes[0]
        case "span":
            entry.outcomes[0].spans[0].count += 1
    with pytest.raises(RemoteProtocolError):
        list(messages_of(entry))
