"""Rows: our own system, alone or beside peers, every system in turn, again and again."""

from dataclasses import asdict, dataclass
from typing import Any

from ordercast.bench import environment, goals, trial
from ordercast.bench.agenda import Agenda
from ordercast.bench.goals import Goal
from ordercast.bench.rows import BenchRow, medians
from ordercast.bench.trial import Say


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    agenda: Agenda
    #: Medians of the repetitions.
    rows: list[BenchRow]
    machine: dict[str, Any]

    @property
    def goals(self) -> list[Goal]:
        return goals.judge(self.rows, self.agenda.plan)

    def document(self) -> dict[str, Any]:
        return {
            "rows": [asdict(row) for row in self.rows],
            "goals": [asdict(goal) for goal in self.goals],
            "plan": {**asdict(self.agenda.plan), "repetitions": self.agenda.repetitions},
            "machine": self.machine,
        }


def run(agenda: Agenda, say: Say) -> ComparisonResult:
    rows: list[BenchRow] = []
    for repetition, tried in agenda.interleaved():
        rows += trial.run(tried, agenda.plan, with_prefix(say, f"{repetition + 1} of {agenda.repetitions}: "))
    return ComparisonResult(agenda, medians(rows), environment.facts())


def with_prefix(say: Say, prefix: str) -> Say:
    return lambda text: say(prefix + text)
