"""A proposer while groups change their configurations: votes and values count within one."""

from typing import Any

import pytest

from ordercast.core.ids import envelope_id
from ordercast.core.machine import Decided, Effect, InstanceClosed, Propose, TimerFired
from ordercast.core.view import OtherConfiguration
from ordercast.protocols.paxos.acceptor import Acceptor
from ordercast.protocols.paxos.handover import TIMER as VOTES_TIMER
from ordercast.protocols.paxos.proposer import Proposer, ProposerSettings
from ordercast.v1.common_pb2 import Destination
from ordercast.v1.consensus_pb2 import Accept, Accepted, Closed, Prepare, Promise, Rejected, Round
from tests.unit.driving import (
    LIVES,
    Driven,
    destinations,
    edited,
    handed,
    next_view,
    sends,
    sent,
    talk,
    view_of,
    without_previous,
)

VIEW = view_of({"a": "n1 n2", "b": "n2 n7"}, acceptors={"a": "n1 n2 n3", "b": "n3 n4 n5"})
#: n6 comes for n3 in a.
SECOND = next_view(VIEW, "a", "n1 n2", "n1 n2 n6")
INSTANCE = envelope_id(21, 5)
RETRY_S = ProposerSettings().retry_s


class Host(Driven):
    def __init__(self) -> None:
        super().__init__("n2", lambda: Proposer("n2", "client"), VIEW)

    def propose(
        self, value: bytes | None, *configurations: int, groups: tuple[str, ...] = ("a", "b"), owner: str = "n2"
    ) -> list[Effect]:
        numbers = configurations or (1,) * len(groups)
        number = LIVES[owner] if owner else 0
        effects: list[Effect] = self.machine.step(
            Propose(self.now, 0.0, INSTANCE, groups, numbers, value, number, 0)
        )
        return effects

    def promise(self, number: int, *sources: str, **fields: Any) -> list[Effect]:
        effects: list[Effect] = []
        for source in sources:
            effects += self.receive(source, Promise(instance=INSTANCE, round=mine(number), **fields))
        return effects

    def accepted(self, number: int, *sources: str) -> list[Effect]:
        effects: list[Effect] = []
        for source in sources:
            effects += self.receive(source, Accepted(instance=INSTANCE, round=mine(number)))
        return effects


def mine(number: int) -> Round:
    return Round(number=number, owner=LIVES["n2"])


#: What the groups are in by now.
GROUPS = [Destination(group="a", configuration=2), *destinations("b")]


def test_without_an_owner_even_the_coordinator_begins_with_phase_one():
    """As when the envelope names an earlier configuration: there may be votes from there."""
    effects = Host().propose(b"x", owner="")
    assert sent(effects, Accept) == []
    assert [prepare.round for prepare in sent(effects, Prepare)] == [mine(1)]


def test_where_a_group_changes_it_begins_again_with_phase_one_and_without_its_value():
    host = Host()
    host.propose(b"x")
    effects = host.change(SECOND)
    assert sent(effects, Accept) == []
    assert sends(effects, Prepare) == [
        (["n1", "n2", "n3", "n4", "n5", "n6"], Prepare(instance=INSTANCE, round=mine(1), groups=GROUPS))
    ]
    assert sent(host.promise(1, "n1", "n2", "n3", "n4"), Accept) == [], "its value rested on stamps from before"


def test_the_client_gives_the_value_anew():
    host = Host()
    host.propose(b"x")
    host.change(SECOND)
    host.promise(1, "n1", "n2", "n3", "n4")
    assert host.propose(b"late") == [], "made in the configuration before"
    (accept,) = sent(host.propose(b"new", 2, 1, owner=""), Accept)
    assert (accept.value, accept.round, list(accept.groups)) == (b"new", mine(1), GROUPS)


def test_a_value_that_comes_before_the_promises_is_proposed_with_them():
    host = Host()
    host.propose(b"x")
    host.change(SECOND)
    assert host.propose(b"new", 2, 1, owner="") == []
    assert [accept.value for accept in sent(host.promise(1, "n1", "n2", "n3", "n4"), Accept)] == [b"new"]


def test_votes_from_before_are_adopted():
    host = Host()
    host.propose(b"x")
    host.change(SECOND)
    host.promise(1, "n1", "n3", "n4")
    effects = host.promise(1, "n6", voted_round=Round(number=0, owner=LIVES["n1"]), voted_value=b"theirs")
    assert [accept.value for accept in sent(effects, Accept)] == [b"theirs"]


def test_votes_are_counted_within_one_configuration():
    host = Host()
    host.propose(b"x")
    assert handed(host.accepted(0, "n1", "n3", "n4"), Decided), "as ever, if nothing changes"
    host = Host()
    host.propose(b"x")
    host.accepted(0, "n1", "n3")
    host.change(SECOND)
    assert host.accepted(0, "n2", "n4", "n5") == [], "of a round that it has left"
    assert host.promise(0, "n1", "n2", "n3", "n4") == []


def test_promises_are_counted_within_one_configuration():
    host = Host()
    host.propose(b"x", owner="n1")
    host.promise(1, "n1", "n3")
    effects = host.change(SECOND)
    assert [prepare.round for prepare in sent(effects, Prepare)] == [mine(2)]
    host.propose(b"new", 2, 1, owner="")
    assert host.promise(1, "n2", "n4") == []
    assert host.promise(2, "n3", "n4", "n1") == [], "n3 is in b alone by now"
    assert sent(host.promise(2, "n6"), Accept)


