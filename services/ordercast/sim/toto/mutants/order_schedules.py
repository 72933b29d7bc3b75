"""Stories for mutants of the order: machines that hear of one DAG in different causal orders, and of different
parts.

A run of a whole cluster seldom makes a wide DAG. Here many are drawn, and every machine has to deliver a
beginning of what another one delivers who has heard everything.
"""

from itertools import pairwise
from random import Random
from typing import Any, ClassVar

from ordercast.protocols.toto.ballot import Key
from ordercast.protocols.toto.order import Order
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.toto.dags import Dag, random_dag, shuffled
from ordercast.sim.trial import violation_in

DAGS = 400
MESSAGES = 24


class OneDag:
    """Several machines, one DAG."""

    mutant: ClassVar[str]

    def verdict(self) -> Violation | None:
        return violation_in(self._play)

    def _play(self) -> None:
        for seed in range(DAGS):
            random = Random(seed)
            size = random.choice([2, 3, 4, 5])
            dag = random_dag(random, size, MESSAGES)
            phi = random.randrange(size // 2, size)
            self._compare(dag, phi, random)

    def _compare(self, dag: Dag, phi: int, random: Random) -> None:
        whole = delivered(dag, phi, shuffled(random, dag), closes=True)
        if sorted(whole) != sorted(key for key in dag.agreed if dag.agreed[key]):
            raise Violation("termination", f"of {len(dag.agreed)} messages only {len(whole)} are delivered")
        for one, other in pairwise(whole):
            if other in dag.past[one]:
                raise Violation("causality", f"{other} is delivered behind {one}, which follows it")
        for length in range(4, MESSAGES + 1, 4):
            found = delivered(dag, phi, shuffled(random, dag)[:length], closes=False)
            if found != whole[: len(found)]:
                raise Violation("order", f"{found} is not how {whole} begins")


def delivered(dag: Dag, phi: int, keys: list[Key], *, closes: bool) -> list[Key]:
    order = Order(dag.size, phi)
    activations = [a for key in keys for a in order.add(key, dag.vectors[key], is_agreed=dag.agreed[key])]
    if closes:
        activations += order.end()
    return [key for activation in activations for key in activation.keys]


def _story(mutant: str) -> type[OneDag]:
    return type("OneDag", (OneDag,), {"mutant": mutant})


ORDER_SCHEDULES: dict[str, type[Any]] = {
    mutant: _story(mutant)
    for mutant in (
        "votes-of-the-old-candidates",
        "unheard-counted-as-infinite",
        "two-infinities-differ",
        "several-candidates-of-one-machine",
        "sources-in-order-of-receipt",
        "win-with-half",
        "followed-without-votes",
        "sources-without-the-losers",
    )
}
