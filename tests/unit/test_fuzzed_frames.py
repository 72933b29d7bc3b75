"""Bytes of a connection with anything in them: frames are handed out whole, or the connection ends."""

import asyncio
from random import Random
from typing import Any

import pytest
from google.protobuf.message import DecodeError

from ordercast.core import packets
from ordercast.runtime.transport import wire
from ordercast.runtime.transport.wire import FIRST_BYTES_MAX, LENGTH, Wire
from ordercast.v1.frame_pb2 import Frame
from ordercast.v1.scalatom_pb2 import HaveAsk, Pull
from tests.unit.fuzzing import FUZZED_INPUTS, change_bytes, with_an_end
from tests.unit.test_host import rigged

TICKET = b"ticket"
LONGEST = 4096


class Transport:
    """Takes note of the end."""

    def __init__(self) -> None:
        self.is_aborted = False

    def set_write_buffer_limits(self, high: int) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def abort(self) -> None:
        self.is_aborted = True


def a_frame(random: Random) -> bytes:
    said = [packets.encode(random.choice([Pull, HaveAsk])(id=random.randbytes(16))) for _ in range(3)]
    return packets.frame("d", said)


def framed(*frames: bytes) -> bytes:
    return b"".join(LENGTH.pack(len(frame)) + frame for frame in frames)


def converse(random: Random) -> list[bytes]:
    """One connection, read in pieces of any length. What its frames were."""
    transport, taken = Transport(), []
    connection = Wire()
    connection.connection_made(transport)  # type: ignore[arg-type]  # it has what is needed of one
    data = change_bytes(framed(TICKET, a_frame(random), a_frame(random)), random)
    while data and not connection.lost.is_set():
        at = random.randrange(1, len(data) + 1)
        connection.data_received(data[:at])
        data = data[at:]
        if connection._first.done() and connection._receive is None and not connection.lost.is_set():
            assert len(connection._first.result()) <= FIRST_BYTES_MAX
            connection.start(taken.append)
        assert len(connection._buffer) <= LONGEST + LENGTH.size, "no more than a frame waits for its end"
    assert transport.is_aborted == connection.lost.is_set()
    assert not (connection.lost.is_set() and connection._buffer), "what is over is forgotten"
    connection.abort()
    return taken


async def throw(directory: Any, count: int) -> int:
    """At connections, and what comes of them at a host: how many packets it got, or refused."""
    random = Random("frames")
    async with rigged(directory) as rig:
        rig.host.start("d", 1, [])
        for _ in range(count):
            for data in converse(random):
                try:
                    sections = Frame.FromString(data).sections
                except DecodeError:
                    continue
                for section in sections:
                    rig.host.receive(section.domain, "peer", 1, section.packets)
            await rig.host.caught_up()
        assert not rig.broken
        assert len(rig.host.refusals) <= 300
        return len(rig.machine.told) + len(rig.sibling.told) + sum(rig.host.refusals.values())


def fuzz(directory: Any, count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(wire, "PEER_MESSAGE_BYTES_MAX", LONGEST)
    return asyncio.run(throw(directory, count))


def test_connections_and_hosts_survive_whatever_comes(tmp_path, monkeypatch):
    with with_an_end():
        assert fuzz(tmp_path, 2000, monkeypatch) > 1000


@pytest.mark.long
def test_connections_and_hosts_survive_a_great_deal_of_it(tmp_path, monkeypatch):
    fuzz(tmp_path, FUZZED_INPUTS, monkeypatch)
