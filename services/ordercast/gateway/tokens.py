"""Session tokens: what a client has seen, signed, for a forged one would raise clocks without end.

A token is the domain's clock and a MAC over domain and clock, under a key that all gateways of the cluster share.
So a client can take it to any of them.
"""

import hashlib
import hmac

from ordercast.core.errors import RemoteProtocolError

CLOCK_BYTES = 8
MAC_BYTES = 16


class Tokens:
    def __init__(self, key: bytes) -> None:
        if not key:
            raise ValueError("without a key anybody could sign")
        self._key = key

    def sign(self, domain: str, clock: bytes) -> bytes:
        assert len(clock) == CLOCK_BYTES
        return clock + self._mac(domain, clock)

    def verify(self, domain: str, token: bytes) -> bytes:
        """The clock in it."""
        clock, mac = token[:CLOCK_BYTES], token[CLOCK_BYTES:]
        if len(token) != CLOCK_BYTES + MAC_BYTES or not hmac.compare_digest(mac, self._mac(domain, clock)):
            raise RemoteProtocolError("not a session token of this domain")
        return clock

    def _mac(self, domain: str, clock: bytes) -> bytes:
        return hmac.digest(self._key, domain.encode() + b"\0" + clock, hashlib.sha256)[:MAC_BYTES]
