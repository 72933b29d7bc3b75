"""Session tokens: only what the cluster signed is taken, and two tokens become one without the key."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.client.session_tokens import merge, parts_of
from ordercast.core import session_token
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import pack_u64
from ordercast.core.session_token import (
    MAC_BYTES,
    PART_BYTES,
    PARTS_MAX,
    SAME_TAG_MAX,
    SEEN_BYTES_MAX,
    TAG_BYTES,
    TOKEN_BYTES_MAX,
    tag_of,
    unread_parts_of,
)
from ordercast.core.session_token import token_of as token_bytes
from ordercast.protocols.catalogue import protocols
from tests.unit.clock_tokens import ClockTokens

#: Of a protocol that has no clock.
VECTORS = protocols()["isis"].seen
SEEN_MARK = VECTORS.mark

TOKENS = ClockTokens(b"key")
CLOCK = pack_u64(12345)
DOMAINS = [f"domain-{number}" for number in range(PARTS_MAX)]


def token_of(clocks: dict[str, int]) -> bytes:
    token = b""
    for domain, clock in clocks.items():
        token = merge(token, TOKENS.sign(domain, pack_u64(clock)))
    return token


#: What somebody may have seen: clocks by domain.
SEEN = st.dictionaries(st.sampled_from(DOMAINS), st.integers(1, 2**62), max_size=PARTS_MAX)


# --------------------------------------------------------------------------------------------------- verifying


def test_a_token_says_what_was_signed_at_any_gateway_with_the_key():
    token = TOKENS.sign("d", CLOCK)
    assert len(token) == PART_BYTES
    assert ClockTokens(b"key").verify("d", token) == CLOCK


@pytest.mark.parametrize("domain", ["e", "d2", "", "d\0"])
def test_a_token_of_one_domain_shows_nothing_in_another(domain):
    assert TOKENS.verify(domain, TOKENS.sign("d", CLOCK)) == b""


def test_a_part_with_another_domains_tag_is_forged():
    moved = tag_of("e") + TOKENS.sign("d", CLOCK)[TAG_BYTES:]
    with pytest.raises(RemoteProtocolError, match="not a session token"):
        TOKENS.verify("e", moved)


def test_a_token_of_another_cluster_is_refused():
    with pytest.raises(RemoteProtocolError, match="not a session token"):
        TOKENS.verify("d", ClockTokens(b"another").sign("d", CLOCK))


def test_no_bit_of_a_part_can_be_changed():
    """A part with another tag is another domain's: then nothing is shown."""
    token = TOKENS.sign("d", CLOCK)
    for bit in range(8 * len(token)):
        forged = bytearray(token)
        forged[bit // 8] ^= 1 << bit % 8
        if bit < 8 * TAG_BYTES:
            assert TOKENS.verify("d", bytes(forged)) == b""
        else:
            with pytest.raises(RemoteProtocolError, match="not a session token"):
                TOKENS.verify("d", bytes(forged))


def test_what_others_forged_for_their_domain_does_not_matter_in_ours():
    forged = merge(TOKENS.sign("d", CLOCK), tag_of("e") + bytes(PART_BYTES - TAG_BYTES))
    assert TOKENS.verify("d", forged) == CLOCK
    with pytest.raises(RemoteProtocolError):
        TOKENS.verify("e", forged)


def test_without_a_key_nothing_is_signed():
    with pytest.raises(ValueError, match="key"):
        ClockTokens(b"")


# ------------------------------------------------------------------------------------------------------- shape


@pytest.mark.parametrize("length", [1, TAG_BYTES, PART_BYTES - 1, PART_BYTES + 1, 2 * PART_BYTES - 1])
def test_a_token_of_another_length_is_refused(length):
    token = token_of({"d": 1, "e": 1, "f": 1})
    with pytest.raises(RemoteProtocolError, match="not a session token"):
        TOKENS.verify("d", token[:length])


def test_parts_that_are_not_in_order_or_twice_there_are_refused():
    token = token_of({"d": 1, "e": 1})
    first, second = token[:PART_BYTES], token[PART_BYTES:]
    for wrong in (second + first, first + first, first + second + second):
        with pytest.raises(RemoteProtocolError, match="not a session token"):
            parts_of(wrong)


def test_a_token_has_a_bound():
    full = token_of(dict.fromkeys(DOMAINS, 1))
    assert TOKENS.verify(DOMAINS[3], full) == pack_u64(1)
    one_more = token_bytes(
        sorted([*parts_of(full), *parts_of(TOKENS.sign("one more", CLOCK))], key=lambda part: part.tag)
    )
    with pytest.raises(RemoteProtocolError, match="not a session token"):
        TOKENS.verify(DOMAINS[3], one_more)
    with pytest.raises(RemoteProtocolError, match="at most 16 domains"):
        merge(full, TOKENS.sign("one more", CLOCK))


def marked(*rows: bytes) -> bytes:
    """In the layout of tokens that have more than clocks."""
    return b"\xc5" + b"".join(len(row).to_bytes(2, "big") + row for row in rows)


def forged_part(tag: bytes, seen: bytes) -> bytes:
    return tag + SEEN_MARK + seen + bytes(MAC_BYTES)


@pytest.mark.parametrize("size", [TOKEN_BYTES_MAX + 1, 2 << 20, (2 << 20) // PART_BYTES * PART_BYTES])
@pytest.mark.parametrize("token", [b"\xc5" + bytes([0, TAG_BYTES + MAC_BYTES]) + bytes(20), b"\0"])
def test_of_a_token_that_is_too_long_nothing_is_looked_at(token, size, monkeypatch):
    monkeypatch.setattr(session_token, "Part", None)
    with pytest.raises(RemoteProtocolError, match=f"{size} bytes; at most {TOKEN_BYTES_MAX}"):
        TOKENS.verify("d", (token * (size // len(token) + 1))[:size])


def test_a_token_with_the_longest_parts_is_taken():
    seen = bytes(SEEN_BYTES_MAX - len(SEEN_MARK))
    token = marked(*sorted(forged_part(tag_of(domain), seen) for domain in DOMAINS))
    assert len(token) == TOKEN_BYTES_MAX - 1
    assert len(unread_parts_of(token)) == PARTS_MAX


def test_parts_without_end_are_not_made():
    token = marked(*[forged_part(tag_of("d"), b"")] * (PARTS_MAX + 1))
    with pytest.raises(RemoteProtocolError, match="more than 16 domains"):
        TOKENS.verify("d", token)


def test_one_domain_has_a_few_parts():
    token = marked(*(forged_part(tag_of("d"), bytes([number])) for number in range(SAME_TAG_MAX + 1)))
    with pytest.raises(RemoteProtocolError, match="more than 4 parts for one domain"):
        TOKENS.verify("d", token)


class Unreadable:
    """A codec that must not be asked."""

    mark = SEEN_MARK

    def merged(self, seen):
        raise AssertionError("nobody signed that")


def test_what_was_seen_is_read_only_below_a_mac_of_the_cluster():
    token = marked(forged_part(tag_of("d"), b"anything"))
    with pytest.raises(RemoteProtocolError, match="not a session token of this cluster"):
        TOKENS.verify("d", token, Unreadable())


def test_what_a_protocol_has_signed_another_one_does_not_read():
    with pytest.raises(RemoteProtocolError, match="not a session token of this cluster"):
        TOKENS.verify("d", TOKENS.sign("d", CLOCK), VECTORS)
    with pytest.raises(RemoteProtocolError, match="not a session token of this cluster"):
        TOKENS.verify("d", TOKENS.sign("d", b"\x10\x07", VECTORS))


def test_who_has_seen_nothing_gets_no_token():
    assert TOKENS.sign("d", b"", VECTORS) == b""


@given(token=st.binary(max_size=PART_BYTES * 3))
def test_any_bytes_are_a_token_or_an_error(token):
    with contextlib.suppress(RemoteProtocolError):
        assert token_bytes(parts_of(token)) == token


# ----------------------------------------------------------------------------------------------------- merging


@given(one=SEEN, other=SEEN)
def test_two_tokens_become_one_with_the_higher_clock_of_each_domain(one, other):
    merged = merge(token_of(one), token_of(other))
    for domain in DOMAINS:
        clock = max(one.get(domain, 0), other.get(domain, 0))
        assert TOKENS.verify(domain, merged) == (pack_u64(clock) if clock else b"")
    assert merged == merge(token_of(other), token_of(one))
    assert merge(merged, token_of(one)) == merged


def test_a_token_merged_with_none_is_itself():
    token = TOKENS.sign("d", CLOCK)
    assert merge(token, b"") == merge(b"", token) == merge(token, token) == token


def test_a_form_that_is_not_known_here_is_passed_on_and_kept_beside_others():
    """A client may not have the package of a domain's protocol: only gateways have to read what it has seen."""

    class Foreign:
        mark = b"other 1:"

        def merged(self, seen):
            return b"+".join(sorted(seen))

    one, other = (TOKENS.sign("d", seen, Foreign()) for seen in (b"one", b"other"))
    both = merge(one, other)
    assert merge(both, one) == merge(other, one) == both
    assert TOKENS.verify("d", both, Foreign()) == b"one+other"
