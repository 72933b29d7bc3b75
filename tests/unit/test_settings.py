"""Where settings come from, which of them win, and what is refused with which words."""

import os
import tomllib

import pytest
from structlog.testing import capture_logs

from ordercast.runtime.process.logs import say_exposed
from ordercast.runtime.process.setting_sources import SettingsError, paths
from ordercast.runtime.process.settings import (
    ProcessSettings,
    Settable,
    TlsSettings,
    help_page,
    parse,
    split_address,
)
from tests.unit.certificates import Authority


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch):
    for name in os.environ:
        if name.upper().startswith("ORDERCAST_"):
            monkeypatch.delenv(name)


@pytest.fixture
def needed(tmp_path):
    """The flags that every process needs."""
    return ["--name", "g1", "--data", str(tmp_path / "data"), "--membership", "m1=10.0.0.1:7410"]


@pytest.fixture
def pems(tmp_path):
    """Flag values by TLS setting."""
    authority = Authority("ca")
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    authority.issue("g1", ["g1"]).write(tmp_path / "cert.pem", tmp_path / "key.pem")
    files = {"cert": tmp_path / "cert.pem", "key": tmp_path / "key.pem", "ca": tmp_path / "ca.pem"}
    return {f"{side}-{kind}": str(path) for side in ("peer", "client") for kind, path in files.items()}


def refusal(argv, services=("gateway",)):
    with pytest.raises(SettingsError) as refused:
        parse(argv, services)
    return str(refused.value)


# --- Sources


def test_what_nobody_sets_has_its_default(needed, tmp_path):
    settings = parse(needed, ("gateway", "sequencer"))
    assert settings.services == ("gateway", "sequencer")
    assert settings.name == "g1"
    assert settings.zone == ""
    assert settings.data == tmp_path / "data"
    assert settings.peer_listen == settings.peer_advertise == "127.0.0.1:7410"
    assert settings.frames_port == 0
    assert settings.client_listen == settings.client_advertise == "127.0.0.1:7400"
    assert settings.members == {"m1": "10.0.0.1:7410"}
    assert settings.limits.producer_messages_max == 4096
    assert settings.limits.payload_bytes_max == 1 << 20
    assert (settings.detection.suspect_s, settings.detection.end_after_s) == (3, 300)
    assert (settings.heartbeat_s, settings.drain_s, settings.peer_queue_bytes_max) == (0.5, 10, 64 << 20)
    assert not settings.fault_injection
    assert settings.wall_offset_s == 0
    assert settings.tls == TlsSettings()


def test_flags_win_over_variables_and_those_over_the_file(needed, tmp_path, monkeypatch):
    file = tmp_path / "ordercast.toml"
    file.write_text(
        'zone = "file"\ndrain_s = 1\nheartbeat_s = 0.1\n[limits]\ngroups_max = 1\nconnections_max = 1\n'
    )
    monkeypatch.setenv("ORDERCAST_DRAIN_S", "2")
    monkeypatch.setenv("ORDERCAST_HEARTBEAT_S", "0.2")
    monkeypatch.setenv("ORDERCAST_LIMITS__CONNECTIONS_MAX", "2")
    monkeypatch.setenv("ORDERCAST_LIMITS__SUBSCRIPTIONS_MAX", "2")
    given = [*needed, "--config", str(file), "--heartbeat-s", "0.3", "--limits.subscriptions-max", "3"]
    settings = parse(given, ("gateway",))
    assert (settings.zone, settings.drain_s, settings.heartbeat_s) == ("file", 2, 0.3)
    limits = settings.limits
    assert (limits.groups_max, limits.connections_max, limits.subscriptions_max) == (1, 2, 3)
    assert limits.envelopes_open_max == 64


