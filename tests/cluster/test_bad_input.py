"""What no cluster accepts, with the status it gets: nothing is stored, and every process goes on.

The tables come first. What the SDK would refuse by itself goes past it, as bytes on the wire.
"""

import itertools
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor

from ordercast.core.session_token import CLOCK_BYTES, MAC_BYTES, PARTS_MAX, TAG_BYTES, tag_of
from ordercast.local.cluster import HOST, LocalCluster, Member, wait_until
from ordercast.local.setup import create_groups
from ordercast.runtime.process.settings import PEER_MESSAGE_BYTES_MAX
from ordercast.runtime.transport.frame_listener import TICKET_S_MAX
from ordercast.runtime.transport.mesh import WIRE_VERSION
from ordercast.runtime.transport.wire import FIRST_BYTES_MAX, LENGTH
from ordercast.v1 import faults_pb2, frame_pb2, gateway_pb2, membership_pb2, sequencer_pb2
from ordercast.v1.common_pb2 import Message
from ordercast.v1.frame_pb2 import CHANNEL_DOMAINS, CHANNEL_MEMBERSHIP, ConnectRequest, ConnectResponse, Hello
from ordercast.v1.frame_pb2_grpc import PeerServiceStub
from ordercast.v1.gateway_pb2 import (
    Ack,
    CreateDomainRequest,
    CreateGroupRequest,
    ListCursorsRequest,
    PublishRequest,
    PublishStatus,
    PublishStreamRequest,
    SetCursorRequest,
    SubscribeRequest,
    SubscribeStart,
)
from ordercast.v1.membership_pb2 import Retention, WatchRequest
from ordercast.v1.membership_pb2_grpc import MembershipServiceStub
from ordercast.v1.sequencer_pb2 import StartAt
from tests.cluster.asking import (
    CALL_S_MAX,
    Offsets,
    assert_replicas_agree,
    error_info,
    next_offsets,
    raw,
    start_of,
    status_of,
)

GROUPS_MAX = 2
PAYLOAD_BYTES_MAX = 10_000
GROUPS = ["a", "b", "c"]
#: Of a domain of its own.
ELSEWHERE = "elsewhere"
#: Takes a message after each test, to see that the cluster still serves.
ALIVE = "alive"
_turns = itertools.count()
#: In a, and in the cursor "reader" of it.
STORED = 5

# ------------------------------------------------------------------------------------------------ the tables


@dataclass(frozen=True)
class Bad:
    """A publish that differs from a good one in one thing."""

    status: str
    groups: list[str] = field(default_factory=lambda: ["a", "b"])
    payloads: list[bytes] = field(default_factory=lambda: [b"x"])
    producer: bytes = b"bad"
    first_sequence: int = 1
    session: bytes = b""
    open_token: bytes = b""

    def request(self) -> PublishRequest:
        return PublishRequest(
            producer=self.producer,
            groups=self.groups,
            first_sequence=self.first_sequence,
            messages=[Message(payload=payload) for payload in self.payloads],
            session=self.session,
            open_token=self.open_token,
        )


def forged(domain: str) -> bytes:
    """A token that says that clocks are far ahead, by somebody who has no key."""
    return tag_of(domain) + (1 << 40).to_bytes(CLOCK_BYTES, "big") + bytes(MAC_BYTES)


