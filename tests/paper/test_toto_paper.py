"""[DKM93] 4, Table 1, rule by rule: the quantifying functions for the DAG of Figure 1."""

import pytest

from ordercast.protocols.toto.ballot import INFINITE, UNHEARD, Candidate
from ordercast.protocols.toto.order import CHI, Order, at_most, less, win
from ordercast.sim.toto import papers
from ordercast.sim.toto.dags import Dag
from ordercast.sim.toto.papers import FIGURE_1, A, B, C, D, E, figure_1


def the_dag() -> Dag:
    dag = Dag(5)
    for key, behind, is_agreed in FIGURE_1:
        dag.add(key, *behind, agreed=is_agreed)
    return dag


def test_figure_1_the_second_message_of_d_follows_what_the_text_says():
    dag = the_dag()
    assert sorted(dag.past[(D, 2)]) == [(A, 1), (C, 1), (D, 1), (D, 2), (E, 1), (E, 2)]


def test_4_1_candidates_follow_only_delivered_messages():
    order = figure_1()
    assert sorted(order.candidates) == [(B, 1), (C, 1), (E, 2)]
    assert order.pending[C][-1] == 2, "it is pending, and follows a candidate"


def test_table_1_to_the_letter():
    (table, *_) = [papers._table_1()]
    assert len(table.rows) == 12
    assert [row.measured for row in table.rows] == [row.published for row in table.rows]


# ------------------------------------------------------------------------------------- Win, Future, (DEL)


def candidate(votes: int, key: tuple[int, int] = (0, 1)) -> Candidate:
    return Candidate(key, votes, votes)


def test_win_takes_more_than_phi():
    assert win(candidate(0b0111), candidate(0b1000), 2) == 1
    assert win(candidate(0b1000), candidate(0b0111), 2) == 0
    assert win(candidate(0b0011), candidate(0b1100), 2) == CHI, "as many as phi are not enough"


def test_win_counts_where_only_one_of_them_has_a_number():
    assert less(candidate(0b0111), candidate(0b0011)) == 0b0100


def test_two_infinities_are_equal_and_nothing_compares_with_what_is_unheard():
    assert at_most(candidate(0b0001), candidate(0b0010), heard=0b0111) == 0b0101
    assert at_most(candidate(0b0001), candidate(0b0010), heard=0b0011) == 0b0001


def two_candidates(heard: int, one: int, other: int) -> tuple[Order, Candidate, Candidate]:
    order = Order(4, 2)
    order.tail = heard
    pair = candidate(one, (0, 1)), candidate(other, (1, 1))
    order.candidates = {c.key: c for c in pair}
    return order, *pair


def test_future_holds_what_may_still_become_of_a_comparison():
    order, one, other = two_candidates(0b0011, 0b0001, 0b0010)
    assert order.future(one, other) == (0, 1, CHI), "one is lost for each: three of four may be won"
    order, one, other = two_candidates(0b0111, 0b0001, 0b0110)
    assert order.future(one, other) == (0, CHI)
    order, one, other = two_candidates(0b1110, 0b0000, 0b1110)
    assert order.future(one, other) == (0,)


def test_sources_are_those_against_whom_nobody_can_win():
    order, _one, other = two_candidates(0b0111, 0b0001, 0b0110)
    assert order.sources() == [other]


def test_del_1_who_is_no_source_must_have_lost():
    order, _one, other = two_candidates(0b0111, 0b0001, 0b0110)
    assert not order.is_internally_stable([other]), "it may be that nobody wins, and then both are sources"
    order, _one, other = two_candidates(0b1110, 0b0000, 0b1110)
    assert order.is_internally_stable([other])


def test_del_2_a_source_has_more_than_phi_votes_and_all_are_followed_by_the_others():
    order, one, other = two_candidates(0b0111, 0b0111, 0b0010)
    assert order.is_followed([one])
    assert not order.is_followed([one, other]), "other's tail is one machine, and has to be two"
    one.votes = 0b0011
    assert not order.is_followed([one]), "phi votes are not enough"


def test_del_2_b_everybody_has_been_heard():
    order, one, other = two_candidates(0b0111, 0b0001, 0b0110)
    assert not order.is_externally_stable([one, other])
    order.tail = 0b1111
    assert order.is_externally_stable([one, other])


def test_figure_3_a_new_candidate_is_infinite_for_whoever_has_voted():
    order = Order(3, 2)
    order.receive((0, 1), (1, 0, 0), is_agreed=True)
    order.receive((1, 1), (0, 1, 0), is_agreed=True)
    assert order.vt(order.candidates[(1, 1)]) == [INFINITE, 1, UNHEARD]
    assert order.vt(order.candidates[(0, 1)]) == [1, INFINITE, UNHEARD]


def test_figure_4_who_is_not_heard_any_more_is_infinite():
    order = Order(3, 2)
    order.receive((0, 1), (1, 0, 0), is_agreed=True)
    order.close()
    assert (order.vt(order.candidates[(0, 1)]), order.ntail) == ([1, INFINITE, INFINITE], 3)
    assert order.deliverable() == [(0, 1)]


def test_3_a_set_is_delivered_by_sender_and_number_however_it_came():
    for first, second in (((0, 1), (1, 1)), ((1, 1), (0, 1))):
        order = Order(2, 1)
        for key in (first, second):
            found = order.add(key, tuple(int(place == key[0]) for place in range(2)), is_agreed=True)
        assert [activation.keys for activation in found] == [((0, 1), (1, 1))]


# ---------------------------------------------------------------------------------------------- Tables 2 to 5


@pytest.mark.parametrize("source", papers.INTERVALS)
def test_tables_2_to_5_with_fewer_messages(source):
    """The index is hardly above its least, and the model predicts the latency from it."""
    toto = papers.run(source, 100, papers.TOTO, messages=800)
    all_ack = papers.run(source, 100, papers.ALL_ACK, messages=800)
    assert papers.PHI + 1 <= toto.tau < papers.PHI + 2
    assert all_ack.tau == papers.MACHINES
    assert toto.latency_ms < all_ack.latency_ms
    for observed in (toto, all_ack):
        predicted = papers.predicted_ms(source, 100, observed)
        assert abs(predicted - observed.latency_ms) < 0.2 * observed.latency_ms


def test_every_published_figure_stands_beside_one_of_ours(monkeypatch):
    monkeypatch.setattr(papers, "MESSAGES", 200)
    monkeypatch.setattr(papers.run, "__kwdefaults__", {"messages": 200, "seed": 1})
    tables = papers.tables()
    assert len(tables) == 7
    assert all(row.measured is not None for table in tables for row in table.rows)
