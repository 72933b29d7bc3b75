"""What only runs of this protocol have: clocks hours apart, windows of every kind, nulls of both kinds."""

from dataclasses import dataclass, field, replace
from random import Random

from ordercast.core.view import FIRST
from ordercast.protocols.optimistic.settings import PERIODIC, REQUESTED, Settings
from ordercast.sim import standard
from ordercast.sim.client import Plan
from ordercast.sim.scenario import Scenario
from ordercast.v1.membership_pb2 import GroupView

#: How far apart wall clocks may be from the beginning.
APART_S = 3600.0


@dataclass(slots=True)
class OptimisticScenario(Scenario):
    #: The wall clocks of nodes and gateways, against the world's.
    walls: dict[str, float] = field(default_factory=dict)
    #: Groups that come while others are at work, and when.
    creations: list[tuple[float, GroupView]] = field(default_factory=list)


def draw(seed: int, *, reconfigure: bool = False) -> OptimisticScenario:
    random = Random(f"{seed}/optimistic")
    drawn = standard.draw(seed, {})
    scenario = OptimisticScenario(**{name: getattr(drawn, name) for name in drawn.__dataclass_fields__})
    scenario.settings = replace(
        Settings(idempotence_window=64),
        liveness=random.choice([REQUESTED, REQUESTED, PERIODIC]),
        barrier_s=random.choice([0.02, 0.05, 0.2]),
        window_us=random.choice([None, None, 0, 1000, 30_000]),
        window_quantile=random.choice([0.5, 0.9, 0.99]),
        window_cap_s=random.choice([0.01, 0.2]),
        parallel=random.choice([1, 2, 16]),
        entries_max=random.choice([1, 3, 512]),
        silence_s=random.choice([0.05, 0.3, 0.3]),
    )
    apart = random.choice([0.0, 0.0, 0.001, 0.05, APART_S])
    scenario.walls = {
        name: random.uniform(-apart, apart) for name in dict.fromkeys([*scenario.nodes, *scenario.gateways])
    }
    _draw_creations(random, scenario)
    return scenario


def _draw_creations(random: Random, scenario: OptimisticScenario) -> None:
    """New groups are published to as soon as clients know them, with others and alone."""
    others = [group.group for group in scenario.view.groups]
    for name in "xy"[: random.choice([0, 0, 1, 2])]:
        at = random.uniform(0.05, scenario.healing_at)
        replicas = sorted(random.sample(scenario.nodes, 3))
        scenario.creations.append((at, GroupView(group=name, configuration=FIRST, replicas=replicas)))
        for client in scenario.clients.values():
            for _ in range(random.choice([0, 2, 5])):
                chosen = [name, *random.sample(others, random.choice([0, 1]))]
                when = random.uniform(at, scenario.healing_at + 0.5)
                client.plans.append(Plan(when, tuple(sorted(chosen)), 1, unordered=False))
            client.plans.sort(key=lambda plan: plan.at)