PUBLISHES = {
    "payload too large": Bad("INVALID_ARGUMENT", payloads=[bytes(PAYLOAD_BYTES_MAX + 1)]),
    "second payload too large": Bad("INVALID_ARGUMENT", payloads=[b"fine", bytes(PAYLOAD_BYTES_MAX + 1)]),
    "too many messages": Bad("INVALID_ARGUMENT", payloads=[b"x"] * 1025),
    "request too large": Bad("INVALID_ARGUMENT", payloads=[bytes(PAYLOAD_BYTES_MAX)] * 200),
    "no groups": Bad("INVALID_ARGUMENT", groups=[]),
    "a group twice": Bad("INVALID_ARGUMENT", groups=["a", "a"]),
    "more groups than the limit": Bad("INVALID_ARGUMENT", groups=GROUPS),
    "groups of two domains": Bad("INVALID_ARGUMENT", groups=["a", ELSEWHERE]),
    "unknown group": Bad("NOT_FOUND", groups=["nowhere"]),
    "one of two groups unknown": Bad("NOT_FOUND", groups=["a", "nowhere"]),
    "a group without a name": Bad("NOT_FOUND", groups=["a", ""]),
    "a group's id for its name": Bad("NOT_FOUND", groups=["a#1"]),
    "no producer": Bad("INVALID_ARGUMENT", producer=b""),
    "producer id too long": Bad("INVALID_ARGUMENT", producer=b"p" * 161),
    "neither messages nor opening": Bad("INVALID_ARGUMENT", payloads=[]),
    "messages and opening at once": Bad("INVALID_ARGUMENT", open_token=b"token"),
    "sequence zero": Bad("INVALID_ARGUMENT", first_sequence=0),
    "malformed token": Bad("INVALID_ARGUMENT", session=b"not a token"),
    "forged token": Bad("INVALID_ARGUMENT", session=forged("default")),
    "a token with a domain twice": Bad("INVALID_ARGUMENT", session=forged("other") * 2),
    "a token of too many domains": Bad(
        "INVALID_ARGUMENT", session=b"".join(sorted(forged(f"domain-{n}") for n in range(PARTS_MAX + 1)))
    ),
}

#: Creations; the name is what differs.
NAMES = {
    "empty": "",
    "upper case": "Orders",
    "space": "my group",
    "hash": "a#7",
    "slash": "a/b",
    "NUL": "a\0b",
    "dash first": "-a",
    "dot last": "a.",
    "too long": "a" * 64,
    "not ASCII": "größe",
}

#: What a client writes to a subscription, and the status and reason that end it.
SUBSCRIPTIONS: dict[str, tuple[list[SubscribeRequest], str, str]] = {
    "nothing": ([], "INVALID_ARGUMENT", "WRONG_ORDER"),
    "an empty frame": ([SubscribeRequest()], "INVALID_ARGUMENT", "WRONG_ORDER"),
    "an acknowledgement first": ([SubscribeRequest(ack=Ack(offset=0))], "INVALID_ARGUMENT", "WRONG_ORDER"),
    "two starts": (
        [start_of("a", earliest=True), start_of("a", earliest=True)],
        "INVALID_ARGUMENT",
        "WRONG_ORDER",
    ),
    "an acknowledgement without a cursor": (
        [start_of("a", earliest=True), SubscribeRequest(ack=Ack(offset=1))],
        "FAILED_PRECONDITION",
        "NO_CURSOR",
    ),
    "an acknowledgement beyond what was delivered": (
        [
            SubscribeRequest(start=SubscribeStart(group="a", cursor="reader")),
            SubscribeRequest(ack=Ack(offset=STORED + 1)),
        ],
        "INVALID_ARGUMENT",
        "ACK_BEYOND_DELIVERED",
    ),
    "unknown group": ([start_of("nowhere", earliest=True)], "NOT_FOUND", "UNKNOWN_GROUP"),
    "no group": ([start_of("", earliest=True)], "NOT_FOUND", "UNKNOWN_GROUP"),
    "neither start nor cursor": ([start_of("a")], "INVALID_ARGUMENT", "NO_START"),
    "an offset beyond the end": ([start_of("a", offset=STORED + 1)], "OUT_OF_RANGE", "OFFSET_OUT_OF_RANGE"),
    "the largest offset": ([start_of("a", offset=(1 << 64) - 1)], "OUT_OF_RANGE", "OFFSET_OUT_OF_RANGE"),
    "unknown cursor": (
        [SubscribeRequest(start=SubscribeStart(group="a", cursor="nobody"))],
        "NOT_FOUND",
        "MEMBERSHIP_NOT_FOUND",
    ),
    "a bad name for a cursor": (
        [SubscribeRequest(start=SubscribeStart(group="a", cursor="Bad Name", start=StartAt(earliest=True)))],
        "INVALID_ARGUMENT",
        "BAD_CURSOR_NAME",
    ),
    "a node without a replica": (
        [SubscribeRequest(start=SubscribeStart(group="a", replica="node-9", start=StartAt(earliest=True)))],
        "INVALID_ARGUMENT",
        "NO_REPLICA",
    ),
}

