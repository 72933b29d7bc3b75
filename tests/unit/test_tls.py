"""Certificates, on real connections: who gets in, who is who, and what happens when the files change."""

import asyncio
import contextlib
import ssl
from types import SimpleNamespace

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from ordercast.runtime.process.settings import PEER_URI, TlsSettings
from ordercast.runtime.transport.admission import Admission
from ordercast.runtime.transport.frame_listener import FrameListener
from ordercast.runtime.transport.server import GrpcServer
from ordercast.runtime.transport.status import Refused
from ordercast.runtime.transport.tls import Credentials, PemFiles, TlsError, client_identity, peer_names
from ordercast.runtime.transport.wire import Wire
from ordercast.v1 import faults_pb2
from ordercast.v1.faults_pb2_grpc import FaultServiceServicer, FaultServiceStub, add_FaultServiceServicer_to_server
from ordercast.v1.frame_pb2 import CHANNEL_DOMAINS
from tests.unit.certificates import Authority

CALL_S = 20


class Witness(FaultServiceServicer):
    """Remembers who called."""

    def __init__(self, server):
        self.server = server
        self.names = []
        self.identities = []

    async def Inject(self, request, context):  # noqa: N802 (a method of the service)
        self.names.append(peer_names(context))
        self.identities.append(client_identity(context))
        return faults_pb2.InjectResponse()


@contextlib.asynccontextmanager
async def serving(credentials, admit=None):
    """(witness, address) of a server with these credentials."""
    server = GrpcServer(admit=admit)
    witness = Witness(server)
    service = faults_pb2.DESCRIPTOR.services_by_name["FaultService"]
    server.add(service, add_FaultServiceServicer_to_server, witness)
    port = await server.start("127.0.0.1:0", credentials)
    try:
        yield witness, f"127.0.0.1:{port}"
    finally:
        await server.stop(0)


async def call(channel):
    """None if the call was served, else the code of its failure."""
    async with channel:
        try:
            await FaultServiceStub(channel).Inject(faults_pb2.InjectRequest(), timeout=CALL_S)
        except grpc.aio.AioRpcError as error:
            return error.code()
    return None


def as_client(address, authority, pair=None, server_name="s1"):
    """A client that trusts this CA; each has a connection of its own."""
    credentials = grpc.ssl_channel_credentials(
        authority.pem, pair.key_pem if pair else None, pair.cert_pem if pair else None
    )
    options = [("grpc.ssl_target_name_override", server_name), ("grpc.use_local_subchannel_pool", 1)]
    return grpc.aio.secure_channel(address, credentials, options=options)


class Files:
    """The files of one process for one port, and their replacement."""

    def __init__(self, folder, name):
        folder.mkdir(exist_ok=True)
        self.name = name
        self.cert, self.key, self.ca = (folder / f"{name}-{kind}.pem" for kind in ("cert", "key", "ca"))

    def write(self, authority, dns=None, uris=(PEER_URI,)):
        authority.issue(self.name, dns if dns is not None else [self.name], uris).write(self.cert, self.key)
        self.ca.write_bytes(authority.pem)
        return self

    @property
    def for_peers(self):
        return TlsSettings(peer_cert=self.cert, peer_key=self.key, peer_ca=self.ca)

    def for_clients(self, mutual):
        ca = self.ca if mutual else None
        return TlsSettings(client_cert=self.cert, client_key=self.key, client_ca=ca)


@pytest.fixture(scope="module")
def authority():
    return Authority("ours")


@pytest.fixture(scope="module")
def stranger():
    return Authority("another")


# --- The peers' port


def test_processes_know_each_other_by_the_names_in_their_certificates(tmp_path, authority):
    async def run():
        server = Files(tmp_path, "s1").write(authority)
        dialler = Files(tmp_path, "s2").write(authority, dns=["s2", "s2.ordercast.svc"])
        async with serving(Credentials(server.for_peers).for_peers()) as (witness, address):
            assert await call(Credentials(dialler.for_peers).dial(address, "s1")) is None
            assert witness.names == [["s2", "s2.ordercast.svc"]]

    asyncio.run(run())


