"""DAGs of messages, drawn at random, and the causal orders in which they may come."""

from dataclasses import dataclass, field
from random import Random

from ordercast.protocols.toto.ballot import Key


@dataclass
class Dag:
    """Messages in a causal order, with the set of those that each one follows."""

    size: int
    agreed: dict[Key, bool] = field(default_factory=dict)
    vectors: dict[Key, tuple[int, ...]] = field(default_factory=dict)
    past: dict[Key, dict[Key, None]] = field(default_factory=dict)

    def add(self, key: Key, *behind: Key, agreed: bool = True) -> None:
        sender, number = key
        past = dict.fromkeys([key])
        for other in (*behind, *([(sender, number - 1)] if number > 1 else [])):
            past |= self.past[other]
        self.agreed[key], self.past[key] = agreed, past
        counts = [max((n for machine, n in past if machine == place), default=0) for place in range(self.size)]
        self.vectors[key] = tuple(counts)


def random_dag(random: Random, size: int, messages: int) -> Dag:
    """Each machine has heard a part of what the others sent, in causal order."""
    dag = Dag(size)
    heard: list[dict[Key, None]] = [{} for _ in range(size)]
    idle = random.random() < 0.3
    for _ in range(messages):
        sender = random.randrange(size if not idle else max(1, size - 1))
        number = 1 + sum(1 for machine, _ in dag.agreed if machine == sender)
        for key in list(dag.agreed):
            if random.random() < random.choice([0.1, 0.4, 0.8]):
                heard[sender] |= dag.past[key]
        dag.add((sender, number), *heard[sender], agreed=random.random() < 0.6)
        heard[sender] |= dag.past[(sender, number)]
    return dag


def shuffled(random: Random, dag: Dag) -> list[Key]:
    """Another causal order of the same messages."""
    left, done = list(dag.agreed), dict[Key, None]()
    while left:
        ready = [key for key in left if all(other in done or other == key for other in dag.past[key])]
        chosen = random.choice(ready)
        left.remove(chosen)
        done[chosen] = None
    return list(done)
