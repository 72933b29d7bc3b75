"""Reading a group's log from whichever replica has it: no gap, no duplicate, when one of them goes."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import grpc
import structlog

from ordercast.core.members import kind_of, places_of
from ordercast.core.quorums import majority
from ordercast.core.silence import LOOK_S, Silence
from ordercast.runtime.process.node import Node
from ordercast.runtime.process.waiting import waiting_here
from ordercast.runtime.storage.local_log import out_of_range
from ordercast.runtime.storage.store import LogBounds
from ordercast.runtime.transport.mesh import CHANNEL_OPTIONS
from ordercast.runtime.transport.pauses import with_pauses
from ordercast.runtime.transport.results import refused_from
from ordercast.runtime.transport.status import Refused
from ordercast.v1.frame_pb2 import TellWaitingRequest
from ordercast.v1.frame_pb2_grpc import PeerServiceStub
from ordercast.v1.membership_pb2 import Group
from ordercast.v1.sequencer_pb2 import (
    AdvanceRequest,
    DescribeReplicaRequest,
    DescribeReplicaResponse,
    ReadGroupRequest,
    ReadGroupResponse,
    ReadLiveRequest,
    ReadLiveResponse,
    StartAt,
    WaitingEnvelope,
)
from ordercast.v1.sequencer_pb2_grpc import SequencerServiceStub

log = structlog.get_logger("reading")

DESCRIBE_S_MAX = 1.0
RETRY_S = 0.2
#: After so long without news others are asked whether they have any.
STALLED_S = 2.0
#: A replica that ends a reading with one of these may be replaced by another one.
PASSING = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DATA_LOSS,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
)

#: An address and an incarnation.
Place = tuple[str, int]

Response = TypeVar("Response", ReadGroupResponse, ReadLiveResponse)


class Merged(NamedTuple):
    """How a log is read that is merged with others."""

    #: In one response, unless an entry alone is longer.
    chunk_bytes: int


class Reading:
    def __init__(self, node: Node) -> None:
        self.node = node
        #: By process: where it was and in which life, and a channel there.
        self._channels: dict[str, tuple[Place, Any]] = {}
        #: By group: where its furthest replica was when somebody last asked, and when that was.
        self._ends: dict[str, tuple[float, int]] = {}
        self._is_stopped = False

    async def stop(self) -> None:
        """Whoever still reads is told to go elsewhere."""
        self._is_stopped = True
        for _, channel in self._channels.values():
            await channel.close()

    # ---------------------------------------------------------------------------------------- describing

    async def describe(
        self, group: Group, stored_ms: int | None = None, *, order_key: bytes = b""
    ) -> dict[str, DescribeReplicaResponse | str]:
        """By replica: its bounds, or why there are none; and where a time or an order key is, if one is given."""
        address = self.node.directory.address_of(group)
        request = DescribeReplicaRequest(group=address, stored_ms=stored_ms, order_key=order_key)
        found = await asyncio.gather(*(self._describe(request, name) for name in group.replicas))
        return dict(zip(group.replicas, found, strict=True))

    async def _describe(self, request: DescribeReplicaRequest, name: str) -> DescribeReplicaResponse | str:
        try:
            if self._is_local(name):
                stored_ms = request.stored_ms if request.HasField("stored_ms") else None
                return await self.node.logs.describe(request.group, stored_ms, request.order_key)
            answer: DescribeReplicaResponse = await SequencerServiceStub(self._channel(name)).DescribeReplica(
                request, timeout=DESCRIBE_S_MAX
            )
            return answer
        except grpc.aio.AioRpcError as error:
            return f"{error.code().name}: {error.details()}"
        except Refused as refused:
            return f"{refused.code.name}: {refused}"

    async def waiting(self, name: str, domain: str) -> list[WaitingEnvelope] | str:
        """What waits at a process, or why it does not say."""
        try:
            if self._is_local(name):
                return waiting_here(self.node, domain)
            stub = PeerServiceStub(self._channel(name))
            answer = await stub.TellWaiting(TellWaitingRequest(domain=domain), timeout=DESCRIBE_S_MAX)
            return list(answer.waiting)
        except grpc.aio.AioRpcError as error:
            return f"{error.code().name}: {error.details()}"
        except Refused as refused:
            return f"{refused.code.name}: {refused}"

    async def _bounds(self, group: Group) -> list[DescribeReplicaResponse]:
        """Of those replicas that answer."""
        return bounds_in(await self.describe(group))

    async def _some_bounds(self, group: Group, stored_ms: int | None = None) -> list[DescribeReplicaResponse]:
        """Of one replica at least."""
        described = await self.describe(group, stored_ms)
        bounds = bounds_in(described)
        if not bounds:
            raise unanswered(group, [found for found in described.values() if isinstance(found, str)])
        return bounds

    async def start_offset(self, group: Group, start: StartAt) -> int:
        """One number for all replicas, some of which may be behind and some of which may keep less."""
        bounds = await self._some_bounds(group, start.stored_ms if start.HasField("stored_ms") else None)
        first = min(found.first_offset for found in bounds)
        following = max(found.next_offset for found in bounds)
        match start.WhichOneof("at"):
            case "offset":
                if not first <= start.offset <= following:
                    # Who read it may have read it from the replica that does not answer now: the furthest one. Or,
                    # where there are views, from one that is not in this one, or whose log is not here yet.
                    is_behind = start.offset < first
                    needed = majority(len(group.replicas)) if is_behind else len(places_of(group))
                    if len(bounds) < needed or not (is_behind or kind_of(group).is_at_rest(group)):
                        raise unanswered(group)
                    raise out_of_range(group.name, start.offset, LogBounds(0, 0, first, following, 0))
                return start.offset
            case "earliest":
                return first
            case "latest":
                return following
            case "last":
                return max(first, following - start.last)
            case "stored_ms":
                return stored_offset_in(bounds, group)
        raise Refused(grpc.StatusCode.INVALID_ARGUMENT, "where shall it start?", "NO_START")

    # ------------------------------------------------------------------------------------------- reading

    async def read(
        self, group: Group, offset: int, *, stop_at_end: bool, replica: str, merged: Merged | None = None
    ) -> AsyncGenerator[ReadGroupResponse, None]:
        """From the offset on, over as many replicas as it takes; one replica alone if it is named.

        The end to stop at is that of the furthest replica: others come there. What is `merged` has watermarks,
        too: each replica says them of what it has shown since it was gone to, and that goes on where the last
        one left.
        """
        end = None
        if stop_at_end and not replica:
            end = max(found.next_offset for found in await self._some_bounds(group))
        turn = 0
        damaged: dict[str, None] = {}
        while end is None or offset < end:
            group = self._present(group)  # its replicas may be others by now
            name = replica or self._choose(group, turn)
            turn += 1
            try:
                reading = self._read_from(
                    name, group, offset, is_only=bool(replica), stop_at_end=stop_at_end, merged=merged
                )
                async with contextlib.aclosing(reading) as responses:
                    async for response in responses:
                        if response.entries:
                            offset = max(offset, response.next_offset)
                            damaged.clear()
                        yield response
                        if end is not None and offset >= end:
                            return
                return
            except Refused as refused:
                if self._is_stopped:
                    # Whatever it was: this node may have left its groups by now, and others have them.
                    raise stopping() from None
                if refused.code == grpc.StatusCode.DATA_LOSS:
                    damaged[name] = None
                # What is damaged at every replica is never skipped. One that does not answer may have it.
                is_lost = all(other in damaged for other in group.replicas)
                if replica or is_lost or refused.code not in PASSING:
                    raise
                log.info("reading elsewhere", group=group.id, replica=name, offset=offset, why=str(refused))
                await self._check_still_there(group, offset, refused)
            await asyncio.sleep(RETRY_S if turn % len(group.replicas) == 0 else 0)

    def _present(self, group: Group) -> Group:
        known = self.node.directory.groups.get(group.id)
        return group if known is None else self.node.directory.described(known)

    async def _check_still_there(self, group: Group, offset: int, refused: Refused) -> None:
        """Behind what every replica keeps, or gone for good: then trying elsewhere does not help."""
        if group.id not in self.node.directory.groups:
            raise Refused(grpc.StatusCode.NOT_FOUND, f"group {group.name!r} was deleted", "GROUP_DELETED")
        if refused.code == grpc.StatusCode.OUT_OF_RANGE:
            bounds = await self._bounds(group)
            is_known = len(bounds) >= majority(len(group.replicas))
            if is_known and all(offset < found.first_offset for found in bounds):
                raise refused

    async def _read_from(
        self,
        name: str,
        group: Group,
        offset: int,
        *,
        is_only: bool,
        stop_at_end: bool,
        merged: Merged | None,
    ) -> AsyncGenerator[ReadGroupResponse, None]:
        """Gives up on a replica that has nothing new while another one has, unless this one is wanted."""

        async def check() -> None:
            if not is_only and await self._is_overtaken(group, offset):
                raise Refused(grpc.StatusCode.UNAVAILABLE, f"{name!r} is behind the others", "BEHIND")

        address = self.node.directory.address_of(group)
        reading = self._open(name, address, StartAt(offset=offset), stop_at_end and is_only, merged)
        async with contextlib.aclosing(self._attended(name, reading, check)) as responses:
            async for response in responses:
                if response.entries:
                    offset = max(offset, response.next_offset)
                yield response

    async def _attended(
        self,
        name: str,
        reading: AsyncGenerator[Response, None],
        check: Callable[[], Awaitable[None]] | None = None,
    ) -> AsyncGenerator[Response, None]:
        """Looks after a replica that says nothing: it may be gone, and nobody would hear so.

        One that hangs is left when its signs of life stop; an early version gives none, and is left when others
        are found to have something that it does not have.
        """
        silence = Silence()
        silence.is_listening = not self._is_local(name)
        look_s = LOOK_S if silence.is_listening else STALLED_S
        loop = asyncio.get_running_loop()
        stalled_at = loop.time() + STALLED_S
        async with contextlib.aclosing(with_pauses(reading, look_s)) as responses:
            async for response in responses:
                self._check_reachable(name)
                if response is None and silence.look():
                    raise Refused(grpc.StatusCode.UNAVAILABLE, f"{name!r} fell silent", "SILENT")
                if response is not None:
                    silence.heard(response.alive_ms)
                if response is not None and not response.alive_ms:
                    yield response
                    stalled_at = loop.time() + STALLED_S
                elif check is not None and loop.time() >= stalled_at:
                    stalled_at = loop.time() + STALLED_S
                    await check()

    async def _is_overtaken(self, group: Group, offset: int) -> bool:
        """Asked once for all who read the group."""
        now = self.node.clock.now()
        asked, end = self._ends.get(group.id, (-STALLED_S, 0))
        if now - asked >= STALLED_S:
            groups = self.node.directory.groups
            self._ends = {id_: seen for id_, seen in self._ends.items() if id_ in groups}
            self._ends[group.id] = (now, end)
            end = max((found.next_offset for found in await self._bounds(group)), default=0)
            self._ends[group.id] = (now, end)
        return end > offset

    def _open(
        self, name: str, group: str, start: StartAt, stop_at_end: bool, merged: Merged | None
    ) -> AsyncGenerator[ReadGroupResponse, None]:
        chunk_bytes = merged.chunk_bytes if merged is not None else 0
        if self._is_local(name):
            return self.node.logs.read(
                group, start, stop_at_end, watermarks=merged is not None, chunk_bytes=chunk_bytes
            )
        request = ReadGroupRequest(
            group=group,
            start=start,
            stop_at_end=stop_at_end,
            alive=True,
            watermarks=merged is not None,
            chunk_bytes=chunk_bytes,
        )
        return self._ask(name, lambda stub: stub.ReadGroup(request))

    async def _ask(self, name: str, begin: Callable[[SequencerServiceStub], Any]) -> AsyncGenerator[Any, None]:
        """What a replica in another process answers."""
        # Held until the end: a channel that nobody holds any more is closed.
        channel = self._channel(name)
        call = begin(SequencerServiceStub(channel))
        try:
            async for response in call:
                yield response
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.UNAVAILABLE:
                self._forget(name, channel)
            raise refused_from(error) from None
        finally:
            call.cancel()

    async def advance(self, name: str, cells: Sequence[str], order_key: bytes) -> None:
        """Let a replica's cells pass an order key."""
        if self._is_local(name):
            self.node.logs.advance(cells, order_key)
            return
        request = AdvanceRequest(cells=cells, order_key=order_key)
        await SequencerServiceStub(self._channel(name)).Advance(request, timeout=DESCRIBE_S_MAX)

    # ---------------------------------------------------------------------------------------------- live

    def choose(self, group: Group) -> str:
        """From whom to read live: it is one replica's word."""
        return self._choose(group, 0)

    async def read_live(self, group: Group, replica: str) -> AsyncGenerator[list[bytes], None]:
        """Until that replica is gone, or misses something: others deliver in another causal order."""
        attended = self._attended(replica, self._open_live(replica, self.node.directory.address_of(group)))
        try:
            async with contextlib.aclosing(attended) as deliveries:
                async for response in deliveries:
                    yield list(response.entries)
        except Refused:
            if self._is_stopped:
                raise stopping() from None
            raise

    def _open_live(self, name: str, group: str) -> AsyncGenerator[ReadLiveResponse, None]:
        if self._is_local(name):
            return self._live_here(group)
        request = ReadLiveRequest(group=group, alive=True)
        return self._ask(name, lambda stub: stub.ReadLive(request))

    async def _live_here(self, group: str) -> AsyncGenerator[ReadLiveResponse, None]:
        self.node.logs.check_served(group)
        async with contextlib.aclosing(self.node.live.read(group)) as deliveries:
            async for entries in deliveries:
                yield ReadLiveResponse(entries=entries)

    def _choose(self, group: Group, turn: int) -> str:
        """Our own copy if there is one, then those that are believed to be up."""
        nodes = self.node.directory.nodes

        def rank(name: str) -> tuple[bool, bool, bool, str]:
            node = nodes.get(name)
            is_new = name in group.starting or name in group.lost
            return (is_new, not self._is_local(name), node is None or node.suspected, name)

        return sorted(group.replicas, key=rank)[turn % len(group.replicas)]

    def _check_reachable(self, name: str) -> None:
        if name not in self.node.directory.nodes or name in self.node.directory.cut_off:
            raise Refused(grpc.StatusCode.UNAVAILABLE, f"{name!r} cannot be reached", "NO_REPLICA")

    def _is_local(self, name: str) -> bool:
        return name == self.node.name

    # ------------------------------------------------------------------------------------------- channels

    def _channel(self, name: str) -> Any:
        if self._is_stopped:
            raise stopping()
        self._check_reachable(name)
        node = self.node.directory.nodes[name]
        # A process that was started again may be elsewhere, under the same name: a channel to where it was would
        # try that place again and again.
        place = (self.node.credentials.locate(node.peer_address, name), node.incarnation)
        found = self._channels.get(name)
        if found is None or found[0] != place:
            channel = self.node.credentials.dial_at(place[0], name, CHANNEL_OPTIONS)
            found = self._channels[name] = (place, channel)
        return found[1]

    def _forget(self, name: str, channel: Any) -> None:
        """The next call dials anew, with the certificate of that moment; those that are under way may end."""
        if name in self._channels and self._channels[name][1] is channel:
            del self._channels[name]


