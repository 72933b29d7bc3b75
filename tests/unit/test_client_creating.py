"""What is called to make a domain or a group that may be there already."""

from typing import Any

import pytest

from ordercast.client.creating import LOOK_S, LOOKS_MAX, Calls, creating_domain, creating_group
from ordercast.client.errors import AlreadyExists
from ordercast.v1.gateway_pb2 import (
    CreateDomainRequest,
    CreateDomainResponse,
    CreateGroupRequest,
    CreateGroupResponse,
    ListDomainsResponse,
    ListGroupsResponse,
)
from ordercast.v1.membership_pb2 import GROUP_STATE_ACTIVE, GROUP_STATE_DELETING, Domain, Group

TAKEN = AlreadyExists("the name is taken")
A = Group(name="a", id="a#1", domain="default", state=GROUP_STATE_ACTIVE)
GOING = Group(name="a", id="a#1", domain="default", state=GROUP_STATE_DELETING)
NEW = Group(name="a", id="a#2", domain="default", state=GROUP_STATE_ACTIVE)


def groups(*there: Group) -> ListGroupsResponse:
    return ListGroupsResponse(groups=there)


class Driven:
    """Gives these answers, one after the other; remembers what was called, and after what time."""

    def __init__(self, calls: Calls[Any], *answers: Any) -> None:
        self.methods: list[str] = []
        self.waited_s: list[float] = []
        self.made: Any = None
        said = None
        for answer in (*answers, None):
            try:
                call = calls.send(said)
            except StopIteration as done:
                self.made = done.value
                return
            assert answer is not None, f"{call.method} has no answer"
            self.methods.append(call.method)
            self.waited_s.append(call.after_s)
            said = answer


def group(name: str = "a", *, exist_ok: bool = True, **fields: Any) -> Calls[Group]:
    return creating_group(CreateGroupRequest(name=name, **fields), exist_ok=exist_ok)


def domain(protocol: str = "scalatom", *, exist_ok: bool = True) -> Calls[Domain]:
    return creating_domain(CreateDomainRequest(name="d", protocol=protocol), exist_ok=exist_ok)


def test_what_is_there_is_not_looked_for_if_nobody_asks_for_it():
    driven = Driven(group(exist_ok=False), CreateGroupResponse(group=A))
    assert (driven.made, driven.methods) == (A, ["CreateGroup"])
    with pytest.raises(AlreadyExists):
        Driven(group(exist_ok=False), TAKEN)


def test_what_is_not_there_is_made_and_what_is_there_is_the_answer():
    driven = Driven(group(), groups(), CreateGroupResponse(group=A))
    assert (driven.made, driven.methods) == (A, ["ListGroups", "CreateGroup"])
    assert Driven(group(), groups(A)).made == A
    there = Domain(name="d", protocol="scalatom", settings={"gossip_s": "9"})
    driven = Driven(domain(), ListDomainsResponse(), CreateDomainResponse(domain=there))
    assert (driven.made, driven.methods) == (there, ["ListDomains", "CreateDomain"])
    assert Driven(domain(), ListDomainsResponse(domains=[there])).made == there


def test_a_name_that_is_taken_by_something_else_is_an_error():
    with pytest.raises(AlreadyExists, match="in the domain default"):
        Driven(group(domain="d"), groups(A))
    with pytest.raises(AlreadyExists, match="ordered by scalatom"):
        Driven(domain("isis"), ListDomainsResponse(domains=[Domain(name="d", protocol="scalatom")]))


def test_a_gateway_that_has_not_heard_of_it_yet_is_asked_again_a_moment_later():
    driven = Driven(group(), groups(), TAKEN, groups(), TAKEN, groups(A))
    assert driven.made == A
    assert driven.waited_s == [0.0, 0.0, LOOK_S, 0.0, LOOK_S]


def test_a_group_that_is_being_deleted_is_made_anew_when_it_is_gone():
    assert Driven(group(), groups(GOING), TAKEN, groups(), CreateGroupResponse(group=NEW)).made == NEW


def test_the_last_look_ends_it():
    with pytest.raises(AlreadyExists):
        Driven(group(), *(answer for _ in range(LOOKS_MAX) for answer in (groups(GOING), TAKEN)))
