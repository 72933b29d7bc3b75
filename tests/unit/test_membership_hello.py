"""Which disks a membership node lets in under the name of another one."""

import pytest

from ordercast.membership.service import disk_to_remember
from ordercast.runtime.mesh import Unwelcome
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
