"""The telemetry service as a process: what it took survives whatever happens to it, and it says what is wrong."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import grpc
import pytest

from ordercast.analytics.spool_client import Certificates, SpoolClient
from ordercast.local.cluster import free_ports
from ordercast.runtime.process.setting_sources import SettingsError
from ordercast.runtime.process.settings import parse as parse_node
from ordercast.telemetry.flatten.requests import LOGS, TRACES
from ordercast.telemetry.settings import parse
from tests.telemetry import traffic
from tests.telemetry.process import WAIT_S_MAX, TelemetryProcess, export, running, wait_for
from tests.unit.certificates import Authority

KILLS = 2
QUICK = ("--seal-s", "0.1", "--reserve-bytes", "0")


class Sender:
    """Sends deliveries of a group of its own one request after the other, and repeats what is not acknowledged."""

    def __init__(self, address: str, group: str) -> None:
        self._address = address
        self._group = group
        self._is_over = threading.Event()
        self.acknowledged = 0
        self.attempts = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        options = [("grpc.max_reconnect_backoff_ms", 100), ("grpc.min_reconnect_backoff_ms", 50)]
        with grpc.insecure_channel(self._address, options) as channel:
            while not self._is_over.is_set():
                payload = traffic.deliveries(10 * self.acknowledged, 10, group=self._group)
                try:
                    self.attempts += 1
                    export(channel, LOGS, payload)
                except grpc.RpcError:
                    self._is_over.wait(0.02)
                else:
                    self.acknowledged += 1

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()


def test_what_was_acknowledged_is_there_after_kills_in_order_and_once(tmp_path: Path):
    with running(tmp_path / "s", *QUICK, "--segment-bytes", "20000") as service:
        senders = [Sender(service.address, group) for group in "abcd"]
        for _ in range(KILLS):
            before = [sender.acknowledged for sender in senders]
            wait_for(
                lambda before=before: all(s.acknowledged > b + 20 for s, b in zip(senders, before, strict=True))
            )
            service.kill()
            service.start()
        for sender in senders:
            sender.stop()
        with service.client() as client:
            end = client.describe().taken
            service.wait_until_readable(end)
            rows = [row for batch in client.read(0, end) for row in batch.to_pylist()]
    assert [row["offset"] for row in rows] == list(range(end))
    repeated = 0
    for sender, group in zip(senders, "abcd", strict=True):
        found = [row["position"] for row in rows if row["group"] == group]
        requests = [found[at] // 10 for at in range(0, len(found), 10)]
        # Each request is whole, in the order in which it was sent; one that was written when its sender did not
        # hear of it any more was sent again.
        assert found == [10 * request + i for request in requests for i in range(10)]
        assert requests == sorted(requests)
        assert sorted(set(requests)) == list(range(len(set(requests))))
        assert len(set(requests)) >= sender.acknowledged
        assert len(requests) <= sender.attempts
        repeated += len(requests) - len(set(requests))
    assert repeated <= KILLS * len(senders)


def test_a_stop_leaves_everything_on_disk_and_exits_with_0(tmp_path: Path):
    with running(tmp_path / "s", "--seal-s", "3600", "--reserve-bytes", "0") as service:
        with grpc.insecure_channel(service.address) as channel:
            export(channel, TRACES, traffic.traces(range(100)))
        assert service.stop() == 0
        assert len(list(service.spool.glob("*.arrow"))) == 0
        service.start("--seal-s", "0.1")
        service.wait_until_readable(100)


def test_a_reader_goes_on_where_it_was_when_the_service_comes_back(tmp_path: Path):
    with running(tmp_path / "s", *QUICK, "--segment-bytes", "1024") as service:
        with grpc.insecure_channel(service.address) as channel:
            for turn in range(30):
                export(channel, LOGS, traffic.deliveries(10 * turn, 10))
        service.wait_until_readable(300)
        with service.client() as client:
            found: list[int] = []
            reading = client.read(0, 300)
            found += next(reading).column("position").to_pylist()
            service.kill()
            starting = threading.Timer(0.3, service.start)
            starting.start()
            for batch in reading:
                found += batch.column("position").to_pylist()
            starting.join()
        assert found == list(range(300))


def test_a_write_that_finds_no_room_is_taken_back_and_told(tmp_path: Path):
    """A limit on the size of files stands for a full disk: the system refuses the write in the same way."""
    limited = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
from ordercast.telemetry.service import main
main(sys.argv[1:])
"""
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    service = TelemetryProcess(tmp_path, options=QUICK)
    command = [sys.executable, "-c", limited, "--data", str(service.spool), "--listen", address]
    command += ["--reserve-bytes", "0", "--seal-s", "3600"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            with grpc.insecure_channel(address) as channel:
                grpc.channel_ready_future(channel).result(WAIT_S_MAX)
                taken, code = 0, None
                while code is None and taken < 100:
                    try:
                        export(channel, TRACES, traffic.traces(range(40 * taken, 40 * taken + 40)))
                        taken += 1
                    except grpc.RpcError as error:
                        code = error.code()
                assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
                assert taken
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_S_MAX) == 0
        finally:
            process.kill()
    service.start()
    try:
        service.wait_until_readable(40 * taken)
        with service.client() as client:
            assert client.describe().taken == 40 * taken
        assert "torn" not in service.log.read_text()
    finally:
        service.kill()


