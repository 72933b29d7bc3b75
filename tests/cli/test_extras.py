"""What is installed with which extra, and what is said if it is not."""

import re
import subprocess
import sys
import tomllib

import pytest

from ordercast.cli.entry import EXTRAS
from tests.tidy.rules import ROOT, imports, modules

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CALL = """
import sys
sys.modules[{missing!r}] = None
sys.argv = ["ordercast", *{args!r}]
from ordercast.cli.entry import main
main()
"""


def run_without(missing: str, *args: str) -> subprocess.CompletedProcess[str]:
    code = CALL.format(missing=missing, args=args)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("missing", "args", "extra"),
    [
        ("typer", ("--help",), "cli"),
        ("rich", ("group", "--help"), "cli"),
        ("grpc_health", ("up",), "server"),
        ("lmdb", ("serve", "gateway", "--name", "n1"), "server"),
    ],
)
def test_without_an_extra_a_sentence_says_what_to_install(missing: str, args: tuple[str, ...], extra: str) -> None:
    done = run_without(missing, *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == f"error: this needs {missing}, which is not installed: pip install 'ordercast[{extra}]'\n"
    )


def test_what_is_missing_and_no_extra_s_is_an_error_like_any_other() -> None:
    assert "ModuleNotFoundError" in run_without("asyncio", "status").stderr


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", requirement)[0] for requirement in requirements}


def test_the_client_needs_grpc_and_protobuf_and_little_more() -> None:
    assert names(PROJECT["dependencies"]) == {"googleapis-common-protos", "grpcio", "grpcio-status", "protobuf"}


def test_dependencies_are_ranges() -> None:
    extras = PROJECT["optional-dependencies"].values()
    for requirement in (*PROJECT["dependencies"], *(each for extra in extras for each in extra)):
        assert "==" not in requirement
        assert ">=" in requirement or requirement.startswith("ordercast[")


@pytest.mark.parametrize("name", ["grpcio", "protobuf"])
def test_a_range_begins_where_the_generated_code_does(name: str) -> None:
    """It refuses what is older than what it was generated with, and newer major versions."""
    generated = ROOT / "services/ordercast/v1"
    said = {
        "grpcio": re.search(
            r"GRPC_GENERATED_VERSION = '([\d.]+)'", (generated / "gateway_pb2_grpc.py").read_text()
        ),
        "protobuf": re.search(r"Protobuf Python Version: ([\d.]+)", (generated / "common_pb2.py").read_text()),
    }[name]
    assert said is not None
    major = int(said[1].partition(".")[0])
    assert f"{name}>={said[1]},<{major + 1}" in PROJECT["dependencies"]


def test_the_client_imports_nothing_of_an_extra() -> None:
    # OpenTelemetry is the caller's: without it nothing is traced.
    for module, source in modules().items():
        if module.split(".")[1] in ("__init__", "client", "core", "errors", "version", "v1"):
            found = {name.partition(".")[0] for _, name in imports(source, module)} & set(EXTRAS)
            assert found <= {"opentelemetry"}, module
