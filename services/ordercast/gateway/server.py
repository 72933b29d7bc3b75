"""GatewayService: what clients call. Each method says where the work is done."""

# gRPC decides how these methods are called.
# ruff: noqa: N802

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from ordercast.gateway.administration import Administration
from ordercast.gateway.budgets import Budgets
from ordercast.gateway.merging import Merging
from ordercast.gateway.publishing import Publishing
from ordercast.gateway.subscribing import Subscribing
from ordercast.v1 import gateway_pb2 as api
from ordercast.v1.gateway_pb2_grpc import GatewayServiceServicer


def scope_of(request: api.SetCursorRequest | api.DeleteCursorRequest) -> str:
    """Whose cursor it is: a group's, or a domain's, which may have the same name."""
    return f"/{request.domain}" if request.domain else request.group


class GatewayServer(GatewayServiceServicer):
    def __init__(
        self,
        publishing: Publishing,
        subscribing: Subscribing,
        merging: Merging,
        admin: Administration,
        budgets: Budgets,
    ) -> None:
        self.publishing = publishing
        self.subscribing = subscribing
        self.merging = merging
        self.admin = admin
        self.budgets = budgets

    async def Publish(self, request: api.PublishRequest, context: Any) -> api.PublishResponse:
        return await self.publishing.call(request, context)

    async def PublishStream(self, _: Any, context: Any) -> None:
        await self.publishing.stream(context)

    async def Subscribe(self, _: Any, context: Any) -> None:
        await self.subscribing.stream(context)

    async def Cut(self, request: api.CutRequest, context: Any) -> api.CutResponse:
        return await self.merging.cut(request)

    async def SubscribeLive(
        self, request: api.SubscribeLiveRequest, context: Any
    ) -> AsyncGenerator[api.SubscribeLiveResponse, None]:
        async with contextlib.aclosing(self.subscribing.live(request, context)) as responses:
            async for response in responses:
                yield response

    async def CreateDomain(self, request: api.CreateDomainRequest, context: Any) -> api.CreateDomainResponse:
        async with self.budgets.command(context):
            return await self.admin.create_domain(request)

    async def ListDomains(self, request: api.ListDomainsRequest, context: Any) -> api.ListDomainsResponse:
        return self.admin.list_domains()

    async def CreateGroup(self, request: api.CreateGroupRequest, context: Any) -> api.CreateGroupResponse:
        async with self.budgets.command(context):
            return await self.admin.create_group(request)

    async def CreateGroups(self, request: api.CreateGroupsRequest, context: Any) -> api.CreateGroupsResponse:
        async with self.budgets.command(context):
            return await self.admin.create_groups(request)

    async def ListGroups(self, request: api.ListGroupsRequest, context: Any) -> api.ListGroupsResponse:
        return self.admin.list_groups(request)

    async def DescribeGroup(self, request: api.DescribeGroupRequest, context: Any) -> api.DescribeGroupResponse:
        return await self.admin.describe_group(request)

    async def UpdateGroup(self, request: api.UpdateGroupRequest, context: Any) -> api.UpdateGroupResponse:
        async with self.budgets.command(context):
            return await self.admin.update_group(request)

    async def DeleteGroup(self, request: api.DeleteGroupRequest, context: Any) -> api.DeleteGroupResponse:
        async with self.budgets.command(context):
            return await self.admin.delete_group(request)

    async def ListCells(self, request: api.ListCellsRequest, context: Any) -> api.ListCellsResponse:
        return self.admin.list_cells(request)

    async def DescribeCell(self, request: api.DescribeCellRequest, context: Any) -> api.DescribeCellResponse:
        return await self.admin.describe_cell(request)

    async def ListCursors(self, request: api.ListCursorsRequest, context: Any) -> api.ListCursorsResponse:
        async with self.budgets.command(context):
            return await self.admin.list_cursors(request)

    async def SetCursor(self, request: api.SetCursorRequest, context: Any) -> api.SetCursorResponse:
        self.budgets.set_cursor(context, scope_of(request), request.name)
        async with self.budgets.command(context):
            return await self.admin.set_cursor(request)

    async def DeleteCursor(self, request: api.DeleteCursorRequest, context: Any) -> api.DeleteCursorResponse:
        async with self.budgets.command(context):
            response = await self.admin.delete_cursor(request)
            self.budgets.delete_cursor(scope_of(request), request.name)
            return response

    async def DescribeCluster(
        self, request: api.DescribeClusterRequest, context: Any
    ) -> api.DescribeClusterResponse:
        return self.admin.describe_cluster(request)

    async def DescribeWaiting(
        self, request: api.DescribeWaitingRequest, context: Any
    ) -> api.DescribeWaitingResponse:
        async with self.budgets.command(context):
            return await self.admin.describe_waiting(request)

    async def ChangeReplicas(self, request: api.ChangeReplicasRequest, context: Any) -> api.ChangeReplicasResponse:
        async with self.budgets.command(context):
            return await self.admin.reassignment.change_replicas(request)

    async def CancelChange(self, request: api.CancelChangeRequest, context: Any) -> api.CancelChangeResponse:
        async with self.budgets.command(context):
            return await self.admin.reassignment.cancel_change(request)

    async def DrainNode(self, request: api.DrainNodeRequest, context: Any) -> api.DrainNodeResponse:
        async with self.budgets.command(context):
            return await self.admin.reassignment.drain_node(request)

    async def RemoveNode(self, request: api.RemoveNodeRequest, context: Any) -> api.RemoveNodeResponse:
        async with self.budgets.command(context):
            return await self.admin.reassignment.remove_node(request)

    async def GiveUpDisk(self, request: api.GiveUpDiskRequest, context: Any) -> api.GiveUpDiskResponse:
        async with self.budgets.command(context):
            return await self.admin.reassignment.give_up_disk(request)

    async def PlanRebalance(self, request: api.PlanRebalanceRequest, context: Any) -> api.PlanRebalanceResponse:
        return self.admin.reassignment.plan_rebalance()
