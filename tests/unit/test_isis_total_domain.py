"""ABCASTs to several groups could wait for each other in a circle: a total domain refuses them everywhere."""

from functools import partial

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import Receive, Start, ViewChanged
from ordercast.core.submission import Submission
from ordercast.gateway.machine import Gateway
from ordercast.protocols.isis.machine import Isis
from ordercast.protocols.isis.settings import Ordering, Settings
from ordercast.protocols.isis.submission import IsisSubmission
from ordercast.v1.isis_pb2 import Submit
from ordercast.v1.membership_pb2 import DomainView, GroupView
from tests.unit.driving import LIVES, envelope_of


def test_the_gateway_refuses_several_groups_and_says_why():
    def submission(ordering: Ordering) -> Submission:
        return Gateway("g1", partial(IsisSubmission, settings=Settings(ordering=ordering))).submission

    total = submission(Ordering.TOTAL)
    wrong = total.wrong_with(("a", "b"))
    assert "no total order over several" in wrong
    assert total.wrong_with(("a",)) == ""
    assert submission(Ordering.CAUSAL).wrong_with(("a", "b")) == ""


def test_a_member_casts_nothing_of_what_a_gateway_should_have_refused():
    machine = Isis("n1")
    groups = [
        GroupView(group=name, configuration=1, replicas=["n1"], incarnations=[LIVES["n1"]]) for name in ("a", "b")
    ]
    machine.step(Start(0.0, 0.0, LIVES["n1"], []))
    machine.step(ViewChanged(0.0, 0.0, DomainView(domain="d", number=1, groups=groups)))
    submit = Submit(group="a", envelope=envelope_of(0, "a", "b"), total=True, stream=1, index=1)
    with pytest.raises(RemoteProtocolError, match="no total order"):
        machine.step(Receive(1.0, 0.0, "g1", 1, submit))
    assert machine.mentions("a") is machine.mentions("b") is False
