"""A pod comes back without its volume."""

from ordercast.runtime.process.exits import EXIT_REFUSED
from tests.cluster.trial import Progress
from tests.k8s.installation import PREFIX, Installation
from tests.k8s.kube import wait_until
from tests.k8s.under_load import run_under_load

RESTORED_S_MAX = 600.0
POD = f"{PREFIX}-sequencer-1"
REFUSAL = ("belongs to a node with another disk", f"ordercast node give-up-disk {POD}")


def test_a_pod_whose_volume_was_deleted_is_refused_until_the_disk_is_given_up_and_then_gets_its_replicas_back(
    separate: Installation,
):
    claim = f"data-{POD}"

    def is_refused() -> bool:
        pod = separate.pod(POD)
        return pod is not None and pod.restarts > 0 and pod.exit_code == EXIT_REFUSED

    def says_why() -> bool:
        # Kubernetes clears containers away that ended, also the one before the last while we ask for it.
        said = separate.logs(POD, "--previous")
        return all(text in said for text in REFUSAL)

    def during(progress: Progress) -> None:
        volume = separate.get("pvc", claim)["spec"]["volumeName"]
        separate.kubectl("delete", "pvc", claim, "--wait=false")
        separate.kubectl("delete", "pod", POD, "--wait=false")
        wait_until(f"{POD} is refused", is_refused)
        assert separate.get("pvc", claim)["spec"]["volumeName"] != volume
        wait_until(f"{POD} says why", says_why)
        progress.wait_for_receipts()
        separate.ordercast("node", "give-up-disk", POD, "--yes")
        # Kubernetes waits longer each time before it starts it again: a new pod is started at once.
        separate.delete_pods(*(pod for pod in separate.pods("sequencer") if pod.name == POD))
        progress.wait_for_receipts()
        # It gets its groups back two at a time, also those of other tests.
        wait_until("the cluster is healthy", separate.is_healthy, RESTORED_S_MAX)

    run_under_load(separate, "volume-lost", during)
    assert "volume-lost-a" in separate.nodes()[POD]["groups"]
