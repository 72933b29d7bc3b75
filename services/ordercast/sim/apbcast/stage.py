"""Roots and broadcasters under a director: for scripted schedules, where every delay is chosen.

There are no leaves. Producers are the director, who says what is published where; a message without a receipt
is not repeated. At the end everything heals but what is gone for good, and the usual checkers judge.
"""

from typing import Any, ClassVar

from ordercast.protocols.apbcast.events import BROADCASTER, REGISTRAR, ROOT, MoveHome, PlaceRoots, Publish
from ordercast.protocols.apbcast.settings import Settings
from ordercast.sim import stage
from ordercast.sim.apbcast.cluster import AudienceCluster
from ordercast.sim.apbcast.scenario import REGISTRAR as REGISTRAR_PROCESS
from ordercast.sim.apbcast.scenario import AudienceScenario
from ordercast.sim.checkers.violation import Violation
from ordercast.v1.apbcast_pb2 import Publication

#: Simulated seconds after the healing in which everything must have come to rest.
REST_S_MAX = 20.0


class Stage(stage.Stage[Any]):
    def __init__(self, schedule: "Schedule", *, tracing: bool = False) -> None:
        scenario = AudienceScenario(
            roots=schedule.groups,
            spares=tuple(schedule.spare),
            broadcasters={name: (home, 10.0) for name, home in schedule.broadcasters.items()},
            leaves={},
            producers={},
            settings=schedule.settings,
            network=stage.exact_network(),
            healing_at=0.0,
            disk_delay_s=0.0,
            absent=schedule.away,
        )
        super().__init__(AudienceCluster(scenario, "stage", tracing=tracing))
        self.sequences: dict[str, int] = {}
        #: Whose messages may be lost with their broadcaster.
        self.may_lose: dict[bytes, None] = {}
        self.run(1.0)

    def machine(self, process: str, role: str) -> Any:
        return self.cluster.machine(process, role)

    def root(self, process: str) -> Any:
        return self.machine(process, ROOT)

    def publish(self, producer: str, through: str) -> None:
        process = self.world.processes[through]
        self.sequences[producer] = sequence = self.sequences.get(producer, 0) + 1
        cast = Publication(producer=producer.encode(), sequence=sequence, groups=("red",), body=producer.encode())
        self.cluster.checker.on_published(cast, "")
        process.tell(BROADCASTER, Publish(*process.clock(), cast, sequence))

    def place(self, group: str, *members: str) -> None:
        registrar = self.world.processes[REGISTRAR_PROCESS]
        registrar.tell(REGISTRAR, PlaceRoots(*registrar.clock(), group, members))

    def move_home(self, broadcaster: str, home: str) -> None:
        process = self.world.processes[broadcaster]
        process.tell(BROADCASTER, MoveHome(*process.clock(), home))

    def everybody_but(self, *names: str) -> list[str]:
        return [name for name in self.world.processes if name not in names]

    def part(self, *names: str) -> None:
        """From everyone else, both ways."""
        for name in names:
            for other in self.everybody_but(*names):
                self.hold(name, other)
                self.hold(other, name)

    def join(self, *names: str) -> None:
        """The opposite of `part`."""
        for name in names:
            for other in self.everybody_but(*names):
                self.release(name, other)
                self.release(other, name)

    def finish(self, *gone: str) -> None:
        self.heal(*gone)
        self.run(5.0)
        checker = self.cluster.checker
        for message in [m for m in checker.published if m[0] in self.may_lose and m not in checker.place]:
            del checker.published[message]
        self.cluster.rest_s_max = REST_S_MAX
        self.cluster.judge()


class Schedule(stage.Schedule):
    groups: ClassVar[dict[str, tuple[str, ...]]] = {"g0": ("r0", "r1", "r2")}
    spare: tuple[str, ...] = ()
    #: By name, their homes.
    broadcasters: ClassVar[dict[str, str]] = {"b0": "g0", "b1": "g0"}
    away: tuple[str, ...] = ()
    settings: Settings = Settings()


def verdict(schedule: Schedule, *, tracing: bool = False) -> tuple[Violation | None, list[str]]:
    """What the checkers say of a schedule, and its conversation."""
    return stage.verdict_on(schedule, Stage(schedule, tracing=tracing))
