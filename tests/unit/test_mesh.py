"""The connections between processes, real ones: order, resets, overflow, room, injected cuts, TLS."""

import asyncio

import grpc
import pytest
from structlog.testing import capture_logs

from ordercast.runtime.process.settings import TlsSettings
from ordercast.runtime.transport.mesh import WELCOME
from tests.unit.certificates import Authority
from tests.unit.mesh_process import (
    QUEUE_BYTES_MAX,
    Process,
    call,
    connected,
    dial,
    dial_quickly_and_do_not_ping,
    frame,
    hello_of_a,
    overflow,
    packet,
    run,
    show,
)


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
    dial_quickly_and_do_not_ping(monkeypatch)


# ---------------------------------------------------------------------------------------------- order and resets


def test_what_is_sent_arrives_in_order_in_both_directions_behind_a_reset():
    async def story(a, b):
        await connected(a, b)
        for number in range(500):
            a.mesh.send("b", "d", packet(number))
            b.mesh.send("a", "d", packet(number))
            if number % 50 == 0:
                await asyncio.sleep(0)
        await a.hears(packet(499))
        await b.hears(packet(499))
        assert a.told == [("reset", "b", 1), *((packet(n), "b", 1) for n in range(500))]
        assert b.told == [("reset", "a", 1), *((packet(n), "a", 1) for n in range(500))]

    run(story)


def test_three_processes_have_one_connection_for_each_pair():
    async def story(a, b, c):
        await connected(a, b, c)
        for process in (a, b, c):
            others = sorted({"a", "b", "c"} - {process.name})
            assert sorted(process.mesh.connected()) == [(other, 1) for other in others]
        a.mesh.send("c", "d", b"to c")
        c.mesh.send("b", "d", b"to b")
        await c.hears(b"to c")
        await b.hears(b"to b")
        assert len(a.resets) == len(b.resets) == len(c.resets) == 2

    run(story, "abc")


def test_after_each_reconnection_a_reset_comes_before_the_first_packet():
    async def story(a, b):
        await connected(a, b)
        for round_ in range(1, 5):
            a.mesh.send("b", "d", packet(round_))
            b.mesh.send("a", "d", packet(round_))
            await a.hears(packet(round_))
            await b.hears(packet(round_))
            (a if round_ % 2 else b).mesh.close("b" if round_ % 2 else "a")
            await a.has_resets(round_ + 1)
            await b.has_resets(round_ + 1)
        for process in (a, b):
            kinds = [what[0] for what in process.told]
            assert kinds == ["reset", b"1", "reset", b"2", "reset", b"3", "reset", b"4", "reset"]

    run(story)


def test_to_a_peer_that_is_not_connected_nothing_is_sent():
    async def story(a, b):
        a.mesh.send("b", "d", b"too early")
        await connected(a, b)
        a.mesh.send("b", "d", b"in time")
        await b.hears(b"in time")
        assert [what[0] for what in b.told] == ["reset", b"in time"]

    run(story)


def test_a_peer_that_comes_back_is_a_new_incarnation():
    async def story(a, b):
        await connected(a, b)
        port = int(b.address.rpartition(":")[2])
        await b.stop()
        again = await Process("b", incarnation=2).start(port)
        try:
            await a.has_resets(2)
            await again.has_resets(1)
            again.mesh.send("a", "d", b"back")
            await a.hears(b"back")
            assert a.told == [("reset", "b", 1), ("reset", "b", 2), (b"back", "b", 2)]
        finally:
            await again.stop()

    run(story)


def test_a_connection_that_is_replaced_delivers_nothing_any_more():
    async def story(b):
        first = await dial(b, hello_of_a())
        await b.has_resets(1)
        second = await dial(b, hello_of_a())
        await b.has_resets(2)
        first.write(frame(b"old"))
        second.write(frame(b"new"))
        await b.hears(b"new")
        assert await first.read() is None
        assert [what[0] for what in b.told] == ["reset", "reset", b"new"]
        second.close()

    run(story, "b")


def test_an_older_life_of_a_peer_does_not_replace_the_newer_one():
    async def story(b):
        caller = await dial(b, hello_of_a(incarnation=5))
        await b.has_resets(1)
        assert await call(b, hello_of_a(incarnation=4)) == grpc.StatusCode.FAILED_PRECONDITION
        caller.write(frame(b"still here"))
        await b.hears(b"still here")
        assert b.resets == [("reset", "a", 5)]
        caller.close()

    run(story, "b")


def test_an_older_life_that_was_answered_before_the_newer_one_was_there_does_not_replace_it_either():
    async def story(b):
        gate = b.gate_check(2)
        newer = await show(b, (await call(b, hello_of_a(incarnation=5))).ticket)
        await gate.reached.wait()
        late = (await call(b, hello_of_a(incarnation=4))).ticket
        gate.open.set()
        assert await newer.read() == WELCOME
        assert await (await show(b, late)).read() is None
        newer.write(frame(b"still here"))
        await b.hears(b"still here")
        assert b.resets == [("reset", "a", 5)]
        newer.close()

    run(story, "b")


