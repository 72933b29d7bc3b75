"""ToTo's order machine beside the paper's definitions, word by word, and what it promises of all DAGs."""

from random import Random

import pytest

from ordercast.protocols.toto.order import Order
from ordercast.sim.toto.dags import Dag, random_dag, shuffled
from tests.unit.toto_literal import Literal

SEEDS = range(60)


def play(dag: Dag, phi: int, keys: list[tuple[int, int]], *, closes: bool = True) -> list[tuple]:
    order = Order(dag.size, phi)
    found = [a.keys for key in keys for a in order.add(key, dag.vectors[key], is_agreed=dag.agreed[key])]
    return found + ([a.keys for a in order.end()] if closes else [])


@pytest.mark.parametrize("seed", SEEDS)
def test_each_step_is_as_the_definitions_have_it(seed):
    random = Random(seed)
    size = random.choice([1, 2, 3, 4, 5])
    dag = random_dag(random, size, 14)
    phi = random.randrange(size // 2, size)
    order, literal = Order(size, phi), Literal(dag, phi)
    for key in shuffled(random, dag):
        found = [a.keys for a in order.add(key, dag.vectors[key], is_agreed=dag.agreed[key])]
        assert found == literal.add(key)
        assert sorted(order.candidates) == literal.candidates()
        for m, candidate in order.candidates.items():
            assert order.vt(candidate) == literal.vt(m)
            assert [q for q in range(size) if candidate.tail >> q & 1] == literal.tail(m)
            assert candidate.nvt == literal.nvt(m)
            for other, rival in order.candidates.items():
                assert order.future(candidate, rival) == literal.future(m, other)
    assert [a.keys for a in order.end()] == literal.end()


@pytest.mark.parametrize("seed", SEEDS)
def test_every_causal_order_and_every_part_of_a_dag_leads_to_the_same(seed):
    """A part that holds with each message all that it follows delivers a beginning of what the whole delivers."""
    random = Random(seed)
    size = random.choice([2, 3, 4, 5, 8])
    dag = random_dag(random, size, 40)
    phi = random.randrange(size // 2, size)
    whole = play(dag, phi, shuffled(random, dag))
    assert sorted(key for keys in whole for key in keys) == sorted(key for key in dag.agreed if dag.agreed[key])
    keys = shuffled(random, dag)
    for length in (10, 20, 30, 40):
        found = play(dag, phi, keys[:length], closes=False)
        assert found == whole[: len(found)]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_extends_causality(seed):
    random = Random(seed)
    dag = random_dag(random, random.choice([2, 3, 5]), 30)
    before: list[tuple[int, int]] = []
    for keys in play(dag, dag.size // 2, shuffled(random, dag)):
        assert not any(key in dag.past[earlier] for key in keys for earlier in before)
        assert not any(one in dag.past[other] for one in keys for other in keys if one != other)
        before += keys


@pytest.mark.parametrize("seed", SEEDS)
def test_all_ack_waits_for_everybody_and_delivers_what_somebody_put_first(seed):
    """Phi = n - 1: once each machine sent a message behind a candidate, those go that such a message follows."""
    random = Random(seed)
    size = random.choice([2, 3, 4])
    dag = random_dag(random, size, 20)
    order, literal = Order(size, size - 1), Literal(dag, size - 1)
    for key in shuffled(random, dag):
        literal.there[key] = None
        expected = []
        while len(literal.tail_of_all()) == size:
            chosen = [m for m in literal.candidates() if literal.nvt(m)]
            literal.delivered |= dict.fromkeys(chosen)
            expected.append(tuple(chosen))
        found = [a.keys for a in order.add(key, dag.vectors[key], is_agreed=dag.agreed[key])]
        assert found == expected


def test_nobody_else_is_waited_for_by_one_machine():
    assert [a.keys for a in Order(1).add((0, 1), (1,), is_agreed=True)] == [((0, 1),)]


@pytest.mark.parametrize(("size", "phi"), [(4, 1), (4, 4), (5, 1), (1, 1)])
def test_phi_is_at_least_half_and_less_than_all(size, phi):
    with pytest.raises(ValueError, match="phi has to be"):
        Order(size, phi)


def test_what_comes_before_every_vote_is_forgotten():
    order = Order(3)
    counts = [0, 0, 0]
    for turn in range(300):
        sender = turn % 3
        counts[sender] += 1
        order.add((sender, counts[sender]), tuple(counts), is_agreed=True)
    assert sum(map(len, order.vectors)) <= 6
    assert sum(map(len, order.pending)) <= 3
