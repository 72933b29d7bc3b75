"""The simulator and the runtime perform effects alike: peers, siblings, disks and timers see the same in both."""

import asyncio
from typing import Any

import pytest

from ordercast.core import packets
from ordercast.core.errors import InvariantBroken, RemoteProtocolError
from ordercast.core.ids import pack_u64
from ordercast.core.machine import (
    ChannelReset,
    Deliver,
    Effect,
    Event,
    Hand,
    Interrupted,
    Observe,
    ResetLog,
    SetTimer,
    TimerFired,
)
from ordercast.runtime.driver.host import Host
from ordercast.sim.process import Process
from ordercast.v1.scalatom_pb2 import Pull
from tests.unit.puppets import Theatre, is_rising
from tests.unit.test_host import Rig, rigged
from tests.unit.test_storage import entry
from tests.unit.two_worlds import RandomSteps, Seen, hand, in_the_runtime, in_the_simulator, put, say

SEEDS = range(25)


def in_both(effects: list[Effect], tmp_path: Any) -> tuple[Seen, Seen]:
    """What was seen before the disk synced, and after: the same in both worlds."""
    simulated, ran = in_the_simulator([effects]), in_the_runtime([effects], tmp_path)
    assert simulated == ran
    before, after = ran
    return before, after


def test_what_waits_for_a_persist_does_not_overtake_what_waits_for_the_barrier_before_it(tmp_path):
    before, after = in_both([put(), say(1), put(say(2), barrier=False), say(3)], tmp_path)
    assert (before["b"], after["b"]) == ([], [1, 2, 3])


def test_a_machine_hears_of_its_own_durability_by_what_it_hands_itself(tmp_path):
    before, after = in_both([put(hand(1, "one"), say(2), barrier=False), say(3)], tmp_path)
    assert (before["one handed"], after["one handed"]) == ([], [1])
    assert (before["b"], after["b"]) == ([3], [3, 2])


def test_live_deliveries_wait_for_no_disk_and_observations_do(tmp_path):
    live = Deliver("g", 0, entry(7, 1), final=False)
    before, after = in_both([put(), live, Interrupted("g"), Observe("stage", b"1", blocked_on="x")], tmp_path)
    assert (before["live"], before["interrupted"], before["observed"]) == ([("g", 7)], ["g"], [])
    assert after["observed"] == [(b"1", "our disk")]


def test_a_timer_that_is_set_again_is_moved(tmp_path):
    effects = [SetTimer("soon", 0.0), SetTimer("late", 0.0), SetTimer("late", 3600.0)]
    before, after = in_both([*effects, put(), SetTimer("later", 3600.0)], tmp_path)
    assert (before["one fired"], after["one fired"]) == (["soon"], ["soon"])
    assert (before["one armed"], after["one armed"]) == (["late"], ["late", "later"])


@pytest.mark.parametrize("for_the_disk", [put(), Deliver("g", 0, entry(0, 1)), ResetLog("g", 1)])
def test_what_goes_to_the_disk_does_not_wait_for_it(tmp_path, for_the_disk):
    with pytest.raises(InvariantBroken):
        in_the_simulator([[put(for_the_disk)]])

    async def story() -> None:
        async with asyncio.timeout(60), rigged(tmp_path) as rig:
            rig.poke(put(for_the_disk))
            while not rig.broken:
                await asyncio.sleep(0)
            assert isinstance(rig.broken[0], InvariantBroken)

    asyncio.run(story())


# ------------------------------------------------------------------------------------------- whatever is performed


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_is_seen_in_both_worlds(tmp_path, seed):
    assert in_the_simulator(RandomSteps(seed)) == in_the_runtime(RandomSteps(seed), tmp_path)


def test_random_steps_show_something_of_each_kind():
    shown = [kind for seed in SEEDS for kind, values in in_the_simulator(RandomSteps(seed))[-1].items() if values]
    silent = [kind for kind in in_the_simulator([[]])[0] if kind not in shown]
    assert silent == ["two read", "two received", "two fired", "two armed"], "two only listens"


def without_the_log(of: type) -> Any:
    commit = of.commit
    return lambda self, slot, persist, log: commit(self, slot, persist, [])


def a_ticket_early(of: type) -> Any:
    commit = of.commit
    return lambda self, slot, persist, log: commit(self, slot, persist, log) - 1


def nothing(of: type) -> Any:
    return lambda *args: None


@pytest.mark.parametrize(
    ("method", "broken"),
    [
        ("commit", without_the_log),
        ("commit", a_ticket_early),
        ("send", nothing),
        ("hand", nothing),
        ("observe", nothing),
        ("deliver", nothing),
        ("interrupt", nothing),
        ("read_log", nothing),
        ("other", nothing),
    ],
)
@pytest.mark.parametrize("world", [Host, Process])
def test_it_shows_if_one_world_does_something_else(tmp_path, monkeypatch, world, method, broken):
    monkeypatch.setattr(world, method, broken(world))
    for seed in SEEDS:
        directory = tmp_path / str(seed)
        directory.mkdir()
        if in_the_simulator(RandomSteps(seed)) != in_the_runtime(RandomSteps(seed), directory):
            return
    pytest.fail("nobody saw it")


# ------------------------------------------------------------------------------------------------ what is refused


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
