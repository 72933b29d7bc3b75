"""Session tokens of domains whose protocol has a clock: most tests are about those."""

from ordercast.core.protocol import SeenCodec
from ordercast.gateway.tokens import Tokens
from ordercast.protocols.catalogue import DEFAULT


class ClockTokens(Tokens):
    def sign(self, domain: str, seen: bytes, codec: SeenCodec = DEFAULT.seen) -> bytes:
        return super().sign(domain, seen, codec)

    def verify(self, domain: str, token: bytes, codec: SeenCodec = DEFAULT.seen) -> bytes:
        return super().verify(domain, token, codec)
