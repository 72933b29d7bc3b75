"""The spool over TLS, as driver and executors read it: from the source's options to a real telemetry service."""

import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ordercast.analytics.certificates import Certificates
from ordercast.analytics.errors import AnalyticsError
from ordercast.cli.main import app
from ordercast.local.cluster import free_ports
from tests.analytics.needed import need_packages
from tests.unit.certificates import Authority

need_packages()

from ordercast.analytics import run  # noqa: E402
from ordercast.analytics.source import Options, SpoolReader  # noqa: E402
from ordercast.analytics.sources import tls_options  # noqa: E402

NAME = "oc-ordercast-telemetry"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder: Path = tmp_path_factory.mktemp("certificates")
    authority = Authority("ours")
    authority.issue("", [NAME]).write(folder / "service.pem", folder / "service.key")
    authority.issue("reader", []).write(folder / "reader.pem", folder / "reader.key")
    (folder / "ca.pem").write_bytes(authority.pem)
    return Certificates(folder / "ca.pem", folder / "reader.pem", folder / "reader.key", NAME)


@pytest.fixture(scope="module")
def address(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """It asks for certificates, and its own does not name the host that is dialled."""
    folder = certificates.ca.parent
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "ordercast.telemetry", f"--data={tmp_path_factory.mktemp('spool')}"]
    command += [f"--tls.cert={folder / 'service.pem'}", f"--tls.key={folder / 'service.key'}"]
    command += [f"--tls.ca={certificates.ca}", f"--listen=127.0.0.1:{port}"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        yield f"127.0.0.1:{port}"
        process.terminate()


def test_the_job_finds_the_service_before_it_starts(address: str, certificates: Certificates):
    run.check_spool(address, certificates)


def test_a_reader_has_what_the_job_was_told_in_whichever_process_it_is(address: str, certificates: Certificates):
    reader = SpoolReader(Options.of({"address": address, **tls_options(certificates)}))
    sent: SpoolReader = pickle.loads(pickle.dumps(reader))
    assert sent.initialOffset()["offset"] == 0


@pytest.mark.parametrize(
    "changed",
    [None, {"server_name": None}, {"server_name": "another"}, {"cert": None, "key": None}],
    ids=["no TLS", "the host's name", "another name", "no certificate"],
)
def test_it_does_not_read_otherwise(
    address: str, certificates: Certificates, changed: dict[str, None] | None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(run, "PATIENCE_S", 1.0)
    with pytest.raises(AnalyticsError, match=f"the telemetry service at {address}"):
        run.check_spool(address, None if changed is None else replace(certificates, **changed))


def test_a_file_that_is_not_there_is_named(address: str, certificates: Certificates):
    with pytest.raises(AnalyticsError, match=r"gone\.pem: No such file"):
        run.check_spool(address, replace(certificates, ca=certificates.ca.parent / "gone.pem"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--server-name", "telemetry"], "--server-name needs --ca"),
        (["--cert", __file__, "--cert-key", __file__], "--cert needs --ca"),
        (["--ca", __file__, "--cert", __file__], "--cert and --cert-key go together"),
        (["--source", "kafka", "--ca", __file__], "--ca is for --source spool"),
        (["--ca", "/no/such/file"], "does not exist"),
    ],
)
def test_what_does_not_go_together_is_said_before_anything_is_started(arguments: list[str], words: str):
    result = CliRunner().invoke(app, ["analytics", "run", *arguments], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert words in result.stderr


def test_without_tls_the_source_has_no_options_of_it():
    assert tls_options(None) == {}
    assert Options.of({"address": "a:1"}).certificates is None
