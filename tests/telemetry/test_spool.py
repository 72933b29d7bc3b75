"""The spool: what is taken is there, in order and once, whatever happens to the process and its files."""

import asyncio
import time
from pathlib import Path

import pyarrow as pa
import pytest

from ordercast.telemetry.flatten.requests import LOGS, METRICS, TRACES
from ordercast.telemetry.spool import lately as spool_lately
from ordercast.telemetry.spool import layout, recovery, sealing
from ordercast.telemetry.spool.catalogue import MERGE_COUNT, Catalogue
from ordercast.telemetry.spool.frames import Damage, Frame, header, scan
from ordercast.telemetry.spool.intake import BusyError, FullError, IntakeLimits
from ordercast.telemetry.spool.lately import KEPT_S, Lately
from ordercast.telemetry.spool.pieces import OutOfRangeError
from ordercast.telemetry.spool.sealed import SealedFile, Segment
from ordercast.telemetry.spool.spool import Keeping
from tests.telemetry import traffic
from tests.telemetry.spooling import (
    LIMITS,
    SLOW,
    Opened,
    flip,
    opened,
    positions,
    readable,
    until,
    write_segment,
)

# --- Frames


def test_frames_come_back_as_they_were_written():
    content = header(TRACES, 5, 2, 77, b"one", 9) + b"one" + header(LOGS, 7, 1, 78, b"", 9)
    assert list(scan(memoryview(content), 9)) == [
        Frame(TRACES, 5, 2, 77, 40, 43),
        Frame(LOGS, 7, 1, 78, 83, 83),
    ]


def test_behind_damage_the_next_frame_is_found():
    frames = [header(TRACES, i, 1, 1, b"payload", 9) + b"payload" for i in range(4)]
    size = len(frames[0])
    for position in range(size):
        content = bytearray(b"".join(frames))
        content[size + position] ^= 1
        found = list(scan(memoryview(bytes(content)), 9))
        assert [each.first for each in found if isinstance(each, Frame)] == [0, 2, 3]
        assert [each for each in found if isinstance(each, Damage)] == [Damage(size, 2 * size)]


def test_what_a_sender_put_into_a_request_is_not_taken_for_a_frame():
    planted = header(TRACES, 0, 1, 1, b"planted", 0) + b"planted"
    content = bytearray(header(TRACES, 5, 1, 1, planted, 9) + planted)
    content[20] ^= 1
    assert list(scan(memoryview(bytes(content)), 9)) == [Damage(0, len(content))]


# --- From taking to reading


def test_what_is_taken_can_be_read_by_offset(tmp_path: Path):
    async def go() -> None:
        async with opened(tmp_path / "s") as one:
            await asyncio.gather(*(one.spool.take(LOGS, traffic.deliveries(10 * i, 10), 10) for i in range(20)))
            assert one.spool.state.taken == 200
            await readable(one, 200)
            rows = await one.read(0, 200)
            assert [row["offset"] for row in rows] == list(range(200))
            assert sorted(positions(rows)) == list(range(200))
            assert await one.read(37, 95) == rows[37:95]
            assert await one.read(50, 50) == []

    asyncio.run(go())


def test_outside_of_the_spool_there_is_nothing(tmp_path: Path):
    async def go() -> None:
        async with opened(tmp_path / "s") as one:
            await one.spool.take(TRACES, traffic.traces(range(5)), 5)
            await readable(one, 5)
            with pytest.raises(OutOfRangeError) as error:
                await one.read(2, 6)
            assert (error.value.begin, error.value.end) == (0, 5)

    asyncio.run(go())


def test_a_sealed_segment_is_an_arrow_file_for_everybody(tmp_path: Path):
    path = write_segment(
        tmp_path / "s", 3, [(TRACES, traffic.traces(range(7)), 7), (METRICS, traffic.metrics(), 2)]
    )
    (segment,) = sealing.seal(path, layout.identify(path.parent).salt).segments
    assert segment.path.name == f"{3:020d}-{12:020d}.arrow"
    table = pa.ipc.open_file(segment.path.read_bytes()).read_all()
    table.validate(full=True)
    assert table.column("offset").to_pylist() == list(range(3, 12))
    assert not path.exists()


def test_a_restart_goes_on_with_the_next_offset(tmp_path: Path):
    async def go() -> None:
        for turn in range(3):
            async with opened(tmp_path / "s", SLOW) as one:
                assert one.spool.state.taken == 10 * turn
                await one.spool.take(LOGS, traffic.deliveries(10 * turn, 10), 10)
        async with opened(tmp_path / "s") as one:
            await readable(one, 30)
            assert positions(await one.read(0, 30)) == list(range(30))
            assert one.corrupt == 0

    asyncio.run(go())