def test_everything_can_come_from_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("ORDERCAST_NAME", "m1")
    monkeypatch.setenv("ORDERCAST_DATA", str(tmp_path))
    monkeypatch.setenv("ORDERCAST_MEMBERSHIP", "m1=h1:7410, m2=h2:7410,m3=[::1]:7410")
    monkeypatch.setenv("ORDERCAST_FAULT_INJECTION", "true")
    monkeypatch.setenv("ORDERCAST_FRAMES_PORT", "7420")
    monkeypatch.setenv("ORDERCAST_LOG__LEVEL", "debug")
    settings = parse([], ("membership",))
    assert settings.members == {"m1": "h1:7410", "m2": "h2:7410", "m3": "[::1]:7410"}
    assert settings.fault_injection
    assert settings.frames_port == 7420
    assert settings.log.level == "debug"


def test_the_file_can_be_named_by_a_variable(needed, tmp_path, monkeypatch):
    (tmp_path / "ordercast.toml").write_text('zone = "a"\n')
    monkeypatch.setenv("ORDERCAST_CONFIG", str(tmp_path / "ordercast.toml"))
    assert parse(needed, ("gateway",)).zone == "a"


@pytest.mark.parametrize("flags", [["m1=h:1,m2=h:2"], ["m1=h:1", "--membership", "m2=h:2"]])
def test_membership_nodes_may_stand_in_one_flag_or_in_several(tmp_path, flags):
    settings = parse(["--name", "g1", "--data", str(tmp_path), "--membership", *flags], ("gateway",))
    assert settings.members == {"m1": "h:1", "m2": "h:2"}


def test_membership_nodes_may_be_a_list_in_the_file(tmp_path):
    (tmp_path / "c.toml").write_text(f'name = "g1"\ndata = "{tmp_path}"\nmembership = ["m1=h:1", "m2=h:2"]\n')
    assert parse(["--config", str(tmp_path / "c.toml")], ("gateway",)).members == {"m1": "h:1", "m2": "h:2"}


def test_settings_that_are_passed_do_not_depend_on_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("ORDERCAST_ZONE", "elsewhere")
    assert ProcessSettings(name="m1", data=tmp_path, services=("membership",)).zone == ""


# --- Unknown keys


def test_an_unknown_flag_is_named(needed):
    assert "--zones" in refusal([*needed, "--zones", "a"])


def test_the_beginning_of_a_flag_is_not_the_flag(needed):
    assert "--zon" in refusal([*needed, "--zon", "a"])


def test_unknown_variables_are_all_named(needed, monkeypatch):
    monkeypatch.setenv("ORDERCAST_ZONES", "a")
    monkeypatch.setenv("ORDERCAST_LIMITS__GROUP_MAX", "1")
    refused = refusal(needed)
    assert "ORDERCAST_ZONES" in refused
    assert "ORDERCAST_LIMITS__GROUP_MAX" in refused


def test_unknown_keys_of_the_file_are_all_named(needed, tmp_path):
    (tmp_path / "c.toml").write_text('zones = "a"\n[limits]\ngroup_max = 1\n[limit]\ngroups_max = 1\n')
    refused = refusal([*needed, "--config", str(tmp_path / "c.toml")])
    assert {line.split(":")[0] for line in refused.splitlines()} == {"zones", "limits.group_max", "limit"}


def test_what_kubernetes_says_about_services_is_not_taken_for_settings(needed, monkeypatch):
    for name in ("SERVICE_HOST", "PORT", "GATEWAY_SERVICE_PORT_GRPC", "GATEWAY_PORT_7400_TCP_ADDR"):
        monkeypatch.setenv(f"ORDERCAST_{name}", "tcp://10.0.0.1:7400")
    assert parse(needed, ("gateway",)).name == "g1"


def test_services_are_no_setting(needed, tmp_path, monkeypatch):
    (tmp_path / "c.toml").write_text('services = ["gateway"]\n')
    assert "services" in refusal([*needed, "--config", str(tmp_path / "c.toml")])
    assert "--services" in refusal([*needed, "--services", "gateway"])
    monkeypatch.setenv("ORDERCAST_SERVICES", "gateway")
    assert "ORDERCAST_SERVICES" in refusal(needed)


