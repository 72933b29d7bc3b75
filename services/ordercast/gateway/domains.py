"""What gateways know of a domain beside its groups."""

from ordercast.core.protocol import Protocol
from ordercast.protocols.catalogue import named
from ordercast.runtime.process.node import Node


def protocol_of_domain(node: Node, domain: str) -> Protocol:
    """Of a domain that somebody has a group of: domains come with their groups, and stay."""
    return named(node.directory.domains[domain].protocol)
