"""A protocol on trial: what it gives to be simulated, and one run of it, from a seed to a verdict.

Whatever the protocol, a run is the same story. A seed is drawn into a scenario; its cluster starts; clients
publish, faults strike, and the protocol's chores go on. Then everything heals but what is gone for good, and
all that was promised must hold.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from ordercast.core.errors import InvariantBroken
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.cluster import Cluster
from ordercast.sim.faults import Faults
from ordercast.sim.mutant import Mutant, Patch
from ordercast.sim.network import NetworkSettings
from ordercast.sim.world import World
from ordercast.v1.membership_pb2 import DomainView


class Drawn(Protocol):
    """What a run needs of a scenario, whatever is simulated. Most are a `sim.scenario.Scenario`."""

    network: NetworkSettings
    healing_at: float
    faults: dict[str, float]
    losses: list[float]


class Draw(Protocol):
    def __call__(self, seed: int, *, reconfigure: bool = False) -> Drawn: ...


class Changing(Protocol):
    """What faults ask of membership, and what it counts."""

    random: Random | None
    view: DomainView
    changes: dict[str, int]

    def can_spare(self, process: str, /) -> bool: ...


class Simulated(Protocol):
    """What a run needs of a cluster. Most are a `sim.cluster.Cluster`, whose clients publish through gateways."""

    #: Processes that will never come back.
    gone: dict[str, None]
    #: Messages between processes, by what they are.
    by_kind: dict[str, int]

    @property
    def scenario(self) -> Drawn: ...

    @property
    def world(self) -> World: ...

    @property
    def membership(self) -> Changing: ...

    @property
    def delivered(self) -> int: ...

    def start(self) -> None: ...

    def judge(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Trial:
    draw: Draw
    #: A cluster of a scenario: the machines of its nodes by role, its membership, and its checkers.
    cluster: Callable[..., Simulated]
    #: Whatever goes on in a run besides publishing and faults, begun when all processes have started.
    chores: Callable[[Any, int, Faults], None]
    mutants: Sequence[Mutant]
    #: The stories of mutants that random runs catch rarely, by mutant; and how one is played.
    schedules: Mapping[str, type[Any]]
    play: Callable[[Any], Violation | None]
    #: What the machines assert about themselves where a checker would see the same a little later.
    assertions: tuple[Patch, ...] = ()
    #: What is counted in a summary: a name, and the strike or change that it counts.
    counted: Mapping[str, str] = field(default_factory=dict)
    #: The same of runs in which replicas come and go. None if they do in every run: nobody has to ask for it.
    counted_reconfiguring: Mapping[str, str] | None = None
    #: For protocols that deliver to very many: one broadcast to about so many processes, some times, and what
    #: it came to; it says when each is done.
    audience: Callable[[int, int, Callable[[], None]], Mapping[str, Any]] | None = None

    def mutant(self, name: str) -> Mutant:
        return next(mutant for mutant in self.mutants if mutant.name == name)


@dataclass(slots=True)
class RunResult:
    seed: int
    violation: Violation | None
    delivered: int
    messages: int
    digest: str
    strikes: dict[str, int] = field(default_factory=dict)
    by_kind: dict[str, int] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)


def run_seed(trial: Trial, seed: int, *, reconfigure: bool = False, tracing: bool = False) -> RunResult:
    return run_scenario(trial, trial.draw(seed, reconfigure=reconfigure), seed, tracing=tracing)


def run_scenario(trial: Trial, scenario: Drawn, seed: int, *, tracing: bool = False) -> RunResult:
    cluster = trial.cluster(scenario, seed, tracing=tracing)
    world = cluster.world
    faults = prepare(cluster, seed)

    def run() -> None:
        begin(trial, cluster, seed, faults)
        world.run_until(scenario.healing_at)
        cluster.judge()

    violation = violation_in(run)
    return RunResult(
        seed,
        violation,
        cluster.delivered,
        world.messages,
        world.digest(),
        {**faults.strikes, **cluster.membership.changes},
        cluster.by_kind,
        world.trace,
    )


def prepare(cluster: Simulated, seed: int) -> Faults:
    """All that will be drawn while the run goes on."""
    scenario, membership = cluster.scenario, cluster.membership
    membership.random = Random(f"{seed}/views")
    return Faults(
        cluster.world,
        Random(f"{seed}/faults"),
        scenario.faults,
        scenario.healing_at,
        membership.view,
        cluster.gone,
        scenario.losses,
        membership.can_spare,
    )


def begin(trial: Trial, cluster: Simulated, seed: int, faults: Faults) -> None:
    cluster.start()
    if isinstance(cluster, Cluster) and cluster.protocol.traits.merges:
        cluster.merged.begin()
    trial.chores(cluster, seed, faults)


def violation_in(run: Callable[[], None]) -> Violation | None:
    """What the checkers find, or a machine finds out about itself."""
    try:
        run()
    except Violation as found:
        return found
    except (InvariantBroken, AssertionError) as broken:
        return Violation("invariant", f"{type(broken).__name__}: {broken}")
    return None
