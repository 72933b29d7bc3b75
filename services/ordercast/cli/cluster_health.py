"""Who is in a cluster, what is where, and whether that is as it should be: read from a gateway, judged, shown."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ordercast.cli.changes import latest_facts, replica_document, under_way
from ordercast.cli.group import group_document
from ordercast.cli.node import is_up, node_document, services_text, some, state_of, state_text
from ordercast.cli.output import NOTHING, print_columns, say
from ordercast.cli.placed import as_group
from ordercast.core.members import kind_of

if TYPE_CHECKING:
    from ordercast.client.sync import SyncConnection
    from ordercast.v1.gateway_pb2 import (
        DescribeCellResponse,
        DescribeClusterResponse,
        DescribeGroupResponse,
        ReplicaStatus,
    )
    from ordercast.v1.membership_pb2 import Node


@dataclass(slots=True)
class ClusterHealth:
    cluster: "DescribeClusterResponse"
    #: What has replicas, by id: groups that have a cell to themselves, and cells that others share. A group that
    #: was deleted meanwhile is not here.
    groups: "dict[str, DescribeGroupResponse]" = field(default_factory=dict)
    cells: "dict[str, DescribeCellResponse]" = field(default_factory=dict)

    def placed(self) -> "Iterator[tuple[str, DescribeGroupResponse]]":
        """All groups and cells, each with the word for what it is."""
        yield from (("group", answer) for answer in self.groups.values())
        yield from (("cell", as_group(answer)) for answer in self.cells.values())

    #: What is not as it should be.
    troubles: list[str] = field(default_factory=list)


def read(client: "SyncConnection", is_over: "Callable[[Node], bool]" = lambda node: False) -> ClusterHealth:
    """Judged already. Nodes that are over, and not missed by whoever knows them, are no trouble."""
    from ordercast.client.errors import NotFound

    found = ClusterHealth(client.cluster())
    for one in found.cluster.cells:
        found.cells[one.cell.id] = client.describe_cell(one.cell.id)
    for group in found.cluster.groups:
        if group.cell:
            continue  # As its cell is, so is it.
        # It may be deleted between the two questions, and its name taken by another one.
        try:
            answer = client.describe_group(group.name)
        except NotFound:
            continue
        if answer.group.id == group.id:
            found.groups[group.id] = answer
    _judge(found, is_over)
    return found


# -------------------------------------------------------------------------------------------------- judging


def _judge(found: ClusterHealth, is_over: "Callable[[Node], bool]") -> None:
    up = {node.name for node in found.cluster.nodes if is_up(node)}
    found.troubles += [
        f"node {node.name} is {state_of(node)}"
        for node in found.cluster.nodes
        if node.name not in up and not is_over(node)
    ]
    for what, answer in found.placed():
        group = answer.group
        # Whoever lost what it had stored takes no part until the next configuration.
        answering = sum(not (replica.error or replica.node in group.lost) for replica in answer.replicas)
        if not is_majority(answering, len(group.replicas)):
            found.troubles.append(f"{what} {group.name}: {answering} of {len(group.replicas)} replicas answer")
        for members_called, members, lost in kind_of(group).needed(group):
            there = sum(name in up and name not in lost for name in members)
            if not is_majority(there, len(members)):
                found.troubles.append(f"{what} {group.name}: {there} of {len(members)} {members_called} are up")
    for node in found.cluster.nodes:
        lost = [answer.group.name for _, answer in found.placed() if node.name in answer.group.lost]
        if lost:
            found.troubles.append(f"node {node.name} lost what it had stored of {some(lost)}")


def is_majority(count: int, of: int) -> bool:
    return 2 * count > of


# -------------------------------------------------------------------------------------------------- showing


def document_of(found: ClusterHealth) -> dict[str, Any]:
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
        "cells": [
            _group_document(as_group(answer)) | {"groups": answer.cell.groups} for answer in found.cells.values()
        ],
    }


def _group_document(answer: "DescribeGroupResponse") -> dict[str, Any]:
    return group_document(answer.group) | {
        "logs": [_log_document(replica, answer) for replica in answer.replicas],
        "copies": [_log_document(learner, answer) for learner in answer.learners],
    }


def _log_document(replica: "ReplicaStatus", answer: "DescribeGroupResponse") -> dict[str, Any]:
    return replica_document(replica) | {"behind": behind(replica, answer)}


def behind(replica: "ReplicaStatus", answer: "DescribeGroupResponse") -> int | None:
    """How many offsets the furthest replica is ahead; None of one that does not say where it is."""
    if replica.error or replica.node in answer.group.lost:
        return None
    return max(0, _furthest(answer) - replica.log.next_offset)


def _furthest(answer: "DescribeGroupResponse") -> int:
    lost = list(answer.group.lost)
    there = [one for one in answer.replicas if not one.error and one.node not in lost]
    return max((replica.log.next_offset for replica in there), default=0)


def print_health(found: ClusterHealth) -> None:
    cluster = found.cluster
    say(
        f"cluster {cluster.cluster_id.hex()}, revision {cluster.revision}, level {cluster.level}, "
        f"as {cluster.gateway} sees it"
    )
    print_columns([_node_row(node, cluster.level) for node in cluster.nodes], ("level", "incarnation"))
    print_columns([_group_row(answer) for answer in found.groups.values()], ("configuration",))
    print_columns([_cell_row(answer) for answer in found.cells.values()], ("groups", "configuration"))


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
    logs = [f"{replica.node}: {_log_text(replica, answer)}" for replica in answer.replicas]
    return {
        "group": group.name,
        "domain": group.domain,
        "configuration": str(group.configuration),
        "replicas: next offset": ", ".join(logs),
        "facts": ", ".join(f"{name} {value}" for name, value in latest_facts(answer).items()) or NOTHING,
        "under way": under_way(answer) or NOTHING,
    }


def _cell_row(answer: "DescribeCellResponse") -> dict[str, str]:
    row = _group_row(as_group(answer))
    return {"cell": row.pop("group"), "domain": row.pop("domain"), "groups": str(answer.cell.groups), **row}


def _log_text(replica: "ReplicaStatus", answer: "DescribeGroupResponse") -> str:
    if replica.node in answer.group.lost:
        return "lost"
    if replica.error:
        return "does not answer"
    missing = behind(replica, answer)
    return f"{replica.log.next_offset} ({missing} behind)" if missing else str(replica.log.next_offset)
