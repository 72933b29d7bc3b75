"""Where the replicas and acceptors of groups go, and which of them are missed least.

Over as many zones as there are, then to the nodes with the least on them, then by name: a function of the agreed
state and of nothing else, so every member places alike.
"""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ordercast.core.members import places_of
from ordercast.membership.settings import REPLICAS_DEFAULT
from ordercast.v1.membership_pb2 import GROUP_STATE_DELETING, Group, Node


class NotEnoughNodes(Exception):  # noqa: N818 (it names what is missing)
    """Fewer nodes than are needed can take something new. The text can be shown to users."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Names of nodes, sorted."""

    replicas: tuple[str, ...]
    acceptors: tuple[str, ...]


def is_usable(node: Node, service: str) -> bool:
    """Runs the service, answers, has room on its disk, and is to stay."""
    out = node.suspected or node.ended or node.read_only or node.draining
    return service in node.services and not out


def usable_nodes(nodes: Iterable[Node], service: str) -> list[Node]:
    return [node for node in nodes if is_usable(node, service)]


def load_of(nodes: Iterable[Node], groups: Iterable[Group]) -> dict[str, int]:
    """How many replicas and acceptors each node has, or will have soon."""
    load = dict.fromkeys((node.name for node in nodes), 0)
    for group in groups:
        places = places_of(group)
        names = [*places, *group.acceptors]
        if group.HasField("next"):
            names += (name for name in group.next.replicas if name not in places)
            names += (name for name in group.next.acceptors if name not in group.acceptors)
        for name in names:
            if name in load:
                load[name] += 1
    return load


# ------------------------------------------------------------------------------------------------- a new group


def place(nodes: Sequence[Node], groups: Iterable[Group], count: int, *, with_acceptors: bool = True) -> Placement:
    """`count` of 0 means as many as there are nodes, at most three; else exactly so many of both kinds."""
    load = load_of(nodes, groups)
    replicas = _choose(usable_nodes(nodes, "sequencer"), "sequencer", count, load, ())
    if not with_acceptors:
        return Placement(replicas, ())
    # A group whose replicas and acceptors share nodes sends less over the network and depends on fewer of them.
    acceptors = _choose(usable_nodes(nodes, "consensus"), "consensus", count, load, replicas)
    return Placement(replicas, acceptors)


def passing_shortage(nodes: Collection[Node], *, with_acceptors: bool = True) -> str | None:
    """Why a group that leaves it open how many replicas it gets is not to be placed now; None if it may be.

    It would keep for good what it gets in a bad moment. So a node that is only suspected, or has no room, is still
    one that there is. This is no part of the agreed state: whoever proposes a group looks at it before.
    """
    for service in ("sequencer", "consensus") if with_acceptors else ("sequencer",):
        staying = [node for node in nodes if service in node.services and not (node.ended or node.draining)]
        wanted = min(REPLICAS_DEFAULT, len(staying))
        usable = len(usable_nodes(staying, service))
        if usable < wanted:
            return (
                f"of {len(staying)} nodes with the service {service} only {usable} can take something new: "
                "wait for those that are suspected or have a full disk, or say that fewer replicas than "
                f"{wanted} will do"
            )
    return None


def _choose(
    candidates: list[Node], service: str, count: int, load: Mapping[str, int], preferred: Container[str]
) -> tuple[str, ...]:
    wanted = count or min(REPLICAS_DEFAULT, len(candidates))
    if not 0 < wanted <= len(candidates):
        raise NotEnoughNodes(
            f"{max(wanted, 1)} nodes with the service {service} are needed, and {len(candidates)} can take "
            "something new: register more, or wait for those that are suspected or have a full disk"
        )
    chosen: list[Node] = []
    while len(chosen) < wanted:
        best = _best(candidates, [node.zone for node in chosen], load, preferred)
        candidates.remove(best)
        chosen.append(best)
    return tuple(sorted(node.name for node in chosen))


def _best(
    candidates: Iterable[Node], zones: Sequence[str], load: Mapping[str, int], preferred: Container[str]
) -> Node:
    """`zones` are those of the others."""

    def cost(node: Node) -> tuple[int, bool, int, str]:
        return zones.count(node.zone), node.name not in preferred, load[node.name], node.name

    return min(candidates, key=cost)


# ------------------------------------------------------------------------------------------------- one of a group


def place_one(
    service: str,
    others: Collection[str],
    nodes: Mapping[str, Node],
    groups: Iterable[Group],
    *,
    without: Container[str] = (),
    preferred: Container[str] = (),
) -> str | None:
    """Where one more goes that runs the service, besides the others; None if there is no place."""
    usable = usable_nodes(nodes.values(), service)
    candidates = [node for node in usable if node.name not in others and node.name not in without]
    if not candidates:
        return None
    zones = [nodes[name].zone for name in others if name in nodes]
    return _best(candidates, zones, load_of(nodes.values(), groups), preferred).name


