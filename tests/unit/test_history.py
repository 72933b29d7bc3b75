"""A replica's history, and the statements it makes about it: whatever happened, they are true."""

from dataclasses import dataclass, field

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
    history.forget(id_of(5), 5, key_of(30))
    assert len(history) == 2
    assert history.statement(0, 9, everyone) == Statement(0, 9, entries(2, 7), key_of(30))


def test_what_was_forgotten_below_the_base_does_not_hold_the_peer_up():
    """[E8] F covers the range of the statement alone, or a peer would wait for what it knows already."""
    history = history_of(2, 5, 7)
    history.forget(id_of(5), 5, key_of(30))
    assert history.statement(5, 9, everyone).forgotten == key_of(30)
    assert history.statement(6, 9, everyone).forgotten == KEY_MIN


def test_the_highest_order_key_counts_not_that_of_the_highest_stamp():
    history = history_of(2, 5)
    history.forget(id_of(2), 2, key_of(40))
    history.forget(id_of(5), 5, key_of(30))
    assert history.statement(0, 9, everyone).forgotten == key_of(40)
    assert history.statement(3, 9, everyone).forgotten == key_of(30)


def test_forgetting_what_is_not_there_changes_nothing():
    history = history_of(2, 5)
    history.forget(id_of(3), 3, key_of(30))
    history.forget(id_of(9), 5, key_of(30))
    assert history.statement(0, 9, everyone) == Statement(0, 9, entries(2, 5), KEY_MIN)


def test_pruned_entries_are_remembered_as_one_key():
    history = history_of(2, 5, 7)
    for rec_ts, sn in ((2, 20), (5, 50), (7, 70)):
        history.forget(id_of(rec_ts), rec_ts, key_of(sn))
    history.prune(6)
    assert history.statement(0, 9, everyone).forgotten == key_of(70)
    assert history.statement(6, 7, everyone).forgotten == key_of(70)
    assert history.statement(8, 9, everyone).forgotten == KEY_MIN


def test_pruning_keeps_the_key_for_a_peer_that_asks_again_from_the_beginning():
    history = history_of(2, 5)
    history.forget(id_of(2), 2, key_of(20))
    history.prune(5)
    assert history.statement(0, 9, everyone).forgotten == key_of(20)
    assert history.statement(2, 9, everyone).forgotten == key_of(20)
    assert history.statement(3, 9, everyone).forgotten == KEY_MIN


def test_of_pruned_entries_the_highest_key_is_remembered_not_that_of_the_highest_stamp():
    history = history_of(2, 5)
    history.forget(id_of(2), 2, key_of(40))
    history.forget(id_of(5), 5, key_of(30))
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
        history.forget(id_of(rec_ts), rec_ts, key_of(rec_ts))
        assert len(history._forgotten) <= FORGOTTEN_MAX
    assert history.statement(0, count, everyone).forgotten == key_of(count - 1)
    assert history.statement(count - 1, count, everyone).forgotten == key_of(count - 1)


# ------------------------------------------------------------------------------------------ any course of events


@dataclass
class Course:
    """A history beside everything that was ever stamped."""

    history: OwnHistory = field(default_factory=OwnHistory)
    clock: int = 0
    stamped: dict[int, bytes] = field(default_factory=dict)
    keys: dict[int, bytes] = field(default_factory=dict)

    def alive(self) -> list[int]:
        return [rec_ts for rec_ts in self.stamped if rec_ts not in self.keys]

    def add(self, gap: int, _: int) -> None:
        self.clock += gap
        self.stamped[self.clock] = id_of(self.clock)
        self.history.add(self.stamped[self.clock], self.clock)
        self.clock += 1

    def forget(self, choice: int, above: int) -> None:
        if self.alive():
            rec_ts = self.alive()[choice % len(self.alive())]
            self.keys[rec_ts] = order_key(rec_ts + above, self.stamped[rec_ts])
            self.history.forget(self.stamped[rec_ts], rec_ts, self.keys[rec_ts])

    def prune(self, told: int, _: int) -> None:
        self.history.prune(told)

    def restart(self, reserved: int, _: int) -> None:
        """As recovery does it: what is on disk is added again, the rest counts as forgotten."""
        self.clock += reserved
        self.history = history_of(*self.alive())
        self.history.forget_all_below(self.clock, max(self.keys.values(), default=KEY_MIN))

    def check(self, base: int, withheld: int) -> None:
        """Nothing between base and clock is missing, and nothing is listed that the peer may not hear of."""
        base = min(base, self.clock)
        hidden = {id_ for rec_ts, id_ in self.stamped.items() if rec_ts % 7 == withheld}
        statement = self.history.statement(base, self.clock, lambda id_: id_ not in hidden)
        assert base <= statement.clock <= self.clock
        listed = dict(statement.entries)
        assert list(listed) == sorted(listed)
        for rec_ts, id_ in self.stamped.items():
            if base <= rec_ts < statement.clock:
                assert listed.pop(rec_ts, None) == id_ or self.keys[rec_ts] <= statement.forgotten
        assert not listed
        assert not hidden & {id_ for _, id_ in statement.entries}


STEP = st.tuples(
    st.sampled_from([Course.add, Course.add, Course.forget, Course.prune, Course.restart]),
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
