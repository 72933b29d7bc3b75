"""`kubectl apply -k` of the overlay gives a cluster, too."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.kubernetes.rendering import ROOT
from tests.k8s.installation import IMAGE, Installation
from tests.k8s.kube import kubectl, remove_namespace, wait_for_end, wait_until

OVERLAY = ROOT / "deploy" / "kustomize" / "overlays" / "small"
NAMESPACE = "orders"


@pytest.fixture
def applied(tmp_path: Path) -> Iterator[Installation]:
    """As somebody would who has another image: with an overlay over the overlay."""
    repository, _, tag = IMAGE.rpartition(":")
    (tmp_path / "kustomization.yaml").write_text(
        f"resources: [{os.path.relpath(OVERLAY, tmp_path)}]\n"
        f"images: [{{name: registry.example/ordercast, newName: {repository}, newTag: {tag}}}]\n"
    )
    wait_for_end(NAMESPACE)
    kubectl("apply", "--kustomize", str(tmp_path))
    made = Installation(NAMESPACE, release="ordercast")
    try:
        yield made
    finally:
        remove_namespace(NAMESPACE)


def test_an_overlay_becomes_a_cluster(applied: Installation):
    wait_until("all pods are ready", applied.is_settled)
    applied.ordercast("group", "create", "a", "b", "--replicas", "3")
    applied.ordercast("publish", "a,b", "hello, both")
    for group in ("a", "b"):
        said = applied.ordercast("subscribe", group, "--until-end", "--payload-only")
        assert said == "hello, both\n"
