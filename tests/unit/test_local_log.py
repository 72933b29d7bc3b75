"""Reading the logs that are kept here: chunks, live tails, ends, retention under a reader, damage."""

import asyncio
import contextlib

import grpc
import pytest

from ordercast.runtime.storage import local_log
from ordercast.runtime.storage.layout import log_key, log_prefix
from ordercast.runtime.storage.local_log import LocalLogs
from ordercast.runtime.storage.store import Storage
from ordercast.runtime.storage.writer import Writer
from ordercast.runtime.transport.status import Refused
from ordercast.v1.sequencer_pb2 import LogEntry, StartAt
from tests.unit.test_storage import MAP_BYTES, entry

EARLIEST, LATEST = StartAt(earliest=True), StartAt(latest=True)


class Rig:
    def __init__(self, directory):
        self.storage = Storage(directory, map_bytes=MAP_BYTES)
        self.committed = asyncio.Event()
        self.wall_ms = 0
        self.writer = Writer(
            self.storage,
            asyncio.get_running_loop(),
            on_durable=lambda ticket: self.committed.set(),
            on_full=lambda is_full: None,
            wall_ms=lambda: self.wall_ms,
            reserve_bytes=0,
        )
        self.logs = LocalLogs(self.storage, self.writer)
        self.served = {"g"}
        self.logs.serves = self.served.__contains__

    async def commit(self):
        """All that was added. Tickets become durable on this loop: nothing happens between look and wait."""
        ticket = self.writer.add("d", "r", [], [])
        self.writer.kick()
        while self.writer.durable < ticket:
            self.committed.clear()
            await self.committed.wait()

    async def append(self, position, *entries):
        """Durable, and those who wait are told."""
        self.writer.add("d", "r", [], [("g", position + i, e) for i, e in enumerate(entries)])
        await self.commit()
        self.logs.notify("g")

    async def truncate(self, position):
        self.writer.truncate("g", position)
        await self.append(self.writer.own_bounds("g").ends)

    def damage(self, position):
        key = log_key(log_prefix("g"), position)
        with self.storage.env.begin(write=True) as txn:
            value = bytearray(txn.get(key, db=self.storage.log_values) or b"")
            value[-1] ^= 1
            txn.put(key, bytes(value), db=self.storage.log_values)


def offsets(response):
    return [LogEntry.FromString(data).first_offset for data in response.entries]


async def all_of(responses):
    """The offsets of the entries, until it ends."""
    async with contextlib.aclosing(responses):
        return [offset async for response in responses for offset in offsets(response)]


def run(directory, story):
    async def told():
        async with asyncio.timeout(20):
            rig = Rig(directory)
            try:
                await story(rig)
            finally:
                rig.writer.stop()
                rig.storage.close()

    asyncio.run(told())


async def code_of(awaitable):
    with pytest.raises(Refused) as refused:
        await awaitable
    return refused.value.code


def test_a_reading_says_first_where_the_log_begins_and_ends(tmp_path):
    async def story(rig):
        await rig.append(0, entry(0, 2), entry(2, 3))
        responses = rig.logs.read("g", StartAt(offset=3), False)
        first = await anext(responses)
        assert (first.first_offset, first.next_offset, first.start_offset) == (0, 5, 3)
        assert not first.entries
        second = await anext(responses)
        assert offsets(second) == [2]
        assert second.next_offset == 5
        await responses.aclose()

    run(tmp_path, story)


def test_a_reader_gets_what_is_committed_later(tmp_path):
    async def story(rig):
        responses = rig.logs.read("g", LATEST, False)
        await anext(responses)
        for position in range(3):
            coming = asyncio.ensure_future(anext(responses))
            await asyncio.sleep(0)
            assert not coming.done()
            await rig.append(position, entry(position, 1))
            assert offsets(await coming) == [position]
        await responses.aclose()

    run(tmp_path, story)


def test_many_readers_wait_for_the_same_entry(tmp_path):
    async def story(rig):
        readers = [rig.logs.read("g", EARLIEST, False) for _ in range(5)]
        for reader in readers:
            await anext(reader)
        coming = [asyncio.ensure_future(anext(reader)) for reader in readers]
        await asyncio.sleep(0)
        await rig.append(0, entry(0, 1))
        assert [offsets(response) for response in await asyncio.gather(*coming)] == [[0]] * 5
        for reader in readers:
            await reader.aclose()

    run(tmp_path, story)


