"""Commands to membership with anything in them: each is executed or refused, and a refused one changes nothing.

Every kind of command is taken from the descriptor, so none is left out. A refusal that changed something would not
make members differ, as all of them execute the same log; but whoever was refused was told that nothing happened.
"""

from random import Random
from typing import Any

import pytest

from ordercast.membership.settings import LEVEL
from ordercast.membership.state import Code, State
from ordercast.v1.membership_pb2 import ClusterState, Command
from tests.unit.fuzzing import FUZZED_INPUTS, change, with_an_end
from tests.unit.test_membership_state import Cluster

KINDS = [field.name for field in Command.DESCRIPTOR.oneofs_by_name["what"].fields]
#: A state begins anew after so many commands, so that some of them find it as it was meant.
COMMANDS = 100


def cluster_with_groups() -> Cluster:
    cluster = Cluster()
    cluster.nodes("n1", "n2", "n6")
    cluster.raise_level(LEVEL)
    for name in ("a", "b", "c"):
        cluster.group(name)
    cluster.move("a", "x", 3)
    return cluster


def random_command(random: Random, kind: str, number: int) -> Command:
    command = Command(request_id=b"fuzzed %d" % number)
    what = getattr(command, kind)
    what.SetInParent()
    for _ in range(random.randrange(12)):
        change(what, random)
    return command


def without_memory(state: State) -> bytes:
    """What a command is about: all but how far the log goes, and which commands were in it."""
    found = ClusterState.FromString(state.to_bytes())
    found.ClearField("revision")
    found.ClearField("executed")
    return found.SerializeToString(deterministic=True)


def fuzz(count: int) -> dict[str, dict[Any, int]]:
    outcomes: dict[str, dict[Any, int]] = {kind: {} for kind in KINDS}
    random = Random("commands")
    cluster = cluster_with_groups()
    before = without_memory(cluster.state)
    for number in range(count):
        if number % COMMANDS == 0:
            cluster = cluster_with_groups()
            before = without_memory(cluster.state)
        kind = KINDS[number % len(KINDS)]
        (result,) = cluster.batch(random_command(random, kind, number))
        after = without_memory(cluster.state)
        assert result.code == Code.OK or after == before, f"refused ({result.message}), but not without a trace"
        before = after
        outcomes[kind][result.code] = outcomes[kind].get(result.code, 0) + 1
    # What came of it all is a state that a member can start with.
    assert State.from_bytes(cluster.state.to_bytes()).to_bytes() == cluster.state.to_bytes()
    return outcomes


def test_membership_executes_or_refuses_whatever_is_asked():
    with with_an_end():
        outcomes = fuzz(2000)
    assert all(sum(counts.values()) >= 50 for counts in outcomes.values()), outcomes


@pytest.mark.long
def test_membership_executes_or_refuses_a_great_many_of_them():
    fuzz(FUZZED_INPUTS)
