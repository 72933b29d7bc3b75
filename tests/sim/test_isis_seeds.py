"""ISIS under random faults: no property may be violated, and a seed is a run."""

import os
import subprocess
import sys

import pytest

from ordercast.protocols.isis.settings import Causality, FlushKind, Ordering
from ordercast.sim.campaign import run_many, run_one
from ordercast.sim.isis.scenario import draw


@pytest.mark.parametrize("first", [1, *(pytest.param(n, marks=pytest.mark.long) for n in range(26, 150, 25))])
def test_no_property_is_violated(first):
    campaign = run_many(range(first, first + 25), jobs=1, protocol="isis")
    assert [(result.seed, str(result.violation)) for result in campaign.violations] == []


@pytest.mark.long
def test_runs_have_all_that_is_hard():
    strikes = run_many(range(1, 60), jobs=1, protocol="isis").strikes
    for kind in ("crash", "power_loss", "partition", "pause", "loss", "view_defined", "view_completed", "placed"):
        assert strikes.get(kind, 0) > 0, kind
    assert strikes["view_defined"] > strikes["view_completed"]  # some were overtaken by a later one
    scenarios = [draw(seed) for seed in range(1, 60)]
    assert {scenario.settings.causality for scenario in scenarios} == set(Causality)
    assert {scenario.settings.flush for scenario in scenarios} == set(FlushKind)
    assert {scenario.settings.ordering for scenario in scenarios} == set(Ordering)
    plans = [plan for scenario in scenarios for client in scenario.clients.values() for plan in client.plans]
    assert any(plan.reads for plan in plans)
    assert any(plan.answers for plan in plans)
    assert any(len(plan.groups) > 1 for plan in plans)
    assert any(scenario.reads_live for scenario in scenarios)
    at_members = [name in scenario.nodes for scenario in scenarios for name in scenario.gateways]
    assert any(at_members)
    assert not all(at_members)
    assert any(scenario.tells for scenario in scenarios)
    assert any(scenario.suspicions for scenario in scenarios)
    assert all(scenario.gateways and scenario.clients for scenario in scenarios)


def test_a_seed_is_a_run():
    assert run_one(2, protocol="isis").digest == run_one(2, protocol="isis").digest
    assert run_one(2, protocol="isis").digest != run_one(6, protocol="isis").digest


@pytest.mark.parametrize(("first", "end"), [(1, 5), pytest.param(5, 13, marks=pytest.mark.long)])
def test_the_order_of_hashes_has_no_effect(first, end):
    run = f"run_many(range({first}, {end}), 1, protocol='isis')"
    code = f"from ordercast.sim.campaign import run_many; print({run}.digest)"
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
