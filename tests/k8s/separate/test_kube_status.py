"""`ordercast kube status` of an installation that is well, and of one that is not."""

import json
from typing import Any

from tests.k8s.installation import PREFIX, Installation
from tests.k8s.kube import wait_until
from tests.k8s.kube_status import assert_healthy, kube_status


def document(where: Installation) -> dict[str, Any]:
    return dict(json.loads(kube_status(where, "--json").stdout))


def test_what_is_well_is_said_to_be(separate: Installation):
    wait_until("all is well", lambda: document(separate)["healthy"])
    done = kube_status(separate)
    assert_healthy(done)
    assert all(pod.name in done.stdout for pod in separate.pods())


def test_a_pod_that_is_missing_is_named(separate: Installation):
    """Its StatefulSet wants three, and Kubernetes is told of an image that nobody has."""
    workload, name = f"statefulset/{PREFIX}-consensus", f"{PREFIX}-consensus-2"
    separate.kubectl("set", "image", workload, "ordercast=localhost/nobody-has-this:1")
    try:
        wait_until("it is noticed", lambda: name in str(document(separate)["troubles"]))
        done = kube_status(separate)
        assert done.returncode == 1
        assert "nobody-has-this" in done.stdout
    finally:
        separate.kubectl("rollout", "undo", workload)
        # A pod that never became ready is in the way of the one before.
        separate.kubectl("delete", "pod", name, "--ignore-not-found")
        separate.wait_settled()
