"""The proposer: one value per instance, whoever else proposes, and no answer is waited for in vain."""

from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import envelope_id
from ordercast.core.machine import Decided, Effect, InstanceClosed, Propose, SetTimer, ViewChanged
from ordercast.protocols.paxos.acceptor import Acceptor
from ordercast.protocols.paxos.proposer import Proposer, ProposerSettings
from ordercast.v1.consensus_pb2 import Accept, Accepted, Closed, Decide, Prepare, Promise, Rejected, Round
from tests.unit.driving import CONFIGURATION, LIVES, Driven, destinations, handed, kinds, sends, sent, view_of

ACCEPTORS = {"a": "n1 n2 n3", "b": "n3 n4 n5"}
EVERYONE = ["n1", "n2", "n3", "n4", "n5"]
VIEW = view_of({"a": "n1 n2", "b": "n2 n7"}, acceptors=ACCEPTORS)
INSTANCE = envelope_id(21, 5)
RETRY_S = ProposerSettings().retry_s


class Host(Driven):
    """Process n2, second of the three learners."""

    def __init__(self) -> None:
        super().__init__("n2", lambda: Proposer("n2", "client"), VIEW)

    def propose(self, value: bytes | None, owner: str = "n2", **fields: Any) -> list[Effect]:
        groups = fields.setdefault("groups", ("a", "b"))
        fields.setdefault("configurations", (CONFIGURATION,) * len(groups))
        event = Propose(
            self.now, 0.0, INSTANCE, value=value, owner=LIVES[owner], **{"done": 3, "open": (1,), **fields}
        )
        effects: list[Effect] = self.machine.step(event)
        return effects

    def promise(
        self, *sources: str, number: int = 1, voted: Round | None = None, value: bytes = b""
    ) -> list[Effect]:
        effects: list[Effect] = []
        for source in sources:
            promise = Promise(instance=INSTANCE, round=mine(number), voted_round=voted, voted_value=value)
            effects = self.receive(source, promise)
        return effects

    def accepted(self, *sources: str, number: int = 1) -> list[Effect]:
        effects: list[Effect] = []
        for source in sources:
            effects = self.receive(source, Accepted(instance=INSTANCE, round=mine(number)))
        return effects

    def rejected(self, source: str, number: int, owner: str) -> list[Effect]:
        return self.receive(source, Rejected(instance=INSTANCE, promised=round_of(owner, number)))


def round_of(process: str, number: int) -> Round:
    return Round(number=number, owner=LIVES[process])


def mine(number: int) -> Round:
    return round_of("n2", number)


# ------------------------------------------------------------------------------------------------------ round 0


def test_the_named_incarnation_skips_phase_one():
    effects = Host().propose(b"x")
    accept = Accept(instance=INSTANCE, round=mine(0), value=b"x", groups=destinations("a", "b"), done=3, open=[1])
    assert sends(effects, Accept) == [(EVERYONE, accept)]


def test_everyone_else_starts_with_phase_one_in_a_higher_round():
    effects = Host().propose(b"x", owner="n1")
    prepare = Prepare(instance=INSTANCE, round=mine(1), groups=destinations("a", "b"), done=3, open=[1])
    assert sends(effects, Prepare) == [(EVERYONE, prepare)]
    assert not sent(effects, Accept)


def test_the_same_process_in_its_next_life_starts_with_phase_one():
    """Otherwise it could have two values chosen in one round: it does not know what it proposed."""
    host = Host()
    host.propose(b"x")
    host.restart()
    effects = host.propose(b"y")
    assert not sent(effects, Accept)
    assert sent(effects, Prepare)[0].round == Round(number=1, owner=LIVES["n2"] + 100)


def test_without_a_value_even_the_owner_asks_first():
    assert kinds(Host().propose(None)) == ["Prepare", "SetTimer"]


# ---------------------------------------------------------------------------------------------------- quorums


def test_nothing_is_decided_before_a_majority_of_every_group_has_voted():
    host = Host()
    host.propose(b"x")
    assert host.accepted("n1", "n2", "n3", number=0) == [], "n3 is one of three in b"
    effects = host.accepted("n5", number=0)
    assert [d.value for d in handed(effects, Decided)] == [b"x"]


