"""Session tokens, signed and verified: a forged one would raise clocks without end.

The MAC is over domain and clock, under a key that all gateways of the cluster share. So a client can take a token
to any of them. A gateway looks only at the part of the domain that a request is for.
"""

import hashlib
import hmac

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.session_token import CLOCK_BYTES, MAC_BYTES, TAG_BYTES, parts_of, tag_of


class Tokens:
    def __init__(self, key: bytes) -> None:
        if not key:
            raise ValueError("without a key anybody could sign")
        self._key = key

    def sign(self, domain: str, clock: bytes) -> bytes:
        """A token of one part."""
        assert len(clock) == CLOCK_BYTES
        return tag_of(domain) + clock + self._mac(domain, clock)

    def verify(self, domain: str, token: bytes) -> bytes:
        """The domain's clock in it; empty if it has none."""
        part = parts_of(token).get(tag_of(domain))
        if part is None:
            return b""
        clock, mac = part[TAG_BYTES:-MAC_BYTES], part[-MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(domain, clock)):
            raise RemoteProtocolError(f"not a session token of this cluster, for domain {domain!r}")
        return clock

    def _mac(self, domain: str, clock: bytes) -> bytes:
        return hmac.digest(self._key, domain.encode() + b"\0" + clock, hashlib.sha256)[:MAC_BYTES]