#: Administration: the call, its request, the status.
CALLS = {
    "a group in no domain": ("CreateGroup", CreateGroupRequest(name="new", domain="nowhere"), "NOT_FOUND"),
    "a group that exists": ("CreateGroup", CreateGroupRequest(name="a"), "ALREADY_EXISTS"),
    "too many replicas": ("CreateGroup", CreateGroupRequest(name="new", replicas=99), "INVALID_ARGUMENT"),
    "more replicas than nodes": ("CreateGroup", CreateGroupRequest(name="new", replicas=5), "FAILED_PRECONDITION"),
    "an unknown protocol": ("CreateDomain", CreateDomainRequest(name="d", protocol="magic"), "INVALID_ARGUMENT"),
    "an unknown setting": (
        "CreateDomain",
        CreateDomainRequest(name="d", protocol="scalatom", settings={"colour": "blue"}),
        "INVALID_ARGUMENT",
    ),
    "deleting no group": ("DeleteGroup", gateway_pb2.DeleteGroupRequest(name="nowhere"), "NOT_FOUND"),
    "describing no group": ("DescribeGroup", gateway_pb2.DescribeGroupRequest(name="nowhere"), "NOT_FOUND"),
    "cursors of no group": ("ListCursors", ListCursorsRequest(group="nowhere"), "NOT_FOUND"),
    "deleting no cursor": (
        "DeleteCursor",
        gateway_pb2.DeleteCursorRequest(group="a", name="nobody"),
        "NOT_FOUND",
    ),
    "a cursor without a name": (
        "SetCursor",
        SetCursorRequest(group="a", start=StartAt(earliest=True)),
        "INVALID_ARGUMENT",
    ),
    "a cursor nowhere": ("SetCursor", SetCursorRequest(group="a", name="c"), "INVALID_ARGUMENT"),
    "a cursor beyond the end": (
        "SetCursor",
        SetCursorRequest(group="a", name="c", start=StartAt(offset=STORED + 1)),
        "OUT_OF_RANGE",
    ),
}

CLIENT_SERVICES = (gateway_pb2.DESCRIPTOR.services_by_name["GatewayService"],)
PEER_SERVICES = (
    frame_pb2.DESCRIPTOR.services_by_name["PeerService"],
    membership_pb2.DESCRIPTOR.services_by_name["MembershipService"],
    sequencer_pb2.DESCRIPTOR.services_by_name["SequencerService"],
    faults_pb2.DESCRIPTOR.services_by_name["FaultService"],
)

#: What changes a good hello of node-1 to node-2 into one that is refused.
HELLOS: dict[str, dict[str, object]] = {
    "another version": {"version": WIRE_VERSION + 1},
    "no version": {"version": 0},
    "no channel": {"channel": 0},
    "a channel that there is not": {"channel": 99},
    "another channel": {"channel": CHANNEL_MEMBERSHIP, "incarnation": 1, "node_id": b""},
    "for another node": {"to": "node-3"},
    "for nobody": {"to": ""},
    "of an unknown node": {"process": "intruder"},
    "of nobody": {"process": ""},
    "from itself": {"process": "node-2"},
    "from a node that waits to be dialled": {"process": "node-3"},
    "with another disk": {"node_id": bytes(16)},
    "with no disk": {"node_id": b""},
    "of another cluster": {"cluster_id": bytes(16)},
    "of a life that is over": {"incarnation": 0},
    "of a life that is still to come": {"incarnation": 1 << 40},
}