def test_a_common_name_alone_is_a_name_too(tmp_path, authority):
    async def run():
        server = Files(tmp_path, "s1").write(authority)
        dialler = Files(tmp_path, "s2").write(authority, dns=[])
        async with serving(Credentials(server.for_peers).for_peers()) as (witness, address):
            assert await call(Credentials(dialler.for_peers).dial(address, "s1")) is None
            assert witness.names == [["s2"]]

    asyncio.run(run())


def test_a_dialler_refuses_a_process_with_another_name(tmp_path, authority):
    async def run():
        server = Files(tmp_path, "s3").write(authority)
        dialler = Files(tmp_path, "s2").write(authority)
        async with serving(Credentials(server.for_peers).for_peers()) as (witness, address):
            dialled = Credentials(dialler.for_peers).dial(address, "s1")
            assert await call(dialled) == grpc.StatusCode.UNAVAILABLE
            assert witness.names == []

    asyncio.run(run())


def test_a_dialler_refuses_a_process_that_another_authority_signed(tmp_path, authority, stranger):
    async def run():
        server = Files(tmp_path, "s1").write(stranger)
        server.ca.write_bytes(authority.pem)
        dialler = Files(tmp_path, "s2").write(authority)
        async with serving(Credentials(server.for_peers).for_peers()) as (witness, address):
            assert await call(Credentials(dialler.for_peers).dial(address, "s1")) == grpc.StatusCode.UNAVAILABLE
            assert witness.names == []

    asyncio.run(run())


def test_no_call_reaches_the_peers_port_without_a_certificate_of_the_peers_authority(
    tmp_path, authority, stranger
):
    async def run():
        server = Files(tmp_path, "s1").write(authority)
        client = stranger.issue_peer("s2", ["s2"])
        async with serving(Credentials(server.for_peers).for_peers()) as (witness, address):
            assert await call(as_client(address, authority)) == grpc.StatusCode.UNAVAILABLE
            assert await call(as_client(address, authority, client)) == grpc.StatusCode.UNAVAILABLE
            assert await call(grpc.aio.insecure_channel(address)) == grpc.StatusCode.UNAVAILABLE
            assert witness.names == []

    asyncio.run(run())


@pytest.mark.parametrize("peer_uri", [PEER_URI, "spiffe://orders.example/ordercast"])
def test_a_certificate_of_the_peers_authority_without_the_mark_of_a_process_opens_nothing(
    tmp_path, authority, peer_uri
):
    """Neither with the name of a process nor with the mark of another cluster, or as another kind of name."""
    strangers = [
        authority.issue("alice"),
        authority.issue("s2", ["s2"]),
        authority.issue(peer_uri),
        authority.issue("s2", ["s2"], ["ordercast:client", f"{peer_uri}s", "other://cluster/peer"]),
    ]

    async def run():
        server = Files(tmp_path, "s1").write(authority, uris=[peer_uri])
        credentials = Credentials(server.for_peers.model_copy(update={"peer_uri": peer_uri})).for_peers()
        async with serving(credentials, Admission((peer_uri,))) as (witness, address):
            for pair in strangers:
                denied = grpc.StatusCode.PERMISSION_DENIED
                assert await call(as_client(address, authority, pair)) == denied
                channel = as_client(address, authority, pair)
                async with channel:
                    check = health_pb2_grpc.HealthStub(channel).Check
                    with pytest.raises(grpc.aio.AioRpcError) as caught:
                        await check(health_pb2.HealthCheckRequest(), timeout=CALL_S)
                    assert caught.value.code() == denied
            assert witness.names == []
            process = authority.issue("s2", ["s2"], ["other:mark", peer_uri])
            assert await call(as_client(address, authority, process)) is None
            assert witness.names == [["s2"]]

    asyncio.run(run())


