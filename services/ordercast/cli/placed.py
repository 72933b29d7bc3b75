"""What has replicas: a group that has a cell to itself, or a cell that groups share."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ordercast.client.sync import SyncConnection
    from ordercast.v1.gateway_pb2 import DescribeCellResponse, DescribeClusterResponse, DescribeGroupResponse
    from ordercast.v1.membership_pb2 import Group


def placed_in(cluster: "DescribeClusterResponse") -> "list[Group]":
    """All there is in a cluster."""
    return [*(group for group in cluster.groups if not group.cell), *(one.cell for one in cluster.cells)]


def as_group(found: "DescribeCellResponse") -> "DescribeGroupResponse":
    """A cell described as a group is that has it to itself."""
    from ordercast.v1.gateway_pb2 import DescribeGroupResponse

    return DescribeGroupResponse(group=found.cell.cell, replicas=found.replicas, learners=found.learners)


def describing(client: "SyncConnection", placed: "Group") -> "Callable[[], DescribeGroupResponse]":
    """What to call to see how far it is."""
    if placed.is_cell:
        return lambda: as_group(client.describe_cell(placed.id))
    return lambda: client.describe_group(placed.name)


def groups_text(found: "DescribeCellResponse") -> str:
    """How many groups live in a cell, and the names of some."""
    if not found.groups:
        return str(found.cell.groups)
    more = ", ..." if found.cell.groups > len(found.groups) else ""
    return f"{found.cell.groups}: {', '.join(found.groups)}{more}"
