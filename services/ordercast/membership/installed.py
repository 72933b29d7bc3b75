"""Protocols of installed packages: a domain can have one if all nodes have it.

Nodes say what they have when they register. So it is agreed who has what, and members come to the same answer
whatever is installed where they run. Whoever lacks a protocol that a domain has is not taken in.
"""

from collections.abc import Iterable, Mapping

from ordercast.core.errors import InvariantBroken
from ordercast.core.level import INSTALLED_LEVEL
from ordercast.core.protocol import Protocol
from ordercast.membership.names import check_name
from ordercast.membership.refusals import bad_argument, precondition
from ordercast.membership.settings import PROTOCOLS_MAX
from ordercast.protocols.catalogue import BUILT_IN, UnknownProtocol, named
from ordercast.v1.membership_pb2 import Domain, Node

HOW = "install its package wherever a process of the cluster runs, and start the process again"


def checked_protocols(protocols: Iterable[str], level: int) -> list[str]:
    """Sorted, each once; none in a cluster where some node would not note them."""
    found = sorted(set(protocols))
    if level < INSTALLED_LEVEL:
        return []
    if len(found) > PROTOCOLS_MAX:
        raise bad_argument(f"a node has at most {PROTOCOLS_MAX} protocols of installed packages")
    for name in found:
        check_name("protocol", name)
    return found


def everywhere(nodes: Mapping[str, Node]) -> list[str]:
    """Those that all nodes have."""
    return sorted(set.intersection(*(set(node.protocols) for node in nodes.values()))) if nodes else []


def check_all_have(protocol: str, nodes: Mapping[str, Node]) -> None:
    """Refuse one that some have and others lack. What nobody has is refused as unknown, elsewhere."""
    lacking = [name for name in sorted(nodes) if protocol not in nodes[name].protocols]
    if 0 < len(lacking) < len(nodes):
        raise precondition(f"{lacking[0]} does not have the protocol {protocol}: {HOW}")


def check_has_all(node: Node, domains: Mapping[str, Domain]) -> None:
    built_in = [protocol.name for protocol in BUILT_IN]
    for name in sorted(domains):
        protocol = domains[name].protocol
        if protocol not in built_in and protocol not in node.protocols:
            raise precondition(f"{node.name} does not have the protocol {protocol} of the domain {name}: {HOW}")


def installed_protocol(domain: Domain) -> Protocol:
    """A member that went on without it would come to another state than the others."""
    try:
        return named(domain.protocol)
    except UnknownProtocol as unknown:
        raise InvariantBroken(f"the domain {domain.name} cannot be had here: {unknown}; {HOW}") from None
