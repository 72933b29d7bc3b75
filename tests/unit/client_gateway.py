"""A gateway over real gRPC that keeps groups, producers and cursors in memory, and can be told to misbehave.

On the synchronous stack, so that it serves both drivers: a process may have only one event loop under gRPC.
"""

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from ordercast.core.ids import envelope_id, order_key, pack_u64, sn_of
from ordercast.core.silence import ALIVE_MS
from ordercast.protocols.celllog.idempotence import ProducerTable
from ordercast.v1.common_pb2 import (
    REFUSAL_FENCED,
    REFUSAL_UNSPECIFIED,
    Batch,
    Destination,
    Envelope,
    Header,
    ProducerRange,
)
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_FENCED,
    PUBLISH_STATUS_NOT_FOUND,
    PUBLISH_STATUS_OK,
    PUBLISH_STATUS_SEQUENCE_GAP,
    Acked,
    Alive,
    CreateGroupResponse,
    Deliveries,
    DescribeClusterResponse,
    GroupPlace,
    ListCursorsResponse,
    ListGroupsResponse,
    PublishReply,
    PublishRequest,
    PublishStreamResponse,
    SetCursorResponse,
    SubscribeLiveResponse,
    SubscribeResponse,
    SubscribeStarted,
)
from ordercast.v1.gateway_pb2_grpc import GatewayServiceServicer, add_GatewayServiceServicer_to_server
from ordercast.v1.membership_pb2 import Cursor, Group
from ordercast.v1.sequencer_pb2 import LogEntry
from tests.unit.clock_tokens import ClockTokens

TOKENS = ClockTokens(b"the cluster's key")
DOMAIN = "default"
SIGN = SubscribeResponse(alive=Alive(alive_ms=ALIVE_MS))


def token_of(clock: int) -> bytes:
    return TOKENS.sign(DOMAIN, pack_u64(clock))


@dataclass
class GroupModel:
    id: str
    entries: list[LogEntry] = field(default_factory=list)
    next_offset: int = 0
    first_offset: int = 0


