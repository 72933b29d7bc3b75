"""ISIS and the gateways of its domains survive whatever members, gateways and clients send (hostile_peers.py)."""

from random import Random
from typing import Any

import pytest

from ordercast.gateway.machine import Gateway
from ordercast.protocols.celllog.pieces import checksum_of
from ordercast.protocols.isis.machine import Isis
from ordercast.protocols.isis.submission import IsisSubmission
from ordercast.sim.isis.trial import TRIAL
from ordercast.sim.trial import begin, prepare
from ordercast.v1.sequencer_pb2 import LogChunk
from tests.unit.fuzzing import FUZZED_INPUTS
from tests.unit.hostile_peers import Hostile, check_all_were_fuzzed, fuzz

#: Runs that have view changes, copies of logs whose beginning is gone, gateways, messages to several groups.
SEEDS = (12, 50, 56, 17, 24, 19, 35, 26, 52, 29, 31)
REST_S = 1.0
HANDLED = (*Isis.handles, *Gateway("g1", IsisSubmission).handles)


def seal(message: Any, random: Random) -> None:
    if isinstance(message, LogChunk):
        message.checksum = checksum_of(message.entries)


def run(seed: int, hostile: Hostile) -> None:
    scenario = TRIAL.draw(seed)
    cluster = TRIAL.cluster(scenario, seed)
    hostile.join(cluster.world)
    cluster.merged.begin = lambda: None  # Readers judge what they see, and here it is lies.
    begin(TRIAL, cluster, seed, prepare(cluster, seed))
    cluster.world.run_until(scenario.healing_at + REST_S)


def throw(count: int, each: int, **fields: Any) -> Hostile:
    hostile = Hostile(["isis", "gateway"], Random(0), seal=seal, **fields)
    return fuzz(hostile, lambda seed: run(seed, hostile), SEEDS, count, each=each)


def test_members_and_gateways_survive_whatever_is_sent():
    hostile = throw(3000, each=300, rate=2.0, compare=0.05)
    check_all_were_fuzzed(hostile, HANDLED, at_least=10)


@pytest.mark.long
def test_members_and_gateways_survive_a_great_many_of_them():
    hostile = throw(FUZZED_INPUTS, each=4000, rate=12.0, compare=0.01)
    check_all_were_fuzzed(hostile, HANDLED, at_least=1000)
