"""Administration: domains, groups, cursors. The answers are the messages of the wire contract.

A call goes to one gateway after the other until one answers. A creation or deletion whose answer was lost is
repeated like any other call, and may then find that it has been done already.
"""

from collections.abc import Mapping
from typing import Any

from ordercast.client.types import checked_start
from ordercast.v1.gateway_pb2 import (
    CreateDomainRequest,
    CreateGroupRequest,
    DeleteCursorRequest,
    DeleteGroupRequest,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeGroupRequest,
    DescribeGroupResponse,
    ListCursorsRequest,
    ListDomainsRequest,
    ListGroupsRequest,
    SetCursorRequest,
)
from ordercast.v1.membership_pb2 import Cursor, Domain, Group, Retention


class AsyncAdmin:
    """For the driver with asyncio, which knows how to call."""

    async def _call(self, name: str, request: Any) -> Any:
        raise AssertionError("the driver says how")

    async def create_domain(
        self, name: str, protocol: str = "scalatom", settings: Mapping[str, str] | None = None
    ) -> Domain:
        """Groups of one domain share a protocol, and are ordered among each other."""
        answer = await self._call(
            "CreateDomain", CreateDomainRequest(name=name, protocol=protocol, settings=settings or {})
        )
        found: Domain = answer.domain
        return found

    async def domains(self) -> list[Domain]:
        answer = await self._call("ListDomains", ListDomainsRequest())
        return list(answer.domains)

    async def create_group(
        self, name: str, *, domain: str = "", replicas: int = 0, retention: Retention | None = None
    ) -> Group:
        """In the domain "default" if none is given; 0 replicas means as many as there are nodes, at most three."""
        answer = await self._call(
            "CreateGroup", CreateGroupRequest(name=name, domain=domain, replicas=replicas, retention=retention)
        )
        found: Group = answer.group
        return found

    async def groups(self, domain: str = "") -> list[Group]:
        """Of all domains, if none is given."""
        answer = await self._call("ListGroups", ListGroupsRequest(domain=domain))
        return list(answer.groups)

    async def describe_group(self, name: str) -> DescribeGroupResponse:
        """The group, and each replica as it describes itself."""
        answer: DescribeGroupResponse = await self._call("DescribeGroup", DescribeGroupRequest(name=name))
        return answer

    async def delete_group(self, name: str) -> Group:
        """It takes nothing new from now on, and is gone when all that it took is finished."""
        answer = await self._call("DeleteGroup", DeleteGroupRequest(name=name))
        found: Group = answer.group
        return found

    async def cursors(self, group: str, name: str = "") -> list[Cursor]:
        """All of the group, if none is named."""
        answer = await self._call("ListCursors", ListCursorsRequest(group=group, name=name))
        return list(answer.cursors)

    async def set_cursor(self, group: str, name: str, start: str | int) -> Cursor:
        """To `"earliest"`, `"latest"` or an offset: the next that is read."""
        answer = await self._call(
            "SetCursor", SetCursorRequest(group=group, name=name, start=checked_start(start))
        )
        found: Cursor = answer.cursor
        return found

    async def delete_cursor(self, group: str, name: str) -> None:
        await self._call("DeleteCursor", DeleteCursorRequest(group=group, name=name))

    async def cluster(self) -> DescribeClusterResponse:
        """Nodes, domains and groups, as the gateway that answers knows them."""
        answer: DescribeClusterResponse = await self._call("DescribeCluster", DescribeClusterRequest())
        return answer


class SyncAdmin:
    """For the driver with threads, which knows how to call."""

    def _call(self, name: str, request: Any) -> Any:
        raise AssertionError("the driver says how")

    def create_domain(
        self, name: str, protocol: str = "scalatom", settings: Mapping[str, str] | None = None
    ) -> Domain:
        """Groups of one domain share a protocol, and are ordered among each other."""
        answer = self._call(
            "CreateDomain", CreateDomainRequest(name=name, protocol=protocol, settings=settings or {})
        )
        found: Domain = answer.domain
        return found

    def domains(self) -> list[Domain]:
        answer = self._call("ListDomains", ListDomainsRequest())
        return list(answer.domains)

    def create_group(
        self, name: str, *, domain: str = "", replicas: int = 0, retention: Retention | None = None
    ) -> Group:
        """In the domain "default" if none is given; 0 replicas means as many as there are nodes, at most three."""
        answer = self._call(
            "CreateGroup", CreateGroupRequest(name=name, domain=domain, replicas=replicas, retention=retention)
        )
        found: Group = answer.group
        return found

    def groups(self, domain: str = "") -> list[Group]:
        """Of all domains, if none is given."""
        answer = self._call("ListGroups", ListGroupsRequest(domain=domain))
        return list(answer.groups)

    def describe_group(self, name: str) -> DescribeGroupResponse:
        """The group, and each replica as it describes itself."""
        answer: DescribeGroupResponse = self._call("DescribeGroup", DescribeGroupRequest(name=name))
        return answer

    def delete_group(self, name: str) -> Group:
        """It takes nothing new from now on, and is gone when all that it took is finished."""
        answer = self._call("DeleteGroup", DeleteGroupRequest(name=name))
        found: Group = answer.group
        return found

    def cursors(self, group: str, name: str = "") -> list[Cursor]:
        """All of the group, if none is named."""
        answer = self._call("ListCursors", ListCursorsRequest(group=group, name=name))
        return list(answer.cursors)

    def set_cursor(self, group: str, name: str, start: str | int) -> Cursor:
        """To `"earliest"`, `"latest"` or an offset: the next that is read."""
        answer = self._call("SetCursor", SetCursorRequest(group=group, name=name, start=checked_start(start)))
        found: Cursor = answer.cursor
        return found

    def delete_cursor(self, group: str, name: str) -> None:
        self._call("DeleteCursor", DeleteCursorRequest(group=group, name=name))

    def cluster(self) -> DescribeClusterResponse:
        """Nodes, domains and groups, as the gateway that answers knows them."""
        answer: DescribeClusterResponse = self._call("DescribeCluster", DescribeClusterRequest())
        return answer
