"""The OTLP side and the reading side over real gRPC: what is taken, what is refused and how, and what readers
get."""

import asyncio
import contextlib
import os
import random
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ordercast.analytics.spool_client import Lost, SpoolAwayError, SpoolClient, SpoolLossError, SpoolRangeError
from ordercast.local.cluster import free_ports
from ordercast.telemetry.flatten.requests import LOGS, METRICS, TRACES, count, parse
from ordercast.telemetry.service import serving
from ordercast.telemetry.settings import Settable
from ordercast.telemetry.spool.sealed import SealedFile
from ordercast.v1.telemetry_pb2 import ReadSpoolRequest
from ordercast.v1.telemetry_pb2_grpc import TelemetryServiceStub
from tests.telemetry import traffic
from tests.telemetry.process import METHODS, WAIT_S_MAX
from tests.telemetry.spooling import flip


class Served:
    def __init__(self, settings: Settable, channel: grpc.aio.Channel) -> None:
        self.settings = settings
        self.channel = channel
        self.address = settings.listen

    async def export(self, signal: str, payload: bytes, **options: Any) -> bytes:
        return await self.channel.unary_unary(METHODS[signal])(payload, timeout=WAIT_S_MAX, **options)

    async def in_a_thread(self, use: Callable[[SpoolClient], Any]) -> Any:
        """What readers do without asyncio."""

        def go() -> Any:
            with SpoolClient(self.address, patience_s=WAIT_S_MAX) as client:
                return use(client)

        return await asyncio.to_thread(go)

    async def readable(self, end: int) -> None:
        while (await self.in_a_thread(lambda client: client.describe())).end < end:
            await asyncio.sleep(0.02)

    async def read(self, begin: int, end: int) -> list[dict[str, Any]]:
        await self.readable(end)
        return await self.in_a_thread(
            lambda client: [row for batch in client.read(begin, end) for row in batch.to_pylist()]
        )

    async def metrics(self) -> str:
        def get() -> str:
            with urllib.request.urlopen(f"http://{self.settings.metrics_listen}/metrics", timeout=10) as answer:
                return answer.read().decode()

        return await asyncio.to_thread(get)

    async def counted(self, sample: str) -> float:
        lines = (await self.metrics()).splitlines()
        return float(next(line for line in lines if line.startswith(sample + " ")).split()[1])


@contextlib.asynccontextmanager
async def served(directory: Path, **settings: Any) -> AsyncIterator[Served]:
    ports = free_ports(2)
    given = {"listen": f"127.0.0.1:{ports[0]}", "metrics_listen": f"127.0.0.1:{ports[1]}", "seal_s": 0.05}
    chosen = Settable(data=directory, **{**given, "reserve_bytes": 0, **settings})
    async with serving(chosen), grpc.aio.insecure_channel(chosen.listen) as channel:
        yield Served(chosen, channel)


def run(test: Awaitable[None]) -> None:
    asyncio.run(asyncio.wait_for(test, WAIT_S_MAX))


