"""`--sink kafka`: the same rows as in the spool. The broker is the one that Kafka's own client brings for
tests."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import confluent_kafka
import grpc
import pyarrow as pa
import pytest

from ordercast.local.cluster import free_ports
from ordercast.telemetry.flatten.requests import LOGS, METRICS, TRACES, add
from ordercast.telemetry.flatten.rows import Rows
from ordercast.telemetry.receiver import UnusableError
from ordercast.telemetry.schema import names
from ordercast.telemetry.service import serving
from ordercast.telemetry.settings import Settable
from ordercast.telemetry.sinks.kafka import KafkaSink, messages
from tests.telemetry import traffic
from tests.telemetry.process import METHODS, WAIT_S_MAX

TOPIC = "records"


@pytest.fixture(scope="module")
def broker() -> Any:
    """Its address. It lives as long as the client that brought it."""
    owner = confluent_kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1})
    (found,) = owner.list_topics(timeout=WAIT_S_MAX).brokers.values()
    yield f"{found.host}:{found.port}"
    del owner


def settings(bootstrap: str, **kafka: Any) -> Settable:
    (port,) = free_ports(1)
    given = {"bootstrap": bootstrap, "topic": TOPIC, **kafka}
    return Settable(
        listen=f"127.0.0.1:{port}", sink="kafka", kafka=given, request_bytes_max=1 << 20, queue_bytes_max=2 << 20
    )


@contextlib.asynccontextmanager
async def served(chosen: Settable) -> AsyncIterator[grpc.aio.Channel]:
    async with serving(chosen), grpc.aio.insecure_channel(chosen.listen) as channel:
        yield channel


def run(test: Awaitable[None]) -> None:
    asyncio.run(asyncio.wait_for(test, WAIT_S_MAX))


def consumed(bootstrap: str, rows: int) -> list[dict[str, Any]]:
    """Everything in the topic, which are so many rows."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "test", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([TOPIC])
    found: list[dict[str, Any]] = []
    try:
        while len(found) < rows:
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                assert dict(message.headers())["schema"] == str(names.VERSION).encode()
                found += rows_in(message.value())
    finally:
        consumer.close()
    return found


def rows_in(value: bytes) -> list[dict[str, Any]]:
    return pa.ipc.open_stream(value).read_all().to_pylist()


def test_what_is_acknowledged_is_in_kafka_as_the_rows_of_the_spool(broker: str):
    requests = [
        (TRACES, traffic.traces(range(40)), 40),
        (LOGS, traffic.deliveries(0, 30), 30),
        (METRICS, traffic.metrics(4), 5),
    ]

    async def go() -> None:
        async with served(settings(broker)) as channel:
            for signal, payload, _ in requests:
                await channel.unary_unary(METHODS[signal])(payload, timeout=WAIT_S_MAX)

    run(go())
    expected = Rows()
    for signal, payload, count in requests:
        add(expected, signal, payload, None, count, 0)

    def comparable(rows: list[dict[str, Any]]) -> list[str]:
        return sorted(repr({**row, "received_ns": 0}) for row in rows)

    assert comparable(consumed(broker, 75)) == comparable(expected.finished().to_pylist())


def test_when_kafka_is_away_senders_are_told_to_come_back():
    (nobody,) = free_ports(1)

    async def go() -> None:
        async with served(settings(f"127.0.0.1:{nobody}", timeout_s=0.3)) as channel:
            export = channel.unary_unary(METHODS[TRACES])
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await export(traffic.traces(range(3)), timeout=WAIT_S_MAX)
            assert error.value.code() == grpc.StatusCode.UNAVAILABLE
            assert b"RetryInfo" in dict(error.value.trailing_metadata())["grpc-status-details-bin"]

    run(go())


def test_what_waits_for_kafka_is_bounded():
    (nobody,) = free_ports(1)
    payload = traffic.traces(range(1000))

    async def go() -> None:
        async with served(settings(f"127.0.0.1:{nobody}", timeout_s=10.0)) as channel:
            export = channel.unary_unary(METHODS[TRACES])
            calls = [export(payload, timeout=WAIT_S_MAX) for _ in range(20)]
            results = await asyncio.gather(*calls, return_exceptions=True)
            codes = [result.code() for result in results if isinstance(result, grpc.aio.AioRpcError)]
            assert set(codes) == {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE}
            assert codes.count(grpc.StatusCode.UNAVAILABLE) * len(payload) <= 2 << 20

    run(go())


def test_messages_are_no_larger_than_a_broker_takes():
    values = messages(TRACES, traffic.traces(range(5000)), 5000, 7, 65_536)
    assert len(values) > 1
    assert max(map(len, values)) <= 65_536
    rows = [row for value in values for row in rows_in(value)]
    assert len(rows) == 5000
    assert len({(row["trace_id"], row["name"]) for row in rows}) == 5000
    assert {row["offset"] for row in rows} == {None}


def test_a_record_that_is_too_large_for_a_message_is_told_as_poison():
    noise = bytes(range(256)) * 300
    record = traffic.event("large", text=noise.hex() + "".join(map(chr, range(0x4E00, 0x9000))))
    values = messages(LOGS, traffic.logs([traffic.event("small"), record]), 2, 7, 40_000)
    rows = [row for value in values for row in rows_in(value)]
    assert sorted((row["kind"], row["name"], row["reason"]) for row in rows if row["kind"] == "poison") == [
        ("poison", "large", "oversize")
    ]
    assert [row["name"] for row in rows if row["kind"] == "event"] == ["small"]


def test_options_that_kafka_does_not_know_are_refused():
    with pytest.raises(UnusableError, match=r"no\.such\.option"):
        KafkaSink(settings("127.0.0.1:1", options={"no.such.option": "1"}))
