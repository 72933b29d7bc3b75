"""A replica's history, and the statements it makes about it: whatever happened, they are true."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.core.ids import KEY_MIN, envelope_id, order_key
from ordercast.protocols.scalatom.history import FORGOTTEN_MAX, OwnHistory, Statement


def id_of(number: int) -> bytes:
    return envelope_id(1, number)


def key_of(sn: int) -> bytes:
    return order_key(sn, id_of(sn))


def everyone(id_: bytes) -> bool:
    return True


def history_of(*stamps: int) -> OwnHistory:
    """An entry per stamp, with the stamp as its number."""
    history = OwnHistory()
    for rec_ts in stamps:
        history.add(id_of(rec_ts), rec_ts)
    return history


def entries(*stamps: int) -> list[tuple[int, bytes]]:
    return [(rec_ts, id_of(rec_ts)) for rec_ts in stamps]


def test_a_statement_lists_the_entries_from_its_base_up_to_but_not_with_its_clock():
    history = history_of(2, 3, 5, 7, 8)
    assert history.statement(3, 8, everyone) == Statement(3, 8, entries(3, 5, 7), KEY_MIN)


def test_entries_are_listed_by_stamp_however_they_were_added():
    history = history_of(7, 2, 5)
    assert history.statement(0, 9, everyone).entries == entries(2, 5, 7)


def test_a_statement_about_nothing_still_tells_the_clock():
    assert OwnHistory().statement(4, 9, everyone) == Statement(4, 9, [], KEY_MIN)


def test_the_clock_does_not_pass_an_entry_that_is_withheld():
    """[E4] Otherwise the peer would take our history for complete without it."""
    statement = history_of(2, 5, 7).statement(0, 9, lambda id_: id_ != id_of(5))
    assert (statement.clock, statement.entries) == (5, entries(2))


def test_an_entry_withheld_below_the_base_holds_nothing_up():
    statement = history_of(2, 5, 7).statement(3, 9, lambda id_: id_ != id_of(2))
    assert (statement.clock, statement.entries) == (9, entries(5, 7))


def test_a_forgotten_entry_is_covered_by_its_order_key():
    history = history_of(2, 5, 7)
    history.forget(id_of(5), key_of(30))
    assert len(history) == 2
    assert history.statement(0, 9, everyone) == Statement(0, 9, entries(2, 7), key_of(30))


def test_what_was_forgotten_below_the_base_does_not_hold_the_peer_up():
    """[E8] F covers the range of the statement alone, or a peer would wait for what it knows already."""
    history = history_of(2, 5, 7)
    history.forget(id_of(5), key_of(30))
    assert history.statement(5, 9, everyone).forgotten == key_of(30)
    assert history.statement(6, 9, everyone).forgotten == KEY_MIN


def test_the_highest_order_key_counts_not_that_of_the_highest_stamp():
    history = history_of(2, 5)
    history.forget(id_of(2), key_of(40))
    history.forget(id_of(5), key_of(30))
    assert history.statement(0, 9, everyone).forgotten == key_of(40)
    assert history.statement(3, 9, everyone).forgotten == key_of(30)


def test_forgetting_what_is_not_there_changes_nothing():
    history = history_of(2, 5)
    history.forget(id_of(3), key_of(30))
    history.forget(id_of(9), key_of(30))
    assert history.statement(0, 9, everyone) == Statement(0, 9, entries(2, 5), KEY_MIN)


def test_pruned_entries_are_remembered_as_one_key():
    history = history_of(2, 5, 7)
    for rec_ts, sn in ((2, 20), (5, 50), (7, 70)):
        history.forget(id_of(rec_ts), key_of(sn))
    history.prune(6)
    assert history.statement(0, 9, everyone).forgotten == key_of(70)
    assert history.statement(6, 7, everyone).forgotten == key_of(70)
    assert history.statement(8, 9, everyone).forgotten == KEY_MIN


def test_pruning_keeps_the_key_for_a_peer_that_asks_again_from_the_beginning():
    history = history_of(2, 5)
    history.forget(id_of(2), key_of(20))
    history.prune(5)
    assert history.statement(0, 9, everyone).forgotten == key_of(20)
    assert history.statement(2, 9, everyone).forgotten == key_of(20)
    assert history.statement(3, 9, everyone).forgotten == KEY_MIN


def test_of_pruned_entries_the_highest_key_is_remembered_not_that_of_the_highest_stamp():
    history = history_of(2, 5)
    history.forget(id_of(2), key_of(40))
    history.forget(id_of(5), key_of(30))
    history.prune(6)
    assert history.statement(0, 9, everyone).forgotten == key_of(40)


def test_after_a_restart_every_entry_below_the_clock_may_have_been_forgotten():
    history = history_of(5)
    history.forget_all_below(100, key_of(80))
    assert history.statement(0, 120, everyone) == Statement(0, 120, entries(5), key_of(80))
    assert history.statement(101, 120, everyone).forgotten == KEY_MIN


def test_a_second_restart_does_not_lower_what_was_forgotten():
    history = OwnHistory()
    history.forget_all_below(100, key_of(80))
    history.forget_all_below(200, key_of(40))
    assert history.statement(0, 300, everyone).forgotten == key_of(80)


def test_what_is_known_of_forgotten_entries_is_bounded_and_still_covers_them():
    count = 10 * FORGOTTEN_MAX
    history = history_of(*range(count))
    for rec_ts in range(count):
        history.forget(id_of(rec_ts), key_of(rec_ts))
        assert len(history._forgotten) <= FORGOTTEN_MAX
    assert history.statement(0, count, everyone).forgotten == key_of(count - 1)
    assert history.statement(count - 1, count, everyone).forgotten == key_of(count - 1)


def test_of_several_entries_of_an_envelope_the_lowest_counts():
    """A hand-over brings those of others."""
    history = history_of(5)
    history.add(id_of(5), 9)
    assert history.entry(id_of(5)) == 5
    history.add(id_of(5), 3)
    assert (history.entry(id_of(5)), len(history)) == (3, 1)
    assert history.statement(0, 9, everyone).entries == [(3, id_of(5))]
    assert history.entry(id_of(6)) is None


def test_entries_at_the_same_place_are_forgotten_one_by_one():
    history = OwnHistory()
    for number in (1, 2, 3):
        history.add(id_of(number), 7)
    history.forget(id_of(2), key_of(20))
    assert sorted(history.statement(0, 9, everyone).entries) == [(7, id_of(1)), (7, id_of(3))]
    assert history.statement(0, 9, everyone).forgotten == key_of(20)


@pytest.mark.parametrize("withheld", [1, 2, 3])
def test_an_entry_at_the_same_place_as_one_that_is_withheld_is_not_told_either(withheld):
    """The clock that is told is theirs, and a statement lists what is below its clock."""
    history = history_of(4)
    for number in (1, 2, 3):
        history.add(id_of(number), 7)
    statement = history.statement(0, 9, lambda id_: id_ != id_of(withheld))
    assert (statement.clock, statement.entries) == (7, entries(4))


def test_of_entries_that_are_not_kept_the_order_key_is_left():
    """In a new configuration: the others are delivered."""
    history = history_of(2, 5, 7)
    history.keep({id_of(5)}, 9, key_of(30))
    assert history.statement(0, 12, everyone) == Statement(0, 12, entries(5), key_of(30))
    assert [history.entry(id_of(number)) for number in (2, 5, 7)] == [None, 5, None]
    history.add(id_of(2), 11)
    assert history.statement(0, 12, everyone).entries == [(5, id_of(5)), (11, id_of(2))]


# ------------------------------------------------------------------------------------------ any course of events


@dataclass
class Course:
    """A history beside everything that was ever entered."""

    history: OwnHistory = field(default_factory=OwnHistory)
    clock: int = 0
    entered: dict[bytes, int] = field(default_factory=dict)
    keys: dict[bytes, bytes] = field(default_factory=dict)

    def alive(self) -> list[bytes]:
        return [id_ for id_ in self.entered if id_ not in self.keys]

    def enter(self, rec_ts: int) -> None:
        id_ = id_of(len(self.entered))
        self.entered[id_] = rec_ts
        self.history.add(id_, rec_ts)

    def add(self, gap: int, _: int) -> None:
        self.clock += gap
        self.enter(self.clock)
        self.clock += 1

    def hand_over(self, below: int, choice: int) -> None:
        """An entry of somebody else's: of an envelope that is not known here, or lower than our own."""
        rec_ts = max(self.clock - below, 0)
        if choice % 2 and self.alive():
            id_ = self.alive()[choice % len(self.alive())]
            self.entered[id_] = min(self.entered[id_], rec_ts)
            self.history.add(id_, rec_ts)
        elif self.clock:
            self.enter(min(rec_ts, self.clock - 1))

    def forget(self, choice: int, above: int) -> None:
        if self.alive():
            id_ = self.alive()[choice % len(self.alive())]
            self.keys[id_] = order_key(self.entered[id_] + above, id_)
            self.history.forget(id_, self.keys[id_])

    def prune(self, told: int, _: int) -> None:
        self.history.prune(told)

    def restart(self, reserved: int, _: int) -> None:
        """As recovery does it: what is on disk is added again, the rest counts as forgotten."""
        self.clock += reserved
        self.history = OwnHistory()
        for id_ in self.alive():
            self.history.add(id_, self.entered[id_])
        self.history.forget_all_below(self.clock, max(self.keys.values(), default=KEY_MIN))

    def check(self, base: int, withheld: int) -> None:
        """Nothing between base and clock is missing, and nothing is listed that the peer may not hear of."""
        base = min(base, self.clock)
        hidden = {id_ for id_ in self.entered if id_[-1] % 7 == withheld}
        statement = self.history.statement(base, self.clock, lambda id_: id_ not in hidden)
        assert base <= statement.clock <= self.clock
        places = [rec_ts for rec_ts, _ in statement.entries]
        assert places == sorted(places)
        listed = {id_: rec_ts for rec_ts, id_ in statement.entries}
        for id_, rec_ts in self.entered.items():
            if base <= rec_ts < statement.clock:
                assert listed.pop(id_, None) == rec_ts or self.keys[id_] <= statement.forgotten
        assert not listed
        assert not hidden & {id_ for _, id_ in statement.entries}


STEP = st.tuples(
    st.sampled_from([Course.add, Course.add, Course.hand_over, Course.forget, Course.prune, Course.restart]),
    st.integers(0, 12),
    st.integers(0, 12),
)


@settings(max_examples=300)
@given(st.lists(STEP, max_size=25), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), min_size=1))
def test_a_statement_is_true_after_any_course_of_events(steps, questions):
    course = Course()
    for happens, one, other in steps:
        happens(course, one, other)
    for question in questions:
        course.check(*question)
