"""A link: what queued up is one frame, in order; frames end at a size; too long a queue closes it."""

import asyncio

from ordercast.runtime import link as link_module
from ordercast.runtime.link import Link
from ordercast.v1.frame_pb2 import Frame


class Wire:
    """Takes a frame at a time, and only when it is let."""

    def __init__(self):
        self.frames = []
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.taken = asyncio.Event()

    async def write(self, data):
        await self.is_open.wait()
        self.frames.append(Frame.FromString(data))
        self.taken.set()

    async def has(self, packet):
        while packet not in [p for frame in self.frames for section in frame.sections for p in section.packets]:
            self.taken.clear()
            await self.taken.wait()


def content(frame):
    return [(section.domain, list(section.packets)) for section in frame.sections]


def run(story, queue_bytes_max=1000):
    async def told():
        async with asyncio.timeout(20):
            link, wire = Link("peer", 1, queue_bytes_max), Wire()
            writing = asyncio.create_task(link.write(wire.write))
            try:
                await story(link, wire, writing)
            finally:
                writing.cancel()
                await asyncio.gather(writing, return_exceptions=True)

    asyncio.run(told())


def test_what_queued_up_is_one_frame_with_a_section_for_each_run_of_a_domain():
    async def story(link, wire, writing):
        for domain, packet in (("d", b"1"), ("d", b"2"), ("e", b"3"), ("d", b"4")):
            link.send(domain, packet)
        await wire.has(b"4")
        assert [content(frame) for frame in wire.frames] == [[("d", [b"1", b"2"]), ("e", [b"3"]), ("d", [b"4"])]]

    run(story)


def test_what_comes_while_a_frame_is_written_is_the_next_frame():
    async def story(link, wire, writing):
        wire.is_open.clear()
        link.send("d", b"1")
        await asyncio.sleep(0)
        link.send("d", b"2")
        link.send("d", b"3")
        wire.is_open.set()
        await wire.has(b"3")
        assert [content(frame) for frame in wire.frames] == [[("d", [b"1"])], [("d", [b"2", b"3"])]]

    run(story)


def test_a_link_that_was_idle_wakes_up_again():
    async def story(link, wire, writing):
        for packet in (b"1", b"2", b"3"):
            link.send("d", packet)
            await wire.has(packet)
        assert len(wire.frames) == 3

    run(story)


def test_a_frame_is_closed_when_it_has_enough_and_nothing_is_lost_or_reordered(monkeypatch):
    monkeypatch.setattr(link_module, "FRAME_BYTES_MAX", 10)
    packets = [bytes([65 + number]) * size for number, size in enumerate((4, 4, 4, 25, 1, 10, 2, 8))]

    async def story(link, wire, writing):
        for packet in packets:
            link.send("d", packet)
        await wire.has(packets[-1])
        assert [[len(p) for p in frame.sections[0].packets] for frame in wire.frames] == [
            [4, 4],
            [4],
            [25],
            [1],
            [10],
            [2, 8],
        ]
        assert [p for frame in wire.frames for p in frame.sections[0].packets] == packets

    run(story)


def test_a_peer_that_is_too_far_behind_has_its_link_closed_and_its_queue_dropped():
    async def story(link, wire, writing):
        wire.is_open.clear()
        link.send("d", b"first")
        await asyncio.sleep(0)
        link.send("d", bytes(1000))
        assert not link.is_closed
        link.send("d", b"x")
        assert link.is_closed
        assert link.closed.is_set()
        link.send("d", b"after it")
        wire.is_open.set()
        await writing
        assert [content(frame) for frame in wire.frames] == [[("d", [b"first"])]]

    run(story)


def test_what_was_written_does_not_count_against_the_queue():
    async def story(link, wire, writing):
        for number in range(10):
            packet = bytes([number]) * 900
            link.send("d", packet)
            await wire.has(packet)
        assert not link.is_closed

    run(story)


def test_a_closed_link_ends_its_writer_at_once():
    async def story(link, wire, writing):
        await asyncio.sleep(0)
        link.close()
        await writing
        link.send("d", b"1")
        assert wire.frames == []

    run(story)


def test_what_is_not_urgent_travels_with_what_is_and_is_not_overtaken():
    async def story(link, wire, writing):
        link.send("d", b"later", urgent=False)
        link.send("d", b"now")
        link.send("d", b"with it", urgent=False)
        await wire.has(b"with it")
        assert [content(frame) for frame in wire.frames] == [[("d", [b"later", b"now", b"with it"])]]

    run(story)


def test_what_is_not_urgent_leaves_by_itself_if_nothing_else_does():
    async def story(link, wire, writing):
        for packet in (b"one", b"two"):
            link.send("d", packet, urgent=False)
            await asyncio.sleep(0)
            assert not wire.frames
        await wire.has(b"two")
        assert len(wire.frames) == 1

    run(story)


def test_a_closed_link_forgets_what_was_to_leave_soon():
    async def story(link, wire, writing):
        link.send("d", b"later", urgent=False)
        link.close()
        await writing
        assert not wire.frames

    run(story)
