"""What a seed stands for: who is where in the subdivision, who publishes what, and which faults come when."""

from dataclasses import dataclass, field
from random import Random

from ordercast.protocols.apbcast.settings import Leaves, Rounds, Settings
from ordercast.sim.network import NetworkSettings
from ordercast.sim.scenario import draw_faults, draw_losses

REGISTRAR = "m1"
GROUPS = ("red", "green", "blue")


@dataclass(slots=True)
class LeafPlan:
    address: tuple[int, ...]
    leaves: Leaves = Leaves.EXACT
    interest: tuple[str, ...] = ()
    #: When it comes, and when it goes if it does.
    comes_at: float = 0.0
    goes_at: float | None = None


@dataclass(slots=True)
class ProducerPlan:
    #: When, and for which groups.
    messages: list[tuple[float, tuple[str, ...]]]
    #: Through which broadcasters, in turn.
    broadcasters: list[str]
    patience_s: float
    pipeline: int
    #: The leaf that it reads at: what it says comes after what it has read.
    reads_at: str = ""


@dataclass(slots=True)
class AudienceScenario:
    #: Root groups as they begin, by name, and roots that are in none.
    roots: dict[str, tuple[str, ...]]
    spares: tuple[str, ...]
    #: By name: home and messages per second.
    broadcasters: dict[str, tuple[str, float]]
    leaves: dict[str, LeafPlan]
    producers: dict[str, ProducerPlan]
    settings: Settings
    network: NetworkSettings
    healing_at: float
    faults: dict[str, float] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    disk_delay_s: float = 0.001
    clock_rates: dict[str, float] = field(default_factory=dict)
    #: When roots are added, removed or replaced, homes moved, groups created and given up.
    changes: list[float] = field(default_factory=list)
    #: Keep so many messages beyond what must be kept; None keeps all.
    retention: int | None = None
    #: Processes that a director starts later.
    absent: tuple[str, ...] = ()

    @property
    def all_roots(self) -> tuple[str, ...]:
        return (*(name for members in self.roots.values() for name in members), *self.spares)


def draw(seed: int, *, reconfigure: bool = False) -> AudienceScenario:
    """Roots come and go in every run: there is nothing to be asked for."""
    random = Random(f"{seed}/scenario")
    until = random.uniform(1.5, 3.5)
    sizes = random.choice([(3,), (3, 3), (3, 3), (1, 3), (3, 2)])
    roots, number = {}, 0
    for index, size in enumerate(sizes):
        roots[f"g{index}"] = tuple(f"r{number + i}" for i in range(size))
        number += size
    spares = tuple(f"r{number + i}" for i in range(random.choice([1, 2, 3])))
    names = [f"b{i}" for i in range(random.choice([1, 2, 3, 3, 4]))]
    rates = [random.choice([0.5, 2.0, 10.0, 40.0]) for _ in names]
    broadcasters = {n: (random.choice(sorted(roots)), rate) for n, rate in zip(names, rates, strict=True)}
    leaves = _draw_leaves(random, len(sizes), until)
    changes = sorted(random.uniform(0.3, until) for _ in range(random.choice([0, 1, 2, 4])))
    return AudienceScenario(
        roots,
        spares,
        broadcasters,
        leaves,
        _draw_producers(random, names, sorted(leaves), until),
        _draw_settings(random),
        _draw_network(random),
        until,
        draw_faults(random),
        draw_losses(random, until),
        random.choice([0.0, 0.001, 0.004]),
        {name: random.choice([1.0, 1.0, 0.99, 1.02]) for name in names},
        changes,
        random.choice([None, None, 0, 5]),
    )


def _draw_settings(random: Random) -> Settings:
    return Settings(
        rounds=random.choice([Rounds.FIGURE, Rounds.BOUNDED]),
        representatives=random.choice([1, 2, 3]),
        fanout=random.choice([1, 2, 3]),
        pull=random.random() < 0.3,
        hold=random.choice([4, 1024]),
        cache=random.choice([8, 1024]),
        window=random.choice([2, 8, 64]),
        patience_rounds=random.choice([0, 0, 5]),
        silent_s=random.choice([0.5, 1.0]),
        gossip_s=0.1,
        update_s=0.4,
    )


def _draw_network(random: Random) -> NetworkSettings:
    """What is lost, doubled or overtaken is between leaves: others have channels."""
    return NetworkSettings(
        delay_s=random.choice([0.001, 0.004]),
        loss=random.choice([0.0, 0.05, 0.2]),
        duplication=random.choice([0.0, 0.1]),
        datagrams=random.random() < 0.7,
    )


def _draw_leaves(random: Random, subdivisions: int, until: float) -> dict[str, LeafPlan]:
    leaves: dict[str, LeafPlan] = {}
    # Few in most runs, which then take a second at most; some dozens in others.
    below, lowest = random.choice([(1, 3), (2, 2), (2, 3), (3, 5)])
    for top in range(subdivisions):
        for middle in range(below):
            for low in range(1, random.randint(2, lowest) + 1):
                plan = LeafPlan((top, middle, low))
                kind = random.random()
                if kind < 0.2:
                    plan.leaves = Leaves.LIVE
                elif kind < 0.4:
                    plan.interest = tuple(sorted(random.sample(GROUPS, random.choice([1, 2]))))
                if random.random() < 0.2:
                    plan.comes_at = random.uniform(0.0, until)
                if random.random() < 0.1:
                    plan.goes_at = random.uniform(plan.comes_at, until)
                leaves[f"l{len(leaves)}"] = plan
    return leaves


def _draw_producers(
    random: Random, broadcasters: list[str], leaves: list[str], until: float
) -> dict[str, ProducerPlan]:
    producers = {}
    for index in range(random.choice([2, 3, 4])):
        count = random.randint(4, 14)
        burst = random.random() < 0.3
        times = sorted(
            random.choice([0.5, until / 2]) if burst else random.uniform(0.1, until) for _ in range(count)
        )
        groups = [tuple(sorted(random.sample(GROUPS, random.choice([1, 1, 2])))) for _ in times]
        producers[f"p{index}"] = ProducerPlan(
            list(zip(times, groups, strict=True)),
            random.sample(broadcasters, len(broadcasters)),
            random.choice([0.3, 1.0, 3.0]),
            random.choice([1, 3, 8]),
            random.choice(leaves) if random.random() < 0.5 else "",
        )
    return producers
