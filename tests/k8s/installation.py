"""A release of the chart on a real cluster, in a namespace of its own."""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from deploy.kubernetes.rendering import CHART, run
from tests.k8s.kube import (
    PATIENCE_S,
    KubectlFailed,
    Object,
    get,
    kubectl,
    make_namespace,
    node_address,
    remove_namespace,
    wait_until,
)
from tests.k8s.pods import Pod

#: Where images are that the cluster has, or can pull.
IMAGE = os.environ.get("ORDERCAST_IMAGE", "localhost/ordercast:dev")
#: The same under another name: what an upgrade changes to.
NEXT_IMAGE = os.environ.get("ORDERCAST_NEXT_IMAGE", "localhost/ordercast:next")
ANALYTICS_IMAGE = os.environ.get("ORDERCAST_ANALYTICS_IMAGE", "localhost/ordercast-analytics:dev")
VALUES = Path(__file__).with_name("values.yaml")
RELEASE = "oc"
PREFIX = f"{RELEASE}-ordercast"
LOG_LINES = 30
#: All pods of a kind, one after the other.
ROLLED_OUT_S_MAX = 600.0


def image_settings(image: str, section: str = "image") -> list[str]:
    """Of values, for `--set`."""
    repository, _, tag = image.rpartition(":")
    return [f"{section}.repository={repository}", f"{section}.tag={tag}"]