def test_two_processes_do_not_use_one_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(layout, "LOCK_S_MAX", 0.0)

    async def go() -> None:
        async with opened(tmp_path / "s"):
            with pytest.raises(layout.SpoolDirectoryError, match="another process"):
                Opened(tmp_path / "s")

    asyncio.run(go())


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"{", "damaged"), (b'{"format": 9, "spool_id": "x", "salt": 1}', "format 9"), (None, "missing")],
)
def test_a_directory_that_is_no_spool_of_ours_is_refused(tmp_path: Path, content: bytes | None, words: str):
    write_segment(tmp_path / "s", 0, [(TRACES, traffic.traces([0]), 1)])
    identity = tmp_path / "s" / layout.IDENTITY
    if content is None:
        identity.unlink()
    else:
        identity.write_bytes(content)
    with pytest.raises(layout.SpoolDirectoryError, match=words):
        layout.identify(tmp_path / "s")


# --- Bounds


def test_beyond_what_may_wait_nothing_is_taken(tmp_path: Path):
    payloads = [traffic.traces(range(first, first + 100)) for first in range(1000, 6100, 100)]
    waiting_max = 2 * max(map(len, payloads)) + 100
    limits = IntakeLimits(segment_bytes=1 << 20, seal_s=0.05, queue_bytes_max=waiting_max, reserve_bytes=0)

    async def go() -> None:
        async with opened(tmp_path / "s", limits) as one:
            results = await asyncio.gather(
                *(one.spool.take(TRACES, payload, 100) for payload in payloads[:50]), return_exceptions=True
            )
            refused = [result for result in results if isinstance(result, BusyError)]
            assert 0 < len(refused) < 50
            assert all(0.1 <= error.retry_after_s <= 5 for error in refused)
            assert one.spool.state.taken == 100 * (50 - len(refused))
            await one.spool.take(TRACES, payloads[-1], 100)

    asyncio.run(go())


def test_a_request_that_comes_again_is_stored_once_also_after_a_restart(tmp_path: Path):
    """Whether it waits for the disk, is on it, or is sealed; and also if whoever asked first has gone."""
    first, second, third = (traffic.traces([number]) for number in range(3))

    async def go() -> None:
        async with opened(tmp_path / "s") as one:
            both = await asyncio.gather(*(one.spool.take(TRACES, first, 1) for _ in range(2)))
            assert sorted(both) == [False, True]
            assert not await one.spool.take(TRACES, first, 1)
            assert await one.spool.take(LOGS, first, 1), "the same bytes say something else elsewhere"
            await readable(one, 2)
            assert not await one.spool.take(TRACES, first, 1)
            gone = asyncio.ensure_future(one.spool.take(TRACES, second, 1))
            await asyncio.sleep(0)
            gone.cancel()
            assert not await one.spool.take(TRACES, second, 1)
            await readable(one, 3)
        async with opened(tmp_path / "s", SLOW) as one:
            assert not await one.spool.take(TRACES, second, 1), "from a sealed segment, perhaps a merged one"
            assert await one.spool.take(TRACES, third, 1)
        async with opened(tmp_path / "s") as one:
            assert not await one.spool.take(TRACES, third, 1), "from one that was not sealed"
            await readable(one, 4)
            assert one.spool.state.taken == 4

    asyncio.run(go())


def test_what_comes_again_after_long_is_taken_for_new(monkeypatch: pytest.MonkeyPatch):
    lately = Lately([(time.time_ns(), b"a"), (time.time_ns() - int(2 * KEPT_S * 1e9), b"b")])
    lately.add(b"c")
    assert [mark in lately for mark in (b"a", b"b", b"c")] == [True, False, True]
    monkeypatch.setattr(spool_lately, "KEPT_MAX", 2)
    lately.add(b"d")
    assert [mark in lately for mark in (b"a", b"c", b"d")] == [False, True, True]


def test_beyond_what_may_wait_to_be_sealed_nothing_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def go() -> None:
        keeping = Keeping(retention_bytes=1 << 40, retention_age_s=None, unsealed_bytes_max=1)
        async with opened(tmp_path / "s", LIMITS, keeping) as one:
            held = asyncio.Event()
            perform = one.spool._sealer.perform

            async def wait_first(*arguments):
                await held.wait()
                return await perform(*arguments)

            monkeypatch.setattr(one.spool._sealer, "perform", wait_first)
            await one.spool.take(TRACES, traffic.traces([1]), 1)
            await until(lambda: one.spool._closed)
            with pytest.raises(BusyError):
                await one.spool.take(TRACES, traffic.traces([2]), 1)
            held.set()
            await readable(one, 1)
            await one.spool.take(TRACES, traffic.traces([2]), 1)

    asyncio.run(go())


def test_without_room_on_the_disk_nothing_is_taken(tmp_path: Path):
    limits = IntakeLimits(segment_bytes=1 << 20, seal_s=0.05, queue_bytes_max=1 << 20, reserve_bytes=1 << 60)

    async def go() -> None:
        async with opened(tmp_path / "s", limits) as one:
            with pytest.raises(FullError):
                await one.spool.take(TRACES, traffic.traces([1]), 1)
            await asyncio.sleep(0)
            assert one.counted("ordercast_storage_read_only") == 1
            assert one.spool.state.taken == 0

    asyncio.run(go())


