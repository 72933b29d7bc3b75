"""Back-up and restore of docs/kubernetes.md: all disks are copied while nothing runs, and put back together."""

import json
from collections.abc import Sequence

import ordercast
from tests.k8s.compact.kept import assert_kept, publish
from tests.k8s.installation import IMAGE, PREFIX, Installation
from tests.k8s.kube import Object, wait_until

GROUPS = ["restored-a", "restored-b"]
COPIES = "copies"
SCRIPT = """
import shutil, sys
source, target, *claims = sys.argv[1:]
for claim in claims:
    shutil.copytree(source.format(claim), target.format(claim))
"""
#: Whom the processes run as.
USER = 10001


def claim(name: str, labels: Object) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }


def copying_pod(claims: Sequence[str], source: str, target: str) -> Object:
    """Copies each claim's data from one place to the other, where {} stands for the claim."""
    mounted = [*claims, COPIES]
    container = {
        "name": "copy",
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-c", SCRIPT, source, target, *claims],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": name, "mountPath": f"/volumes/{name}"} for name in mounted],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "copy"},
        "spec": {
            "restartPolicy": "Never",
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "fsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in mounted],
        },
    }


def copy(where: Installation, claims: Sequence[str], source: str, target: str) -> None:
    where.kubectl("apply", "--filename=-", stdin=json.dumps(copying_pod(claims, source, target)))

    def is_over() -> bool:
        return where.get("pod", "copy")["status"]["phase"] in ("Succeeded", "Failed")

    wait_until("everything is copied", is_over)
    assert where.get("pod", "copy")["status"]["phase"] == "Succeeded", where.logs("copy")
    where.kubectl("delete", "pod", "copy")


def stop(where: Installation) -> None:
    where.kubectl("scale", f"statefulset/{PREFIX}-node", "--replicas=0")
    where.wait_gone()


def test_a_lost_cluster_comes_back_from_copies_of_all_its_disks(compact: Installation):
    last = publish(compact, GROUPS)
    labels = {one["metadata"]["name"]: one["metadata"]["labels"] for one in compact.get("pvc")["items"]}
    claims = sorted(labels)
    assert claims == [f"data-{PREFIX}-node-{number}" for number in range(3)]

    stop(compact)
    compact.kubectl("apply", "--filename=-", stdin=json.dumps(claim(COPIES, {})))
    copy(compact, claims, "/volumes/{}/data", f"/volumes/{COPIES}/{{}}")
    compact.upgrade()
    with ordercast.connect_sync(*compact.gateways) as connection:
        connection.publish(b"after the copy", to=GROUPS)

    compact.uninstall()
    compact.kubectl("delete", "pvc", *claims)
    for name in claims:
        compact.kubectl("apply", "--filename=-", stdin=json.dumps(claim(name, labels[name])))
    copy(compact, claims, f"/volumes/{COPIES}/{{}}", "/volumes/{}/data")
    compact.install()

    assert_kept(compact, last)
    compact.kubectl("delete", "pvc", COPIES)
