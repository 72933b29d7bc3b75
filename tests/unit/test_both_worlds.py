"""The simulator and the runtime perform effects alike: a peer and a sibling see the same in both."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from ordercast.core import packets
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import pack_u64
from ordercast.core.machine import ChannelReset, Effect, Event, Hand, Persist, Send, TimerFired
from ordercast.v1.sequencer_pb2 import Pull
from tests.unit.puppets import Theatre, is_rising
from tests.unit.test_host import Rig, rigged

PEERS = ("a", "b")
#: What each peer saw, and what the sibling was handed.
Seen = dict[str, list[int]]


def say(value: int, *to: str) -> Send:
    return Send(to or ("b",), Pull(id=pack_u64(value)))


def put(*then: Send, barrier: bool = True) -> Persist:
    return Persist([(b"k", b"v")], barrier=barrier, then=then)


def hand(value: int) -> Hand:
    return Hand("two", ChannelReset(0.0, 0.0, "handed", value))


def random_steps(seed: int) -> list[list[Effect]]:
    """The effects of a few steps, each numbered in the order in which the machine returns them."""
    random = Random(f"effects {seed}")
    numbers = iter(range(1, 1000))

    def some_send() -> Send:
        return say(next(numbers), *random.sample(PEERS, random.choice((1, 2))))

    def some_effect() -> Effect:
        match random.randrange(5):
            case 0:
                return put()
            case 1:
                return put(*(some_send() for _ in range(random.randrange(1, 3))), barrier=False)
            case 2:
                return hand(next(numbers))
            case _:
                return some_send()

    return [[some_effect() for _ in range(random.randrange(4, 13))] for _ in range(3)]


class OneTransaction(Random):
    """A disk whose transactions are never split: whatever a step persists is durable at once."""

    def random(self) -> float:
        return 0.5


def in_the_simulator(steps: Sequence[list[Effect]]) -> Seen:
    theatre = Theatre()
    theatre.world.disk_random = OneTransaction()
    for effects in steps:
        theatre.slow_disk("d")
        theatre.perform("d", *effects, role="one")
        theatre.sync("d")
        theatre.run(5.0)
    events = theatre.puppet("d", "two").events
    handed = [event for event in events if isinstance(event, ChannelReset) and event.peer == "handed"]
    return {**{peer: theatre.heard(peer) for peer in PEERS}, "two": [event.incarnation for event in handed]}


def in_the_runtime(steps: Sequence[list[Effect]], directory: Path) -> Seen:
    async def performed() -> Seen:
        async with asyncio.timeout(60), rigged(directory) as rig:
            for effects in steps:
                with rig.held():
                    rig.poke(*effects)
                    await rig.host.caught_up()
                await rig.settle()
                await rig.host.caught_up()
            seen: Seen = {peer: [] for peer in PEERS}
            for peer, text in rig.sent:
                seen[peer].append(int.from_bytes(text.encode(), "big"))
            return {**seen, "two": [event.incarnation for event in rig.sibling.told]}

    return asyncio.run(performed())


def test_what_waits_for_a_persist_does_not_overtake_what_waits_for_the_barrier_before_it(tmp_path):
    steps = [[put(), say(1), put(say(2), barrier=False), say(3)]]
    assert in_the_simulator(steps)["b"] == in_the_runtime(steps, tmp_path)["b"] == [1, 2, 3]


@pytest.mark.parametrize("seed", range(8))
def test_peers_and_siblings_see_the_same_in_both_worlds(tmp_path, seed):
    steps = random_steps(seed)
    assert in_the_simulator(steps) == in_the_runtime(steps, tmp_path)


def test_only_what_was_received_can_be_refused_in_both_worlds(tmp_path):
    def refuse(event: Event) -> list[Effect]:
        raise RemoteProtocolError("no")

    theatre = Theatre()
    theatre.puppet("b").step = refuse
    theatre.say("a", "b", 1)
    theatre.run(5.0)
    assert len(theatre.world.refusals) == 1
    process = theatre.process("b")
    with pytest.raises(RemoteProtocolError):
        process.tell("puppet", ChannelReset(*process.clock(), "a", 1))
    assert len(theatre.world.refusals) == 1

    async def story() -> None:
        async with asyncio.timeout(60), rigged(tmp_path) as rig:
            rig.machine.on_event = refuse
            rig.host.receive("d", "a", 1, [packets.encode(Pull(id=pack_u64(1)))])
            await rig.host.caught_up()
            assert rig.host.refusals == {"no": 1}
            assert rig.broken == []
            rig.host.tell("d", "one", ChannelReset(*rig.host.clock.read(), "a", 1))
            while not rig.broken:
                await asyncio.sleep(0)
            assert isinstance(rig.broken[0], RemoteProtocolError)
            assert rig.host.refusals == {"no": 1}

    asyncio.run(story())


# ---------------------------------------------------------------------------------------- time of what is handed


def test_time_does_not_run_backwards_for_what_is_handed_in_the_simulator():
    theatre = Theatre()
    theatre.slow_disk("d")
    process = theatre.process("d")
    made = ChannelReset(*process.clock(), "handed", 1)
    theatre.perform("d", put(), Hand("two", made), role="one")
    theatre.run(5.0)
    process.tell("two", TimerFired(*process.clock(), "", 0))
    theatre.sync("d")
    events = theatre.puppet("d", "two").events
    assert isinstance(events[-1], ChannelReset)
    assert is_rising([event.now for event in events])


def test_time_does_not_run_backwards_for_what_is_handed_in_the_runtime(tmp_path):
    async def told(rig: Rig) -> None:
        clock = rig.host.clock
        with rig.held():
            rig.poke(put(), Hand("two", ChannelReset(*clock.read(), "handed", 1)))
            await rig.host.caught_up()
            rig.host.tell("d", "two", TimerFired(*clock.read(), "", 0))
            await rig.host.caught_up()
        await rig.sibling.hears(ChannelReset)
        assert is_rising([event.now for event in rig.sibling.told])

    async def story() -> None:
        async with asyncio.timeout(60), rigged(tmp_path) as rig:
            await told(rig)

    asyncio.run(story())


def test_machines_are_not_told_at_their_start_of_what_was_before_it(tmp_path):
    async def story() -> None:
        async with asyncio.timeout(60), rigged(tmp_path) as rig:
            earlier = ChannelReset(*rig.host.clock.read(), "peer", 1)
            await asyncio.sleep(0)
            rig.host.start("d", 1, [earlier])
            await rig.sibling.hears(ChannelReset)
            assert is_rising([event.now for event in rig.sibling.told])

    asyncio.run(story())
