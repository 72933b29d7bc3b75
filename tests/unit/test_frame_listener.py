"""Where connections for frames come in: who gets in with a ticket, who is cut off, and what holds nobody up."""

import asyncio
import contextlib
import errno
import socket
import ssl

import pytest
from structlog.testing import capture_logs

from ordercast.local.cluster import free_ports
from ordercast.runtime.process.settings import TlsSettings
from ordercast.runtime.transport import frame_listener
from ordercast.runtime.transport.frame_listener import TICKET_BYTES, FrameListener
from ordercast.runtime.transport.server import ListenError
from ordercast.runtime.transport.tls import Credentials
from ordercast.runtime.transport.wire import LENGTH
from ordercast.v1.frame_pb2 import CHANNEL_DOMAINS, CHANNEL_MEMBERSHIP
from tests.tidy.rules import ROOT
from tests.unit.certificates import Authority

HOST = "127.0.0.1"
A = (CHANNEL_DOMAINS, "a")


def run(story, credentials=None):
    async def told():
        async with asyncio.timeout(30):
            listener = FrameListener(credentials or Credentials(TlsSettings()))
            listener.start(HOST, *free_ports(1))
            try:
                await story(listener)
            finally:
                await listener.stop()

    asyncio.run(told())


class Host:
    """Answers whoever is let in to it with its name, and then each frame with that frame."""

    def __init__(self, name=b"host"):
        self.name = name
        self.guests = 0

    async def welcome(self, wire):
        self.guests += 1
        wire.write(self.name)
        wire.start(wire.write)
        await wire.lost.wait()
        self.guests -= 1