GARBAGE = {
    "chance": os.urandom(4096),
    "zeros": bytes(4096),
    "HTTP/1": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    "an HTTP/2 preface and then chance": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + os.urandom(4096),
    "a frame that promises too much": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff\xff\xff\x00\x00" + bytes(4),
    "a length that is far too large": LENGTH.pack((1 << 32) - 1) + bytes(4096),
    "a ticket that is too long": LENGTH.pack(FIRST_BYTES_MAX + 1) + bytes(FIRST_BYTES_MAX + 1),
    "a ticket that is wrong": LENGTH.pack(16) + os.urandom(16),
    "half a ticket": LENGTH.pack(16) + bytes(8),
}

#: What a process may not say even when it was let in.
GARBAGE_OF_PEERS = {
    "a length that is far too large": LENGTH.pack((1 << 32) - 1),
    "a length that is a little too large": LENGTH.pack(PEER_MESSAGE_BYTES_MAX + 1),
    "no frame": LENGTH.pack(16) + b"\xff" * 16,
    "a domain that is no text": LENGTH.pack(7) + b"\x0a\x05\x0a\x03\xff\xfe\xfd",
}

#: Neither a field number nor a wire type that there is.
MALFORMED = b"\xff" * 16


# ------------------------------------------------------------------------------------------------- the cluster


@pytest.fixture(scope="module")
def cluster(make_module_cluster: Callable[..., LocalCluster]) -> Iterator[LocalCluster]:
    """With limits that a test reaches soon, and a few messages in a. In the end replicas have to agree."""
    limits = [f"--limits.groups-max={GROUPS_MAX}", f"--limits.payload-bytes-max={PAYLOAD_BYTES_MAX}"]
    made: LocalCluster = make_module_cluster(options=limits)
    create_groups(made.gateways, [*GROUPS, ALIVE])
    with raw(made.gateways[0]) as stub:
        stub.CreateDomain(CreateDomainRequest(name="other", protocol="scalatom"), timeout=CALL_S_MAX)
        stub.CreateGroup(CreateGroupRequest(name=ELSEWHERE, domain="other"), timeout=CALL_S_MAX)
        good = Bad("OK", groups=["a"], payloads=[b"stored"] * STORED, producer=b"good")
        stub.Publish(good.request(), timeout=CALL_S_MAX)
        # Where acknowledgements of the tests can move nothing: at the end.
        at_end = SetCursorRequest(group="a", name="reader", start=StartAt(offset=STORED))
        stub.SetCursor(at_end, timeout=CALL_S_MAX)
    yield made
    assert_replicas_agree(made.gateways[0])


def stored(cluster: LocalCluster) -> Offsets:
    """All that is there: each group's end, and each cursor of a."""
    found = next_offsets(cluster.gateways[0], [*GROUPS, ELSEWHERE])
    with raw(cluster.gateways[0]) as stub:
        names = [group.name for group in stub.ListGroups(gateway_pb2.ListGroupsRequest()).groups]
        domains = [domain.name for domain in stub.ListDomains(gateway_pb2.ListDomainsRequest()).domains]
        cursors = stub.ListCursors(ListCursorsRequest(group="a"), timeout=CALL_S_MAX).cursors
    return {
        **found,
        **{f"group {name}": 1 for name in names},
        **{f"domain {name}": 1 for name in domains},
        **{f"cursor {cursor.name}": cursor.offset for cursor in cursors},
    }


@pytest.fixture(scope="module")
def stored_at_first(cluster: LocalCluster) -> Offsets:
    return stored(cluster)


@pytest.fixture(autouse=True)
def nothing_happens(cluster: LocalCluster, stored_at_first: Offsets) -> Iterator[None]:
    """Nothing is stored, no process ends, every gateway answers, and a message gets through."""
    processes = [member.process for member in cluster.members.values()]
    yield
    assert [member.process for member in cluster.running()] == processes
    assert stored(cluster) == stored_at_first
    for gateway in cluster.gateways:
        with raw(gateway) as stub:
            assert stub.DescribeCluster(gateway_pb2.DescribeClusterRequest(), timeout=CALL_S_MAX).groups
    # Through one of them after the other: to ask all of them after each of so many tests would take long.
    alive = Bad("OK", groups=[ALIVE], producer=os.urandom(16))
    with raw(cluster.gateways[next(_turns) % len(cluster.gateways)]) as stub:
        assert stub.Publish(alive.request(), timeout=CALL_S_MAX).replies


