"""`ordercast up`: a local cluster is started, watched and stopped, and what is in its way is named."""

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from ordercast.local.cluster import HOST, LocalCluster, free_ports, wait_until
from ordercast.v1.sequencer_pb2 import DescribeReplicaRequest
from ordercast.v1.sequencer_pb2_grpc import SequencerServiceStub
from tests.cli.cluster_commands.commands import document, run
from tests.left_out import leave_out


def row_of_ports(count: int) -> int:
    """The first of so many free ports behind each other."""
    free = free_ports(8 * count)
    return next(port for port in free if all(port + i in free for i in range(count)))


class Up:
    """`ordercast up` as a process, and what it has said on stderr so far."""

    def __init__(self, directory: Path, *args: str, stdout: int = subprocess.PIPE) -> None:
        command = [sys.executable, "-m", "ordercast.cli.main", "up", "--data", str(directory), *args]
        self.process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True)
        self.said: list[str] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        self.said += (line for line in self.process.stderr)

    def document(self) -> Any:
        """The document, which ends with the first line that is a closing brace."""
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if line == "}\n":
                break
        return json.loads("".join(lines))

    def wait_for(self, words: str, times: int = 1) -> None:
        wait_until(words, lambda: sum(words in line for line in list(self.said)) >= times, timeout_s=60)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        code = self.process.wait(timeout=60)
        self._listener.join(timeout=60)
        return code


@contextlib.contextmanager
def up(directory: Path, *args: str, stdout: int = subprocess.PIPE) -> Iterator[Up]:
    started = Up(directory, *args, stdout=stdout)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.signal(signal.SIGTERM)
            started.end()


def test_a_local_cluster_restarts_what_dies_and_stops_cleanly(tmp_path: Path) -> None:
    data, port = tmp_path / "data", row_of_ports(6)
    with up(data, "--port", str(port), "--json") as started:
        shown = started.document()
        assert shown["gateways"] == [f"{HOST}:{port + i}" for i in range(3)]
        pids = {process["name"]: process["pid"] for process in shown["processes"]}
        assert document("status", "-g", shown["gateways"][0])["healthy"] is True

        other = ("--data", str(tmp_path / "other"))
        for args, words in ((("--data", str(data)), "in use by another"), (other, f"{port} is in use")):
            result = run("up", *args, "--port", str(port))
            assert result.exit_code == 6
            assert words in result.stderr

        os.kill(pids["node-2"], signal.SIGKILL)
        started.wait_for("node-2 was killed by SIGKILL: it is started again")
        started.wait_for("node-2 serves", times=2)
        started.signal(signal.SIGTERM)
        assert started.end() == 0
    assert "all processes have stopped\n" in started.said
    for pid in pids.values():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    result = run("up", "--data", str(data), "--nodes", "1")
    assert result.exit_code == 2
    assert "holds a cluster of `--nodes 3`, not of `--nodes 1`" in result.stderr


def test_services_apart_are_processes_of_their_own(tmp_path: Path) -> None:
    port = row_of_ports(5)
    with up(tmp_path, "--nodes", "1", "--separate", "--port", str(port), "--json") as started:
        names = [process["name"] for process in started.document()["processes"]]
        assert names == ["membership-1", "consensus-1", "sequencer-1", "gateway-1"]
        document("group", "create", "only", "-g", f"{HOST}:{port}")
        assert document("publish", "only", "hello", "-g", f"{HOST}:{port}")["offsets"] == {"only": 0}
        started.signal(signal.SIGINT)
        assert started.end() == 0


@pytest.fixture
def openssl() -> None:
    if shutil.which("openssl") is None:
        leave_out("`ordercast up --tls`: there is no openssl here")


@pytest.mark.usefixtures("openssl")
def test_with_tls_a_local_cluster_makes_its_certificates_and_clients_are_no_processes(tmp_path: Path) -> None:
    port = row_of_ports(5)
    with up(tmp_path, "--nodes", "1", "--separate", "--port", str(port), "--tls", "--json") as started:
        shown = started.document()
        files = {option: Path(path) for option, path in shown["tls"].items()}
        options = [f"--{option.replace('_', '-')}={path}" for option, path in files.items()]
        gateway = ("-g", f"{HOST}:{port}")
        document("group", "create", "only", *gateway, *options)
        assert document("publish", "only", "hello", *gateway, *options)["offsets"] == {"only": 0}
        assert run("publish", "only", "hello", *gateway, "--timeout", "2", options[0]).exit_code != 0

        (sequencer,) = [process for process in shown["processes"] if process["services"] == ["sequencer"]]
        as_client = grpc.ssl_channel_credentials(
            *(files[name].read_bytes() for name in ("ca", "cert_key", "cert"))
        )
        with grpc.secure_channel(f"{HOST}:{sequencer['peer_port']}", as_client) as channel:
            describe = SequencerServiceStub(channel).DescribeReplica
            with pytest.raises(grpc.RpcError) as caught:
                describe(DescribeReplicaRequest(group="only#1"), timeout=20)
            assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED
        started.signal(signal.SIGINT)
        assert started.end() == 0
    folder = tmp_path / "tls"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(key.stat().st_mode) for key in folder.glob("*.key")} == {0o600}