def test_a_torn_end_is_logged(tmp_path: Path):
    with running(tmp_path / "s", "--seal-s", "3600", "--reserve-bytes", "0") as service:
        with grpc.insecure_channel(service.address) as channel:
            export(channel, TRACES, traffic.traces(range(10)))
            export(channel, TRACES, traffic.traces(range(10, 20)))
        service.kill()
        path = service.spool / f"{0:020d}.otlp"
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - 5)
        service.start("--seal-s", "0.1")
        service.wait_until_readable(10)
        assert "a torn end is cut off" in service.log.read_text()


def test_tls_is_demanded_of_both_sides_where_it_is_set(tmp_path: Path):
    authority = Authority("ours")
    authority.issue("telemetry", ["localhost"]).write(tmp_path / "t.pem", tmp_path / "t.key")
    authority.issue("reader", [], ["ordercast:reader"]).write(tmp_path / "r.pem", tmp_path / "r.key")
    client_pair = authority.issue("alice")
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    (port,) = free_ports(1)
    files = ["--tls.cert", "t.pem", "--tls.key", "t.key", "--tls.ca", "ca.pem"]
    files = [str(tmp_path / part) if "." in part and not part.startswith("--") else part for part in files]
    marks = ["--tls.uris", "ordercast:peer,ordercast:reader"]
    command = [sys.executable, "-m", "ordercast.telemetry", "--data", str(tmp_path / "s"), *files, *marks]
    with subprocess.Popen([*command, "--listen", f"127.0.0.1:{port}"], stderr=subprocess.DEVNULL) as process:
        try:
            certificates = Certificates(tmp_path / "ca.pem", tmp_path / "r.pem", tmp_path / "r.key")
            with SpoolClient(f"localhost:{port}", certificates, patience_s=WAIT_S_MAX) as client:
                assert client.describe().end == 0
            with grpc.insecure_channel(f"localhost:{port}") as channel, pytest.raises(grpc.RpcError):
                channel.unary_unary("/ordercast.v1.TelemetryService/DescribeSpool")(b"", timeout=5)
            # The same authority signed this one, for a client of gateways.
            pair = grpc.ssl_channel_credentials(authority.pem, client_pair.key_pem, client_pair.cert_pem)
            with grpc.secure_channel(f"localhost:{port}", pair) as channel, pytest.raises(grpc.RpcError) as caught:
                export(channel, TRACES, traffic.traces(range(10)))
            assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "data: has to be set"),
        (["--data", "d", "--colour", "red"], "--colour"),
        (["--data", "d", "--seal-s", "0"], "seal_s"),
        (["--data", "d", "--sink", "drain"], "sink"),
        (["--sink", "kafka"], "kafka.bootstrap: has to be set"),
        (["--data", "d", "--queue-bytes-max", "1"], "queue_bytes_max"),
        (["--data", "d", "--metrics-listen", "127.0.0.1:4317"], "both"),
        (["--data", "d", "--tls.ca", __file__], "ca needs"),
        (["--data", "d", "--listen", "0.0.0.0:4317"], "listen 0.0.0.0:4317: without TLS.*--insecure"),
        (["--data", "d", "--tls.uris", "ordercast:peer"], "uris needs ca"),
        (
            ["--sink", "kafka", "--kafka.bootstrap", "x:1", "--kafka.options", "acks=0"],
            "acks cannot be set",
        ),
    ],
)
def test_settings_that_are_no_good_are_named(arguments: list[str], words: str):
    with pytest.raises(SettingsError, match=words):
        parse(arguments)


def test_it_runs_alone():
    command = [sys.executable, "-m", "ordercast.cli.services", "telemetry", "gateway"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S_MAX)
    assert ended.returncode == 2
    assert "a process of its own" in ended.stderr


def printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        parse([*arguments, "--print-config"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_what_is_printed_as_a_file_gives_the_same_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    options = ["--kafka.options", "security.protocol=SSL", "--kafka.options", "client.rack=r1"]
    first = printed(["--sink", "kafka", "--kafka.bootstrap", "k:1", *options], capsys)
    (tmp_path / "t.toml").write_text(first)
    assert printed(["--config", str(tmp_path / "t.toml")], capsys) == first
    assert '"security.protocol" = "SSL"' in first


def test_variables_of_nodes_are_not_its_own_nor_its_own_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("ORDERCAST_NAME", "n1")
    monkeypatch.setenv("ORDERCAST_TELEMETRY__ENDPOINT", "x:1")
    monkeypatch.setenv("ORDERCAST_TELEMETRY_SEAL_S", "7")
    assert "seal_s = 7.0" in printed(["--data", str(tmp_path)], capsys)
    monkeypatch.delenv("ORDERCAST_TELEMETRY__ENDPOINT")
    parse_node(["--data", str(tmp_path)], ("membership",))
    monkeypatch.setenv("ORDERCAST_TELEMETRY_COLOUR", "red")
    with pytest.raises(SettingsError, match="ORDERCAST_TELEMETRY_COLOUR: there is no such setting"):
        parse(["--data", str(tmp_path)])


def test_a_port_that_is_taken_and_a_directory_that_cannot_be_used_end_it_with_78(tmp_path: Path):
    with running(tmp_path / "s", *QUICK) as service:
        command = [sys.executable, "-m", "ordercast.telemetry", "--listen", service.address]
        ended = subprocess.run(
            [*command, "--data", str(tmp_path / "other")], capture_output=True, text=True, timeout=60
        )
        assert (ended.returncode, "cannot listen" in ended.stderr) == (78, True)
    (tmp_path / "other" / "spool.json").write_text("?")
    ended = subprocess.run(
        [*command, "--data", str(tmp_path / "other")], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, "damaged" in ended.stderr) == (78, True)