# ------------------------------------------------------------------------------------------------- publishing


@pytest.mark.parametrize("what", PUBLISHES)
def test_a_bad_publish_is_refused_as_a_single_call(cluster: LocalCluster, what: str) -> None:
    with raw(cluster.gateways[0]) as stub, pytest.raises(grpc.RpcError) as caught:
        stub.Publish(PUBLISHES[what].request(), timeout=CALL_S_MAX)
    assert caught.value.code().name == PUBLISHES[what].status
    assert error_info(caught.value).domain == "ordercast"
    assert caught.value.details()


@pytest.mark.parametrize("what", PUBLISHES)
def test_a_bad_publish_on_a_stream_is_refused_and_the_stream_goes_on(cluster: LocalCluster, what: str) -> None:
    good = Bad("OK", groups=[ALIVE], producer=os.urandom(16))
    is_answered = threading.Event()

    def frames() -> Iterator[PublishStreamRequest]:
        yield PublishStreamRequest(requests=[PUBLISHES[what].request()])
        yield PublishStreamRequest(requests=[good.request()])
        is_answered.wait(CALL_S_MAX)

    replies: list[gateway_pb2.PublishReply] = []
    with raw(cluster.gateways[1]) as stub:
        answers = stub.PublishStream(frames(), timeout=CALL_S_MAX)
        while len(replies) < 2:
            replies += next(answers).replies
        is_answered.set()
    statuses = [PublishStatus.Name(reply.status).removeprefix("PUBLISH_STATUS_") for reply in replies]
    assert statuses == [PUBLISHES[what].status, "OK"]
    assert replies[0].detail


def test_a_token_is_good_for_the_domain_and_the_clock_that_were_signed(cluster: LocalCluster) -> None:
    with raw(cluster.gateways[0]) as stub:
        good = Bad("OK", groups=[ALIVE], producer=os.urandom(16))
        token = stub.Publish(good.request(), timeout=CALL_S_MAX).replies[0].session
        clock_at = TAG_BYTES + CLOCK_BYTES - 1
        spoiled = {
            "another clock": token[:clock_at] + bytes([token[clock_at] ^ 1]) + token[clock_at + 1 :],
            "another signature": token[:-1] + bytes([token[-1] ^ 1]),
            "the other domain's name on it": tag_of("other") + token[TAG_BYTES:],
        }
        for what, session in spoiled.items():
            group = ELSEWHERE if session.startswith(tag_of("other")) else "a"
            with pytest.raises(grpc.RpcError) as caught:
                stub.Publish(Bad("", groups=[group], session=session).request(), timeout=CALL_S_MAX)
            assert (what, caught.value.code()) == (what, grpc.StatusCode.INVALID_ARGUMENT)


# ------------------------------------------------------------------------------ subscribing, administration


@pytest.mark.parametrize("what", SUBSCRIPTIONS)
def test_a_bad_subscription_ends_with_a_status(cluster: LocalCluster, what: str) -> None:
    frames, status, reason = SUBSCRIPTIONS[what]
    with raw(cluster.gateways[0]) as stub:
        error = status_of(lambda: list(stub.Subscribe(iter(frames), timeout=CALL_S_MAX)))
    assert (error.code().name, error_info(error).reason) == (status, reason)


@pytest.mark.parametrize("what", NAMES)
def test_a_bad_name_creates_nothing(cluster: LocalCluster, what: str) -> None:
    name = NAMES[what]
    with raw(cluster.gateways[0]) as stub:
        calls: list[Callable[[], object]] = [
            lambda: stub.CreateGroup(
                CreateGroupRequest(name=name, retention=Retention(bytes=1)), timeout=CALL_S_MAX
            ),
            lambda: stub.CreateDomain(CreateDomainRequest(name=name, protocol="scalatom"), timeout=CALL_S_MAX),
        ]
        for call in calls:
            with pytest.raises(grpc.RpcError) as caught:
                call()
            assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
            assert len(caught.value.details()) < 300