def test_certificates_need_openssl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run("up", "--data", str(tmp_path / "data"), "--port", str(row_of_ports(6)), "--tls")
    assert result.exit_code == 2
    assert "openssl, which is not here: install it" in result.stderr


def test_off_a_terminal_each_event_is_a_line(tmp_path: Path) -> None:
    port = row_of_ports(2)
    with up(tmp_path, "--nodes", "1", "--port", str(port)) as started:
        assert started.process.stdout is not None
        lines = []
        for line in started.process.stdout:
            lines.append(line.rstrip("\n"))
            if line.startswith("Ctrl-C"):
                break
        started.signal(signal.SIGINT)
        assert started.end() == 0
        lines += started.process.stdout.read().splitlines()
    assert f"  ordercast publish a,b 'hello, both' -g {HOST}:{port}" in lines
    assert f"Its data is kept in {tmp_path}; delete that directory to start afresh." in lines
    assert "\x1b" not in "".join(lines)
    assert lines[-1] == "all processes have stopped"


def drain(terminal: int) -> None:
    """A terminal that nobody reads fills up, and then holds up who writes to it."""
    with contextlib.suppress(OSError):
        while os.read(terminal, 4096):
            pass


def test_on_a_terminal_a_table_is_drawn(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    try:
        with up(tmp_path, "--nodes", "1", "--port", str(row_of_ports(2)), stdout=theirs) as started:
            shown = b""
            while b"1 of 1 processes serve" not in shown:
                shown += os.read(ours, 4096)
            started.signal(signal.SIGINT)
            threading.Thread(target=drain, args=(ours,), daemon=True).start()
            assert started.end() == 0
    finally:
        os.close(theirs)
    assert b"restarts" in shown


def test_a_second_ctrl_c_kills_what_does_not_stop(tmp_path: Path) -> None:
    with up(tmp_path, "--nodes", "1", "--port", str(row_of_ports(2)), "--json") as started:
        (process,) = started.document()["processes"]
        os.kill(process["pid"], signal.SIGSTOP)
        started.signal(signal.SIGINT)
        started.wait_for("stopping 1 processes")
        started.signal(signal.SIGINT)
        assert started.end() == 1
    assert "killed node-1\n" in started.said


def test_a_process_that_is_refused_is_shown_and_not_started_again(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text('{"format": 1, "nodes": 1, "separate": false}')
    (tmp_path / "node-1").mkdir()
    (tmp_path / "node-1" / "data.mdb").write_bytes(b"no store" * 1024)
    with up(tmp_path, "--nodes", "1", "--port", str(row_of_ports(2))) as started:
        assert started.end() == 5
    assert len([line for line in started.said if "node-1 does not start: cannot start: " in line]) == 1


def test_a_process_that_an_earlier_cluster_left_behind_is_named(cluster: LocalCluster) -> None:
    (cluster.directory / "cluster.json").write_text('{"format": 1, "nodes": 3, "separate": false}')
    result = run("up", "--data", str(cluster.directory), "--port", str(row_of_ports(6)))
    assert result.exit_code == 6
    assert "node-1 of an earlier cluster still runs" in result.stderr


def test_a_port_that_somebody_listens_on_is_named(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        result = run("up", "--data", str(tmp_path), "--nodes", "1", "--port", str(port))
    assert result.exit_code == 6
    assert f"{HOST}:{port} is in use" in result.stderr


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"format": 9}', '{"format": 1, "nodes": "x", "separate": 0}']
)
def test_a_damaged_description_of_a_cluster_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "cluster.json").write_text(content)
    result = run("up", "--data", str(tmp_path))
    assert result.exit_code == 2
    assert "cluster.json" in result.stderr


def test_a_directory_with_something_else_in_it_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    result = run("up", "--data", str(tmp_path))
    assert result.exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    shutil.rmtree(tmp_path)
    tmp_path.write_text("no directory")
    assert run("up", "--data", str(tmp_path)).exit_code == 2
