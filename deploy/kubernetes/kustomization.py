"""deploy/kustomize/base: the chart as files, for those who do not use Helm.

One file for each component, rendered with the values of the chart. What belongs to Helm itself is left out: its
labels, its test, and hooks (there are none without `domains`).
"""

from typing import Any

import yaml

from deploy.kubernetes.rendering import ROOT, rendered

BASE = ROOT / "deploy" / "kustomize" / "base"
#: Objects are called as they are with `helm install ordercast`.
RELEASE = "ordercast"
#: An overlay may say another one.
NAMESPACE = "ordercast"
HEAD = "# Rendered from helm/ordercast by `make helm`: change the chart, or an overlay.\n"
OF_HELM = ("helm.sh/chart", "app.kubernetes.io/managed-by")
COMPONENT = "app.kubernetes.io/component"


def base() -> dict[str, str]:
    """By file."""
    files: dict[str, list[dict[str, Any]]] = {}
    for each in rendered(release=RELEASE, namespace=NAMESPACE):
        if "helm.sh/hook" in each["metadata"].get("annotations", {}):
            continue
        component = each["metadata"]["labels"][COMPONENT]
        files.setdefault(f"{component}.yaml", []).append(without_helm(each))
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": NAMESPACE,
        "resources": sorted(files),
    }
    texts = {name: yaml.safe_dump_all(each, sort_keys=False, width=115) for name, each in sorted(files.items())}
    texts["kustomization.yaml"] = yaml.safe_dump(kustomization, sort_keys=False)
    return {name: HEAD + text for name, text in texts.items()}


def without_helm(value: Any) -> Any:
    """Without its labels, wherever they stand, and without the namespaces of subjects."""
    if isinstance(value, list):
        return [without_helm(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {name: without_helm(inner) for name, inner in value.items() if name not in OF_HELM}
    if kept.get("kind") == "ServiceAccount" and "metadata" not in kept:
        # Kustomize fills in an overlay's namespace, but does not replace another one.
        kept.pop("namespace", None)
    return kept


def there() -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(BASE.glob("*"))}


def write() -> None:
    BASE.mkdir(parents=True, exist_ok=True)
    made = base()
    for name in there():
        if name not in made:
            (BASE / name).unlink()
    for name, text in made.items():
        (BASE / name).write_text(text)
