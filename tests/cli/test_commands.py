"""The command line as scripts use it: one JSON document on stdout, exit codes, clear errors."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ordercast.cli.main import app
from ordercast.sim.mutants.catalogue import CATALOGUE


def run(*args: str) -> Result:
    return CliRunner().invoke(app, list(args))


def document(*args: str) -> tuple[int, Any]:
    result = run(*args, "--json")
    return result.exit_code, json.loads(result.stdout)


def mutant(name: str) -> Any:
    return next(m for m in CATALOGUE if m.name == name).applied()


def test_papers_prints_published_beside_measured() -> None:
    code, rows = document("papers", "scalatom")
    assert code == 0
    assert all(list(row) == ["what", "published", "measured"] for row in rows)
    exact = [row for row in rows if row["what"].endswith("eager relay") or row["what"].startswith("gossip")]
    assert len(exact) == 22
    assert all(row["published"] == row["measured"] for row in exact)


def test_the_demo_shows_the_same_log_at_every_replica_of_a_group() -> None:
    code, result = document("demo")
    assert code == 0
    assert result["violation"] is None
    logs: dict[str, list[list[str]]] = {}
    for row in result["deliveries"]:
        logs.setdefault(row["group"], []).append(row["delivered"])
    assert sorted(logs) == ["a", "b", "c"]
    assert all(len(group) == 3 and group[0] == group[1] == group[2] for group in logs.values())


def test_the_demo_prints_tables_and_a_verdict() -> None:
    result = run("demo")
    assert result.exit_code == 0
    assert "n3 crashes" in result.stdout
    assert "one order everywhere" in result.stdout


def test_a_violation_is_exit_code_1_and_explained_on_stderr() -> None:
    with mutant("delivery-before-a-predecessor-is-decided"):
        result = run("sim", "scalatom", "--seed", "1", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["violations"] == 1
    assert "replay: ordercast sim scalatom --seed 1 --trace" in result.stderr


def test_a_trace_shows_the_conversation_around_the_violation_only() -> None:
    with mutant("delivery-before-a-predecessor-is-decided"):
        result = run("sim", "scalatom", "--seed", "1", "--trace")
    assert result.exit_code == 1
    assert "what was said of" in result.stdout
    assert "delivers" in result.stdout


def test_one_mutant_can_be_tried_alone() -> None:
    code, rows = document("sim", "scalatom", "--mutants", "--mutant", "ties-not-in-pps")
    assert code == 0
    assert [list(row) for row in rows] == [["mutant", "caught", "seed", "property"]]
    assert rows[0]["caught"] is True


@pytest.mark.parametrize(
    "args",
    [
        ("sim", "unheard-of"),
        ("sim", "scalatom", "--seeds", "0"),
        ("sim", "scalatom", "--trace"),
        ("sim", "scalatom", "--mutant", "no-such"),
        ("papers", "unheard-of"),
    ],
)
def test_a_wrong_call_is_exit_code_2_and_says_what_is_wrong(args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert "Error" in result.stderr or "Invalid" in result.stderr
