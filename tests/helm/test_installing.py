"""What the chart says and looks up when it is installed over something that is there."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
import typer

from deploy.kubernetes.rendering import CHART, Refused, rendered, run
from ordercast.cli.main import app
from tests.helm.api_server import with_statefulset
from tests.helm.chart import NAMESPACE, PREFIX, PROFILES, RELEASE, named, objects

# --- Membership nodes are fixed


def asked(kubeconfig: Path, *settings: str) -> str:
    given = [f"--set={setting}" for setting in settings]
    place = ["--namespace", NAMESPACE, "--dry-run=server", "--kubeconfig", str(kubeconfig)]
    return run("template", RELEASE, str(CHART), *place, *given)


@pytest.mark.parametrize(
    ("component", "settings", "advice"),
    [
        ("membership", [], "set membership.replicas back to 5"),
        ("node", ["profile=compact"], "set compact.replicas back to 5"),
    ],
)
def test_another_number_of_membership_nodes_is_refused(
    component: str, settings: list[str], advice: str, tmp_path: Path
):
    objects()  # Leaves it out where there is no Helm.
    with with_statefulset(f"{PREFIX}-{component}", NAMESPACE, 5, tmp_path) as kubeconfig:
        with pytest.raises(Refused, match="there are 5 membership nodes, and they are fixed for good") as refused:
            asked(kubeconfig, *settings)
        assert advice in str(refused.value)
        section = "compact" if component == "node" else "membership"
        assert "StatefulSet" in asked(kubeconfig, *settings, f"{section}.replicas=5")


def test_a_first_installation_finds_nothing_and_goes_on(tmp_path: Path):
    objects()
    with with_statefulset("somebody-else-s", NAMESPACE, 5, tmp_path) as kubeconfig:
        assert "StatefulSet" in asked(kubeconfig)


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
        group = typer.main.get_command(app)
        words = shlex.split(told)
        while words[0] in getattr(group, "commands", {}):
            group = group.commands[words.pop(0)]
        assert group.make_context("ordercast", words).params["gateway"] == "localhost:7400"
    assert ("Nothing is encrypted" in said) == (profile in ("default", "compact"))
    assert ("--cert " in said) == (profile == "production")
