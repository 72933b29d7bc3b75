"""`ordercast kube status` of an installation that is well, and of one that is not."""

import json

from tests.k8s.installation import PREFIX, Installation
from tests.k8s.kube import wait_until
from tests.k8s.kube_status import kube_status, wait_for_status


def is_named(where: Installation, *words: str) -> bool:
    """In one trouble, and with its cause."""
    troubles = json.loads(kube_status(where, "--json").stdout)["troubles"]
    return any(all(word in trouble for word in words) for trouble in troubles)


def test_what_is_well_is_said_to_be(separate: Installation):
    done = wait_for_status(separate)
    assert all(pod.name in done.stdout for pod in separate.pods())


def test_a_pod_that_is_missing_is_named(separate: Installation):
    """Its StatefulSet wants three, and Kubernetes is told of an image that nobody has."""
    workload, name = f"statefulset/{PREFIX}-consensus", f"{PREFIX}-consensus-2"
    separate.kubectl("set", "image", workload, "ordercast=localhost/nobody-has-this:1")
    try:
        wait_until("it is noticed", lambda: is_named(separate, name, "nobody-has-this"))
        assert kube_status(separate).returncode == 1
    finally:
        separate.kubectl("rollout", "undo", workload)
        # A pod that never became ready is in the way of the one before.
        separate.kubectl("delete", "pod", name, "--ignore-not-found")
        separate.wait_settled()
