"""Session tokens, signed and verified: a forged one would raise clocks without end.

The MAC is over domain and what was seen, under a key that all gateways of the cluster share. So a client can take
a token to any of them. A gateway looks only at the parts of the domain that a request is for, and reads what they
say only when it has checked the MAC.
"""

import hashlib
import hmac

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.session_token import MAC_BYTES, Part, seen_in, seen_part, tag_of, token_of, unread_parts_of
from ordercast.protocols.isis.times import merged
from ordercast.v1.isis_pb2 import Seen


class Tokens:
    def __init__(self, key: bytes) -> None:
        if not key:
            raise ValueError("without a key anybody could sign")
        self._key = key

    def sign(self, domain: str, seen: bytes) -> bytes:
        """A token of one part."""
        return token_of([Part(tag_of(domain), seen, self._mac(domain, seen))])

    def verify(self, domain: str, token: bytes) -> bytes:
        """What it says was seen in the domain, for the domain's machine: a clock, or a Seen; empty if nothing."""
        tag = tag_of(domain)
        parts = [part for part in unread_parts_of(token) if part.tag == tag]
        for part in parts:
            if not hmac.compare_digest(part.mac, self._mac(domain, part.seen)):
                raise RemoteProtocolError(f"not a session token of this cluster, for domain {domain!r}")
        if parts and parts[0].is_clock:
            return parts[0].seen
        return merged([seen_in(part.seen) for part in parts]).SerializeToString() if parts else b""

    def sign_seen(self, domain: str, seen: Seen) -> bytes:
        """Where domains have no clock."""
        return self.sign(domain, seen_part(seen))

    def _mac(self, domain: str, seen: bytes) -> bytes:
        return hmac.digest(self._key, domain.encode() + b"\0" + seen, hashlib.sha256)[:MAC_BYTES]
