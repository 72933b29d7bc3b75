"""What the harness itself promises: it asks nothing impossible of a cluster, and it says what it found."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ordercast.client.session import Session
from ordercast.core.quorums import has_majority
from ordercast.gateway.machine import Gateway
from ordercast.protocols.catalogue import protocols
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.cluster import Cluster
from ordercast.sim.scalatom.stage import Stage
from ordercast.sim.trial import Trial, begin, prepare
from ordercast.sim.trials import names, trial_of

#: An ordering protocol in a package of its own.
PACKAGE = Path(__file__).resolve().parents[2] / "examples" / "protocol"
#: Those that a domain can have. Machines that are simulated before that have no gateways.
LISTED = [name for name in names() if name in protocols()]


def a_and_spare() -> Stage:
    return Stage({"a": ("n1", "n2", "n3")}, acceptors=None, spare=("n4",))


def test_a_change_that_the_gone_leave_without_a_majority_is_never_begun() -> None:
    story = a_and_spare()
    story.crash("n3")
    story.cluster.gone["n3"] = None
    story.prepare("a", ("n2", "n3"))
    assert story.cluster.membership.groups["a"].configuration == 1
    assert not story.cluster.reconfiguration.next
    story.finish("n3")


def test_a_change_is_cancelled_when_the_gone_leave_it_without_a_majority() -> None:
    story = a_and_spare()
    story.prepare("a", ("n3", "n4"))
    assert "a" in story.cluster.reconfiguration.next
    story.crash("n3")
    story.cluster.gone["n3"] = None
    story.look()
    assert story.cluster.membership.changes["change_cancelled"] == 1
    story.finish("n3")


@pytest.mark.parametrize("protocol", LISTED)
def test_clients_are_sessions_of_the_sdk_that_go_through_real_gateways(protocol: str) -> None:
    trial = trial_of(protocol)
    for seed in range(1, 40):
        scenario = trial.draw(seed)
        assert scenario.gateways
        assert scenario.clients
    cluster = trial.cluster(scenario, seed)
    cluster.start()
    assert all(isinstance(client.session, Session) for client in cluster.clients)
    who_publishes = [name for name, process in cluster.world.processes.items() if "client" in process.factories]
    assert who_publishes == list(scenario.clients), "nobody goes past the gateways"
    assert all(isinstance(cluster.machine(name, "gateway"), Gateway) for name in scenario.gateways)


@pytest.mark.parametrize("protocol", [*LISTED, "tandem"])
def test_protocols_of_packages_are_judged_as_built_in_ones(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the protocol, nothing that its sender was told is refused for good may be in a log."""
    monkeypatch.syspath_prepend(str(PACKAGE))
    trial = trial_of(protocol) if protocol in LISTED else import_module(f"ordercast_{protocol}.trial").TRIAL
    cluster = trial.cluster(trial.draw(1), 1)
    begin(trial, cluster, 1, prepare(cluster, 1))
    cluster.world.run_until(cluster.scenario.healing_at)
    cluster.judge()
    log = next(log for log in cluster.logs.groups.values() if log.messages)
    cluster.board.refused[log.messages[0]] = None
    with pytest.raises(Violation, match="was refused for good"):
        cluster.check_end()


def loses_somebody(trial: Trial) -> tuple[str, Cluster[Any, Any]]:
    """Somebody who has just died for good, long before the healing, in the first run that has one."""
    for seed in range(1, 100):
        scenario = trial.draw(seed)
        if scenario.losses:
            cluster = trial.cluster(scenario, seed)
            begin(trial, cluster, seed, prepare(cluster, seed))
            cluster.world.run_until(scenario.losses[0])
            if cluster.gone:
                return next(iter(cluster.gone)), cluster
    raise AssertionError("nobody is ever lost")


@pytest.mark.parametrize("protocol", LISTED)
def test_somebody_dies_for_good_before_the_healing_and_majorities_live_on(protocol: str) -> None:
    lost, cluster = loses_somebody(trial_of(protocol))
    cluster.world.run_until(cluster.scenario.healing_at)
    assert not cluster.world.processes[lost].up
    cluster.judge()
    assert not cluster.world.processes[lost].up
    there = [name for name in cluster.scenario.nodes if name not in cluster.gone]
    assert all(has_majority(group.replicas, there) for group in cluster.membership.groups.values())


def test_a_run_whose_time_is_used_up_says_what_it_waits_for() -> None:
    story = a_and_spare()
    story.change("a", ("n1", "n2"))
    story.crash("n2")
    with pytest.raises(Violation, match="a change of a is not over"):
        story.finish("n2")