# --- Bad values


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (["--name", "G1"], "name"),
        (["--name", "-g"], "name"),
        (["--name", "g-"], "name"),
        (["--name", "g" * 64], "name"),
        (["--name", "g1\n"], "name"),
        (["--data", "/dev/null"], "data: /dev/null is not a directory"),
        (["--peer-listen", "7410"], "peer_listen"),
        (["--peer-listen", "::1:7410"], "brackets"),
        (["--peer-listen", "a:0"], "from 1 to 65535"),
        (["--frames-port", "-1"], "frames_port"),
        (["--frames-port", "65536"], "frames_port"),
        (["--frames-port", "any"], "frames_port"),
        (["--frames-port", "127.0.0.1:7420"], "frames_port"),
        (["--client-listen", "a:65536"], "from 1 to 65535"),
        (["--client-listen", "127.0.0.1:7410"], "client_listen and peer_listen are both"),
        (["--peer-advertise", "0.0.0.0:7410"], "set peer_advertise"),
        (["--peer-listen", "0.0.0.0:7410"], "set peer_advertise"),
        (["--peer-listen", "[::]:7410"], "set peer_advertise"),
        (["--client-listen", "0.0.0.0:7400"], "set client_advertise"),
        (["--membership", "m1"], "is not name=host:port"),
        (["--membership", "m1=h:1,m1=h:2"], "twice"),
        (["--membership", "g1=h:1"], "does not run membership"),
        (["--membership", ",".join(f"m{n}=h:1" for n in range(16))], "membership"),
        (["--tls.peer-uri", ""], "tls.peer_uri"),
        (["--tls.peer-uri", "peer"], "tls.peer_uri"),
        (["--tls.peer-uri", "a:b,c:d"], "tls.peer_uri"),
        (["--tls.peer-uri", "a:" + "b" * 126], "tls.peer_uri"),
        (["--heartbeat-s", "soon"], "heartbeat_s"),
        (["--heartbeat-s", "0"], "heartbeat_s"),
        (["--heartbeat-s", "nan"], "heartbeat_s"),
        (["--heartbeat-s", "2"], "suspect_s"),
        (["--detection.end-after-s", "3"], "end_after_s"),
        (["--wall-offset-s", "inf"], "wall_offset_s"),
        (["--log.level", "loud"], "log.level"),
        (["--limits.groups-max", "0"], "limits.groups_max"),
        (["--limits.payload-bytes-max", "1048577"], "payload_bytes_max"),
        (["--limits.envelope-bytes-max", str(64 << 20)], "envelope_bytes_max"),
        (["--peer-queue-bytes-max", "1000"], "peer_queue_bytes_max"),
        (["--storage.map-bytes", "4096"], "storage.map_bytes"),
        (["--storage.reserve-bytes", str(1 << 36)], "reserve_bytes"),
        (["--fault-injection=perhaps"], "fault-injection"),
        (["stray"], "stray"),
        (["--config", "/no/such/file"], "/no/such/file"),
        (["--config", "/"], "/: Is a directory"),
    ],
)
def test_a_bad_value_is_named(needed, flags, word):
    given = needed[:-2] if flags[0] == "--membership" else needed
    assert word in refusal([*given, *flags])


def test_every_bad_value_is_named_at_once():
    refused = refusal(["--name", "G1", "--log.level", "loud"])
    assert [line.split(":")[0] for line in refused.splitlines()] == ["name", "data", "log.level"]


def test_a_variable_that_cannot_be_read_is_named(needed, monkeypatch):
    monkeypatch.setenv("ORDERCAST_STORAGE", "much")
    assert "storage" in refusal(needed)


@pytest.mark.parametrize("content", [b"zone = ", b"\xff\xfe", b"zone = 1", b"limits = 1", b"drain_s = '1 min'"])
def test_a_file_that_is_wrong_is_refused(needed, tmp_path, content):
    (tmp_path / "c.toml").write_bytes(content)
    assert refusal([*needed, "--config", str(tmp_path / "c.toml")])