async def refused(call: Awaitable[Any]) -> tuple[grpc.StatusCode, float | None]:
    """The code, and the seconds after which to come back."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    status = _status(caught.value)
    for detail in status.details if status else ():
        retry = RetryInfo()
        if detail.Unpack(retry):
            return caught.value.code(), retry.retry_delay.ToNanoseconds() / 1e9
    return caught.value.code(), None


def _status(error: grpc.aio.AioRpcError) -> Any:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            return Status.FromString(value)
    return None


# --- Taken


def test_the_three_signals_are_taken_and_counted(tmp_path: Path):
    async def go() -> None:
        async with served(tmp_path / "s") as one:
            answer = await one.export(TRACES, traffic.traces(range(5)))
            assert not ExportTraceServiceResponse.FromString(answer).HasField("partial_success")
            await one.export(LOGS, traffic.deliveries(0, 7))
            await one.export(METRICS, traffic.metrics(2))
            rows = await one.read(0, 15)
            assert [row["kind"] for row in rows] == ["span"] * 5 + ["delivery"] * 7 + ["point"] * 3
            assert await one.counted('ordercast_spool_received_total{signal="logs"}') == 7
            assert await one.counted('ordercast_spool_offset{end="end"}') == 15
            assert await one.counted("ordercast_spool_sync_duration_seconds_count") >= 3

    run(go())


def test_an_empty_request_is_answered_and_takes_no_offset(tmp_path: Path):
    async def go() -> None:
        async with served(tmp_path / "s") as one:
            for signal in METHODS:
                assert await one.export(signal, b"") == b""
            await one.export(LOGS, traffic.deliveries(0, 0))
            state = await one.in_a_thread(lambda client: client.describe())
            assert (state.begin, state.end, state.taken) == (0, 0, 0)

    run(go())


def test_compressed_requests_are_taken(tmp_path: Path):
    async def go() -> None:
        async with served(tmp_path / "s") as one:
            await one.export(TRACES, traffic.traces(range(50)), compression=grpc.Compression.Gzip)
            assert len(await one.read(0, 50)) == 50

    run(go())


def test_a_later_version_of_the_schema_is_kept_as_poison(tmp_path: Path):
    async def go() -> None:
        async with served(tmp_path / "s") as one:
            await one.export(TRACES, traffic.traces(range(3), schema=99))
            await one.export(TRACES, traffic.traces(range(3)))
            rows = await one.read(0, 6)
            assert [(row["kind"], row["reason"]) for row in rows[:3]] == [("poison", "schema_version")] * 3
            assert [row["kind"] for row in rows[3:]] == ["span"] * 3

    run(go())


def test_health_and_reflection_are_served(tmp_path: Path):
    async def go() -> None:
        async with served(tmp_path / "s") as one:
            stub = health_pb2_grpc.HealthStub(one.channel)
            for name in (
                "",
                "opentelemetry.proto.collector.trace.v1.TraceService",
                "ordercast.v1.TelemetryService",
            ):
                found = await stub.Check(health_pb2.HealthCheckRequest(service=name))
                assert found.status == health_pb2.HealthCheckResponse.SERVING
            assert "opentelemetry.proto.collector.logs.v1.LogsService" in await reflected(one.channel)

    run(go())


async def reflected(channel: grpc.aio.Channel) -> list[str]:
    call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(
        iter([reflection_pb2.ServerReflectionRequest(list_services="")])
    )
    answer = await call.read()
    return [service.name for service in answer.list_services_response.service]


# --- Refused


def test_what_is_no_request_is_refused_for_good(tmp_path: Path):
    async def go() -> None:
        async with served(tmp_path / "s") as one:
            for signal in METHODS:
                assert await refused(one.export(signal, b"\xff\xff\xff")) == (
                    grpc.StatusCode.INVALID_ARGUMENT,
                    None,
                )
            assert await one.counted('ordercast_spool_refused_total{reason="malformed"}') == 3
            await one.export(TRACES, traffic.traces([1]))
            assert len(await one.read(0, 1)) == 1

    run(go())


def test_a_request_that_is_too_large_is_refused_for_good(tmp_path: Path):
    async def go() -> None:
        async with served(tmp_path / "s", request_bytes_max=10_000, request_records_max=20) as one:
            large = traffic.traces(range(100))
            assert 10_000 < len(large) < 40_000
            assert await refused(one.export(TRACES, large)) == (grpc.StatusCode.INVALID_ARGUMENT, None)
            # gRPC itself does not read what is far too large.
            huge = traffic.traces(range(500))
            assert await refused(one.export(TRACES, huge)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, None)
            many = traffic.deliveries(0, 21)
            assert await refused(one.export(LOGS, many)) == (grpc.StatusCode.INVALID_ARGUMENT, None)
            assert await one.counted('ordercast_spool_refused_total{reason="oversize"}') == 2
            await one.export(LOGS, traffic.deliveries(0, 20))

    run(go())


def test_what_expands_when_it_is_decompressed_is_refused(tmp_path: Path):
    async def go() -> None:
        async with served(tmp_path / "s", request_bytes_max=10_000) as one:
            bomb = bytes(50 << 20)
            code, _ = await refused(one.export(TRACES, bomb, compression=grpc.Compression.Gzip))
            assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
            await one.export(TRACES, traffic.traces([1]))

    run(go())


def test_when_too_much_waits_senders_are_told_when_to_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    sync = os.fdatasync

    def take_long(file: int) -> None:
        time.sleep(0.05)
        sync(file)

    monkeypatch.setattr(os, "fdatasync", take_long)

    async def go() -> None:
        payloads = [traffic.traces(range(first, first + 200)) for first in range(1000, 13_000, 200)]
        size = max(map(len, payloads))
        async with served(tmp_path / "s", request_bytes_max=size, queue_bytes_max=2 * size) as one:
            calls = [one.export(TRACES, payload) for payload in payloads]
            results = await asyncio.gather(*calls, return_exceptions=True)
            errors = [result for result in results if isinstance(result, grpc.aio.AioRpcError)]
            assert errors
            for error in errors:
                code, retry_s = await refused(_raise(error))
                assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
                assert retry_s is not None
                assert retry_s > 0
            taken = 200 * (len(results) - len(errors))
            assert [row["offset"] for row in await one.read(0, taken)] == list(range(taken))
            assert await one.counted('ordercast_spool_refused_total{reason="busy"}') == len(errors)

    run(go())


async def _raise(error: BaseException) -> None:
    raise error


def test_without_room_senders_are_told_to_come_back(tmp_path: Path):
    async def go() -> None:
        async with served(tmp_path / "s", reserve_bytes=1 << 45) as one:
            code, retry_s = await refused(one.export(TRACES, traffic.traces([1])))
            assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert retry_s
            assert await one.counted('ordercast_spool_refused_total{reason="full"}') == 1
            assert await one.counted("ordercast_storage_read_only") == 1

    run(go())


def mutated(payload: bytes, chance: random.Random) -> bytes:
    content = bytearray(payload)
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        at = chance.randrange(len(content))
        match chance.randrange(8):
            case 0:
                del content[at : at + chance.randint(1, 20)]
            case 1:
                content[at:at] = chance.randbytes(chance.randint(1, 20))
            case 2:
                content[at:at] = content[: chance.randint(1, 60)]
            case _:
                content[at] = chance.randrange(256)
        if not content:
            return b""
    return bytes(content)


#: Exports that are under way together.
AT_ONCE = 50


def test_whatever_comes_it_is_taken_or_refused_and_what_is_taken_is_read_again(tmp_path: Path):
    chance = random.Random(7)
    valid = [
        (TRACES, traffic.traces(range(6))),
        (METRICS, traffic.metrics(3)),
        (LOGS, traffic.logs([traffic.delivered(0, 5), traffic.event("e", a="b")])),
        (TRACES, FileDescriptorProto(name="another message").SerializeToString()),
    ]

    async def go() -> None:
        async with served(tmp_path / "s", seal_s=0.5) as one:
            expected = 0
            known: set[tuple[str, bytes]] = set()
            outcomes: dict[str, int] = {}
            for _ in range(3000 // AT_ONCE):
                chosen = [chance.choice(valid) for _ in range(AT_ONCE)]
                exported = [(signal, mutated(payload, chance)) for signal, payload in chosen]
                # Those of one moment share a sync of the disk.
                answers = await asyncio.gather(*(one.export(*each) for each in exported), return_exceptions=True)
                for (signal, payload), answer in zip(exported, answers, strict=True):
                    if isinstance(answer, grpc.aio.AioRpcError):
                        outcomes[answer.code().name] = outcomes.get(answer.code().name, 0) + 1
                        continue
                    assert not isinstance(answer, BaseException), answer
                    if (signal, payload) not in known:
                        expected += count(signal, parse(signal, payload))
                    known.add((signal, payload))
            rows = await one.read(0, expected)
            assert [row["offset"] for row in rows] == list(range(expected))
            for row in rows:
                outcomes[row["kind"]] = outcomes.get(row["kind"], 0) + 1
            # The mutations reach all of these, or they would prove little.
            assert set(outcomes) == {"INVALID_ARGUMENT", "poison", "span", "point", "delivery", "event"}

    run(go())


# --- Read


def test_readers_get_exactly_what_they_ask_for(tmp_path: Path):
    async def go() -> None:
        async with served(tmp_path / "s", segment_bytes=1024) as one:
            for turn in range(20):
                await one.export(LOGS, traffic.deliveries(10 * turn, 10))
            rows = await one.read(0, 200)
            for begin, end in ((0, 1), (5, 15), (9, 11), (199, 200), (33, 177), (60, 60)):
                assert await one.read(begin, end) == rows[begin:end]
            state = await one.in_a_thread(lambda client: client.describe())
            assert state.segments[0] == 0
            assert list(state.segments) == sorted(set(state.segments))
            assert len(state.spool_id) == 32

    run(go())


def test_what_is_not_there_is_out_of_range(tmp_path: Path):
    async def go() -> None:
        async with served(tmp_path / "s") as one:
            await one.export(TRACES, traffic.traces(range(10)))
            await one.readable(10)
            with pytest.raises(SpoolRangeError) as error:
                await one.in_a_thread(lambda client: list(client.read(5, 11)))
            assert (error.value.begin, error.value.end) == (0, 10)
            call = TelemetryServiceStub(one.channel).ReadSpool(ReadSpoolRequest(begin=5, end=4))
            assert (await refused(call.read()))[0] == grpc.StatusCode.INVALID_ARGUMENT

    run(go())


def test_readers_hear_what_is_lost_and_can_go_on_behind_it(tmp_path: Path):
    async def go() -> None:
        async with served(tmp_path / "s") as one:
            for turn in range(3):
                await one.export(LOGS, traffic.deliveries(10 * turn, 10))
                await one.readable(10 * turn + 10)
            path = tmp_path / "s" / f"{10:020d}-{20:020d}.arrow"
            with SealedFile(path) as file:
                flip(path, file.index.pieces[0].position + 500)

            got: list[int] = []

            def read(client: SpoolClient) -> None:
                for batch in client.read(0, 30):
                    got.extend(batch.column("position").to_pylist())

            with pytest.raises(SpoolLossError) as error:
                await one.in_a_thread(read)
            assert error.value.lost == Lost(10, 20)
            assert got == list(range(10))

            lost: list[Lost] = []
            rows = await one.in_a_thread(
                lambda client: [row for batch in client.read(0, 30, lost.append) for row in batch.to_pylist()]
            )
            assert lost == [Lost(10, 20)]
            assert [row["offset"] for row in rows] == [*range(10), *range(20, 30)]
            assert await one.counted("ordercast_spool_corrupt_total") == 1

    run(go())


def test_only_so_many_read_at_once(tmp_path: Path):
    async def go() -> None:
        async with served(tmp_path / "s", reads_max=1) as one:
            # More than gRPC takes in advance for a reader that does not read.
            count = 20 * 3_000
            for first in range(0, count, 3_000):
                await one.export(TRACES, traffic.traces(range(first, first + 3_000)))
            await one.readable(count)
            stub = TelemetryServiceStub(one.channel)
            first = stub.ReadSpool(ReadSpoolRequest(begin=0, end=count))
            await first.read()
            second = stub.ReadSpool(ReadSpoolRequest(begin=0, end=count))
            assert await refused(second.read()) == (grpc.StatusCode.UNAVAILABLE, 0.5)
            first.cancel()
            # The client tries again.
            assert len(await one.read(count - 10, count)) == 10

    run(go())


def test_a_reader_gives_up_on_a_service_that_stays_away():
    (port,) = free_ports(1)
    with SpoolClient(f"127.0.0.1:{port}", patience_s=0.3) as client, pytest.raises(SpoolAwayError):
        client.describe()
