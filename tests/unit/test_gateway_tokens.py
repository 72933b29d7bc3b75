"""Session tokens: only what the cluster signed, for this domain, is taken."""

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import pack_u64
from ordercast.gateway.tokens import CLOCK_BYTES, MAC_BYTES, Tokens

CLOCK = pack_u64(12345)


def test_a_token_says_what_was_signed_at_any_gateway_with_the_key():
    token = Tokens(b"key").sign("d", CLOCK)
    assert len(token) == CLOCK_BYTES + MAC_BYTES
    assert Tokens(b"key").verify("d", token) == CLOCK


@pytest.mark.parametrize("domain", ["e", "d2", "", "d\0"])
def test_a_token_of_one_domain_is_none_of_another(domain):
    tokens = Tokens(b"key")
    with pytest.raises(RemoteProtocolError):
        tokens.verify(domain, tokens.sign("d", CLOCK))


def test_a_token_of_another_cluster_is_refused():
    with pytest.raises(RemoteProtocolError):
        Tokens(b"key").verify("d", Tokens(b"another").sign("d", CLOCK))


def test_no_bit_of_a_token_can_be_changed():
    tokens = Tokens(b"key")
    token = tokens.sign("d", CLOCK)
    for bit in range(8 * len(token)):
        forged = bytearray(token)
        forged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(RemoteProtocolError):
            tokens.verify("d", bytes(forged))


@pytest.mark.parametrize("length", [0, 1, CLOCK_BYTES, CLOCK_BYTES + MAC_BYTES - 1, CLOCK_BYTES + MAC_BYTES + 1])
def test_a_token_of_another_length_is_refused(length):
    tokens = Tokens(b"key")
    with pytest.raises(RemoteProtocolError):
        tokens.verify("d", (tokens.sign("d", CLOCK) * 2)[:length])


def test_without_a_key_nothing_is_signed():
    with pytest.raises(ValueError, match="key"):
        Tokens(b"")
