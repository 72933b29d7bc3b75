"""`spark.readStream.format("ordercast")`: the spool of a telemetry service as a streaming source.

An offset of the stream is an offset of the spool, so that a batch can be read again exactly, as long as the spool
keeps it. A batch is divided into partitions at the segments of the spool: a segment comes as a whole, and two
readers of one would both be sent all of it. Record batches go to Spark as they come; making rows of them costs
more than twice as much.

Options: `address` (HOST:PORT of the telemetry service), `rows_per_trigger_max` (the admission limit),
`partitions`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from ordercast.analytics.errors import AnalyticsError
from ordercast.analytics.records import spark_schema
from ordercast.analytics.spool_client import Spool, SpoolClient

FORMAT = "ordercast"
ROWS_PER_TRIGGER_MAX = 250_000
PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class Options:
    address: str
    rows_per_trigger_max: int
    partitions: int

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
        )


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

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"offset": self._describe().begin}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.rows_per_trigger_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._describe().end

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        spool = self._describe()
        end = spool.end if self._target is None else min(spool.end, self._target)
        rows_max = end if isinstance(limit, ReadAllAvailable) else self._options.rows_per_trigger_max
        if isinstance(limit, ReadMaxRows):
            rows_max = limit.max_rows
        return {"offset": admitted(spool, start["offset"], end, rows_max)}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        return {"offset": self._describe().end}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[SpoolRange]:
        return divided(self._describe(), start["offset"], end["offset"], self._options.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SpoolRange)
        with SpoolClient(self._options.address) as client:
            yield from client.read(partition.begin, partition.end)

    def _describe(self) -> Spool:
        with SpoolClient(self._options.address) as client:
            return client.describe()


def admitted(spool: Spool, start: int, end: int, rows_max: int) -> int:
    """Where a batch from `start` ends: at most so many records, and between two segments rather than in one."""
    start = max(start, spool.begin)
    if end - start <= rows_max:
        return max(start, end)
    limit = start + rows_max
    last = bisect_right(spool.cuts, limit) - 1
    return spool.cuts[last] if last >= 0 and spool.cuts[last] > start else limit


def divided(spool: Spool, start: int, end: int, count: int) -> list[SpoolRange]:
    """In at most `count` parts of about the same size, cut between segments."""
    cuts = [start]
    between = spool.cuts[bisect_right(spool.cuts, start) : bisect_left(spool.cuts, end)]
    for number in range(1, count):
        ideal = start + (end - start) * number // count
        at = bisect_left(between, ideal)
        nearest = min(between[max(at - 1, 0) : at + 1], key=lambda cut: abs(cut - ideal), default=start)
        if nearest > cuts[-1]:
            cuts.append(nearest)
    return [SpoolRange(begin, to) for begin, to in zip(cuts, [*cuts[1:], end], strict=True) if begin < to]


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isdecimal() or not int(text):
        raise AnalyticsError(f"the option `{name}` of the source `ordercast` takes a number above 0, not {text!r}")
    return int(text)
