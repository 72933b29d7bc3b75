"""Reads the spool of the telemetry service: where it begins and ends, and its records by offset, as Arrow."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType

import grpc
import numpy as np
import pyarrow as pa

from ordercast.analytics.errors import AnalyticsError
from ordercast.analytics.records import as_records
from ordercast.telemetry.schema.names import COLUMN_OFFSET
from ordercast.v1.telemetry_pb2 import DescribeSpoolRequest, ReadSpoolRequest
from ordercast.v1.telemetry_pb2_grpc import TelemetryServiceStub

#: Of one answer: segments come in pieces, but as they are.
MESSAGE_BYTES_MAX = 256 << 20
#: A service that is being started again is waited for.
DESCRIBE_S = 30.0
READ_S = 600.0


@dataclass(frozen=True, slots=True)
class Spool:
    begin: int
    sealed: int
    end: int
    #: Where sealed segments begin, and where the last of them ends, rising: a range is best divided there.
    cuts: tuple[int, ...]


class SpoolClient:
    """One connection; processes have their own."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._channel = grpc.insecure_channel(
            address, options=[("grpc.max_receive_message_length", MESSAGE_BYTES_MAX)]
        )
        self._stub = TelemetryServiceStub(self._channel)

    def __enter__(self) -> "SpoolClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._channel.close()

    def describe(self) -> Spool:
        try:
            answer = self._stub.DescribeSpool(DescribeSpoolRequest(), timeout=DESCRIBE_S, wait_for_ready=True)
        except grpc.RpcError as error:
            raise self._error(error) from error
        return Spool(answer.begin, answer.sealed, answer.end, (*answer.segments, answer.sealed))

    def read(self, begin: int, end: int) -> Iterator[pa.RecordBatch]:
        """Records with offsets in [begin, end). What retention has deleted meanwhile is said, and passed over."""
        while begin < end:
            try:
                for batch in self._read(begin, end):
                    if batch.num_rows:
                        begin = batch.column(COLUMN_OFFSET)[-1].as_py() + 1
                        yield batch
                return
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.OUT_OF_RANGE:
                    raise self._error(error) from error
                gone_to = self.describe().begin
                if gone_to <= begin:
                    raise self._error(error) from error
                _say(f"the spool has dropped its records {begin} to {min(gone_to, end) - 1}: they are left out")
                begin = gone_to

    def _read(self, begin: int, end: int) -> Iterator[pa.RecordBatch]:
        request = ReadSpoolRequest(begin=begin, end=end)
        for answer in self._stub.ReadSpool(request, timeout=READ_S, wait_for_ready=True):
            with pa.ipc.open_stream(answer.arrow) as stream:
                for batch in stream:
                    yield cut(as_records(batch), begin, end)

    def _error(self, error: grpc.RpcError) -> AnalyticsError:
        return AnalyticsError(f"the telemetry service at {self._address}: {error.code().name}: {error.details()}")


def cut(batch: pa.RecordBatch, begin: int, end: int) -> pa.RecordBatch:
    """Without the records outside of [begin, end): segments come whole."""
    offsets = batch.column(COLUMN_OFFSET).to_numpy()
    first, last = np.searchsorted(offsets, [begin, end])
    if first == 0 and last == batch.num_rows:
        return batch
    return batch.slice(int(first), int(last - first))


def _say(text: str) -> None:
    print(f"ordercast analytics: {text}", file=sys.stderr, flush=True)
