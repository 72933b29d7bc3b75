"""A cluster with certificates everywhere: who gets in, who is who, and new certificates while clients publish.

There are three authorities: one signs what processes show each other, one what gateways show to clients, and one
what clients show to gateways.
"""

import asyncio
import signal
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub

import ordercast
from ordercast import errors
from ordercast.local.cluster import HOST, LocalCluster, wait_until
from ordercast.local.verify import Verifier
from ordercast.runtime.transport.mesh import WIRE_VERSION
from ordercast.runtime.transport.wire import LENGTH
from ordercast.v1.frame_pb2 import CHANNEL_DOMAINS, ConnectRequest, ConnectResponse, Hello
from ordercast.v1.frame_pb2_grpc import PeerServiceStub
from ordercast.v1.gateway_pb2 import DescribeClusterRequest
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub
from ordercast.v1.membership_pb2 import (
    Command,
    DeleteGroup,
    EndIncarnation,
    ExecuteRequest,
    HeartbeatRequest,
    RegisterNode,
    WatchRequest,
)
from ordercast.v1.membership_pb2_grpc import MembershipServiceStub
from ordercast.v1.sequencer_pb2 import DescribeReplicaRequest
from ordercast.v1.sequencer_pb2_grpc import SequencerServiceStub
from tests.cluster.asking import CALL_S_MAX, in_time
from tests.cluster.trial import wait_for_log
from tests.unit.certificates import Authority, Pair

#: What clients look for in a gateway's certificate, whichever gateway it is.
GATEWAYS_NAME = "gateways.test"
START_S_MAX = 90.0


@dataclass
class Authorities:
    peers: Authority
    gateways: Authority
    clients: Authority

    @staticmethod
    def new(generation: str) -> "Authorities":
        return Authorities(*(Authority(f"{kind} {generation}") for kind in ("peers", "gateways", "clients")))


class Secured:
    """The cluster, the directory of its certificates, and who signs them at present."""

    def __init__(self, cluster: LocalCluster, directory: Path) -> None:
        self.cluster = cluster
        self.directory = directory
        self.authorities = Authorities.new("first")
        directory.mkdir()
        self.trust(self.authorities)
        self.issue()
        for member in cluster.members.values():
            member.extra = [
                f"--tls.peer-cert={directory / f'{member.name}.crt'}",
                f"--tls.peer-key={directory / f'{member.name}.key'}",
                f"--tls.peer-ca={directory / 'peers.ca'}",
                f"--tls.client-cert={directory / 'gateways.crt'}",
                f"--tls.client-key={directory / 'gateways.key'}",
                f"--tls.client-ca={directory / 'clients.ca'}",
            ]

    def trust(self, *accepted: Authorities) -> None:
        """Whose signatures count, for all."""
        for kind in ("peers", "gateways", "clients"):
            pems = [getattr(authorities, kind).pem for authorities in accepted]
            (self.directory / f"{kind}.ca").write_bytes(b"".join(pems))

    def issue(self) -> None:
        """New certificates for everybody, from the authorities of now."""
        for name in self.cluster.members:
            self.write(name, self.authorities.peers.issue_peer(name, [name]))
        self.write("gateways", self.authorities.gateways.issue(GATEWAYS_NAME, [GATEWAYS_NAME]))
        for name in ("alice", "bob"):
            self.write(name, self.authorities.clients.issue(name))

    def write(self, name: str, pair: Pair) -> None:
        pair.write(self.directory / f"{name}.crt", self.directory / f"{name}.key")

    def tls(self, client: str | None = "alice") -> ordercast.TLS:
        return ordercast.TLS(
            self.directory / "gateways.ca",
            self.directory / f"{client}.crt" if client else None,
            self.directory / f"{client}.key" if client else None,
            server_name=GATEWAYS_NAME,
        )

    def connect(self, client: str | None = "alice", **options: object) -> ordercast.SyncConnection:
        return ordercast.connect_sync(*self.cluster.gateways, tls=self.tls(client), **options)  # type: ignore[arg-type]

    def gateway(self, pair: Pair | None, gateway: int = 0) -> grpc.Channel:
        """As a client with this certificate, or with none."""
        shown = (pair.key_pem, pair.cert_pem) if pair else (None, None)
        credentials = grpc.ssl_channel_credentials((self.directory / "gateways.ca").read_bytes(), *shown)
        options = [("grpc.ssl_target_name_override", GATEWAYS_NAME), ("grpc.use_local_subchannel_pool", 1)]
        return grpc.secure_channel(self.cluster.gateways[gateway], credentials, options)

    def peer(self, pair: Pair | None, name: str = "node-2") -> grpc.Channel:
        """To the peers' port of that node, as whoever shows this certificate."""
        shown = (pair.key_pem, pair.cert_pem) if pair else (None, None)
        credentials = grpc.ssl_channel_credentials((self.directory / "peers.ca").read_bytes(), *shown)
        options = [("grpc.ssl_target_name_override", name), ("grpc.use_local_subchannel_pool", 1)]
        return grpc.secure_channel(f"{HOST}:{self.cluster.members[name].peer_port}", credentials, options)

    def pair(self, name: str) -> Pair:
        """As it is on disk now."""
        return Pair(*((self.directory / f"{name}.{kind}").read_bytes() for kind in ("crt", "key")))

    def is_serving(self) -> bool:
        """Every node knows all others, and thinks that they are up. Health checks are behind TLS here."""
        for gateway in range(len(self.cluster.gateways)):
            with self.gateway(self.pair("alice"), gateway) as channel:
                try:
                    found = GatewayServiceStub(channel).DescribeCluster(DescribeClusterRequest(), timeout=2)
                except grpc.RpcError:
                    return False
            up = [node for node in found.nodes if not (node.suspected or node.ended)]
            if len(up) < len(self.cluster.members):
                return False
        return True

    def wait_serving(self) -> None:
        wait_until("all nodes serve", self.is_serving, START_S_MAX)

    def assert_replicas_agree(self) -> None:
        with self.gateway(self.pair("alice")) as channel:
            report = Verifier(channel).run()
        assert report.is_ok, report.problems
        assert report.is_complete, [(group.group, group.unreachable) for group in report.groups]


