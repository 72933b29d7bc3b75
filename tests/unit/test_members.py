"""Who is where in a group, as membership describes it."""

from hypothesis import given
from hypothesis import strategies as st

from ordercast.core.members import is_changing, learners_of
from ordercast.v1.membership_pb2 import Configuration, Group

NAMES = st.lists(st.sampled_from(["n1", "n2", "n3", "n4"]), unique=True)


@given(NAMES, NAMES, NAMES, NAMES, NAMES, st.none() | NAMES)
def test_a_member_is_changing_if_it_starts_or_copies_the_log(
    replicas, starting, lost, placement, leaving, following
):
    group = Group(replicas=replicas, starting=starting, lost=lost, placement=placement, leaving=leaving)
    if following is not None:
        group.next.CopyFrom(Configuration(replicas=following))
    for name in ("n1", "n2", "n3", "n4"):
        assert is_changing(group, name) == (name in (*group.starting, *learners_of(group)))
