"""Domains, groups and cursors are made, listed, described and deleted."""

import json

import pytest

from tests.cli.cluster_commands.commands import document, run, text, wait_until_known

pytestmark = pytest.mark.usefixtures("gateway")


# ---------------------------------------------------------------------------------------------------- domain


def test_a_domain_is_created_listed_and_described() -> None:
    made = document("domain", "create", "payments", "--set", "gossip_s=0.02")
    assert made["protocol"] == "scalatom"
    assert made["settings"] == {"gossip_s": "0.02"}
    assert made["name"] in [domain["name"] for domain in document("domain", "list")]
    document("group", "create", "pay-a", "pay-b", "--domain", "payments")
    assert document("domain", "describe", "payments")["groups"] == ["pay-a", "pay-b"]
    assert "gossip_s=0.02" in text("domain", "describe", "payments")
    assert "payments" in text("domain", "list")


def test_a_domain_that_exists_with_other_settings_is_exit_code_4() -> None:
    assert "ordered by scalatom" in text("domain", "create", "twice")
    assert run("domain", "create", "twice", "--set", "gossip_s=0.5").exit_code == 4


def test_a_setting_that_the_protocol_does_not_know_is_refused_by_name() -> None:
    result = run("domain", "create", "odd", "--set", "colour=blue")
    assert result.exit_code == 5
    assert "colour" in result.stderr
    assert result.stdout == ""


# ----------------------------------------------------------------------------------------------------- group


def test_groups_are_created_listed_described_and_deleted() -> None:
    made = document("group", "create", "g1", "g2", "--retention-bytes", "1000", "--retention-age", "7d")
    assert [group["name"] for group in made] == ["g1", "g2"]
    assert made[0]["retention"] == {"bytes": 1000, "age_s": 7 * 86_400}
    assert made[0]["replicas"] == ["node-1", "node-2", "node-3"]
    listed = {group["name"]: group for group in document("group", "list", "--domain", "default")}
    assert listed["g1"]["state"] == "active"
    wait_until_known("g1")
    described = document("group", "describe", "g1")
    assert [log["next_offset"] for log in described["logs"]] == [0, 0, 0]
    assert "1000 bytes and 604800 s" in text("group", "describe", "g1")
    assert document("group", "delete", "g1", "--yes")["state"] == "deleting"
    assert "is being deleted" in text("group", "delete", "g2", "--yes")


def test_one_replica_is_one_replica() -> None:
    assert len(document("group", "create", "alone", "--replicas", "1")[0]["replicas"]) == 1
    assert "alone" in text("group", "list")


def test_groups_before_the_one_that_fails_are_there_and_told() -> None:
    result = run("group", "create", "fresh", "Bad Name", "never", "--json")
    assert result.exit_code == 5
    assert [group["name"] for group in json.loads(result.stdout)] == ["fresh"]
    assert "Bad Name" in result.stderr
    assert run("group", "describe", "never").exit_code == 3


def test_a_group_is_not_deleted_without_a_yes(group: str) -> None:
    result = run("group", "delete", group)
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert document("group", "describe", group)["state"] == "active"


# ---------------------------------------------------------------------------------------------------- cursor


def test_a_cursor_is_set_listed_and_deleted(group: str) -> None:
    assert document("cursor", "set", group, "reader", "0") == {"group": group, "name": "reader", "offset": 0}
    assert "is at offset 0" in text("cursor", "set", group, "reader", "latest")
    assert [cursor["name"] for cursor in document("cursor", "list", group)] == ["reader"]
    assert "reader" in text("cursor", "list", group, "reader")
    assert document("cursor", "delete", group, "reader")["deleted"] is True
    assert run("cursor", "delete", group, "reader").exit_code == 3