@pytest.fixture(scope="module")
def secured(make_module_cluster: Callable[..., LocalCluster], tmp_path_factory: pytest.TempPathFactory) -> Secured:
    cluster = make_module_cluster(is_started=False)
    made = Secured(cluster, tmp_path_factory.mktemp("tls") / "certificates")
    cluster.start()
    made.wait_serving()
    with made.connect() as oc:
        for name in ("a", "b"):
            oc.create_group(name)
    return made


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return str(caught.value.code().name)


def peer_calls(channel: grpc.Channel) -> dict[str, Callable[[], object]]:
    """One call of each service on the peers' port."""
    hello = Hello(version=WIRE_VERSION, channel=CHANNEL_DOMAINS, process="node-1", to="node-2", incarnation=1)
    delete = Command(delete_group=DeleteGroup(name="a"), request_id=b"never")
    return {
        "Connect": lambda: PeerServiceStub(channel).Connect(ConnectRequest(hello=hello), timeout=CALL_S_MAX),
        "Execute": lambda: MembershipServiceStub(channel).Execute(
            ExecuteRequest(command=delete), timeout=CALL_S_MAX
        ),
        "Heartbeat": lambda: MembershipServiceStub(channel).Heartbeat(
            HeartbeatRequest(name="node-1"), timeout=CALL_S_MAX
        ),
        "DescribeReplica": lambda: SequencerServiceStub(channel).DescribeReplica(
            DescribeReplicaRequest(group="a#1"), timeout=CALL_S_MAX
        ),
    }


# ------------------------------------------------------------------------------------------------ who gets in


def test_clients_with_a_certificate_publish_and_subscribe(secured: Secured) -> None:
    with secured.connect() as oc:
        receipt = oc.publish(b"sealed", to=["a", "b"])
        with oc.subscribe("b", start=receipt.offsets["b"]) as deliveries:
            assert next(deliveries).payload == b"sealed"
    secured.assert_replicas_agree()


@pytest.mark.parametrize("who", ["nobody", "stranger", "a node"])
def test_clients_without_a_certificate_of_the_clients_authority_are_refused(secured: Secured, who: str) -> None:
    pairs = {"nobody": None, "stranger": Authority("another").issue("alice"), "a node": secured.pair("node-1")}
    with secured.gateway(pairs[who]) as channel:
        call = GatewayServiceStub(channel).DescribeCluster
        assert code_of(lambda: call(DescribeClusterRequest(), timeout=CALL_S_MAX)) == "UNAVAILABLE"


