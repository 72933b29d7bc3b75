"""A log whose last entries are damaged: it goes on behind them, says so to readers, and is mended in any order."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ordercast.core.errors import InvariantBroken
from ordercast.runtime.storage.layout import BadEntryError, CorruptRecord, StoredEntry, log_key, log_prefix
from tests.unit.test_storage import NO_LIMIT, entry, raw_flip, raw_put
from tests.unit.test_writer import Rig, on_a_loop

COUNT = 5
KEYS = [log_key(log_prefix("g"), position) for position in range(COUNT)]


async def damaged(
    directory: Path, damage: Callable[[bytes], None], *positions: int
) -> tuple[Rig, list[StoredEntry]]:
    """A log of five, two messages each, with damage at these places; and how it was before."""
    rig = Rig(directory)
    rig.append("g", 0, *[entry(i * 2, 2, size=30) for i in range(COUNT)])
    await rig.flush()
    whole = rig.storage.read("g", 0, 9, NO_LIMIT)
    rig.close()
    for position in positions:
        damage(KEYS[position])
    return Rig(directory), whole


def flip(directory: Path) -> Callable[[bytes], None]:
    return lambda key: raw_flip(directory, b"logs", key, -1)


def cut(directory: Path) -> Callable[[bytes], None]:
    return lambda key: raw_put(directory, b"logs", key, b"abc")


@pytest.mark.parametrize("how", [flip, cut])
@pytest.mark.parametrize("count", [1, 2, COUNT])
def test_a_log_goes_on_behind_its_damaged_end_and_readers_are_not_told_less(tmp_path: Path, how, count: int):
    async def story() -> None:
        rig, whole = await damaged(tmp_path, how(tmp_path), *range(COUNT - count, COUNT))
        with pytest.raises(CorruptRecord):
            rig.storage.bounds("g")
        with pytest.raises(CorruptRecord):
            rig.writer.own_bounds("g")
        assert rig.storage.positions("g") == range(COUNT)
        rig.append("g", COUNT, entry(COUNT * 2, 1))
        assert rig.writer.own_bounds("g").next_offset == COUNT * 2 + 1
        await rig.flush()
        assert rig.storage.bounds("g").ends == COUNT + 1
        with pytest.raises(CorruptRecord) as raised:
            rig.storage.read("g", 0, 9, NO_LIMIT)
        assert raised.value.position == COUNT - count
        for position in range(COUNT - count, COUNT):
            rig.writer.repair("g", position, whole[position].data)
        await rig.flush()
        assert rig.storage.read("g", 0, COUNT, NO_LIMIT) == whole
        rig.close()

    asyncio.run(story())


@pytest.mark.parametrize("order", list(itertools.permutations((2, 3, 4))))
def test_damaged_ends_are_mended_in_any_order(tmp_path: Path, order: tuple[int, ...]):
    async def story() -> None:
        rig, whole = await damaged(tmp_path, flip(tmp_path), *order)
        for position in order:
            rig.writer.repair("g", position, whole[position].data)
        assert rig.writer.read_own("g", 0, 9, NO_LIMIT) == whole
        await rig.flush()
        assert rig.storage.read("g", 0, 9, NO_LIMIT) == whole
        assert rig.storage.bounds("g") == rig.writer.own_bounds("g")
        assert rig.storage.bounds("g").next_offset == COUNT * 2
        rig.close()

    asyncio.run(story())


def on_damaged(
    *positions: int,
) -> Callable[[Callable[[Rig, list[StoredEntry]], Awaitable[None]]], Callable[[Path], None]]:
    def decorate(test: Callable[[Rig, list[StoredEntry]], Awaitable[None]]) -> Callable[[Path], None]:
        @on_a_loop
        async def run(tmp_path: Path) -> None:
            rig, whole = await damaged(tmp_path, flip(tmp_path), *positions)
            await test(rig, whole)
            rig.close()

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate


@on_damaged(4)
async def test_what_comes_behind_a_damaged_end_still_has_to_fit(rig: Rig, whole: list[StoredEntry]):
    for position, offset in ((4, 10), (6, 10), (5, 7)):
        with pytest.raises(InvariantBroken):
            rig.append("g", position, entry(offset, 1))


@on_damaged(4)
async def test_another_entry_is_no_repair_of_the_end(rig: Rig, whole: list[StoredEntry]):
    rig.append("g", 5, entry(10, 1))
    for data in (entry(7, 2).SerializeToString(), entry(8, 3).SerializeToString(), b"\xff"):
        with pytest.raises(BadEntryError):
            rig.writer.repair("g", 4, data)
    rig.writer.repair("g", 4, whole[4].data)


@on_damaged(4)
async def test_a_new_log_takes_the_place_of_one_with_a_damaged_end(rig: Rig, whole: list[StoredEntry]):
    rig.append("g", 9, None)
    rig.append("g", 9, entry(40, 1))
    await rig.flush()
    bounds = rig.storage.bounds("g")
    assert (bounds.begins, bounds.ends, bounds.first_offset, bounds.next_offset) == (9, 10, 40, 41)


@on_damaged(1, 3)
async def test_retention_passes_over_damaged_entries_and_drops_nothing_early_for_them(
    rig: Rig, whole: list[StoredEntry]
):
    for kept in range(1, COUNT + 1):
        floor = rig.storage.floor("g", sum(len(e.data) for e in whole[-kept:]), 0)
        # A damaged one goes with the one behind it.
        assert COUNT - kept - 1 <= floor <= COUNT - kept
    rig.writer.truncate("g", 4)
    await rig.flush()
    assert rig.storage.read("g", 4, 9, NO_LIMIT) == whole[4:]


@on_damaged(4)
async def test_nothing_is_cut_at_a_damaged_end(rig: Rig, whole: list[StoredEntry]):
    with pytest.raises(CorruptRecord):
        rig.writer.truncate("g", 5)
    assert rig.storage.floor("g", 1, 0) <= 4


@on_damaged(1, 4)
async def test_damage_that_is_met_again_and_again_uses_up_nothing(rig: Rig, whole: list[StoredEntry]):
    """Whoever keeps what was raised keeps no transaction with it: there is only so much room for readers."""
    kept = []
    for _ in range(2000):
        for look in (
            lambda: rig.storage.read("g", 0, 9, NO_LIMIT),
            lambda: rig.storage.bounds("g"),
            lambda: rig.storage.header("g", 1),
            lambda: rig.writer.own_bounds("g"),
        ):
            with pytest.raises(CorruptRecord) as raised:
                look()
            kept.append(raised)
    assert len(rig.storage.env.readers().splitlines()) < 20
