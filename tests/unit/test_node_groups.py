"""What a process tells its machines, and membership, about groups that go and share their cells."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ordercast.core.machine import Event, GroupsClosed, GroupsRemoved, ViewChanged
from ordercast.runtime.process import domains, registration
from ordercast.runtime.process.directory import Directory
from ordercast.runtime.process.domains import Domains
from ordercast.runtime.process.registration import Registration
from ordercast.runtime.process.settings import TlsSettings
from ordercast.runtime.transport.tls import Credentials
from ordercast.v1.membership_pb2 import (
    GROUP_STATE_ACTIVE,
    GROUP_STATE_DELETED,
    GROUP_STATE_DELETING,
    Domain,
    Group,
    WatchResponse,
)

CELL = Group(name="cell-1", id="cell-1#1", domain="d", configuration=1, replicas=["n1"], revision=1)


def light(name: str, number: int, state: Any = GROUP_STATE_ACTIVE, revision: int = 2) -> Group:
    return Group(name=name, id=f"{name}#{number}", domain="d", state=state, cell=CELL.id, revision=revision)


class Keeping:
    """A machine that keeps something of these groups."""

    def __init__(self, *kept: str) -> None:
        self.kept = list(kept)

    def kept_groups(self) -> list[str]:
        return self.kept


class Host:
    """Notes what machines are told."""

    def __init__(self) -> None:
        self.told: list[Event] = []
        self.slots: dict[tuple[str, str], Any] = {}

    def add(self, domain: str, role: str, machine: Any) -> None:
        self.slots[domain, role] = SimpleNamespace(machine=machine)

    def start(self, domain: str, incarnation: int, news: list[Event]) -> None:
        self.told += news

    def tell_domain(self, domain: str, event: Event) -> None:
        assert domain == "d"
        self.told.append(event)

    async def caught_up(self) -> None:
        pass


class Process:
    """As much of a node as its domains need, around a real directory."""

    def __init__(self, *kept: str) -> None:
        self.name, self.incarnation = "n1", 4
        self.directory = Directory("n1", {"m": "m:1"}, Credentials(TlsSettings()))
        self.host = Host()
        self.settings = SimpleNamespace(services=["sequencer"])
        self.logs = SimpleNamespace(removed=lambda groups: None)
        self.mesh = SimpleNamespace(follow=lambda peers: None, connected=lambda: [])
        overlay, forget = lambda view, cells, incarnation: view, lambda cells: None
        self.disbelief = SimpleNamespace(overlay=overlay, forget_what_is_over=forget)
        self.clock = SimpleNamespace(read=lambda: (1.0, 2.0))
        self.services = [SimpleNamespace(machines=lambda domain: {"p": Keeping(*kept)}, changed=lambda: None)]
        self.domains = Domains(self)  # type: ignore[arg-type]

    def hear(self, revision: int, *groups: Group, **fields: Any) -> list[Event]:
        """What machines are told then."""
        self.host.told = []
        fields.setdefault("group_last", 9)
        self.directory._apply(WatchResponse(revision=revision, cluster_id=b"c", groups=groups, **fields))
        self.domains.follow()
        return self.host.told


def begun(*kept: str) -> Process:
    process = Process(*kept)
    process.hear(2, light("a", 2), light("b", 3), reset=True, domains=[Domain(name="d")], cells=[CELL])
    return process


def test_groups_that_come_are_no_news_for_machines():
    process = begun()
    assert process.hear(3, light("c", 4, revision=3)) == []
    (view,) = process.hear(4, cells=[Group(**{**fields_of(CELL), "revision": 4})])
    assert isinstance(view, ViewChanged)
    assert [group.group for group in view.view.groups] == ["cell-1#1"]


def fields_of(group: Group) -> dict[str, Any]:
    return {field.name: value for field, value in group.ListFields()}


def test_gateways_hear_the_address_of_a_group_that_is_being_deleted():
    process = begun()
    (closed,) = process.hear(3, light("a", 2, GROUP_STATE_DELETING, 3))
    assert isinstance(closed, GroupsClosed)
    assert closed.groups == ("cell-1#1/a#2",)


def test_machines_hear_that_a_group_is_gone():
    process = begun()
    process.hear(3, light("a", 2, GROUP_STATE_DELETING, 3))
    told = process.hear(4, light("a", 2, GROUP_STATE_DELETED, 4))
    assert [event.groups for event in told if isinstance(event, GroupsRemoved)] == [("cell-1#1/a#2",)]
    assert [event.groups for event in told if isinstance(event, GroupsClosed)] == [()]
    assert not [event for event in told if isinstance(event, ViewChanged)]


def test_what_machines_keep_of_groups_that_went_while_they_were_away_is_forgotten(monkeypatch):
    async def once(seconds: float) -> None:
        raise asyncio.CancelledError

    process = begun("cell-1#1/a#2", "cell-1#1/gone#5", "cell-1#1/new#10")
    process.host.told = []
    monkeypatch.setattr(domains.asyncio, "sleep", once)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(process.domains.forget_removed())
    (removed,) = process.host.told
    assert isinstance(removed, GroupsRemoved)
    assert removed.groups == ("cell-1#1/gone#5",), "nobody knows yet whether the last one is there"


def test_membership_hears_of_the_oldest_groups_first_which_machines_do_not_name(monkeypatch):
    monkeypatch.setattr(registration, "CLEAR_OF_MAX", 3)
    process = begun()
    going = [light(f"g{number}", number, GROUP_STATE_DELETING, 3) for number in (12, 9, 10, 11, 100)]
    process.hear(3, *going, group_last=200)
    asked = []

    class Naming:
        def mentions(self, group: str) -> bool:
            asked.append(group)
            return group == "cell-1#1/g10#10"

    assert Registration(process)._clear_of([Naming()]) == ["g9#9", "g11#11"]  # type: ignore[arg-type]
    assert asked == ["cell-1#1/g9#9", "cell-1#1/g10#10", "cell-1#1/g11#11"]