class ClusterModel:
    """What all gateways share."""

    def __init__(self, *groups: str) -> None:
        self.changed = threading.Condition()
        self.groups: dict[str, GroupModel] = {}
        self.tables: dict[str, ProducerTable] = {}
        self.cursors: dict[tuple[str, str], int] = {}
        self.sn = 0
        #: Statuses for the next requests, before anything is stored.
        self.refusals: deque[int] = deque()
        #: Requests that are stored, and whose stream then breaks without an answer.
        self.lost_answers = 0
        #: Streams that began before this number end.
        self.streams = 0
        self.broken_below = 0
        #: Nothing is answered, nor ordered, while this is clear.
        self.is_answering = threading.Event()
        self.is_answering.set()
        #: Of life, to subscribers that ask for them. Early versions give none.
        self.gives_signs = True
        #: Happens while a gateway lists groups, before it answers.
        self.on_list: Callable[[], None] = lambda: None
        #: Where groups live, if gateways say so. Early versions do not.
        self.cells: dict[str, str] | None = None
        self.located: list[str] = []
        self.requests: list[PublishRequest] = []
        self.acks: list[int] = []
        for group in groups:
            self.create(group)

    def create(self, name: str) -> GroupModel:
        group = self.groups[name] = GroupModel(f"{name}#{len(self.groups) + 1}")
        self.tables[name] = ProducerTable(name, 10**12, 1024)
        return group

    def break_streams(self) -> None:
        with self.changed:
            self.broken_below = self.streams + 1
            self.changed.notify_all()

    def new_stream(self) -> int:
        with self.changed:
            self.streams += 1
            return self.streams

    def payloads(self, group: str) -> list[bytes]:
        """In the order of the log, without duplicates."""
        found = []
        for entry in self.groups[group].entries:
            messages = Batch.FromString(entry.envelope.body).messages
            for span in entry.outcomes[0].spans:
                if not span.duplicate:
                    start = span.first_sequence - entry.envelope.header.ranges[0].first_sequence
                    found += [message.payload for message in messages[start : start + span.count]]
        return found

    def shows(self, token: bytes) -> bytes:
        """The clock in it."""
        return TOKENS.verify(DOMAIN, token)

    def locate(self, names: Sequence[str]) -> list[GroupPlace]:
        assert self.cells is not None
        with self.changed:
            self.located += names
            return [GroupPlace(group=name, cell=self.cells.get(name, "")) for name in names]

    def publish(self, request: PublishRequest) -> list[PublishReply]:
        with self.changed:
            self.requests.append(request)
            reply = PublishReply(
                producer=request.producer,
                groups=request.groups,
                first_sequence=request.first_sequence,
                count=len(request.messages),
                open_token=request.open_token,
                credits=64,
                cells=request.cells,
            )
            unknown = [group for group in request.groups if group not in self.groups]
            if unknown:
                reply.status, reply.detail = PUBLISH_STATUS_NOT_FOUND, f"unknown group {unknown[0]!r}"
                return [reply]
            if self.refusals:
                reply.status = self.refusals.popleft()
                return [reply]
            return self._deliver(request, reply)

    def _deliver(self, request: PublishRequest, reply: PublishReply) -> list[PublishReply]:
        self.sn += 1
        key = order_key(self.sn, envelope_id(1, self.sn))
        groups = tuple(request.groups)
        numbered_by = tuple(request.cells) or groups
        range_ = ProducerRange(
            producer=request.producer,
            epoch=request.epoch,
            first_sequence=request.first_sequence,
            count=len(request.messages),
            open_token=request.open_token,
        )
        header = Header(destinations=[Destination(group=self.groups[name].id) for name in groups], ranges=[range_])
        envelope = Envelope(header=header, body=Batch(messages=request.messages).SerializeToString())
        outcomes = {}
        for name in groups:
            group = self.groups[name]
            outcome = outcomes[name] = self.tables[name].judge(
                range_, numbered_by, self.sn, key, group.next_offset
            )
            entry = LogEntry(order_key=key, envelope=envelope, first_offset=group.next_offset, outcomes=[outcome])
            group.entries.append(entry)
            group.next_offset += sum(span.count for span in outcome.spans if not span.duplicate)
        self.changed.notify_all()
        first = outcomes[groups[0]]
        reply.epoch, reply.last_sequence = first.epoch, first.last_sequence
        reply.session = token_of(self.sn)
        if first.refusal != REFUSAL_UNSPECIFIED:
            is_fenced = first.refusal == REFUSAL_FENCED
            reply.status = PUBLISH_STATUS_FENCED if is_fenced else PUBLISH_STATUS_SEQUENCE_GAP
            return [reply]
        reply.status = PUBLISH_STATUS_OK
        if request.open_token:
            return [reply]
        receipts = []
        for number, span in enumerate(first.spans):
            receipt = PublishReply()
            receipt.CopyFrom(reply)
            receipt.first_sequence, receipt.count = span.first_sequence, span.count
            receipt.order_key, receipt.duplicate = span.order_key, span.duplicate
            for name in groups:
                receipt.offsets.add(group=name, first_offset=outcomes[name].spans[number].first_offset)
            receipts.append(receipt)
        return receipts


def abort(
    context: grpc.ServicerContext, code: grpc.StatusCode, message: str, reason: str, **metadata: str
) -> None:
    """With details, as the contract says."""
    detail = AnyMessage()
    detail.Pack(ErrorInfo(domain="ordercast", reason=reason, metadata=metadata))
    status = Status(code=code.value[0], message=message, details=[detail])
    context.abort_with_status(rpc_status.to_status(status))


