"""The replicated log survives whatever its members send to each other (hostile_peers.py)."""

from random import Random
from typing import Any

import pytest

from ordercast.protocols.paxos.log import LogReplica
from ordercast.v1.consensus_pb2 import LogAccept, LogDecided, LogInstall, LogPromise, LogTail
from tests.sim.paxos_log import Run
from tests.unit.fuzzing import FUZZED_INPUTS
from tests.unit.hostile_peers import Hostile, check_all_were_fuzzed, fuzz

#: Runs with snapshots, lost disks and members that are let in again.
SEEDS = (10, 13, 18, 36, 42, 43, 50, 53, 59, 70, 80, 96)
#: They tell what is decided: of two that contradict each other one is wrong, and nobody knows which.
MAY_CONTRADICT = (LogAccept, LogPromise, LogDecided, LogTail, LogInstall)


def converse(seed: int, hostile: Hostile) -> None:
    run = Run(seed)
    hostile.join(run.world)
    for process in run.world.processes.values():
        process.start()
    run.world.run_until(run.healing_at + 1.0)


def throw(count: int, each: int, **fields: Any) -> Hostile:
    hostile = Hostile(["log"], Random(0), may_contradict=MAY_CONTRADICT, **fields)
    return fuzz(hostile, lambda seed: converse(seed, hostile), SEEDS, count, each=each)


def test_members_of_the_log_survive_whatever_is_sent():
    check_all_were_fuzzed(throw(3000, each=300, rate=2.0, compare=0.05), LogReplica.handles, at_least=10)


@pytest.mark.long
def test_members_of_the_log_survive_a_great_many_of_them():
    check_all_were_fuzzed(
        throw(FUZZED_INPUTS, each=1000, rate=4.0, compare=0.02), LogReplica.handles, at_least=1000
    )
