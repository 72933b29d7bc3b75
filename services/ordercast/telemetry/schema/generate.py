"""Writes what is made from the schema: `python -m ordercast.telemetry.schema.generate` (`make schema`)."""

from collections.abc import Iterable
from pathlib import Path

from ordercast.telemetry.schema.model import FOLDER, Attribute, Column, Event, Metric, Schema, Span, load

NAMES = FOLDER / "names.py"
#: Beside the package, in a checkout.
PAGE = FOLDER.parents[3] / "docs" / "telemetry-schema.md"


def constant(name: str, kind: str = "") -> str:
    """ordercast.publish.duration -> PUBLISH_DURATION"""
    words = name.removeprefix("ordercast.").replace(".", "_").upper()
    return f"{kind}_{words}" if kind else words


def names(schema: Schema) -> str:
    lines = ['"""Made from the schema by `make schema`; not edited."""', "", f"VERSION = {schema.version}"]
    for kind, entries in (
        ("ATTRIBUTE", schema.attributes),
        ("SPAN", schema.spans),
        ("EVENT", schema.events),
        ("METRIC", schema.metrics),
        ("COLUMN", schema.columns),
    ):
        lines += [""] + [f'{constant(name, kind)} = "{name}"' for name in entries]
    return "\n".join(lines) + "\n"


def page(schema: Schema) -> str:
    """For people."""
    parts = [
        "# What Ordercast says about itself",
        "Every metric, span, event and attribute, from `services/ordercast/telemetry/schema/`; this page is made "
        f"from those files by `make schema`. Version {schema.version}.",
        "## Metrics",
        "Each is there for Prometheus under the name in the second column, and leaves by OTLP under the first.",
        _table(
            ("name", "Prometheus", "kind, unit", "labels", "from", "meaning"),
            map(_metric, schema.metrics.values()),
        ),
        "## Spans",
        _table(("name", "protocols", "from", "meaning", "attributes"), map(_span, schema.spans.values())),
        "## Events",
        _table(("name", "from", "meaning", "attributes"), map(_event, schema.events.values())),
        "## Attributes",
        _table(("name", "type", "column", "label", "meaning"), map(_attribute, schema.attributes.values())),
        "## Columns of records in tables",
        _table(("column", "type", "meaning"), map(_column, schema.columns.values())),
    ]
    return "\n\n".join(parts) + "\n"


def _table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [headings, ("---",) * len(headings), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _code(names_: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names_) or "-"


def _metric(metric: Metric) -> tuple[str, ...]:
    kind = f"{metric.instrument}, {metric.unit}"
    labels = _code(metric.attributes)
    return f"`{metric.name}`", f"`{metric.prometheus}`", kind, labels, metric.emitter, metric.meaning


def _span(span: Span) -> tuple[str, ...]:
    return f"`{span.name}`", ", ".join(span.protocols), span.emitter, span.meaning, _code(span.attributes)


def _event(event: Event) -> tuple[str, ...]:
    return f"`{event.name}`", event.emitter, event.meaning, _code(event.attributes)


def _attribute(attribute: Attribute) -> tuple[str, ...]:
    column = f"`{attribute.column}`" if attribute.column else "-"
    label = f"`{attribute.prometheus}`" if attribute.prometheus else "-"
    return f"`{attribute.name}`", attribute.type, column, label, attribute.meaning


def _column(column: Column) -> tuple[str, ...]:
    return f"`{column.name}`", f"`{column.type}`", column.meaning


def main(names_path: Path = NAMES, page_path: Path = PAGE) -> None:
    schema = load()
    names_path.write_text(names(schema))
    page_path.write_text(page(schema))


if __name__ == "__main__":
    main()
