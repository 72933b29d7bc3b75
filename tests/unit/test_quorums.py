"""Quorums: any two of them meet, in every group that they share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core.quorums import has_majority, majority, qualified_majority

PROCESSES = [f"n{i}" for i in range(6)]
VOTERS = st.sets(st.sampled_from(PROCESSES), min_size=2)
MEMBERS = st.lists(st.sampled_from(PROCESSES), min_size=1, max_size=5, unique=True)


@pytest.mark.parametrize(("size", "count"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4)])
def test_a_majority_is_more_than_half(size, count):
    assert majority(size) == count


def test_half_a_group_is_no_majority():
    assert not has_majority(("n1", "n2", "n3", "n4"), {"n1", "n2"})
    assert has_majority(("n1", "n2", "n3", "n4"), {"n1", "n2", "n4"})


def test_strangers_do_not_count():
    assert not has_majority(("n1", "n2", "n3"), {"n1", "n4", "n5", "n6"})


def test_a_qualified_majority_has_a_majority_of_every_group():
    a, b = ("n1", "n2", "n3"), ("n4", "n5", "n6")
    assert not qualified_majority((a, b), {"n1", "n2", "n3", "n4"}), "four of six, but one of b"
    assert qualified_majority((a, b), {"n1", "n3", "n4", "n5"})


def test_a_process_of_two_groups_counts_in_both():
    a, b = ("n1", "n2", "n3"), ("n2", "n3", "n4")
    assert qualified_majority((a, b), {"n2", "n3"})
    assert not qualified_majority((a, b), {"n1", "n2"})


@given(st.lists(MEMBERS, min_size=1, max_size=3), MEMBERS, VOTERS, VOTERS)
def test_two_qualified_majorities_meet_in_every_group_they_share(groups, shared, one, other):
    both = qualified_majority((*groups, shared), one) and qualified_majority((shared,), other)
    assert not both or one & other & set(shared)


@given(MEMBERS, VOTERS, VOTERS)
def test_more_voters_never_make_less_of_a_majority(members, some, more):
    assert not has_majority(members, some) or has_majority(members, some | more)
