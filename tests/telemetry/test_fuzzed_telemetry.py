"""Requests of OTLP, and spools, with anything in them: refused as a whole, or set aside record by record."""

import io
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from ordercast.analytics.spool_client import SpoolError, batches_of
from ordercast.runtime.transport.status import Refused
from ordercast.telemetry.flatten import requests
from ordercast.telemetry.flatten.requests import LOGS, METRICS, REQUESTS, TRACES
from ordercast.telemetry.flatten.rows import Rows
from ordercast.telemetry.receiver import Receiver
from ordercast.telemetry.schema import names
from ordercast.telemetry.spool.frames import Frame, header, scan
from ordercast.telemetry.spool.sealed import DamagedError, SealedFile, write_sealed
from tests.telemetry import traffic
from tests.unit.fuzzing import FUZZED_INPUTS, change_bytes, changed, with_an_end

BYTES_MAX, RECORDS_MAX = 1 << 20, 1000
SALT = 77
VALID = {
    TRACES: traffic.traces(range(3)),
    METRICS: traffic.metrics(2),
    LOGS: traffic.deliveries(0, 3),
}


class Counted:
    """Meters of which nobody asks anything."""

    def __init__(self) -> None:
        self.refusals = 0

    def refused(self, reason: str) -> None:
        self.refusals += 1


def payloads(random: Random, count: int) -> Iterator[tuple[str, bytes]]:
    """Valid requests of each signal with something changed, in a field or in a byte."""
    for number in range(count):
        signal = list(VALID)[number % len(VALID)]
        request = changed(REQUESTS[signal].FromString(VALID[signal]), random)
        payload = request.SerializeToString()
        yield signal, change_bytes(payload, random) if random.random() < 0.3 else payload


def receive(count: int) -> tuple[int, int]:
    """How many were taken, and how many refused."""
    meters: Any = Counted()
    receiver = Receiver(None, meters, BYTES_MAX, RECORDS_MAX)  # type: ignore[arg-type]  # nothing gets to a sink
    taken = 0
    for signal, payload in payloads(Random("requests"), count):
        before = meters.refusals
        try:
            records = receiver._counted(signal, payload)
        except Refused:
            assert meters.refusals == before + 1
            continue
        assert records <= RECORDS_MAX
        rows = Rows()
        requests.add(rows, signal, payload, 0, records, traffic.BASE_NS)
        assert rows.finished().num_rows == records, "each record is a row, be it one that says what is wrong"
        taken += 1
    return taken, meters.refusals


def test_the_receiver_takes_or_refuses_whatever_is_sent():
    with with_an_end():
        taken, refused = receive(900)
    assert taken > 200
    assert refused > 50


@pytest.mark.long
def test_the_receiver_takes_or_refuses_a_great_many_of_them():
    receive(3 * FUZZED_INPUTS)


# ------------------------------------------------------------------------------------------------- what is on disk


def segment() -> bytes:
    found = b""
    for first, (signal, payload) in enumerate(VALID.items()):
        found += header(signal, first, 1, traffic.BASE_NS, payload, SALT) + payload
    return found


def read_segments(count: int) -> None:
    random, whole = Random("segments"), segment()
    known = [
        bytes(whole[each.begin : each.end]) for each in scan(memoryview(whole), SALT) if isinstance(each, Frame)
    ]
    for _ in range(count):
        data = change_bytes(whole, random)
        at = 0
        for each in scan(memoryview(data), SALT):
            assert each.end > at, "it goes on"
            at = each.end
            if isinstance(each, Frame):
                assert data[each.begin : each.end] in known, "what was changed passes for a frame"
        assert at == len(data)


def test_segments_with_anything_in_them_are_read_to_their_end():
    with with_an_end():
        read_segments(1500)


def arrow() -> pa.RecordBatch:
    rows = Rows()
    requests.add(rows, TRACES, VALID[TRACES], 0, 3, traffic.BASE_NS)
    return rows.finished()


def read_sealed(directory: Path, count: int) -> None:
    random = Random("sealed")
    path = write_sealed(directory, [arrow()]).path
    whole = path.read_bytes()
    for _ in range(count):
        path.write_bytes(change_bytes(whole, random))
        with suppress(DamagedError), SealedFile(path) as file:
            for piece in file.index.pieces:
                assert file.batch(piece).num_rows == 3


def test_sealed_segments_with_anything_in_them_are_whole_or_damaged(tmp_path):
    with with_an_end():
        read_sealed(tmp_path, 500)


def stream() -> bytes:
    batch, sink = arrow(), io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def read_streams(count: int) -> None:
    random, whole = Random("streams"), stream()
    assert [batch.num_rows for batch in batches_of(whole)] == [3]
    for _ in range(count):
        with suppress(SpoolError):
            for batch in batches_of(change_bytes(whole, random)):
                assert batch.schema.get_field_index(names.COLUMN_OFFSET) >= 0


def test_what_a_spool_sends_is_read_or_is_an_error_of_the_spool():
    with with_an_end():
        read_streams(1000)


@pytest.mark.long
def test_a_great_many_damaged_spools_are_read(tmp_path):
    read_segments(FUZZED_INPUTS)
    read_sealed(tmp_path, FUZZED_INPUTS // 20)
    read_streams(FUZZED_INPUTS // 5)
