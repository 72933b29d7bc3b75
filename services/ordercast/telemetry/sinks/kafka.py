"""Kafka as the place for records: the same rows as in the spool, as Arrow, without offsets of ours.

A message is an Arrow IPC stream of some thousand rows, so that no reader decodes protobuf. It has no key, and so
goes to any partition: rows say themselves what they belong to. A request is acknowledged when all its messages are
on as many brokers as the topic asks for. If one is not, the sender repeats the request, and readers may find rows
twice.
"""

import asyncio
import contextlib
import threading
import time
from typing import Any

import confluent_kafka
import grpc
import pyarrow as pa
import structlog

from ordercast.telemetry import meters as reasons
from ordercast.telemetry.flatten.requests import add
from ordercast.telemetry.flatten.rows import EVENT, REASON_OVERSIZE, Rows
from ordercast.telemetry.flatten.values import NOTHING
from ordercast.telemetry.receiver import NotTaken, UnusableError
from ordercast.telemetry.schema import names
from ordercast.telemetry.settings import Settable
from ordercast.telemetry.tables import BATCH_ROWS_MAX, SCHEMA, write_options

log = structlog.get_logger("kafka")

POLL_S = 0.1
LINGER_MS = 5
RETRY_S = 1.0
#: What Kafka adds to a message.
OVERHEAD_BYTES = 4096


class KafkaSink:
    def __init__(self, settings: Settable) -> None:
        """UnusableError if Kafka's client does not like the options."""
        self._settings = settings
        self._waiting_bytes = 0
        self._is_stopping = threading.Event()
        self._is_broken = threading.Event()
        self._producer = self._connect()
        self._thread = threading.Thread(target=self._poll, name="kafka-poll", daemon=True)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def stop(self) -> None:
        """Nothing is taken any more by now, so nobody waits for anything."""
        self._is_stopping.set()
        await asyncio.to_thread(self._thread.join)
        await asyncio.to_thread(self._producer.flush, self._settings.kafka.timeout_s)

    async def take(self, signal: str, payload: bytes, count: int) -> bool:
        """Whether it was there before, nobody looks: readers have to, for what a failure left half done."""
        size = len(payload)
        if self._waiting_bytes + size > self._settings.queue_bytes_max:
            text = f"{self._waiting_bytes} bytes wait for Kafka"
            raise NotTaken(grpc.StatusCode.RESOURCE_EXHAUSTED, text, reasons.BUSY, RETRY_S)
        self._waiting_bytes += size
        try:
            bytes_max = self._settings.kafka.message_bytes_max
            values = await asyncio.to_thread(messages, signal, payload, count, time.time_ns(), bytes_max)
            await asyncio.gather(*(self._produce(signal, value) for value in values))
        except (confluent_kafka.KafkaException, BufferError) as error:
            text = f"Kafka does not take it: {error}"
            raise NotTaken(grpc.StatusCode.UNAVAILABLE, text, reasons.AWAY, RETRY_S) from error
        finally:
            self._waiting_bytes -= size
        return True

    async def _produce(self, signal: str, value: bytes) -> None:
        answer: asyncio.Future[None] = self._loop.create_future()

        def answered(error: Any, _: Any) -> None:
            # In the thread that polls.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_settle, answer, error)

        headers = {"signal": signal.encode(), "schema": str(names.VERSION).encode()}
        self._producer.produce(self._settings.kafka.topic, value, headers=headers, on_delivery=answered)
        await answer

    # --- The thread that polls

    def _poll(self) -> None:
        while not self._is_stopping.is_set():
            self._producer.poll(POLL_S)
            if self._is_broken.is_set():
                # An idempotent producer that lost count cannot go on; a new one begins to count anew. What the old
                # one had is answered as failed.
                self._is_broken.clear()
                broken, self._producer = self._producer, self._connect()
                broken.purge()
                broken.flush(POLL_S)

    def _failed(self, error: Any) -> None:
        log.warning("Kafka reports an error", why=str(error))
        if error.fatal():
            self._is_broken.set()

    def _connect(self) -> Any:
        kafka = self._settings.kafka
        try:
            return confluent_kafka.Producer(
                {
                    "linger.ms": LINGER_MS,
                    # Values are compressed already.
                    "compression.type": "none",
                    **kafka.options,
                    "bootstrap.servers": kafka.bootstrap,
                    "client.id": self._settings.name,
                    "enable.idempotence": True,
                    "acks": "all",
                    "message.max.bytes": kafka.message_bytes_max + OVERHEAD_BYTES,
                    "message.timeout.ms": round(kafka.timeout_s * 1000),
                    "queue.buffering.max.kbytes": max(1, self._settings.queue_bytes_max >> 10),
                    "error_cb": self._failed,
                }
            )
        except confluent_kafka.KafkaException as error:
            raise UnusableError(f"kafka: {error}") from error


def _settle(answer: "asyncio.Future[None]", error: Any) -> None:
    # Whoever asked may have gone.
    if answer.done():
        return
    if error is None:
        answer.set_result(None)
    else:
        answer.set_exception(confluent_kafka.KafkaException(error))


# --- Values


def messages(signal: str, payload: bytes, count: int, received_ns: int, bytes_max: int) -> list[bytes]:
    """The rows of one request, in messages of bounded size."""
    rows = Rows()
    add(rows, signal, payload, None, count, received_ns)
    batch = rows.finished()
    parts = [batch.slice(begin, BATCH_ROWS_MAX) for begin in range(0, batch.num_rows, BATCH_ROWS_MAX)]
    values: list[bytes] = []
    while parts:
        part = parts.pop()
        value = _stream(part)
        if len(value) <= bytes_max:
            values.append(value)
        elif part.num_rows > 1:
            half = part.num_rows // 2
            parts += part.slice(0, half), part.slice(half)
        else:
            values.append(_stream(_told_only(part, len(value))))
    return values


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA, options=write_options()) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def _told_only(row: pa.RecordBatch, size: int) -> pa.RecordBatch:
    """In the place of a row that is too large for a message."""
    kept = row.select([names.COLUMN_NAME, names.COLUMN_TIME_NS, names.COLUMN_RECEIVED_NS]).to_pylist()[0]
    rows = Rows()
    rows.begin(EVENT, 1, kept[names.COLUMN_RECEIVED_NS], NOTHING)
    rows.put(names.COLUMN_NAME, 0, (kept[names.COLUMN_NAME] or "")[:1024])
    rows.put(names.COLUMN_TIME_NS, 0, kept[names.COLUMN_TIME_NS])
    rows.poison(0, REASON_OVERSIZE, f"a record of {size} bytes")
    return rows.finished()