def least_missed(group: Group, nodes: Mapping[str, Node], groups: Iterable[Group]) -> str:
    """Which replica goes: one that is no use anyway, or else from where there are the most."""
    load = load_of(nodes.values(), groups)
    replicas = places_of(group)
    zones = [nodes[name].zone for name in replicas]

    def uselessness(name: str) -> tuple[int, ...]:
        node = nodes[name]
        marks = (name in group.lost, node.ended, node.suspected, node.draining, node.read_only)
        return *map(int, marks), zones.count(node.zone), load[name]

    return max(sorted(replicas), key=uselessness)


# ------------------------------------------------------------------------------------------------- evening out


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A replica of a group, by its name, that goes from one node to another."""

    group: str
    node: str
    to: str


def rebalance(nodes: Iterable[Node], groups: Iterable[Group]) -> list[PlannedMove]:
    """Few moves after which zones are used alike by each group, and nodes hold about as many replicas.

    They make sense in this order, one after the other. A group moves once at most, and one that is changing or
    being deleted not at all. What is on nodes that can take nothing new stays where it is: draining moves it.
    """
    return _Balance(nodes, groups).plan()


class _Balance:
    """The replicas as they would be after the moves so far."""

    def __init__(self, nodes: Iterable[Node], groups: Iterable[Group]) -> None:
        self.nodes = {node.name: node for node in sorted(nodes, key=lambda node: node.name)}
        self.usable = [node.name for node in usable_nodes(self.nodes.values(), "sequencer")]
        self.load = dict.fromkeys(self.usable, 0)
        self.moves: list[PlannedMove] = []
        #: Groups that may still move: all, and by the node that would give one away.
        self.movable: dict[str, Group] = {}
        self.held: dict[str, dict[str, Group]] = {name: {} for name in self.usable}
        for group in sorted(groups, key=lambda group: group.name):
            is_changing = group.HasField("next") or group.HasField("previous")
            for name in group.next.replicas if group.HasField("next") else places_of(group):
                if name in self.load:
                    self.load[name] += 1
            if not (is_changing or group.lost or group.state == GROUP_STATE_DELETING):
                self.movable[group.name] = group
                for name in places_of(group):
                    self.held.get(name, {})[group.name] = group

    def plan(self) -> list[PlannedMove]:
        if any(self.nodes[name].zone != self.nodes[self.usable[0]].zone for name in self.usable):
            for group in list(self.movable.values()):
                self._spread(group)
        hopeless: set[tuple[str, str]] = set()
        while self._even_out(hopeless):
            pass
        return self.moves

    def _spread(self, group: Group) -> None:
        """Out of the zone that has too many of the group's replicas, if there is another."""
        best: tuple[int, int, str, str] | None = None
        replicas = places_of(group)
        zones = [self.nodes[name].zone for name in replicas if name in self.nodes]
        for node in replicas:
            if node not in self.load or zones.count(self.nodes[node].zone) == 1:
                continue
            for to in self.usable:
                gain = self._gain(group, node, to)
                cost = (-gain, self.load[to] - self.load[node], node, to)
                if gain > 0 and self._fits(group, node, to) and (best is None or cost < best):
                    best = cost
        if best is not None:
            self._move(group, best[2], best[3])

    def _even_out(self, hopeless: set[tuple[str, str]]) -> bool:
        """One replica from a node with many to one with few. False if that would gain nothing any more."""
        few_first = sorted(self.usable, key=lambda name: (self.load[name], name))
        for node in sorted(self.usable, key=lambda name: (-self.load[name], name)):
            for to in few_first:
                if self.load[node] - self.load[to] <= 1:
                    break
                if (node, to) not in hopeless:
                    if self._move_some_group(node, to):
                        return True
                    # For good: groups that have moved do not move again.
                    hopeless.add((node, to))
        return False

    def _move_some_group(self, node: str, to: str) -> bool:
        for group in self.held[node].values():
            if self._fits(group, node, to) and self._gain(group, node, to) >= 0:
                self._move(group, node, to)
                return True
        return False

    def _fits(self, group: Group, node: str, to: str) -> bool:
        """An acceptor goes where its replica goes: what was on one node stays on one."""
        takes_acceptor = node not in group.acceptors or is_usable(self.nodes[to], "consensus")
        return to not in places_of(group) and takes_acceptor

    def _gain(self, group: Group, node: str, to: str) -> int:
        """How many fewer replicas there are in the same zone as the one that moves."""
        zones = [self.nodes[name].zone for name in places_of(group) if name != node and name in self.nodes]
        return zones.count(self.nodes[node].zone) - zones.count(self.nodes[to].zone)

    def _move(self, group: Group, node: str, to: str) -> None:
        del self.movable[group.name]
        for name in places_of(group):
            self.held.get(name, {}).pop(group.name, None)
        self.load[node] -= 1
        self.load[to] += 1
        self.moves.append(PlannedMove(group.name, node, to))
