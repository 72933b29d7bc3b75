"""Who a client is: an identity, or else an address, or a connection where turns are taken."""

import pytest

from ordercast.gateway.callers import caller_of
from ordercast.runtime.transport.tls import peer_address
from tests.unit.gateway_calls import context_of


@pytest.mark.parametrize(
    ("peer", "address"),
    [("ipv4:10.0.0.1:5", "10.0.0.1"), ("ipv6:%5B::1%5D:50", "::1"), ("ipv6:[fe80::2]:7", "fe80::2")],
)
def test_an_address_is_where_a_call_comes_from_without_the_port(peer, address):
    assert peer_address(context_of(peer)) == address


@pytest.mark.parametrize(
    ("peer", "owner"),
    [
        ("ipv4:10.0.0.1:5000", "address 10.0.0.1/32"),
        ("ipv4:10.0.0.1:6000", "address 10.0.0.1/32"),
        ("ipv4:10.0.0.2:5000", "address 10.0.0.2/32"),
        ("ipv6:%5B2001:db8::1%5D:5000", "address 2001:db8::/64"),
        ("ipv6:%5B2001:db8::2%5D:6000", "address 2001:db8::/64"),
        ("ipv6:%5B2001:db9::1%5D:5000", "address 2001:db9::/64"),
        ("ipv6:%5Bfe80::1%25eth0%5D:5000", "address fe80::/64"),
        ("ipv6:%5B::ffff:10.0.0.1%5D:5000", "address 10.0.0.1/32"),
        ("unix:/tmp/socket", "peer unix:/tmp/socket"),
    ],
)
def test_without_a_certificate_a_client_is_an_address_or_the_network_that_one_host_is_given(peer, owner):
    assert caller_of(context_of(peer)).owner == owner


def test_with_a_certificate_a_client_is_who_it_names_wherever_it_comes_from():
    here, there = (caller_of(context_of(f"ipv4:10.0.0.{host}:5000", "anna")) for host in (1, 2))
    assert here == there
    assert here.identity == "anna"
    assert (
        caller_of(context_of("ipv4:10.0.0.2:1", "10.0.0.1")).owner
        != caller_of(context_of("ipv4:10.0.0.1:1")).owner
    )


def test_turns_are_taken_by_connection_or_by_identity():
    callers = [caller_of(context_of(f"ipv4:10.0.0.1:{port}", name)) for port in (1, 2) for name in (None, "anna")]
    assert len({caller.turn for caller in callers}) == 3


def test_a_label_tells_owners_apart_and_does_not_say_who_they_are():
    one, same, other = (
        caller_of(context_of(f"ipv4:10.0.0.{host}:{port}")) for host, port in ((1, 1), (1, 2), (2, 1))
    )
    assert one.label == same.label != other.label
    assert "10.0.0.1" not in one.label
