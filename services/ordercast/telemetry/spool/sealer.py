"""The receiver's side of the sealer: gives it jobs one at a time, and starts it again when it dies."""

import asyncio
import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import structlog

log = structlog.get_logger("sealer")

STOP_S_MAX = 10.0
#: An answer names the segments that came out: as many as places in one that are damaged.
ANSWER_BYTES_MAX = 64 << 20


class SealerDiedError(Exception):
    """In the middle of a job."""


class Sealer:
    def __init__(self, lock: int, salt: int) -> None:
        """The lock's descriptor is handed on."""
        self._lock = lock
        self._salt = salt
        self._process: asyncio.subprocess.Process | None = None

    async def perform(self, what: str, paths: Sequence[Path]) -> dict[str, Any]:
        """SealerDiedError if it did not live to answer; an answer may also say `error`."""
        process = await self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        job = {"do": what, "paths": [str(path) for path in paths], "salt": self._salt}
        try:
            process.stdin.write(json.dumps(job).encode() + b"\n")
            await process.stdin.drain()
            line = await process.stdout.readline()
            answer = json.loads(line) if line.endswith(b"\n") else None
        except (OSError, ValueError):
            answer = None
        if answer is None:
            await self.stop()
            raise SealerDiedError(f"the sealer died with {process.returncode}")
        return answer

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "ordercast.telemetry.spool.worker",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                pass_fds=[self._lock],
                limit=ANSWER_BYTES_MAX,
            )
        return self._process

    async def stop(self) -> None:
        """It may finish what it has in hand; what it does not finish is done again at the next start."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), STOP_S_MAX)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
