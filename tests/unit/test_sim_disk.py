"""The simulated disk: what a crash leaves, what a barrier holds back, and what is one transaction."""

from typing import Any

import pytest

from ordercast.core.machine import Deliver, LogRead, Persist, ReadLog, ResetLog, Send
from ordercast.sim.disk import Disk
from ordercast.v1.scalatom_pb2 import HaveAsk
from ordercast.v1.sequencer_pb2 import LogEntry
from tests.unit.puppets import Theatre, number


def entry(value: int) -> LogEntry:
    return LogEntry(first_offset=value)


def put(disk: Disk, **records: Any) -> int:
    pairs = [(key.encode(), None if value is None else value.encode()) for key, value in records.items()]
    return disk.add("role", pairs, []).number


def content(disk: Disk) -> dict[bytes, bytes]:
    return disk.records.get("role", {})


# -------------------------------------------------------------------------------------------- the disk by itself


def test_records_are_there_once_they_are_synced_and_not_before():
    disk = Disk()
    put(disk, x="1")
    assert disk.begin()
    assert content(disk) == {}
    disk.synced()
    assert content(disk) == {b"x": b"1"}


def test_a_record_without_a_value_is_deleted():
    disk = Disk()
    for records in ({"x": "1", "y": "2"}, {"x": None, "z": None}, {"y": "3"}):
        put(disk, **records)
        disk.begin()
        disk.synced()
    assert content(disk) == {b"y": b"3"}


def test_what_piled_up_while_one_transaction_was_written_goes_into_the_next():
    disk = Disk()
    first = put(disk, x="1")
    disk.begin()
    second, third = put(disk, y="2"), put(disk, x="3")
    assert first < second == third
    assert not disk.begin(), "one at a time"
    disk.synced()
    assert content(disk) == {b"x": b"1"}
    assert disk.begin()
    disk.synced()
    assert content(disk) == {b"x": b"3", b"y": b"2"}


def test_an_idle_disk_writes_nothing():
    assert not Disk().begin()


def test_machines_do_not_see_each_others_records():
    disk = Disk()
    disk.add("one", [(b"x", b"1")], [])
    disk.add("two", [(b"x", b"2")], [])
    disk.begin()
    disk.synced()
    assert disk.records == {"one": {b"x": b"1"}, "two": {b"x": b"2"}}


def test_a_crash_loses_what_was_not_synced():
    disk = Disk()
    put(disk, x="1")
    disk.begin()
    disk.synced()
    put(disk, x="2")
    disk.begin()
    put(disk, y="3")
    disk.crash(None)
    assert content(disk) == {b"x": b"1"}
    assert not disk.begin(), "nothing is left to write"


