"""What every seed stands for, whatever the protocol: who is where, who publishes what, which faults come when."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ordercast.core.cells import SLASH
from ordercast.gateway.settings import GatewaySettings
from ordercast.sim.board import Groups
from ordercast.sim.client import ClientSettings, Plan
from ordercast.sim.network import NetworkSettings
from ordercast.v1.membership_pb2 import DomainView


@dataclass(slots=True)
class Scenario:
    """Protocols add what only they have."""

    nodes: list[str]
    #: Processes that host a gateway: some of the nodes, or processes of their own.
    gateways: list[str]
    view: DomainView
    clients: dict[str, ClientSettings]
    network: NetworkSettings
    #: The protocol's own.
    settings: Any
    gateway_settings: GatewaySettings
    #: Faults happen before this time; afterwards everything heals.
    healing_at: float
    #: How often faults strike, per second, by kind.
    faults: dict[str, float] = field(default_factory=dict)
    #: When somebody dies who never comes back, if majorities live on without him.
    losses: list[float] = field(default_factory=list)
    disk_delay_s: float = 0.001
    #: How fast each node's monotonic clock runs.
    clock_rates: dict[str, float] = field(default_factory=dict)
    #: Keep this many log entries beyond what must be kept; None keeps all.
    retention: int | None = None
    #: Clients also answer what is delivered early and nobody's log shows yet. A crash may take that back.
    reads_live: bool = False


def draw_passing_client(random: Random, sets: list[Groups], gateways: list[str], until: float) -> ClientSettings:
    """One after the other. There is a producer for each of the others, so none of those has to be forgotten."""
    favourites = random.sample(sets, min(len(sets), random.choice([1, 2])))
    plans = [
        Plan(random.uniform(0.05, until), random.choice(favourites), random.choice([1, 1, 3]), unordered=False)
        for _ in range(random.randint(20, 40))
    ]
    plans.sort(key=lambda plan: plan.at)
    patience_s = random.choice([0.05, 0.4, 1.0])
    turned = random.sample(gateways, len(gateways))
    return ClientSettings(plans, turned, pipeline=1, patience_s=patience_s, opens=True, passing=True)


def draw_client(random: Random, groups: list[str], gateways: list[str], until: float) -> ClientSettings:
    unordered = random.random() < 0.3
    favourites = [draw_set(random, groups) for _ in range(random.choice([1, 2, 3]))]
    plans = []
    burst = random.random() < 0.5
    for _ in range(random.randint(8, 24)):
        at = random.choice([0.1, until / 2]) if burst else random.uniform(0.05, until)
        chosen = random.choice(favourites) if random.random() < 0.8 else draw_set(random, groups)
        plan = Plan(at, chosen, random.choice([1, 1, 2, 3]), unordered, reads=random.random() < 0.3)
        plans.append(plan)
    plans.sort(key=lambda plan: plan.at)
    return ClientSettings(
        plans,
        random.sample(gateways, len(gateways)),
        pipeline=random.choice([1, 4, 8]),
        patience_s=random.choice([0.05, 0.4, 1.0, 3.0]),
        opens=random.random() < 0.2,
        greedy=random.random() < 0.1,
    )


def share_cells(random: Random, scenario: Scenario) -> None:
    """In half of the runs some cells have several groups, and messages for such a cell are for some of them."""
    if random.random() < 0.5:
        return
    counts = {group.group: random.choice([0, 1, 2, 3]) for group in scenario.view.groups}
    for client in scenario.clients.values():
        for plan in client.plans:
            cells = plan.groups
            plan.groups = _some_of_each(random, cells, counts)
            if not plan.answers and random.random() < 0.5:
                plan.count = random.randint(2, 6)
                plan.each = [_some_of_each(random, cells, counts) for _ in range(plan.count)]


def _some_of_each(random: Random, cells: Groups, counts: Mapping[str, int]) -> Groups:
    return tuple(sorted(group for cell in cells for group in _some_of(random, cell, counts)))


def _some_of(random: Random, cell: str, counts: Mapping[str, int]) -> list[str]:
    """Groups of a cell, by address; or the one that has it to itself, as in cells that come later."""
    groups = [f"{cell}{SLASH}{name}" for name in "pqr"[: counts.get(cell, 0)]]
    return random.sample(groups, random.randint(1, len(groups))) if groups else [cell]


def draw_set(random: Random, groups: list[str]) -> Groups:
    """Overlapping sets of one to all groups, small ones more often."""
    size = min(random.choice([1, 1, 2, 2, 2, 3, len(groups)]), len(groups))
    return tuple(sorted(random.sample(groups, size)))


def draw_losses(random: Random, until: float) -> list[float]:
    """In some runs, at any moment. Others lose somebody when they heal: see faults.py."""
    return sorted(random.uniform(0.05, until) for _ in range(random.choice([0, 0, 0, 1, 1, 2])))


def draw_faults(random: Random) -> dict[str, float]:
    """Some runs have none, some have one kind, some have everything at once."""
    kinds = {
        "crash": 1.5,
        "crash_at_commit": 1.5,
        "power_loss": 0.2,
        "partition": 1.0,
        "one_way": 0.7,
        "bridge": 0.4,
        "flapping": 0.3,
        "break": 3.0,
        "pause": 0.8,
        "slow_disk": 0.5,
        "clock_jump": 0.5,
    }
    style = random.random()
    if style < 0.1:
        return {}
    if style < 0.4:
        kind = random.choice(sorted(kinds))
        return {kind: kinds[kind] * 2}
    return {kind: rate * random.uniform(0.2, 1.5) for kind, rate in kinds.items() if random.random() < 0.6}
