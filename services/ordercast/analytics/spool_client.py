"""Reads the spool of the telemetry service: by offset, as Arrow, without asyncio.

A call that breaks off because the service is away goes on where it was, for a while. What is lost on the service's
disk is an error, or is told to whoever wants to go on behind it.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
import pyarrow.compute as pc
from google.rpc.error_details_pb2 import ErrorInfo  # type: ignore[import-untyped]
from grpc_status import rpc_status  # type: ignore[import-untyped]

from ordercast.analytics.certificates import Certificates
from ordercast.analytics.errors import AnalyticsError
from ordercast.telemetry.schema import names
from ordercast.v1.telemetry_pb2 import DescribeSpoolRequest, ReadSpoolRequest
from ordercast.v1.telemetry_pb2_grpc import TelemetryServiceStub

#: A batch of the largest requests that the service can be told to take.
MESSAGE_BYTES_MAX = 256 << 20
CALL_S_MAX = 10.0
PAUSE_S_MIN = 0.1
PAUSE_S_MAX = 2.0


class SpoolError(AnalyticsError):
    """The spool cannot be read."""


class SpoolAwayError(SpoolError):
    """The service did not answer for as long as one was willing to wait."""


class SpoolRangeError(SpoolError):
    """What was asked for is no longer there, or not yet: the spool has `begin` to `end`."""

    def __init__(self, message: str, begin: int, end: int) -> None:
        super().__init__(message)
        self.begin = begin
        self.end = end


@dataclass(frozen=True, slots=True)
class Lost:
    """Records that are damaged on the service's disk."""

    begin: int
    end: int


class SpoolLossError(SpoolError):
    """All before `lost` was given; reading can go on at its end."""

    def __init__(self, message: str, lost: Lost) -> None:
        super().__init__(message)
        self.lost = lost


@dataclass(frozen=True, slots=True)
class SpoolState:
    #: The first record that is kept.
    begin: int
    #: Records below can be read.
    end: int
    #: Records below are acknowledged; they can be read soon.
    taken: int
    schema_version: int
    #: First offsets of segments.
    segments: tuple[int, ...]
    spool_id: str


def _content(path: Path | None) -> bytes | None:
    try:
        return path.read_bytes() if path is not None else None
    except OSError as error:
        raise SpoolError(f"{path}: {error.strerror}") from error


class SpoolClient:
    """One connection. `with` closes it."""

    def __init__(self, address: str, certificates: Certificates | None = None, patience_s: float = 30.0) -> None:
        """`patience_s`: how long the service may be away before that is an error. So is a file that is missing."""
        options: list[tuple[str, int | str]] = [
            ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
            # Without a limit of its own gRPC waits up to two minutes before it tries to connect again.
            ("grpc.max_reconnect_backoff_ms", round(PAUSE_S_MAX * 1000)),
        ]
        if certificates is None:
            self._channel = grpc.insecure_channel(address, options)
        else:
            # Read with each client: they may have been replaced.
            files = (certificates.ca, certificates.key, certificates.cert)
            credentials = grpc.ssl_channel_credentials(*map(_content, files))
            if certificates.server_name is not None:
                options.append(("grpc.ssl_target_name_override", certificates.server_name))
            self._channel = grpc.secure_channel(address, credentials, options)
        self._stub = TelemetryServiceStub(self._channel)
        self._patience_s = patience_s

    def __enter__(self) -> "SpoolClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._channel.close()

    def describe(self, begin: int = 0) -> SpoolState:
        """Where the spool begins and ends; of its segments those that reach beyond `begin`."""
        patience = _Patience(self._patience_s)
        while True:
            try:
                found = self._stub.DescribeSpool(DescribeSpoolRequest(begin=begin), timeout=CALL_S_MAX)
            except grpc.RpcError as error:
                patience.wait_after(error)
            else:
                return SpoolState(
                    begin=found.begin,
                    end=found.end,
                    taken=found.taken,
                    schema_version=found.schema_version,
                    segments=tuple(found.segments),
                    spool_id=found.spool_id,
                )

    def read(
        self, begin: int, end: int, on_loss: Callable[[Lost], None] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The records from `begin` up to but without `end`, each once, in batches.

        SpoolLossError when some are lost, unless `on_loss` takes the news. SpoolRangeError when the spool does not
        reach so far back, or ahead.
        """
        patience = _Patience(self._patience_s)
        at = begin
        while at < end:
            call = self._stub.ReadSpool(ReadSpoolRequest(begin=at, end=end))
            try:
                for response in call:
                    for batch in batches_of(response.arrow):
                        part = cut(batch, at, end)
                        if part.num_rows:
                            at = part.column(names.COLUMN_OFFSET)[-1].as_py() + 1
                            patience.renew()
                            yield part
            except grpc.RpcError as error:
                lost = patience.wait_after(error)
                if lost is None:
                    continue
                if on_loss is None:
                    raise SpoolLossError(f"records {lost.begin} to {lost.end} are lost", lost) from error
                on_loss(lost)
                at = max(at, lost.end)
            else:
                return
            finally:
                # Whoever stops reading early does not leave the service writing.
                call.cancel()


def batches_of(arrow: bytes) -> Iterator[pa.RecordBatch]:
    """What the service sent, if it is what a spool holds."""
    try:
        for batch in pa.ipc.open_stream(arrow):
            batch.validate()
            if batch.schema.get_field_index(names.COLUMN_OFFSET) < 0:
                raise SpoolError(f"the spool sent records without the column {names.COLUMN_OFFSET}")
            yield batch
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SpoolError(f"the spool sent what is no Arrow: {error}") from error


def cut(batch: pa.RecordBatch, begin: int, end: int) -> pa.RecordBatch:
    """Without the records outside of the range; offsets in a batch rise."""
    offsets = batch.column(names.COLUMN_OFFSET)
    if not batch.num_rows or (offsets[0].as_py() >= begin and offsets[-1].as_py() < end):
        return batch
    first = pc.sum(pc.less(offsets, begin)).as_py()
    count = pc.sum(pc.less(offsets, end)).as_py() - first
    return batch.slice(first, max(0, count))


class _Patience:
    """How long to go on with a service that is away."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self.renew()

    def renew(self) -> None:
        self._until = time.monotonic() + self._patience_s
        self._pause_s = PAUSE_S_MIN

    def wait_after(self, error: grpc.RpcError) -> Lost | None:
        """Waits a little if it is worth another try; what is lost, if that is the news; else raises."""
        call: Any = error
        code, message = call.code(), call.details() or ""
        known = _info(call)
        if code is grpc.StatusCode.DATA_LOSS and known:
            return Lost(int(known["begin"]), int(known["end"]))
        if code is grpc.StatusCode.OUT_OF_RANGE and known:
            raise SpoolRangeError(message, int(known["begin"]), int(known["end"])) from error
        if code not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            raise SpoolError(f"{code.name}: {message}") from error
        if time.monotonic() + self._pause_s > self._until:
            raise SpoolAwayError(f"{code.name}: {message}") from error
        time.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, PAUSE_S_MAX)
        return None


def _info(call: Any) -> dict[str, str]:
    status = rpc_status.from_call(call)
    for detail in status.details if status else ():
        info = ErrorInfo()
        if detail.Unpack(info):
            return dict(info.metadata)
    return {}