class Guest:
    """Somebody who connects."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer

    def say(self, *frames):
        for frame in frames:
            self.writer.write(LENGTH.pack(len(frame)) + frame)

    async def hears(self):
        (length,) = LENGTH.unpack(await self.reader.readexactly(LENGTH.size))
        return await self.reader.readexactly(length)

    async def is_cut_off(self):
        """With nothing said to it."""
        try:
            return await self.reader.read() == b""
        except OSError:  # Also a handshake that failed on the other side.
            return True


@contextlib.asynccontextmanager
async def connected(listener, tls=None):
    reader, writer = await asyncio.open_connection(
        HOST, listener.port, ssl=tls, server_hostname="s1" if tls else None
    )
    try:
        yield Guest(reader, writer)
    finally:
        writer.transport.abort()


async def is_let_in(listener, ticket, tls=None):
    try:
        async with connected(listener, tls) as guest:
            guest.say(ticket)
            return await guest.hears() == b"host"
    except (asyncio.IncompleteReadError, OSError):
        return False


# ------------------------------------------------------------------------------------------------------- tickets


def test_a_ticket_leads_to_whom_it_is_for_with_all_that_follows_it():
    async def story(listener):
        one = listener.ticket(A, Host(b"one").welcome)
        two = listener.ticket((CHANNEL_DOMAINS, "b"), Host(b"two").welcome)
        async with connected(listener) as first, connected(listener) as second:
            second.say(two, b"early")
            first.say(one)
            assert [await first.hears(), await second.hears(), await second.hears()] == [b"one", b"two", b"early"]
            first.say(b"more")
            assert await first.hears() == b"more"

    run(story)


def test_a_ticket_opens_one_connection():
    async def story(listener):
        ticket = listener.ticket(A, Host().welcome)
        assert await is_let_in(listener, ticket)
        assert not await is_let_in(listener, ticket)

    run(story)


@pytest.mark.parametrize(
    "shown", [b"", bytes(TICKET_BYTES), bytes(TICKET_BYTES - 1), bytes(64), bytes(65), bytes(1 << 20)]
)
def test_whatever_is_no_ticket_opens_nothing(shown):
    async def story(listener):
        ticket = listener.ticket(A, Host().welcome)
        assert not await is_let_in(listener, shown)
        assert await is_let_in(listener, ticket)

    run(story)


def test_a_part_of_a_ticket_opens_nothing():
    async def story(listener):
        ticket = listener.ticket(A, Host().welcome)
        assert not await is_let_in(listener, ticket[:-1])
        assert not await is_let_in(listener, ticket + b"x")

    run(story)


def test_a_ticket_is_not_good_for_long(monkeypatch):
    async def story(listener):
        with monkeypatch.context() as soon:
            soon.setattr(frame_listener, "TICKET_S_MAX", 0)
            ticket = listener.ticket(A, Host().welcome)
        assert not await is_let_in(listener, ticket)

    run(story)


def test_a_caller_that_calls_again_makes_its_own_earlier_ticket_void_and_nobody_elses():
    """So a caller that calls on and on and never connects keeps nobody out, and takes no memory."""

    async def story(listener):
        others = [(CHANNEL_DOMAINS, "b"), (CHANNEL_MEMBERSHIP, "a")]
        tickets = [listener.ticket(other, Host().welcome) for other in others]
        earlier = [listener.ticket(A, Host().welcome) for _ in range(2000)]
        latest = listener.ticket(A, Host().welcome)
        assert len(listener._tickets) == 3
        assert not await is_let_in(listener, earlier[-1])
        for ticket in (latest, *tickets):
            assert await is_let_in(listener, ticket)

    run(story)


# ----------------------------------------------------------------------------------------------------- strangers


@pytest.mark.parametrize("said", [b"", LENGTH.pack(16), LENGTH.pack(16) + bytes(15)])
def test_who_does_not_show_a_ticket_in_time_is_cut_off(monkeypatch, said):
    monkeypatch.setattr(frame_listener, "TICKET_S_MAX", 0.05)

    async def story(listener):
        async with connected(listener) as guest:
            guest.writer.write(said)
            assert await guest.is_cut_off()

    run(story)


@pytest.mark.parametrize("limit", ["STRANGERS_MAX", "STRANGERS_PER_ADDRESS_MAX"])
def test_when_there_are_too_many_strangers_the_oldest_go_and_a_member_gets_in(monkeypatch, limit):
    async def story(listener):
        monkeypatch.setattr(frame_listener, limit, 3)
        # All of them are there before the listener gets a turn.
        strangers = [socket.create_connection((HOST, listener.port)) for _ in range(10)]
        for stranger in strangers:
            stranger.setblocking(False)
        loop = asyncio.get_running_loop()
        for stranger in strangers[:-3]:
            with contextlib.suppress(ConnectionError):
                assert await loop.sock_recv(stranger, 1) == b""
        for stranger in strangers[-3:]:
            with pytest.raises(BlockingIOError):
                stranger.recv(1)
        assert await is_let_in(listener, listener.ticket(A, Host().welcome)), "while the others still wait"
        for stranger in strangers:
            stranger.close()
        while listener._strangers:
            await asyncio.sleep(0)

    run(story)


def test_of_too_many_strangers_those_from_where_a_member_called_go_last(monkeypatch):
    async def story(listener):
        monkeypatch.setattr(frame_listener, "STRANGERS_MAX", 4)
        listener.ticket(A, Host().welcome, "10.0.0.1")
        waiting = {asyncio.create_task(asyncio.sleep(60)): f"10.0.0.{number}" for number in (1, 1, 1, 2)}
        listener._strangers = dict(waiting)
        listener._make_room("10.0.0.3")
        assert list(listener._strangers.values()) == ["10.0.0.1"] * 3
        for task in waiting:
            task.cancel()

    run(story)


def test_who_was_let_in_is_no_stranger_any_more(monkeypatch):
    monkeypatch.setattr(frame_listener, "STRANGERS_MAX", 1)

    async def story(listener):
        async with connected(listener) as first:
            first.say(listener.ticket(A, Host().welcome))
            assert await first.hears() == b"host"
            assert await is_let_in(listener, listener.ticket((CHANNEL_DOMAINS, "b"), Host().welcome))

    run(story)


def test_connections_that_wait_to_be_taken_do_not_keep_the_process_from_its_work():
    async def story(listener):
        loop = asyncio.get_running_loop()
        waiting = 1000

        async def accept(_):
            """As a backlog that is never empty: it returns without waiting."""
            nonlocal waiting
            if not waiting:
                await asyncio.Event().wait()
            waiting -= 1
            here, there = socket.socketpair()
            there.close()
            return here, ""

        loop.sock_accept = accept
        accepting = asyncio.create_task(listener._accept_all(listener._socket))
        for _ in range(5):
            await asyncio.sleep(0)
        assert waiting > 900
        accepting.cancel()

    run(story)


# ------------------------------------------------------------------------------------------- what must go on


def test_a_process_without_file_descriptors_takes_connections_again_when_it_has_some(monkeypatch):
    monkeypatch.setattr(frame_listener, "ACCEPT_AGAIN_S", 0.01)

    async def story(listener):
        loop = asyncio.get_running_loop()
        accept, failures = (
            loop.sock_accept,
            [OSError(errno.EMFILE, "too many"), OSError(errno.ECONNABORTED, "gone")],
        )

        async def failing(listening):
            if failures:
                raise failures.pop()
            return await accept(listening)

        loop.sock_accept = failing
        with capture_logs() as logged:
            assert await is_let_in(listener, listener.ticket(A, Host().welcome))
        assert failures == []
        assert [entry["event"] for entry in logged] == ["cannot take a connection"] * 2

    run(story)


def test_a_welcome_that_fails_ends_that_connection_and_no_other():
    async def story(listener):
        async def surprise(wire):
            raise RuntimeError("a surprise")

        with capture_logs() as logged:
            assert not await is_let_in(listener, listener.ticket(A, surprise))
        assert [entry["why"] for entry in logged] == ["RuntimeError('a surprise')"]
        assert await is_let_in(listener, listener.ticket(A, Host().welcome))

    run(story)


def test_a_connection_ends_when_its_welcome_does():
    async def story(listener):
        async def short(wire):
            pass

        async with connected(listener) as guest:
            guest.say(listener.ticket(A, short))
            assert await guest.is_cut_off()

    run(story)


def test_a_stop_ends_all_connections_and_frees_the_port():
    async def story(listener):
        host = Host()
        async with connected(listener) as guest, connected(listener) as stranger:
            guest.say(listener.ticket(A, host.welcome))
            assert await guest.hears() == b"host"
            await listener.stop()
            assert await guest.is_cut_off()
            assert await stranger.is_cut_off()
        assert listener._tasks == set()
        again = FrameListener(Credentials(TlsSettings()))
        assert again.start(HOST, listener.port) == listener.port
        await again.stop()

    run(story)


def test_a_port_that_is_in_use_is_named():
    async def story(listener):
        with pytest.raises(ListenError, match=f"{HOST}:{listener.port}"):
            FrameListener(Credentials(TlsSettings())).start(HOST, listener.port)

    run(story)


def test_who_listens_everywhere_hears_both_kinds_of_addresses():
    if not socket.has_dualstack_ipv6():
        with (ROOT / ".left-out").open("a") as left_out:
            left_out.write("frames over IPv4 to a process that listens at [::]: there is no IPv6 here\n")
        pytest.skip("no IPv6 here")

    async def story(_):
        everywhere = FrameListener(Credentials(TlsSettings()))
        everywhere.start("::", 0)
        try:
            assert await is_let_in(everywhere, everywhere.ticket(A, Host().welcome))
        finally:
            await everywhere.stop()

    run(story)


# ----------------------------------------------------------------------------------------------------------- TLS


@pytest.fixture(scope="module")
def authority():
    return Authority("ours")


@pytest.fixture
def credentials(tmp_path, authority):
    cert, key, ca = (tmp_path / name for name in ("cert.pem", "key.pem", "ca.pem"))
    authority.issue_peer("s1", ["s1"]).write(cert, key)
    ca.write_bytes(authority.pem)
    return Credentials(TlsSettings(peer_cert=cert, peer_key=key, peer_ca=ca))


def as_guest(authority, pair=None, folder=None):
    """Of whom the listener's certificate is not the question."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authority.pem.decode())
    if pair is not None:
        pair.write(folder / "guest.crt", folder / "guest.key")
        context.load_cert_chain(folder / "guest.crt", folder / "guest.key")
    return context


