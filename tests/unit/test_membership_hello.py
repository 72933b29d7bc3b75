"""Whom a membership node lets in: which members, and which disks under the name of another one."""

from contextlib import closing

import pytest

from ordercast.membership.service import check_members, disk_to_remember, remember_members
from ordercast.runtime.storage.store import Storage, StorageError
from ordercast.runtime.transport.mesh import Unwelcome
from ordercast.v1.frame_pb2 import Hello


@pytest.mark.parametrize("mute", [True, False])
def test_the_first_disk_under_a_name_is_remembered_and_let_in_again(mute):
    hello = Hello(process="b", node_id=b"first", mute=mute)
    assert disk_to_remember(None, hello) == b"first"
    assert disk_to_remember(b"first", hello) == b"first"


def test_an_empty_disk_is_let_in_to_learn_and_takes_nobodys_place():
    assert disk_to_remember(b"first", Hello(process="b", node_id=b"second", mute=True)) == b"first"


def test_a_readmitted_disk_takes_the_place_of_the_one_before_which_is_refused_from_then_on():
    assert disk_to_remember(b"first", Hello(process="b", node_id=b"second", life=7)) == b"second"
    with pytest.raises(Unwelcome):
        disk_to_remember(b"second", Hello(process="b", node_id=b"first"))


def test_another_disk_that_votes_and_was_not_readmitted_is_refused():
    with pytest.raises(Unwelcome, match="another disk than before"):
        disk_to_remember(b"first", Hello(process="b", node_id=b"second"))


def test_a_stranger_is_refused_and_so_is_a_member_that_counts_others_among_the_members():
    check_members(("a", "b", "c"), Hello(process="b", members=("a", "b", "c")))
    with pytest.raises(Unwelcome, match="no membership node"):
        check_members(("a", "b", "c"), Hello(process="d", members=("a", "b", "c", "d", "e")))
    for members in (("a", "b"), ("a", "b", "c", "d", "e")):
        with pytest.raises(Unwelcome, match=r"takes a,b.* for the membership nodes; here they are a,b,c"):
            check_members(("a", "b", "c"), Hello(process="b", members=members))


def test_older_software_does_not_name_the_members():
    check_members(("a", "b", "c"), Hello(process="b"))


def test_a_disk_stays_with_the_members_it_began_with(tmp_path):
    for _ in range(2):
        with closing(Storage(tmp_path)) as storage:
            remember_members(storage, ("a", "b", "c"))
    with closing(Storage(tmp_path)) as storage:
        for other in (("a", "b"), ("a", "b", "d"), ("a", "b", "c", "d", "e")):
            with pytest.raises(StorageError, match=r"are a,b,c, and not a,b.*stay the same for good"):
                remember_members(storage, other)
        remember_members(storage, ("a", "b", "c"))