def test_a_queue_that_overflows_gives_a_reset_although_the_peer_does_not_read():
    async def story(a, b):
        await overflow(a, b)
        await b.until(lambda: b.mesh.connected())
        a.mesh.send("b", "d", b"after it")
        await b.hears(b"after it")
        assert b.told[b.told.index(("reset", "a", 1), 1) :][-1] == (b"after it", "a", 1)

    run(story)


def test_a_queue_that_overflows_ends_a_connection_whose_writer_is_stuck():
    async def story(b):
        caller = await dial(b, hello_of_a())
        # It does not read. What it says is heard, until the connection is given up for what it does not take.
        while b.mesh.connected():
            b.mesh.send("a", "d", bytes(100_000))
            await asyncio.sleep(0)
        caller.close()

    run(story, "b")


def test_while_there_is_no_room_nothing_more_is_taken():
    async def story(a, b):
        await connected(a, b)
        a.mesh.send("b", "d", b"first")
        await b.hears(b"first")
        b.room.clear()
        # The first without room is taken, and the next is left where it is.
        a.mesh.send("b", "d", b"second")
        await b.hears(b"second")
        a.mesh.send("b", "d", b"third")
        b.mesh.send("a", "d", b"the other way")
        await a.hears(b"the other way")
        assert b.told[-1][0] == b"second"
        b.room.set()
        await b.hears(b"third")

    run(story)


def test_all_that_waited_for_room_go_on_when_there_is_some_and_none_waits_behind_another():
    async def story(a, b, c):
        await connected(a, b, c)
        c.room.clear()
        for process in (a, b):
            process.mesh.send("c", "d", b"first of " + process.name.encode())
            await c.hears(b"first of " + process.name.encode())
            for number in range(10):
                process.mesh.send("c", "d", b"%d of " % number + process.name.encode())
                await asyncio.sleep(0)
        # From now on there is never room for more than what was handed out in one go.
        c.on_told = lambda _: c.room.clear()
        while len(c.told) < 2 + 2 * 11:
            c.room.set()
            await asyncio.sleep(0)
        taken = [what[0] for what in c.told[2:]]
        for name in (b"a", b"b"):
            in_order = [b"first of " + name, *(b"%d of " % number + name for number in range(10))]
            assert [packet for packet in taken if packet.endswith(name)] == in_order
        assert taken.index(b"5 of b") < taken.index(b"9 of a")
        assert taken.index(b"5 of a") < taken.index(b"9 of b")

    run(story, "abc")


def test_a_peer_that_comes_again_and_again_while_there_is_no_room_leaves_nothing_behind():
    async def story(b):
        b.room.clear()
        counts = []
        for number in range(1, 4):
            caller = await dial(b, hello_of_a())
            caller.write(frame(packet(number)))
            await b.hears(packet(number))
            caller.close()
            b.mesh.close("a")  # While nothing is read, it is not noticed that the caller is gone.
            # Those that are about to end are no matter.
            while counts and len(asyncio.all_tasks()) > counts[0]:
                await asyncio.sleep(0.01)
            counts.append(len(asyncio.all_tasks()))

    run(story, "b")


def test_what_comes_before_the_connection_is_open_arrives_behind_the_reset():
    async def story(b):
        gate = b.gate_check(2)
        caller = await show(b, (await call(b, hello_of_a())).ticket)
        for number in range(100):
            caller.write(frame(packet(number)))
        await caller.writer.drain()
        await gate.reached.wait()
        assert b.told == []
        gate.open.set()
        await b.hears(packet(99))
        assert b.told == [("reset", "a", 5), *((packet(number), "a", 5) for number in range(100))]
        caller.close()

    run(story, "b")


def test_a_connection_that_ended_while_it_was_judged_does_not_take_the_place_of_a_later_one():
    async def story(b):
        gate = b.gate_check(2)
        first = await show(b, (await call(b, hello_of_a())).ticket)
        await gate.reached.wait()
        first.close()
        second = await dial(b, hello_of_a())
        gate.open.set()
        second.write(frame(b"still here"))
        await b.hears(b"still here")
        assert [what[0] for what in b.told] == ["reset", b"still here"]
        second.close()

    run(story, "b")


def test_a_failure_with_a_frame_is_a_reset_and_not_a_gap():
    async def story(a, b):
        await connected(a, b)

        def told(what):
            if what[0] == b"2":
                b.on_told = lambda _: None
                raise RuntimeError("a surprise")

        b.on_told = told
        with capture_logs() as logged:
            for number in (1, 2, 3):
                a.mesh.send("b", "d", packet(number))
            await b.has_resets(2)
        await a.has_resets(2)
        a.mesh.send("b", "d", b"4")
        await b.hears(b"4")
        assert [what[0] for what in b.told] == ["reset", b"1", "reset", b"4"]
        assert [entry["why"] for entry in logged if entry["log_level"] == "warning"] == [
            "RuntimeError('a surprise')"
        ]

    run(story)


