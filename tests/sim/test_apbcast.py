"""Large audiences under random faults, their mutants, and their schedules."""

import os
import subprocess
import sys

import pytest

from ordercast.sim.apbcast.mutants.catalogue import CATALOGUE, SCHEDULES
from ordercast.sim.apbcast.scenario import draw
from ordercast.sim.apbcast.stage import verdict
from ordercast.sim.campaign import run_many, run_one
from ordercast.sim.hunt import catch


@pytest.mark.parametrize("first", [1, *(pytest.param(n, marks=pytest.mark.long) for n in range(26, 226, 25))])
def test_no_property_is_violated(first):
    campaign = run_many(range(first, first + 25), jobs=1, protocol="apbcast")
    assert [(result.seed, str(result.violation)) for result in campaign.violations] == []


@pytest.mark.long
def test_runs_have_all_that_is_hard():
    strikes = run_many(range(1, 60), jobs=1, protocol="apbcast").strikes
    for kind in ("crash", "power_loss", "partition", "pause", "loss", "replace", "create", "give_up", "move_home"):
        assert strikes.get(kind, 0) > 0, kind
    leaves = [leaf for seed in range(1, 60) for leaf in draw(seed).leaves.values()]
    assert {leaf.leaves.value for leaf in leaves} == {"exact", "live"}
    assert any(leaf.interest for leaf in leaves)
    assert any(leaf.comes_at for leaf in leaves)
    assert any(leaf.goes_at is not None for leaf in leaves)


def test_a_seed_is_a_run():
    assert run_one(7, protocol="apbcast").digest == run_one(7, protocol="apbcast").digest
    assert run_one(7, protocol="apbcast").digest != run_one(8, protocol="apbcast").digest


def test_the_order_of_hashes_has_no_effect():
    code = (
        "from ordercast.sim.campaign import run_many; print(run_many(range(1, 7), 1, protocol='apbcast').digest)"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(digests) == 1


@pytest.mark.parametrize("name", [mutant.name for mutant in CATALOGUE])
def test_the_mutant_is_caught(name):
    assert catch(name, "apbcast").caught, f"{name} went unnoticed"


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_schedule_that_catches_a_mutant_is_harmless_to_the_real_code(name):
    violation, _ = verdict(SCHEDULES[name]())
    assert violation is None


def test_each_schedule_is_for_a_mutant_and_each_mutant_has_a_name_of_its_own():
    names = [mutant.name for mutant in CATALOGUE]
    assert len(dict.fromkeys(names)) == len(names)
    assert [name for name in SCHEDULES if name not in names] == []
