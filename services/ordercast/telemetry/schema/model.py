"""The schema as Python values. What does not fit together is refused when it is loaded."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent

INSTRUMENTS = ("counter", "gauge", "histogram")
EMITTERS = ("gateway", "sequencer", "membership", "all", "telemetry", "analytics")
#: The types of attributes, and of columns that hold them.
COLUMN_OF_TYPE = {"string": "string", "int": "int64", "bytes": "binary"}
#: How units stand in names for Prometheus.
SUFFIX_OF_UNIT = {"s": "_seconds", "By": "_bytes", "1": ""}


class SchemaError(ValueError):
    """The text names what does not fit."""


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    type: str
    meaning: str
    #: In tables; none: in the column `attributes`.
    column: str = ""
    #: The label in metrics; none: metrics do not have it.
    prometheus: str = ""
    #: Said once by a process of all that it sends.
    resource: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    name: str
    emitter: str
    meaning: str
    protocols: tuple[str, ...]
    attributes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Event:
    name: str
    emitter: str
    meaning: str
    body: str
    attributes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    instrument: str
    unit: str
    emitter: str
    meaning: str
    attributes: tuple[str, ...]
    exemplars: bool = False

    @property
    def prometheus(self) -> str:
        """As Prometheus knows it, without what it adds to histograms itself."""
        total = "_total" if self.instrument == "counter" else ""
        return self.name.replace(".", "_") + SUFFIX_OF_UNIT.get(self.unit, "") + total


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    meaning: str
    #: The attribute that it holds, if it holds one.
    attribute: str = ""


@dataclass(frozen=True, slots=True)
class Schema:
    version: int
    attributes: Mapping[str, Attribute]
    spans: Mapping[str, Span]
    events: Mapping[str, Event]
    metrics: Mapping[str, Metric]
    #: In their order in tables.
    columns: Mapping[str, Column]
    #: Upper bounds, by unit.
    buckets: Mapping[str, tuple[float, ...]]


@cache
def load() -> Schema:
    return made_from({path.stem: tomllib.loads(path.read_text()) for path in sorted(FOLDER.glob("*.toml"))})


def made_from(files: Mapping[str, Mapping[str, Any]]) -> Schema:
    """From what stands in the files, by their names."""
    attributes = {a.name: a for a in (Attribute(**entry) for entry in files["attributes"]["attribute"])}
    for attribute in attributes.values():
        if attribute.type not in COLUMN_OF_TYPE:
            raise SchemaError(f"{attribute.name}: there is no type {attribute.type}")
    spans = {s.name: s for s in (Span(**_frozen(entry)) for entry in files["spans"]["span"])}
    events = {e.name: e for e in (Event(**_frozen(entry)) for entry in files["events"]["event"])}
    metrics = {m.name: m for m in (Metric(**_frozen(entry)) for entry in files["metrics"]["metric"])}
    own = [Column(**entry) for entry in files["columns"]["column"]]
    of_attributes = [
        Column(a.column, COLUMN_OF_TYPE[a.type], a.meaning, a.name) for a in attributes.values() if a.column
    ]
    # The map of all other attributes stays last.
    columns = {column.name: column for column in (*own[:-1], *of_attributes, own[-1])}
    buckets = {unit: tuple(map(float, bounds)) for unit, bounds in files["metrics"]["buckets"].items()}
    schema = Schema(files["columns"]["version"], attributes, spans, events, metrics, columns, buckets)
    _check(schema, files)
    return schema


def _frozen(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}


def _check(schema: Schema, files: Mapping[str, Mapping[str, Any]]) -> None:
    counts = {"attributes": "attribute", "spans": "span", "events": "event", "metrics": "metric"}
    for field, entry in counts.items():
        if len(getattr(schema, field)) != len(files[field][entry]):
            raise SchemaError(f"{field}: a name is there twice")
    if len(schema.columns) != len(files["columns"]["column"]) + sum(
        bool(attribute.column) for attribute in schema.attributes.values()
    ):
        raise SchemaError("columns: a name is there twice")
    emitted: list[Span | Event | Metric] = [
        *schema.spans.values(),
        *schema.events.values(),
        *schema.metrics.values(),
    ]
    for one in emitted:
        if one.emitter not in EMITTERS:
            raise SchemaError(f"{one.name}: there is no emitter {one.emitter}")
        unknown = [name for name in one.attributes if name not in schema.attributes]
        if unknown:
            raise SchemaError(f"{one.name}: there is no attribute {unknown[0]}")
    for metric in schema.metrics.values():
        _check_metric(schema, metric)


def _check_metric(schema: Schema, metric: Metric) -> None:
    if metric.instrument not in INSTRUMENTS:
        raise SchemaError(f"{metric.name}: there is no instrument {metric.instrument}")
    if metric.unit not in SUFFIX_OF_UNIT and not (metric.unit[:1] == "{" and metric.unit[-1:] == "}"):
        raise SchemaError(f"{metric.name}: there is no unit {metric.unit}")
    if metric.instrument == "histogram" and metric.unit not in schema.buckets:
        raise SchemaError(f"{metric.name}: there are no buckets for {metric.unit}")
    if metric.exemplars and metric.instrument != "histogram":
        raise SchemaError(f"{metric.name}: only histograms have exemplars")
    for name in metric.attributes:
        if not schema.attributes[name].prometheus:
            raise SchemaError(f"{metric.name}: {name} is no label")