def test_retention_by_bytes_lets_the_oldest_segments_go(tmp_path: Path):
    async def go() -> None:
        keeping = Keeping(retention_bytes=60_000, retention_age_s=None, unsealed_bytes_max=1 << 40)
        async with opened(tmp_path / "s", LIMITS, keeping) as one:
            for turn in range(12):
                await one.spool.take(LOGS, traffic.deliveries(200 * turn, 200), 200)
                await readable(one, 200 * turn + 200)
            await until(lambda: one.spool.catalogue.bytes <= 60_000)
            begin, end, taken = one.spool.state
            # Segments that were merged meanwhile may be more than is kept, and go as one.
            assert 0 < begin <= end == taken == 2400
            assert positions(await one.read(begin, end)) == list(range(begin, end))
            with pytest.raises(OutOfRangeError):
                await one.read(begin - 1, end)
        async with opened(tmp_path / "s", LIMITS, keeping) as one:
            assert one.spool.state == (begin, end, taken)

    asyncio.run(go())


def test_retention_by_age_may_leave_nothing_and_offsets_go_on(tmp_path: Path):
    async def go() -> None:
        keeping = Keeping(retention_bytes=1 << 40, retention_age_s=0.2, unsealed_bytes_max=1 << 40)
        async with opened(tmp_path / "s", LIMITS, keeping) as one:
            await one.spool.take(TRACES, traffic.traces(range(9)), 9)
            await until(lambda: one.spool.state.begin == 9)
            assert one.spool.state == (9, 9, 9)
        async with opened(tmp_path / "s") as one:
            assert one.spool.state == (9, 9, 9)
            await one.spool.take(TRACES, traffic.traces(range(3)), 3)
            await readable(one, 12)
            assert [row["offset"] for row in await one.read(9, 12)] == [9, 10, 11]

    asyncio.run(go())


# --- Merging


def test_many_small_segments_become_few(tmp_path: Path):
    async def go() -> None:
        async with opened(tmp_path / "s", IntakeLimits(1 << 20, 0.01, 1 << 20, 0)) as one:
            for turn in range(30):
                await one.spool.take(LOGS, traffic.deliveries(10 * turn, 10), 10)
                await readable(one, 10 * turn + 10)
            await until(lambda: len(one.spool.catalogue) < 16)
            assert positions(await one.read(0, 300)) == list(range(300))
            firsts = one.spool.catalogue.firsts(0, 100)
            assert firsts[0] == 0
            assert one.spool.catalogue.firsts(299, 100) == firsts[-1:]

    asyncio.run(go())


def test_segments_of_mixed_sizes_are_merged_too_and_gaps_are_not_closed(tmp_path: Path):
    def segment(first: int, size: int) -> Segment:
        return Segment(first, first + 10, size, 0, tmp_path)

    mixed = [segment(10 * i, (100, 900)[i % 2]) for i in range(MERGE_COUNT)]
    assert Catalogue(mixed, 1 << 20).to_merge() == mixed
    assert Catalogue(mixed[:-1], 1 << 20).to_merge() == []
    assert Catalogue([*mixed[:4], *(segment(1000 + 10 * i, 100) for i in range(4))], 1 << 20).to_merge() == []
    assert Catalogue([segment(10 * i, 1 << 18) for i in range(40)], 1 << 20).to_merge() == []
    apart = Catalogue(mixed, 1 << 20)
    apart.leave_apart(mixed)
    assert apart.to_merge() == []


def test_a_segment_that_cannot_be_merged_is_left_alone(tmp_path: Path):
    directory = tmp_path / "s"
    for first in range(0, 80, 10):
        path = write_segment(directory, first, [(LOGS, traffic.deliveries(first, 10), 10)])
        (segment,) = sealing.seal(path, layout.identify(directory).salt).segments
        if first == 30:
            with SealedFile(segment.path) as file:
                flip(segment.path, file.index.pieces[0].position + 300)

    async def go() -> None:
        async with opened(directory) as one:
            await until(lambda: one.spool.catalogue._apart)
            assert positions(await one.read(0, 30)) == list(range(30))
            assert positions(await one.read(40, 80)) == list(range(40, 80))

    asyncio.run(go())


def test_a_reader_is_not_troubled_by_segments_that_are_merged_meanwhile(tmp_path: Path):
    async def go() -> None:
        async with opened(tmp_path / "s", IntakeLimits(1 << 20, 0.01, 1 << 20, 0)) as one:
            for turn in range(40):
                await one.spool.take(LOGS, traffic.deliveries(10 * turn, 10), 10)
                end = one.spool.state.end
                assert positions(await one.read(0, end)) == list(range(end))

    asyncio.run(go())


def test_recovery_reads_nothing_twice_that_is_sealed_already(tmp_path: Path):
    path = write_segment(tmp_path / "s", 0, [(TRACES, traffic.traces(range(4)), 4)])
    copy = path.read_bytes()
    salt = layout.identify(path.parent).salt
    sealing.seal(path, salt)
    path.write_bytes(copy)
    found = recovery.recover(tmp_path / "s", salt)
    assert (len(found.sealed), found.closed, found.next, found.damaged, found.is_torn) == (1, [], 4, [], False)
    assert not path.exists()