@pytest.mark.parametrize("message", [Promise, Accepted, Rejected, Closed])
def test_who_is_an_acceptor_no_more_is_not_heard_and_not_blamed(message):
    host = Host()
    host.propose(b"x", 1, groups=("a",))
    host.change(SECOND)
    with pytest.raises(OtherConfiguration):
        host.receive("n3", message(instance=INSTANCE))
    assert host.machine.buffers() == {"attempts": 1}


def test_who_waits_for_a_value_or_after_a_duel_begins_again_too():
    host = Host()
    host.propose(None)
    host.promise(1, "n1", "n3", "n4")
    assert [prepare.round for prepare in sent(host.change(SECOND), Prepare)] == [mine(2)]
    host = Host()
    host.propose(b"x")
    host.receive("n1", Rejected(instance=INSTANCE, promised=Round(number=7, owner=LIVES["n1"])))
    assert [prepare.round for prepare in sent(host.change(SECOND), Prepare)] == [mine(8)]


def test_what_is_over_stays_over():
    host = Host()
    host.propose(b"x")
    host.accepted(0, "n1", "n3", "n4")
    assert host.change(SECOND) == []
    assert [decided.value for decided in handed(host.propose(b"y", 2, 1), Decided)] == [b"x"]
    host = Host()
    host.propose(b"x")
    host.receive("n1", Closed(instance=INSTANCE))
    assert host.change(SECOND) == []
    assert handed(host.propose(b"y", 2, 1), InstanceClosed)


def test_a_view_that_changes_nothing_of_its_groups_does_not_disturb_it():
    host = Host()
    host.propose(b"x")
    host.accepted(0, "n1", "n3")
    for view in (edited(VIEW, "a", learners="n6"), edited(VIEW, "b", lost="n7")):
        assert host.change(view) == []
    assert handed(host.accepted(0, "n4"), Decided)


def test_that_the_configuration_before_is_over_does_not_disturb_it():
    host = Host()
    host.change(SECOND)
    host.propose(b"x", 2, 1)
    assert host.change(without_previous(SECOND, "a", "n6")) == []
    assert handed(host.accepted(0, "n1", "n2", "n3", "n4"), Decided)


@pytest.mark.parametrize("configurations", [(2, 1), (1, 2), (0, 1)])
def test_a_proposal_in_other_configurations_than_the_view_has_waits_for_being_made_again(configurations):
    host = Host()
    assert host.propose(b"x", *configurations) == []
    assert host.machine.buffers() == {"attempts": 0}
    assert sent(host.propose(b"x"), Accept)


def test_where_one_group_is_gone_and_another_changes_those_that_are_left_are_asked():
    host = Host()
    host.propose(b"x")
    without_b = next_view(view_of({"a": "n1 n2"}, acceptors={"a": "n1 n2 n3"}), "a", "n1 n2", "n1 n2 n6")
    ((to, prepare),) = sends(host.change(without_b), Prepare)
    assert (to, list(prepare.groups)) == (["n1", "n2", "n6"], GROUPS[:1])


def test_those_who_do_not_answer_are_asked_again_in_the_new_configuration():
    host = Host()
    host.propose(b"x")
    host.change(SECOND)
    host.promise(1, "n6")
    ((to, prepare),) = sends(host.tick(10 * RETRY_S), Prepare)
    assert (to, list(prepare.groups)) == (["n1", "n2", "n3", "n4", "n5"], GROUPS)


# -------------------------------------------------------------------------------------------------- with acceptors


@pytest.mark.parametrize("silent", ["n1", "n2", "n3"])
def test_what_was_chosen_before_is_what_is_decided_after(silent):
    """n1 has x voted for by n1 and n2 in round 0, and dies. Its group changes; n2 proposes what it has by then."""
    view = view_of({"a": "n1 n2"}, acceptors={"a": "n1 n2 n3"})
    second = next_view(view, "a", "n1 n2", "n1 n2 n6")
    acceptors = {name: Driven(name, lambda name=name: Acceptor(name), view) for name in ("n1", "n2", "n3", "n6")}
    accept = Accept(
        instance=INSTANCE, round=Round(number=0, owner=LIVES["n1"]), value=b"x", groups=destinations("a")
    )
    for name in ("n1", "n2"):
        acceptors[name].receive("n1", accept)
    del acceptors[silent]
    for name, acceptor in acceptors.items():
        talk(acceptors, name, acceptor.change(second))
    for name, acceptor in acceptors.items():
        talk(acceptors, name, acceptor.step(TimerFired, VOTES_TIMER, 0))
    host = Host()
    host.change(second)
    decided: list[bytes] = []
    pending = host.propose(b"y", 2, groups=("a",), owner="")
    while pending:
        answers: list[Effect] = []
        for to, message in [*sends(pending, Prepare), *sends(pending, Accept)]:
            for name in to:
                if name in acceptors and acceptors[name].machine.started.get("a") == 2:
                    for _, answer in sends(acceptors[name].receive("n2", message), object):
                        answers += host.receive(name, answer)
        decided += [event.value for event in handed(answers, Decided)]
        pending = answers
    assert decided == [b"x"]
