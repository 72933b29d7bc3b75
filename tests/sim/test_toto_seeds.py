"""ToTo under random faults: no property may be violated, and a seed is a run."""

import os
import subprocess
import sys

import pytest

from ordercast.sim.campaign import run_many, run_one
from ordercast.sim.toto.scenario import draw


@pytest.mark.parametrize("first", [1, *(pytest.param(n, marks=pytest.mark.long) for n in range(16, 150, 15))])
def test_no_property_is_violated(first):
    campaign = run_many(range(first, first + 15), jobs=1, protocol="toto")
    assert [(result.seed, str(result.violation)) for result in campaign.violations] == []


@pytest.mark.long
def test_runs_have_all_that_is_hard():
    strikes = run_many(range(1, 40), jobs=1, protocol="toto").strikes
    for kind in ("crash", "power_loss", "partition", "pause", "loss", "view_defined", "view_completed"):
        assert strikes.get(kind, 0) > 0, kind
    assert strikes["view_defined"] > strikes["view_completed"]  # some were overtaken by a later one
    scenarios = [draw(seed) for seed in range(1, 40)]
    assert {scenario.settings.settle_batch for scenario in scenarios} == {1, 4, 64}
    assert any(scenario.suspicions for scenario in scenarios)
    assert any(scenario.losses for scenario in scenarios)


def test_a_seed_is_a_run_under_any_hash_seed():
    program = "from ordercast.sim.campaign import run_one; print(run_one(5, protocol='toto').digest)"
    digests = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    ]
    assert digests == [run_one(5, protocol="toto").digest] * 2
