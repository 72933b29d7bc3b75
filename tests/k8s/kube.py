"""kubectl, as those use it who look after a cluster. It acts on whatever KUBECONFIG names."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

from ordercast.local import cluster
from tests.left_out import leave_out

#: No promise of anybody, only the end of a test that would hang.
PATIENCE_S = 180.0
#: Looking takes processor time, which what is looked at has use for.
LOOK_S = 1.0

Object = dict[str, Any]


class KubectlFailed(Exception):  # noqa: N818 (it names what happened)
    """The text is what kubectl said."""


def require_cluster() -> None:
    """Leaves the test out where there is no cluster to run it on."""
    if "KUBECONFIG" not in os.environ:
        leave_out("tests on Kubernetes: KUBECONFIG names no cluster")
    if shutil.which("kubectl") is None:
        leave_out("tests on Kubernetes: there is no kubectl")
    kubectl("get", "--raw", "/readyz", timeout_s=20)


def kubectl(*arguments: str, stdin: str | None = None, timeout_s: float = PATIENCE_S) -> str:
    done = subprocess.run(
        ["kubectl", *arguments], input=stdin, capture_output=True, text=True, check=False, timeout=timeout_s
    )
    if done.returncode:
        raise KubectlFailed(f"kubectl {' '.join(arguments)}: {done.stderr}{done.stdout}")
    return done.stdout


def get(*arguments: str) -> Object:
    return dict(json.loads(kubectl("get", *arguments, "--output=json")))


def make_namespace(name: str) -> None:
    """One that nothing may run in that asks for more than it needs. Another of that name may still be going."""
    wait_for_end(name)
    kubectl("create", "namespace", name)
    kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")


def remove_namespace(name: str) -> None:
    """Returns when no pod of it runs any more. The rest of it goes without anybody waiting.

    Pods get no time to end by themselves, as nobody looks at them any more. Kubernetes would give them all of it,
    and look only then whether they have gone. It makes no new ones in a namespace that is going.
    """
    kubectl("delete", "namespace", name, "--wait=false")
    kubectl("--namespace", name, "delete", "pods", "--all", "--grace-period=1")


def wait_for_end(namespace: str) -> None:
    kubectl("wait", f"namespace/{namespace}", "--for=delete", f"--timeout={PATIENCE_S - 10:.0f}s")


def node_address() -> str:
    """Of a machine of the cluster, as others reach it."""
    (first, *_) = get("nodes")["items"]
    return next(a["address"] for a in first["status"]["addresses"] if a["type"] == "InternalIP")


def wait_until(
    what: str, is_so: Callable[[], bool], timeout_s: float = PATIENCE_S, look_s: float = LOOK_S
) -> None:
    """A pod that is asked may just have ended, and the API server may be busy: then it is asked again."""
    failures: list[KubectlFailed] = []

    def look() -> bool:
        try:
            return is_so()
        except KubectlFailed as failure:
            failures[:] = [failure]
            return False

    try:
        cluster.wait_until(what, look, timeout_s, look_s)
    except cluster.ClusterError as error:
        raise cluster.ClusterError(f"{error}; {failures[0] if failures else 'kubectl never failed'}") from error
