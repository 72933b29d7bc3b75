"""Hostile clients beside an honest one. How long anything took is measured, and not judged here."""

import json

import pytest
from typer.testing import CliRunner

from ordercast.cli.main import app
from ordercast.local.abuse.attacks import ATTACKS

#: One of each kind: dear to judge, refused by the hundred, connections without an end.
SHORT = ("huge-tokens", "refused-publishes", "frames-strangers")


def rows_of(*arguments: str) -> list[dict[str, object]]:
    result = CliRunner().invoke(app, ["abuse", "--json", *arguments], catch_exceptions=False)
    found: list[dict[str, object]] = json.loads(result.stdout)
    return found


def check(rows: list[dict[str, object]]) -> None:
    for row in rows:
        assert set(row["missed"]) <= {"p99"}, row  # type: ignore[call-overload]


def test_a_hostile_client_neither_stops_nor_bloats_a_node() -> None:
    rows = rows_of("--short", *(f"--attack={name}" for name in SHORT))
    assert {row["attack"] for row in rows} == set(SHORT)
    check(rows)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_no_attack_stops_or_bloats_a_node() -> None:
    rows = rows_of()
    assert {row["attack"] for row in rows} == {attack.name for attack in ATTACKS}
    check(rows)


def test_an_attack_that_does_not_exist_is_named_with_those_that_do() -> None:
    result = CliRunner().invoke(app, ["abuse", "--attack", "politeness"], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert "huge-tokens" in result.output
