"""The chart as it is rendered: with the values of each profile in ci/, or with a few of one's own."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deploy.kubernetes.rendering import CHART, NoHelm, Refused, rendered
from tests.left_out import leave_out

#: By the name of the profile; `default` has no values of its own.
PROFILES: dict[str, Path | None] = {
    "default": None,
    **{path.name.removesuffix("-values.yaml"): path for path in sorted((CHART / "ci").glob("*-values.yaml"))},
}
NAMESPACE = "orders"
RELEASE = "oc"
PREFIX = "oc-ordercast"

Object = dict[str, Any]


@functools.cache
def _rendered(profile: str, settings: tuple[str, ...]) -> tuple[Object, ...]:
    return tuple(rendered(PROFILES[profile], settings, release=RELEASE, namespace=NAMESPACE))


def objects(profile: str = "default", *settings: str) -> list[Object]:
    """Everything that is installed, hooks and tests included."""
    try:
        return list(_rendered(profile, settings))
    except NoHelm as error:
        leave_out(f"tests of the Helm chart: {error}")


@functools.cache
def refusal(*settings: str) -> str:
    """What whoever installs it with these values reads; it has to be refused."""
    try:
        found = objects("default", *settings)
    except Refused as error:
        return str(error)
    raise AssertionError(f"{len(found)} objects were rendered, and nothing was refused")


def of_kind(found: list[Object], *kinds: str) -> list[Object]:
    return [each for each in found if each["kind"] in kinds]


def named(found: list[Object], kind: str, name: str) -> Object:
    (one,) = [each for each in of_kind(found, kind) if each["metadata"]["name"] == name]
    return one


def component_of(each: Object) -> str:
    return str(each["metadata"]["labels"]["app.kubernetes.io/component"])


# --- Pods


def pod_templates(found: list[Object]) -> Iterator[tuple[str, Object]]:
    """What runs in pods, with the kind and name of whatever makes them. Spark's operator makes its own."""
    for each in found:
        spec = each.get("spec") or {}
        match each["kind"]:
            case "Pod":
                template = each
            case "StatefulSet" | "Deployment" | "Job":
                template = spec["template"]
            case _:
                continue
        yield f"{each['kind']}/{each['metadata']['name']}", template


def container_of(template: Object) -> Object:
    (container,) = template["spec"]["containers"]
    return dict(container)


def workloads(found: list[Object]) -> dict[str, Object]:
    """StatefulSets and Deployments, by component."""
    return {component_of(each): each for each in of_kind(found, "StatefulSet", "Deployment")}


def pod_names(workload: Object) -> list[str]:
    """Of a StatefulSet."""
    return [f"{workload['metadata']['name']}-{number}" for number in range(workload["spec"].get("replicas", 1))]


def told(container: Object, pod: str, address: str) -> tuple[list[str], dict[str, str]]:
    """Command and arguments of a container, and its variables, as the kubelet expands them for a pod."""
    fields = {
        "metadata.name": pod,
        "metadata.namespace": NAMESPACE,
        "status.podIP": address,
        # A machine without zones.
        "metadata.labels['topology.kubernetes.io/zone']": "",
    }
    environment = {
        variable["name"]: variable["value"]
        if "value" in variable
        else fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        for variable in container["env"]
    }
    words = [*container.get("command", []), *container["args"]]
    return [re.sub(r"\$\((\w+)\)", lambda found: environment[found[1]], text) for text in words], environment