@pytest.mark.parametrize("services", [(), ("gateway", "gateway"), ("mixer",)])
def test_services_have_to_be_ours_and_distinct(needed, services):
    assert "service" in refusal(needed, services)


def test_a_process_that_listens_everywhere_says_how_it_is_reached(needed):
    given = [*needed, "--insecure", "--peer-listen", "0.0.0.0:7410", "--peer-advertise", "g1.internal:7410"]
    assert parse([*given, "--client-listen", "0.0.0.0:7400"], ("sequencer",)).peer_advertise == "g1.internal:7410"


def test_who_runs_no_membership_has_to_know_who_does(tmp_path):
    given = ["--name", "a", "--data", str(tmp_path)]
    assert "name the membership nodes" in refusal(given)
    assert parse(given, ("membership", "gateway")).members == {"a": "127.0.0.1:7410"}


def test_a_membership_node_finds_itself_among_the_nodes(needed):
    assert "not among the nodes" in refusal(needed, ("membership",))


def test_an_address_comes_apart():
    assert split_address("example.org:80") == ("example.org", 80)
    assert split_address("[fe80::1%eth0]:80") == ("fe80::1%eth0", 80)


# --- TLS


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (["peer-cert"], "peer_key, peer_ca missing"),
        (["peer-cert", "peer-key"], "peer_ca missing"),
        (["peer-ca"], "peer_cert, peer_key missing"),
        (["client-cert"], "client_key missing"),
        (["client-ca"], "client_ca needs client_cert and client_key"),
    ],
)
def test_half_of_a_tls_group_is_refused(needed, pems, given, word):
    assert word in refusal([*needed, *(f"--tls.{name}={pems[name]}" for name in given)])


def test_a_tls_file_that_is_not_there_is_named(needed, pems):
    given = [f"--tls.{name}={path}" for name, path in pems.items() if name.startswith("client")]
    assert parse([*needed, *given], ("gateway",)).tls.client_ca is not None
    assert "tls.client_key" in refusal([*needed, *given, "--tls.client-key=/no/such/file"])


# --- Help and print


def test_the_printed_configuration_gives_the_same_settings(needed, pems, tmp_path, capsys):
    given = [*needed, "--zone", 'a "b"\\\t\x7fü\U0001f600', "--fault-injection", "--drain-s", "0"]
    given += [f"--tls.{name}={path}" for name, path in pems.items()]
    with pytest.raises(SystemExit) as ended:
        parse([*given, "--print-config"], ("gateway",))
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert tomllib.loads(printed)["limits"]["groups_max"] == 64
    assert "PRIVATE KEY" not in printed
    (tmp_path / "printed.toml").write_text(printed)
    assert parse(["--config", str(tmp_path / "printed.toml")], ("gateway",)) == parse(given, ("gateway",))


def test_settings_that_are_no_good_are_not_printed(capsys):
    refusal(["--print-config"])
    assert capsys.readouterr().out == ""


