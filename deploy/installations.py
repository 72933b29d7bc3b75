"""Several installations may be in one Prometheus: what tells them apart, and how expressions choose among them.

`namespace` and `release` are those of Kubernetes and Helm; `cluster` is whatever name an operator gives to the
Kubernetes cluster or the place, where several send to one Prometheus. Where a label is missing, all have the same,
empty one.
"""

import re
from typing import Any

LABELS = ("cluster", "namespace", "release")
#: In the chart's copies of rules: the chart puts the labels of its own release here.
PLACEHOLDER = "ORDERCAST_INSTALLATION"

#: Series that are ours, that are recorded from ours, or that Prometheus and its client add for our processes.
SERIES = re.compile(
    r"(?<![\w:$\"-])((?:(?:[a-z]+:)?ordercast_[a-z0-9_]+(?::[a-z0-9_]+)?|process_[a-z0-9_]+|up|ALERTS))(?![\w:(=!~-])(\{)?"
)
QUOTED = re.compile(r'("[^"]*")')


def chosen(expression: str, chooser: str) -> str:
    """The expression over those series alone that the chooser names, such as `namespace="a"`."""

    def scoped(found: re.Match[str]) -> str:
        return f"{found[1]}{{{chooser}, " if found[2] else f"{found[1]}{{{chooser}}}"

    parts = QUOTED.split(expression)
    return "".join(part if part.startswith('"') else SERIES.sub(scoped, part) for part in parts)


def of_one_installation(document: dict[str, Any]) -> dict[str, Any]:
    """Rules and alerts for one installation alone: those of another would record the same series."""
    groups = [
        {**group, "rules": [{**rule, "expr": chosen(rule["expr"], PLACEHOLDER)} for rule in group["rules"]]}
        for group in document["groups"]
    ]
    return {**document, "groups": groups}
