"""The host: effects in order, barriers, transactions, timers, reads, refusals, and machines that break."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ordercast.core import packets
from ordercast.core.errors import InvariantBroken, RemoteProtocolError
from ordercast.core.machine import (
    ChannelReset,
    Deliver,
    Effect,
    Event,
    Hand,
    LogRead,
    Observe,
    Persist,
    ReadLog,
    Receive,
    ResetLog,
    Send,
    SetTimer,
    Start,
    TimerFired,
    ViewChanged,
)
from ordercast.core.view import UnknownGroup
from ordercast.runtime.driver import host as host_module
from ordercast.runtime.driver.clock import Clock
from ordercast.runtime.driver.host import CHECKED_EVERY, REFUSALS_MAX, Host
from ordercast.runtime.driver.profile import Profile
from ordercast.runtime.storage.layout import log_key, log_prefix
from ordercast.runtime.storage.store import Storage
from ordercast.runtime.storage.writer import Writer
from ordercast.v1.membership_pb2 import DomainView
from ordercast.v1.scalatom_pb2 import HaveAsk, Pull
from tests.unit.test_storage import MAP_BYTES, entry


@dataclass(slots=True)
class Poke(Event):
    """Makes a machine return these effects."""

    effects: list[Effect]


class Puppet:
    """Does what it is poked to do, and remembers what it was told."""

    def __init__(self, *handles: type) -> None:
        self.handles = handles
        self.told: list[Event] = []
        self.on_event: Callable[[Event], list[Effect]] = lambda event: []
        self.news = asyncio.Event()

    def step(self, event: Event) -> list[Effect]:
        if isinstance(event, Poke):
            return event.effects
        self.told.append(event)
        self.news.set()
        return self.on_event(event)

    def buffers(self) -> dict[str, int]:
        return {}

    async def hears(self, kind: type) -> Any:
        while not (found := [event for event in self.told if isinstance(event, kind)]):
            self.news.clear()
            await self.news.wait()
        return found[-1]


class Rig:
    def __init__(self, directory: Path) -> None:
        loop = asyncio.get_running_loop()
        self.storage = Storage(directory, map_bytes=MAP_BYTES)
        self.sent: list[tuple[str, str]] = []
        self.broken: list[BaseException] = []
        self.host = Host(
            "me", self.storage, Clock(loop), send=self._send, on_broken=self.broken.append, profile=Profile()
        )
        self.writer = self.host.writer = Writer(
            self.storage,
            loop,
            on_durable=lambda ticket: self.host.durable(ticket),
            on_full=lambda is_full: None,
            on_fatal=self.broken.append,
            wall_ms=lambda: 0,
            reserve_bytes=0,
        )
        self.machine = Puppet(Pull)
        self.sibling = Puppet(HaveAsk)
        self.host.add("d", "one", self.machine)
        self.host.add("d", "two", self.sibling)

    def _send(self, peer: str, domain: str, packet: bytes, urgent: bool) -> None:
        assert domain == "d"
        self.sent.append((peer, packets.decode(packet).id.decode()))

    def poke(self, *effects: Effect) -> None:
        self.host.tell("d", "one", Poke(0.0, 0.0, list(effects)))

    @property
    def what_left(self) -> list[str]:
        return [text for _, text in self.sent]

    @property
    def transactions(self) -> int:
        return int(self.storage.env.info()["last_txnid"])

    @contextmanager
    def held(self) -> Iterator[None]:
        """No commit is made before this ends: the transaction that may write is ours."""
        txn = self.storage.env.begin(write=True)
        yield
        txn.abort()

    def damage(self, group: str, position: int) -> None:
        key = log_key(log_prefix(group), position)
        with self.storage.env.begin(write=True) as txn:
            value = bytearray(txn.get(key, db=self.storage.log_values) or b"")
            value[-1] ^= 1
            txn.put(key, bytes(value), db=self.storage.log_values)

    async def settle(self) -> None:
        await self.host.caught_up()
        await self.host.synced()


def say(text: str, *to: str) -> Send:
    return Send(to or ("peer",), Pull(id=text.encode()))


def put(key: str = "k", *, barrier: bool = True, then: tuple[Send, ...] = ()) -> Persist:
    return Persist([(key.encode(), b"v")], barrier=barrier, then=then)


@asynccontextmanager
async def rigged(directory: Path) -> AsyncIterator[Rig]:
    rig = Rig(directory)
    try:
        yield rig
    finally:
        rig.host.stop()
        rig.writer.stop()
        rig.storage.close()


def run(directory: Path, story: Callable[[Rig], Awaitable[None]]) -> None:
    async def told() -> None:
        async with asyncio.timeout(30), rigged(directory) as rig:
            await story(rig)

    asyncio.run(told())


# ------------------------------------------------------------------------------------------ order and barriers


def test_effects_are_performed_in_order(tmp_path):
    async def story(rig: Rig) -> None:
        rig.poke(say("a"), say("b", "p", "q"), say("c"))
        rig.poke(say("d"))
        await rig.host.caught_up()
        assert rig.sent == [("peer", "a"), ("p", "b"), ("q", "b"), ("peer", "c"), ("peer", "d")]

    run(tmp_path, story)


def test_nothing_behind_a_barrier_leaves_before_it_is_durable(tmp_path):
    async def story(rig: Rig) -> None:
        with rig.held():
            rig.poke(say("a"), put(), say("b"))
            rig.poke(say("c"))
            await rig.host.caught_up()
            assert rig.what_left == ["a"]
        await rig.settle()
        assert rig.what_left == ["a", "b", "c"]
        assert rig.storage.records("d", "one") == [(b"k", b"v")]

    run(tmp_path, story)


def test_a_barrier_holds_up_only_its_own_machine(tmp_path):
    async def story(rig: Rig) -> None:
        with rig.held():
            rig.poke(put(), say("a"))
            rig.host.tell("d", "two", Poke(0.0, 0.0, [say("b")]))
            await rig.host.caught_up()
            assert rig.what_left == ["b"]

    run(tmp_path, story)


def test_a_persist_that_is_no_barrier_holds_up_only_its_own_then(tmp_path):
    async def story(rig: Rig) -> None:
        with rig.held():
            rig.poke(put(barrier=False, then=(say("then"),)), say("a"))
            await rig.host.caught_up()
            assert rig.what_left == ["a"]
        await rig.settle()
        assert rig.what_left == ["a", "then"]

    run(tmp_path, story)


def test_what_becomes_durable_together_leaves_in_the_order_of_the_effects(tmp_path):
    async def story(rig: Rig) -> None:
        with rig.held():
            rig.poke(put(), say("a"), put(barrier=False, then=(say("b"), say("c"))), say("d"))
            rig.poke(put(barrier=False, then=(say("e"),)), put(), say("f"))
            await rig.host.caught_up()
        await rig.settle()
        assert rig.what_left == ["a", "b", "c", "d", "e", "f"]

    run(tmp_path, story)


def test_timers_reads_and_events_for_siblings_wait_for_the_barrier_too(tmp_path):
    async def story(rig: Rig) -> None:
        with rig.held():
            reset = ChannelReset(0.0, 0.0, "peer", 1)
            rig.poke(put(), Hand("two", reset), SetTimer("t", 0.0), ReadLog("g", 0, 1, "tag"))
            await rig.host.caught_up()
            assert rig.sibling.told == []
            assert rig.machine.told == []
        assert (await rig.sibling.hears(ChannelReset)).peer == reset.peer
        assert (await rig.machine.hears(TimerFired)).name == "t"
        assert (await rig.machine.hears(LogRead)).tag == "tag"

    run(tmp_path, story)


def test_synced_waits_for_what_was_persisted_before(tmp_path):
    async def story(rig: Rig) -> None:
        with rig.held():
            rig.poke(put(barrier=False))
            await rig.host.caught_up()
            waiting = asyncio.create_task(rig.host.synced())
            rig.poke()
            await rig.host.caught_up()
            assert not waiting.done()
        await waiting
        assert rig.storage.records("d", "one")

    run(tmp_path, story)


# --------------------------------------------------------------------------------------------- transactions


def test_many_persists_are_few_transactions(tmp_path):
    async def story(rig: Rig) -> None:
        before = rig.transactions
        with rig.held():
            rig.poke(put("first"))
            await rig.host.caught_up()
            for number in range(300):
                rig.poke(put(f"k{number}"), say(str(number)))
            await rig.host.caught_up()
        await rig.settle()
        assert rig.what_left == [str(number) for number in range(300)]
        assert len(rig.storage.records("d", "one")) == 301
        assert rig.transactions - before <= 3

    run(tmp_path, story)


def test_a_delivery_commits_with_the_next_persist_in_one_transaction(tmp_path):
    async def story(rig: Rig) -> None:
        before = rig.transactions
        rig.poke(Deliver("g", 0, entry(0, 2)))
        await rig.settle()
        rig.host.tell("d", "two", Poke(0.0, 0.0, [say("not a persist")]))
        await rig.settle()
        assert rig.storage.bounds("g").ends == 0
        assert rig.transactions == before
        rig.poke(Deliver("g", 1, entry(2, 1)), put())
        await rig.settle()
        assert rig.storage.bounds("g").next_offset == 3
        assert rig.storage.records("d", "one") == [(b"k", b"v")]
        assert rig.transactions == before + 1

    run(tmp_path, story)


def test_another_machines_persist_does_not_take_the_delivery_along(tmp_path):
    async def story(rig: Rig) -> None:
        rig.poke(Deliver("g", 0, entry(0, 2)))
        rig.host.tell("d", "two", Poke(0.0, 0.0, [put()]))
        await rig.settle()
        assert rig.storage.records("d", "two")
        assert rig.storage.bounds("g").ends == 0

    run(tmp_path, story)


def test_a_log_that_is_reset_begins_anew_with_its_persist(tmp_path):
    async def story(rig: Rig) -> None:
        rig.poke(Deliver("g", 0, entry(0, 2)), put())
        rig.poke(ResetLog("g", 7), Deliver("g", 7, entry(20, 1)))
        await rig.settle()
        assert rig.storage.bounds("g").begins == 0
        rig.poke(put())
        await rig.settle()
        bounds = rig.storage.bounds("g")
        assert (bounds.begins, bounds.ends, bounds.first_offset) == (7, 8, 20)

    run(tmp_path, story)


def test_an_optimistic_delivery_is_not_logged(tmp_path):
    async def story(rig: Rig) -> None:
        rig.poke(Deliver("g", 0, entry(0, 2), final=False), put())
        await rig.settle()
        assert rig.storage.groups() == []

    run(tmp_path, story)


def test_readers_hear_of_a_group_when_its_entries_are_on_disk(tmp_path):
    async def story(rig: Rig) -> None:
        logged: list[str] = []
        rig.host.on_logged = logged.append
        with rig.held():
            rig.poke(
                Deliver("g", 0, entry(0, 1)), Deliver("h", 0, entry(0, 1)), Deliver("g", 1, entry(1, 1)), put()
            )
            await rig.host.caught_up()
            assert logged == []
        await rig.settle()
        assert logged == ["g", "h"]

    run(tmp_path, story)


# ------------------------------------------------------------------------------------------------- events in


def test_start_carries_the_records_and_comes_before_everything_else(tmp_path):
    async def earlier(rig: Rig) -> None:
        rig.poke(put("b"), put("a"))
        await rig.settle()

    async def story(rig: Rig) -> None:
        reset = ChannelReset(0.0, 0.0, "peer", 3)
        rig.host.start("d", 7, [reset])
        rig.host.receive("d", "peer", 3, [packets.encode(Pull(id=b"x"))])
        await rig.host.caught_up()
        start, after, received = rig.machine.told
        assert isinstance(start, Start)
        assert start.incarnation == 7
        assert list(start.records) == [(b"a", b"v"), (b"b", b"v")]
        assert isinstance(after, ChannelReset)
        assert after.peer == reset.peer
        assert isinstance(received, Receive)
        assert [type(event) for event in rig.sibling.told] == [Start, ChannelReset]

    run(tmp_path, earlier)
    run(tmp_path, story)


def test_a_message_to_oneself_goes_to_the_machine_that_handles_it(tmp_path):
    async def story(rig: Rig) -> None:
        rig.host.start("d", 9, [])
        rig.poke(Send(("me", "peer"), HaveAsk(id=b"x")))
        received = await rig.sibling.hears(Receive)
        assert (received.source, received.incarnation, received.message.id) == ("me", 9, b"x")
        assert rig.sent == [("peer", "x")]

    run(tmp_path, story)


def test_a_client_that_is_connected_here_is_answered_without_a_packet(tmp_path):
    async def story(rig: Rig) -> None:
        answers: list[Any] = []
        rig.host.endpoints["client/1"] = answers.append
        rig.host.hand_in("d", "client/1", Pull(id=b"question"))
        assert (await rig.machine.hears(Receive)).source == "client/1"
        rig.poke(say("answer", "client/1"))
        await rig.host.caught_up()
        assert [answer.id for answer in answers] == [b"answer"]
        assert rig.sent == []

    run(tmp_path, story)


def test_setting_a_timer_again_moves_it(tmp_path):
    async def story(rig: Rig) -> None:
        rig.poke(SetTimer("sooner", 3600.0), SetTimer("later", 0.0))
        rig.poke(SetTimer("sooner", 0.0), SetTimer("later", 3600.0))
        await rig.host.caught_up()
        await rig.machine.hears(TimerFired)
        rig.poke(SetTimer("last", 0.0))
        while (await rig.machine.hears(TimerFired)).name != "last":
            await asyncio.sleep(0)
        assert [event.name for event in rig.machine.told] == ["sooner", "last"]

    run(tmp_path, story)


def test_while_too_much_waits_nothing_more_is_to_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr(host_module, "WAITING_MAX", 10)

    async def story(rig: Rig) -> None:
        packet = packets.encode(Pull(id=b"x"))
        rig.host.receive("d", "peer", 1, [packet] * 20)
        assert not rig.host.room.is_set()
        await rig.host.room.wait()
        with rig.held():
            rig.poke(put(), *(say("held") for _ in range(20)))
            await rig.host.caught_up()
            rig.poke()
            assert not rig.host.room.is_set()
        await rig.host.room.wait()
        assert len(rig.sent) == 20

    run(tmp_path, story)


# ----------------------------------------------------------------------------------------------------- reads


def test_a_machine_reads_what_it_wrote_before_it_is_durable(tmp_path):
    async def story(rig: Rig) -> None:
        rig.poke(Deliver("g", 0, entry(0, 1)), put())
        await rig.settle()
        with rig.held():
            rig.poke(Deliver("g", 1, entry(1, 1)), put(barrier=False), ReadLog("g", 0, 10, "all"))
            read = await rig.machine.hears(LogRead)
        assert [e.first_offset for e in read.entries] == [0, 1]
        assert (read.group, read.position, read.begins, read.tag) == ("g", 0, 0, "all")

    run(tmp_path, story)


def test_a_machine_reads_what_it_delivered_and_has_not_persisted(tmp_path):
    async def story(rig: Rig) -> None:
        rig.poke(Deliver("g", 0, entry(0, 1)), put())
        rig.poke(Deliver("g", 1, entry(1, 1)), Deliver("h", 0, entry(0, 1)), Deliver("g", 2, entry(2, 1)))
        rig.poke(ReadLog("g", 0, 2, "two of three"))
        assert [e.first_offset for e in (await rig.machine.hears(LogRead)).entries] == [0, 1]
        rig.machine.told.clear()
        rig.poke(ResetLog("g", 9), Deliver("g", 9, entry(30, 1)), ReadLog("g", 0, 9, ""), ReadLog("g", 9, 9, ""))
        await rig.settle()
        await rig.host.caught_up()
        before, there = [event for event in rig.machine.told if isinstance(event, LogRead)]
        assert list(before.entries) == []
        assert before.begins == 9
        assert [e.first_offset for e in there.entries] == [30]

    run(tmp_path, story)


def test_a_damaged_entry_is_mended_before_the_machine_gets_it(tmp_path, monkeypatch):
    monkeypatch.setattr(host_module, "MEND_AGAIN_S", 0.0)
    whole = entry(0, 1, size=100)

    async def story(rig: Rig) -> None:
        rig.poke(Deliver("g", 0, whole), Deliver("g", 1, entry(1, 1)), put())
        await rig.settle()
        rig.damage("g", 0)
        outcomes = [ValueError("nobody has it"), None]

        async def mend() -> None:
            outcome = outcomes.pop(0)
            if outcome is not None:
                raise outcome
            rig.writer.repair("g", 0, whole.SerializeToString())
            rig.writer.kick()

        rig.host.mend = lambda damaged: asyncio.ensure_future(mend())
        rig.poke(ReadLog("g", 0, 2, "damaged"), say("others do not wait"))
        await rig.host.caught_up()
        assert rig.what_left == ["others do not wait"]
        read = await rig.machine.hears(LogRead)
        assert list(read.entries) == [whole, entry(1, 1)]
        assert outcomes == []

    run(tmp_path, story)


# -------------------------------------------------------------------------------------------------- mistakes


def test_a_peers_mistakes_are_counted_and_the_machine_goes_on(tmp_path):
    async def story(rig: Rig) -> None:
        def refuse(event: Event) -> list[Effect]:
            if isinstance(event, Receive) and event.message.id == b"bad":
                raise RemoteProtocolError("bad id")
            return [say("fine")]

        rig.machine.on_event = refuse
        wrong = [b"\xff", packets.encode(Pull(id=b"bad")), packets.encode(Pull(id=b"bad"))]
        rig.host.receive("d", "peer", 1, [*wrong, packets.encode(Pull(id=b"good"))])
        rig.host.receive("elsewhere", "peer", 1, [packets.encode(Pull(id=b"good"))])
        await rig.host.caught_up()
        assert rig.what_left == ["fine"]
        assert rig.broken == []
        assert rig.host.refusals == {"malformed packet": 1, "bad id": 2, "nobody here handles Pull": 1}

    run(tmp_path, story)


@pytest.mark.parametrize("error", [RemoteProtocolError("not a view"), UnknownGroup("g")])
def test_what_nobody_sent_is_nobodys_mistake_and_breaks_the_process(tmp_path, error):
    async def story(rig: Rig) -> None:
        def fail(event: Event) -> list[Effect]:
            raise error

        rig.machine.on_event = fail
        rig.host.tell("d", "one", ViewChanged(0.0, 0.0, DomainView()))
        rig.poke(say("behind it"))
        while not rig.broken:
            await asyncio.sleep(0)
        assert rig.broken == [error]
        assert rig.sent == []
        assert (rig.host.refusals, rig.host.late) == ({}, 0)

    run(tmp_path, story)


def test_what_is_kept_of_refusals_is_bounded(tmp_path):
    async def story(rig: Rig) -> None:
        def refuse(event: Event) -> list[Effect]:
            raise RemoteProtocolError(f"{len(rig.machine.told)} " + "x" * 10_000)

        rig.machine.on_event = refuse
        count = 2 * REFUSALS_MAX
        rig.host.receive("d", "peer", 1, [packets.encode(Pull(id=b"x"))] * count)
        await rig.host.caught_up()
        assert sum(rig.host.refusals.values()) == count
        assert len(rig.host.refusals) == REFUSALS_MAX + 1
        assert max(len(why) for why in rig.host.refusals) < 1000

    run(tmp_path, story)


def test_after_a_machine_broke_nothing_leaves_any_more(tmp_path):
    async def story(rig: Rig) -> None:
        broken = InvariantBroken("two and two")

        def fail(event: Event) -> list[Effect]:
            raise broken

        with rig.held():
            rig.poke(put(), say("behind a barrier"), SetTimer("t", 0.0))
            await rig.host.caught_up()
            rig.machine.on_event = fail
            rig.host.receive("d", "peer", 1, [packets.encode(Pull(id=b"x"))])
            rig.poke(say("behind it"))
            rig.host.tell("d", "two", Poke(0.0, 0.0, [say("another machine's")]))
            while not rig.broken:
                await asyncio.sleep(0)
        while not rig.writer.is_idle:
            await asyncio.sleep(0)
        rig.host.tell("d", "two", Poke(0.0, 0.0, [say("later")]))
        await asyncio.sleep(0)
        assert rig.broken == [broken]
        assert rig.sent == []

    run(tmp_path, story)


class Doubting(Puppet):
    """It has something to say about itself."""

    is_sound = True

    def check_invariants(self) -> None:
        if not self.is_sound:
            raise InvariantBroken("three and two")


def test_a_machine_that_is_not_sound_ends_the_process_and_what_it_says_then_does_not_leave(tmp_path):
    async def story(rig: Rig) -> None:
        machine = Doubting()
        rig.host.add("d", "three", machine)
        for number in range(CHECKED_EVERY + 1):
            rig.host.tell("d", "three", Poke(0.0, 0.0, [say(f"{number}")]))
        await rig.settle()
        assert not rig.broken
        assert len(rig.sent) == CHECKED_EVERY + 1
        machine.is_sound = False
        for number in range(CHECKED_EVERY):
            rig.host.tell("d", "three", Poke(0.0, 0.0, [say(f"{number}")]))
        while not rig.broken:
            await asyncio.sleep(0)
        assert isinstance(rig.broken[0], InvariantBroken)
        before_the_next_check = CHECKED_EVERY - 1
        assert len(rig.sent) == CHECKED_EVERY + 1 + before_the_next_check

    run(tmp_path, story)


def test_what_fails_behind_a_barrier_breaks_the_process_too(tmp_path):
    async def story(rig: Rig) -> None:
        def fail(message: Any) -> None:
            raise KeyError("a bug of ours")

        rig.host.endpoints["client/1"] = fail
        rig.poke(put(), say("answer", "client/1"), say("behind it"))
        await rig.host.caught_up()
        while not rig.broken:
            await asyncio.sleep(0)
        assert isinstance(rig.broken[0], KeyError)
        assert rig.sent == []

    run(tmp_path, story)


def test_what_machines_observe_and_their_own_effects_are_passed_on(tmp_path):
    @dataclass(slots=True)
    class Own(Effect):
        pass

    async def story(rig: Rig) -> None:
        own: list[Effect] = []
        seen: list[tuple[str, Observe]] = []
        rig.host.on_observe = lambda domain, effect: seen.append((domain, effect))
        rig.host.add("d", "three", Puppet(), own.append)
        with rig.held():
            effects: list[Effect] = [put(), Own(), Observe("stage", b"id", blocked_on="replica:other")]
            rig.host.tell("d", "three", Poke(0.0, 0.0, effects))
            await rig.host.caught_up()
            assert own == []
            assert seen == []
        await rig.settle()
        assert own == effects[1:2]
        assert seen == [("d", Observe("stage", b"id", blocked_on=f"replica:{rig.host.process}"))], (
            "for its own disk"
        )
        assert rig.host.profile is not None
        assert rig.host.profile.document()["three Poke"][0] == 1

    run(tmp_path, story)


@pytest.mark.parametrize("count", [1, host_module.SLICE_EVENTS, 3 * host_module.SLICE_EVENTS + 1])
def test_however_many_events_come_at_once_all_are_stepped_in_order(tmp_path, count):
    async def story(rig: Rig) -> None:
        rig.host.receive("d", "peer", 1, [packets.encode(Pull(id=str(n).encode())) for n in range(count)])
        await rig.host.caught_up()
        assert [event.message.id for event in rig.machine.told] == [str(n).encode() for n in range(count)]

    run(tmp_path, story)
