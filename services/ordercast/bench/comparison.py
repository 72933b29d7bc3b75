"""A whole run: every system in turn, again and again, and then what only ours has."""

from dataclasses import asdict, dataclass
from typing import Any

from ordercast.bench import cpu_profile, environment, goals, long_replay, overload, stages, telemetry_cost, trial
from ordercast.bench.agenda import Agenda
from ordercast.bench.goals import Goal
from ordercast.bench.rows import Replay, Row, medians
from ordercast.bench.trial import Say


@dataclass(frozen=True, slots=True)
class Result:
    agenda: Agenda
    #: Medians of the repetitions.
    rows: list[Row]
    replays: list[Replay]
    #: Latency, and processor time, by the stage of an envelope's way.
    stages: list[dict[str, Any]]
    profile: list[dict[str, Any]]
    overload: list[dict[str, Any]]
    telemetry: list[dict[str, Any]]
    machine: dict[str, Any]

    @property
    def goals(self) -> list[Goal]:
        return [*goals.judge(self.rows, self.replays, self.agenda.plan), *goals.of_telemetry(self.telemetry)]

    def document(self) -> dict[str, Any]:
        return {
            "rows": [asdict(row) for row in self.rows],
            "replay": [asdict(replay) for replay in self.replays],
            "stages": self.stages,
            "overload": self.overload,
            "telemetry": self.telemetry,
            "profile": self.profile,
            "goals": [asdict(goal) for goal in self.goals],
            "plan": {**asdict(self.agenda.plan), "repetitions": self.agenda.repetitions},
            "machine": self.machine,
        }


def run(agenda: Agenda, say: Say) -> Result:
    rows: list[Row] = []
    replays: list[Replay] = []
    for repetition, tried in agenda.interleaved():
        outcome = trial.run(tried, agenda.plan, with_prefix(say, f"{repetition + 1} of {agenda.repetitions}: "))
        rows += outcome.rows
        replays += outcome.replays
    if agenda.replay_messages:
        replays += long_replay.run(agenda.plan, agenda.replay_messages, say)
    return Result(
        agenda,
        medians(rows),
        replays,
        stages.measure(agenda.plan, say) if agenda.has_stages else [],
        cpu_profile.run(agenda.plan, max(agenda.depths), say) if agenda.is_profiled else [],
        overload.measure(agenda.plan, say) if agenda.has_overload else [],
        telemetry_cost.measure(agenda.plan, agenda.depths, say) if agenda.has_telemetry else [],
        environment.facts(),
    )


def with_prefix(say: Say, prefix: str) -> Say:
    return lambda text: say(prefix + text)