def bounds_in(described: Mapping[str, DescribeReplicaResponse | str]) -> list[DescribeReplicaResponse]:
    return [found for found in described.values() if not isinstance(found, str)]


def stored_offset_in(bounds: Sequence[DescribeReplicaResponse], group: Group) -> int:
    """Where a time is: what the replica in the middle says.

    A minority may have clocks that are wrong, or have copied the log and stored all of it much later.
    """
    found = sorted(described.stored_offset for described in bounds if described.HasField("stored_offset"))
    if not found:
        message = f"the replicas of {group.name!r} run an earlier version, which cannot find a time in a log"
        raise Refused(grpc.StatusCode.FAILED_PRECONDITION, message, "NO_TIMES")
    return found[(len(found) - 1) // 2]


def stopping() -> Refused:
    return Refused(grpc.StatusCode.UNAVAILABLE, "this gateway is stopping", "STOPPING")


def unanswered(group: Group, errors: Sequence[str] = ()) -> Refused:
    if errors and all(error.startswith(grpc.StatusCode.DATA_LOSS.name) for error in errors):
        return Refused(grpc.StatusCode.DATA_LOSS, f"the end of {group.name!r} is damaged: {errors[0]}", "DAMAGED")
    message = f"too few replicas of {group.name!r} answer"
    return Refused(grpc.StatusCode.UNAVAILABLE, message, "NO_REPLICA", retry_after_s=1.0)
