"""What a seed stands for with SCALATOM: also which groups and replicas come and go."""

from dataclasses import dataclass, field, replace
from random import Random

from ordercast.core.level import LEVEL
from ordercast.core.view import FIRST
from ordercast.gateway.settings import GatewaySettings
from ordercast.protocols.scalatom.settings import Settings
from ordercast.sim.client import Plan
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

#: Where a frame takes longer than this, a message takes seconds.
DELAY_S_USUAL = 0.05


@dataclass(slots=True)
class ScalatomScenario(Scenario):
    settings: Settings
    #: Groups that come and go, and replicas, by time.
    changes: list["Creation | Deletion | Change"] = field(default_factory=list)
    #: From when on the next one dies that is sealed and has not started.
    sealed_crashes: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Creation:
    at: float
    group: GroupView


@dataclass(slots=True)
class Deletion:
    at: float
    name: str


@dataclass(slots=True)
class Change:
    """Of some group's replicas, or the loss of somebody's disk: whose is drawn when it comes to it."""

    at: float
    loses_disk: bool


def draw(seed: int, *, reconfigure: bool = False) -> ScalatomScenario:
    scenario = draw_fixed(seed)
    random = Random(f"{seed}/changes")
    if random.random() < 0.4:
        draw_changes(random, scenario)
    scenario.settings = replace(scenario.settings, stamps_wait_s=draw_stamps_wait(Random(f"{seed}/stamps")))
    draw_impatience(Random(f"{seed}/impatience"), scenario)
    draw_passing(Random(f"{seed}/passing"), scenario)
    if reconfigure:
        draw_reconfigurations(Random(f"{seed}/reconfigure"), scenario)
        draw_sealed_crashes(Random(f"{seed}/sealed"), scenario)
    scenario.losses = draw_losses(Random(f"{seed}/losses"), scenario.healing_at)
    share_cells(Random(f"{seed}/cells"), scenario)
    return scenario


def draw_fixed(seed: int) -> ScalatomScenario:
    """With the same groups from beginning to end."""
    random = Random(f"{seed}/scenario")
    nodes = [f"n{i + 1}" for i in range(random.choice([3, 3, 4, 5, 6]))]
    own = random.random() < 0.7
    gateways = [f"g{i + 1}" for i in range(2)] if own else nodes[:2]
    view = draw_view(random, nodes)
    groups = [group.group for group in view.groups]
    healing_at = random.choice([1.0, 2.0, 4.0])
    clients = {f"c{i + 1}": draw_client(random, groups, gateways, healing_at) for i in range(random.randint(2, 4))}
    network = NetworkSettings(
        delay_s=random.choice([0.001, 0.001, 0.003, 0.003, 0.01, 0.01, 0.08]),
        slow=random.choice([0.0, 0.1, 0.4]),
        loss=random.choice([0.0, 0.0, 0.05, 0.3]),
    )
    if network.delay_s > DELAY_S_USUAL:
        network.loss = min(network.loss, 0.05)
    if random.random() < 0.1:
        network.datagrams, network.loss, network.duplication = True, 0.1, 0.2
    return ScalatomScenario(
        nodes,
        gateways,
        view,
        clients,
        network,
        Settings(
            clock_reserved=random.choice([1, 5, 1000]),
            idempotence_window=64,
            log_chunk=random.choice([2, 16, 64]),
            log_chunk_bytes=[1 << 20, 1 << 20, 500][seed % 3],
            relay_eagerly=random.random() < 0.05,
            gossip_early=random.random() < 0.8,
        ),
        GatewaySettings(
            envelopes_open_max=random.choice([2, 4, 64]),
            envelope_messages_max=random.choice([1, 4, 1024]),
            producer_messages_max=random.choice([8, 256]),
            finished_every=[1, 1, 1, 4, 16][seed % 5],
        ),
        healing_at,
        draw_faults(random),
        disk_delay_s=random.choice([0.0002, 0.001, 0.005]),
        clock_rates={node: random.choice([1.0, 1.0, 0.5, 2.0]) for node in nodes},
        retention=random.choice([None, 0, 3]),
    )


def draw_stamps_wait(random: Random) -> float:
    """One in five has the paper's rule, consensus on every number; some wait too short and some too long."""
    return 0.0 if random.random() < 0.2 else random.choice([0.002, 0.01, 0.1])


