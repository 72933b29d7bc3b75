"""What the chart says and looks up when it is installed over something that is there."""

import copy
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from deploy.kubernetes.rendering import CHART, Refused, rendered, run
from ordercast.cli.main import load
from tests.helm.api_server import with_objects, with_statefulset
from tests.helm.chart import NAMESPACE, PREFIX, PROFILES, RELEASE, named, objects

# --- Membership nodes are fixed


def asked(kubeconfig: Path, *settings: str) -> str:
    given = [f"--set={setting}" for setting in settings]
    place = ["--namespace", NAMESPACE, "--dry-run=server", "--kubeconfig", str(kubeconfig)]
    return run("template", RELEASE, str(CHART), *place, *given)


def installed(component: str, *settings: str) -> dict[str, Any]:
    """The StatefulSet of an installation with these."""
    return named(objects("default", *settings), "StatefulSet", f"{PREFIX}-{component}")


@pytest.mark.parametrize(
    ("component", "settings", "advice"),
    [
        ("membership", [], "set membership.replicas back to 5"),
        ("node", ["profile=compact"], "set compact.replicas back to 5"),
    ],
)
@pytest.mark.parametrize("running", [5, 0])
def test_another_number_of_membership_nodes_is_refused(
    component: str, settings: list[str], advice: str, running: int, tmp_path: Path
):
    """Also while there are none, for a back-up."""
    five = f"{'compact' if component == 'node' else component}.replicas=5"
    there = copy.deepcopy(installed(component, *settings, five))
    there["spec"]["replicas"] = running
    with with_statefulset(there, NAMESPACE, tmp_path) as kubeconfig:
        with pytest.raises(Refused, match="there are 5 membership nodes, and they are fixed for good") as refused:
            asked(kubeconfig, *settings)
        assert advice in str(refused.value)
        assert "StatefulSet" in asked(kubeconfig, *settings, five)


@pytest.mark.parametrize("settings", [["profile=compact"], ["fullnameOverride=other"]])
def test_values_that_would_begin_anew_beside_what_is_there_are_refused(settings: list[str], tmp_path: Path):
    with with_statefulset(installed("membership"), NAMESPACE, tmp_path) as kubeconfig:
        with pytest.raises(Refused, match="would begin anew, without data") as refused:
            asked(kubeconfig, *settings)
        assert f"the StatefulSet {PREFIX}-membership" in str(refused.value)
        assert "StatefulSet" in asked(kubeconfig)


def test_a_first_installation_beside_that_of_others_goes_on(tmp_path: Path):
    there = copy.deepcopy(installed("membership", "membership.replicas=5"))
    there["metadata"]["labels"]["app.kubernetes.io/instance"] = "somebody-else-s"
    with with_statefulset(there, NAMESPACE, tmp_path) as kubeconfig:
        assert "StatefulSet" in asked(kubeconfig)


# --- Certificates are there


@pytest.mark.parametrize(
    ("files", "refusal"),
    [
        (None, "tls.secretName is certificates, and the namespace orders has no such Secret: create it first"),
        (["tls.crt", "tls.key"], "the Secret certificates has no ca.crt"),
        (["tls.crt", "tls.key", "ca.crt"], None),
    ],
)
def test_a_secret_that_is_missing_or_lacks_something_is_refused(
    files: list[str] | None, refusal: str | None, tmp_path: Path
):
    objects()
    settings = ("profile=compact", "tls.enabled=true", "tls.secretName=certificates")
    place = f"/api/v1/namespaces/{NAMESPACE}"
    account = {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"}}
    there = {f"{place}/serviceaccounts/default": account}
    if files is not None:
        metadata = {"name": "certificates"}
        data = dict.fromkeys(files, "")
        there[f"{place}/secrets/certificates"] = {
            "kind": "Secret",
            "apiVersion": "v1",
            "metadata": metadata,
            "data": data,
        }
    with with_objects(there, tmp_path) as kubeconfig:
        if refusal is None:
            assert "StatefulSet" in asked(kubeconfig, *settings)
        else:
            with pytest.raises(Refused, match=refusal):
                asked(kubeconfig, *settings)


# --- What it prints


def notes(profile: str, folder: Path) -> str:
    """`helm template` prints no notes: in a copy of the chart they are an object."""
    objects()
    copy = folder / "ordercast"
    shutil.copytree(CHART, copy)
    templates = copy / "templates"
    text = (templates / "NOTES.txt").read_text()
    (templates / "NOTES.txt").unlink()
    (templates / "_notes.tpl").write_text(f'{{{{- define "notes" -}}}}\n{text}{{{{- end -}}}}\n')
    (templates / "notes.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\n"
        'data: {notes: {{ include "notes" . | toJson }}}\n'
    )
    found = rendered(PROFILES[profile], release=RELEASE, namespace=NAMESPACE, chart=copy)
    return str(named(found, "ConfigMap", "notes")["data"]["notes"])


@pytest.mark.parametrize("profile", ["default", "compact", "production", "tls-secret"])
def test_what_is_printed_can_be_done(profile: str, tmp_path: Path):
    said = notes(profile, tmp_path)
    # kubectl is told of objects that there are.
    workloads = set(re.findall(r"(deployment|statefulset)/(\S+)", said))
    assert len(workloads) == 1
    for kind, name in workloads:
        assert named(objects(profile), {"deployment": "Deployment", "statefulset": "StatefulSet"}[kind], name)
    (service,) = re.findall(r"port-forward service/(\S+)", said)
    assert named(objects(profile), "Service", service)
    # `ordercast` takes the commands.
    (connection,) = re.findall(r'ordercast "\$@" (.+?); }', said)
    commands = re.findall(r"^  ordercast ((?:group|publish|subscribe) .+)$", said, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["group", "publish", "subscribe"]
    for file in ("ca.crt", "tls.crt", "tls.key"):
        (tmp_path / file).touch()
    for command in commands:
        told = f"{command} {connection}".replace("/etc/ordercast/tls", str(tmp_path))
        words = shlex.split(told)
        group = load(words.pop(0))
        while words[0] in getattr(group, "commands", {}):
            group = group.commands[words.pop(0)]
        assert group.make_context("ordercast", words).params["gateway"] == "localhost:7400"
    assert ("Nothing is encrypted" in said) == (profile in ("default", "compact"))
    assert ("--cert " in said) == (profile == "production")
