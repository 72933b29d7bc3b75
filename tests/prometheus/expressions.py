"""What is wrong with an expression of PromQL, as far as the schema of telemetry can tell: what nobody emits."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml

from deploy.installations import LABELS
from ordercast.telemetry.schema.model import load
from tests.prometheus.programs import CONFIG

NAME = re.compile(r"(?<![\w:$])(?:[a-z]+:)?ordercast_[a-z0-9_]+(?::[a-z0-9_]+)?")
CHOSEN = re.compile(r"((?:[a-z]+:)?ordercast_[a-z0-9_]+(?::[a-z0-9_]+)?)\{([^}]*)\}")
GROUPED = re.compile(r"\b(?:by|on) \(([^)]*)\)")
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
#: What Prometheus adds to histograms.
OF_HISTOGRAMS = ("_bucket", "_sum", "_count")
#: What Prometheus adds to everything, or to its own series.
OF_PROMETHEUS = {"instance", "job", "le", "alertname", "alertstate", "severity", *LABELS}


def rules(path: Path) -> list[dict]:
    """All of one file."""
    return [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


@cache
def recorded() -> dict[str, str]:
    """Expressions by the names that they are recorded under."""
    return {rule["record"]: rule["expr"] for rule in rules(CONFIG / "rules.yml")}


@cache
def labels_of_metrics() -> dict[str, set[str]]:
    """By each name that Prometheus knows for something that we emit."""
    schema = load()
    found = {}
    for metric in schema.metrics.values():
        labels = {schema.attributes[name].prometheus for name in metric.attributes} | OF_PROMETHEUS
        suffixes = OF_HISTOGRAMS if metric.instrument == "histogram" else ("",)
        found |= {metric.prometheus + suffix: labels for suffix in suffixes}
    return found


def names_in(expression: str) -> set[str]:
    """Of metrics and recorded series that are ours. What stands in quotes or is grouped by is none of them."""
    return set(NAME.findall(re.sub(r'"[^"]*"', '""', expression)))


def labels_of(name: str) -> set[str]:
    """Of a metric, or of what is recorded: the labels that all of its parts are summed by."""
    expression = recorded().get(name)
    if expression is None:
        return labels_of_metrics()[name]
    grouped = [
        {label.strip() for label in found.split(",")} for found in re.findall(r"by \(([^)]*)\)", expression)
    ]
    if grouped:
        return set.intersection(*grouped) - {"le"}
    return set.intersection(*(labels_of(part) for part in names_in(expression)))


def errors(expression: str) -> Iterator[str]:
    known = labels_of_metrics().keys() | recorded().keys()
    names = names_in(expression)
    yield from (f"nobody emits {name}" for name in sorted(names - known))
    if names - known:
        return
    for name, chosen in CHOSEN.findall(expression):
        for label in LABEL.findall(re.sub(r'"[^"]*"', "", chosen)):
            if label not in labels_of(name):
                yield f"{name} has no label {label}"
    if names:
        possible = set.union(*(labels_of(name) for name in names)) | OF_PROMETHEUS
        for grouped in GROUPED.findall(expression):
            for label in filter(None, (part.strip() for part in grouped.split(","))):
                if label not in possible:
                    yield f"nothing here has a label {label}: {expression}"
