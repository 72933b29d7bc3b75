"""What a seed stands for: groups and how they overlap, who publishes what, which faults come when."""

from dataclasses import dataclass, field, replace
from random import Random

from ordercast.core.level import LEVEL
from ordercast.core.view import FIRST
from ordercast.gateway.settings import GatewaySettings
from ordercast.protocols.isis.settings import ALL, K_STABILITY, MAJORITY, Causality, FlushKind, Ordering, Settings
from ordercast.sim.board import Groups
from ordercast.sim.client import ClientSettings, Plan
from ordercast.sim.isis.caster import CasterSettings
from ordercast.sim.network import NetworkSettings
from ordercast.sim.scenario import (
    Scenario,
    draw_client,
    draw_faults,
    draw_losses,
    draw_passing_client,
    share_cells,
)
from ordercast.v1.membership_pb2 import DomainView, GroupView


@dataclass(slots=True)
class IsisScenario(Scenario):
    settings: Settings
    #: Who casts through members, past the gateways: nobody in random runs.
    casters: dict[str, CasterSettings] = field(default_factory=dict)
    #: When somebody changes where a group is, when somebody tells somebody something, when somebody is suspected.
    moves: list[float] = field(default_factory=list)
    tells: list[float] = field(default_factory=list)
    suspicions: list[float] = field(default_factory=list)


def draw(seed: int, *, reconfigure: bool = False) -> IsisScenario:
    scenario = draw_members(seed)
    draw_clients(Random(f"{seed}/clients"), scenario)
    scenario.reads_live = Random(f"{seed}/live").random() < 0.4
    draw_own_settings(Random(f"{seed}/own"), scenario)
    draw_answers(Random(f"{seed}/answers"), scenario)
    draw_passing(Random(f"{seed}/passing"), scenario)
    scenario.losses = draw_losses(Random(f"{seed}/losses"), scenario.healing_at)
    share_cells(Random(f"{seed}/cells"), scenario)
    return scenario


def draw_clients(random: Random, scenario: IsisScenario) -> None:
    """Through how many gateways they go, and whether those are at members, decides how many members cast at once:
    each gateway casts in a group through one of them, and through itself if it can.
    """
    scenario.gateways = draw_gateways(random, scenario.nodes)
    scenario.gateway_settings = GatewaySettings(
        envelopes_open_max=random.choice([2, 4, 64]), envelope_messages_max=random.choice([1, 4, 1024])
    )
    ordering = scenario.settings.ordering
    groups, gateways, until = (
        [group.group for group in scenario.view.groups],
        scenario.gateways,
        scenario.healing_at,
    )
    for number in range(random.randint(2, 4)):
        scenario.clients[f"c{number + 1}"] = draw_speaker(random, groups, gateways, until)
    for number in range(random.randint(1, 3)):
        scenario.clients[f"cp{number + 1}"] = draw_client(random, groups, gateways, until)
    for settings in scenario.clients.values():
        for plan in settings.plans:
            plan.unordered = False
            if ordering == Ordering.TOTAL:
                plan.groups = plan.groups[:1]


def draw_gateways(random: Random, nodes: list[str]) -> list[str]:
    kind = random.choice(["own", "own", "some", "all"])
    if kind == "own":
        return ["g1", "g2", "g3"][: random.choice([2, 3])]
    return random.sample(nodes, 2 if kind == "some" else len(nodes))


def draw_answers(random: Random, scenario: IsisScenario) -> None:
    """Some causal runs have more messages to several groups, clients that answer one part of them where the others
    are not yet, and newcomers.
    """
    groups = [group.group for group in scenario.view.groups]
    if len(groups) < 2 or scenario.settings.ordering == Ordering.TOTAL or random.random() < 0.5:
        return
    for name in [name for name in scenario.clients if not name.startswith("cp")]:
        plans = scenario.clients[name].plans
        for _ in range(random.randint(3, 8)):
            at = random.uniform(0.05, scenario.healing_at)
            chosen = tuple(sorted(random.sample(groups, random.choice([2, min(3, len(groups))]))))
            plans.append(Plan(at, chosen, 1, unordered=False))
            plans.append(Plan(at + random.choice([0.0, 0.05]), (), 1, unordered=False, answers=True))
        plans.sort(key=lambda plan: plan.at)
    scenario.moves += [random.uniform(0.1, scenario.healing_at) for _ in range(random.choice([0, 2, 4]))]


def draw_passing(random: Random, scenario: IsisScenario) -> None:
    """So many producers that groups have to forget some of them."""
    if random.random() < 0.4:
        sets: list[Groups] = [(group.group,) for group in scenario.view.groups]
        settings = draw_passing_client(random, sets, scenario.gateways, scenario.healing_at)
        scenario.clients["cp0"] = settings
        scenario.settings = replace(scenario.settings, idempotence_producers=random.choice([8, 12]))


