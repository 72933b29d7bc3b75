"""What is finished only grows, whatever order the statements come in."""

from hypothesis import given
from hypothesis import strategies as st

from ordercast.core.finished import Finished

COUNTERS = range(12)
#: A gateway's statement: a counter, and some below it that are still open.
STATEMENT = st.tuples(st.integers(0, 10), st.sets(st.integers(0, 9), max_size=4)).map(
    lambda drawn: (drawn[0], sorted(counter for counter in drawn[1] if counter < drawn[0]))
)
#: What a peer may say: also open counters that its own counter does not cover.
ANYTHING = st.tuples(st.integers(0, 10), st.lists(st.integers(0, 11), max_size=4))


def covered(finished: Finished) -> set[int]:
    return {counter for counter in COUNTERS if counter in finished}


def merged(*statements: tuple[int, list[int]]) -> Finished:
    finished = Finished()
    for done, open_ in statements:
        finished.merge(done, open_)
    return finished


def test_everything_below_done_is_finished_but_what_is_open():
    finished = Finished(5, [1, 3])
    assert covered(finished) == {0, 2, 4}


def test_nothing_is_finished_at_first():
    assert covered(Finished()) == set()


def test_an_open_counter_is_finished_once_a_later_statement_leaves_it_out():
    finished = merged((5, [1, 3]), (7, [3]))
    assert covered(finished) == {0, 1, 2, 4, 5, 6}


def test_a_late_statement_does_not_open_what_is_finished():
    finished = merged((7, []), (5, [1, 3]))
    assert covered(finished) == set(range(7))
    assert finished.open == ()


def test_an_old_statement_still_closes_what_a_newer_one_did_not_know_of():
    """Two envelopes overtake each other: the lower counter knows more about the counters below it."""
    finished = merged((5, [2]), (3, []))
    assert covered(finished) == {0, 1, 2, 3, 4}


def test_a_statement_is_news_only_if_it_closes_something():
    finished = Finished()
    assert finished.merge(5, [3])
    assert not finished.merge(5, [3])
    assert not finished.merge(4, [3])
    assert finished.merge(5, [])


@given(st.lists(STATEMENT, max_size=4), STATEMENT)
def test_merging_keeps_what_was_finished_and_adds_what_is(before, statement):
    finished = merged(*before)
    expected = covered(finished) | covered(Finished(*statement))
    finished.merge(*statement)
    assert covered(finished) == expected


@given(st.lists(ANYTHING, max_size=5), st.randoms())
def test_the_order_of_statements_does_not_matter(statements, random):
    shuffled = list(statements)
    random.shuffle(shuffled)
    assert covered(merged(*statements)) == covered(merged(*shuffled))


@given(st.lists(STATEMENT, max_size=5))
def test_open_counters_are_below_done_and_rising_so_that_their_number_stays_bounded(statements):
    finished = merged(*statements)
    assert list(finished.open) == sorted({c for c in finished.open if c < finished.done})
