"""SCALATOM, its acceptors, proposers and gateways survive whatever is said in a conversation (hostile_peers.py).

test_fuzzed_input.py has each of these machines alone, in conversations written by hand.
"""

from random import Random
from typing import Any

import pytest

from ordercast.gateway.machine import Gateway
from ordercast.protocols.paxos.acceptor import Acceptor
from ordercast.protocols.paxos.proposer import Proposer
from ordercast.protocols.scalatom.machine import Scalatom
from ordercast.protocols.scalatom.submission import ScalatomSubmission
from ordercast.sim.scalatom.trial import TRIAL
from ordercast.sim.trial import begin, prepare
from ordercast.v1.consensus_pb2 import Promise
from tests.unit.fuzzing import FUZZED_INPUTS
from tests.unit.hostile_peers import Hostile, check_all_were_fuzzed, fuzz
from tests.unit.test_fuzzed_input import MAY_CONTRADICT, seal

#: Runs with crashes, changes of replicas, lost disks and logs whose beginning is gone: every message is in some.
SEEDS = (5, 15, 31, 12, 41, 47, 34, 36, 1, 7, 55, 18)
ROLES = ("scalatom", "acceptor", "proposer", "gateway")
HANDLED = (*Scalatom.handles, *Acceptor.handles, *Proposer.handles, *Gateway("g1", ScalatomSubmission).handles)
REST_S = 1.0
#: An acceptor that hides its vote, or makes one up, can have two values decided.
OF_VOTES = (Promise,)


def run(seed: int, hostile: Hostile) -> None:
    scenario = TRIAL.draw(seed, reconfigure=True)
    cluster = TRIAL.cluster(scenario, seed)
    hostile.join(cluster.world)
    cluster.merged.begin = lambda: None  # Readers judge what they see, and here it is lies.
    begin(TRIAL, cluster, seed, prepare(cluster, seed))
    cluster.world.run_until(scenario.healing_at + REST_S)


def throw(count: int, each: int, **fields: Any) -> Hostile:
    hostile = Hostile(ROLES, Random(0), may_contradict=(*MAY_CONTRADICT, *OF_VOTES), seal=seal, **fields)
    return fuzz(hostile, lambda seed: run(seed, hostile), SEEDS, count, each=each)


def test_replicas_acceptors_proposers_and_gateways_survive_whatever_is_sent():
    check_all_were_fuzzed(throw(4000, each=400, rate=4.0, compare=0.05), HANDLED, at_least=10)


@pytest.mark.long
def test_replicas_acceptors_proposers_and_gateways_survive_a_great_many_of_them():
    check_all_were_fuzzed(throw(FUZZED_INPUTS, each=4000, rate=12.0, compare=0.01), HANDLED, at_least=1000)
