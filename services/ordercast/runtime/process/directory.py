"""This process's view of the cluster: follows membership, and talks to it.

Reading is done at any membership node, which may be behind but never goes back. Commands and heartbeats go to the
leader; whoever is not the leader says who is. A command carries an id, so that repeating it is harmless.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import grpc
import structlog
from grpc_status import rpc_status  # type: ignore[import-untyped]

from ordercast.core.cells import SLASH
from ordercast.core.group_table import GroupsById, GroupTable
from ordercast.core.ids import group_number
from ordercast.core.members import address_of, learners_of
from ordercast.runtime.transport.mesh import CHANNEL_OPTIONS
from ordercast.runtime.transport.results import refused_from
from ordercast.runtime.transport.status import Refused
from ordercast.runtime.transport.tls import Credentials
from ordercast.v1.membership_pb2 import (
    GROUP_STATE_DELETED,
    GROUP_STATE_DELETING,
    Command,
    CommandResult,
    Cursor,
    Domain,
    DomainView,
    ExecuteRequest,
    Group,
    GroupView,
    HeartbeatRequest,
    HeartbeatResponse,
    Node,
    NotLeader,
    WatchRequest,
    WatchResponse,
)
from ordercast.v1.membership_pb2_grpc import MembershipServiceStub

log = structlog.get_logger("directory")

#: A member that does not say its revision by then is not waited for.
REVISION_S_MAX = 0.5
RETRY_S = 0.1
#: Members give a sign of life more often than this.
SILENT_S_MAX = 2.0
#: What a change costs here goes with the number of groups. So, after one that kept us busy for some time, we rest
#: from changes for so many times that long, and take what came meanwhile as one: whoever creates a thousand groups
#: at once leaves most of the processor to messages.
REST = 4.0
REST_S_MAX = 0.1
CALL_S_MAX = 2.0
HEARTBEAT_S_MAX = 0.7
#: A member that did not answer is asked last for so long.
AVOID_S = 5.0
#: Repeating a call does not change these answers.
FINAL = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.INVALID_ARGUMENT)


def group_view(group: Group) -> GroupView:
    return GroupView(
        group=group.id,
        configuration=group.configuration,
        replicas=sorted(group.replicas),
        acceptors=sorted(group.acceptors),
        previous=group.previous if group.HasField("previous") else None,
        starting=group.starting,
        learners=learners_of(group),
        lost=group.lost,
        incarnations=group.incarnations,
        leaving=group.leaving,
        epoch=group.epoch,
        settings=group.settings,
    )


async def _at_once() -> None:
    pass


class Directory:
    def __init__(self, process: str, members: dict[str, str], credentials: Credentials) -> None:
        """`members` are the addresses of the membership nodes, by name."""
        self.process = process
        self.members = members
        self.revision = 0
        #: A member that has not heard of this revision is too far behind to begin with. With what it says, groups
        #: that we have logs of would seem to be gone.
        self.revision_min = 0
        self.cluster_id = b""
        self.retired = 0
        #: What all nodes understand.
        self.level = 0
        self.nodes: dict[str, Node] = {}
        #: Nodes that are gone, until nobody remembers anything of their last lives.
        self._removed: dict[str, int] = {}
        self.domains: dict[str, Domain] = {}
        #: What users name; those that are being deleted are still here.
        self.group_by_name = GroupTable()
        #: The same by id.
        self.groups = GroupsById(self.group_by_name)
        #: Of these, by id: those that have a cell to themselves.
        self.apart: dict[str, Group] = {}
        #: And those that share a cell and have a retention, by id.
        self.limited: dict[str, Group] = {}
        #: Those that are being deleted, by id.
        self.deleting: dict[str, Group] = {}
        #: What is placed, by id: groups that have a cell to themselves, and the cells that others share. What
        #: views cost goes with their number; other groups are entries in tables.
        self.cells: dict[str, Group] = {}
        #: The cells that groups share, by id, with how many groups live there.
        self.groups_in: dict[str, int] = {}
        #: The highest number that a group or a cell has got.
        self.group_last = 0
        #: By domain: the addresses of groups of shared cells that are gone, until somebody takes them.
        self._gone: dict[str, list[str]] = {}
        #: By domain: the revision at which one of its cells last changed.
        self._cells_changed: dict[str, int] = {}
        #: Injected faults: processes that this one cannot call.
        self.cut_off: frozenset[str] = frozenset()
        self.on_change: Callable[[], None] = lambda: None
        #: Waits until all have heard of a change.
        self.settled: Callable[[], Awaitable[None]] = _at_once
        self._credentials = credentials
        self._stubs: dict[str, tuple[Any, MembershipServiceStub]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._leader: str | None = None
        #: What views say of each cell, by its id. It is made once, since there may be many.
        self._group_views: dict[str, GroupView] = {}
        #: Members that did not answer, and until when they are not asked.
        self._avoided: dict[str, float] = {}
        self._rest_until = 0.0
        self._turn = sorted(members).index(process) if process in members else 0

    async def stop(self) -> None:
        channels = [channel for channel, _ in self._stubs.values()]
        self._stubs.clear()
        for channel in channels:
            await channel.close()

    # --------------------------------------------------------------------------------------------- following

    async def follow(self) -> None:
        """Watch for ever, at one member after the other."""
        while True:
            member = self._next_member()
            try:
                if member not in self.cut_off:
                    await self._watch(member)
            except grpc.aio.AioRpcError as error:
                log.debug("watch ended", member=member, code=error.code().name)
            except TimeoutError:
                # It is paused, or cut off: whoever stayed with it would not hear that others have come back.
                log.info("watching elsewhere", silent=member)
                self._avoid(member)
            await asyncio.sleep(RETRY_S)

    async def _watch(self, member: str) -> None:
        """Over a connection of its own: whoever gives up on a call must not end the watch."""
        async with self._credentials.dial(self.members[member], member, CHANNEL_OPTIONS) as channel:
            call: Any = MembershipServiceStub(channel).Watch(WatchRequest(revision=self.revision))
            async for changes in self._heaps(call):
                for change in changes:
                    if not self._is_sound(member, change):
                        return
                await self._tell(changes)

    async def _heaps(self, call: Any) -> AsyncIterator[list[WatchResponse]]:
        """What the member says, and what it said while we rested from what it said before."""
        loop = asyncio.get_running_loop()
        reading = asyncio.ensure_future(call.read())
        try:
            while True:
                async with asyncio.timeout(SILENT_S_MAX):
                    changes = [await reading]
                if changes[0] is grpc.aio.EOF:
                    return
                reading = asyncio.ensure_future(call.read())
                while (rest_s := self._rest_until - loop.time()) > 0:
                    await asyncio.wait([reading], timeout=rest_s)
                    if not reading.done() or reading.exception() is not None or reading.result() is grpc.aio.EOF:
                        break
                    changes.append(reading.result())
                    reading = asyncio.ensure_future(call.read())
                yield changes
        finally:
            reading.cancel()

    def _is_sound(self, member: str, change: WatchResponse) -> bool:
        """Whether to go on with this member."""
        if member in self.cut_off:
            return False
        if self.cluster_id and change.cluster_id != self.cluster_id:
            log.error("a member of another cluster", member=member, cluster=change.cluster_id.hex())
            return False
        return change.revision >= self.revision_min

    async def _tell(self, changes: list[WatchResponse]) -> None:
        """Tell listeners of all these changes as one, after everybody has heard of the changes before."""
        loop = asyncio.get_running_loop()
        begun, before = loop.time(), self.revision
        for change in changes:
            self._apply(change)
        if self.revision == before:
            return
        self.on_change()
        await self.settled()
        now = loop.time()
        self._rest_until = now + min(REST * (now - begun), REST_S_MAX)

    def _apply(self, change: WatchResponse) -> None:
        if change.revision <= self.revision:
            return
        before = self.groups
        if change.reset:
            self._forget_all()
        self.revision = change.revision
        self.group_last = max(self.group_last, change.group_last)
        self.cluster_id = change.cluster_id
        self.retired = max(self.retired, change.retired)
        self.level = max(self.level, change.level)
        for node in change.nodes:
            if node.removed:
                self.nodes.pop(node.name, None)
                self._removed[node.name] = node.incarnation
            else:
                self.nodes[node.name] = node
                self._removed.pop(node.name, None)
        self._removed = {name: number for name, number in self._removed.items() if number >= self.retired}
        for domain in change.domains:
            self.domains[domain.name] = domain
        for cell in change.cells:
            self._place(cell)
            self.groups_in.setdefault(cell.id, 0)
        for group in change.groups:
            self._learn(group)
        if change.reset:
            for id_, group in before.items():
                if id_ not in self.groups:
                    self._note_gone(group)

    def _forget_all(self) -> None:
        self.nodes, self.domains = {}, {}
        self.group_by_name = GroupTable()
        self.groups = GroupsById(self.group_by_name)
        self.apart, self.limited, self.deleting = {}, {}, {}
        self.cells, self._group_views, self.groups_in = {}, {}, {}

    def _learn(self, group: Group) -> None:
        known = self.groups.get(group.id)
        if group.state == GROUP_STATE_DELETED:
            self.deleting.pop(group.id, None)
            if known is not None:
                self._forget_group(known)
            self._note_gone(group)
        else:
            namesake = self.group_by_name.get(group.name)
            if namesake is not None and namesake.id != group.id:
                self._forget_group(namesake)  # It is gone: that is among what comes next.
            self.group_by_name[group.name] = group
            if not group.cell:
                self.apart[group.id] = group
            elif group.retention.bytes or group.retention.age_s:
                self.limited[group.id] = group
            else:
                self.limited.pop(group.id, None)
            if group.state == GROUP_STATE_DELETING:
                self.deleting[group.id] = group
            if group.cell and known is None:
                self.groups_in[group.cell] += 1
        if not group.cell:
            self._place(group)

    def _forget_group(self, group: Group) -> None:
        del self.group_by_name[group.name]
        self.apart.pop(group.id, None)
        self.limited.pop(group.id, None)
        if group.cell:
            self.groups_in[group.cell] -= 1

    def _place(self, cell: Group) -> None:
        """It changed, or it is new or gone: machines hear of that."""
        self._cells_changed[cell.domain] = max(self._cells_changed.get(cell.domain, 0), cell.revision)
        if cell.state == GROUP_STATE_DELETED:
            self.cells.pop(cell.id, None)
            self._group_views.pop(cell.id, None)
        else:
            self.cells[cell.id] = cell
            self._group_views[cell.id] = group_view(cell)

    def _note_gone(self, group: Group) -> None:
        if group.cell:
            self._gone.setdefault(group.domain, []).append(address_of(group))

    def take_gone(self) -> dict[str, list[str]]:
        """By domain, return the addresses of groups in shared cells that have gone since the last call."""
        gone, self._gone = self._gone, {}
        return gone

    def view(self, domain: str) -> DomainView:
        """A view names the domain's cells. Groups that share a cell do not appear in it."""
        changed = self._cells_changed.get(domain, 0)
        view = DomainView(domain=domain, number=self.revision, changed=changed, level=self.level)
        for _, cell in sorted(self.cells.items()):
            if cell.domain == domain:
                view.groups.append(self._group_views[cell.id])  # This copies it: machines may get it changed.
        return view

    # ------------------------------------------------------------------------------------- groups and cells

    def cell_of(self, group: Group) -> Group:
        """What is placed: the cell that the group shares, or the group itself."""
        return self.cells[group.cell] if group.cell else self.cells.get(group.id, group)

    def address_of(self, group: Group) -> str:
        return address_of(group)

    def group_at(self, address: str) -> Group | None:
        group = self.groups.get(address.rpartition(SLASH)[2])
        return group if group is not None and address_of(group) == address else None

    def is_gone(self, address: str) -> bool:
        """Whether there was a group with this address and is none any more, as far as we have heard.

        Numbers rise and are given once: one that was given and is not among the groups is of one that is gone.
        """
        id_ = address.rpartition(SLASH)[2]
        return id_ not in self.groups and group_number(id_) <= self.group_last

    def names_from(self, first: str, behind: str = "") -> Iterator[str]:
        """Of groups, in their order: from the first one on, and behind the other."""
        return self.group_by_name.names_from(first, behind)

    def described(self, group: Group) -> Group:
        """Return the group with its cell's replicas, acceptors, configuration and so on."""
        if not group.cell or group.replicas:  # It has a cell to itself, or is described already.
            return group
        found = Group()
        found.CopyFrom(self.cells[group.cell])
        revision = max(found.revision, group.revision)
        found.MergeFrom(group)
        found.is_cell = False
        found.revision = revision
        return found

    def ended(self) -> dict[str, int]:
        """The highest incarnation of each name that sends nothing any more."""
        known = {
            name: node.incarnation if node.ended else node.incarnation - 1 for name, node in self.nodes.items()
        }
        return self._removed | known

    # -------------------------------------------------------------------------------------------- commands

    async def execute(self, command: Command, timeout_s: float) -> CommandResult:
        """Repeats until it is answered; Refused if it is not in time, and then nobody knows."""
        if not command.request_id:
            command.request_id = os.urandom(16)
        request = ExecuteRequest(command=command)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        is_sent_on = False
        while True:
            member = self._leader or self._next_member()
            try:
                if member not in self.cut_off:
                    answer = await self._stub(member).Execute(
                        request, timeout=max(0.05, min(CALL_S_MAX, deadline - loop.time()))
                    )
                    self._leader = member
                    result: CommandResult = answer.result
                    return result
            except grpc.aio.AioRpcError as error:
                if error.code() in FINAL:
                    raise refused_from(error) from None
                self._learn_leader(member, error)
            else:
                self._leader = None
            if loop.time() >= deadline:
                raise Refused(grpc.StatusCode.UNAVAILABLE, "membership does not answer", "MEMBERSHIP_UNAVAILABLE")
            # Sent on to the leader at once, but only once: two members may believe in each other.
            is_sent_on = self._leader is not None and not is_sent_on
            await asyncio.sleep(0 if is_sent_on else RETRY_S)

    async def newest_revision(self) -> int:
        """The highest revision that a member has now, of those that answer. Nothing is written for it."""
        return max(await asyncio.gather(*(self._revision_of(member) for member in self.members)), default=0)

    async def _revision_of(self, member: str) -> int:
        """A member of an older version answers with what changed, or with a sign of life: both name a revision."""
        if member in self.cut_off:
            return 0
        request = WatchRequest(revision=self.revision, only_revision=True)
        call: Any = self._stub(member).Watch(request, timeout=REVISION_S_MAX)
        try:
            response: WatchResponse = await call.read()
            return response.revision if response else 0
        except grpc.aio.AioRpcError:
            return 0
        finally:
            call.cancel()

    async def cursors(self) -> list[Cursor]:
        """Where cursors stand, as a member has it that answers; none if nobody does. Nothing is written for it."""
        for member in self.members:
            if member in self.cut_off:
                continue
            call: Any = self._stub(member).Watch(WatchRequest(only_cursors=True), timeout=CALL_S_MAX)
            try:
                response: WatchResponse = await call.read()
                if response:
                    return list(response.cursors)
            except grpc.aio.AioRpcError:
                continue
            finally:
                call.cancel()
        return []

    async def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse | None:
        """At one member after the other, without waiting long for any: a leader that hears nothing suspects us."""
        for _ in range(len(self.members) + 1):
            member = self._leader or self._next_member()
            if member in self.cut_off:
                self._leader = None
                continue
            try:
                response: HeartbeatResponse = await self._stub(member).Heartbeat(request, timeout=HEARTBEAT_S_MAX)
            except grpc.aio.AioRpcError as error:
                self._learn_leader(member, error)
                continue
            self._leader = member
            return response
        return None

    def _learn_leader(self, member: str, error: grpc.aio.AioRpcError) -> None:
        leader = ""
        if error.code() == grpc.StatusCode.FAILED_PRECONDITION:
            status = rpc_status.from_call(error)
            for detail in status.details if status is not None else ():
                found = NotLeader()
                if detail.Unpack(found):
                    leader = found.leader
        else:
            self._forget(member)
            self._avoid(member)
        self._leader = leader if leader in self.members and leader != member else None

    # -------------------------------------------------------------------------------------------- channels

    def _next_member(self) -> str:
        """In turn, but for those that did not answer, unless nobody did: one that is paused costs time."""
        now = asyncio.get_running_loop().time()
        names = sorted(self.members)
        names = [name for name in names if self._avoided.get(name, 0.0) <= now] or names
        self._turn += 1
        return names[(self._turn - 1) % len(names)]

    def _avoid(self, member: str) -> None:
        self._avoided[member] = asyncio.get_running_loop().time() + AVOID_S

    def _stub(self, member: str) -> MembershipServiceStub:
        found = self._stubs.get(member)
        if found is None:
            channel = self._credentials.dial(self.members[member], member, CHANNEL_OPTIONS)
            found = self._stubs[member] = (channel, MembershipServiceStub(channel))
        return found[1]

    def _forget(self, member: str) -> None:
        """The next call dials anew, with the certificate of that moment; those that are under way may end."""
        found = self._stubs.pop(member, None)
        if found is not None:
            closing = asyncio.create_task(found[0].close(grace=2 * CALL_S_MAX))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
