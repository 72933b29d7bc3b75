"""Optimistic atomic multicast, line by line: the algorithms, and the corrections `En` that the README tells.

Each test names the place in the paper that it checks.
"""

import pytest

from ordercast.core.ids import envelope_id
from ordercast.core.view import View
from ordercast.protocols.optimistic import keys
from ordercast.protocols.optimistic.clock import Clock
from ordercast.protocols.optimistic.replica import Following, Replica
from ordercast.protocols.optimistic.settings import Settings
from ordercast.protocols.optimistic.state import Applied, State, Verdict
from ordercast.protocols.optimistic.window import Window
from ordercast.v1.optimistic_pb2 import (
    AddEntry,
    NullEntry,
    OpenEntry,
    OverEntry,
    PlacedEntry,
    SourceEntries,
    SourceEntry,
)
from tests.unit.driving import view_of

GATEWAY, LIFE = "g1", 21


def placed(counter: int, timestamp: int, *to: str, life: int = LIFE) -> SourceEntry:
    return SourceEntry(
        placed=PlacedEntry(
            id=envelope_id(life, counter),
            gateway=GATEWAY,
            counter=counter,
            timestamp=timestamp,
            destinations=to or ("a",),
        )
    )


def null(timestamp: int) -> SourceEntry:
    return SourceEntry(null=NullEntry(key=keys.null_for(keys.key_of(timestamp, b""))))


def source() -> State:
    return State("a", 1, ("n1", "n2", "n3"))


def apply(state: State, *entries: SourceEntry) -> list[Applied]:
    return state.apply(SourceEntries(entries=entries).SerializeToString()).applied


def verdicts(state: State, *entries: SourceEntry) -> list[Verdict]:
    return [applied.verdict for applied in apply(state, *entries)]


def replica() -> Replica:
    return Replica(View(view_of({"a": "n1 n2 n3"})).groups["a"], "n1", Settings())


# ------------------------------------------------------------------------------------ Algorithm 1, l. 18 to 28


def test_algorithm_1_l_20_a_timestamp_above_the_last_one_stays() -> None:
    state = source()
    one, two = apply(state, placed(1, 10), placed(2, 20))
    assert [keys.timestamp_of(one.key), keys.timestamp_of(two.key)] == [10, 20]
    assert not one.is_raised
    assert not two.is_raised


def test_algorithm_1_l_22_a_timestamp_below_the_last_one_is_raised_above_it() -> None:
    state = source()
    apply(state, placed(1, 20))
    (raised,) = apply(state, placed(2, 10))
    assert raised.is_raised
    assert raised.key > keys.key_of(20, envelope_id(LIFE, 1))
    assert keys.timestamp_of(raised.key) == 20


def test_e4_equal_timestamps_are_raised_too_whatever_their_ids() -> None:
    state = source()
    state.apply(SourceEntries(entries=[placed(1, 20, life=30)]).SerializeToString())
    other = placed(1, 20, life=10)
    other.placed.gateway = "g2"
    (raised,) = apply(state, other)
    assert raised.is_raised
    assert raised.key > keys.key_of(20, envelope_id(30, 1))


def test_algorithm_1_l_27_what_is_decided_is_the_groups_own_barrier() -> None:
    there = replica()
    (one,) = apply(there.log_state, placed(1, 10))
    assert there.own.barrier == one.key == there.barrier


def test_l_20_to_23_two_learners_of_one_log_derive_the_same_state() -> None:
    values = [
        SourceEntries(entries=entries).SerializeToString()
        for entries in ([placed(1, 30)], [placed(2, 10), null(15)], [], [placed(4, 50), placed(3, 40)])
    ]
    one, two = source(), source()
    for value in values:
        one.apply(value)
        two = State.of_message("a", two.to_message())
        two.apply(value)
    assert one.to_message() == two.to_message()
    assert one.next == 4


# ------------------------------------------------------------------------------------ Algorithm 1, l. 29 to 33


def test_l_31_the_barrier_of_a_group_is_the_lowest_of_all_its_sources() -> None:
    there = replica()
    apply(there.log_state, null(100))
    there.following["b"] = Following(keys.key_of(40, b"\0" * 16))
    assert keys.timestamp_of(there.barrier) == 40
    other = there.following["b"].state = State("b", 1, ("n4",))
    other.apply(SourceEntries(entries=[null(70)]).SerializeToString())
    assert keys.timestamp_of(there.barrier) == 70