def draw_impatience(random: Random, scenario: ScalatomScenario) -> None:
    """In some runs replicas step in long before anything is amiss, all at once: their proposers duel."""
    if random.random() < 0.2:
        silence_s = random.choice([1.0, 2.0, 4.0]) * max(scenario.network.delay_s, scenario.disk_delay_s)
        scenario.settings = replace(
            scenario.settings, tick_s=silence_s, silence_s=silence_s, patience_s_max=2 * silence_s
        )


def draw_view(random: Random, nodes: list[str]) -> DomainView:
    view = DomainView(domain="sim", number=1, level=LEVEL)
    for index in range(random.choice([2, 3, 3, 4, 5])):
        view.groups.append(draw_group(random, "abcde"[index], nodes))
    return view


def draw_group(random: Random, name: str, nodes: list[str]) -> GroupView:
    size = min(random.choice([3, 3, 3, 3, 5, 1]), len(nodes))
    replicas = sorted(random.sample(nodes, size))
    acceptors = replicas
    if random.random() < 0.3:
        acceptors = sorted(random.sample(nodes, min(3, len(nodes))))
    return GroupView(group=name, configuration=FIRST, replicas=replicas, acceptors=acceptors)


def draw_changes(random: Random, scenario: ScalatomScenario) -> None:
    """Groups come and are published to; some go, those that just came among them. One stays."""
    until = scenario.healing_at
    names = [group.group for group in scenario.view.groups]
    for name in "xyz"[: random.choice([0, 1, 1, 2])]:
        creation = Creation(random.uniform(0.05, until), draw_group(random, name, scenario.nodes))
        scenario.changes.append(creation)
        for client in scenario.clients.values():
            for _ in range(random.choice([0, 2, 5])):
                others = random.sample(names, min(random.choice([0, 1, 1, 2]), len(names)))
                chosen = tuple(sorted([name, *others]))
                client.plans.append(Plan(random.uniform(creation.at, until + 0.5), chosen, 1, unordered=False))
            client.plans.sort(key=lambda plan: plan.at)
        names.append(name)
    for name in random.sample(names[1:], min(random.choice([0, 1, 1, 2, 3]), len(names) - 1)):
        created_at = next(
            (c.at for c in scenario.changes if isinstance(c, Creation) and c.group.group == name), 0.0
        )
        scenario.changes.append(Deletion(random.uniform(created_at, until) + 0.1, name))
    scenario.changes.sort(key=lambda change: change.at)


def draw_passing(random: Random, scenario: ScalatomScenario) -> None:
    """Producers that pass by, in sets that others use: so many that groups have to forget some of them."""
    if random.random() < 0.3:
        sets = [random.choice(client.plans).groups for client in scenario.clients.values()]
        settings = draw_passing_client(random, sets, scenario.gateways, scenario.healing_at)
        if scenario.network.delay_s > DELAY_S_USUAL:
            # One waits for the other: where messages take long, all of them would not have passed by in time.
            settings.plans = settings.plans[::2]
        scenario.clients["cp1"] = settings
        scenario.settings = replace(scenario.settings, idempotence_producers=random.choice([8, 12]))


def draw_reconfigurations(random: Random, scenario: ScalatomScenario) -> None:
    """Some at any time, some in quick succession."""
    until = scenario.healing_at
    times = [random.uniform(0.05, until) for _ in range(random.randint(1, 6))]
    if random.random() < 0.3:
        begin = random.uniform(0.05, until)
        times += [begin + 0.05 * index for index in range(4)]
    scenario.changes += [Change(at, random.random() < 0.15) for at in sorted(times)]
    scenario.settings = replace(
        scenario.settings,
        hand_over=random.choice([1, 3, 64]),
        copy_bytes_per_s=random.choice([20_000, 64 << 20]),
    )


def draw_sealed_crashes(random: Random, scenario: ScalatomScenario) -> None:
    """With the changes, mostly some: to be sealed takes a moment, and crashes at any time seldom meet it."""
    planned = [change.at for change in scenario.changes if isinstance(change, Change)]
    scenario.sealed_crashes = sorted(random.choice(planned) for _ in range(random.choice([0, 1, 2, 2, 4])))
