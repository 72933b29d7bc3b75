"""What a shell is offered when it asks for completions, as its script would: by variables of the environment."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ordercast
from ordercast.cli.connection import GATEWAY_VARIABLE
from ordercast.cli.main import COMMANDS
from ordercast.local.cluster import HOST, LocalCluster, wait_until

ASK = """
import sys
sys.argv = ["ordercast"]
from ordercast.cli.entry import main
try:
    main()
finally:
    print(*sys.modules, file=open(sys.orig_argv[-1], "w"))
"""
NOWHERE = f"{HOST}:1"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a cluster with names to complete."""
    with LocalCluster(tmp_path_factory.mktemp("cluster"), nodes=1) as cluster:
        cluster.start()
        cluster.wait_healthy()
        with ordercast.connect_sync(*cluster.gateways) as client:
            client.create_domain("payments")
            for name in ("apples", "pears", "plums"):
                client.create_group(name)
            client.set_cursor("pears", "billing", "earliest")
            client.set_cursor("plums", "audit", "earliest")
        yield cluster.gateways[0]
        cluster.stop()


class Asked:
    def __init__(self, directory: Path, gateway: str, line: str) -> None:
        """The last word of the line is what is completed; behind a space it is empty."""
        words = line.split(" ")
        told = {"_ORDERCAST_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        told[GATEWAY_VARIABLE] = gateway
        modules = directory / "modules"
        self.done = subprocess.run(
            [sys.executable, "-c", ASK, str(modules)], env=os.environ | told, capture_output=True, text=True
        )
        self.loaded = modules.read_text().split()
        self.offered = self.done.stdout.split()


def answered(directory: Path, gateway: str, line: str) -> Asked:
    """Asked again until there is an answer: on a busy machine there may be none within half a second."""
    asked: list[Asked] = []

    def is_answered() -> bool:
        asked.append(Asked(directory, gateway, line))
        return bool(asked[-1].offered)

    wait_until("something is offered", is_answered, timeout_s=60)
    return asked[-1]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ordercast subs", ["subscribe"]),
        ("ordercast cursor s", ["set"]),
        ("ordercast publish p", ["pears", "plums"]),
        ("ordercast publish pears,", ["pears,apples", "pears,plums"]),
        ("ordercast publish apples,pears,p", ["apples,pears,plums"]),
        ("ordercast subscribe a", ["apples"]),
        ("ordercast subscribe nothing", []),
        ("ordercast subscribe pears --cursor ", ["billing"]),
        ("ordercast cursor set plums ", ["audit"]),
        ("ordercast cursor delete ", ["apples", "pears", "plums"]),
        ("ordercast group describe pe", ["pears"]),
        ("ordercast group replace pears --node ", ["node-1"]),
        ("ordercast group replace pears --with ", ["node-1"]),
        ("ordercast group create quinces --domain p", ["payments"]),
        ("ordercast group create p", []),
        ("ordercast domain describe ", ["default", "payments"]),
        ("ordercast domain create p", []),
        ("ordercast node drain n", ["node-1"]),
    ],
)
def test_names_are_completed(tmp_path: Path, gateway: str, line: str, offered: list[str]) -> None:
    asked = answered(tmp_path, gateway, line) if offered else Asked(tmp_path, gateway, line)
    assert (asked.offered, asked.done.stderr, asked.done.returncode) == (offered, "", 0)


def test_the_gateway_of_the_command_line_is_asked(tmp_path: Path, gateway: str) -> None:
    assert answered(tmp_path, NOWHERE, f"ordercast subscribe -g {gateway} a").offered == ["apples"]
    assert Asked(tmp_path, gateway, f"ordercast subscribe -g {NOWHERE} a").offered == []


def test_the_next_gateway_is_asked_if_one_does_not_answer(tmp_path: Path, gateway: str) -> None:
    assert answered(tmp_path, f"{NOWHERE},{gateway}", "ordercast subscribe a").offered == ["apples"]


@pytest.mark.parametrize("rest", ["p", "--ca LICENSE p", "--ca nowhere p", "--cert-key LICENSE p"])
@pytest.mark.parametrize("where", [NOWHERE, "no address", "silent"])
def test_without_an_answer_nothing_is_offered_and_nothing_said(tmp_path: Path, where: str, rest: str) -> None:
    with socket.create_server((HOST, 0)) as silent:
        address = f"{HOST}:{silent.getsockname()[1]}" if where == "silent" else where
        asked = Asked(tmp_path, address, f"ordercast publish {rest}")
    assert (asked.offered, asked.done.stderr, asked.done.returncode) == ([], "", 0)


def test_tls_that_the_gateway_does_not_have_is_no_word_either(tmp_path: Path, gateway: str) -> None:
    certificate = tmp_path / "ca.pem"
    certificate.write_text("no certificate")
    asked = Asked(tmp_path, gateway, f"ordercast publish --ca {certificate} p")
    assert (asked.offered, asked.done.stderr, asked.done.returncode) == ([], "", 0)


def test_completing_loads_what_asking_needs_and_no_more(tmp_path: Path, gateway: str) -> None:
    commands = Asked(tmp_path, gateway, "ordercast ")
    assert set(COMMANDS) <= set(commands.offered)
    names = Asked(tmp_path, gateway, "ordercast publish ")
    assert "grpc" in names.loaded
    for heavy in ("grpc", "google.protobuf", "ordercast.cli.publish", "ordercast.cli.completion"):
        assert heavy not in commands.loaded
    for heavy in ("rich", "lmdb", "ordercast.client.sync", "ordercast.client.aio", "ordercast.cli.group"):
        assert heavy not in [*commands.loaded, *names.loaded]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_asks_us(shell: str) -> None:
    code = "import sys; sys.argv[0] = 'ordercast'; from ordercast.cli.entry import main; main()"
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [sys.executable, "-c", code, "--show-completion", shell]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert f"_ORDERCAST_COMPLETE=complete_{shell}" in done.stdout