def test_help_explains_every_setting(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    with pytest.raises(SystemExit) as ended:
        parse(["--help"], ("gateway",))
    assert ended.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    described = 0
    for name, field in ProcessSettings.model_fields.items():
        if name == "services":
            continue
        sections = getattr(field.annotation, "model_fields", None)
        flags = [(f"{name}.{inner}", of) for inner, of in sections.items()] if sections else [(name, field)]
        for flag, of in flags:
            assert f"--{flag.replace('_', '-')} " in text
            assert of.description in text
            described += 1
    assert described > 30


@pytest.mark.parametrize("services", [(), ("gateway",)])
def test_help_has_each_setting_once_and_what_has_to_be_set_first(services: tuple[str, ...]):
    panels = list(help_page(services).rows())
    flags = [row.flag for _, rows in panels for row in rows]
    settings = [path for path, field in paths(Settable) if not hasattr(field.annotation, "model_fields")]
    assert sorted(flags) == sorted(
        ["--config", "--print-config", "--help", *(f"--{'.'.join(path).replace('_', '-')}" for path in settings)]
    )
    assert [row.flag for _, rows in panels for row in rows if row.default == "has to be set"] == [
        "--name",
        "--data",
    ]
    assert flags[:2] == ["--name", "--data"]


def test_help_says_values_and_defaults_in_words():
    shown = {row.flag: (row.word, row.default) for _, rows in help_page(()).rows() for row in rows}
    for flag, word, default in (
        ("--name", "TEXT", "has to be set"),
        ("--data", "DIRECTORY", "has to be set"),
        ("--membership", "NAME=HOST:PORT,...", ""),
        ("--peer-advertise", "HOST:PORT", "default: as --peer-listen"),
        ("--storage.map-bytes", "BYTES", "default: 64 GiB"),
        ("--limits.backlog-s-max", "SECONDS", "default: 0.25 seconds"),
        ("--replacement.after-s", "SECONDS", "default: 0"),
        ("--log.format", "json|console", "default: json"),
        ("--tls.peer-cert", "FILE", ""),
        ("--telemetry.endpoint", "HOST:PORT", ""),
        ("--insecure", "", ""),
    ):
        assert shown[flag] == (word, default)


# --- Without TLS

SIDES = ("peer", "client")
LISTENING = ["--peer-advertise", "g1.internal:7410", "--client-advertise", "g1.internal:7400"]


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "10.0.0.7", "[fd00::7]", "g1.internal", "127.0.0.1.internal"])
@pytest.mark.parametrize(("setting", "port"), [("peer", 7410), ("client", 7400)])
def test_nobody_listens_beyond_this_machine_without_tls_by_mistake(needed, pems, host, setting, port):
    given = [*needed, *LISTENING, f"--{setting}-listen", f"{host}:{port}"]
    message = refusal(given)
    assert f"{setting}_listen {host}:{port}: without TLS" in message
    assert "--insecure" in message
    assert parse([*given, "--insecure"], ("gateway",)).exposed == [f"{setting}_listen {host}:{port}"]
    # Certificates of the other port are not its own.
    others = "client" if setting == "peer" else "peer"
    flags = {
        side: [f"--tls.{name}={file}" for name, file in pems.items() if name.startswith(side)] for side in SIDES
    }
    assert "without TLS" in refusal([*given, *flags[others]])
    assert parse([*given, *flags[setting]], ("gateway",)).exposed == []


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "[::1]", "localhost"])
def test_this_machine_alone_needs_neither_tls_nor_leave(needed, host):
    given = [*needed, "--peer-listen", f"{host}:7410", "--client-listen", f"{host}:7400"]
    assert parse(given, ("gateway",)).exposed == []


def test_who_runs_no_gateway_has_no_port_for_clients_to_expose(needed):
    assert parse([*needed, "--client-listen", "0.0.0.0:7400"], ("sequencer",)).exposed == []


def test_leave_may_come_from_a_variable_or_a_file(needed, tmp_path, monkeypatch):
    given = [*needed, *LISTENING, "--peer-listen", "0.0.0.0:7410"]
    (tmp_path / "c.toml").write_text("insecure = true\n")
    assert parse([*given, "--config", str(tmp_path / "c.toml")], ("gateway",)).insecure
    monkeypatch.setenv("ORDERCAST_INSECURE", "true")
    assert parse(given, ("gateway",)).insecure


def test_who_is_exposed_says_so_at_each_start():
    with capture_logs() as logged:
        say_exposed([])
        say_exposed(["peer_listen 0.0.0.0:7410"])
    (entry,) = logged
    assert entry["event"].startswith("insecure: without TLS")
    assert (entry["log_level"], entry["listening"]) == ("warning", ["peer_listen 0.0.0.0:7410"])
