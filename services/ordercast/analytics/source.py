"""`spark.readStream.format("ordercast")`: the spool of a telemetry service as a streaming source.

An offset of the stream is an offset of the spool, so that a batch can be read again exactly, as long as the spool
keeps it. A batch is divided into partitions at the segments of the spool: a segment comes as a whole, and two
readers of one would both be sent all of it. Record batches go to Spark as they come; making rows of them costs
more than twice as much.

Options: `address` (HOST:PORT of the telemetry service), `rows_per_trigger_max` (the admission limit),
`partitions`; with TLS `ca`, `cert`, `key` (PEM files, in the same place for driver and executors), `server_name`.
"""

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from ordercast.analytics.certificates import Certificates
from ordercast.analytics.errors import AnalyticsError
from ordercast.analytics.records import as_records, spark_schema
from ordercast.analytics.spool_client import Lost, SpoolClient, SpoolRangeError, SpoolState
from ordercast.telemetry.schema.names import COLUMN_OFFSET

FORMAT = "ordercast"
#: `offset`, and the id of the spool that it is an offset of.
Offset = dict[str, Any]
ROWS_PER_TRIGGER_MAX = 250_000
PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class Options:
    address: str
    rows_per_trigger_max: int
    partitions: int
    certificates: Certificates | None = None

    @staticmethod
    def of(options: Mapping[str, str]) -> "Options":
        address = options.get("address", "")
        if not address:
            raise AnalyticsError(
                "the source `ordercast` needs the option `address`: HOST:PORT of the telemetry service"
            )
        return Options(
            address,
            _number(options, "rows_per_trigger_max", ROWS_PER_TRIGGER_MAX),
            _number(options, "partitions", PARTITIONS),
            _certificates(options),
        )

    def client(self) -> SpoolClient:
        """To be used with `with`."""
        return SpoolClient(self.address, self.certificates)


class SpoolSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return spark_schema()

    def streamReader(self, schema: StructType) -> "SpoolReader":  # noqa: N802
        return SpoolReader(Options.of(self.options))


class SpoolRange(InputPartition):
    def __init__(self, begin: int, end: int) -> None:
        self.begin = begin
        self.end = end


class SpoolReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in a process of its own beside the driver; `read` runs in the executors' workers, on a copy."""

    def __init__(self, options: Options) -> None:
        self._options = options
        #: With the trigger available-now: what comes later is for the next run.
        self._target: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802
        spool = self._describe()
        return {"offset": spool.begin, "spool": spool.spool_id}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.rows_per_trigger_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._describe().end

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        spool = self._describe(start["offset"])
        if start["spool"] != spool.spool_id:
            raise AnalyticsError(
                f"the telemetry service at {self._options.address} has another spool than the one that this "
                "checkpoint has read: offsets mean something else there; begin with a new checkpoint"
            )
        end = spool.end if self._target is None else min(spool.end, self._target)
        rows_max = end if isinstance(limit, ReadAllAvailable) else self._options.rows_per_trigger_max
        if isinstance(limit, ReadMaxRows):
            rows_max = limit.max_rows
        return {"offset": admitted(spool, start["offset"], end, rows_max), "spool": spool.spool_id}

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        spool = self._describe()
        return {"offset": spool.end, "spool": spool.spool_id}

    def partitions(self, start: Offset, end: Offset) -> Sequence[SpoolRange]:
        return divided(self._describe(start["offset"]), start["offset"], end["offset"], self._options.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SpoolRange)
        with self._options.client() as client:
            for batch in what_is_left(client, partition.begin, partition.end):
                yield as_records(batch)

    def _describe(self, begin: int = 0) -> SpoolState:
        with self._options.client() as client:
            return client.describe(begin)


def what_is_left(client: SpoolClient, begin: int, end: int) -> Iterator[pa.RecordBatch]:
    """Of a range. What retention has deleted meanwhile, or a disk has lost, is said, and passed over."""
    while begin < end:
        try:
            for batch in client.read(begin, end, on_loss=_say_lost):
                begin = batch.column(COLUMN_OFFSET)[-1].as_py() + 1
                yield batch
            return
        except SpoolRangeError as error:
            if error.begin <= begin:
                raise
            _say(f"the spool has dropped its records {begin} to {min(error.begin, end) - 1}: they are left out")
            begin = error.begin


def _say_lost(lost: Lost) -> None:
    _say(f"the spool has lost its records {lost.begin} to {lost.end - 1}: they are left out")


def _say(text: str) -> None:
    print(f"ordercast analytics: {text}", file=sys.stderr, flush=True)


def cuts_of(spool: SpoolState) -> tuple[int, ...]:
    """Where segments begin, and where the last of them ends, rising: a range is best divided there."""
    return (*spool.segments, spool.end)


def admitted(spool: SpoolState, start: int, end: int, rows_max: int) -> int:
    """Where a batch from `start` ends: at most so many records, and between two segments rather than in one."""
    start = max(start, spool.begin)
    if end - start <= rows_max:
        return max(start, end)
    limit = start + rows_max
    cuts = cuts_of(spool)
    last = bisect_right(cuts, limit) - 1
    return cuts[last] if last >= 0 and cuts[last] > start else limit


def divided(spool: SpoolState, start: int, end: int, count: int) -> list[SpoolRange]:
    """In at most `count` parts of about the same size, cut between segments."""
    cuts = [start]
    known = cuts_of(spool)
    between = known[bisect_right(known, start) : bisect_left(known, end)]
    for number in range(1, count):
        ideal = start + (end - start) * number // count
        at = bisect_left(between, ideal)
        nearest = min(between[max(at - 1, 0) : at + 1], key=lambda cut: abs(cut - ideal), default=start)
        if nearest > cuts[-1]:
            cuts.append(nearest)
    return [SpoolRange(begin, to) for begin, to in zip(cuts, [*cuts[1:], end], strict=True) if begin < to]


def _certificates(options: Mapping[str, str]) -> Certificates | None:
    ca, cert, key = (Path(options[name]) if name in options else None for name in ("ca", "cert", "key"))
    server_name = options.get("server_name")
    if (cert is None) != (key is None):
        raise AnalyticsError("the options `cert` and `key` of the source `ordercast` go together")
    if ca is None:
        if cert is not None or server_name is not None:
            raise AnalyticsError("the source `ordercast` uses TLS only with the option `ca`")
        return None
    return Certificates(ca, cert, key, server_name)


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isdecimal() or not int(text):
        raise AnalyticsError(f"the option `{name}` of the source `ordercast` takes a number above 0, not {text!r}")
    return int(text)