def test_a_reading_that_stops_at_the_end_ends_there(tmp_path):
    async def story(rig):
        assert await all_of(rig.logs.read("g", EARLIEST, True)) == []
        await rig.append(0, *(entry(n, 1) for n in range(10)))
        assert await all_of(rig.logs.read("g", EARLIEST, True)) == list(range(10))
        assert await all_of(rig.logs.read("g", StartAt(offset=7), True)) == [7, 8, 9]
        assert await all_of(rig.logs.read("g", LATEST, True)) == []

    run(tmp_path, story)


def test_a_long_log_comes_in_chunks_without_gap_or_repetition(tmp_path, monkeypatch):
    monkeypatch.setattr(local_log, "CHUNK_ENTRIES_MAX", 3)

    async def story(rig):
        await rig.append(0, *(entry(n, 1) for n in range(10)))
        responses = [response async for response in rig.logs.read("g", EARLIEST, True)]
        assert [offsets(r) for r in responses] == [[], [0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
        assert [r.next_offset for r in responses[1:]] == [3, 6, 9, 10]

    run(tmp_path, story)


def test_entries_without_new_messages_are_skipped_and_passed_over(tmp_path):
    async def story(rig):
        await rig.append(0, entry(0, 0), entry(0, 2), entry(2, 0), entry(2, 1), entry(3, 0))
        assert await all_of(rig.logs.read("g", EARLIEST, True)) == [0, 2]
        responses = rig.logs.read("g", LATEST, False)
        await anext(responses)
        coming = asyncio.ensure_future(anext(responses))
        await rig.append(5, entry(3, 0))
        await asyncio.sleep(0)
        assert not coming.done()
        await rig.append(6, entry(3, 1))
        assert offsets(await coming) == [3]
        await responses.aclose()

    run(tmp_path, story)


@pytest.mark.parametrize("offset", [0, 1, 5, 2**64 - 1])
def test_an_offset_that_does_not_exist_is_out_of_range(tmp_path, offset):
    async def story(rig):
        await rig.append(0, entry(0, 2), entry(2, 2))
        await rig.truncate(1)
        reading = rig.logs.read("g", StartAt(offset=offset), False)
        with pytest.raises(Refused) as refused:
            await anext(reading)
        assert refused.value.code == grpc.StatusCode.OUT_OF_RANGE
        assert refused.value.metadata == {"first_offset": "2", "next_offset": "4"}

    run(tmp_path, story)


def test_truncation_under_a_reader_is_out_of_range_and_no_gap(tmp_path, monkeypatch):
    monkeypatch.setattr(local_log, "CHUNK_ENTRIES_MAX", 1)

    async def story(rig):
        await rig.append(0, *(entry(n, 1) for n in range(5)))
        responses = rig.logs.read("g", EARLIEST, False)
        await anext(responses)
        assert offsets(await anext(responses)) == [0]
        await rig.truncate(3)
        assert await code_of(anext(responses)) == grpc.StatusCode.OUT_OF_RANGE

    run(tmp_path, story)


def test_truncation_between_the_choice_of_the_offset_and_its_position_is_no_gap(tmp_path):
    """The two look at the disk one after the other, and the writer commits in a thread of its own."""

    async def story(rig):
        await rig.append(0, *(entry(n, 1) for n in range(5)))
        find = rig.storage.position_of

        def truncated_before(group, offset):
            rig.writer.truncate("g", 3)
            rig.writer.kick()
            while rig.storage.bounds("g").begins < 3:
                pass
            return find(group, offset)

        rig.storage.position_of = truncated_before
        assert await code_of(anext(rig.logs.read("g", StartAt(offset=1), False))) == grpc.StatusCode.OUT_OF_RANGE

    run(tmp_path, story)


def test_a_snapshot_that_takes_the_place_of_the_log_is_no_gap(tmp_path):
    async def story(rig):
        await rig.append(0, entry(0, 1))
        responses = rig.logs.read("g", LATEST, False)
        await anext(responses)
        await rig.append(1, None)
        coming = asyncio.ensure_future(anext(responses))
        await asyncio.sleep(0)
        await rig.append(1, entry(8, 1))
        assert await code_of(coming) == grpc.StatusCode.OUT_OF_RANGE

    run(tmp_path, story)


def test_a_group_that_is_not_here_is_not_read(tmp_path):
    async def story(rig):
        assert await code_of(anext(rig.logs.read("h", EARLIEST, False))) == grpc.StatusCode.NOT_FOUND
        assert await code_of(rig.logs.describe("h")) == grpc.StatusCode.NOT_FOUND

    run(tmp_path, story)


def test_whoever_waits_for_a_group_that_goes_is_told(tmp_path):
    async def story(rig):
        responses = rig.logs.read("g", LATEST, False)
        await anext(responses)
        coming = asyncio.ensure_future(anext(responses))
        await asyncio.sleep(0)
        rig.logs.let_go()
        await asyncio.sleep(0)
        assert not coming.done()
        rig.served.clear()
        rig.logs.let_go()
        assert await code_of(coming) == grpc.StatusCode.NOT_FOUND

    run(tmp_path, story)


def test_a_log_describes_itself(tmp_path):
    async def story(rig):
        await rig.append(0, entry(0, 2), entry(2, 3))
        await rig.truncate(1)
        found = await rig.logs.describe("g")
        assert (found.first_offset, found.next_offset, found.position) == (2, 5, 2)
        assert found.bytes == len(entry(2, 3).SerializeToString())

    run(tmp_path, story)


def test_entries_come_with_when_they_were_stored_and_are_found_by_that(tmp_path):
    async def story(rig):
        for position in range(4):
            rig.wall_ms = 10 * (position + 1)
            await rig.append(position, entry(2 * position, 0 if position == 1 else 2))
        async with contextlib.aclosing(rig.logs.read("g", EARLIEST, True)) as responses:
            stored = [list(response.stored_ms) async for response in responses]
        assert stored == [[], [10, 30, 40]]
        found = [await rig.logs.describe("g", stored_ms=at) for at in (0, 30, 41)]
        assert [log.stored_offset for log in found] == [0, 4, 8]
        assert not (await rig.logs.describe("g")).HasField("stored_offset")

    run(tmp_path, story)


def test_a_time_behind_a_damaged_entry_is_found_when_that_is_mended(tmp_path):
    """The time of the damaged one is lost: it gets that of the next, and so comes with it."""
    whole = [entry(n, 1) for n in range(3)]

    async def story(rig):
        for position, rig.wall_ms in enumerate((10, 20, 30)):
            await rig.append(position, whole[position])
        rig.damage(1)

        async def mend(damaged):
            rig.writer.repair(damaged.group, damaged.position, whole[damaged.position].SerializeToString())
            await rig.commit()

        rig.logs.mend = mend
        assert (await rig.logs.describe("g", stored_ms=30)).stored_offset == 1

    run(tmp_path, story)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_damaged_entry_is_mended_before_it_is_read(tmp_path, position):
    whole = [entry(n, 1, size=10) for n in range(3)]

    async def story(rig):
        await rig.append(0, *whole)
        rig.damage(position)

        async def mend(damaged):
            assert (damaged.group, damaged.position) == ("g", position)
            rig.writer.repair("g", position, whole[position].SerializeToString())
            await rig.commit()

        rig.logs.mend = mend
        assert await all_of(rig.logs.read("g", EARLIEST, True)) == [0, 1, 2]

    run(tmp_path, story)


def test_an_entry_that_cannot_be_mended_is_data_loss_and_never_skipped(tmp_path):
    async def story(rig):
        await rig.append(0, *(entry(n, 1, size=10) for n in range(3)))
        rig.damage(1)
        mended = []

        async def mend(damaged):
            mended.append(damaged.position)

        for rig.logs.mend in (None, mend):
            assert await code_of(all_of(rig.logs.read("g", EARLIEST, True))) == grpc.StatusCode.DATA_LOSS
        assert mended == [1] * local_log.MENDS_MAX

    run(tmp_path, story)


def test_what_is_unread_is_counted_from_an_offset_with_the_age_of_its_first(tmp_path):
    async def story(rig):
        rig.wall_ms = 1000
        await rig.append(0, entry(0, 2))
        rig.wall_ms = 5000
        await rig.append(1, entry(2, 3))
        assert [await rig.logs.unread("g", offset) for offset in (0, 1, 2, 4, 5, 6)] == [
            (5, 1000),
            (4, 1000),
            (3, 5000),
            (1, 5000),
            (0, None),
            (0, None),
        ]
        rig.served.clear()
        assert await code_of(rig.logs.unread("g", 0)) == grpc.StatusCode.NOT_FOUND

    run(tmp_path, story)


def test_what_retention_removed_before_it_was_read_is_still_missing(tmp_path):
    """The oldest that can still be read is the one whose age counts."""

    async def story(rig):
        rig.wall_ms = 1000
        await rig.append(0, entry(0, 2))
        rig.wall_ms = 5000
        await rig.append(1, entry(2, 3))
        await rig.truncate(1)
        assert await rig.logs.unread("g", 0) == (5, 5000)

    run(tmp_path, story)
