"""What is measured of our own cluster beside the rows: one document for each kind of figures."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ordercast.bench import environment
from ordercast.bench.goals import Goal
from ordercast.bench.plan import BenchPlan


@dataclass(frozen=True, slots=True)
class BenchReport:
    #: What the figures are called: in the document, and on disk.
    name: str
    entries: Sequence[dict[str, Any]]
    plan: BenchPlan
    goals: Sequence[Goal] = ()
    machine: dict[str, Any] = field(default_factory=environment.facts)

    def document(self) -> dict[str, Any]:
        return {
            self.name: list(self.entries),
            "goals": [asdict(goal) for goal in self.goals],
            "plan": asdict(self.plan),
            "machine": self.machine,
        }