def test_a_vote_counts_once_however_often_it_comes():
    host = Host()
    host.propose(b"x")
    assert host.accepted("n3", "n3", "n4", "n4", "n4", number=0) == []


def test_an_acceptor_of_both_groups_counts_in_both():
    host = Host()
    host.propose(b"x")
    assert host.accepted("n3", "n1", number=0) == []
    assert handed(host.accepted("n4", number=0), Decided)


def test_votes_of_a_process_that_is_no_acceptor_do_not_count():
    host = Host()
    host.propose(b"x")
    for stranger in ("n6", "n7"):
        with suppress(RemoteProtocolError):
            host.accepted(stranger, number=0)
    assert host.accepted("n1", "n4", number=0) == []


def test_votes_in_another_round_do_not_count():
    host = Host()
    host.propose(b"x", owner="n1")
    host.promise("n1", "n3", "n4")
    assert host.accepted("n1", "n3", "n4", number=0) == []
    assert handed(host.accepted("n1", "n3", "n4", number=1), Decided)


def test_accepts_wait_for_promises_from_a_qualified_majority():
    host = Host()
    host.propose(b"x", owner="n1")
    assert host.promise("n1", "n2", "n3") == []
    (accept,) = sent(host.promise("n4"), Accept)
    assert (accept.round, accept.value) == (mine(1), b"x")


def test_promises_of_another_round_do_not_count():
    host = Host()
    host.propose(b"x", owner="n1")
    host.promise("n1", "n2")
    host.rejected("n3", 1, "n7")
    host.tick(10.0)
    assert host.promise("n1", "n3", "n4", number=1) == []
    assert host.promise("n3", "n4", number=2) == []
    assert sent(host.promise("n1", number=2), Accept)


def test_a_decision_is_told_to_the_other_learners_and_handed_to_the_client():
    host = Host()
    host.propose(b"x")
    effects = host.accepted("n1", "n3", "n4", number=0)
    assert sends(effects, Decide) == [(["n1", "n7"], Decide(instance=INSTANCE, value=b"x"))]
    (decided,) = handed(effects, Decided)
    assert (decided.instance, decided.value) == (INSTANCE, b"x")
    assert host.machine.buffers() == {"attempts": 1}, "until the client says that it knows"
    host.step(Decided, INSTANCE, b"x")
    assert host.machine.buffers() == {"attempts": 0}


def test_a_late_vote_decides_nothing_again():
    host = Host()
    host.propose(b"x")
    host.accepted("n1", "n3", "n4", number=0)
    assert host.accepted("n2", "n5", number=0) == []


# ------------------------------------------------------------------------------------------------ earlier votes


def test_the_vote_of_the_highest_round_is_adopted():
    host = Host()
    host.propose(b"mine", owner="n1")
    host.promise("n1", voted=round_of("n1", 0), value=b"zzz")
    host.promise("n3", voted=round_of("n7", 2), value=b"newest")
    (accept,) = sent(host.promise("n4", voted=round_of("n6", 1), value=b"newer"), Accept)
    assert accept.value == b"newest"


def test_of_rounds_with_the_same_number_the_higher_owner_is_the_later():
    host = Host()
    host.propose(b"mine", owner="n1")
    host.promise("n1", voted=round_of("n7", 1), value=b"a")
    host.promise("n3", voted=round_of("n6", 1), value=b"z")
    assert sent(host.promise("n4"), Accept)[0].value == b"a"


def test_a_vote_in_round_zero_is_adopted_over_an_own_value():
    host = Host()
    host.propose(b"mine", owner="n1")
    host.promise("n1", "n3")
    assert sent(host.promise("n4", voted=round_of("n1", 0), value=b"theirs"), Accept)[0].value == b"theirs"


def test_without_a_vote_and_without_a_value_it_waits_for_one():
    host = Host()
    host.propose(None, owner="n1")
    assert host.promise("n1", "n3", "n4") == []
    assert sends(host.tick(100.0), Prepare) == []
    (accept,) = sent(host.propose(b"late", owner="n1"), Accept)
    assert (accept.round, accept.value) == (mine(1), b"late")


