"""Who a client is: for what is shared out among clients, and for whose turn it is.

It is an identity, where certificates name one. Otherwise what there is only so much of is shared out by address:
whoever has no certificate can open as many connections as it likes, but not come from as many addresses. Clients
behind one proxy share it. Turns are taken by connection: there they need not wait for each other.
"""

import hashlib
import ipaddress
from typing import Any, NamedTuple

from ordercast.runtime.transport.tls import client_identity, peer_address


class Caller(NamedTuple):
    """The client of a call."""

    #: As its certificate has it.
    identity: str | None
    #: Who shares what is there for each client. In words, since it is told to whom it concerns.
    owner: str
    #: Whose requests take turns with those of others.
    turn: str

    @property
    def label(self) -> str:
        """The owner, as others may know it: it goes into logs of groups, which keep no identities."""
        return hashlib.blake2b(self.owner.encode(), digest_size=8).hexdigest()


def caller_of(context: Any) -> Caller:
    identity = client_identity(context)
    if identity is not None:
        who = f"identity {identity}"
        return Caller(identity, who, who)
    return Caller(None, _origin_of(context), f"connection {context.peer()}")


def _origin_of(context: Any) -> str:
    """Of an IPv6 address a network of 64 bits counts, since that is what one host is given."""
    try:
        address = ipaddress.ip_address(peer_address(context).partition("%")[0])
    except ValueError:
        return f"peer {context.peer()}"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped  # as a socket for both versions has it
    return f"address {ipaddress.ip_network((address, 64 if address.version == 6 else 32), strict=False)}"
