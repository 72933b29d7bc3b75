"""Which nodes hold a group, for people and their tools: changing it, emptying and removing nodes, evening out.

All of it is membership's to decide. What is wrong with a request by itself is refused before that hears of it.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol

import grpc

from ordercast.runtime.process.node import Node as Process
from ordercast.runtime.transport.status import Refused
from ordercast.v1 import gateway_pb2 as api
from ordercast.v1.membership_pb2 import (
    REPLICA_CHANGE_ADD,
    REPLICA_CHANGE_REMOVE,
    REPLICA_CHANGE_REPLACE,
    CancelChange,
    ChangeReplicas,
    Command,
    CommandResult,
    DrainNode,
    GiveUpDisk,
    Group,
    Node,
    RemoveNode,
)

REQUEST_ID_BYTES = 16
#: See core/level.py.
CHANGES_LEVEL = 1


class Move(Protocol):
    """A replica that would be elsewhere."""

    @property
    def group(self) -> str: ...
    @property
    def node(self) -> str: ...
    @property
    def to(self) -> str: ...


#: How membership would even out these nodes and groups. No service imports another: whoever joins services into a
#: process brings it along.
Planner = Callable[[Sequence[Node], Sequence[Group]], Iterable[Move]]
Execute = Callable[[Command], Awaitable[CommandResult]]


class Reassignment:
    def __init__(self, process: Process, execute: Execute, planner: Planner | None) -> None:
        self.process = process
        self._ask = execute
        self._planner = planner

    async def _execute(self, command: Command) -> CommandResult:
        """Members with older software would not know what to make of it, and their answer tells nobody why."""
        if self.process.directory.level < CHANGES_LEVEL:
            raise Refused(
                grpc.StatusCode.FAILED_PRECONDITION,
                "not all nodes run software that can change replicas: upgrade them first",
                "LEVEL_TOO_LOW",
            )
        return await self._ask(command)

    async def change_replicas(self, request: api.ChangeReplicasRequest) -> api.ChangeReplicasResponse:
        check_change(request)
        change = ChangeReplicas(group=request.group, change=request.change, node=request.node, to=request.to)
        command = Command(change_replicas=change, request_id=checked_id(request.request_id))
        return api.ChangeReplicasResponse(group=(await self._execute(command)).group)

    async def cancel_change(self, request: api.CancelChangeRequest) -> api.CancelChangeResponse:
        check_given(request.group, "group")
        command = Command(
            cancel_change=CancelChange(group=request.group), request_id=checked_id(request.request_id)
        )
        return api.CancelChangeResponse(group=(await self._execute(command)).group)

    async def drain_node(self, request: api.DrainNodeRequest) -> api.DrainNodeResponse:
        check_given(request.node, "node")
        command = Command(drain_node=DrainNode(node=request.node, draining=request.draining))
        return api.DrainNodeResponse(node=(await self._execute(command)).node)

    async def remove_node(self, request: api.RemoveNodeRequest) -> api.RemoveNodeResponse:
        check_given(request.node, "node")
        command = Command(remove_node=RemoveNode(node=request.node), request_id=checked_id(request.request_id))
        return api.RemoveNodeResponse(node=(await self._execute(command)).node)

    async def give_up_disk(self, request: api.GiveUpDiskRequest) -> api.GiveUpDiskResponse:
        check_given(request.node, "node")
        command = Command(give_up_disk=GiveUpDisk(node=request.node), request_id=checked_id(request.request_id))
        return api.GiveUpDiskResponse(node=(await self._execute(command)).node)

    def plan_rebalance(self) -> api.PlanRebalanceResponse:
        """From what this gateway knows. It may be late: then membership refuses a move that makes no sense."""
        if self._planner is None:
            raise Refused(
                grpc.StatusCode.UNIMPLEMENTED,
                "this gateway does not plan: ask one that was started by `ordercast serve`",
                "NO_PLANNER",
            )
        directory = self.process.directory
        nodes = present(directory.nodes)
        # What is placed: of groups that share a cell, the cell.
        groups = [directory.cells[id_] for id_ in sorted(directory.cells)]
        return api.PlanRebalanceResponse(moves=explained(self._planner(nodes, groups), nodes, groups))


# ------------------------------------------------------------------------------------------------------- checks


def check_change(request: api.ChangeReplicasRequest) -> None:
    check_given(request.group, "group")
    if request.change not in (REPLICA_CHANGE_ADD, REPLICA_CHANGE_REMOVE, REPLICA_CHANGE_REPLACE):
        raise wrong("what shall change: is a replica added, removed or replaced?")
    if request.change == REPLICA_CHANGE_ADD and request.node:
        raise wrong("a replica that is added takes nobody's place: `to` says where it comes")
    if request.change == REPLICA_CHANGE_REMOVE and request.to:
        raise wrong("a replica that is removed goes nowhere: `node` says which one")


def check_given(name: str, what: str) -> None:
    if not name:
        raise wrong(f"which {what}?")


def checked_id(request_id: bytes) -> bytes:
    """Empty if the caller does not care."""
    if request_id and len(request_id) != REQUEST_ID_BYTES:
        raise wrong(f"a request_id has {REQUEST_ID_BYTES} bytes, not {len(request_id)}")
    return request_id


def wrong(message: str) -> Refused:
    return Refused(grpc.StatusCode.INVALID_ARGUMENT, message, "BAD_CHANGE")


# ---------------------------------------------------------------------------------------------------- who and why


def present(nodes: Mapping[str, Node]) -> list[Node]:
    """By name, without those of which it is only known that they are gone."""
    return [nodes[name] for name in sorted(nodes) if not nodes[name].removed]


def explained(moves: Iterable[Move], nodes: Iterable[Node], groups: Iterable[Group]) -> list[api.ReplicaMove]:
    """Each with its reason, at its turn: those before it are done then."""
    zone = {node.name: node.zone for node in nodes}
    held = dict.fromkeys(zone, 0)
    by_name = {}
    for group in groups:
        by_name[group.name] = group
        for name in group.replicas:
            held[name] = held.get(name, 0) + 1
    found = []
    for move in moves:
        others = [name for name in by_name[move.group].replicas if name != move.node]
        found.append(
            api.ReplicaMove(
                group=move.group,
                node=move.node,
                to=move.to,
                why=_why(move, [zone.get(n, "") for n in others], zone, held),
            )
        )
        held[move.node] = held.get(move.node, 0) - 1
        held[move.to] = held.get(move.to, 0) + 1
    return found


def _why(move: Move, zones: list[str], zone: Mapping[str, str], held: Mapping[str, int]) -> str:
    """`zones` are those of the group's other replicas."""
    here, there = zone.get(move.node, ""), zone.get(move.to, "")
    if zones.count(there) < zones.count(here):
        return f"more replicas of the group are in zone {here!r} than in {there!r}"
    return f"{move.node} holds {held.get(move.node, 0)} replicas, {move.to} {held.get(move.to, 0)}"
