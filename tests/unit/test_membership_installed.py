"""Protocols of installed packages: membership agrees on who has them, whatever is installed at its members."""

from dataclasses import replace

import pytest

from ordercast.core.errors import InvariantBroken
from ordercast.core.level import INSTALLED_LEVEL, LEVEL
from ordercast.membership.reassignment import Reassignment
from ordercast.membership.refusals import Code
from ordercast.membership.settings import PROTOCOLS_MAX, MembershipSettings
from ordercast.protocols import catalogue
from ordercast.protocols.catalogue import DEFAULT
from ordercast.v1.membership_pb2 import CreateDomain, HeartbeatRequest, NoteProtocols
from tests.unit.test_membership_state import Cluster

THEIRS = "theirs"
DOMAIN = CreateDomain(name="d", protocol=THEIRS)


@pytest.fixture
def installed(monkeypatch):
    """Here, a package with a protocol is installed."""
    known = {**catalogue.protocols(), THEIRS: replace(DEFAULT, name=THEIRS)}
    monkeypatch.setattr(catalogue, "protocols", lambda: known)


def cluster_with(**protocols: list[str]) -> Cluster:
    """Nodes, by what they have."""
    cluster = Cluster()
    cluster.register("a", level=LEVEL)
    assert cluster.raise_level(LEVEL).code == Code.OK
    for name, found in protocols.items():
        assert cluster.register(name, level=LEVEL, protocols=found).code == Code.OK
    return cluster


def test_a_domain_can_have_a_protocol_that_all_nodes_have(installed):
    cluster = cluster_with(a=[THEIRS], b=[THEIRS])
    assert cluster.do(create_domain=DOMAIN).code == Code.OK
    assert cluster.group("g", domain="d", replicas=2).code == Code.OK


def test_one_that_some_node_lacks_is_refused_with_who_that_is(installed):
    cluster = cluster_with(a=[THEIRS], b=[])
    refused = cluster.do(create_domain=DOMAIN)
    assert refused.code == Code.FAILED_PRECONDITION
    assert "b does not have the protocol theirs" in refused.message


def test_what_is_installed_at_a_member_alone_does_not_count(installed):
    refused = cluster_with(a=[], b=[]).do(create_domain=DOMAIN)
    assert refused.code == Code.INVALID_ARGUMENT
    assert refused.message == "there is no protocol 'theirs': there are isis, scalatom"


def test_who_lacks_the_protocol_of_a_domain_is_not_taken_in(installed):
    cluster = cluster_with(a=[THEIRS])
    assert cluster.do(create_domain=DOMAIN).code == Code.OK
    refused = cluster.register("b", level=LEVEL)
    assert refused.code == Code.FAILED_PRECONDITION
    assert "b does not have the protocol theirs of the domain d" in refused.message


def test_a_member_without_the_package_does_not_go_on(installed, monkeypatch):
    cluster = cluster_with(a=[THEIRS])
    assert cluster.do(create_domain=DOMAIN).code == Code.OK
    monkeypatch.undo()
    with pytest.raises(InvariantBroken, match=r"there is no protocol 'theirs'.*install its package"):
        cluster.group("g", domain="d", replicas=1)


def test_below_the_level_nothing_is_noted_and_the_leader_sees_to_it_later(installed):
    cluster = Cluster()
    cluster.register("a", level=LEVEL, protocols=[THEIRS])
    assert list(cluster.state.nodes["a"].protocols) == []
    heartbeat = HeartbeatRequest(name="a", incarnation=1, level=LEVEL, protocols=[THEIRS])
    duties = Reassignment(MembershipSettings())
    assert [about for about, _ in duties.duties(cluster.state, {"a": heartbeat}, 0.0)] == ["level"]
    early = cluster.do(note_protocols=NoteProtocols(node="a", incarnation=1, protocols=[THEIRS]))
    assert (early.code, str(INSTALLED_LEVEL) in early.message) == (Code.FAILED_PRECONDITION, True)
    cluster.raise_level(LEVEL)
    ((about, command),) = duties.duties(cluster.state, {"a": heartbeat}, 0.0)
    assert about == "protocols a"
    assert cluster.do(note_protocols=command.note_protocols).code == Code.OK
    assert list(cluster.state.nodes["a"].protocols) == [THEIRS]
    assert list(duties.duties(cluster.state, {"a": heartbeat}, 0.0)) == []
    assert cluster.do(create_domain=DOMAIN).code == Code.OK


def test_a_node_has_a_few_at_most():
    cluster = cluster_with(a=[])
    many = [f"p{number}" for number in range(PROTOCOLS_MAX + 1)]
    assert cluster.register("b", level=LEVEL, protocols=many).code == Code.INVALID_ARGUMENT
