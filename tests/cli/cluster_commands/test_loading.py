"""What the help says of all commands, and what a command loads."""

import subprocess
import sys
from importlib import metadata

import pytest

import ordercast
from ordercast.cli.main import COMMANDS, load
from tests.cli.cluster_commands.commands import text


def test_the_help_has_the_table_of_exit_codes() -> None:
    shown = " ".join(text("--help").split())
    assert "6 unavailable, or timed out" in shown
    assert "ORDERCASTCTL_GATEWAY" in text("status", "--help")


def loaded_by(code: str) -> list[str]:
    """The modules that are there once this ran, in a process of its own."""
    script = f"{code}\nimport sys; print(chr(10), *sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[-1].split()


CALL = "from ordercast.cli.main import app; app({!r}.split(), standalone_mode=False)"
SERVER_ONLY = ("lmdb", "pydantic_settings", "structlog", "prometheus_client", "ordercast.runtime", "ordercast.sim")


def test_the_help_loads_neither_grpc_nor_rich_nor_any_command() -> None:
    loaded = loaded_by(CALL.format("--help"))
    for heavy in ("grpc", "google.protobuf", "rich", "pydantic", "asyncio", "ordercast.cli.publish", *SERVER_ONLY):
        assert heavy not in loaded


def test_a_publish_loads_the_client_and_nothing_of_the_rest(group: str) -> None:
    loaded = loaded_by(CALL.format(f"publish {group} hello"))
    assert "ordercast.client.sync" in loaded
    for heavy in ("rich", "ordercast.cli.group", "ordercast.cli.up", "ordercast.client.aio", *SERVER_ONLY):
        assert heavy not in loaded


def test_every_command_can_be_loaded_and_its_line_in_the_help_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = text("--help")
    for name, source in COMMANDS.items():
        assert load(name).name == name
        assert f"  {name} " in shown
        assert source.help in shown


def test_a_flag_takes_nothing_and_the_help_does_not_say_so() -> None:
    for command in (["--help"], ["publish", "--help"], ["group", "--help"], ["group", "create", "--help"]):
        assert "<bool>" not in text(*command)


def test_the_version_is_that_of_the_package() -> None:
    assert text("--version") == f"ordercast {metadata.version('ordercast')}\n"
    assert ordercast.__version__ == metadata.version("ordercast")
