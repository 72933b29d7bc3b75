"""Damage to the spool, and work that is cut off: it costs what is damaged, is told, and costs nothing else."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from ordercast.telemetry.flatten.requests import LOGS
from ordercast.telemetry.spool import layout, recovery, sealing
from ordercast.telemetry.spool.pieces import LossError
from ordercast.telemetry.spool.sealed import DamagedError, SealedFile
from ordercast.telemetry.spool.sealer import SealerDiedError
from ordercast.telemetry.spool.spool import Keeping
from tests.telemetry import traffic
from tests.telemetry.spooling import (
    LIMITS,
    Opened,
    flip,
    frames_of,
    opened,
    positions,
    readable,
    until,
    write_segment,
)

# --- Damage


def test_a_torn_end_is_cut_off_wherever_it_is(tmp_path: Path):
    requests = [(LOGS, traffic.deliveries(10 * i, 10), 10) for i in range(4)]
    path = write_segment(tmp_path / "s", 0, requests)
    salt = layout.identify(path.parent).salt
    content = path.read_bytes()
    ends = [0, *(frame.end for frame in frames_of(path))]
    for cut in range(0, len(content), 37):
        path.write_bytes(content[:cut])
        whole = sum(end <= cut for end in ends) - 1
        found = recovery.recover(path.parent, salt)
        assert found.next == 10 * whole
        assert found.is_torn == (cut not in ends)
        if whole:
            assert path.read_bytes() == content[: ends[whole]]
        else:
            assert not path.exists()


def test_behind_a_torn_end_offsets_go_on(tmp_path: Path):
    path = write_segment(tmp_path / "s", 0, [(LOGS, traffic.deliveries(10 * i, 10), 10) for i in range(4)])
    path.write_bytes(path.read_bytes()[:-1])

    async def go() -> None:
        async with opened(tmp_path / "s") as one:
            assert one.corrupt == 1
            await one.spool.take(LOGS, traffic.deliveries(30, 5), 5)
            await readable(one, 35)
            assert positions(await one.read(0, 35)) == list(range(35))

    asyncio.run(go())


def test_damage_in_the_middle_costs_only_what_is_damaged(tmp_path: Path):
    requests = [(LOGS, traffic.deliveries(10 * i, 10), 10) for i in range(5)]
    path = write_segment(tmp_path / "s", 0, requests)
    flip(path, frames_of(path)[2].begin + 5)

    async def go() -> None:
        async with opened(tmp_path / "s") as one:
            await readable(one, 50)
            assert one.corrupt == 1
            assert one.spool.state == (0, 50, 50)
            with pytest.raises(LossError) as error:
                await one.read(5, 50)
            assert (error.value.begin, error.value.end) == (20, 30)
            assert positions(await one.read(0, 20)) == list(range(20))
            assert positions(await one.read(30, 50)) == list(range(30, 50))
            assert len(list((tmp_path / "s").glob("*.damaged"))) == 1
        async with opened(tmp_path / "s") as one:
            assert one.spool.state == (0, 50, 50)
            with pytest.raises(LossError):
                await one.read(0, 50)

    asyncio.run(go())


def test_a_batch_that_is_damaged_on_disk_is_told_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sealing, "BATCH_ROWS_MAX", 10)
    path = write_segment(tmp_path / "s", 0, [(LOGS, traffic.deliveries(10 * i, 10), 10) for i in range(5)])
    (segment,) = sealing.seal(path, layout.identify(path.parent).salt).segments
    with SealedFile(segment.path) as file:
        flip(segment.path, file.index.pieces[3].position + 200)

    async def go() -> None:
        async with opened(tmp_path / "s") as one:
            with pytest.raises(LossError) as error:
                await one.read(0, 50)
            assert (error.value.begin, error.value.end) == (30, 40)
            assert positions(await one.read(0, 30)) == list(range(30))
            assert positions(await one.read(40, 50)) == list(range(40, 50))
            with pytest.raises(LossError) as error:
                await one.read(35, 50)
            assert (error.value.begin, error.value.end) == (35, 40)
            assert one.corrupt == 1

    asyncio.run(go())


@pytest.mark.parametrize("place", ["index", "end", "schema", "nothing", "gone"])
def test_a_sealed_segment_that_cannot_be_read_costs_only_itself(tmp_path: Path, place: str):
    for first in (0, 10, 20):
        path = write_segment(tmp_path / "s", first, [(LOGS, traffic.deliveries(first, 10), 10)])
        (segment,) = sealing.seal(path, layout.identify(path.parent).salt).segments
        if first == 10:
            victim = segment.path

    async def go() -> None:
        if place != "gone":
            break_segment(victim, place)
        async with opened(tmp_path / "s") as one:
            if place == "gone":
                victim.unlink()
            with pytest.raises(LossError) as error:
                await one.read(0, 30)
            assert (error.value.begin, error.value.end) == (10, 20)
            assert positions(await one.read(20, 30)) == list(range(20, 30))
            assert one.corrupt == 1

    asyncio.run(go())


def break_segment(path: Path, place: str) -> None:
    content = path.read_bytes()
    match place:
        case "index":
            flip(path, content.rindex(b"OCTINDEX") - 20)
        case "end":
            flip(path, len(content) - 1)
        case "schema":
            flip(path, 100)
        case "nothing":
            path.write_bytes(b"")


def test_flipped_bytes_anywhere_are_noticed(tmp_path: Path):
    """No byte of a sealed segment that is given to readers can change without a word."""
    path = write_segment(tmp_path / "s", 0, [(LOGS, traffic.deliveries(0, 20), 20)])
    (segment,) = sealing.seal(path, layout.identify(path.parent).salt).segments
    with SealedFile(segment.path) as file:
        (piece,) = file.index.pieces
        right = file.schema + file.read(piece)
    for position in range(0, segment.bytes, 97):
        flip(segment.path, position)
        try:
            with SealedFile(segment.path) as file:
                assert file.schema + file.read(file.index.pieces[0]) == right
        except DamagedError:
            pass
        flip(segment.path, position)


# --- Sealing that is cut off


def test_sealing_that_is_cut_off_at_any_point_is_done_again(tmp_path: Path):
    """After each step that leaves something on the disk the process is gone, and comes back."""
    requests = [(LOGS, traffic.deliveries(10 * i, 10), 10) for i in range(3)]
    path = write_segment(tmp_path / "s", 0, requests)
    salt = layout.identify(path.parent).salt

    async def go(directory: Path) -> None:
        async with opened(directory) as one:
            await readable(one, 30)
            assert positions(await one.read(0, 30)) == list(range(30))
            assert one.spool.state == (0, 30, 30)
            assert one.corrupt == 0
            assert {each.suffix for each in directory.iterdir()} == {".arrow", ".otlp", ".json", ".lock"}

    half = tmp_path / "half-written"
    shutil.copytree(tmp_path / "s", half)
    (half / f"{0:020d}-{30:020d}.arrow.77-ab.tmp").write_bytes(b"ARROW1 and no more")
    not_removed = tmp_path / "not-removed"
    shutil.copytree(tmp_path / "s", not_removed)
    sealing.seal(path, salt)
    shutil.copy(tmp_path / "s" / f"{0:020d}-{30:020d}.arrow", not_removed)
    for directory in (half, not_removed, tmp_path / "s"):
        asyncio.run(go(directory))


def test_merging_that_is_cut_off_leaves_every_record_once(tmp_path: Path):
    directory = tmp_path / "s"
    paths = []
    for first in range(0, 60, 20):
        path = write_segment(directory, first, [(LOGS, traffic.deliveries(first, 20), 20)])
        paths += [segment.path for segment in sealing.seal(path, layout.identify(directory).salt).segments]
    sealing.merge(paths)
    paths[1].unlink()

    async def go() -> None:
        async with opened(directory) as one:
            assert len(one.spool.catalogue) == 1
            assert positions(await one.read(0, 60)) == list(range(60))
            assert len(list(directory.glob("*.arrow"))) == 1

    asyncio.run(go())


def test_a_merged_segment_that_is_damaged_gives_way_to_what_it_was_made_of(tmp_path: Path):
    directory = tmp_path / "s"
    paths = []
    for first in (0, 20):
        path = write_segment(directory, first, [(LOGS, traffic.deliveries(first, 20), 20)])
        paths += [segment.path for segment in sealing.seal(path, layout.identify(directory).salt).segments]
    break_segment(sealing.merge(paths).path, "index")

    async def go() -> None:
        async with opened(directory) as one:
            assert one.corrupt == 1
            assert positions(await one.read(0, 40)) == list(range(40))

    asyncio.run(go())


def test_a_sealer_that_dies_is_started_again_and_loses_nothing(tmp_path: Path):
    async def go() -> None:
        async with opened(tmp_path / "s") as one:
            await one.spool.take(LOGS, traffic.deliveries(0, 10), 10)
            await readable(one, 10)
            process = one.spool._sealer._process
            assert process is not None
            process.kill()
            await one.spool.take(LOGS, traffic.deliveries(10, 10), 10)
            await readable(one, 20)
            assert positions(await one.read(0, 20)) == list(range(20))

    asyncio.run(go())


def test_a_segment_that_kills_the_sealer_is_set_aside_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def go() -> None:
        async with opened(tmp_path / "s") as one:
            perform = one.spool._sealer.perform

            async def dies(what: str, paths: list[Path]):
                if paths[0].name.startswith(f"{0:020d}"):
                    process = await one.spool._sealer._running()
                    process.kill()
                    await process.wait()
                    one.spool._sealer._process = process
                    raise sealer_error
                return await perform(what, paths)

            sealer_error = SealerDiedError("killed")
            monkeypatch.setattr(one.spool._sealer, "perform", dies)
            await one.spool.take(LOGS, traffic.deliveries(0, 10), 10)
            await readable(one, 10)
            await one.spool.take(LOGS, traffic.deliveries(10, 10), 10)
            await readable(one, 20)
            assert one.corrupt == 1
            assert positions(await one.read(10, 20)) == list(range(10, 20))
            assert [path.name for path in (tmp_path / "s").glob("*.damaged")] == [f"{0:020d}.otlp.damaged"]

    asyncio.run(go())


def test_while_the_sealer_finds_no_room_the_oldest_still_go_and_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What it says when the disk is full is made up; that it leaves no half of a file is not."""

    async def go() -> None:
        keeping = Keeping(retention_bytes=1 << 40, retention_age_s=1.0, unsealed_bytes_max=1 << 40)
        async with opened(tmp_path / "s", LIMITS, keeping) as one:
            await one.spool.take(LOGS, traffic.deliveries(0, 10), 10)
            await readable(one, 10)
            perform = one.spool._sealer.perform

            async def no_room(*_):
                return {"error": "OSError: no room", "errno": 28}

            monkeypatch.setattr(one.spool._sealer, "perform", no_room)
            await one.spool.take(LOGS, traffic.deliveries(10, 10), 10)
            await until(lambda: len(one.spool.catalogue) == 0)
            assert one.spool.state == (10, 10, 20)
            monkeypatch.setattr(one.spool._sealer, "perform", perform)
            await readable(one, 20)
            assert one.corrupt == 0

    asyncio.run(go())
    monkeypatch.setattr(layout.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "no room")))
    with pytest.raises(OSError, match="no room"):
        layout.write_whole(tmp_path / "s" / "new", b"content")
    assert [path.name for path in (tmp_path / "s").iterdir() if "new" in path.name] == []


def test_a_segment_that_somebody_took_away_is_lost_and_the_rest_goes_on(tmp_path: Path):
    for first in (0, 10):
        write_segment(tmp_path / "s", first, [(LOGS, traffic.deliveries(first, 10), 10)])

    async def go() -> None:
        one = Opened(tmp_path / "s")
        layout.open_path(tmp_path / "s", 0).unlink()
        one.spool.start()
        try:
            await readable(one, 20)
            assert one.corrupt == 1
            assert positions(await one.read(10, 20)) == list(range(10, 20))
        finally:
            await one.spool.stop()

    asyncio.run(go())


def test_of_what_was_set_aside_only_the_latest_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(layout, "DAMAGED_MAX", 3)
    for number in range(5):
        path = tmp_path / f"{number}.damaged"
        path.write_bytes(b"?")
        os.utime(path, ns=(number, number))
    layout.forget_old_damage(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2.damaged", "3.damaged", "4.damaged"]
