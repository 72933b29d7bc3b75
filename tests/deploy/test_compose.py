"""deploy/compose.yaml fits together: files, ports, names, and commands that our own programs take.

There need not be a container engine here; what is checked is what the engine would be told.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ordercast.cli.main import load
from tests.tidy.rules import ROOT

DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if "build" in service]
SERVING = [name for name in OURS if SERVICES[name]["command"][0] == "serve"]


def settings_of(name: str) -> dict[str, str]:
    """The flags of a command."""
    flags = [word for word in SERVICES[name]["command"] if word.startswith("--") and "=" in word]
    return dict(flag.removeprefix("--").split("=", 1) for flag in flags)


def port_of(address: str) -> str:
    return address.rpartition(":")[2]


@pytest.mark.parametrize("name", SERVING)
def test_our_programs_take_the_commands_of_services(name: str):
    command = [sys.executable, "-m", "ordercast.cli.main", *SERVICES[name]["command"], "--print-config"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (
        port_of(settings_of(name).get("telemetry.metrics-listen", settings_of(name).get("metrics-listen")))
        in done.stdout
    )


def test_a_setting_that_is_not_there_is_refused():
    command = [
        sys.executable,
        "-m",
        "ordercast.cli.main",
        *SERVICES["node-1"]["command"],
        "--telemetry.endpiont=a:1",
    ]
    done = subprocess.run([*command, "--print-config"], capture_output=True, text=True, check=False)
    assert done.returncode == 2


def test_our_program_takes_the_command_of_the_spark_job():
    group, name, *arguments = SERVICES["analytics"]["command"]
    context = load(group).commands[name].make_context(name, list(arguments))
    assert context.params["address"] == "telemetry:4317"


@pytest.mark.parametrize("name", OURS)
def test_images_are_built_from_files_that_are_there(name: str):
    build = SERVICES[name]["build"]
    context = (DEPLOY / build["context"]).resolve()
    assert context == ROOT
    assert missing_of(context, (context / build["dockerfile"]).read_text()) == []


def missing_of(context: Path, dockerfile: str) -> list[str]:
    """What is copied and not there, or kept from the engine by .dockerignore."""
    told = [
        line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    ]
    sources = [
        source
        for words in re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE)
        for source in words.split()
    ]
    return [
        s for s in sources if not (context / s).exists() or not any(Path(s).match(pattern) for pattern in told)
    ]


def test_a_file_that_is_not_there_is_noticed():
    assert missing_of(ROOT, "COPY pyproject.toml LICENSE ./\nCOPY services services\n") == []
    assert missing_of(ROOT, "COPY requirements/none.lock README.md ./\n") == [
        "requirements/none.lock",
        "README.md",
    ]


@pytest.mark.parametrize("name", SERVICES)
def test_folders_volumes_and_versions_are_there(name: str):
    service = SERVICES[name]
    for mount in service.get("volumes", []):
        source = mount.split(":")[0]
        assert (DEPLOY / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]
    if "build" not in service:
        assert re.search(r":v?\d+\.\d+\.\d+$", service["image"])
    for other in service.get("depends_on", []):
        assert other in SERVICES
    for published in service.get("ports", []):
        assert published.startswith("127.0.0.1:")


def test_prometheus_scrapes_every_process_where_it_serves_metrics():
    jobs = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    scraped = {target for job in jobs for each in job["static_configs"] for target in each["targets"]}
    served = set()
    for name in OURS:
        settings = settings_of(name)
        served.add(f"{name}:{port_of(settings.get('telemetry.metrics-listen') or settings['metrics-listen'])}")
    assert scraped == served


def test_processes_find_each_other_under_the_names_that_they_have_here():
    nodes = [name for name in SERVING if name != "telemetry"]
    for name in nodes:
        settings = settings_of(name)
        assert settings["name"] == name
        members = dict(member.split("=") for member in settings["membership"].split(","))
        assert members == {node: settings_of(node)["peer-advertise"] for node in nodes}
        assert port_of(settings["peer-advertise"]) == port_of(settings["peer-listen"])
        (published,) = SERVICES[name]["ports"]
        assert published == f"{settings['client-advertise']}:{port_of(settings['client-listen'])}"
        assert settings["telemetry.endpoint"] == f"telemetry:{port_of(settings_of('telemetry')['listen'])}"
    assert settings_of("analytics")["address"] == f"telemetry:{port_of(settings_of('telemetry')['listen'])}"
