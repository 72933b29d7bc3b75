"""The parallel log of a cell: promises and votes, a leader's phase 1, and what learners count."""

import pytest

from ordercast.core.errors import InvariantBroken
from ordercast.protocols.paxos.parallel.acceptor import LogAcceptor
from ordercast.protocols.paxos.parallel.ballots import Ballot
from ordercast.protocols.paxos.parallel.leader import NOTHING, LogLeader
from ordercast.protocols.paxos.parallel.learner import AHEAD_MAX, LogLearner

ABC = ("n1", "n2", "n3")
LOW: Ballot = (1, 11)
HIGH: Ballot = (1, 12)


def restarted(acceptor: LogAcceptor) -> LogAcceptor:
    """With all that it has changed on disk, and nothing else."""
    disk: dict[bytes, bytes] = {}
    for key, value in acceptor.take_changes():
        if value is None:
            disk.pop(key, None)
        else:
            disk[key] = value
    again = LogAcceptor(acceptor.group)
    for key, value in disk.items():
        again.load(key, value)
    return again


# ----------------------------------------------------------------------------------------------- the acceptor


def test_a_promise_holds_for_every_instance() -> None:
    acceptor = LogAcceptor("a")
    assert acceptor.prepare(HIGH, 0) == []
    assert not acceptor.accept(LOW, 7, b"x")
    assert acceptor.prepare(LOW, 0) is None
    assert acceptor.accept(HIGH, 7, b"x")


def test_a_vote_is_a_promise_too() -> None:
    acceptor = LogAcceptor("a")
    assert acceptor.accept(HIGH, 0, b"x")
    assert acceptor.prepare(LOW, 0) is None


def test_a_promise_reports_the_votes_from_where_it_was_asked() -> None:
    acceptor = LogAcceptor("a")
    for instance in range(4):
        acceptor.accept(LOW, instance, b"x%d" % instance)
    votes = acceptor.prepare(HIGH, 2)
    assert votes is not None
    assert [(instance, vote.value) for instance, vote in votes] == [(2, b"x2"), (3, b"x3")]


def test_promises_and_votes_survive_a_restart() -> None:
    acceptor = LogAcceptor("a")
    acceptor.accept(LOW, 3, b"x")
    acceptor.prepare(HIGH, 0)
    again = restarted(acceptor)
    assert again.prepare(LOW, 0) is None
    votes = again.prepare((2, 13), 0)
    assert votes is not None
    assert [(instance, vote.ballot, vote.value) for instance, vote in votes] == [(3, LOW, b"x")]


def test_below_what_is_forgotten_an_acceptor_says_nothing_also_after_a_restart() -> None:
    acceptor = LogAcceptor("a")
    for instance in range(4):
        acceptor.accept(LOW, instance, b"x")
    acceptor.forget(2)
    for one in (acceptor, restarted(acceptor)):
        assert one.prepare(HIGH, 1) is None
        assert not one.accept(HIGH, 1, b"y")
        assert sorted(one.votes) == [2, 3]


def test_two_values_in_one_ballot_are_a_broken_leader() -> None:
    acceptor = LogAcceptor("a")
    acceptor.accept(LOW, 0, b"x")
    with pytest.raises(InvariantBroken):
        acceptor.accept(LOW, 0, b"y")


# ------------------------------------------------------------------------------------------------- the leader


def test_a_leader_proposes_the_vote_of_the_highest_ballot_and_nothing_where_nobody_voted() -> None:
    leader = LogLeader()
    leader.prepare((2, 13), 4, 0.0)
    assert not leader.promised("n1", [(4, LOW, b"old"), (6, LOW, b"six")], ABC)
    assert leader.promised("n2", [(4, HIGH, b"new")], ABC)
    leader.begin(0.0)
    assert {k: p.value for k, p in leader.proposals.items()} == {4: b"new", 5: NOTHING, 6: b"six"}
    assert leader.propose(b"next", 0.0) == 7


def test_a_leader_counts_each_promise_once_and_none_of_strangers() -> None:
    leader = LogLeader()
    leader.prepare((2, 13), 0, 0.0)
    assert not leader.promised("n1", [], ABC)
    assert not leader.promised("n1", [], ABC)
    assert not leader.promised("n9", [], ABC)
    assert leader.promised("n3", [], ABC)


def test_what_is_applied_is_proposed_no_more_and_who_gave_up_proposes_nothing() -> None:
    leader = LogLeader()
    leader.prepare((2, 13), 0, 0.0)
    leader.promised("n1", [], ABC)
    leader.promised("n2", [], ABC)
    leader.begin(0.0)
    for value in (b"x", b"y"):
        leader.propose(value, 0.0)
    leader.applied(1)
    assert list(leader.proposals) == [1]
    leader.give_up()
    assert not leader.is_leading
    assert not leader.proposals


# ------------------------------------------------------------------------------------------------- the learner


def votes(learner: LogLearner, instance: int, *voters: str, ballot: Ballot = LOW, value: bytes = b"x") -> None:
    for voter in voters:
        learner.vote(voter, 1, ballot, instance, value)


def test_a_majority_in_one_ballot_decides() -> None:
    learner = LogLearner()
    votes(learner, 0, "n1")
    assert learner.decision(1, ABC) is None
    votes(learner, 0, "n3")
    assert learner.decision(1, ABC) == b"x"


def test_votes_of_two_ballots_decide_nothing_though_the_value_is_the_same() -> None:
    learner = LogLearner()
    votes(learner, 0, "n1")
    votes(learner, 0, "n2", ballot=HIGH)
    assert learner.decision(1, ABC) is None


def test_votes_of_another_configuration_or_of_strangers_decide_nothing() -> None:
    learner = LogLearner()
    votes(learner, 0, "n1", "n2")
    votes(learner, 0, "n7", "n8", ballot=HIGH)
    assert learner.decision(2, ABC) is None
    assert learner.decision(1, ("n1", "n3", "n4")) is None


def test_decisions_are_applied_without_gaps() -> None:
    learner = LogLearner()
    votes(learner, 1, "n1", "n2")
    assert learner.is_behind
    assert learner.decision(1, ABC) is None
    votes(learner, 0, "n1", "n2")
    learner.applied()
    assert learner.decision(1, ABC) == b"x"


def test_what_others_have_applied_counts_and_what_is_too_far_ahead_is_dropped() -> None:
    learner = LogLearner(5)
    learner.tell(4, b"old")
    learner.tell(5, b"x")
    learner.tell(5 + AHEAD_MAX, b"far")
    assert learner.decision(1, ABC) == b"x"
    assert list(learner.told) == [5]


def test_what_came_for_instances_behind_a_change_of_members_is_void() -> None:
    learner = LogLearner()
    votes(learner, 0, "n1", "n2")
    learner.tell(1, b"x")
    learner.void()
    assert learner.decision(1, ABC) is None
    assert not learner.is_behind