def test_who_does_not_encrypt_is_refused_at_either_port(secured: Secured) -> None:
    member = secured.cluster.members["node-1"]
    for port in (member.client_port, member.peer_port):
        with grpc.insecure_channel(f"{HOST}:{port}") as channel:
            for call in peer_calls(channel).values():
                assert code_of(call) == "UNAVAILABLE"


@pytest.mark.parametrize("who", ["a client", "nobody", "stranger"])
def test_the_certificate_of_a_client_opens_no_call_of_peers(secured: Secured, who: str) -> None:
    stranger = Authority("another").issue_peer("node-1", ["node-1"])
    with secured.peer({"a client": secured.pair("alice"), "nobody": None, "stranger": stranger}[who]) as channel:
        for name, call in peer_calls(channel).items():
            assert (name, code_of(call)) == (name, "UNAVAILABLE")
    with secured.connect() as oc:
        assert "a" in [group.name for group in oc.groups()]


@pytest.mark.parametrize("name", ["alice", "node-1"])
def test_with_one_authority_for_everything_a_client_is_still_no_process(secured: Secured, name: str) -> None:
    """It has a good certificate, even one with the name of a process, and not the mark of one."""
    client = secured.authorities.peers.issue(name, [name])
    register = RegisterNode(name=name, node_id=b"mine", services=["gateway"], peer_address=f"{HOST}:1")
    with secured.peer(client) as channel:
        membership = MembershipServiceStub(channel)
        request = ExecuteRequest(command=Command(register=register, request_id=b"client"))
        calls = peer_calls(channel) | {
            "Register": lambda: membership.Execute(request, timeout=CALL_S_MAX),
            "Watch": lambda: next(iter(membership.Watch(WatchRequest(), timeout=CALL_S_MAX))),
            "Health": lambda: HealthStub(channel).Check(HealthCheckRequest(), timeout=CALL_S_MAX),
        }
        for what, call in calls.items():
            assert (what, code_of(call)) == (what, "PERMISSION_DENIED")
    wait_for_log(secured.cluster, "node-2", "refused caller")
    secured.wait_serving()


def test_a_process_that_is_not_registered_says_nothing_for_clients(secured: Secured) -> None:
    stranger = secured.authorities.peers.issue_peer("node-9", ["node-9"])
    with secured.peer(stranger) as channel:
        assert code_of(peer_calls(channel)["Execute"]) == "FAILED_PRECONDITION"
    with secured.connect() as oc:
        assert "a" in [group.name for group in oc.groups()]


def test_a_client_finds_no_service_of_peers_at_its_own_port(secured: Secured) -> None:
    with secured.gateway(secured.pair("alice")) as channel:
        for name, call in peer_calls(channel).items():
            assert (name, code_of(call)) == (name, "UNIMPLEMENTED")


def test_a_peer_is_who_its_certificate_says(secured: Secured) -> None:
    """Signed by the right authority, but for another name: it speaks for nobody else."""
    impostor = secured.authorities.peers.issue_peer("node-9", ["node-9"])
    with secured.peer(impostor) as channel:
        calls = peer_calls(channel)
        assert code_of(calls["Connect"]) == "PERMISSION_DENIED"
        assert code_of(calls["Heartbeat"]) == "PERMISSION_DENIED"
        register = RegisterNode(name="node-1", services=["gateway"], peer_address=f"{HOST}:1")
        end = EndIncarnation(name="node-1", incarnation=1)
        execute = MembershipServiceStub(channel).Execute
        for command in (Command(register=register), Command(end_incarnation=end)):
            command.request_id = b"impostor"
            request = ExecuteRequest(command=command)
            assert code_of(lambda request=request: execute(request, timeout=CALL_S_MAX)) == "PERMISSION_DENIED"
    secured.wait_serving()


def connect_as_node_1(secured: Secured) -> ConnectResponse:
    """Node-2's answer to a good hello, with the certificate that goes with it."""
    with secured.peer(secured.pair("node-1")) as channel:
        watched = next(iter(MembershipServiceStub(channel).Watch(WatchRequest(), timeout=CALL_S_MAX)))
        (node,) = (node for node in watched.nodes if node.name == "node-1")
        hello = Hello(
            version=WIRE_VERSION,
            channel=CHANNEL_DOMAINS,
            process="node-1",
            incarnation=node.incarnation,
            node_id=node.node_id,
            cluster_id=watched.cluster_id,
            to="node-2",
        )
        answer: ConnectResponse = PeerServiceStub(channel).Connect(ConnectRequest(hello=hello), timeout=CALL_S_MAX)
    return answer


