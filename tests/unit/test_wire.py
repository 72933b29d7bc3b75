"""A wire: frames come out whole and in order, however the bytes come in; and nothing piles up."""

import asyncio
import socket

import pytest

from ordercast.runtime.transport import wire as wire_module
from ordercast.runtime.transport.wire import FIRST_BYTES_MAX, LENGTH, Wire

TICKET = b"the ticket"


class Transport:
    """As asyncio's, as far as a wire knows it; whoever is on the other side takes everything."""

    def __init__(self):
        self.is_reading = True
        self.is_aborted = False
        self.written = b""

    def set_write_buffer_limits(self, high):
        pass

    def pause_reading(self):
        assert self.is_reading
        self.is_reading = False

    def resume_reading(self):
        assert not self.is_reading
        self.is_reading = True

    def write(self, data):
        self.written += data

    def abort(self):
        self.is_aborted = True


def framed(*frames):
    return b"".join(LENGTH.pack(len(frame)) + frame for frame in frames)


def connected():
    wire, transport = Wire(), Transport()
    wire.connection_made(transport)
    return wire, transport


def started(receive):
    """Behind the first frame."""
    wire, transport = connected()
    wire.data_received(framed(TICKET))
    wire.start(receive)
    return wire, transport


def run(story):
    async def told():
        async with asyncio.timeout(20):
            await story()

    asyncio.run(told())


# ------------------------------------------------------------------------------------------------------- frames


#: The third looks like the beginning of a frame, and the last like its end.
FRAMES = [b"one", b"", b"\x03\x00\x00\x00", bytes(300), b"\x00"]


def test_frames_come_out_whole_wherever_the_bytes_are_cut():
    async def story():
        data = framed(TICKET, *FRAMES)
        for cut in range(len(data) + 1):
            wire, _ = connected()
            taken = []
            wire.data_received(data[:cut])
            if cut >= len(framed(TICKET)):
                wire.start(taken.append)
                wire.data_received(data[cut:])
            else:
                wire.data_received(data[cut:])
                wire.start(taken.append)
            assert await wire.first() == TICKET
            assert taken == FRAMES

    run(story)


def test_frames_come_out_whole_if_each_byte_comes_alone():
    async def story():
        taken = []
        wire, _ = started(taken.append)
        for at, byte in enumerate(framed(*FRAMES)):
            wire.data_received(bytes([byte]))
            assert wire.bytes_read == len(framed(TICKET)) + at + 1
        assert taken == FRAMES

    run(story)


def test_several_frames_in_one_read_are_handed_out_at_once():
    async def story():
        taken = []
        wire, _ = started(taken.append)
        frames = [str(number).encode() for number in range(1000)]
        wire.data_received(framed(*frames) + framed(b"the rest")[:-1])
        assert taken == frames
        wire.data_received(b"t")
        assert taken == [*frames, b"the rest"]

    run(story)


def test_what_is_written_is_read_as_it_was():
    async def story():
        taken = []
        reading, _ = started(taken.append)
        writing, transport = connected()
        for frame in FRAMES:
            writing.write(frame)
        reading.data_received(transport.written)
        assert taken == FRAMES

    run(story)


def test_a_frame_that_is_too_long_ends_the_connection_before_it_is_read(monkeypatch):
    monkeypatch.setattr(wire_module, "PEER_MESSAGE_BYTES_MAX", 100)

    async def story():
        taken = []
        wire, transport = started(taken.append)
        wire.data_received(framed(b"before it", bytes(100)) + LENGTH.pack(101) + b"the beginning of it")
        assert taken == [b"before it", bytes(100)]
        assert transport.is_aborted
        assert wire.lost.is_set()

    run(story)


# ---------------------------------------------------------------------------------------------- the first frame


@pytest.mark.parametrize("length", [FIRST_BYTES_MAX + 1, 1 << 20, (1 << 32) - 1])
def test_before_the_other_side_is_known_nothing_long_is_taken(length):
    async def story():
        wire, transport = connected()
        wire.data_received(LENGTH.pack(length))
        assert transport.is_aborted
        with pytest.raises(EOFError):
            await wire.first()

    run(story)


def test_a_first_frame_may_be_as_long_as_the_limit():
    async def story():
        wire, _ = connected()
        wire.data_received(framed(bytes(FIRST_BYTES_MAX)))
        assert await wire.first() == bytes(FIRST_BYTES_MAX)

    run(story)


