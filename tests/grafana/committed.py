"""The dashboards as they are committed: their panels, and what these ask for."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.tidy.rules import ROOT

FOLDER = ROOT / "deploy" / "grafana" / "dashboards"


@dataclass(frozen=True, slots=True)
class Panel:
    dashboard: str
    body: dict[str, Any]

    @property
    def title(self) -> str:
        return str(self.body.get("title", ""))

    @property
    def expressions(self) -> list[str]:
        return [target["expr"] for target in self.body.get("targets", [])]

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.title}"


def dashboards() -> dict[str, dict[str, Any]]:
    """By uid."""
    found = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]
    return {dashboard["uid"]: dashboard for dashboard in found}


def panels_of(dashboard: dict[str, Any]) -> Iterator[Panel]:
    """Without the rows between them, but with what a row that is folded up holds."""
    for body in dashboard["panels"]:
        if body["type"] == "row":
            yield from (Panel(dashboard["uid"], inner) for inner in body.get("panels", []))
        else:
            yield Panel(dashboard["uid"], body)


def panels() -> list[Panel]:
    return [panel for dashboard in dashboards().values() for panel in panels_of(dashboard)]
