"""What a seed stands for: a domain of three to six processes, whose groups hold one or three of them."""

from dataclasses import dataclass, field
from random import Random

from ordercast.protocols.toto.settings import ALL, HALF, Settings
from ordercast.sim import standard
from ordercast.sim.scenario import Scenario
from ordercast.sim.toto.membership import ROLE
from ordercast.v1.membership_pb2 import ProcessView


@dataclass(slots=True)
class TotoScenario(Scenario):
    #: When somebody is suspected who is up.
    suspicions: list[float] = field(default_factory=list)


def draw(seed: int, *, reconfigure: bool = False) -> TotoScenario:
    random = Random(f"{seed}/{ROLE}")
    drawn = standard.draw(seed, {})
    scenario = TotoScenario(**{name: getattr(drawn, name) for name in Scenario.__dataclass_fields__})
    scenario.view.processes.CopyFrom(ProcessView(number=1, names=sorted(scenario.nodes)))
    scenario.settings = draw_settings(random)
    until = scenario.healing_at
    scenario.suspicions = sorted(random.uniform(0.1, until) for _ in range(random.choice([0, 0, 1, 3])))
    return scenario


def draw_settings(random: Random) -> Settings:
    return Settings(
        phi=random.choice([HALF, HALF, HALF, "3", ALL]),
        idle_delay_s=random.choice([0.0, 0.002, 0.02]),
        settle_batch=random.choice([1, 4, 64]),
        idempotence_window=64,
        log_chunk=random.choice([2, 16]),
    )