def test_with_tls_a_ticket_needs_a_certificate_of_the_peers_authority(tmp_path, authority, credentials):
    async def story(listener):
        ticket = listener.ticket(A, Host().welcome)
        stranger = Authority("another").issue_peer("a", ["a"])
        assert not await is_let_in(listener, ticket)
        assert not await is_let_in(listener, ticket, as_guest(authority))
        assert not await is_let_in(listener, ticket, as_guest(authority, stranger, tmp_path))
        assert not await is_let_in(listener, bytes(16), credentials.dialling())
        assert await is_let_in(listener, ticket, as_guest(authority, authority.issue("a", ["a"]), tmp_path))

    run(story, credentials)


def test_with_tls_the_ticket_of_another_process_opens_nothing_and_stays_good(tmp_path, authority, credentials):
    async def story(listener):
        ticket = listener.ticket(A, Host().welcome)
        thief = authority.issue("b", ["b", "aa"])
        assert not await is_let_in(listener, ticket, as_guest(authority, thief, tmp_path))
        assert await is_let_in(listener, ticket, as_guest(authority, authority.issue("a"), tmp_path))

    run(story, credentials)


@pytest.mark.parametrize(
    "said", [b"", b"\x16\x03\x01\x02\x00", b"\x16\x03\x01\x00\x05hello", b"GET / HTTP/1.1\r\n"]
)
def test_a_handshake_that_does_not_get_on_is_cut_off(monkeypatch, credentials, said):
    monkeypatch.setattr(frame_listener, "TICKET_S_MAX", 0.1)

    async def story(listener):
        async with connected(listener) as guest:
            guest.writer.write(said)
            assert await guest.is_cut_off()
        while listener._strangers:
            await asyncio.sleep(0)

    run(story, credentials)


def test_many_frames_go_both_ways_over_tls_although_they_are_held_now_and_then(credentials):
    frames = [bytes([number % 256]) * (number * 997 % 100_000) for number in range(200)]

    async def story(listener):
        taken = []
        loop = asyncio.get_running_loop()

        async def welcome(wire):
            def take(frame):
                taken.append(frame)
                wire.write(frame)
                if len(taken) % 7 == 0:
                    wire.hold()
                    loop.call_later(0.001, wire.go_on)

            wire.start(take)
            await wire.lost.wait()

        async with connected(listener, credentials.dialling()) as guest:
            guest.say(listener.ticket((CHANNEL_DOMAINS, "s1"), welcome), *frames)
            assert [await guest.hears() for _ in frames] == frames
        assert taken == frames

    run(story, credentials)
