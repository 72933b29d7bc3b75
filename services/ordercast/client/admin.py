"""Administration: domains, groups, cursors, nodes. The answers are the messages of the wire contract.

A call goes to one gateway after the other until one answers. A creation or deletion whose answer was lost is
repeated like any other call, and may then find that it has been done already. Changes of replicas and nodes carry
an id that is drawn once, so that repeating them does no harm.

Besides the errors that every call may end with (`Unavailable`, `DeadlineExceeded`), what there is not is
`NotFound`, a request that contradicts itself `InvalidArgument`, and what cannot be done as things are
`FailedPrecondition`: its message says what is in the way.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar

from ordercast.client.creating import (
    Calls,
    creating_domain,
    creating_group,
    creation_of_domain,
    creations,
    group_like,
)
from ordercast.client.errors import AlreadyExists, InvalidArgument
from ordercast.client.types import Start, checked_start
from ordercast.v1.gateway_pb2 import (
    CancelChangeRequest,
    Cell,
    ChangeReplicasRequest,
    CreateGroupRequest,
    CursorLag,
    DeleteCursorRequest,
    DeleteGroupRequest,
    DescribeCellRequest,
    DescribeCellResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeGroupRequest,
    DescribeGroupResponse,
    DescribeWaitingRequest,
    DescribeWaitingResponse,
    DrainNodeRequest,
    GiveUpDiskRequest,
    ListCellsRequest,
    ListCursorsRequest,
    ListCursorsResponse,
    ListDomainsRequest,
    ListGroupsRequest,
    PlanRebalanceRequest,
    RemoveNodeRequest,
    ReplicaMove,
    SetCursorRequest,
    UpdateGroupRequest,
)
from ordercast.v1.membership_pb2 import (
    REPLICA_CHANGE_ADD,
    REPLICA_CHANGE_REMOVE,
    REPLICA_CHANGE_REPLACE,
    Cursor,
    Domain,
    Group,
    Node,
    ReplicaChange,
    Retention,
)

Change = Literal["add", "remove", "replace"]
CHANGES: dict[Change, ReplicaChange] = {
    "add": REPLICA_CHANGE_ADD,
    "remove": REPLICA_CHANGE_REMOVE,
    "replace": REPLICA_CHANGE_REPLACE,
}

T = TypeVar("T")


def with_lags(answer: ListCursorsResponse) -> list[tuple[Cursor, CursorLag | None]]:
    """Gateways of earlier versions say nothing of lags."""
    lags: list[CursorLag | None] = [*answer.lags] or [None] * len(answer.cursors)
    return list(zip(answer.cursors, lags, strict=True))


class AsyncAdmin:
    """For the driver with asyncio, which knows how to call."""

    async def _call(self, name: str, request: Any) -> Any:
        raise AssertionError("the driver says how")

    async def _created(self, calls: Calls[T]) -> T:
        answer: Any = None
        while True:
            try:
                call = calls.send(answer)
            except StopIteration as done:
                made: T = done.value
                return made
            await asyncio.sleep(call.after_s)
            try:
                answer = await self._call(call.method, call.request)
            except AlreadyExists as error:
                answer = error

    async def create_domain(
        self,
        name: str,
        protocol: str | None = None,
        settings: Mapping[str, str] | None = None,
        *,
        exist_ok: bool = False,
    ) -> Domain:
        """Groups of one domain share a protocol, and are ordered among each other.

        Without a name it is the protocol of the domain that every cluster has.

        A domain that is there already, with the same protocol and settings, is the answer. With `exist_ok`, so is
        one with other settings, which stay as they are; one with another protocol is `AlreadyExists` all the same.
        """
        request = creation_of_domain(name, protocol, settings)
        return await self._created(creating_domain(request, exist_ok=exist_ok))

    async def domains(self) -> list[Domain]:
        answer = await self._call("ListDomains", ListDomainsRequest())
        return list(answer.domains)

    async def create_group(
        self,
        name: str,
        *,
        domain: str = "",
        replicas: int = 0,
        retention: Retention | None = None,
        settings: Mapping[str, str] | None = None,
        shared: bool = False,
        beside: str = "",
        own_cell: bool = False,
        new_cell: bool = False,
        exist_ok: bool = False,
    ) -> Group:
        """In the domain "default" if none is given; 0 replicas means as many as there are nodes, at most three.

        `settings` are what this group has otherwise than its domain, as the domain's protocol allows. With
        `exist_ok`, a group of that domain which is there already is the answer, and stays as it is; one that is
        being deleted is made anew when it is gone. One of another domain is `AlreadyExists` all the same.

        At most one of these says where it lives: `shared`, in a cell with other groups of its domain, which makes
        it cheap; `beside` a group that shares its cell, in the same one; `own_cell`, in a cell to itself;
        `new_cell`, in a new one, which others may share.
        """
        request = CreateGroupRequest(
            name=name,
            domain=domain,
            replicas=replicas,
            retention=retention,
            settings=settings,
            shared=shared,
            beside=beside,
            own_cell=own_cell,
            new_cell=new_cell,
        )
        return await self._created(creating_group(request, exist_ok=exist_ok))

    async def create_groups(
        self,
        names: Iterable[str],
        *,
        domain: str = "",
        replicas: int = 0,
        retention: Retention | None = None,
        settings: Mapping[str, str] | None = None,
        beside: str = "",
        exist_ok: bool = False,
    ) -> int:
        """Groups that share cells, many at a time. Returns how many there were not yet; see `create_group`."""
        like = group_like(domain, replicas, retention, settings, beside)
        created = 0
        for request in creations(names, like, exist_ok=exist_ok):
            created += (await self._call("CreateGroups", request)).created
        return created

    async def groups(self, domain: str = "") -> list[Group]:
        """Of all domains, if none is given."""
        return [group async for group in self.iter_groups(domain)]

    async def iter_groups(self, domain: str = "") -> AsyncIterator[Group]:
        """By name, page by page: there may be very many."""
        request = ListGroupsRequest(domain=domain)
        while True:
            answer = await self._call("ListGroups", request)
            for group in answer.groups:
                yield group
            if not answer.more:
                return
            request.after = answer.groups[-1].name

    async def describe_group(self, name: str) -> DescribeGroupResponse:
        """The group, and each replica as it describes itself."""
        answer: DescribeGroupResponse = await self._call("DescribeGroup", DescribeGroupRequest(name=name))
        return answer

    async def update_group(self, name: str, *, retention: Retention) -> Group:
        """Give it another retention. Replicas keep to it within seconds; what they drop does not come back."""
        answer = await self._call("UpdateGroup", UpdateGroupRequest(name=name, retention=retention))
        found: Group = answer.group
        return found

    async def delete_group(self, name: str) -> Group:
        """It takes nothing new from now on, and is gone when all that it took is finished."""
        answer = await self._call("DeleteGroup", DeleteGroupRequest(name=name))
        found: Group = answer.group
        return found

    async def cells(self, domain: str = "") -> list[Cell]:
        """Those that groups share, of all domains, if none is given."""
        answer = await self._call("ListCells", ListCellsRequest(domain=domain))
        return list(answer.cells)

    async def describe_cell(self, name: str) -> DescribeCellResponse:
        """A cell that groups share, by its name or id: each replica as it describes itself, and some groups."""
        answer: DescribeCellResponse = await self._call("DescribeCell", DescribeCellRequest(name=name))
        return answer

    async def cursors(self, group: str, name: str = "") -> list[Cursor]:
        """All of the group, if none is named."""
        answer = await self._call("ListCursors", ListCursorsRequest(group=group, name=name))
        return list(answer.cursors)

    async def describe_cursors(self, group: str, name: str = "") -> list[tuple[Cursor, CursorLag | None]]:
        """Each with how far its consumer is behind; None if no replica of the group answers."""
        request = ListCursorsRequest(group=group, name=name, lags=True)
        return with_lags(await self._call("ListCursors", request))

    async def set_cursor(self, group: str, name: str, start: Start) -> Cursor:
        """To `"earliest"`, `"latest"`, an offset or a time: the next that is read."""
        answer = await self._call(
            "SetCursor", SetCursorRequest(group=group, name=name, start=checked_start(start))
        )
        found: Cursor = answer.cursor
        return found

    async def delete_cursor(self, group: str, name: str) -> None:
        await self._call("DeleteCursor", DeleteCursorRequest(group=group, name=name))

    async def waiting(self, domain: str = "") -> DescribeWaitingResponse:
        """What waits at each gateway and sequencer now: in which stage, since when, and for whom."""
        request = DescribeWaitingRequest(domain=domain)
        answer: DescribeWaitingResponse = await self._call("DescribeWaiting", request)
        return answer

    async def cluster(self, *, shared_groups: bool = False) -> DescribeClusterResponse:
        """Nodes, domains, cells, and groups that have one to themselves, as the gateway that answers knows them.

        There may be very many groups that share cells: they are told only to who asks for them.
        """
        request = DescribeClusterRequest(shared_groups=shared_groups)
        answer: DescribeClusterResponse = await self._call("DescribeCluster", request)
        return answer

    # ------------------------------------------------------------------------------------- replicas, nodes

    async def change_replicas(self, group: str, change: Change, *, node: str = "", to: str = "") -> Group:
        """`"add"` a replica on `to`, `"remove"` the one on `node`, or `"replace"` that by one on `to`.

        Without `to` it comes where there is the most room; without `node` the one goes that is missed least. The
        answer is how it begins: the change is done when the group has neither `next` nor `previous` any more. Of a
        group that shares its cell, the cell is changed, and is the answer; `group` may also name a cell.

        `FailedPrecondition` while another change of the group is under way, if no node can take a replica, if one
        is not there, or holds one already or none, or while not all nodes run software that can change replicas.
        """
        answer = await self._call("ChangeReplicas", change_request(group, change, node, to))
        found: Group = answer.group
        return found

    async def cancel_change(self, group: str) -> Group:
        """Give up the change that is being prepared. `FailedPrecondition` if there is none, or if it has begun."""
        answer = await self._call("CancelChange", CancelChangeRequest(group=group, request_id=new_id()))
        found: Group = answer.group
        return found

    async def nodes(self) -> list[Node]:
        """As the gateway that answers knows them."""
        return list((await self.cluster()).nodes)

    async def drain_node(self, name: str, draining: bool = True) -> Node:
        """It gets nothing new, and the cluster moves away what it holds; with `False`, not any more."""
        answer = await self._call("DrainNode", DrainNodeRequest(node=name, draining=draining))
        found: Node = answer.node
        return found

    async def remove_node(self, name: str) -> Node:
        """Forget it; its name is free.

        `FailedPrecondition` while it holds something, or is alive and not draining.
        """
        answer = await self._call("RemoveNode", RemoveNodeRequest(node=name, request_id=new_id()))
        found: Node = answer.node
        return found

    async def give_up_disk(self, name: str) -> Node:
        """What the node had stored is gone for good: a process with this name and an empty disk is a new member.

        `FailedPrecondition` while the node is alive.
        """
        answer = await self._call("GiveUpDisk", GiveUpDiskRequest(node=name, request_id=new_id()))
        found: Node = answer.node
        return found

    async def plan_rebalance(self) -> list[ReplicaMove]:
        """Moves that would even out the cluster, for `change_replicas(group, "replace", node=..., to=...)`.

        Nothing is changed by asking. `Unimplemented` by a gateway that cannot plan.
        """
        answer = await self._call("PlanRebalance", PlanRebalanceRequest())
        return list(answer.moves)


class SyncAdmin:
    """For the driver with threads, which knows how to call."""

    def _call(self, name: str, request: Any) -> Any:
        raise AssertionError("the driver says how")

    def _created(self, calls: Calls[T]) -> T:
        answer: Any = None
        while True:
            try:
                call = calls.send(answer)
            except StopIteration as done:
                made: T = done.value
                return made
            time.sleep(call.after_s)
            try:
                answer = self._call(call.method, call.request)
            except AlreadyExists as error:
                answer = error

    def create_domain(
        self,
        name: str,
        protocol: str | None = None,
        settings: Mapping[str, str] | None = None,
        *,
        exist_ok: bool = False,
    ) -> Domain:
        """Groups of one domain share a protocol, and are ordered among each other.

        Without a name it is the protocol of the domain that every cluster has.

        A domain that is there already, with the same protocol and settings, is the answer. With `exist_ok`, so is
        one with other settings, which stay as they are; one with another protocol is `AlreadyExists` all the same.
        """
        request = creation_of_domain(name, protocol, settings)
        return self._created(creating_domain(request, exist_ok=exist_ok))

    def domains(self) -> list[Domain]:
        answer = self._call("ListDomains", ListDomainsRequest())
        return list(answer.domains)

    def create_group(
        self,
        name: str,
        *,
        domain: str = "",
        replicas: int = 0,
        retention: Retention | None = None,
        settings: Mapping[str, str] | None = None,
        shared: bool = False,
        beside: str = "",
        own_cell: bool = False,
        new_cell: bool = False,
        exist_ok: bool = False,
    ) -> Group:
        """In the domain "default" if none is given; 0 replicas means as many as there are nodes, at most three.

        `settings` are what this group has otherwise than its domain, as the domain's protocol allows. With
        `exist_ok`, a group of that domain which is there already is the answer, and stays as it is; one that is
        being deleted is made anew when it is gone. One of another domain is `AlreadyExists` all the same.

        At most one of these says where it lives: `shared`, in a cell with other groups of its domain, which makes
        it cheap; `beside` a group that shares its cell, in the same one; `own_cell`, in a cell to itself;
        `new_cell`, in a new one, which others may share.
        """
        request = CreateGroupRequest(
            name=name,
            domain=domain,
            replicas=replicas,
            retention=retention,
            settings=settings,
            shared=shared,
            beside=beside,
            own_cell=own_cell,
            new_cell=new_cell,
        )
        return self._created(creating_group(request, exist_ok=exist_ok))

    def create_groups(
        self,
        names: Iterable[str],
        *,
        domain: str = "",
        replicas: int = 0,
        retention: Retention | None = None,
        settings: Mapping[str, str] | None = None,
        beside: str = "",
        exist_ok: bool = False,
    ) -> int:
        """Groups that share cells, many at a time. Returns how many there were not yet; see `create_group`."""
        like = group_like(domain, replicas, retention, settings, beside)
        created = 0
        for request in creations(names, like, exist_ok=exist_ok):
            created += self._call("CreateGroups", request).created
        return created

    def groups(self, domain: str = "") -> list[Group]:
        """Of all domains, if none is given."""
        return list(self.iter_groups(domain))

    def iter_groups(self, domain: str = "") -> Iterator[Group]:
        """By name, page by page: there may be very many."""
        request = ListGroupsRequest(domain=domain)
        while True:
            answer = self._call("ListGroups", request)
            yield from answer.groups
            if not answer.more:
                return
            request.after = answer.groups[-1].name

    def describe_group(self, name: str) -> DescribeGroupResponse:
        """The group, and each replica as it describes itself."""
        answer: DescribeGroupResponse = self._call("DescribeGroup", DescribeGroupRequest(name=name))
        return answer

    def update_group(self, name: str, *, retention: Retention) -> Group:
        """Give it another retention. Replicas keep to it within seconds; what they drop does not come back."""
        answer = self._call("UpdateGroup", UpdateGroupRequest(name=name, retention=retention))
        found: Group = answer.group
        return found

    def delete_group(self, name: str) -> Group:
        """It takes nothing new from now on, and is gone when all that it took is finished."""
        answer = self._call("DeleteGroup", DeleteGroupRequest(name=name))
        found: Group = answer.group
        return found

    def cells(self, domain: str = "") -> list[Cell]:
        """Those that groups share, of all domains, if none is given."""
        answer = self._call("ListCells", ListCellsRequest(domain=domain))
        return list(answer.cells)

    def describe_cell(self, name: str) -> DescribeCellResponse:
        """A cell that groups share, by its name or id: each replica as it describes itself, and some groups."""
        answer: DescribeCellResponse = self._call("DescribeCell", DescribeCellRequest(name=name))
        return answer

    def cursors(self, group: str, name: str = "") -> list[Cursor]:
        """All of the group, if none is named."""
        answer = self._call("ListCursors", ListCursorsRequest(group=group, name=name))
        return list(answer.cursors)

    def describe_cursors(self, group: str, name: str = "") -> list[tuple[Cursor, CursorLag | None]]:
        """Each with how far its consumer is behind; None if no replica of the group answers."""
        request = ListCursorsRequest(group=group, name=name, lags=True)
        return with_lags(self._call("ListCursors", request))

    def set_cursor(self, group: str, name: str, start: Start) -> Cursor:
        """To `"earliest"`, `"latest"`, an offset or a time: the next that is read."""
        answer = self._call("SetCursor", SetCursorRequest(group=group, name=name, start=checked_start(start)))
        found: Cursor = answer.cursor
        return found

    def delete_cursor(self, group: str, name: str) -> None:
        self._call("DeleteCursor", DeleteCursorRequest(group=group, name=name))

    def waiting(self, domain: str = "") -> DescribeWaitingResponse:
        """What waits at each gateway and sequencer now: in which stage, since when, and for whom."""
        request = DescribeWaitingRequest(domain=domain)
        answer: DescribeWaitingResponse = self._call("DescribeWaiting", request)
        return answer

    def cluster(self, *, shared_groups: bool = False) -> DescribeClusterResponse:
        """Nodes, domains, cells, and groups that have one to themselves, as the gateway that answers knows them.

        There may be very many groups that share cells: they are told only to who asks for them.
        """
        request = DescribeClusterRequest(shared_groups=shared_groups)
        answer: DescribeClusterResponse = self._call("DescribeCluster", request)
        return answer

    # ------------------------------------------------------------------------------------- replicas, nodes

    def change_replicas(self, group: str, change: Change, *, node: str = "", to: str = "") -> Group:
        """`"add"` a replica on `to`, `"remove"` the one on `node`, or `"replace"` that by one on `to`.

        Without `to` it comes where there is the most room; without `node` the one goes that is missed least. The
        answer is how it begins: the change is done when the group has neither `next` nor `previous` any more. Of a
        group that shares its cell, the cell is changed, and is the answer; `group` may also name a cell.

        `FailedPrecondition` while another change of the group is under way, if no node can take a replica, if one
        is not there, or holds one already or none, or while not all nodes run software that can change replicas.
        """
        answer = self._call("ChangeReplicas", change_request(group, change, node, to))
        found: Group = answer.group
        return found

    def cancel_change(self, group: str) -> Group:
        """Give up the change that is being prepared. `FailedPrecondition` if there is none, or if it has begun."""
        answer = self._call("CancelChange", CancelChangeRequest(group=group, request_id=new_id()))
        found: Group = answer.group
        return found

    def nodes(self) -> list[Node]:
        """As the gateway that answers knows them."""
        return list(self.cluster().nodes)

    def drain_node(self, name: str, draining: bool = True) -> Node:
        """It gets nothing new, and the cluster moves away what it holds; with `False`, not any more."""
        answer = self._call("DrainNode", DrainNodeRequest(node=name, draining=draining))
        found: Node = answer.node
        return found

    def remove_node(self, name: str) -> Node:
        """Forget it; its name is free.

        `FailedPrecondition` while it holds something, or is alive and not draining.
        """
        answer = self._call("RemoveNode", RemoveNodeRequest(node=name, request_id=new_id()))
        found: Node = answer.node
        return found

    def give_up_disk(self, name: str) -> Node:
        """What the node had stored is gone for good: a process with this name and an empty disk is a new member.

        `FailedPrecondition` while the node is alive.
        """
        answer = self._call("GiveUpDisk", GiveUpDiskRequest(node=name, request_id=new_id()))
        found: Node = answer.node
        return found

    def plan_rebalance(self) -> list[ReplicaMove]:
        """Moves that would even out the cluster, for `change_replicas(group, "replace", node=..., to=...)`.

        Nothing is changed by asking. `Unimplemented` by a gateway that cannot plan.
        """
        answer = self._call("PlanRebalance", PlanRebalanceRequest())
        return list(answer.moves)


# ------------------------------------------------------------------------------------------------------ requests


def change_request(group: str, change: Change, node: str, to: str) -> ChangeReplicasRequest:
    if change not in CHANGES:
        raise InvalidArgument(f"a change of replicas is one of {', '.join(CHANGES)}, not {change!r}")
    return ChangeReplicasRequest(group=group, change=CHANGES[change], node=node, to=to, request_id=new_id())


def new_id() -> bytes:
    return os.urandom(16)