def test_e1_a_message_does_not_wait_for_the_next_one_of_its_own_source() -> None:
    there = replica()
    (one,) = apply(there.log_state, placed(1, 10))
    assert one.key <= there.barrier


def test_e2_a_null_lets_the_message_pass_that_it_was_made_for_and_none_that_is_raised_above_it() -> None:
    key = keys.key_of(10, b"\xfe" * 16)
    assert key <= keys.null_for(key)
    assert keys.raised_above(key, b"\0" * 16) > keys.null_for(key)


def test_e5_barriers_only_rise() -> None:
    state = source()
    apply(state, placed(1, 50))
    before = state.last
    apply(state, null(20))
    assert state.last == before


# --------------------------------------------------------------------------------------------- 4.2, the window


def test_section_4_2_whoever_waits_for_the_window_has_nearly_all_that_was_stamped_before() -> None:
    window = Window(None, 0.9, 1_000_000)
    for took in range(1, 101):
        window.sample("g1", took * 100)
    window.sample("g2", 3000)
    assert window.width_us == 9000 + 100
    assert window.wait_s(50_000, 50_000) == pytest.approx(0.0091)
    assert window.wait_s(50_000, 60_000) == 0.0


def test_e8_samples_above_the_cap_do_not_count_and_no_wait_is_longer() -> None:
    window = Window(None, 0.99, 10_000)
    window.sample("g1", 10_001)
    assert window.width_us == 0
    an_hour = 3_600_000_000
    assert window.wait_s(an_hour, 0) == 0.01


def test_e8_a_clock_is_never_behind_a_timestamp_seen_and_jumps_back_only_with_the_wall_clock() -> None:
    clock = Clock()
    assert clock.read(10.0) == 10_000_000
    clock.saw(50_000_000, 10.0)
    assert clock.read(10.0) == 50_000_000
    clock.saw(20_000_000, 11.0)
    assert clock.read(11.0) == 51_000_000


# --------------------------------------------------------------------------------------- 4.3, parallel instances


def test_section_4_3_a_message_that_is_decided_twice_counts_the_first_time() -> None:
    state = source()
    apply(state, placed(1, 10))
    assert verdicts(state, placed(1, 10)) == [Verdict.REPEATED]


def test_e7_a_message_with_a_hole_before_it_is_ignored_and_may_come_again() -> None:
    state = source()
    assert verdicts(state, placed(2, 20)) == [Verdict.EARLY]
    assert verdicts(state, placed(1, 10), placed(2, 20)) == [Verdict.STAMPED, Verdict.STAMPED]


def test_e7_a_new_life_of_a_gateway_counts_from_one_and_ends_the_one_before() -> None:
    state = source()
    apply(state, placed(1, 10))
    assert verdicts(state, placed(2, 20, life=LIFE + 1)) == [Verdict.EARLY]
    outcome = state.apply(SourceEntries(entries=[placed(1, 20, life=LIFE + 1)]).SerializeToString())
    assert outcome.over == [(GATEWAY, LIFE)]
    assert verdicts(state, placed(2, 30)) == [Verdict.REPEATED]


def test_of_a_life_that_is_over_nothing_more_is_placed() -> None:
    state = source()
    outcome = state.apply(
        SourceEntries(entries=[SourceEntry(over=OverEntry(gateway=GATEWAY, incarnation=LIFE))]).SerializeToString()
    )
    assert outcome.over == [(GATEWAY, LIFE)]
    assert verdicts(state, placed(1, 10)) == [Verdict.REPEATED]
    assert state.has_applied(GATEWAY, envelope_id(LIFE, 1), 1)


# ----------------------------------------------------------------------------------------------------- sendersTo


def test_a_group_is_waited_for_from_the_key_on_at_which_it_is_added() -> None:
    state = source()
    apply(state, placed(1, 10), SourceEntry(add=AddEntry(group="b")))
    assert keys.timestamp_of(state.added["b"]) == 10


def test_nothing_that_a_receiver_gets_is_at_or_below_the_key_at_which_it_began_to_wait() -> None:
    state = source()
    begins = keys.null_for(keys.key_of(100, b""))
    apply(state, SourceEntry(open=OpenEntry(group="b", key=begins)))
    (one,) = apply(state, placed(1, 50, "b"))
    assert one.key > begins


def test_a_message_to_a_group_that_is_not_open_is_refused_and_the_next_one_follows() -> None:
    state = source()
    assert verdicts(state, placed(1, 10, "b"), placed(2, 20)) == [Verdict.REFUSED, Verdict.STAMPED]