@pytest.mark.parametrize("torn", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_a_torn_transaction_is_not_there_at_all(torn):
    disk = Disk()
    disk.add("role", [(b"%d" % i, b"value") for i in range(50)], [("a", 0, entry(0))])
    disk.begin()
    disk.crash(torn)
    assert content(disk) == {}
    assert disk.logs == {}


def test_a_transaction_that_got_through_whole_is_there_though_nobody_heard_so():
    disk = Disk()
    told = []
    disk.on_apply = told.extend
    disk.add("role", [(b"x", b"1")], [("a", 0, entry(7))])
    put(disk, y="2")
    disk.begin()
    put(disk, z="3")
    disk.crash(1.0)
    assert content(disk) == {b"x": b"1", b"y": b"2"}
    assert disk.logs["a"].entries == [entry(7)]
    assert [(group, position) for group, position, _ in told] == [("a", 0)], "it counts as delivered"


def test_transactions_keep_rising_numbers_after_a_crash():
    disk = Disk()
    before = put(disk, x="1")
    disk.begin()
    disk.crash(None)
    assert put(disk, x="2") > before


def test_a_log_has_no_gap():
    disk = Disk()
    disk.add("role", [], [("a", 0, entry(0)), ("a", 2, entry(2))])
    disk.begin()
    with pytest.raises(AssertionError):
        disk.synced()


def test_a_snapshot_replaces_the_log_before_it():
    disk = Disk()
    disk.add("role", [], [("a", 0, entry(0)), ("a", 9, None), ("a", 9, entry(9))])
    disk.begin()
    disk.synced()
    log = disk.logs["a"]
    assert (log.begins, log.ends, log.entries) == (9, 10, [entry(9)])


def test_retention_drops_the_log_before_a_position_and_never_more_than_there_is():
    disk = Disk()
    disk.add("role", [], [("a", position, entry(position)) for position in range(5)])
    disk.begin()
    disk.synced()
    disk.truncate("a", 3)
    disk.truncate("a", 9)
    disk.truncate("a", 1)
    disk.truncate("b", 1)
    assert (disk.logs["a"].begins, disk.logs["a"].entries) == (3, [entry(3), entry(4)])


# --------------------------------------------------------------------------------------------- as machines see it


def persist(value: int, **fields: Any) -> Persist:
    return Persist([(b"x", b"%d" % value)], **fields)


def say(to: str, value: int) -> Send:
    return Send((to,), number(value))


def test_nothing_behind_a_barrier_leaves_before_it_is_durable():
    theatre = Theatre()
    theatre.slow_disk("a")
    theatre.perform("a", say("b", 1), persist(1), say("b", 2))
    theatre.say("a", "b", 3)
    theatre.run(5.0)
    assert theatre.heard("b") == [1], "what came before the barrier did not wait"
    theatre.sync("a")
    theatre.run(5.0)
    assert theatre.heard("b") == [1, 2, 3]


def test_a_barrier_waits_for_its_own_transaction_and_not_only_for_the_one_before():
    theatre = Theatre()
    theatre.slow_disk("a")
    theatre.perform("a", persist(1), say("b", 1))
    theatre.perform("a", persist(2), say("b", 2))
    process = theatre.process("a")
    process._synced(process.disk.writing)
    theatre.run(5.0)
    assert theatre.heard("b") == [1]
    theatre.sync("a")
    theatre.run(5.0)
    assert theatre.heard("b") == [1, 2]


def test_a_persist_that_is_no_barrier_holds_up_only_what_waits_for_it():
    theatre = Theatre()
    theatre.slow_disk("a")
    theatre.perform("a", persist(1, barrier=False, then=[say("b", 1)]), say("b", 2))
    theatre.run(5.0)
    assert theatre.heard("b") == [2]
    theatre.sync("a")
    theatre.run(5.0)
    assert theatre.heard("b") == [2, 1]


def test_what_waits_for_a_persist_without_records_waits_for_those_before_it():
    theatre = Theatre()
    theatre.slow_disk("a")
    theatre.perform("a", persist(1, barrier=False))
    theatre.perform("a", Persist([], barrier=False, then=[say("b", 1)]))
    theatre.run(5.0)
    assert theatre.heard("b") == []
    theatre.sync("a")
    theatre.run(5.0)
    assert theatre.heard("b") == [1]
    assert theatre.process("a").disk.records["puppet"] == {b"x": b"1"}


def test_one_machine_does_not_wait_for_the_barrier_of_another():
    theatre = Theatre()
    theatre.slow_disk("d")
    theatre.perform("d", persist(1), say("b", 1), role="one")
    theatre.perform("d", say("b", 2), role="two")
    theatre.run(5.0)
    assert theatre.heard("b") == [2]


def test_a_message_to_oneself_waits_behind_a_barrier_too():
    theatre = Theatre()
    theatre.slow_disk("d")
    theatre.perform("d", persist(1), Send(("d",), number(1, HaveAsk)), role="one")
    assert theatre.heard("d", "two") == []
    theatre.sync("d")
    assert theatre.heard("d", "two") == [1]


def test_a_restart_gives_back_the_records_of_each_machine():
    theatre = Theatre()
    theatre.perform("d", Persist([(b"x", b"1"), (b"y", b"2")]), role="one")
    theatre.perform("d", Persist([(b"x", b"3")]), role="two")
    theatre.run(1.0)
    theatre.slow_disk("d")
    theatre.perform("d", Persist([(b"x", None)]), role="one")
    theatre.process("d").crash()
    theatre.process("d").start()
    assert theatre.puppet("d", "one").records == {b"x": b"1", b"y": b"2"}
    assert theatre.puppet("d", "two").records == {b"x": b"3"}


def test_what_waited_for_a_barrier_is_lost_in_a_crash():
    theatre = Theatre()
    theatre.slow_disk("a")
    theatre.perform("a", persist(1), say("b", 1))
    theatre.process("a").crash()
    theatre.process("a").start()
    theatre.sync("a")
    theatre.run(5.0)
    assert theatre.heard("b") == []


@pytest.mark.parametrize("torn", [None, 0.5, 1.0])
def test_a_delivery_is_durable_with_the_position_that_counts_it_or_not_at_all(torn):
    theatre = Theatre()
    theatre.slow_disk("a")
    theatre.perform("a", Deliver("g", 0, entry(0)), Deliver("g", 1, entry(1)), persist(2, barrier=False))
    theatre.process("a").crash(torn)
    disk = theatre.process("a").disk
    entries = disk.logs["g"].entries if "g" in disk.logs else []
    counted = disk.records.get("puppet", {}).get(b"x", b"0")
    assert (counted, entries) == ((b"2", [entry(0), entry(1)]) if torn == 1.0 else (b"0", []))


def test_a_delivery_without_a_persist_behind_it_is_not_durable():
    theatre = Theatre()
    theatre.perform("a", persist(1), Deliver("g", 0, entry(0)))
    theatre.run(5.0)
    assert "g" not in theatre.process("a").disk.logs
    theatre.perform("a", persist(2))
    theatre.run(5.0)
    assert theatre.process("a").disk.logs["g"].ends == 1


def test_an_optimistic_delivery_is_shown_and_not_logged():
    theatre = Theatre()
    shown: list[tuple[str, int]] = []
    theatre.world.on_deliver = lambda process, effect: shown.append((process, effect.position))
    theatre.perform("a", Deliver("g", 0, entry(0), final=False), persist(1))
    theatre.run(5.0)
    assert shown == [("a", 0)]
    assert "g" not in theatre.process("a").disk.logs


def test_the_log_is_read_from_where_retention_left_it():
    theatre = Theatre()
    theatre.perform("a", *(Deliver("g", position, entry(position)) for position in range(5)), persist(1))
    theatre.run(5.0)
    theatre.perform("a", ReadLog("g", 1, 2, tag="first"), ReadLog("x", 0, 2, tag="unknown"))
    theatre.process("a").truncate("g", 3)
    theatre.perform("a", ReadLog("g", 1, 2, tag="gone"), ReadLog("g", 4, 9, tag="end"))
    reads = [event for event in theatre.puppet("a").events if isinstance(event, LogRead)]
    assert [(read.tag, read.begins, [e.first_offset for e in read.entries]) for read in reads] == [
        ("first", 0, [1, 2]),
        ("unknown", 0, []),
        ("gone", 3, []),
        ("end", 3, [4]),
    ]


def test_a_snapshot_is_durable_with_the_next_persist():
    theatre = Theatre()
    theatre.perform("a", Deliver("g", 0, entry(0)), persist(1))
    theatre.run(1.0)
    theatre.slow_disk("a")
    theatre.perform("a", ResetLog("g", 7), persist(7))
    assert theatre.process("a").disk.logs["g"].ends == 1
    theatre.sync("a")
    assert (theatre.process("a").disk.logs["g"].begins, theatre.process("a").disk.logs["g"].ends) == (7, 7)


@pytest.mark.parametrize(
    ("when", "kept"), [("before", b"1"), ("torn", b"1"), ("after", b"2")], ids=["before", "torn", "after"]
)
def test_a_process_can_be_made_to_crash_at_a_commit_and_never_tells(when, kept):
    theatre = Theatre()
    crashed: list[str] = []
    theatre.world.on_crash_at_commit = crashed.append
    process = theatre.process("a")
    theatre.perform("a", persist(1))
    theatre.run(1.0)
    process.crash_at_commit = (process.commits + 1, when)
    theatre.perform("a", persist(2), say("b", 1))
    theatre.run(5.0)
    assert crashed == ["a"]
    assert not process.up
    assert process.disk.records["puppet"] == {b"x": kept}
    assert theatre.heard("b") == []
