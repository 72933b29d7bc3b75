"""A small cluster under a director: for scripted schedules, where every delay is chosen.

Links carry frames in one millisecond and disks sync at once. The director holds and releases directions and disks,
crashes and restarts, and tells whom he likes what membership has decided; how somebody publishes, and what
membership decides, is each protocol's own. At the end everything heals, and the usual checkers judge.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

from ordercast.sim.checkers.violation import Violation
from ordercast.sim.cluster import Cluster
from ordercast.sim.network import NetworkSettings
from ordercast.sim.trial import violation_in

#: Longer than any schedule.
NEVER_S = 1e6

C = TypeVar("C", bound=Cluster[Any, Any])


def exact_network() -> NetworkSettings:
    return NetworkSettings(delay_s=0.001, exact=True)


class Stage(ABC, Generic[C]):
    def __init__(self, cluster: C) -> None:
        self.cluster = cluster
        self.world = cluster.world
        cluster.start()
        self.run(0.01)

    def run(self, seconds: float) -> None:
        self.world.run_until(self.world.now + seconds)

    # ------------------------------------------------------------------------------- network, disks, lives

    def hold(self, source: str, *to: str) -> None:
        """What goes there waits."""
        for name in to:
            self.world.network.block(source, name)

    def release(self, source: str, *to: str) -> None:
        for name in to:
            self.world.network.unblock(source, name)

    def part(self, *names: str) -> None:
        """From everyone else among the nodes, both ways."""
        others = [name for name in self.cluster.scenario.nodes if name not in names]
        for name in names:
            self.hold(name, *others)
            for other in others:
                self.hold(other, name)

    def lose_in_flight(self, a: str, b: str) -> None:
        """The connection breaks: what it carried, or held, is lost."""
        self.world.network.break_connection(a, b)

    def hold_disk(self, process: str) -> None:
        self.world.processes[process].disk_delay_s = NEVER_S

    def slow_disk(self, process: str, seconds: float) -> None:
        self.world.processes[process].disk_delay_s = seconds

    def release_disk(self, name: str) -> None:
        """What was held is synced at once."""
        process = self.world.processes[name]
        process.disk_delay_s = 0.0
        if process.disk.writing is not None:
            process._synced(process.disk.writing)

    def crash(self, *names: str) -> None:
        for name in names:
            self.world.processes[name].crash()

    def restart(self, *names: str) -> None:
        for name in names:
            self.world.processes[name].disk_delay_s = 0.0
            self.world.processes[name].start()

    def pause(self, process: str, seconds: float) -> None:
        self.world.processes[process].paused_until = self.world.now + seconds

    def truncate(self) -> None:
        """Retention drops all that it may, everywhere."""
        self.cluster.truncate(0)

    def tell(self, *processes: str) -> None:
        """The latest of membership."""
        for name in processes:
            self.cluster.membership.tell(name, len(self.cluster.membership.history) - 1)

    # ------------------------------------------------------------------------------------------- verdict

    def heal(self, *gone: str) -> None:
        """Everything but what is gone for good."""
        self.crash(*gone)
        self.cluster.gone.update(dict.fromkeys(gone))
        for source, to in list(self.world.network.blocked):
            while self.world.network.is_blocked(source, to):
                self.release(source, to)
        for name, process in self.world.processes.items():
            if process.up:
                self.release_disk(name)
            elif name not in gone:
                self.restart(name)

    @abstractmethod
    def finish(self, *gone: str) -> None:
        """Heal everything but what is gone for good, come to rest, check."""


class Schedule(ABC):
    """A story that only a broken protocol gets wrong. Subclasses say who there is and what happens."""

    #: The mutant that this schedule catches.
    mutant: str
    groups: ClassVar[dict[str, tuple[str, ...]]]
    #: Nodes for later.
    spare: tuple[str, ...] = ()

    @abstractmethod
    def play(self, stage: Any) -> None: ...


def verdict_on(schedule: Schedule, stage: Stage[Any]) -> tuple[Violation | None, list[str]]:
    """What the checkers say of a schedule, and its conversation."""
    return violation_in(lambda: schedule.play(stage)), stage.world.trace