@pytest.mark.parametrize("what", CALLS)
def test_a_bad_call_gets_its_status(cluster: LocalCluster, what: str) -> None:
    name, request, status = CALLS[what]
    with raw(cluster.gateways[0]) as stub:
        error = status_of(lambda: getattr(stub, name)(request, timeout=CALL_S_MAX))
    assert error.code().name == status
    assert error_info(error).domain == "ordercast"


# ---------------------------------------------------------------------------------- whoever is at the wrong port


def methods_of(*services: object) -> list[MethodDescriptor]:
    return [method for service in services for method in service.methods]  # type: ignore[attr-defined]


def path_of(method: MethodDescriptor) -> str:
    return f"/{method.containing_service.full_name}/{method.name}"


def send(address: str, path: str, data: bytes) -> grpc.RpcError:
    """The error that these bytes get. As a stream in both directions any call can be made."""
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as caught:
        list(channel.stream_stream(path)(iter([data]), timeout=CALL_S_MAX))
    return caught.value


@pytest.mark.parametrize("method", methods_of(*PEER_SERVICES), ids=path_of)
def test_what_processes_say_to_each_other_is_not_for_clients(
    cluster: LocalCluster, method: MethodDescriptor
) -> None:
    assert send(cluster.gateways[0], path_of(method), b"").code() == grpc.StatusCode.UNIMPLEMENTED


def test_faults_are_injected_only_where_that_was_asked_for(cluster: LocalCluster) -> None:
    address = f"{HOST}:{cluster.members['node-1'].peer_port}"
    path = "/ordercast.v1.FaultService/Inject"
    assert send(address, path, b"").code() == grpc.StatusCode.UNIMPLEMENTED


# --------------------------------------------------------------------------------- who takes itself for a process


def peers_address(cluster: LocalCluster, name: str) -> str:
    return f"{HOST}:{cluster.members[name].peer_port}"


def frames_port(member: Member) -> int:
    """As the process says in its log."""
    entries = [json.loads(line) for line in member.log.read_text().splitlines() if line.startswith("{")]
    return int(next(entry["frames"] for entry in reversed(entries) if entry["event"] == "serving peers"))


def good_hello(cluster: LocalCluster) -> Hello:
    """What node-1 says to node-2. Without certificates, whoever may connect can find it out."""
    with grpc.insecure_channel(peers_address(cluster, "node-2")) as channel:
        watched = next(iter(MembershipServiceStub(channel).Watch(WatchRequest(), timeout=CALL_S_MAX)))
    (node,) = (node for node in watched.nodes if node.name == "node-1")
    return Hello(
        version=WIRE_VERSION,
        channel=CHANNEL_DOMAINS,
        process=node.name,
        incarnation=node.incarnation,
        node_id=node.node_id,
        cluster_id=watched.cluster_id,
        to="node-2",
    )


def connect(cluster: LocalCluster, hello: Hello) -> ConnectResponse:
    with grpc.insecure_channel(peers_address(cluster, "node-2")) as channel:
        answer: ConnectResponse = PeerServiceStub(channel).Connect(ConnectRequest(hello=hello), timeout=CALL_S_MAX)
    return answer


def show(port: int, ticket: bytes) -> socket.socket:
    connection = socket.create_connection((HOST, port), timeout=CALL_S_MAX)
    connection.sendall(LENGTH.pack(len(ticket)) + ticket)
    return connection


def is_welcome(connection: socket.socket) -> bool:
    """The answer to a ticket is an empty frame."""
    try:
        return connection.recv(LENGTH.size, socket.MSG_WAITALL) == LENGTH.pack(0)
    except ConnectionError:
        return False


