"""The command line as scripts use it: one JSON document on stdout, exit codes, clear errors."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ordercast.cli.main import app
from ordercast.sim.scalatom.trial import TRIAL


def run(*args: str) -> Result:
    return CliRunner().invoke(app, list(args))


def document(*args: str) -> tuple[int, Any]:
    result = run(*args, "--json")
    return result.exit_code, json.loads(result.stdout)


def mutant(name: str) -> Any:
    return TRIAL.mutant(name).applied(TRIAL.assertions)


def test_papers_prints_published_beside_measured() -> None:
    code, rows = document("papers", "scalatom")
    assert code == 0
    assert all(list(row) == ["what", "published", "measured"] for row in rows)
    as_published = [row for row in rows if "stamps imply" not in row["what"]]
    exact = [r for r in as_published if r["what"].endswith("eager relay") or r["what"].startswith("gossip")]
    assert len(exact) == 22
    assert len(as_published) < len(rows)
    assert all(row["published"] == row["measured"] for row in exact)


def test_protocols_are_listed_with_their_traits_and_settings() -> None:
    code, found = document("domain", "protocols")
    assert (code, [protocol["name"] for protocol in found]) == (0, ["isis", "scalatom"])
    assert [protocol["traits"]["orders"] for protocol in found] == ["within", "across"]
    code, (one,) = document("domain", "protocols", "isis")
    (setting,) = [setting for setting in one["settings"] if setting["name"] == "ordering"]
    assert (code, setting["default"], setting["choices"]) == (0, "causal", ["causal", "total"])
    assert "gossip_s" in run("domain", "protocols", "scalatom").stdout
    assert run("domain", "protocols", "unheard-of").exit_code != 0


def test_the_demo_loses_a_node_and_no_message() -> None:
    code, result = document("demo", "--messages", "400")
    assert (code, result["ok"], result["problems"]) == (0, True, [])
    assert (result["acknowledged"], result["lost"], result["duplicated"], result["order_violations"]) == (
        400,
        0,
        0,
        0,
    )
    assert [len(group["replicas"]) for group in result["groups"]] == [3, 3, 3]
    assert all(group["messages"] == group["seen_by_subscriber"] > 0 for group in result["groups"])


@pytest.mark.long
def test_the_demo_prints_a_table_and_a_verdict() -> None:
    result = run("demo", "--messages", "200")
    assert result.exit_code == 0
    assert "SIGKILL to node-2" in result.stderr
    assert "one order, everywhere" in result.stdout


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
