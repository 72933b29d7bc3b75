"""What `ordercast kube status` makes of objects of Kubernetes and of pages of metrics; nothing is asked here."""

from datetime import UTC, datetime
from typing import Any

import pytest

from ordercast.cli.exit_codes import ExitCode
from ordercast.cli.kube.api import KubeError, Objects
from ordercast.cli.kube.belongings import judge_belongings
from ordercast.cli.kube.metrics import Page, judge_leader, said_by
from ordercast.cli.kube.pods import Pod, Workloads, judge_workloads
from ordercast.cli.kube.release import (
    choose_release,
    client_host,
    latest_warning,
    of_release,
    short_lived_gateways,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
CREATED = "2026-01-01T23:59:00Z"
READY = {"type": "Ready", "status": "True"}


def labels(component: str, release: str = "oc") -> dict[str, str]:
    return {"app.kubernetes.io/instance": release, "app.kubernetes.io/component": component}


def pod(
    name: str = "p-0", *, component: str = "sequencer", policy: str = "Always", **status: Any
) -> dict[str, Any]:
    """Ready, unless a status is given."""
    return {
        "metadata": {"name": name, "labels": labels(component), "creationTimestamp": CREATED},
        "spec": {"restartPolicy": policy, "containers": []},
        "status": status or {"phase": "Running", "conditions": [READY]},
    }


def workload(replicas: int = 1, component: str = "sequencer", **status: Any) -> dict[str, Any]:
    metadata = {"name": f"oc-{component}", "labels": labels(component)}
    return {"metadata": metadata, "spec": {"replicas": replicas}, "status": status}


def event(kind: str, name: str, message: str, at: str = CREATED) -> dict[str, Any]:
    return {"involvedObject": {"kind": kind, "name": name}, "message": message, "lastTimestamp": at}


def judged(*pods: dict[str, Any], **kinds: list[dict[str, Any]]) -> Workloads:
    return judge_workloads(Objects({"pods": list(pods), **kinds}), NOW)


def only(found: Workloads) -> Pod:
    (one,) = found.pods
    return one


# --- Pods


def test_a_pod_that_is_ready_is_no_trouble_whatever_was_complained_of_before():
    found = judged(pod(), events=[event("Pod", "p-0", "Readiness probe failed")], statefulsets=[workload()])
    assert (found.troubles, found.notes, only(found).why) == ([], [], "")
    assert (only(found).age_s, only(found).state) == (60.0, "Running")


def test_a_pod_that_runs_and_is_not_ready_says_what_the_last_warning_was():
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    found = judged(pod(**status), events=[event("Pod", "p-0", "Readiness probe\n failed: 503")])
    assert only(found).why == "Readiness probe failed: 503"
    assert found.troubles == ["pod p-0: not ready, Readiness probe failed: 503"]


def test_a_volume_that_cannot_be_mounted_is_told_from_the_events():
    creating = {"restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}}
    found = judged(
        pod(phase="Pending", containerStatuses=[creating]),
        events=[event("Pod", "p-0", "MountVolume failed: secret not found"), event("Pod", "p-1", "another's")],
    )
    assert found.troubles == ["pod p-0: ContainerCreating, MountVolume failed: secret not found"]


def test_one_that_leaves_was_asked_to_and_does_not_count_as_ready():
    leaving = pod()
    leaving["metadata"]["deletionTimestamp"] = CREATED
    found = judged(leaving, statefulsets=[workload()])
    assert only(found).state == "Terminating"
    assert found.troubles == ["sequencer: 0 of 1 pods are ready"]


def test_one_that_was_evicted_is_a_note_while_another_has_its_place():
    evicted = pod("p-old", phase="Failed", reason="Evicted", message="The node was low on memory.")
    found = judged(evicted, pod("p-new"), deployments=[workload(updatedReplicas=1)])
    assert found.troubles == []
    assert found.notes == ["pod p-old: Evicted, The node was low on memory."]


def test_an_init_container_that_waits_keeps_the_pod_waiting():
    waiting = {"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}}
    status = {"phase": "Pending", "initContainerStatuses": [waiting], "containerStatuses": [{"restartCount": 0}]}
    found = judged(pod(**status))
    assert (only(found).state, only(found).restarts) == ("CrashLoopBackOff", 3)


def test_the_last_end_is_the_latest_that_was_not_good():
    ends = [
        {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-01-01T01:00:00Z"}},
        {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-01-01T02:00:00Z"}},
        {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": "2026-01-01T03:00:00Z"}},
    ]
    containers = [{"restartCount": 1, "lastState": end} for end in ends]
    found = judged(pod(phase="Running", conditions=[READY], containerStatuses=containers))
    assert (only(found).last_end, only(found).restarts, found.troubles) == ("OOMKilled, exit code 137", 3, [])


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_of_a_job_that_has_ended_is_left_to_its_job(phase: str):
    found = judged(pod(component="jobs", policy="Never", phase=phase))
    assert (found.pods, found.troubles, found.notes) == ([], [], [])


def test_a_pod_of_a_job_is_a_trouble_only_if_it_cannot_begin():
    def waiting(reason: str) -> dict[str, Any]:
        container = {"restartCount": 0, "state": {"waiting": {"reason": reason}}}
        return pod(component="jobs", policy="Never", phase="Pending", containerStatuses=[container])

    assert judged(pod(component="jobs", policy="Never", phase="Running")).troubles == []
    assert judged(waiting("ContainerCreating")).troubles == []
    assert judged(waiting("ImagePullBackOff")).troubles == ["pod p-0: ImagePullBackOff"]


# --- Components


def test_pods_that_cannot_be_made_are_told_by_what_makes_them():
    warned = judged(statefulsets=[workload(3)], events=[event("StatefulSet", "oc-sequencer", "exceeded quota")])
    assert warned.troubles == ["sequencer: 0 of 3 pods are ready: exceeded quota"]
    failure = {"type": "ReplicaFailure", "status": "True", "message": "forbidden: exceeded quota"}
    failed = judged(deployments=[workload(2, conditions=[failure])])
    assert failed.troubles == ["sequencer: 0 of 2 pods are ready: forbidden: exceeded quota"]


def test_pods_that_are_being_replaced_are_a_note():
    status = {"currentRevision": "a", "updateRevision": "b", "updatedReplicas": 1}
    found = judged(pod("p-0"), pod("p-1"), statefulsets=[workload(2, **status)])
    assert found.troubles == []
    assert found.notes == ["sequencer: pods are being replaced, 1 of 2 are new"]
    # When it is done Kubernetes does not count any more.
    done = judged(pod("p-0"), pod("p-1"), statefulsets=[workload(2, currentRevision="b", updateRevision="b")])
    assert done.notes == []


def test_pods_of_another_component_do_not_count():
    found = judged(pod(component="gateway"), statefulsets=[workload()])
    assert found.troubles == ["sequencer: 0 of 1 pods are ready"]


# --- Claims, Jobs, budgets


def job(name: str, *conditions: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "status": {"conditions": [{"type": one, "status": "True", "message": "why"} for one in conditions]},
    }


def test_a_job_that_failed_is_a_trouble_and_says_where_to_look():
    both = judge_belongings(Objects({"jobs": [job("a", "Failed"), job("b", "Complete")]}))
    assert both.troubles == ["Job a failed: why (`kubectl logs job/a` shows what it said)"]


def test_a_job_that_is_under_way_is_a_note():
    found = judge_belongings(Objects({"jobs": [job("domains")]}))
    assert (found.troubles, found.notes) == ([], ["Job domains is under way"])


def test_a_budget_that_allows_nothing_is_a_note():
    def budget(allowed: int, expected: int) -> Objects:
        status = {"disruptionsAllowed": allowed, "expectedPods": expected}
        return Objects({"poddisruptionbudgets": [{"metadata": {"name": "b"}, "status": status}]})

    assert judge_belongings(budget(0, 3)).troubles == []
    assert len(judge_belongings(budget(0, 3)).notes) == 1
    assert judge_belongings(budget(1, 3)).notes == judge_belongings(budget(0, 0)).notes == []


def test_a_claim_that_lost_its_volume_is_a_trouble():
    lost = {"metadata": {"name": "data-0"}, "status": {"phase": "Lost"}}
    assert judge_belongings(Objects({"persistentvolumeclaims": [lost]})).troubles == [
        "volume claim data-0 is Lost"
    ]


# --- Releases


def test_the_only_release_is_meant_and_others_objects_are_not_seen():
    objects = Objects({"pods": [pod(), pod()], "events": [event("Pod", "p-0", "x")]})
    assert choose_release(objects, None, "ns") == "oc"
    strange = pod("stranger")
    strange["metadata"]["labels"] = labels("gateway", "other")
    objects.found["pods"].append(strange)
    with pytest.raises(
        KubeError, match="there are 2 releases in the namespace ns, --release names one: oc, other"
    ):
        choose_release(objects, None, "ns")
    assert [one["metadata"]["name"] for one in of_release(objects, "other").of("pods")] == ["stranger"]
    with pytest.raises(KubeError, match="helm install") as none:
        choose_release(Objects(), "oc", "ns")
    assert none.value.code == ExitCode.NOT_FOUND


def test_the_latest_warning_is_that_of_the_object_itself():
    events = [
        event("Pod", "a", "late", "2026-01-01T02:00:00Z"),
        event("Pod", "a", "early", "2026-01-01T01:00:00Z"),
        event("Job", "a", "another kind", "2026-01-01T03:00:00Z"),
    ]
    objects = Objects({"events": events})
    assert latest_warning(objects, "Pod", pod("a")) == "late"
    assert latest_warning(objects, "Pod", pod("b")) == ""
    # Pods of a StatefulSet have the name of those before them.
    another = pod("a")
    another["metadata"]["uid"] = "2"
    assert latest_warning(objects, "Pod", another) == ""


def test_clients_dial_the_service_that_has_an_address():
    def service(name: str, port: str, address: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": [{"name": port}]}}

    headless, other = service("oc-gateway-pods", "clients", "None"), service("oc-telemetry", "otlp", "10.0.0.1")
    objects = Objects({"services": [headless, other, service("oc-gateway", "clients", "10.0.0.2")]})
    assert client_host(objects, "ns") == "oc-gateway.ns.svc"
    assert client_host(Objects({"services": [headless]}), "ns") is None


def test_only_gateways_of_a_deployment_are_short_lived():
    def deployment(name: str, port: str) -> dict[str, Any]:
        spec = {"containers": [{"ports": [{"name": port, "containerPort": 1}]}]}
        return {"metadata": {"name": name}, "spec": {"template": {"spec": spec}}}

    objects = Objects({"deployments": [deployment("oc-gateway", "clients"), deployment("oc-telemetry", "otlp")]})
    assert short_lived_gateways(objects) == ["oc-gateway"]


# --- Pages of metrics


def leading(value: int) -> Page:
    return Page(f"# HELP ordercast_membership_leading x\nordercast_membership_leading {value}\n")


def test_the_leader_is_who_says_so():
    said = said_by({"m-0": leading(0), "m-1": leading(1), "s-0": Page("")}, ["m-0", "m-1"])
    assert judge_leader(said) == ("m-1", [], [])


def test_nobody_leads_only_if_all_were_asked():
    assert judge_leader(said_by({"m-0": leading(0)}, ["m-0"]))[1] == ["nobody leads membership"]
    said = said_by({"m-0": leading(0), "m-1": Page(error="refused")}, ["m-0", "m-1"])
    leader, troubles, notes = judge_leader(said)
    assert (leader, troubles, len(notes), said.unread) == (None, [], 1, {"m-1": "refused"})


def test_two_that_believe_to_lead_are_named():
    said = said_by({"m-0": leading(1), "m-1": leading(1)}, ["m-0", "m-1"])
    leader, troubles, (note,) = judge_leader(said)
    assert (leader, troubles) == (None, [])
    assert "m-0, m-1" in note


def test_what_waits_is_told_by_domain_and_where_nothing_does_nothing_is():
    page = Page(
        'ordercast_order_waiting{domain="a"} 2\n'
        'ordercast_order_waiting{domain="b"} 0\n'
        'ordercast_order_waiting_age_seconds{domain="a"} 0.5\n'
    )
    (waiting,) = said_by({"s-0": page}, []).waiting
    assert (waiting.node, waiting.domain, waiting.envelopes, waiting.oldest_s) == ("s-0", "a", 2, 0.5)


def test_what_is_no_page_of_metrics_says_nothing():
    said = said_by({"m-0": Page("<html>{ not a page")}, ["m-0"])
    assert (said.leaders, said.is_complete, said.waiting) == ([], False, [])
