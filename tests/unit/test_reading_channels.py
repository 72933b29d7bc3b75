"""A gateway reads from replicas over channels that it keeps, and dials anew when a replica is elsewhere."""

from types import SimpleNamespace

import pytest

from ordercast.gateway.reading import Reading
from ordercast.v1.membership_pb2 import Node as Member

NAME = "sequencer-0"


class Credentials:
    """Knows where processes are, as Kubernetes says, and what was dialled."""

    def __init__(self) -> None:
        self.addresses: dict[str, str] = {}
        self.dialled: list[str] = []

    def locate(self, address: str, process: str) -> str:
        return self.addresses.get(process, address)

    def dial_at(self, address: str, name: str, options: object) -> object:
        self.dialled.append(address)
        return object()


@pytest.fixture
def node() -> SimpleNamespace:
    members = {NAME: Member(name=NAME, peer_address="sequencer-0.pods:7410", incarnation=3)}
    directory = SimpleNamespace(nodes=members, cut_off=frozenset())
    return SimpleNamespace(name="gateway-0", directory=directory, credentials=Credentials())


def test_a_channel_is_kept_as_long_as_its_process_stays(node):
    reading = Reading(node)
    assert reading._channel(NAME) is reading._channel(NAME)
    assert node.credentials.dialled == ["sequencer-0.pods:7410"]


def test_a_process_that_moved_is_dialled_where_it_is_now(node):
    reading = Reading(node)
    node.credentials.addresses[NAME] = "10.0.0.1:7410"
    reading._channel(NAME)
    node.credentials.addresses[NAME] = "10.0.0.2:7410"
    reading._channel(NAME)
    assert node.credentials.dialled == ["10.0.0.1:7410", "10.0.0.2:7410"]


def test_a_process_that_was_started_again_is_dialled_anew(node):
    """DNS alone may say where it is: that is asked once for a channel."""
    reading = Reading(node)
    first = reading._channel(NAME)
    node.directory.nodes[NAME].incarnation = 4
    assert reading._channel(NAME) is not first
    assert node.credentials.dialled == ["sequencer-0.pods:7410"] * 2
