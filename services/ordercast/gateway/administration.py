"""Domains, groups, cursors, and what the cluster looks like: for people and their tools."""

import asyncio
from collections.abc import Iterable

import grpc

from ordercast.core.members import learners_of
from ordercast.gateway.cursors import Cursors, check_cursor_name
from ordercast.gateway.reading import Reading
from ordercast.gateway.reassignment import Planner, Reassignment, present
from ordercast.gateway.subscribing import Subscribing
from ordercast.runtime.process.node import Node
from ordercast.runtime.transport.results import check_result
from ordercast.runtime.transport.status import Refused
from ordercast.v1 import gateway_pb2 as api
from ordercast.v1.membership_pb2 import (
    Command,
    CommandResult,
    CreateDomain,
    CreateGroup,
    Cursor,
    DeleteGroup,
    Group,
)

TIMEOUT_S = 10.0


class Administration:
    def __init__(
        self,
        node: Node,
        reading: Reading,
        cursors: Cursors,
        subscribing: Subscribing,
        planner: Planner | None = None,
    ) -> None:
        self.node = node
        self.reading = reading
        self.cursors = cursors
        self.subscribing = subscribing
        self.reassignment = Reassignment(node, self._execute, planner)

    async def _execute(self, command: Command) -> CommandResult:
        """Returns when this gateway knows of it too, so that the caller can go on here.

        A command that found everything as it wanted it changes nothing, and nobody hears of it. So what counts is
        when the domain, the group or the node changed last.
        """
        result = check_result(await self.node.directory.execute(command, TIMEOUT_S))
        revision = max(result.domain.revision, result.group.revision, result.node.revision)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while self.node.directory.revision < revision:
                    await self.node.wait_for_change()
        except TimeoutError:
            raise Refused(
                grpc.StatusCode.UNAVAILABLE, "it is done, but this gateway has not heard of it yet", "BEHIND"
            ) from None
        return result

    async def create_domain(self, request: api.CreateDomainRequest) -> api.CreateDomainResponse:
        command = CreateDomain(name=request.name, protocol=request.protocol, settings=request.settings)
        return api.CreateDomainResponse(domain=(await self._execute(Command(create_domain=command))).domain)

    def list_domains(self) -> api.ListDomainsResponse:
        domains = self.node.directory.domains
        return api.ListDomainsResponse(domains=[domains[name] for name in sorted(domains)])

    async def create_group(self, request: api.CreateGroupRequest) -> api.CreateGroupResponse:
        command = CreateGroup(
            name=request.name,
            domain=request.domain or "default",
            replicas=request.replicas,
            retention=request.retention,
            settings=request.settings,
        )
        return api.CreateGroupResponse(group=(await self._execute(Command(create_group=command))).group)

    def list_groups(self, request: api.ListGroupsRequest) -> api.ListGroupsResponse:
        groups = self.node.directory.group_by_name
        chosen = [groups[n] for n in sorted(groups) if request.domain in ("", groups[n].domain)]
        return api.ListGroupsResponse(groups=chosen)

    async def describe_group(self, request: api.DescribeGroupRequest) -> api.DescribeGroupResponse:
        group = await self.subscribing.group(request.name)
        replicas, learning = await asyncio.gather(
            self._describe_at(group, group.replicas), self._describe_at(group, learners_of(group))
        )
        return api.DescribeGroupResponse(group=group, replicas=replicas, learners=learning)

    async def _describe_at(self, group: Group, names: Iterable[str]) -> list[api.ReplicaStatus]:
        found = await self.reading.describe(Group(id=group.id, cell=group.cell, replicas=names))
        return [
            api.ReplicaStatus(node=name, error=at) if isinstance(at, str) else api.ReplicaStatus(node=name, log=at)
            for name, at in found.items()
        ]

    async def delete_group(self, request: api.DeleteGroupRequest) -> api.DeleteGroupResponse:
        result = await self._execute(Command(delete_group=DeleteGroup(name=request.name)))
        return api.DeleteGroupResponse(group=result.group)

    async def list_cursors(self, request: api.ListCursorsRequest) -> api.ListCursorsResponse:
        await self.subscribing.group(request.group)
        return api.ListCursorsResponse(cursors=await self.cursors.read(request.group, request.name))

    async def set_cursor(self, request: api.SetCursorRequest) -> api.SetCursorResponse:
        check_cursor_name(request.name)
        group = await self.subscribing.group(request.group)
        offset = await self.reading.start_offset(group, request.start)
        await self.cursors.move(request.group, request.name, offset)
        return api.SetCursorResponse(cursor=Cursor(group=request.group, name=request.name, offset=offset))

    async def delete_cursor(self, request: api.DeleteCursorRequest) -> api.DeleteCursorResponse:
        await self.subscribing.group(request.group)
        await self.cursors.delete(request.group, request.name)
        return api.DeleteCursorResponse()

    def describe_cluster(self) -> api.DescribeClusterResponse:
        directory = self.node.directory
        nodes = present(directory.nodes)
        return api.DescribeClusterResponse(
            cluster_id=directory.cluster_id,
            revision=directory.revision,
            nodes=nodes,
            domains=[directory.domains[name] for name in sorted(directory.domains)],
            groups=[directory.groups[id_] for id_ in sorted(directory.groups)],
            gateway=self.node.name,
            level=self.node.directory.level,
        )
