"""Points of metrics: numbers and histograms, each point a row."""

import json
from collections.abc import Sequence
from typing import Any

from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    DataPointFlags,
    ExponentialHistogramDataPoint,
    Metric,
    SummaryDataPoint,
)

from ordercast.telemetry.flatten.rows import Rows
from ordercast.telemetry.flatten.values import decode, shortened
from ordercast.telemetry.schema import names
from ordercast.telemetry.schema.model import load

OURS = load().metrics


def points_of(metric: Metric) -> Sequence[Any]:
    """Whatever kind they are of."""
    kind = metric.WhichOneof("data")
    return getattr(metric, kind).data_points if kind else ()


def add_points(rows: Rows, metric: Metric, points: Sequence[Any]) -> None:
    """Those of one metric, into the block that has begun."""
    kind = str(metric.WhichOneof("data"))
    rows.repeat(names.COLUMN_NAME, shortened(metric.name))
    rows.fill(names.COLUMN_TIME_NS, [point.time_unix_nano for point in points])
    rows.fill(names.COLUMN_START_NS, [point.start_time_unix_nano or None for point in points])
    for row, point in enumerate(points, rows.base):
        rows.attributes(row, map(decode, point.attributes))
        if metric.name not in OURS and metric.unit:
            rows.note(row, "unit", shortened(metric.unit))
        if kind in ("gauge", "sum"):
            field = point.WhichOneof("value")
            value = float(getattr(point, field)) if field and not _is_missing(point) else None
            rows.put(names.COLUMN_VALUE, row, value)
        elif not _is_missing(point):
            _add_distribution(rows, row, kind, point)
        if kind != "summary" and point.exemplars:
            rows.put(names.COLUMN_TRACE_ID, row, point.exemplars[0].trace_id or None)
            rows.put(names.COLUMN_SPAN_ID, row, point.exemplars[0].span_id or None)
    # Ours are differences from one point to the next. Others may say sums since a beginning.
    data = getattr(metric, kind)
    if getattr(data, "aggregation_temporality", None) == AGGREGATION_TEMPORALITY_CUMULATIVE:
        for row in range(rows.base, rows.size):
            rows.note(row, "temporality", "cumulative")


def _is_missing(point: Any) -> bool:
    return bool(point.flags & DataPointFlags.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK)


def _add_distribution(rows: Rows, row: int, kind: str, point: Any) -> None:
    rows.put(names.COLUMN_COUNT, row, point.count)
    if kind == "summary":
        rows.put(names.COLUMN_VALUE, row, point.sum)
        _note_quantiles(rows, row, point)
        return
    rows.put(names.COLUMN_VALUE, row, point.sum if point.HasField("sum") else None)
    if point.HasField("max"):
        rows.put(names.COLUMN_VALUE_MAX, row, point.max)
    if point.HasField("min"):
        rows.note(row, "min", repr(point.min))
    if kind == "histogram":
        rows.put(names.COLUMN_BOUNDS, row, list(point.explicit_bounds))
        rows.put(names.COLUMN_BUCKETS, row, list(point.bucket_counts))
    else:
        _note_exponents(rows, row, point)


def _note_quantiles(rows: Rows, row: int, point: SummaryDataPoint) -> None:
    for value in point.quantile_values:
        rows.note(row, f"quantile.{value.quantile!r}", repr(value.value))


def _note_exponents(rows: Rows, row: int, point: ExponentialHistogramDataPoint) -> None:
    """Their buckets have no bounds that could stand in a column: they are told as they came."""
    rows.note(row, "scale", str(point.scale))
    rows.note(row, "zero_count", str(point.zero_count))
    for name, buckets in (("positive", point.positive), ("negative", point.negative)):
        if buckets.bucket_counts:
            told = {"offset": buckets.offset, "counts": list(buckets.bucket_counts)}
            rows.note(row, name, json.dumps(told))
