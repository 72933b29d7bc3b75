"""Domains and groups of the values are there after an installation, and follow upgrades."""

import pytest

import ordercast
from deploy.kubernetes.rendering import Refused
from tests.k8s.installation import PREFIX, Installation


def groups(where: Installation) -> dict[str, tuple[str, int]]:
    with ordercast.connect_sync(*where.gateways) as connection:
        return {group.name: (group.domain, len(group.replicas)) for group in connection.groups()}


def said(where: Installation) -> str:
    return where.logs(f"job/{PREFIX}-domains")


def test_what_is_declared_is_created_once_and_kept(compact: Installation):
    assert groups(compact).items() >= {("orders", ("default", 3)), ("room", ("chat", 3))}
    compact.upgrade("domains[0].groups[1].name=stock")
    assert "created group stock" in said(compact)
    assert "created group orders" not in said(compact)
    compact.upgrade()
    # It is declared no more, and stays.
    assert groups(compact)["stock"] == ("default", 3)


def test_what_cannot_be_changed_fails_the_upgrade_and_changes_nothing(compact: Installation):
    with pytest.raises(Refused, match="post-upgrade hooks failed"):
        compact.upgrade("domains[1].protocol=scalatom")
    assert "the domain chat has the protocol isis, and not scalatom: that cannot be changed" in said(compact)
    assert groups(compact)["room"] == ("chat", 3)
    compact.upgrade()
