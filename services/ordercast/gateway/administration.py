"""Domains, groups, cursors, and what the cluster looks like: for people and their tools."""

import asyncio
from collections.abc import Iterable
from itertools import islice

import grpc

from ordercast.core.level import CELLS_LEVEL
from ordercast.core.members import learners_of
from ordercast.gateway.cursor_lags import lags_of
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
    CreateGroups,
    Cursor,
    DeleteGroup,
    Group,
    UpdateGroup,
)

TIMEOUT_S = 10.0
#: Groups in one answer: what takes longer keeps messages waiting.
GROUPS_TOLD_MAX = 1000
#: So many names of groups in a cell are enough for people.
CELL_GROUPS_TOLD = 20


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
        group = (await self._execute(Command(create_group=self._creation(request)))).group
        return api.CreateGroupResponse(group=self.node.directory.described(group))

    async def create_groups(self, request: api.CreateGroupsRequest) -> api.CreateGroupsResponse:
        command = CreateGroups(like=self._creation(request.like), names=request.names, exist_ok=request.exist_ok)
        self._check_may_share()
        result = await self._execute(Command(create_groups=command))
        return api.CreateGroupsResponse(created=result.created)

    def _creation(self, request: api.CreateGroupRequest) -> CreateGroup:
        if request.shared or request.beside or request.new_cell:
            self._check_may_share()
        return CreateGroup(
            name=request.name,
            # Beside another group it is where that one is.
            domain=request.domain or ("" if request.beside else "default"),
            replicas=request.replicas,
            retention=request.retention,
            settings=request.settings,
            own_cell=request.own_cell,
            beside=request.beside,
            shared=request.shared,
            new_cell=request.new_cell,
        )

    def _check_may_share(self) -> None:
        """A leader with older software would overlook what is asked for."""
        if self.node.directory.level < CELLS_LEVEL:
            raise Refused(
                grpc.StatusCode.FAILED_PRECONDITION,
                f"not all nodes run software in which groups share cells: that takes level {CELLS_LEVEL}; upgrade "
                "them first",
                "LEVEL_TOO_LOW",
            )

    def list_groups(self, request: api.ListGroupsRequest) -> api.ListGroupsResponse:
        """A page of them, by name."""
        directory = self.node.directory
        limit = min(request.limit or GROUPS_TOLD_MAX, GROUPS_TOLD_MAX)
        answer = api.ListGroupsResponse()
        for name in directory.names_from(max(request.after, request.prefix), behind=request.after):
            if not name.startswith(request.prefix):
                break
            group = directory.group_by_name[name]
            if request.domain in ("", group.domain):
                if len(answer.groups) == limit:
                    answer.more = True
                    break
                answer.groups.append(directory.described(group))
        return answer

    async def describe_group(self, request: api.DescribeGroupRequest) -> api.DescribeGroupResponse:
        group = self.node.directory.described(await self.subscribing.group(request.name))
        replicas, learning = await self._describe_everywhere(group)
        return api.DescribeGroupResponse(group=group, replicas=replicas, learners=learning)

    async def _describe_everywhere(self, group: Group) -> tuple[list[api.ReplicaStatus], list[api.ReplicaStatus]]:
        """By replicas, and by those that copy the log."""
        return await asyncio.gather(
            self._describe_at(group, group.replicas), self._describe_at(group, learners_of(group))
        )

    async def _describe_at(self, group: Group, names: Iterable[str]) -> list[api.ReplicaStatus]:
        found = await self.reading.describe(Group(id=group.id, cell=group.cell, replicas=names))
        return [
            api.ReplicaStatus(node=name, error=at) if isinstance(at, str) else api.ReplicaStatus(node=name, log=at)
            for name, at in found.items()
        ]

    async def update_group(self, request: api.UpdateGroupRequest) -> api.UpdateGroupResponse:
        retention = request.retention if request.HasField("retention") else None
        result = await self._execute(Command(update_group=UpdateGroup(name=request.name, retention=retention)))
        return api.UpdateGroupResponse(group=self.node.directory.described(result.group))

    async def delete_group(self, request: api.DeleteGroupRequest) -> api.DeleteGroupResponse:
        result = await self._execute(Command(delete_group=DeleteGroup(name=request.name)))
        return api.DeleteGroupResponse(group=self.node.directory.described(result.group))

    # ------------------------------------------------------------------------------------------ cells

    def list_cells(self, request: api.ListCellsRequest) -> api.ListCellsResponse:
        cells = [cell for cell in self._shared_cells() if request.domain in ("", cell.cell.domain)]
        return api.ListCellsResponse(cells=cells)

    def _shared_cells(self) -> list[api.Cell]:
        cells, count = self.node.directory.cells, self.node.directory.groups_in
        shared = sorted((cells[id_] for id_ in count), key=lambda cell: cell.name)
        return [api.Cell(cell=cell, groups=count[cell.id]) for cell in shared]

    async def describe_cell(self, request: api.DescribeCellRequest) -> api.DescribeCellResponse:
        found = self._shared_cell(request.name)
        if found is None:
            raise Refused(grpc.StatusCode.NOT_FOUND, f"unknown cell {request.name!r}", "UNKNOWN_CELL")
        replicas, learning = await self._describe_everywhere(found.cell)
        known = self.node.directory.group_by_name
        names = (name for name in self.node.directory.names_from("") if known[name].cell == found.cell.id)
        living = list(islice(names, CELL_GROUPS_TOLD))
        return api.DescribeCellResponse(cell=found, replicas=replicas, learners=learning, groups=living)

    def _shared_cell(self, name_or_id: str) -> api.Cell | None:
        for cell in self._shared_cells():
            if name_or_id in (cell.cell.name, cell.cell.id):
                return cell
        return None

    # ------------------------------------------------------------------------------------------ cursors

    async def list_cursors(self, request: api.ListCursorsRequest) -> api.ListCursorsResponse:
        if request.domain:
            found = await self.cursors.read("", request.name, domain=request.domain)
            return api.ListCursorsResponse(cursors=found)
        group = await self.subscribing.group(request.group)
        cursors = await self.cursors.read(request.group, request.name)
        lags = await lags_of(self.node, self.reading, group, cursors) if request.lags else ()
        return api.ListCursorsResponse(cursors=cursors, lags=lags)

    async def set_cursor(self, request: api.SetCursorRequest) -> api.SetCursorResponse:
        check_cursor_name(request.name)
        if request.domain:
            cursor = Cursor(domain=request.domain, name=request.name, place=request.place)
            await self.cursors.move(cursor)
            return api.SetCursorResponse(cursor=cursor)
        group = await self.subscribing.group(request.group)
        offset = await self.reading.start_offset(group, request.start)
        cursor = Cursor(group=request.group, name=request.name, offset=offset)
        await self.cursors.move(cursor)
        return api.SetCursorResponse(cursor=cursor)

    async def delete_cursor(self, request: api.DeleteCursorRequest) -> api.DeleteCursorResponse:
        if not request.domain:
            await self.subscribing.group(request.group)
        await self.cursors.delete(request.group, request.name, domain=request.domain)
        return api.DeleteCursorResponse()

    async def describe_waiting(self, request: api.DescribeWaitingRequest) -> api.DescribeWaitingResponse:
        """One process that does not answer holds nobody up for long, and is named."""
        if request.domain and request.domain not in self.node.directory.domains:
            raise Refused(grpc.StatusCode.NOT_FOUND, f"unknown domain {request.domain!r}", "UNKNOWN_DOMAIN")
        nodes = {
            node.name: node
            for node in present(self.node.directory.nodes)
            if not node.ended and {"gateway", "sequencer"} & {*node.services}
        }
        found = await asyncio.gather(*(self.reading.waiting(name, request.domain) for name in nodes))
        return api.DescribeWaitingResponse(
            nodes=[
                api.NodeWaiting(
                    node=name,
                    suspected=nodes[name].suspected,
                    error=told if isinstance(told, str) else "",
                    waiting=() if isinstance(told, str) else told,
                )
                for name, told in zip(nodes, found, strict=True)
            ]
        )

    def describe_cluster(self, request: api.DescribeClusterRequest) -> api.DescribeClusterResponse:
        """What is placed; groups that share cells only if somebody asks for them."""
        directory = self.node.directory
        nodes = present(directory.nodes)
        placed = directory.groups if request.shared_groups else directory.apart
        groups = [directory.described(directory.groups[id_]) for id_ in sorted(placed)]
        return api.DescribeClusterResponse(
            cluster_id=directory.cluster_id,
            revision=directory.revision,
            nodes=nodes,
            domains=[directory.domains[name] for name in sorted(directory.domains)],
            groups=groups,
            cells=self._shared_cells(),
            gateway=self.node.name,
            level=self.node.directory.level,
        )
