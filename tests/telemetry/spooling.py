"""A spool in a test's own event loop: real files, a real sealer, and no server."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from prometheus_client import CollectorRegistry

from ordercast.analytics.spool_client import cut
from ordercast.runtime.telemetry import meters
from ordercast.runtime.telemetry.exposition import Exposition
from ordercast.telemetry.meters import Meters
from ordercast.telemetry.spool import layout
from ordercast.telemetry.spool.frames import Frame, header, scan
from ordercast.telemetry.spool.intake import IntakeLimits
from ordercast.telemetry.spool.spool import Keeping, Spool
from tests.telemetry.process import WAIT_S_MAX

LIMITS = IntakeLimits(segment_bytes=1 << 20, seal_s=0.05, queue_bytes_max=16 << 20, reserve_bytes=0)
#: Nothing is closed by itself.
SLOW = IntakeLimits(segment_bytes=1 << 30, seal_s=3600.0, queue_bytes_max=16 << 20, reserve_bytes=0)
KEEPING = Keeping(retention_bytes=1 << 40, retention_age_s=None, unsealed_bytes_max=1 << 40)


class Opened:
    """A spool, and what it counts."""

    def __init__(self, directory: Path, limits: IntakeLimits = LIMITS, keeping: Keeping = KEEPING) -> None:
        told = meters.Meters()
        self.registry = CollectorRegistry()
        self.registry.register(Exposition(told))
        self.spool = Spool(directory, limits, keeping, Meters(told))

    def counted(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0

    @property
    def corrupt(self) -> float:
        return self.counted("ordercast_spool_corrupt_total")

    async def read(self, begin: int, end: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        async for arrow in self.spool.read(begin, end):
            for batch in pa.ipc.open_stream(arrow):
                found += cut(batch, begin, end).to_pylist()
        return found


@contextlib.asynccontextmanager
async def opened(
    directory: Path, limits: IntakeLimits = LIMITS, keeping: Keeping = KEEPING
) -> AsyncIterator[Opened]:
    one = Opened(directory, limits, keeping)
    one.spool.start()
    try:
        yield one
    finally:
        await one.spool.stop()


def write_segment(directory: Path, first: int, requests: list[tuple[str, bytes, int]]) -> Path:
    """As the intake writes it: (signal, payload, records)."""
    directory.mkdir(exist_ok=True)
    salt = layout.identify(directory).salt
    content = b""
    at = first
    for signal, payload, records in requests:
        content += header(signal, at, records, 5, payload, salt) + payload
        at += records
    path = layout.open_path(directory, first)
    path.write_bytes(content)
    return path


def frames_of(path: Path) -> list[Frame]:
    salt = layout.identify(path.parent).salt
    return [found for found in scan(memoryview(path.read_bytes()), salt) if isinstance(found, Frame)]


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0x40
    path.write_bytes(content)


async def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + WAIT_S_MAX
    while not condition():
        assert time.monotonic() < end, "it does not come to pass"
        await asyncio.sleep(0.01)


async def readable(one: Opened, end: int) -> None:
    await until(lambda: one.spool.state.end >= end)


def positions(rows: list[dict[str, Any]]) -> list[int]:
    return [row["position"] for row in rows]
