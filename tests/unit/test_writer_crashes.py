"""The writer in a process that is killed, whose disk lies, or whose disk fails: what is there afterwards."""

import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

from ordercast.runtime.storage.store import Storage
from ordercast.runtime.storage.writer import EXIT_STATUS_FATAL
from ordercast.v1.sequencer_pb2 import LogEntry
from tests.unit.test_storage import MAP_BYTES, NO_LIMIT

CHILD = """
import asyncio, sys
from pathlib import Path
from ordercast.runtime.storage.store import Storage
from ordercast.runtime.storage.writer import Writer
from ordercast.v1.sequencer_pb2 import LogEntry

async def main(directory, early_s, fails):
    storage = Storage(Path(directory), map_bytes=1 << 26)
    loop = asyncio.get_running_loop()
    def durable(ticket):
        print(made[ticket], flush=True)
    writer = Writer(storage, loop, on_durable=durable, on_full=print, wall_ms=lambda: 0, reserve_bytes=0)
    writer.faults.answer_before_sync_s = float(early_s)
    writer.faults.fsync_fails = fails == "fails"
    made, number = {}, storage.bounds("g").ends
    while True:
        # The number of the last entry of each ticket; the record says the same as the log.
        number += 1
        record = (b"last", str(number).encode())
        ticket = writer.add("d", "r", [record], [("g", number - 1, LogEntry(first_offset=number))])
        made[ticket] = number
        writer.kick()
        await asyncio.sleep(0.0005)

asyncio.run(main(*sys.argv[1:]))
"""


def start_child(directory: Path, early_s: float = 0.0, fails: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, str(directory), str(early_s), fails]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kill_and_reap(child: subprocess.Popen[str]) -> int:
    """The last number that was reported durable; half a line was not reported."""
    child.send_signal(signal.SIGKILL)
    rest, _ = child.communicate()
    whole = rest[: rest.rfind("\n") + 1].split()
    return int(whole[-1]) if whole else 0


def numbers_on_disk(directory: Path) -> tuple[int, int]:
    storage = Storage(directory, map_bytes=MAP_BYTES)
    records = dict(storage.records("d", "r"))
    entries = storage.read("g", 0, 1_000_000, NO_LIMIT)
    storage.close()
    assert [LogEntry.FromString(e.data).first_offset for e in entries] == list(range(1, len(entries) + 1))
    return len(entries), int(records.get(b"last", b"0"))


def test_a_killed_process_has_on_disk_at_least_what_was_reported_and_only_whole_transactions(tmp_path):
    chance = random.Random(7)
    for _ in range(5):
        child = start_child(tmp_path)
        assert child.stdout is not None
        reported = 0
        for _ in range(chance.randrange(1, 60)):
            reported = int(child.stdout.readline())
        threading.Event().wait(chance.random() * 0.01)
        reported = max(reported, kill_and_reap(child))
        entries, last = numbers_on_disk(tmp_path)
        assert entries == last
        assert entries >= reported > 0


def test_a_disk_that_answers_too_early_loses_what_it_reported(tmp_path):
    child = start_child(tmp_path, early_s=3600.0)
    assert child.stdout is not None
    reported = child.stdout.readline()
    kill_and_reap(child)
    assert int(reported) >= 1
    assert numbers_on_disk(tmp_path) == (0, 0)


def test_by_default_a_failed_sync_ends_the_process(tmp_path):
    child = start_child(tmp_path, fails="fails")
    out, err = child.communicate()
    assert child.returncode == EXIT_STATUS_FATAL
    assert out == ""
    assert "the sync fails" in err
    assert numbers_on_disk(tmp_path) == (0, 0)
