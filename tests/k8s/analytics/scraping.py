"""Pods as Prometheus is told of them by Kubernetes: one target for each port, with what is known as labels."""

import re
from typing import Any

from tests.k8s.installation import Installation

Target = dict[str, Any]


def targets(where: Installation) -> list[Target]:
    return [target for pod in where.get("pods")["items"] for target in _of_pod(pod)]


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
