"""Live delivery: feeds that end rather than leave something out, and readers that leave out what comes again."""

import asyncio
from contextlib import aclosing

import grpc
import pytest

from ordercast.client.errors import Internal
from ordercast.client.live import PRODUCERS_MAX, LiveReader
from ordercast.runtime.driver.live import BYTES_MAX, ENTRIES_MAX, LiveFeeds
from ordercast.runtime.transport.status import Refused
from ordercast.v1.common_pb2 import Batch, Message, ProducerRange
from ordercast.v1.sequencer_pb2 import LogEntry
from tests.unit.driving import envelope_of, range_of


def entry_of(*ranges: ProducerRange, groups: tuple[str, ...] = ("g-1",)) -> LogEntry:
    """Each message says which of its producer's it is."""
    entry = LogEntry(envelope=envelope_of(0, *groups, ranges=ranges))
    texts = [
        b"%s%d" % (range_.producer, range_.first_sequence + index)
        for range_ in ranges
        for index in range(range_.count)
    ]
    entry.envelope.body = Batch(messages=[Message(payload=text) for text in texts]).SerializeToString()
    return entry


# ------------------------------------------------------------------------------------------------------ feeds


def test_readers_get_what_is_delivered_from_when_they_began():
    async def story() -> None:
        feeds = LiveFeeds()
        entries = [entry_of(range_of(b"p", number)) for number in (1, 2, 3)]
        feeds.delivered("g-1", entries[0])
        async with aclosing(feeds.read("g-1")) as early, aclosing(feeds.read("g-1")) as late:
            assert await anext(early) == []
            feeds.delivered("g-1", entries[1])
            feeds.delivered("g-2", entries[0])
            assert await anext(late) == []
            feeds.delivered("g-1", entries[2])
            assert await anext(early) == [entry.SerializeToString() for entry in entries[1:]]
            assert await anext(late) == [entries[2].SerializeToString()]

    asyncio.run(story())


def test_who_waits_is_woken():
    async def story() -> None:
        feeds = LiveFeeds()
        entry = entry_of(range_of(b"p", 1))
        async with aclosing(feeds.read("g-1")) as reading:
            await anext(reading)
            waiting = asyncio.ensure_future(anext(reading))
            await asyncio.sleep(0)
            feeds.delivered("g-1", entry)
            assert await waiting == [entry.SerializeToString()]

    asyncio.run(story())


def test_an_interruption_comes_behind_what_was_delivered_before_it():
    async def story() -> None:
        feeds = LiveFeeds()
        async with aclosing(feeds.read("g-1")) as reading, aclosing(feeds.read("g-2")) as elsewhere:
            await anext(reading)
            await anext(elsewhere)
            feeds.delivered("g-1", entry_of(range_of(b"p", 1)))
            feeds.interrupted("g-1")
            feeds.delivered("g-1", entry_of(range_of(b"p", 2)))
            assert await anext(reading) == [entry_of(range_of(b"p", 1)).SerializeToString()]
            with pytest.raises(Refused) as ended:
                await anext(reading)
            assert (ended.value.code, ended.value.reason) == (grpc.StatusCode.UNAVAILABLE, "LIVE_INTERRUPTED")
            feeds.delivered("g-2", entry_of(range_of(b"p", 1)))
            assert len(await anext(elsewhere)) == 1

    asyncio.run(story())


@pytest.mark.parametrize(("size", "count"), [(1, ENTRIES_MAX + 1), (BYTES_MAX // 4, 5)])
def test_who_is_too_slow_is_told_so_and_holds_nothing(size: int, count: int):
    async def story() -> None:
        feeds = LiveFeeds()
        entry = entry_of(range_of(b"p", 1))
        entry.envelope.body = bytes(size)
        async with aclosing(feeds.read("g-1")) as slow, aclosing(feeds.read("g-1")) as fast:
            await anext(slow)
            await anext(fast)
            for _ in range(count):
                feeds.delivered("g-1", entry)
                assert await anext(fast) == [entry.SerializeToString()]
            with pytest.raises(Refused) as ended:
                await anext(slow)
            assert (ended.value.code, ended.value.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "LIVE_TOO_SLOW")

    asyncio.run(story())


def test_who_goes_away_is_forgotten():
    async def story() -> None:
        feeds = LiveFeeds()
        async with aclosing(feeds.read("g-1")) as reading:
            await anext(reading)
            assert feeds._readers
        assert not feeds._readers

    asyncio.run(story())


# ---------------------------------------------------------------------------------------------------- readers


def payloads(reader: LiveReader, entry: LogEntry) -> list[bytes]:
    return [delivery.payload for delivery in reader.unpack(entry.SerializeToString())]


def test_what_comes_again_is_left_out_whatever_it_is_packed_with():
    reader = LiveReader("g")
    assert payloads(reader, entry_of(range_of(b"p", 1, 2), range_of(b"q", 1))) == [b"p1", b"p2", b"q1"]
    assert payloads(reader, entry_of(range_of(b"p", 1, 3))) == [b"p3"]
    assert payloads(reader, entry_of(range_of(b"q", 1), range_of(b"q", 2))) == [b"q2"]
    assert payloads(reader, entry_of(range_of(b"p", 1, 2))) == []
    assert payloads(reader, entry_of(range_of(b"p", 4))) == [b"p4"]


def test_sequences_are_of_a_set_of_groups_and_of_an_epoch():
    reader = LiveReader("g")
    assert payloads(reader, entry_of(range_of(b"p", 5))) == [b"p5"]
    assert payloads(reader, entry_of(range_of(b"p", 1), groups=("g-1", "h-2"))) == [b"p1"]
    assert payloads(reader, entry_of(range_of(b"p", 1, epoch=2))) == [b"p1"]


def test_an_opening_carries_nothing():
    assert payloads(LiveReader("g"), entry_of(range_of(b"p", 1, 0))) == []


def test_producers_that_were_not_heard_of_for_long_are_forgotten():
    reader = LiveReader("g")
    for number in range(PRODUCERS_MAX + 10):
        payloads(reader, entry_of(range_of(b"%d-" % number, 1)))
    assert len(reader._latest) == PRODUCERS_MAX


def test_what_is_no_entry_is_said_to_be_damaged():
    reader = LiveReader("g")
    with pytest.raises(Internal):
        reader.unpack(b"\xff")
    entry = entry_of(range_of(b"p", 1))
    entry.envelope.body = b"\xff"
    with pytest.raises(Internal):
        reader.unpack(entry.SerializeToString())
    entry.envelope.body = Batch(messages=[]).SerializeToString()
    with pytest.raises(Internal):
        reader.unpack(entry.SerializeToString())
