"""How a domain or a group is made that may be there already: what to call, without I/O.

A driver makes one call after the other, and says what came of it: the answer, or that the name is taken.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from ordercast.client.errors import AlreadyExists
from ordercast.v1.gateway_pb2 import (
    CreateDomainRequest,
    CreateGroupRequest,
    CreateGroupsRequest,
    ListDomainsRequest,
    ListGroupsRequest,
)
from ordercast.v1.membership_pb2 import GROUP_STATE_DELETING, Domain, Group, Retention

DOMAIN_DEFAULT = "default"
#: With `exist_ok`: a gateway hears a moment later of what another one made, and to delete a group takes a while.
LOOKS_MAX = 100
LOOK_S = 0.1
#: Groups that are made by one command.
CREATED_AT_ONCE = 256


class Call(NamedTuple):
    """What a driver is to call next, and how long it is to wait before it does."""

    method: str
    request: Any
    after_s: float = 0.0


T = TypeVar("T")
#: Ends with what was made, or is there. An answer that is `AlreadyExists` is sent, not thrown.
Calls = Generator[Call, Any, T]


def creation_of_domain(name: str, protocol: str | None, settings: Mapping[str, str] | None) -> CreateDomainRequest:
    """Without a protocol, the one that the domain of every cluster has."""
    if protocol is None:
        # Here, for most clients create no domain, and need not wait for it.
        from ordercast.protocols.catalogue import DEFAULT

        protocol = DEFAULT.name
    return CreateDomainRequest(name=name, protocol=protocol, settings=settings or {})


def creating_domain(request: CreateDomainRequest, *, exist_ok: bool) -> Calls[Domain]:
    def existing(answer: Any) -> Domain | None:
        return existing_domain(answer.domains, request)

    create, look = Call("CreateDomain", request), Call("ListDomains", ListDomainsRequest())
    return _creating(create, lambda answer: answer.domain, look if exist_ok else None, existing)


def creating_group(request: CreateGroupRequest, *, exist_ok: bool) -> Calls[Group]:
    def existing(answer: Any) -> Group | None:
        return existing_group(answer.groups, request)

    create, look = (
        Call("CreateGroup", request),
        Call("ListGroups", ListGroupsRequest(prefix=request.name, limit=1)),
    )
    return _creating(create, lambda answer: answer.group, look if exist_ok else None, existing)


def group_like(
    domain: str, replicas: int, retention: Retention | None, settings: Mapping[str, str] | None, beside: str
) -> CreateGroupRequest:
    """What groups that are made together have in common."""
    return CreateGroupRequest(
        domain=domain,
        replicas=replicas,
        retention=retention,
        settings=settings,
        beside=beside,
        shared=not beside,
    )


def creations(names: Iterable[str], like: CreateGroupRequest, *, exist_ok: bool) -> Iterator[CreateGroupsRequest]:
    """As many at a time as one command takes."""
    left = iter(names)
    while some := list(islice(left, CREATED_AT_ONCE)):
        yield CreateGroupsRequest(like=like, names=some, exist_ok=exist_ok)


def _creating(
    create: Call, made: Callable[[Any], T], look: Call | None, existing: Callable[[Any], T | None]
) -> Calls[T]:
    """Without a look, a name that is taken is an error at once."""
    answer = None
    for number in range(1 if look is None else LOOKS_MAX):
        if look is not None:
            there = existing((yield look._replace(after_s=LOOK_S if number else 0.0)))
            if there is not None:
                return there
        answer = yield create
        if not isinstance(answer, AlreadyExists):
            return made(answer)
    assert answer is not None
    raise answer


def existing_domain(domains: Iterable[Domain], wanted: CreateDomainRequest) -> Domain | None:
    """The domain of that name, as far as the gateway has heard."""
    found = next((domain for domain in domains if domain.name == wanted.name), None)
    if found is not None and found.protocol != wanted.protocol:
        raise AlreadyExists(f"there is a domain {found.name}, which is ordered by {found.protocol}")
    return found


def existing_group(groups: Iterable[Group], wanted: CreateGroupRequest) -> Group | None:
    """The group of that name, as far as the gateway has heard; not one that is being deleted."""
    found = next((group for group in groups if group.name == wanted.name), None)
    if found is None or found.state == GROUP_STATE_DELETING:
        return None
    is_anywhere = bool(wanted.beside) and not wanted.domain
    if not is_anywhere and found.domain != (wanted.domain or DOMAIN_DEFAULT):
        raise AlreadyExists(f"there is a group {found.name} in the domain {found.domain}")
    return found
