"""Where the replicas and acceptors of a new group go.

Over as many zones as there are, then to the nodes with the least on them, then by name: a function of the agreed
state and of nothing else, so every member places alike.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from ordercast.membership.settings import REPLICAS_DEFAULT
from ordercast.v1.membership_pb2 import Group, Node


class NotEnoughNodes(Exception):  # noqa: N818 (it names what is missing)
    """Fewer nodes than are needed can take something new. The text can be shown to users."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Names of nodes, sorted."""

    replicas: tuple[str, ...]
    acceptors: tuple[str, ...]


def usable_nodes(nodes: Iterable[Node], service: str) -> list[Node]:
    """Those that run the service, answer, and have room on their disks."""
    return [
        node for node in nodes if service in node.services and not (node.suspected or node.ended or node.read_only)
    ]


def place(nodes: Sequence[Node], groups: Iterable[Group], count: int) -> Placement:
    """`count` of 0 means as many as there are nodes, at most three; else exactly so many of both kinds."""
    load = dict.fromkeys((node.name for node in nodes), 0)
    for group in groups:
        for name in (*group.replicas, *group.acceptors):
            if name in load:
                load[name] += 1
    replicas = _choose(usable_nodes(nodes, "sequencer"), "sequencer", count, load, ())
    # A group whose replicas and acceptors share nodes sends less over the network and depends on fewer of them.
    acceptors = _choose(usable_nodes(nodes, "consensus"), "consensus", count, load, replicas)
    return Placement(replicas, acceptors)


def _choose(
    candidates: list[Node], service: str, count: int, load: dict[str, int], preferred: Container[str]
) -> tuple[str, ...]:
    wanted = count or min(REPLICAS_DEFAULT, len(candidates))
    if not 0 < wanted <= len(candidates):
        raise NotEnoughNodes(
            f"{max(wanted, 1)} nodes with the service {service} are needed, and {len(candidates)} can take "
            "something new: register more, or wait for those that are suspected or have a full disk"
        )
    chosen: list[str] = []
    in_zone: dict[str, int] = {}

    def cost(node: Node) -> tuple[int, bool, int, str]:
        return in_zone.get(node.zone, 0), node.name not in preferred, load[node.name], node.name

    while len(chosen) < wanted:
        best = min(candidates, key=cost)
        candidates.remove(best)
        chosen.append(best.name)
        in_zone[best.zone] = in_zone.get(best.zone, 0) + 1
    return tuple(sorted(chosen))
