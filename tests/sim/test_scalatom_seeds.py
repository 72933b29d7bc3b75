"""SCALATOM in the simulator: seeds with faults, and runs that are the same wherever they are run."""

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest
from google.protobuf.message import Message

from ordercast.protocols.scalatom.settings import Settings
from ordercast.sim.campaign import run_many, run_one
from ordercast.sim.network import NetworkSettings
from ordercast.sim.scalatom.cluster import ScalatomCluster
from ordercast.sim.scalatom.scenario import draw
from ordercast.sim.scalatom.trial import TRIAL
from ordercast.sim.trial import begin, prepare, run_scenario
from ordercast.v1.consensus_pb2 import Accept


@pytest.mark.parametrize("first", [1, *(pytest.param(n, marks=pytest.mark.long) for n in range(26, 201, 25))])
def test_no_seed_violates_a_property(first: int) -> None:
    campaign = run_many(range(first, first + 25), jobs=1, protocol="scalatom")
    assert [(r.seed, str(r.violation)) for r in campaign.violations] == []
    assert campaign.delivered > 0


@pytest.mark.parametrize("first", [1, *(pytest.param(n, marks=pytest.mark.long) for n in range(26, 101, 25))])
def test_no_seed_violates_a_property_while_replicas_come_and_go(first: int) -> None:
    campaign = run_many(range(first, first + 25), jobs=1, protocol="scalatom", reconfigure=True)
    assert [(r.seed, str(r.violation)) for r in campaign.violations] == []
    assert campaign.strikes["configuration_started"] > 0


@pytest.mark.parametrize("first", [1, *(pytest.param(n, marks=pytest.mark.long) for n in (5, 9, 13))])
def test_raw_datagrams_with_a_third_lost_and_half_doubled_only_take_longer(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An answer takes seconds there, and some clients wait for each before they go on.
    monkeypatch.setattr(ScalatomCluster, "rest_s_max", 2000.0)
    for seed in range(first, first + 4):
        scenario = draw(seed)
        scenario.network = NetworkSettings(delay_s=0.003, slow=0.4, loss=0.3, duplication=0.5, datagrams=True)
        assert run_scenario(TRIAL, scenario, seed).violation is None


@pytest.mark.long
def test_runs_meet_every_kind_of_fault_and_of_change_and_use_every_kind_of_message() -> None:
    strikes: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for seed in range(1, 41):
        for reconfigure in (False, True):
            run = run_one(seed, reconfigure=reconfigure, protocol="scalatom")
            strikes.update(run.strikes)
            seen.update(run.by_kind)
    faults = ["crash", "crash_at_commit", "power_loss", "partition", "one_way", "bridge", "flapping", "disk_lost"]
    changes = ["change_prepared", "change_cancelled", "configuration_begun", "configuration_started"]
    others = [
        "break",
        "loss",
        "pause",
        "slow_disk",
        "clock_jump",
        "sealed_crash",
        "group_created",
        "group_deleted",
    ]
    assert [kind for kind in [*faults, *changes, *others] if not strikes[kind]] == []
    rare = ["pull", "have", "have_ask", "fetch_log", "log_chunk", "snapshot_ask", "snapshot_part", "gossip_ask"]
    changing = ["hand_over_ask", "hand_over", "votes_ask", "votes"]
    consensus = ["prepare", "promise", "rejected", "closed", "close"]
    assert [kind for kind in [*rare, *changing, *consensus] if not seen[kind]] == []


def test_proposers_duel_where_replicas_are_impatient() -> None:
    seed = next(seed for seed in range(1, 100) if draw(seed).settings.silence_s < Settings().silence_s)
    cluster = ScalatomCluster(draw(seed), seed)
    world = cluster.world
    count, proposers = world.on_send, defaultdict[bytes, set[str]](set)

    def note(source: str, to: Sequence[str], message: Message, size: int) -> None:
        if isinstance(message, Accept):
            proposers[message.instance].add(source)
        count(source, to, message, size)

    world.on_send = note
    begin(TRIAL, cluster, seed, prepare(cluster, seed))
    world.run_until(cluster.scenario.healing_at)
    assert sum(len(duellists) > 1 for duellists in proposers.values()) > 10


def sim(*args: str, hash_seed: str = "0") -> tuple[int, dict[str, object]]:
    command = [sys.executable, "-m", "ordercast.cli.main", "sim", "scalatom", *args, "--json"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return result.returncode, json.loads(result.stdout)


def test_the_same_seed_is_the_same_run_under_two_hash_seeds() -> None:
    for seed in ("7", "13"):
        one = sim("--seed", seed, hash_seed="1")
        two = sim("--seed", seed, hash_seed="2")
        assert one[0] == two[0] == 0
        assert one[1]["digest"] == two[1]["digest"]
        assert one[1]["messages"] == two[1]["messages"]


def test_another_seed_is_another_run() -> None:
    assert run_one(7, protocol="scalatom").digest != run_one(8, protocol="scalatom").digest


def test_the_digest_of_many_runs_does_not_depend_on_the_number_of_jobs() -> None:
    assert (
        run_many(range(1, 6), jobs=1, protocol="scalatom").digest
        == run_many(range(1, 6), jobs=2, protocol="scalatom").digest
    )


def test_the_summary_has_the_documented_fields() -> None:
    code, summary = sim("--seeds", "4", "--first-seed", "20", "--jobs", "2")
    fields = ["protocol", "runs", "violations", "delivered", "messages", "messages_per_second", "digest"]
    assert code == 0
    assert list(summary) == fields
    assert (summary["protocol"], summary["runs"], summary["violations"]) == ("scalatom", 4, 0)
