"""Bytes that are no calls, and connections that say nothing, do not hurt a server."""

import asyncio
import contextlib
import socket
import struct

import pytest

from ordercast.v1 import membership_pb2
from ordercast.v1.membership_pb2_grpc import (
    MembershipServiceStub,
)
from tests.unit.grpc_serving import (
    CALL_S,
    SERVICE,
    beat,
    dialled,
    serving,
)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def h2_frame(kind, flags, stream, payload, length=None):
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A header that is in no table."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


SETTINGS = h2_frame(4, 0, 0, b"")
CALL = h2_frame(
    1,
    4,
    1,
    literal(b":method", b"POST")
    + literal(b":scheme", b"http")
    + literal(b":path", f"/{SERVICE.full_name}/Heartbeat".encode())
    + literal(b":authority", b"here")
    + literal(b"te", b"trailers")
    + literal(b"content-type", b"application/grpc"),
)

BAD_BYTES = {
    "nothing": b"",
    "zeros": b"\0" * 4096,
    "noise": bytes(range(256)) * 64,
    "http1": b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
    "tls": bytes.fromhex("16030100050100000100") + b"\0" * 64,
    "half_a_preface": PREFACE[:10],
    "noise_after_the_preface": PREFACE + b"\xff" * 1024,
    "huge_frame": PREFACE + SETTINGS + h2_frame(0, 0, 1, b"x" * 100, length=0xFFFFFF),
    "bad_headers": PREFACE + SETTINGS + h2_frame(1, 4, 1, b"\xff" * 50),
    "data_without_a_call": PREFACE + SETTINGS + h2_frame(0, 0, 99, b"x" * 10),
    "huge_message": PREFACE + SETTINGS + CALL + h2_frame(0, 0, 1, b"\0\xff\xff\xff\xff" + b"x" * 10),
    "bad_message": PREFACE + SETTINGS + CALL + h2_frame(0, 1, 1, b"\0\0\0\0\x02\xff\xff"),
    "half_a_message": PREFACE + SETTINGS + CALL + h2_frame(0, 1, 1, b"\0\0\0\0\x10ab"),
}


def throw(port, data):
    """Sends it all, and waits until the server has answered, hung up, or found nothing to say."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=CALL_S)
    with connection, contextlib.suppress(ConnectionError):
        connection.sendall(data)
        # It fails if the server has hung up already, which is a good answer to most of this.
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass


@pytest.mark.parametrize("name", BAD_BYTES)
def test_bad_bytes_do_not_hurt_the_server(name):
    async def run():
        async with serving() as (_, _, channel, port):
            watch = MembershipServiceStub(channel).Watch(membership_pb2.WatchRequest())
            await watch.read()
            for _ in range(3):
                await asyncio.to_thread(throw, port, BAD_BYTES[name])
            assert await beat(channel) == 7
            async with dialled(port) as fresh:
                assert await beat(fresh) == 7
            assert not watch.done()
            watch.cancel()

    asyncio.run(run())


def test_a_message_that_claims_to_be_huge_is_refused_by_its_length():
    async def run():
        async with serving() as (_, _, _, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(BAD_BYTES["huge_message"])
            answer = b""
            # Without the rest of the message: the server must not wait for it.
            while b"larger than max" not in answer:
                part = await asyncio.wait_for(reader.read(65536), CALL_S)
                assert part, answer
                answer += part
            writer.close()

    asyncio.run(run())


def test_connections_that_say_nothing_do_not_keep_others_out():
    async def run():
        async with serving() as (_, _, channel, port):
            silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
            assert await beat(channel) == 7
            async with dialled(port) as fresh:
                assert await beat(fresh) == 7
            for connection in silent:
                connection.close()

    asyncio.run(run())