def draw_own_settings(random: Random, scenario: IsisScenario) -> None:
    """Groups that differ from their domain."""
    if scenario.settings.causality != Causality.CONSERVATIVE:
        for group in scenario.view.groups:
            if random.random() < 0.3:
                group.settings[K_STABILITY] = random.choice([MAJORITY, ALL])


def draw_members(seed: int) -> IsisScenario:
    random = Random(f"{seed}/isis")
    nodes = [f"n{i + 1}" for i in range(random.choice([3, 4, 5, 6, 8]))]
    view = DomainView(domain="sim", number=1, level=LEVEL)
    names = "abcdef"
    for name, members in zip(names, draw_overlap(random, nodes), strict=False):
        view.groups.append(GroupView(group=name, configuration=FIRST, replicas=sorted(members)))
    until = random.choice([1.0, 2.0, 3.0])
    network = NetworkSettings(
        delay_s=random.choice([0.001, 0.003, 0.003, 0.01]),
        slow=random.choice([0.0, 0.1, 0.4]),
        loss=random.choice([0.0, 0.0, 0.05, 0.2]),
    )
    faults = draw_faults(random)
    return IsisScenario(
        nodes,
        [],
        view,
        {},
        network,
        draw_settings(random),
        GatewaySettings(),
        until,
        faults,
        disk_delay_s=random.choice([0.0002, 0.001, 0.005]),
        moves=sorted(random.uniform(0.1, until) for _ in range(random.choice([0, 0, 1, 2, 4]))),
        tells=sorted(random.uniform(0.05, until) for _ in range(random.choice([0, 0, 3]))),
        suspicions=sorted(random.uniform(0.1, until) for _ in range(random.choice([0, 0, 1, 3]))),
        retention=random.choice([None, 0, 3]),
    )


def draw_overlap(random: Random, nodes: list[str]) -> list[list[str]]:
    """Rings and cliques of groups, where causality across groups is hard; chains, and anything."""
    size = len(nodes)
    shape = random.choice(["one", "ring", "ring", "clique", "chain", "random", "random"])
    if shape == "one":
        return [random.sample(nodes, random.randint(1, size))]
    if shape == "ring":
        count = min(size, random.choice([3, 4, 5]))
        width = random.choice([2, 3])
        return [[nodes[(i + j) % size] for j in range(min(width, size))] for i in range(count)]
    if shape == "chain":
        return [[nodes[i], nodes[i + 1]] for i in range(min(size - 1, 5))]
    if shape == "clique":
        # Each two groups share a process of their own, as far as there are processes.
        count = 3 if size < 6 else 4
        pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
        members: list[list[str]] = [[] for _ in range(count)]
        for index, (i, j) in enumerate(pairs):
            node = nodes[index % size]
            for group in (i, j):
                if node not in members[group]:
                    members[group].append(node)
        return members
    return [
        random.sample(nodes, min(size, random.choice([1, 2, 3, 3, 4, 5]))) for _ in range(random.choice([2, 3, 5]))
    ]


def draw_settings(random: Random) -> Settings:
    return Settings(
        ordering=random.choice([Ordering.CAUSAL, Ordering.CAUSAL, Ordering.TOTAL]),
        flush=random.choice(list(FlushKind)),
        causality=random.choice(list(Causality)),
        k_stability=random.choice([MAJORITY, MAJORITY, ALL]),
        order_batch=random.choice([1, 1, 4, 16]),
        order_wait_s=random.choice([0.0, 0.002, 0.02]),
        token_window=random.choice([1, 4, 64]),
        token_share=random.choice([0.5, 0.6]),
        stability_idle_s=random.choice([0.0, 0.005, 0.05]),
        idempotence_window=64,
        log_chunk=random.choice([2, 16]),
    )


def draw_speaker(random: Random, groups: list[str], gateways: list[str], until: float) -> ClientSettings:
    """One message at a time, mostly to one group and then to another, behind what was read in between."""
    plans = []
    burst, wide = random.random() < 0.5, random.random() < 0.5
    favourites = random.sample(groups, min(len(groups), random.choice([1, 2, 3])))
    for _ in range(random.randint(8, 24)):
        at = random.choice([0.1, until / 2]) if burst else random.uniform(0.05, until)
        chosen: Groups = (random.choice(favourites),)
        if wide and len(groups) > 1 and random.random() < 0.3:
            chosen = tuple(sorted(random.sample(groups, min(len(groups), random.choice([2, 2, 3])))))
        plans.append(Plan(at, chosen, 1, unordered=False, reads=random.random() < 0.3))
    plans.sort(key=lambda plan: plan.at)
    return ClientSettings(
        plans,
        random.sample(gateways, len(gateways)),
        pipeline=random.choice([1, 4, 8]),
        patience_s=random.choice([0.2, 0.5, 1.0]),
    )