class GatewayServicer(GatewayServiceServicer):
    def __init__(self, cluster: ClusterModel) -> None:
        self.cluster = cluster

    def PublishStream(self, requests, context):  # noqa: N802
        cluster = self.cluster
        number = cluster.new_stream()
        yield PublishStreamResponse(credits=64, locates=cluster.cells is not None)
        for frame in requests:
            cluster.is_answering.wait()
            if number < cluster.broken_below:
                context.abort(grpc.StatusCode.UNAVAILABLE, "broken")
            if frame.locate:
                yield PublishStreamResponse(places=cluster.locate(frame.locate))
            for request in frame.requests:
                replies = cluster.publish(request)
                if cluster.lost_answers:
                    cluster.lost_answers -= 1
                    context.abort(grpc.StatusCode.UNAVAILABLE, "broken")
                yield PublishStreamResponse(replies=replies)

    def Subscribe(self, requests, context):  # noqa: N802
        cluster = self.cluster
        number = cluster.new_stream()
        start = next(requests).start
        if start.alive and cluster.gives_signs:
            yield SIGN
        group = cluster.groups.get(start.group)
        if group is None:
            abort(context, grpc.StatusCode.NOT_FOUND, "no such group", "NO_GROUP", group=start.group)
        offset = self._offset(start, group, context)
        yield SubscribeResponse(started=SubscribeStarted(offset=offset, group_id=group.id))
        out: queue.Queue[SubscribeResponse] = queue.Queue()
        threading.Thread(target=self._take_acks, args=(requests, start, out), daemon=True).start()
        position = 0
        while context.is_active():
            with contextlib.suppress(queue.Empty):
                while True:
                    yield out.get_nowait()
            with cluster.changed:
                if number < cluster.broken_below:
                    context.abort(grpc.StatusCode.UNAVAILABLE, "broken")
                entries = group.entries[position : position + 3]
                if not entries and start.stop_at_end:
                    return
                if not entries:
                    cluster.changed.wait(0.05)
            if not entries and start.alive and cluster.gives_signs:
                yield SIGN
            position += len(entries)
            wanted = [entry for entry in entries if self._end(entry) > offset]
            if wanted:
                session = token_of(sn_of(wanted[-1].order_key))
                serialised = [entry.SerializeToString() for entry in wanted]
                yield SubscribeResponse(deliveries=Deliveries(entries=serialised, session=session))

    def SubscribeLive(self, request, context):  # noqa: N802
        cluster = self.cluster
        cluster.new_stream()
        group = cluster.groups[request.group]
        sign = SubscribeLiveResponse(alive_ms=ALIVE_MS)
        if request.alive and cluster.gives_signs:
            yield sign
        position = len(group.entries)
        yield SubscribeLiveResponse(group_id=group.id, replica="here")
        while context.is_active():
            with cluster.changed:
                if len(group.entries) == position:
                    cluster.changed.wait(0.05)
                entries = [entry.SerializeToString() for entry in group.entries[position:]]
            position += len(entries)
            if entries:
                yield SubscribeLiveResponse(entries=entries, group_id=group.id)
            elif request.alive and cluster.gives_signs:
                yield sign

    def _offset(self, start, group: GroupModel, context) -> int:
        if start.cursor and (start.group, start.cursor) in self.cluster.cursors:
            return self.cluster.cursors[start.group, start.cursor]
        match start.start.WhichOneof("at"):
            case "earliest":
                return group.first_offset
            case "latest":
                return group.next_offset
        wanted = start.start.offset
        if not group.first_offset <= wanted <= group.next_offset:
            span = {"first_offset": str(group.first_offset), "next_offset": str(group.next_offset)}
            abort(context, grpc.StatusCode.OUT_OF_RANGE, "no such offset", "OFFSET", **span)
        return wanted

    def _end(self, entry: LogEntry) -> int:
        return entry.first_offset + sum(s.count for o in entry.outcomes for s in o.spans if not s.duplicate)

    def _take_acks(self, requests, start, out) -> None:
        with contextlib.suppress(Exception):  # the stream is over
            for request in requests:
                self.cluster.acks.append(request.ack.offset)
                self.cluster.cursors[start.group, start.cursor] = request.ack.offset
                out.put(SubscribeResponse(acked=Acked(offset=request.ack.offset)))

    def CreateGroup(self, request, context):  # noqa: N802
        if request.name in self.cluster.groups:
            abort(context, grpc.StatusCode.ALREADY_EXISTS, "the name is taken", "NAME")
        model = self.cluster.create(request.name)
        return CreateGroupResponse(group=Group(name=request.name, id=model.id))

    def ListGroups(self, request, context):  # noqa: N802
        self.cluster.on_list()
        groups = [Group(name=name, id=group.id) for name, group in self.cluster.groups.items()]
        return ListGroupsResponse(groups=groups)

    def SetCursor(self, request, context):  # noqa: N802
        self.cluster.cursors[request.group, request.name] = request.start.offset
        return SetCursorResponse(
            cursor=Cursor(group=request.group, name=request.name, offset=request.start.offset)
        )

    def ListCursors(self, request, context):  # noqa: N802
        found = [Cursor(group=g, name=n, offset=o) for (g, n), o in self.cluster.cursors.items()]
        return ListCursorsResponse(cursors=found)

    def DescribeCluster(self, request, context):  # noqa: N802
        return DescribeClusterResponse(gateway="the only one")


@contextlib.contextmanager
def served(cluster: ClusterModel, credentials: grpc.ServerCredentials | None = None) -> Iterator[str]:
    """The address of a gateway of this cluster, while it runs."""
    server = grpc.server(ThreadPoolExecutor(max_workers=16))
    add_GatewayServiceServicer_to_server(GatewayServicer(cluster), server)
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        cluster.is_answering.set()
        server.stop(0).wait()