@dataclass
class Installation:
    namespace: str
    #: Beside those of VALUES, as `--set` has them. Upgrades begin with them, too.
    settings: list[str] = field(default_factory=list)
    #: The same, for what `--set` cannot say.
    values: Object = field(default_factory=dict)
    release: str = RELEASE

    # ------------------------------------------------------------------------------------------------ helm

    def helm(self, *arguments: str) -> str:
        return run(*arguments, "--namespace", self.namespace)

    def install(self) -> None:
        self.helm("install", self.release, str(CHART), *self._values(), "--wait", "--timeout", "5m")

    def upgrade(self, *settings: str) -> None:
        """Until all pods are replaced that have to be, and are ready."""
        self.helm("upgrade", self.release, str(CHART), *self._values(*settings), "--wait", "--timeout", "10m")
        self.wait_settled()

    def uninstall(self) -> None:
        self.helm("uninstall", self.release, "--wait")
        self.wait_gone()

    def _values(self, *settings: str) -> list[str]:
        chosen = [*image_settings(IMAGE), *self.settings, *settings]
        more = [f"--set-json={section}={json.dumps(given)}" for section, given in self.values.items()]
        return ["--values", str(VALUES), *more, *(f"--set={setting}" for setting in chosen)]

    # ------------------------------------------------------------------------------------------------ pods

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout_s: float = PATIENCE_S) -> str:
        return kubectl("--namespace", self.namespace, *arguments, stdin=stdin, timeout_s=timeout_s)

    def pods(self, component: str = "") -> list[Pod]:
        """Of the cluster, or of one of its components; those that are leaving are among them."""
        selector = f"app.kubernetes.io/instance={self.release}"
        if component:
            selector += f",app.kubernetes.io/component={component}"
        found = [Pod.of(each) for each in self.get("pods", "--selector", selector)["items"]]
        return [pod for pod in found if pod.is_lasting]

    def pod(self, name: str) -> Pod | None:
        return next((pod for pod in self.pods() if pod.name == name), None)

    def get(self, *arguments: str) -> Object:
        return get("--namespace", self.namespace, *arguments)

    def wanted(self) -> int:
        return sum(each["spec"]["replicas"] for each in self.get("statefulsets,deployments")["items"])

    def is_settled(self) -> bool:
        """As many pods as there should be, all of them ready, and none that leaves."""
        pods = self.pods()
        return len(pods) == self.wanted() and all(pod.is_ready for pod in pods)

    def wait_settled(self) -> None:
        wait_until(f"all pods of {self.namespace} are ready", self.is_settled)

    def wait_rolled_out(self, workload: str) -> None:
        self.kubectl(
            "rollout", "status", workload, f"--timeout={ROLLED_OUT_S_MAX:.0f}s", timeout_s=2 * ROLLED_OUT_S_MAX
        )

    def wait_gone(self) -> None:
        wait_until("all pods are gone", lambda: not self.pods())

    def delete_pods(self, *pods: Pod, by_force: bool = False) -> None:
        """Returns when others are ready in their places, whatever their names."""
        options = ["--grace-period=0", "--force"] if by_force else []
        names, deleted = [pod.name for pod in pods], {pod.uid for pod in pods}
        self.kubectl("delete", "pod", *names, "--wait=false", *options)

        def are_replaced() -> bool:
            return self.is_settled() and not deleted & {pod.uid for pod in self.pods()}

        wait_until(f"{names} are replaced", are_replaced)

    def disruptions_allowed(self) -> dict[str, int]:
        """By component, how many of its pods may be taken away now."""
        return {
            each["metadata"]["labels"]["app.kubernetes.io/component"]: each["status"]["disruptionsAllowed"]
            for each in self.get("poddisruptionbudgets")["items"]
        }

    # ------------------------------------------------------------------------------------------ inside pods

    def exec(self, pod: str, *command: str) -> str:
        return self.kubectl("exec", pod, "--", *command)

    def ordercast(self, *arguments: str) -> str:
        """The command line, in a pod that has a gateway beside it."""
        gateway = next(pod for pod in self.pods() if pod.component in ("gateway", "node") and pod.is_ready)
        return self.exec(gateway.name, "ordercast", *arguments)

    def is_healthy(self) -> bool:
        """By the cluster's own account."""
        try:
            self.ordercast("status")
        except KubectlFailed:
            return False
        return True

    def nodes(self) -> dict[str, Object]:
        """As membership knows them, by name."""
        return {node["name"]: node for node in json.loads(self.ordercast("node", "list", "--json"))}

    def logs(self, pod: str, *options: str) -> str:
        return self.kubectl("logs", pod, *options)

    # --------------------------------------------------------------------------------------------- clients

    @property
    def gateways(self) -> list[str]:
        """For clients outside: a port of the machine, behind which all gateways are."""
        service = self.get("service", f"{PREFIX}-gateway")
        return [f"{node_address()}:{service['spec']['ports'][0]['nodePort']}"]

    # ---------------------------------------------------------------------------------------------- reports

    def report(self) -> Iterator[tuple[str, str]]:
        """What one would look at, if something is wrong."""
        for title, arguments in (
            ("pods", ["get", "pods,pvc,jobs", "--output=wide"]),
            ("events", ["get", "events", "--sort-by=.lastTimestamp"]),
        ):
            with contextlib.suppress(KubectlFailed):
                yield title, "\n".join(self.kubectl(*arguments).splitlines()[-60:])
        with contextlib.suppress(KubectlFailed):
            for pod in self.pods():
                with contextlib.suppress(KubectlFailed):
                    yield f"log of {pod.name}", self.logs(pod.name, f"--tail={LOG_LINES}")
                if pod.restarts:
                    with contextlib.suppress(KubectlFailed):
                        yield f"log of {pod.name} before", self.logs(pod.name, "--previous", f"--tail={LOG_LINES}")


#: Those that are there now, for reports of failures.
present: list[Installation] = []


@contextmanager
def installed(
    name: str, *settings: str, values: Object | None = None, before: Callable[[], None] = lambda: None
) -> Iterator[Installation]:
    """In a namespace of its own, of which nothing runs any more in the end.

    `before` makes what has to be there first.
    """
    make_namespace(name)
    made = Installation(name, list(settings), values or {})
    present.append(made)
    try:
        before()
        begun = time.monotonic()
        made.install()
        print(f"{name}: {len(made.pods())} pods ready after {time.monotonic() - begun:.0f} s")
        yield made
    finally:
        present.remove(made)
        remove_namespace(name)