def let_in(cluster: LocalCluster) -> tuple[socket.socket, ConnectResponse]:
    """As node-1. It calls again at once, and makes our ticket void if it is quicker: then once more."""
    hello = good_hello(cluster)
    found: list[tuple[socket.socket, ConnectResponse]] = []

    def is_let_in() -> bool:
        answer = connect(cluster, hello)
        connection = show(answer.port, answer.ticket)
        if is_welcome(connection):
            found.append((connection, answer))
        else:
            connection.close()
        return bool(found)

    wait_until("a ticket is good", is_let_in, CALL_S_MAX)
    return found[0]


def until_cut_off(connection: socket.socket) -> None:
    try:
        while connection.recv(4096):
            pass
    except ConnectionError:
        pass


@pytest.mark.parametrize("what", HELLOS)
def test_a_peer_with_a_bad_hello_is_sent_away(cluster: LocalCluster, what: str) -> None:
    hello = good_hello(cluster)
    for field_name, value in HELLOS[what].items():
        setattr(hello, field_name, value)
    with pytest.raises(grpc.RpcError) as caught:
        connect(cluster, hello)
    assert caught.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert caught.value.details()


def test_a_peer_without_a_hello_is_sent_away(cluster: LocalCluster) -> None:
    error = send(peers_address(cluster, "node-2"), "/ordercast.v1.PeerService/Connect", b"")
    assert error.code() == grpc.StatusCode.FAILED_PRECONDITION


def test_a_ticket_is_good_once(cluster: LocalCluster) -> None:
    connection, answer = let_in(cluster)
    with connection, show(answer.port, answer.ticket) as again:
        assert not is_welcome(again)


def test_a_ticket_that_is_wrong_is_not_good(cluster: LocalCluster) -> None:
    answer = connect(cluster, good_hello(cluster))
    spoiled = bytes([answer.ticket[0] ^ 1]) + answer.ticket[1:]
    for shown in (spoiled, answer.ticket[:-1], b"", answer.ticket * 4, answer.ticket * 5):
        with show(answer.port, shown) as connection:
            assert not is_welcome(connection)


def test_whoever_waits_for_too_long_is_cut_off_and_its_ticket_is_not_good_any_more(cluster: LocalCluster) -> None:
    answer = connect(cluster, good_hello(cluster))
    ports = [frames_port(member) for member in cluster.members.values()]
    silent = [socket.create_connection((HOST, port), timeout=CALL_S_MAX) for port in ports]
    time.sleep(TICKET_S_MAX)
    for connection in silent:
        with connection:
            until_cut_off(connection)
    with show(answer.port, answer.ticket) as late:
        assert not is_welcome(late)


@pytest.mark.parametrize("what", GARBAGE_OF_PEERS)
def test_a_process_that_says_what_it_may_not_is_cut_off(cluster: LocalCluster, what: str) -> None:
    connection, _ = let_in(cluster)
    with connection:
        connection.sendall(GARBAGE_OF_PEERS[what])
        until_cut_off(connection)


# ---------------------------------------------------------------------------------------------------- garbage


@pytest.mark.parametrize("method", methods_of(*CLIENT_SERVICES), ids=path_of)
def test_bytes_that_are_no_message_are_refused_by_each_call_of_clients(
    cluster: LocalCluster, method: MethodDescriptor
) -> None:
    error = send(cluster.gateways[0], path_of(method), MALFORMED)
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("method", methods_of(*PEER_SERVICES[:3]), ids=path_of)
def test_bytes_that_are_no_message_are_refused_by_each_call_of_peers(
    cluster: LocalCluster, method: MethodDescriptor
) -> None:
    error = send(f"{HOST}:{cluster.members['node-1'].peer_port}", path_of(method), MALFORMED)
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("what", GARBAGE)
def test_garbage_on_a_port_is_cut_off(cluster: LocalCluster, what: str) -> None:
    for member in cluster.members.values():
        for port in (member.peer_port, member.client_port, frames_port(member)):
            with socket.create_connection((HOST, port), timeout=CALL_S_MAX) as connection:
                # The server may hang up before it has read everything.
                try:
                    connection.sendall(GARBAGE[what])
                    connection.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
                until_cut_off(connection)
