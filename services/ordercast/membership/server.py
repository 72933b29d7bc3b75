"""MembershipService: commands and heartbeats at the leader, and the state as it changes, at any member."""

# gRPC decides how these methods are called.
# ruff: noqa: N802

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import structlog

from ordercast.core.ids import pack_u64
from ordercast.membership.cursors import cursors_told
from ordercast.membership.machine import ROLE, Execute, HeartbeatReceived, Membership
from ordercast.membership.permissions import BY_STATE, check_name, check_speaker
from ordercast.runtime.process.node import SYSTEM, Node
from ordercast.runtime.transport.status import Refused
from ordercast.runtime.transport.tls import peer_names
from ordercast.v1.membership_pb2 import (
    Command,
    CommandResult,
    ExecuteRequest,
    ExecuteResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    NotLeader,
    WatchRequest,
    WatchResponse,
)
from ordercast.v1.membership_pb2_grpc import MembershipServiceServicer

log = structlog.get_logger("membership")

#: Only those who run the cluster call this; more at a time means that something is wrong.
CALLS_MAX = 1024
WATCHERS_MAX = 4096
#: So long after the last change a member that knows no leader sends its watchers elsewhere.
CUT_OFF_S = 2.0
#: How often a watcher hears at least that this member lives; watchers wait a multiple of it.
ALIVE_S = 0.5
#: So many cursors are told at once to whoever measures how far behind they are.
CURSORS_TOLD_MAX = 10_000


class MembershipServer(MembershipServiceServicer):
    def __init__(self, node: Node, machine: Membership) -> None:
        self.node = node
        self.machine = machine
        self._calls: dict[bytes, asyncio.Future[CommandResult]] = {}
        self._number = 0
        self._watchers = 0
        self._change = asyncio.Event()
        self._is_stopped = False

    # --------------------------------------------------------------------------------------- from the machine

    def executed(self, tag: bytes, result: CommandResult) -> None:
        call = self._calls.get(tag)
        if call is not None and not call.done():
            call.set_result(result)

    def not_leading(self, tag: bytes, leader: str | None) -> None:
        call = self._calls.get(tag)
        if call is not None and not call.done():
            call.set_exception(not_leader(leader))

    def changed(self) -> None:
        change, self._change = self._change, asyncio.Event()
        change.set()

    def stop(self) -> None:
        """Watchers go elsewhere."""
        self._is_stopped = True
        self.changed()

    # ------------------------------------------------------------------------------------------- from peers

    async def Execute(self, request: ExecuteRequest, context: Any) -> ExecuteResponse:
        if len(self._calls) >= CALLS_MAX:
            raise Refused(
                grpc.StatusCode.RESOURCE_EXHAUSTED, "too many commands", "TOO_MANY_CALLS", retry_after_s=1
            )
        self._check_speaker(request.command, context)
        self._number += 1
        tag = pack_u64(self._number)
        call = self._calls[tag] = asyncio.get_running_loop().create_future()
        try:
            self.node.host.tell(SYSTEM, ROLE, Execute(*self.node.clock.read(), request.command, tag))
            result = await call
        finally:
            del self._calls[tag]
        return ExecuteResponse(result=self._without_secrets(request.command, result))

    def _check_speaker(self, command: Command, context: Any) -> None:
        names = peer_names(context)
        try:
            check_speaker(command, names, self.machine.state.nodes)
        except Refused as refused:
            if refused.reason in BY_STATE and self.machine.leader != self.node.name:
                raise not_leader(self.machine.leader) from refused
            log.warning(
                "refused command", command=command.WhichOneof("what"), certificate=names, why=refused.message
            )
            raise

    def _without_secrets(self, command: Command, result: CommandResult) -> CommandResult:
        """Session tokens are signed with the key, and only gateways sign. Who is one, the agreed state says.

        This cannot be part of the state: members with older software would remember another result.
        """
        if not result.registered.key:
            return result
        node = self.machine.state.nodes.get(command.register.name)
        if node is not None and "gateway" in node.services:
            return result
        public = CommandResult()
        public.CopyFrom(result)
        public.registered.ClearField("key")
        return public

    async def Heartbeat(self, request: HeartbeatRequest, context: Any) -> HeartbeatResponse:
        check_name(peer_names(context), request.name)
        if self.machine.leader != self.node.name:
            raise not_leader(self.machine.leader)
        self.node.host.tell(SYSTEM, ROLE, HeartbeatReceived(*self.node.clock.read(), request))
        return self.machine.heartbeat_answer(request)

    async def Watch(self, request: WatchRequest, context: Any) -> AsyncIterator[WatchResponse]:
        """Several changes in a row are one response: watchers want to know what is, not how it came about.

        Without news there is a sign of life now and then: a member that is paused would keep its watchers.
        """
        if self._watchers >= WATCHERS_MAX:
            raise Refused(
                grpc.StatusCode.RESOURCE_EXHAUSTED, "too many watchers", "TOO_MANY_STREAMS", retry_after_s=1
            )
        if request.only_revision:
            yield WatchResponse(revision=self.machine.state.revision, cluster_id=self.machine.state.cluster_id)
            return
        if request.only_cursors:
            state = self.machine.state
            yield WatchResponse(
                revision=state.revision, cluster_id=state.cluster_id, cursors=cursors_told(state, CURSORS_TOLD_MAX)
            )
            return
        self._watchers += 1
        revision = request.revision
        silent_s = 0.0
        try:
            while not self._is_stopped:
                change = self._change
                state = self.machine.state
                if state.revision > revision and state.cluster_id:
                    response = state.changes_since(revision)
                    revision = response.revision
                    yield response
                    silent_s = 0.0
                elif not await happens(change, ALIVE_S):
                    silent_s += ALIVE_S
                    if silent_s >= CUT_OFF_S and self.machine.leader is None:
                        # Cut off from the others, it would keep its watchers from all news.
                        raise Refused(grpc.StatusCode.UNAVAILABLE, "there is no leader at present", "NO_LEADER")
                    if state.cluster_id:
                        yield WatchResponse(revision=revision, cluster_id=state.cluster_id)
        finally:
            self._watchers -= 1
        raise Refused(grpc.StatusCode.UNAVAILABLE, "this node is about to stop", "STOPPING")


async def happens(event: asyncio.Event, timeout_s: float) -> bool:
    try:
        async with asyncio.timeout(timeout_s):
            return await event.wait()
    except TimeoutError:
        return False


def not_leader(leader: str | None) -> Refused:
    message = f"the leader is {leader!r}" if leader else "there is no leader at present"
    details = (NotLeader(leader=leader or ""),)
    return Refused(grpc.StatusCode.FAILED_PRECONDITION, message, "NOT_LEADER", details=details)
