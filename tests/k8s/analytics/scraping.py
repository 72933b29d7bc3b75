"""Pods as Prometheus is told of them by Kubernetes: one target for each port, with what is known as labels."""

import re
import urllib.request
from typing import Any

from tests.k8s.installation import Installation

Target = dict[str, Any]

ANSWER_S_MAX = 10.0


def targets(where: Installation) -> list[Target]:
    return [target for pod in where.get("pods")["items"] for target in _of_pod(pod)]


def metrics(where: Installation, component: str) -> str:
    """What Prometheus would be told by the only pod of that component; nothing, where it does not answer."""
    (pod,) = where.get("pods", f"--selector=app.kubernetes.io/component={component}")["items"]
    (address,) = [
        target["targets"][0]
        for target in _of_pod(pod)
        if target["labels"]["__meta_kubernetes_pod_container_port_name"] == "metrics"
    ]
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=ANSWER_S_MAX) as answer:
            return str(answer.read(), "utf-8")
    except OSError:
        return ""


def _of_pod(pod: dict[str, Any]) -> list[Target]:
    metadata, address = pod["metadata"], pod["status"].get("podIP", "")
    known = {
        "__meta_kubernetes_namespace": metadata["namespace"],
        "__meta_kubernetes_pod_name": metadata["name"],
        **_named("annotation", metadata.get("annotations", {})),
        **_named("label", metadata.get("labels", {})),
    }
    return [
        {
            "targets": [f"{address}:{port['containerPort']}"],
            "labels": {**known, "__meta_kubernetes_pod_container_port_name": port["name"]},
        }
        for container in pod["spec"]["containers"]
        for port in container.get("ports", [])
    ]


def _named(kind: str, found: dict[str, str]) -> dict[str, str]:
    return {f"__meta_kubernetes_pod_{kind}_{re.sub(r'[^a-zA-Z0-9_]', '_', name)}": v for name, v in found.items()}