def test_without_a_value_of_its_own_it_still_finishes_what_somebody_began():
    host = Host()
    host.propose(None, owner="n1")
    host.promise("n1", "n3")
    assert sent(host.promise("n4", voted=round_of("n1", 0), value=b"theirs"), Accept)[0].value == b"theirs"


def test_a_value_once_proposed_is_not_replaced():
    host = Host()
    host.propose(b"x")
    assert host.propose(b"y") == []
    assert [accept.value for accept in sent(host.tick(RETRY_S), Accept)] == [b"x"]


# ------------------------------------------------------------------------------------------------- competition


def test_a_rejected_proposer_backs_off_and_comes_back_above_the_promised_round():
    host = Host()
    host.propose(b"x")
    assert host.rejected("n1", 7, "n1") == []
    assert not sent(host.tick(RETRY_S), Prepare), "second among the learners: it waits twice as long as the first"
    (prepare,) = sent(host.tick(RETRY_S), Prepare)
    assert prepare.round == mine(8)


def test_the_first_learner_comes_back_before_the_last():
    waits = {}
    for learners in ("n2 n6 n7", "n1 n2"):
        host = Host()
        host.change(view_of({"a": learners, "b": learners}, acceptors=ACCEPTORS))
        host.propose(b"x")
        host.rejected("n1", 1, "n7")
        while not sent(host.tick(0.01), Prepare):
            waits[learners] = host.now
    assert waits["n2 n6 n7"] < waits["n1 n2"]


def test_votes_that_come_while_it_backs_off_decide_nothing():
    """The round was outbid: some of those votes may be overruled."""
    host = Host()
    host.propose(b"x")
    host.rejected("n1", 1, "n7")
    assert host.accepted("n2", "n3", "n4", number=0) == []


def test_a_rejection_of_a_round_that_it_left_behind_does_not_stop_it():
    host = Host()
    host.propose(b"x")
    host.rejected("n1", 4, "n7")
    host.tick(10.0)
    host.promise("n1", "n3", number=5)
    host.rejected("n2", 4, "n7")
    assert sent(host.promise("n4", number=5), Accept)


def test_two_rejections_do_not_put_it_off_twice():
    host = Host()
    host.propose(b"x")
    host.rejected("n1", 1, "n7")
    host.tick(RETRY_S)
    host.rejected("n3", 2, "n7")
    assert sent(host.tick(RETRY_S), Prepare)[0].round == mine(3)


def test_a_closed_instance_is_handed_to_the_client_and_given_up():
    host = Host()
    host.propose(b"x", owner="n1")
    effects = host.receive("n3", Closed(instance=INSTANCE))
    assert [closed.instance for closed in handed(effects, InstanceClosed)] == [INSTANCE]
    assert sends(host.propose(b"y"), Accept) == [], "not even round 0 again"
    host.step(Decided, INSTANCE, b"")
    assert host.machine.buffers() == {"attempts": 0}
    assert host.tick(10.0) == []


def test_a_decision_from_elsewhere_ends_the_attempt():
    host = Host()
    host.propose(b"x", owner="n1")
    assert host.step(Decided, INSTANCE, b"y") == []
    assert host.machine.buffers() == {"attempts": 0}
    assert host.promise("n1", "n3", "n4") == []


# ----------------------------------------------------------------------------------------------------- silence


def test_only_those_who_have_not_answered_are_asked_again():
    host = Host()
    host.propose(b"x", owner="n1")
    host.promise("n1", "n4")
    assert [to for to, _ in sends(host.tick(RETRY_S), Prepare)] == [["n2", "n3", "n5"]]
    host.promise("n3")
    host.accepted("n5")
    ((to, accept),) = sends(host.tick(10.0), Accept)
    assert (to, accept.round) == (["n1", "n2", "n3", "n4"], mine(1))


def test_it_asks_less_and_less_often_up_to_a_limit():
    host = Host()
    host.propose(b"x")
    times = []
    for _ in range(1500):
        if sent(host.tick(0.01), Accept):
            times.append(host.now)
    waits = [round(later - earlier, 1) for earlier, later in pairwise(times)]
    assert waits[:3] == [0.4, 0.8, 1.6]
    assert set(waits[3:]) == {ProposerSettings().retry_s_max}


