"""A link: what queued up is one frame, in order; frames end at a size; too long a queue or a silence closes it."""

import asyncio

import pytest
from structlog.testing import capture_logs

from ordercast.runtime.process.settings import PEER_MESSAGE_BYTES_MAX
from ordercast.runtime.transport import link as link_module
from ordercast.runtime.transport.link import PACKET_BYTES_MAX, SILENT_PINGS_MAX, Link
from ordercast.v1.frame_pb2 import Frame

PING = b""


class Wire:
    """Takes frames, or is stuck."""

    def __init__(self):
        self.written = []
        self.news = asyncio.Event()
        self.is_writable = True
        self.on_writable = None
        self.is_held = False
        self.bytes_read = 0
        self.lost = asyncio.Event()

    def write(self, data):
        self.written.append(data)
        self.news.set()

    def abort(self):
        self.lost.set()

    def resume(self):
        self.is_writable = True
        self.on_writable()

    @property
    def frames(self):
        frames = [Frame.FromString(data) for data in self.written if data != PING]
        return [[(section.domain, list(section.packets)) for section in frame.sections] for frame in frames]

    @property
    def packets(self):
        return [packet for frame in self.frames for _, packets in frame for packet in packets]

    async def has(self, packet):
        while packet not in self.packets:
            self.news.clear()
            await self.news.wait()


def run(story, queue_bytes_max=1000):
    async def told():
        async with asyncio.timeout(20):
            wire = Wire()
            link = Link("peer", 1, queue_bytes_max, wire, lambda size: None)
            try:
                await story(link, wire)
            finally:
                link.close()

    asyncio.run(told())


# ------------------------------------------------------------------------------------------------------- frames


def test_what_queued_up_is_one_frame_with_a_section_for_each_run_of_a_domain():
    async def story(link, wire):
        for domain, packet in (("d", b"1"), ("d", b"2"), ("e", b"3"), ("d", b"4")):
            link.send(domain, packet)
        await wire.has(b"4")
        assert wire.frames == [[("d", [b"1", b"2"]), ("e", [b"3"]), ("d", [b"4"])]]

    run(story)


def test_what_is_urgent_leaves_at_the_end_of_the_turn_in_which_it_was_said():
    async def story(link, wire):
        asyncio.get_running_loop().call_soon(link.send, "d", b"by another, in the same turn")
        link.send("d", b"1")
        assert wire.frames == []
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert wire.packets == [b"1", b"by another, in the same turn"]

    run(story)


def test_a_link_that_was_idle_wakes_up_again():
    async def story(link, wire):
        for packet in (b"1", b"2", b"3"):
            link.send("d", packet)
            await wire.has(packet)
        assert len(wire.frames) == 3

    run(story)


def test_a_frame_is_closed_when_it_has_enough_and_nothing_is_lost_or_reordered(monkeypatch):
    monkeypatch.setattr(link_module, "FRAME_BYTES_MAX", 10)
    packets = [bytes([65 + number]) * size for number, size in enumerate((4, 4, 4, 25, 1, 10, 2, 8))]

    async def story(link, wire):
        for packet in packets:
            link.send("d", packet)
        await wire.has(packets[-1])
        sizes = [[len(packet) for packet in frame[0][1]] for frame in wire.frames]
        assert sizes == [[4, 4], [4], [25], [1], [10], [2, 8]]
        assert wire.packets == packets

    run(story)


# ------------------------------------------------------------------------------------------------------ urgency


def test_what_is_not_urgent_travels_with_what_is_and_is_not_overtaken():
    async def story(link, wire):
        link.send("d", b"later", urgent=False)
        link.send("d", b"now")
        link.send("d", b"with it", urgent=False)
        await wire.has(b"with it")
        assert wire.frames == [[("d", [b"later", b"now", b"with it"])]]

    run(story)


def test_what_is_not_urgent_leaves_by_itself_if_nothing_else_does(monkeypatch):
    monkeypatch.setattr(link_module, "PATIENCE_S", 0.5)

    async def story(link, wire):
        for packet in (b"one", b"two"):
            link.send("d", packet, urgent=False)
            await asyncio.sleep(0)
            assert not wire.frames
        await wire.has(b"two")
        assert len(wire.frames) == 1

    run(story)


def test_a_closed_link_forgets_what_was_to_leave_soon(monkeypatch):
    monkeypatch.setattr(link_module, "PATIENCE_S", 0)

    async def story(link, wire):
        link.send("d", b"later", urgent=False)
        link.send("d", b"now")
        link.close()
        await asyncio.sleep(0.01)
        assert not wire.written

    run(story)


# -------------------------------------------------------------------------------------- a peer that reads slowly


def test_what_comes_while_the_wire_is_stuck_leaves_in_order_when_it_goes_on():
    async def story(link, wire):
        link.send("d", b"1")
        await wire.has(b"1")
        wire.is_writable = False
        link.send("d", b"2")
        await asyncio.sleep(0.01)
        link.send("d", b"3", urgent=False)
        await asyncio.sleep(0.02)
        assert wire.packets == [b"1"]
        wire.resume()
        assert wire.frames == [[("d", [b"1"])], [("d", [b"2", b"3"])]]

    run(story)


