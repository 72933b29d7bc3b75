"""Session tokens, signed and verified: a forged one would raise clocks without end.

The MAC is over domain and what was seen, under a key that all gateways of the cluster share. So a client can take
a token to any of them. A gateway looks only at the parts of the domain that a request is for, and reads what they
say only when it has checked the MAC.
"""

import hashlib
import hmac
from functools import lru_cache

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.protocol import SeenCodec
from ordercast.core.session_token import MAC_BYTES, Part, tag_of, token_of, unread_parts_of

#: Tokens that were signed.
REMEMBERED = 256


class Tokens:
    def __init__(self, key: bytes) -> None:
        if not key:
            raise ValueError("without a key anybody could sign")
        self._key = key
        #: All receipts of an envelope have the same token, and what a client sends next shows it.
        self._signed = lru_cache(REMEMBERED)(self._sign)

    def sign(self, domain: str, seen: bytes, codec: SeenCodec) -> bytes:
        """A token of one part, for what the domain's protocol says was seen; none for nothing."""
        return self._signed(domain, codec.mark + seen) if seen else b""

    def _sign(self, domain: str, marked: bytes) -> bytes:
        return token_of([Part(tag_of(domain), marked, self._mac(domain, marked))])

    def verify(self, domain: str, token: bytes, codec: SeenCodec) -> bytes:
        """What it says was seen in the domain, for the domain's machine; empty if nothing."""
        tag = tag_of(domain)
        parts = [part for part in unread_parts_of(token) if part.tag == tag]
        for part in parts:
            is_ours = part.seen.startswith(codec.mark) and part.is_clock == (not codec.mark)
            if not is_ours or not hmac.compare_digest(part.mac, self._mac(domain, part.seen)):
                raise RemoteProtocolError(f"not a session token of this cluster, for domain {domain!r}")
        return codec.merged([part.seen[len(codec.mark) :] for part in parts]) if parts else b""

    def _mac(self, domain: str, seen: bytes) -> bytes:
        return hmac.digest(self._key, domain.encode() + b"\0" + seen, hashlib.sha256)[:MAC_BYTES]