def test_a_failure_with_a_reset_leaves_no_connection_behind():
    async def story(b):
        def told(what):
            raise RuntimeError("a surprise")

        b.on_told = told
        caller = await dial(b, hello_of_a())
        assert await caller.read() is None
        assert b.mesh.connected() == []

    run(story, "b")


def test_who_is_no_longer_followed_is_hung_up_on():
    async def story(a, b, c):
        await connected(a, b, c)
        a.mesh.follow({"c": c.address})
        await b.until_gone("a")
        a.mesh.send("b", "d", b"lost")
        a.mesh.send("c", "d", b"kept")
        await c.hears(b"kept")
        assert a.mesh.connected() == [("c", 1)]
        assert len(c.resets) == 2

    run(story, "abc")


# ------------------------------------------------------------------------------------------------- injected cuts


def test_a_cut_loses_what_is_sent_and_its_end_is_a_reset():
    async def story(a, b):
        await connected(a, b)
        a.mesh.inject(frozenset(), frozenset({"b"}))
        a.mesh.send("b", "d", b"lost")
        b.mesh.send("a", "d", b"the other way")
        await a.hears(b"the other way")
        a.mesh.inject(frozenset(), frozenset())
        await a.has_resets(2)
        await b.has_resets(2)
        a.mesh.send("b", "d", b"healed")
        await b.hears(b"healed")
        assert [what[0] for what in b.told] == ["reset", "reset", b"healed"]

    run(story)


def test_who_is_deaf_hears_again_only_behind_a_reset():
    async def story(a, b):
        await connected(a, b)
        a.mesh.inject(frozenset({"b"}), frozenset())
        b.mesh.send("a", "d", b"unheard")
        a.mesh.send("b", "d", b"heard")
        await b.hears(b"heard")
        # Now the other way round: what was unheard is still lost, and nothing may follow without a word.
        a.mesh.inject(frozenset(), frozenset({"b"}))
        assert a.mesh.connected() == [] or a.mesh._links["b"].is_closed
        a.mesh.inject(frozenset(), frozenset())
        await a.has_resets(2)
        await b.has_resets(2)
        b.mesh.send("a", "d", b"healed")
        await a.hears(b"healed")
        assert [what[0] for what in a.told] == ["reset", "reset", b"healed"]

    run(story)


def test_nobody_is_dialled_or_let_in_over_a_cut():
    async def story(a, b):
        b.mesh.inject(frozenset({"a"}), frozenset())
        assert await call(b, hello_of_a()) == grpc.StatusCode.FAILED_PRECONDITION
        b.mesh.inject(frozenset(), frozenset())
        await connected(a, b)

    run(story)


def test_a_cut_that_comes_between_the_call_and_the_connection_keeps_the_caller_out():
    async def story(b):
        ticket = (await call(b, hello_of_a())).ticket
        b.mesh.inject(frozenset(), frozenset({"a"}))
        caller = await show(b, ticket)
        assert await caller.read() is None
        assert b.told == []

    run(story, "b")


# ----------------------------------------------------------------------------------------------------------- TLS


@pytest.fixture
def tls(tmp_path):
    """Of the processes a and b."""
    authority = Authority("ours")
    (tmp_path / "ca").write_bytes(authority.pem)
    settings = {}
    for name in "ab":
        cert, key = tmp_path / f"{name}.crt", tmp_path / f"{name}.key"
        authority.issue_peer(name, [name]).write(cert, key)
        settings[name] = TlsSettings(peer_cert=cert, peer_key=key, peer_ca=tmp_path / "ca")
    return settings


def test_over_tls_it_is_the_same(tls):
    async def story(a, b):
        await connected(a, b)
        for number in range(300):
            a.mesh.send("b", "d", packet(number))
            b.mesh.send("a", "d", packet(number))
            if number % 50 == 0:
                await asyncio.sleep(0)
        a.mesh.send("b", "d", bytes(QUEUE_BYTES_MAX // 2))
        await a.hears(packet(299))
        await b.hears(bytes(QUEUE_BYTES_MAX // 2))
        assert a.told == [("reset", "b", 1), *((packet(n), "b", 1) for n in range(300))]
        assert b.told[:-1] == [("reset", "a", 1), *((packet(n), "a", 1) for n in range(300))]

    run(story, tls=tls)


def test_over_tls_a_peer_that_does_not_read_gets_a_reset_too(tls):
    async def story(a, b):
        await overflow(a, b)
        a.mesh.send("b", "d", b"after it")
        await b.hears(b"after it")

    run(story, tls=tls)


def test_over_tls_a_process_whose_certificate_names_another_is_not_connected_to(tls):
    async def story(a, b):
        with capture_logs() as logged:
            a.mesh.follow({"b": b.address})
            while [entry["event"] for entry in logged].count("call to peer failed") < 3:
                await asyncio.sleep(0.01)
        assert a.told == b.told == []

    tls["b"] = tls["a"]
    run(story, tls=tls)