def test_refused_callers_are_logged_but_do_not_fill_the_log(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("ordercast.runtime.transport.admission.time.monotonic", lambda: now[0])
    shown = {"transport_security_type": [b"ssl"], "x509_common_name": [b"alice"]}
    context = SimpleNamespace(auth_context=lambda: shown, peer=lambda: "ipv4:127.0.0.1:1")
    admission = Admission((PEER_URI,))
    with capture_logs() as logged:
        for at in (*[5.0] * 20, 6.0):
            now[0] = at
            with pytest.raises(Refused, match="lack the URI ordercast:peer"):
                admission(context)
    told = [(entry["event"], entry["certificate"], entry["unsaid"]) for entry in logged]
    assert told == [("refused caller", "alice", 0), ("refused caller", "alice", 19)]


def test_a_process_does_not_start_with_a_certificate_that_others_would_refuse(tmp_path, authority):
    files = Files(tmp_path, "s1").write(authority, uris=["ordercast:client"])
    with pytest.raises(TlsError, match=r"s1-cert\.pem is not marked .* the URI ordercast:peer"):
        Credentials(files.for_peers)
    # Towards clients it needs none.
    assert Credentials(files.for_clients(mutual=True)).for_clients() is not None


def test_a_certificate_without_the_mark_does_not_replace_one_that_has_it(tmp_path, authority):
    async def run():
        server, dialler = Files(tmp_path, "s1").write(authority), Files(tmp_path, "s2").write(authority)
        credentials = Credentials(dialler.for_peers)
        async with serving(Credentials(server.for_peers).for_peers(), Admission((PEER_URI,))) as (_, address):
            assert await call(credentials.dial(address, "s1")) is None
            dialler.write(authority, uris=[])
            assert await call(credentials.dial(address, "s1")) is None

    asyncio.run(run())


def test_without_tls_processes_have_no_names(tmp_path):
    async def run():
        credentials = Credentials(TlsSettings())
        assert credentials.for_clients() is None
        async with serving(credentials.for_peers()) as (witness, address):
            assert await call(credentials.dial(address, "s1")) is None
            assert witness.names == [None]
            assert witness.identities == [None]

    asyncio.run(run())


# --- Connections for frames


class Frames:
    """A process that takes such connections, and answers each frame with itself."""

    def __init__(self, files):
        self._listener = FrameListener(Credentials(files.for_peers))
        #: The certificates that others showed.
        self.shown = []

    async def __aenter__(self):
        self.port = self._listener.start("127.0.0.1", 0)
        return self

    async def __aexit__(self, *_):
        await self._listener.stop()

    def ticket(self):
        return self._listener.ticket((CHANNEL_DOMAINS, "s2"), self._welcome)

    async def _welcome(self, wire):
        self.shown.append(certificate(wire))
        wire.start(wire.write)
        await wire.lost.wait()


class Dialled:
    """A connection to such a process, with the contexts of another one."""

    def __init__(self):
        self.wire = Wire()
        self.heard = asyncio.Queue()

    async def open(self, frames, context, name="s1"):
        loop = asyncio.get_running_loop()
        server_hostname = name if context else None
        await loop.create_connection(
            lambda: self.wire, "127.0.0.1", frames.port, ssl=context, server_hostname=server_hostname
        )
        self.wire.write(frames.ticket())
        self.wire.write(b"first")
        assert await self.wire.first() == b"first"
        self.wire.start(self.heard.put_nowait)
        return self

    async def says(self, frame):
        self.wire.write(frame)
        assert await self.heard.get() == frame


def certificate(wire):
    """Of the other side."""
    return int(wire._transport.get_extra_info("peercert")["serialNumber"], 16)


def serial(pem):
    return x509.load_pem_x509_certificate(pem).serial_number


async def connects(frames, context, name="s1"):
    """Whether it does; then it also hangs up."""
    dialled = Dialled()
    try:
        async with asyncio.timeout(CALL_S):
            await dialled.open(frames, context, name)
    except (ssl.SSLError, ConnectionError, EOFError):
        return False
    finally:
        dialled.wire.abort()
    return True


def in_time(work):
    async def bounded():
        async with asyncio.timeout(CALL_S):
            await work

    asyncio.run(bounded())


@pytest.mark.parametrize("dns", [None, []])
def test_frames_go_to_the_process_with_that_name_in_its_certificate(tmp_path, authority, dns):
    async def run():
        server = Files(tmp_path, "s1").write(authority, dns)
        credentials = Credentials(Files(tmp_path, "s2").write(authority).for_peers)
        async with Frames(server) as frames:
            assert await connects(frames, credentials.dialling())
            assert not await connects(frames, credentials.dialling(), name="s3")

    in_time(run())


def test_a_name_among_the_other_names_counts_and_a_common_name_beside_them_does_not(tmp_path, authority):
    async def run():
        server = Files(tmp_path, "s1").write(authority, ["s1.ordercast.svc", "s9"])
        credentials = Credentials(Files(tmp_path, "s2").write(authority).for_peers)
        async with Frames(server) as frames:
            assert await connects(frames, credentials.dialling(), name="s9")
            assert not await connects(frames, credentials.dialling(), name="s1")

    in_time(run())


def test_no_frames_go_to_or_come_from_whom_another_authority_signed(tmp_path, authority, stranger):
    async def run():
        ours, theirs = Files(tmp_path, "s1").write(authority), Files(tmp_path, "s2").write(stranger)
        # They trust us; we do not trust them.
        theirs.ca.write_bytes(authority.pem)
        async with Frames(ours) as frames:
            assert not await connects(frames, Credentials(theirs.for_peers).dialling())
            assert frames.shown == []
        async with Frames(theirs) as frames:
            assert not await connects(frames, Credentials(ours.for_peers).dialling(), name="s2")
            assert frames.shown == []

    in_time(run())


def test_no_frames_come_from_whom_shows_no_certificate(tmp_path, authority):
    async def run():
        server = Files(tmp_path, "s1").write(authority)
        nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        nobody.load_verify_locations(server.ca)
        async with Frames(server) as frames:
            assert not await connects(frames, nobody)
            assert not await connects(frames, None)
            assert frames.shown == []

    in_time(run())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_an_old_version_of_tls_is_not_spoken(tmp_path, authority, version):
    async def run():
        server = Files(tmp_path, "s1").write(authority)
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version = old.maximum_version = version
        old.load_verify_locations(server.ca)
        old.load_cert_chain(server.cert, server.key)
        async with Frames(server) as frames:
            assert not await connects(frames, old)
            assert frames.shown == []

    in_time(run())


def test_without_tls_frames_are_not_encrypted():
    credentials = Credentials(TlsSettings())
    assert credentials.dialling() is credentials.accepting() is None


def test_connections_for_frames_survive_new_files_which_new_ones_use(tmp_path, authority, stranger):
    async def run():
        server, dialler = Files(tmp_path, "s1").write(authority), Files(tmp_path, "s2").write(authority)
        credentials = Credentials(dialler.for_peers)
        async with Frames(server) as frames:
            early = await Dialled().open(frames, credentials.dialling())
            server.write(stranger)
            assert not await connects(frames, credentials.dialling())
            dialler.write(stranger)
            late = await Dialled().open(frames, credentials.dialling())
            assert certificate(late.wire) == serial(server.cert.read_bytes())
            assert frames.shown[-1] == serial(dialler.cert.read_bytes())
            await early.says(b"still here")
            await late.says(b"here, too")
            early.wire.abort()
            late.wire.abort()

    in_time(run())


def test_a_half_replaced_pair_is_not_used_for_frames_until_it_is_whole(tmp_path, authority):
    async def run():
        server, dialler = Files(tmp_path, "s1").write(authority), Files(tmp_path, "s2").write(authority)
        credentials = Credentials(dialler.for_peers)
        before, new = serial(dialler.cert.read_bytes()), authority.issue_peer("s2", ["s2"])
        async with Frames(server) as frames:
            dialler.cert.write_bytes(new.cert_pem)
            assert await connects(frames, credentials.dialling())
            dialler.key.write_bytes(new.key_pem)
            assert await connects(frames, credentials.dialling())
            for path in (dialler.cert, dialler.key, dialler.ca, server.cert, server.key, server.ca):
                path.unlink()
            assert await connects(frames, credentials.dialling())
            after = serial(new.cert_pem)
            assert frames.shown == [before, after, after]

    in_time(run())


@pytest.mark.parametrize("number", [1, 2])
def test_files_that_cannot_be_read_for_a_moment_while_they_are_replaced_are_read_again(
    tmp_path, authority, monkeypatch, number
):
    """Their content is then as it was when it was read first, so nobody may take it for what is in use."""
    files = Files(tmp_path, "s2").write(authority)
    credentials = Credentials(files.for_peers)
    before = credentials.dialling(), credentials.accepting()
    files.write(authority)
    loads = []
    load = ssl.SSLContext.load_cert_chain

    def loaded(context, *args, **options):
        loads.append(context)
        if len(loads) == number:
            raise FileNotFoundError("moved away, and soon back")
        load(context, *args, **options)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", loaded)
    for context in (credentials.dialling(), credentials.accepting()):
        assert context in (*before, *loads)
    assert credentials.dialling() not in before
    assert credentials.accepting() not in before


# --- The clients' port


def test_clients_need_no_certificate_where_none_is_asked_for(tmp_path, authority, stranger):
    async def run():
        server = Files(tmp_path, "s1").write(authority)
        async with serving(Credentials(server.for_clients(mutual=False)).for_clients()) as (witness, address):
            assert await call(as_client(address, authority)) is None
            assert await call(as_client(address, stranger)) == grpc.StatusCode.UNAVAILABLE
            assert witness.identities == [None]

    asyncio.run(run())


def test_a_client_is_who_its_certificate_says(tmp_path, authority, stranger):
    async def run():
        server = Files(tmp_path, "s1").write(authority)
        async with serving(Credentials(server.for_clients(mutual=True)).for_clients()) as (witness, address):
            assert await call(as_client(address, authority, authority.issue("alice", ["a.example"]))) is None
            assert await call(as_client(address, authority, authority.issue("", ["b.example"]))) is None
            assert await call(as_client(address, authority, stranger.issue("eve"))) == grpc.StatusCode.UNAVAILABLE
            assert await call(as_client(address, authority)) == grpc.StatusCode.UNAVAILABLE
            assert witness.identities == ["alice", "b.example"]

    asyncio.run(run())


# --- Files that change


def certificate_of(address):
    """The one that the server shows."""
    host, port = address.split(":")
    return x509.load_pem_x509_certificate(ssl.get_server_certificate((host, int(port))).encode())


def test_replaced_files_are_used_for_new_connections_and_a_stream_survives(tmp_path, authority, stranger):
    async def run():
        server = Files(tmp_path, "s1").write(authority)
        async with serving(Credentials(server.for_clients(mutual=False)).for_clients()) as (witness, address):
            before = await asyncio.to_thread(certificate_of, address)
            async with as_client(address, authority) as channel:
                stream = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
                assert (await stream.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING

                server.write(stranger)
                after = await asyncio.to_thread(certificate_of, address)
                assert after.serial_number != before.serial_number
                assert await call(as_client(address, stranger)) is None
                assert await call(as_client(address, authority)) == grpc.StatusCode.UNAVAILABLE

                await witness.server.set_serving(True)
                assert (await stream.read()).status == health_pb2.HealthCheckResponse.SERVING
                stream.cancel()

    asyncio.run(run())


def test_a_new_peer_authority_is_demanded_at_once_and_a_dialler_uses_its_new_certificate(
    tmp_path, authority, stranger
):
    async def run():
        server = Files(tmp_path, "s1").write(authority)
        dialler = Files(tmp_path, "s2").write(authority)
        dialling = Credentials(dialler.for_peers)
        async with serving(Credentials(server.for_peers).for_peers()) as (witness, address):
            assert await call(dialling.dial(address, "s1")) is None
            server.write(stranger)
            assert await call(dialling.dial(address, "s1")) == grpc.StatusCode.UNAVAILABLE
            dialler.write(stranger)
            assert await call(dialling.dial(address, "s1")) is None
            assert witness.names == [["s2"], ["s2"]]

    asyncio.run(run())


def test_a_half_replaced_pair_is_not_used_until_it_is_whole(tmp_path, authority):
    async def run():
        server = Files(tmp_path, "s1").write(authority)
        new = authority.issue_peer("s1", ["s1"])
        async with serving(Credentials(server.for_clients(mutual=False)).for_clients()) as (_, address):
            before = await asyncio.to_thread(certificate_of, address)
            server.cert.write_bytes(new.cert_pem)
            between = await asyncio.to_thread(certificate_of, address)
            assert between.serial_number == before.serial_number
            server.key.write_bytes(new.key_pem)
            after = await asyncio.to_thread(certificate_of, address)
            assert after.public_bytes(serialization.Encoding.PEM) == new.cert_pem

    asyncio.run(run())


def test_files_that_are_gone_leave_the_ones_before_in_use(tmp_path, authority):
    async def run():
        server = Files(tmp_path, "s1").write(authority)
        dialler = Files(tmp_path, "s2").write(authority)
        dialling = Credentials(dialler.for_peers)
        async with serving(Credentials(server.for_peers).for_peers()) as (_, address):
            for path in (server.cert, server.ca, dialler.key):
                path.unlink()
            assert await call(dialling.dial(address, "s1")) is None

    asyncio.run(run())


def test_a_failed_replacement_is_logged_once(tmp_path, authority):
    files = Files(tmp_path, "s1").write(authority)
    pem_files = PemFiles(files.cert, files.key, files.ca)
    files.cert.write_bytes(b"half")
    with capture_logs() as logged:
        assert [pem_files.refresh() for _ in range(3)] == [False] * 3
    assert [entry["event"] for entry in logged] == ["certificates are not replaced"]
    files.write(authority)
    assert [pem_files.refresh() for _ in range(2)] == [True, False]


# --- Files that are wrong from the beginning


def test_a_key_of_another_certificate_is_refused(tmp_path, authority):
    files = Files(tmp_path, "s1").write(authority)
    files.key.write_bytes(authority.issue("s1").key_pem)
    with pytest.raises(TlsError, match=r"s1-key\.pem"):
        Credentials(files.for_peers)


def test_an_authority_file_without_certificates_is_refused(tmp_path, authority):
    files = Files(tmp_path, "s1").write(authority)
    files.ca.write_bytes(b"nothing here\n")
    with pytest.raises(TlsError, match=r"s1-ca\.pem"):
        Credentials(files.for_clients(mutual=True)).for_clients()


def test_an_encrypted_key_is_refused_without_asking_for_a_password(tmp_path, authority):
    files = Files(tmp_path, "s1").write(authority)
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(TlsError, match="encrypted"):
        Credentials(files.for_peers)


def test_a_file_that_is_far_too_large_is_refused(tmp_path, authority):
    files = Files(tmp_path, "s1").write(authority)
    with files.ca.open("ab") as file:
        file.truncate(2 << 20)
    with pytest.raises(TlsError, match="larger than"):
        Credentials(files.for_peers)
