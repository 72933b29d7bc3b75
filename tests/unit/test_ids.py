"""Ids and order keys: bytes that compare as the numbers in them."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core.ids import (
    ID_BYTES,
    KEY_BYTES,
    KEY_MIN,
    U64_MAX,
    counter_of,
    envelope_id,
    incarnation_of,
    last_key_of,
    order_key,
    pack_u64,
    short,
    sn_of,
    unpack_u64,
)

U64 = st.integers(0, U64_MAX)
#: Small numbers too, so that ties happen.
NUMBER = st.one_of(st.integers(0, 3), U64)
PLACE = st.tuples(NUMBER, NUMBER, NUMBER)


def key(sn: int, incarnation: int, counter: int) -> bytes:
    return order_key(sn, envelope_id(incarnation, counter))


@given(U64, U64)
def test_an_envelope_id_gives_back_its_incarnation_and_its_counter(incarnation, counter):
    id_ = envelope_id(incarnation, counter)
    assert len(id_) == ID_BYTES
    assert (incarnation_of(id_), counter_of(id_)) == (incarnation, counter)


@given(U64)
def test_a_number_gives_itself_back(number):
    assert len(pack_u64(number)) == 8
    assert unpack_u64(pack_u64(number)) == number


@pytest.mark.parametrize("number", [-1, U64_MAX + 1])
def test_a_number_that_does_not_fit_is_not_cut(number):
    with pytest.raises(struct.error):
        pack_u64(number)


@given(PLACE, PLACE)
def test_order_keys_compare_by_sn_then_incarnation_then_counter(one, other):
    assert (key(*one) < key(*other)) == (one < other)


@given(PLACE)
def test_an_order_key_tells_its_sn(where):
    assert len(key(*where)) == KEY_BYTES
    assert sn_of(key(*where)) == where[0]


@given(st.integers(0, U64_MAX - 1), U64, U64)
def test_the_last_key_of_an_sn_is_behind_its_every_envelope_and_before_the_next_sn(sn, incarnation, counter):
    assert key(sn, incarnation, counter) <= last_key_of(sn) < key(sn + 1, 0, 0)
    assert sn_of(last_key_of(sn)) == sn


@given(NUMBER, st.integers(1, U64_MAX), NUMBER)
def test_an_empty_log_has_reached_no_key_of_any_incarnation(sn, incarnation, counter):
    assert key(sn, incarnation, counter) > KEY_MIN


def test_people_read_an_id_as_incarnation_and_counter():
    assert short(envelope_id(7, 300)) == "7.300"