def test_no_more_is_written_than_the_wire_takes(monkeypatch):
    monkeypatch.setattr(link_module, "FRAME_BYTES_MAX", 1)

    async def story(link, wire):
        def write(data):
            wire.written.append(data)
            wire.is_writable = False

        wire.write = write
        for packet in (b"1", b"2", b"3"):
            link.send("d", packet)
        await asyncio.sleep(0)
        for taken in (1, 2, 3, 3):
            assert len(wire.frames) == taken
            wire.resume()
        assert wire.packets == [b"1", b"2", b"3"]

    run(story)


def test_a_peer_that_is_too_far_behind_has_its_link_closed_and_its_queue_dropped():
    async def story(link, wire):
        link.send("d", b"first")
        await wire.has(b"first")
        wire.is_writable = False
        link.send("d", bytes(1000))
        assert not link.is_closed
        link.send("d", b"x")
        assert link.is_closed
        assert wire.lost.is_set()
        link.send("d", b"after it")
        wire.resume()
        await asyncio.sleep(0)
        assert wire.packets == [b"first"]

    run(story)


def test_what_was_written_does_not_count_against_the_queue():
    async def story(link, wire):
        for number in range(10):
            packet = bytes([number]) * 900
            link.send("d", packet)
            await wire.has(packet)
        assert not link.is_closed

    run(story)


def test_one_packet_may_be_longer_than_the_queue_if_nothing_else_waits():
    async def story(link, wire):
        link.send("d", bytes(5000))
        await wire.has(bytes(5000))
        assert not link.is_closed

    run(story)


def test_the_longest_packet_fits_into_a_frame_that_the_other_side_takes():
    longest_domain = "d" * 63
    frame = Frame()
    frame.sections.add(domain=longest_domain, packets=[b"x"])
    # Two lengths, of the packet and of the section with it, take four bytes more if it is long.
    assert frame.ByteSize() + 2 * 4 + PACKET_BYTES_MAX <= PEER_MESSAGE_BYTES_MAX


def test_a_packet_that_fits_into_no_frame_is_not_lost_without_a_reset(monkeypatch):
    monkeypatch.setattr(link_module, "PACKET_BYTES_MAX", 100)

    async def story(link, wire):
        link.send("d", bytes(100))
        await wire.has(bytes(100))
        with capture_logs() as logged:
            link.send("d", bytes(101))
        assert link.is_closed
        assert wire.lost.is_set()
        assert [(entry["log_level"], entry["peer"], entry["bytes"]) for entry in logged] == [
            ("error", "peer", 101)
        ]

    run(story)


# --------------------------------------------------------------------------------------------- pings and silence


def test_who_has_nothing_to_say_pings(monkeypatch):
    monkeypatch.setattr(link_module, "PING_S", 0.001)
    monkeypatch.setattr(link_module, "SILENT_PINGS_MAX", 1 << 30)

    async def story(link, wire):
        while wire.written.count(PING) < 3:
            wire.news.clear()
            await wire.news.wait()
        assert wire.frames == []

    run(story)


def test_who_has_said_something_does_not_ping_as_well():
    async def story(link, wire):
        link.send("d", b"1")
        await wire.has(b"1")
        link._look_after()
        assert PING not in wire.written
        link._look_after()
        assert wire.written.count(PING) == 1

    run(story)


def test_a_peer_that_is_silent_is_taken_for_gone(monkeypatch):
    monkeypatch.setattr(link_module, "PING_S", 0.001)

    async def story(link, wire):
        await wire.lost.wait()
        assert link.is_closed

    run(story)


def test_a_silence_that_ends_in_time_does_not_count():
    async def story(link, wire):
        for _ in range(3):
            for _ in range(SILENT_PINGS_MAX - 1):
                link._look_after()
            assert not link.is_closed
            wire.bytes_read += 1
            link._look_after()
        for _ in range(SILENT_PINGS_MAX):
            link._look_after()
        assert link.is_closed

    run(story)


def test_a_peer_is_not_silent_while_we_do_not_listen():
    async def story(link, wire):
        wire.is_held = True
        for _ in range(SILENT_PINGS_MAX * 2):
            link._look_after()
        assert not link.is_closed
        wire.is_held = False
        for _ in range(SILENT_PINGS_MAX - 1):
            link._look_after()
        assert not link.is_closed

    run(story)


# ------------------------------------------------------------------------------------------------------ the end


@pytest.mark.parametrize("how", ["closed", "lost"])
def test_behind_the_end_nothing_is_written(how, monkeypatch):
    monkeypatch.setattr(link_module, "PING_S", 0.001)
    monkeypatch.setattr(link_module, "PATIENCE_S", 0)

    async def story(link, wire):
        link.send("d", b"said in the same turn")
        link.send("d", b"said in the same turn", urgent=False)
        if how == "closed":
            link.close()
        else:
            wire.lost.set()
        link.send("d", b"said later")
        wire.resume()
        await asyncio.sleep(0.01)
        assert link.is_closed
        assert wire.frames == []

    run(story)


def test_a_closed_link_leaves_no_timer_behind():
    async def story(link, wire):
        link.send("d", b"1", urgent=False)
        link.close()
        loop = asyncio.get_running_loop()
        ours = [handle for handle in loop._scheduled if not handle.cancelled() and "Link" in repr(handle)]
        assert ours == []

    run(story)