def test_the_timer_runs_as_long_as_something_is_open():
    host = Host()
    assert host.tick() == []
    assert any(isinstance(e, SetTimer) for e in host.propose(b"x"))
    assert any(isinstance(e, SetTimer) for e in host.tick())
    host.accepted("n1", "n3", "n4", number=0)
    assert host.tick() == []


# ---------------------------------------------------------------------------------------------------- strangers


def test_a_vote_told_by_a_process_that_is_no_acceptor_is_not_adopted():
    host = Host()
    host.propose(b"mine", owner="n1")
    with pytest.raises(RemoteProtocolError):
        host.promise("n7", voted=round_of("n7", 9), value=b"theirs")
    assert sent(host.promise("n1", "n3", "n4"), Accept)[0].value == b"mine"


def test_a_process_that_is_no_acceptor_closes_nothing():
    host = Host()
    host.propose(b"mine", owner="n1")
    with pytest.raises(RemoteProtocolError):
        host.receive("n7", Closed(instance=INSTANCE))
    assert host.machine.buffers() == {"attempts": 1}


# ------------------------------------------------------------------------------------------------- with acceptors


def test_what_round_zero_had_chosen_is_what_a_rival_gets_decided():
    """n1 has 5 voted for by a qualified majority and dies; n2 wants 7 and must get 5."""
    acceptors = {name: Driven(name, lambda name=name: Acceptor(name), VIEW) for name in EVERYONE}
    accept = Accept(instance=INSTANCE, round=round_of("n1", 0), value=b"5", groups=destinations("a", "b"))
    for name in ("n2", "n3", "n4"):
        acceptors[name].receive("n1", accept)
    host = Host()
    pending = host.propose(b"7", owner="n1")
    decided: list[bytes] = []
    while pending:
        answers: list[Effect] = []
        for to, message in [*sends(pending, Prepare), *sends(pending, Accept)]:
            for name in to:
                for _, answer in sends(acceptors[name].receive("n2", message), object):
                    answers += host.receive(name, answer)
        decided += [event.value for event in handed(answers, Decided)]
        pending = answers
    assert decided == [b"5"]


def test_a_proposal_that_crosses_the_decision_does_not_start_the_round_again_with_another_value():
    """The client proposed y behind a sync, and x was decided meanwhile: a round has one value."""
    host = Host()
    host.propose(b"x")
    host.accepted("n1", "n3", "n4", number=0)
    effects = host.propose(b"y")
    assert sends(effects, Accept) == []
    assert [decided.value for decided in handed(effects, Decided)] == [b"x"]


# ----------------------------------------------------------------------------------------- groups that come and go


def test_a_group_that_is_gone_has_no_say_any_more():
    host = Host()
    host.propose(b"x")
    host.accepted("n1", number=0)
    host.step(ViewChanged, view_of({"a": "n1 n2"}, acceptors=ACCEPTORS))
    (resent,) = sends(host.tick(RETRY_S), Accept)
    assert resent[0] == ["n2", "n3"]
    assert [d.group for d in resent[1].groups] == ["a"]
    assert [decided.value for decided in handed(host.accepted("n2", number=0), Decided)] == [b"x"]


def test_a_proposal_for_groups_that_are_all_gone_is_forgotten():
    host = Host()
    host.propose(b"x", groups=("b",))
    host.step(ViewChanged, view_of({"a": "n1 n2"}, acceptors=ACCEPTORS))
    assert host.machine.buffers() == {"attempts": 0}
    assert host.accepted("n3", "n4", number=0) == []


def test_a_proposal_for_a_group_that_the_view_lacks_waits_for_being_made_again():
    """To count only the groups that are known would decide without the others."""
    host = Host()
    assert host.propose(b"x", groups=("a", "c")) == []
    host.step(ViewChanged, view_of({"a": "n1 n2", "c": "n7"}, acceptors={**ACCEPTORS, "c": "n6"}))
    ((to, _),) = sends(host.propose(b"x", groups=("a", "c")), Accept)
    assert to == ["n1", "n2", "n3", "n6"]
