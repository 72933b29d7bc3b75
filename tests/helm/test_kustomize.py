"""deploy/kustomize is the chart as files, and an overlay changes what it says."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from deploy.kubernetes import kustomization
from deploy.kubernetes.rendering import CHART, ROOT
from tests.helm.chart import container_of, objects, of_kind, pod_templates
from tests.left_out import leave_out

FOLDER = ROOT / "deploy" / "kustomize"


def built(folder: Path) -> list[dict[str, Any]]:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        leave_out("overlays of deploy/kustomize: there is no kubectl")
    done = subprocess.run([kubectl, "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def test_the_base_is_what_the_chart_comes_to():
    objects()  # Leaves it out where there is no Helm.
    assert kustomization.there() == kustomization.base(), "run `make helm`"


def test_nothing_of_helm_is_in_the_base():
    assert "helm.sh" not in "".join(kustomization.there().values())


@pytest.mark.parametrize("folder", [FOLDER / "base", FOLDER / "overlays" / "small"], ids=lambda path: path.name)
def test_kubernetes_takes_what_comes_out(folder: Path):
    found = built(folder)
    assert len(of_kind(found, "StatefulSet")) == 4
    for each in found:
        kubernetes_validate.validate(each, "1.34", strict=True)


def test_everything_is_in_the_overlay_s_namespace():
    found = built(FOLDER / "overlays" / "small")
    (namespace,) = [each["metadata"]["name"] for each in of_kind(found, "Namespace")]
    for each in found:
        if each["kind"] != "Namespace":
            assert each["metadata"]["namespace"] == namespace
    (binding,) = of_kind(found, "RoleBinding")
    assert {subject["namespace"] for subject in binding["subjects"]} == {namespace}
    # Hosts are put together in the pod, from the namespace that it is in.
    assert "svc.cluster.local" in str(found)
    assert f".{kustomization.NAMESPACE}.svc" not in str(found)


def test_the_overlay_changes_image_and_sizes():
    found = built(FOLDER / "overlays" / "small")
    images = {container_of(template)["image"] for _, template in pod_templates(found)}
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert images == {f"registry.example/ordercast:{chart['appVersion']}"}
    for workload in of_kind(found, "StatefulSet"):
        (claim,) = workload["spec"]["volumeClaimTemplates"]
        assert claim["spec"]["resources"]["requests"]["storage"] == "1Gi"
