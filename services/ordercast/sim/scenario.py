"""What a seed stands for: who is where, who publishes what, and which faults come when."""

from dataclasses import dataclass, field, replace
from random import Random

from ordercast.core.level import LEVEL
from ordercast.core.view import FIRST
from ordercast.gateway.settings import GatewaySettings
from ordercast.protocols.scalatom.settings import Settings
from ordercast.sim.client import ClientSettings, Groups, Plan
from ordercast.sim.network import NetworkSettings
from ordercast.v1.membership_pb2 import DomainView, GroupView

#: Where a frame takes longer than this, a message takes seconds.
DELAY_S_USUAL = 0.05


@dataclass(slots=True)
class Scenario:
    nodes: list[str]
    #: Processes that host a gateway: some of the nodes, or processes of their own.
    gateways: list[str]
    view: DomainView
    clients: dict[str, ClientSettings]
    network: NetworkSettings
    settings: Settings
    gateway_settings: GatewaySettings
    #: Faults happen before this time; afterwards everything heals.
    healing_at: float
    #: How often faults strike, per second, by kind.
    faults: dict[str, float] = field(default_factory=dict)
    disk_delay_s: float = 0.001
    #: How fast each node's monotonic clock runs.
    clock_rates: dict[str, float] = field(default_factory=dict)
    #: Keep this many log entries beyond what must be kept; None keeps all.
    retention: int | None = None
    #: Groups that come and go, by time.
    changes: list["Creation | Deletion | Change"] = field(default_factory=list)


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


def draw(seed: int, *, reconfigure: bool = False) -> Scenario:
    scenario = draw_fixed(seed)
    random = Random(f"{seed}/changes")
    if random.random() < 0.4:
        draw_changes(random, scenario)
    scenario.settings = replace(scenario.settings, stamps_wait_s=draw_stamps_wait(Random(f"{seed}/stamps")))
    draw_passing(Random(f"{seed}/passing"), scenario)
    if reconfigure:
        draw_reconfigurations(Random(f"{seed}/reconfigure"), scenario)
    return scenario


def draw_fixed(seed: int) -> Scenario:
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
    return Scenario(
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
            envelope_messages_max=random.choice([4, 1024]),
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


def draw_changes(random: Random, scenario: Scenario) -> None:
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


def draw_passing(random: Random, scenario: Scenario) -> None:
    """Producers that pass by, in sets that others use: so many that groups have to forget some of them."""
    if random.random() < 0.3:
        sets = [random.choice(client.plans).groups for client in scenario.clients.values()]
        settings = draw_passing_client(random, sets, scenario.gateways, scenario.healing_at)
        if scenario.network.delay_s > DELAY_S_USUAL:
            # One waits for the other: where messages take long, all of them would not have passed by in time.
            settings.plans = settings.plans[::2]
        scenario.clients["cp1"] = settings
        scenario.settings = replace(scenario.settings, idempotence_producers=random.choice([8, 12]))


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


def draw_reconfigurations(random: Random, scenario: Scenario) -> None:
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


def draw_set(random: Random, groups: list[str]) -> Groups:
    """Overlapping sets of one to all groups, small ones more often."""
    size = min(random.choice([1, 1, 2, 2, 2, 3, len(groups)]), len(groups))
    return tuple(sorted(random.sample(groups, size)))


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