def test_a_connection_that_ends_before_the_first_frame_says_so_whether_somebody_waits_or_not():
    async def story():
        complaints = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        wire, _ = connected()
        waiting = asyncio.create_task(wire.first())
        await asyncio.sleep(0)
        wire.data_received(framed(TICKET)[:-1])
        wire.connection_lost(None)
        with pytest.raises(EOFError):
            await waiting
        with pytest.raises(EOFError):
            await wire.first()
        unwatched, _ = connected()
        unwatched.connection_lost(None)
        del unwatched, wire, waiting
        assert complaints == []

    run(story)


def test_what_follows_the_first_frame_is_not_read_on_until_somebody_takes_it():
    async def story():
        wire, transport = connected()
        wire.data_received(framed(TICKET))
        assert transport.is_reading  # Or nobody would notice that the connection ends.
        wire.data_received(framed(b"early", b"too"))
        assert not transport.is_reading
        taken = []
        wire.start(taken.append)
        assert transport.is_reading
        wire.data_received(framed(b"in time"))
        assert taken == [b"early", b"too", b"in time"]

    run(story)


# -------------------------------------------------------------------------------------------------- hold, go on


def test_what_is_held_comes_out_in_order_when_it_goes_on():
    async def story():
        taken = []

        def take(frame):
            taken.append(frame)
            if frame.startswith(b"hold"):
                wire.hold()

        wire, transport = started(take)
        wire.data_received(framed(b"1", b"hold 2", b"3", b"hold 4", b"5"))
        assert taken == [b"1", b"hold 2"]
        assert wire.is_held
        assert not transport.is_reading
        wire.go_on()
        assert taken == [b"1", b"hold 2", b"3", b"hold 4"]
        assert not transport.is_reading
        wire.go_on()
        wire.data_received(framed(b"6"))
        assert taken == [b"1", b"hold 2", b"3", b"hold 4", b"5", b"6"]
        assert not wire.is_held
        assert transport.is_reading

    run(story)


def test_to_hold_or_to_go_on_twice_is_as_once():
    async def story():
        taken = []
        wire, _ = started(taken.append)
        wire.hold()
        wire.hold()
        wire.go_on()
        wire.go_on()
        wire.data_received(framed(b"1"))
        assert taken == [b"1"]

    run(story)


# ------------------------------------------------------------------------------------------------------ the end


def test_behind_the_end_nothing_comes_out_and_nothing_is_written():
    async def story():
        taken = []

        def take(frame):
            taken.append(frame)
            wire.abort()

        wire, transport = started(take)
        wire.data_received(framed(b"the last", b"not this"))
        wire.data_received(framed(b"nor this"))
        wire.go_on()
        wire.write(b"unsaid")
        assert taken == [b"the last"]
        assert transport.written == b""

    run(story)


def test_what_was_held_when_the_connection_ended_is_gone():
    async def story():
        taken = []
        wire, transport = started(taken.append)
        wire.hold()
        wire.data_received(framed(b"in flight"))
        wire.connection_lost(None)
        wire.go_on()
        assert taken == []
        assert not transport.is_reading

    run(story)


def test_a_side_that_says_no_more_and_does_not_read_is_gone_at_once():
    """Asyncio would wait until the other side has read what was written, and that may be never."""

    async def story():
        here, there = socket.socketpair()
        wire = Wire()
        await asyncio.get_running_loop().connect_accepted_socket(lambda: wire, here)
        while wire.is_writable:
            wire.write(bytes(1 << 20))
        there.shutdown(socket.SHUT_WR)
        await wire.lost.wait()
        there.close()

    run(story)


def test_who_writes_is_told_when_there_is_room_for_more():
    async def story():
        here, there = socket.socketpair()
        wire = Wire()
        await asyncio.get_running_loop().connect_accepted_socket(lambda: wire, here)
        writable = asyncio.Event()
        wire.on_writable = writable.set
        written = 0
        while wire.is_writable:
            wire.write(bytes(1 << 20))
            written += LENGTH.size + (1 << 20)
        there.setblocking(False)
        while written:
            written -= len(await asyncio.get_running_loop().sock_recv(there, 1 << 20))
        await writable.wait()
        assert wire.is_writable
        wire.abort()
        there.close()

    run(story)
