"""`ordercast status`: who is there, what is where, and whether that is as it should be."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

from ordercast.cli.connection import Connection, connected
from ordercast.cli.exit_codes import ExitCode
from ordercast.cli.group import group_document, replica_document
from ordercast.cli.output import Json, out, print_json, print_table, say

if TYPE_CHECKING:
    from ordercast.client.sync import SyncConnection
    from ordercast.v1.gateway_pb2 import DescribeClusterResponse, ReplicaStatus
    from ordercast.v1.membership_pb2 import Group, Node


@dataclass(slots=True)
class Status:
    cluster: "DescribeClusterResponse"
    #: By group id. A group that was deleted meanwhile has none.
    replicas: "dict[str, list[ReplicaStatus]]" = field(default_factory=dict)
    #: What is not as it should be.
    troubles: list[str] = field(default_factory=list)


@connected
def status(connection: Connection, json: Json = False) -> None:
    """Show the nodes and groups of a cluster, and how far each replica is.

    Exit code 1 if a node is suspected or has ended, or if a group lacks a majority of its replicas or acceptors.

    Examples: `ordercast status` · `ordercast status --json -g 10.0.0.1:7400,10.0.0.2:7400`
    """
    with connection.client() as client:
        found = _read(client)
    _judge(found)
    if json:
        print_json(_document(found))
    else:
        _print(found)
    raise typer.Exit(ExitCode.NO if found.troubles else ExitCode.OK)


def _read(client: "SyncConnection") -> Status:
    from ordercast.client.errors import NotFound

    found = Status(client.cluster())
    for group in found.cluster.groups:
        # It may be deleted between the two questions, and its name taken by another one.
        try:
            answer = client.describe_group(group.name)
        except NotFound:
            continue
        if answer.group.id == group.id:
            found.replicas[group.id] = list(answer.replicas)
    return found


# -------------------------------------------------------------------------------------------------- judging


def _judge(found: Status) -> None:
    up = {node.name for node in found.cluster.nodes if is_up(node)}
    found.troubles += [
        f"node {node.name} is {state_of(node)}" for node in found.cluster.nodes if node.name not in up
    ]
    for group in found.cluster.groups:
        if group.id not in found.replicas:
            continue
        answering = sum(not replica.error for replica in found.replicas[group.id])
        if not is_majority(answering, len(group.replicas)):
            found.troubles.append(f"group {group.name}: {answering} of {len(group.replicas)} replicas answer")
        voting = sum(name in up for name in group.acceptors)
        if not is_majority(voting, len(group.acceptors)):
            found.troubles.append(f"group {group.name}: {voting} of {len(group.acceptors)} acceptors are up")


def is_majority(count: int, of: int) -> bool:
    return 2 * count > of


def is_up(node: "Node") -> bool:
    return not (node.suspected or node.ended)


def state_of(node: "Node") -> str:
    if node.ended:
        return "ended"
    if node.suspected:
        return "suspected"
    return "read only" if node.read_only else "up"


# -------------------------------------------------------------------------------------------------- showing


def _document(found: Status) -> dict[str, Any]:
    cluster = found.cluster
    return {
        "healthy": not found.troubles,
        "troubles": found.troubles,
        "cluster_id": cluster.cluster_id.hex(),
        "revision": cluster.revision,
        "gateway": cluster.gateway,
        "nodes": [_node_document(node) for node in cluster.nodes],
        "groups": [
            group_document(group) | {"logs": [replica_document(r) for r in found.replicas.get(group.id, ())]}
            for group in cluster.groups
        ],
    }


def _node_document(node: "Node") -> dict[str, Any]:
    return {
        "name": node.name,
        "state": state_of(node),
        "services": list(node.services),
        "peer_address": node.peer_address,
        "client_address": node.client_address or None,
        "zone": node.zone or None,
        "incarnation": node.incarnation,
        "suspected": node.suspected,
        "read_only": node.read_only,
        "ended": node.ended,
    }


def _print(found: Status) -> None:
    cluster = found.cluster
    say(f"cluster {cluster.cluster_id.hex()}, revision {cluster.revision}, as {cluster.gateway} sees it")
    nodes = [
        (
            node.name,
            state_of(node),
            "all" if len(node.services) == 4 else ", ".join(node.services),
            node.peer_address,
            node.client_address or "-",
            str(node.incarnation),
        )
        for node in cluster.nodes
    ]
    print_table(("node", "state", "services", "peers", "clients", "incarnation"), nodes, ("incarnation",))
    if cluster.groups:
        groups = [_group_row(group, found.replicas.get(group.id, [])) for group in cluster.groups]
        print_table(("group", "domain", "replicas: next offset"), groups)
    for trouble in found.troubles:
        out.print(trouble, style="red", markup=False, highlight=False, soft_wrap=True)
    if not found.troubles:
        out.print("healthy", style="bold green")


def _group_row(group: "Group", replicas: "list[ReplicaStatus]") -> tuple[str, str, str]:
    logs = [f"{r.node}: {'does not answer' if r.error else r.log.next_offset}" for r in replicas]
    return group.name, group.domain, ", ".join(logs) or "-"
