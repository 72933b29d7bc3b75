"""All pods are replaced, one at a time, while clients publish."""

import json
from collections.abc import Callable

import pytest

from tests.cluster.trial import Progress
from tests.k8s.installation import IMAGE, NEXT_IMAGE, PREFIX, RELEASE, Installation, image_settings
from tests.k8s.kube import KubectlFailed, wait_until
from tests.k8s.under_load import run_under_load
from tests.k8s.watching import Watching

NODES = ("membership", "consensus", "sequencer", "gateway")
#: Three pods of each kind, and of these so many ready at least: new gateways come before old ones go.
READY_MIN = {"membership": 2, "consensus": 2, "sequencer": 2, "gateway": 3}


def replaced_one_by_one(where: Installation, progress: Progress, replace: Callable[[], None]) -> None:
    before = {pod.uid for pod in where.pods() if pod.component in NODES}
    with Watching(where.namespace) as watching:
        replace()
    progress.wait_for_receipts()
    after = {pod.uid for pod in where.pods() if pod.component in NODES}
    assert not before & after
    seen = watching.ready_min()
    assert all(seen[component] >= least for component, least in READY_MIN.items()), seen


def knows_its_gateways_alone(where: Installation) -> bool:
    """Those that were replaced have said that they are over, and are forgotten."""
    known = {name for name, node in where.nodes().items() if node["services"] == ["gateway"]}
    return known == {pod.name for pod in where.pods("gateway")}


def images(where: Installation) -> set[str]:
    return {pod.image for pod in where.pods() if pod.component in NODES}


def test_an_upgrade_and_its_rollback_fail_no_publish(separate: Installation):
    def back() -> None:
        separate.helm("rollback", RELEASE, "--wait", "--timeout", "10m")
        separate.wait_settled()

    def during(progress: Progress) -> None:
        replaced_one_by_one(separate, progress, lambda: separate.upgrade(*image_settings(NEXT_IMAGE)))
        assert images(separate) == {NEXT_IMAGE}
        replaced_one_by_one(separate, progress, back)
        assert images(separate) == {IMAGE}

    run_under_load(separate, "upgraded", during)
    wait_until("membership knows the gateways that are there", lambda: knows_its_gateways_alone(separate))
    wait_until("the cluster is healthy", separate.is_healthy)


@pytest.mark.long
def test_a_rolling_restart_fails_no_publish(separate: Installation):
    workloads = [f"statefulset/{PREFIX}-{component}" for component in NODES[:3]] + [f"deployment/{PREFIX}-gateway"]

    def restart() -> None:
        separate.kubectl("rollout", "restart", *workloads)
        for workload in workloads:
            separate.wait_rolled_out(workload)
        separate.wait_settled()

    run_under_load(separate, "restarted", lambda progress: replaced_one_by_one(separate, progress, restart))


@pytest.mark.long
def test_another_setting_fails_no_publish(separate: Installation):
    """It comes with an upgrade, and goes with the next one."""

    def during(progress: Progress) -> None:
        for settings in (["settings.drain_s=7"], []):
            replaced_one_by_one(separate, progress, lambda settings=settings: separate.upgrade(*settings))

    run_under_load(separate, "set", during)


def evict(where: Installation, pod: str) -> None:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": where.namespace},
    }
    path = f"/api/v1/namespaces/{where.namespace}/pods/{pod}/eviction"
    where.kubectl("create", f"--raw={path}", "--filename=-", stdin=json.dumps(body))


def test_a_second_pod_of_a_kind_is_not_evicted_beside_the_first(separate: Installation):
    for component in NODES:
        first, second, _ = separate.pods(component)
        wait_until("one may be taken away", lambda kind=component: separate.disruptions_allowed()[kind] == 1)
        evict(separate, first.name)
        with pytest.raises(KubectlFailed, match="disruption budget"):
            evict(separate, second.name)
    separate.wait_settled()
