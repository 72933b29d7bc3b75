"""Replicas are replaced on a real cluster while the bench measures."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ordercast.cli.main import app


@pytest.mark.long
def test_two_replicas_are_replaced_under_load_and_all_agree_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    args = ["bench", "during", "replace", "--messages", "3000", "--seconds", "0.5", "--json"]
    result = CliRunner().invoke(app, args, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    first, second = document["changes"]
    # One that is not the gateway's, then the gateway's own, by the one that went before.
    assert (first["by"], first["is_gateways"], second["is_gateways"]) == ("node-4", False, True)
    assert first["replaced"] == second["by"] != second["replaced"]
    for change in (first, second):
        assert [phase["phase"] for phase in change["phases"]] == ["before", "during", "after"]
        assert [phase["failed"] for phase in change["phases"]] == [0, 0, 0]
        assert change["copied_bytes"] >= 100 * change["copied_messages"]
    verified = document["verified"]
    assert (verified["ok"], verified["lost"], verified["problems"]) == (True, 0, [])
    assert verified["messages"] > 3000
    assert len(document["goals"]) == 2
    assert "filling the log: 0 of 3,000 messages" in result.stderr
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"
