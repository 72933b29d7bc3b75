"""`ordercast status`: who is there, what is where, and whether that is as it should be."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

from ordercast.cli.changes import replica_document, under_way
from ordercast.cli.connection import Connection, connected
from ordercast.cli.exit_codes import ExitCode
from ordercast.cli.group import group_document
from ordercast.cli.node import is_up, node_document, services_text, some, state_of, state_text
from ordercast.cli.output import Json, out, print_json, print_table, say
from ordercast.core.members import completed_of, has_views

if TYPE_CHECKING:
    from ordercast.client.sync import SyncConnection
    from ordercast.v1.gateway_pb2 import DescribeClusterResponse, DescribeGroupResponse, ReplicaStatus
    from ordercast.v1.membership_pb2 import Node

#: What a cell holds that has nothing to say.
NOTHING = "-"


@dataclass(slots=True)
class Status:
    cluster: "DescribeClusterResponse"
    #: By id. A group that was deleted meanwhile is not here.
    groups: "dict[str, DescribeGroupResponse]" = field(default_factory=dict)
    #: What is not as it should be.
    troubles: list[str] = field(default_factory=list)


@connected
def status(connection: Connection, json: Json = False) -> None:
    """Show the nodes and groups of a cluster, and how far each replica is.

    Exit code 1 if a node is suspected or has ended, if a group lacks a majority of its replicas or acceptors, or
    if a member of a group lost what it had stored. A change that is under way is no trouble.

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
            found.groups[group.id] = answer
    return found


# -------------------------------------------------------------------------------------------------- judging


def _judge(found: Status) -> None:
    up = {node.name for node in found.cluster.nodes if is_up(node)}
    found.troubles += [
        f"node {node.name} is {state_of(node)}" for node in found.cluster.nodes if node.name not in up
    ]
    for answer in found.groups.values():
        group = answer.group
        # Whoever lost what it had stored takes no part until the next configuration.
        answering = sum(not (replica.error or replica.node in group.lost) for replica in answer.replicas)
        if not is_majority(answering, len(group.replicas)):
            found.troubles.append(f"group {group.name}: {answering} of {len(group.replicas)} replicas answer")
        if has_views(group):
            _judge_views(found, answer, up)
        voting = sum(name in up and name not in group.lost for name in group.acceptors)
        if group.acceptors and not is_majority(voting, len(group.acceptors)):
            found.troubles.append(f"group {group.name}: {voting} of {len(group.acceptors)} acceptors are up")
    for node in found.cluster.nodes:
        lost = [answer.group.name for answer in found.groups.values() if node.name in answer.group.lost]
        if lost:
            found.troubles.append(f"node {node.name} lost what it had stored of {some(lost)}")


def _judge_views(found: Status, answer: "DescribeGroupResponse", up: set[str]) -> None:
    """Without a majority of the last complete view no other can follow."""
    group = answer.group
    completed = completed_of(group).replicas
    lost = (*group.lost, *group.previous.lost)
    there = sum(name in up and name not in lost for name in completed)
    if not is_majority(there, len(completed)):
        text = f"{there} of {len(completed)} members of the last complete view are up"
        found.troubles.append(f"group {group.name}: {text}")


def is_majority(count: int, of: int) -> bool:
    return 2 * count > of


# -------------------------------------------------------------------------------------------------- showing


def _document(found: Status) -> dict[str, Any]:
    cluster = found.cluster
    return {
        "healthy": not found.troubles,
        "troubles": found.troubles,
        "cluster_id": cluster.cluster_id.hex(),
        "revision": cluster.revision,
        "gateway": cluster.gateway,
        "level": cluster.level,
        "nodes": [node_document(node) for node in cluster.nodes],
        "groups": [_group_document(answer) for answer in found.groups.values()],
    }


def _group_document(answer: "DescribeGroupResponse") -> dict[str, Any]:
    return group_document(answer.group) | {
        "logs": [replica_document(replica) for replica in answer.replicas],
        "copies": [replica_document(learner) for learner in answer.learners],
    }


def _print(found: Status) -> None:
    cluster = found.cluster
    say(
        f"cluster {cluster.cluster_id.hex()}, revision {cluster.revision}, level {cluster.level}, "
        f"as {cluster.gateway} sees it"
    )
    _print_columns([_node_row(node, cluster.level) for node in cluster.nodes], ("level", "incarnation"))
    _print_columns([_group_row(answer) for answer in found.groups.values()], ("configuration",))
    for trouble in found.troubles:
        out.print(trouble, style="red", markup=False, highlight=False, soft_wrap=True)
    if not found.troubles:
        out.print("healthy", style="bold green")


def _print_columns(rows: list[dict[str, str]], numbers: tuple[str, ...]) -> None:
    """Without columns in which there is nothing to see: terminals are narrow."""
    if not rows:
        return
    headings = [heading for heading in rows[0] if any(row[heading] != NOTHING for row in rows)]
    print_table(headings, [[row[heading] for heading in headings] for row in rows], numbers)


def _node_row(node: "Node", level: int) -> dict[str, str]:
    return {
        "node": node.name,
        "state": state_text(node),
        "services": services_text(node),
        "zone": node.zone or NOTHING,
        "peers": node.peer_address,
        "clients": node.client_address or NOTHING,
        # Said once for the cluster; here only who differs.
        "level": NOTHING if node.level == level else str(node.level),
        "incarnation": str(node.incarnation),
    }


def _group_row(answer: "DescribeGroupResponse") -> dict[str, str]:
    group = answer.group
    logs = [f"{r.node}: {_log_text(r, list(group.lost))}" for r in answer.replicas]
    return {
        "group": group.name,
        "domain": group.domain,
        "configuration": str(group.configuration),
        "replicas: next offset": ", ".join(logs),
        "under way": under_way(answer) or NOTHING,
    }


def _log_text(replica: "ReplicaStatus", lost: list[str]) -> str:
    if replica.node in lost:
        return "lost"
    return "does not answer" if replica.error else str(replica.log.next_offset)