def is_welcome(answer: ConnectResponse, context: ssl.SSLContext | None) -> bool:
    """Whether this ticket, shown over such a connection, is answered with an empty frame."""
    with socket.create_connection((HOST, answer.port), timeout=CALL_S_MAX) as plain:
        try:
            connection = context.wrap_socket(plain, server_hostname="node-2") if context else plain
            with connection:
                connection.sendall(LENGTH.pack(len(answer.ticket)) + answer.ticket)
                return connection.recv(LENGTH.size) == LENGTH.pack(0)
        except (ConnectionError, ssl.SSLError):
            return False


def test_a_ticket_opens_nothing_without_a_certificate_of_the_peers_authority(secured: Secured) -> None:
    answer = connect_as_node_1(secured)
    secured.write("stranger", Authority("another").issue_peer("node-1", ["node-1"]))
    contexts: dict[str, ssl.SSLContext] = {}
    for name in ("", "stranger", "alice", "node-1"):
        context = contexts[name] = ssl.create_default_context(cafile=secured.directory / "peers.ca")
        if name:
            context.load_cert_chain(secured.directory / f"{name}.crt", secured.directory / f"{name}.key")
    assert not is_welcome(answer, None)
    for name in ("", "stranger", "alice"):
        assert not is_welcome(answer, contexts[name]), name
    # Node-1 itself may call at any time, which makes our ticket void: so this is tried until it is good.
    wait_until("a ticket is good", lambda: is_welcome(connect_as_node_1(secured), contexts["node-1"]), CALL_S_MAX)


# ------------------------------------------------------------------------------------------------- who is who


def test_producers_of_one_name_and_two_clients_do_not_fence_each_other(secured: Secured) -> None:
    with (
        secured.connect("alice", producer="billing") as alice,
        secured.connect("bob", producer="billing") as bob,
    ):
        for number in range(3):
            alice.publish(b"of alice %d" % number, to=["a"])
            bob.publish(b"of bob %d" % number, to=["a"])
        # One client is one owner: its own second instance does fence.
        with secured.connect("alice", producer="billing") as again:
            again.publish(b"of alice again", to=["a"])
            with pytest.raises(errors.Fenced):
                alice.publish(b"too late", to=["a"])
        bob.publish(b"of bob at last", to=["a"])


# ---------------------------------------------------------------------------------------------------- rotation


def test_all_certificates_and_authorities_are_replaced_while_clients_publish(secured: Secured) -> None:
    """First both authorities are trusted, then all show new certificates, then the old authority is not."""
    old_client, old_peer = secured.pair("alice"), secured.pair("node-1")
    old, new = secured.authorities, Authorities.new("second")

    def restart(name: str) -> None:
        """Whoever starts anew has to be let in by all the others, which started before."""
        process = secured.cluster.members[name].process
        assert process is not None
        process.send_signal(signal.SIGTERM)
        assert process.wait(CALL_S_MAX) == 0
        secured.cluster.start([name])
        secured.wait_serving()

    async def publish(stop: asyncio.Event) -> list[int]:
        """Every few messages over a new connection."""
        offsets = []
        while not stop.is_set():
            async with ordercast.connect(*secured.cluster.gateways, tls=secured.tls()) as oc:
                for _ in range(5):
                    offsets.append((await oc.publish(b"through it all", to=["a", "b"])).offsets["b"])
                    await asyncio.sleep(0.01)
        return offsets

    async def run() -> list[int]:
        stop = asyncio.Event()
        publishing = asyncio.create_task(publish(stop))
        secured.trust(old, new)
        await asyncio.to_thread(secured.wait_serving)
        secured.authorities = new
        secured.issue()
        await asyncio.to_thread(restart, "node-1")
        secured.trust(new)
        await asyncio.to_thread(restart, "node-2")
        await asyncio.to_thread(restart, "node-3")
        stop.set()
        return await publishing

    offsets = in_time(run(), timeout_s=150)
    assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))
    with secured.gateway(old_client) as channel:
        call = GatewayServiceStub(channel).DescribeCluster
        assert code_of(lambda: call(DescribeClusterRequest(), timeout=CALL_S_MAX)) == "UNAVAILABLE"
    with secured.peer(old_peer) as channel:
        assert code_of(peer_calls(channel)["DescribeReplica"]) == "UNAVAILABLE"
    secured.assert_replicas_agree()
