"""Members of the replicated log with empty disks: what one of them does not do, and how it comes to vote."""

from typing import Any

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import ChannelReset, Effect, Persist, Send
from ordercast.protocols.paxos.log import LeaderChanged, LogReplica, MayVote
from ordercast.protocols.paxos.log_admission import VotingChanged
from ordercast.protocols.paxos.log_state import DISK_BYTES_MAX, LIVES_COUNT_MAX, NUMBER_MAX
from ordercast.v1.consensus_pb2 import (
    LOG_STANDING_READMITTED,
    LogAccept,
    LogAccepted,
    LogEcho,
    LogFetch,
    LogFoundAsk,
    LogFoundGrant,
    LogHeartbeat,
    LogLife,
    LogPrepare,
    LogPromise,
    LogRejected,
    LogRejoin,
    LogRejoined,
    LogStandingRecord,
    LogTail,
    Round,
)
from tests.unit.test_paxos_log import Member, accept, accepted, applied, handed, item, round_of, sent


class Empty(Member):
    """As Member, but with nothing on its disk."""

    def restart(self) -> list[Effect]:
        if self.incarnation < 0:
            self.disk = {}
        return super().restart()


def grant(process: str, asked: bytes) -> LogFoundGrant:
    return LogFoundGrant(asked=asked, disk=b"disk of " + process.encode())


def disk_of(member: Member) -> bytes:
    return member.machine.state.disk


def lives(**known: int) -> list[LogLife]:
    return [LogLife(member=member, life=life) for member, life in known.items()]


def is_behind_a_barrier(effects: list[Effect], kind: type) -> bool:
    """Whether nothing of this kind leaves before something is written."""
    barrier = next(i for i, e in enumerate(effects) if isinstance(e, Persist) and e.barrier)
    first = next(i for i, e in enumerate(effects) if isinstance(e, Send) and isinstance(e.message, kind))
    return barrier < first


def found(member: Member) -> None:
    for other in member.members[1:]:
        member.receive(other, grant(other, disk_of(member)))


# ----------------------------------------------------------------------------------------------------- being mute


@pytest.mark.parametrize(
    "message",
    [
        LogPrepare(round=round_of("b", 1)),
        accept("b", 1, 0, b"x"),
        LogHeartbeat(round=round_of("b", 1)),
        LogRejoin(life=3),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_member_with_an_empty_disk_answers_nothing_that_others_could_count(message):
    member = Empty()
    effects = member.receive("b", message)
    effects += member.receive("b", message)
    assert not [e for e in effects if isinstance(e, Send)]
    assert member.machine.state.entries == {}
    assert not member.machine.state.votes


def test_a_member_with_an_empty_disk_does_not_reject_an_old_leader_either():
    member = Empty()
    member.receive("c", LogHeartbeat(round=round_of("c", 2)))
    assert sent(member.receive("b", LogHeartbeat(round=round_of("b", 1))), LogRejected) == []


def test_a_member_with_an_empty_disk_never_campaigns_and_notices_that_the_leader_is_silent():
    member = Empty()
    effects = member.receive("b", LogHeartbeat(round=round_of("b", 1)))
    assert [event.leader for event in handed(effects, LeaderChanged)] == ["b"]
    effects = [*member.tick(10.0), *member.tick(10.0), *member.tick(10.0)]
    assert [event.leader for event in handed(effects, LeaderChanged)] == [None]
    assert sent(effects, LogPrepare) == []


def test_a_member_with_an_empty_disk_learns_and_is_as_mute_after_a_restart():
    member = Empty()
    effects = member.receive("b", LogHeartbeat(round=round_of("b", 1), decided=1))
    assert len(sent(effects, LogFetch)) == 1
    effects = member.receive("b", LogTail(first=0, decided=1, items=[item(b"x")]))
    assert applied(effects) == [(0, b"x")]
    effects = member.restart()
    assert applied(effects) == [(0, b"x")]
    assert [e.votes for e in effects if isinstance(e, VotingChanged)] == [False]
    assert sent(member.receive("b", LogPrepare(round=round_of("b", 1), decided=1)), LogPromise) == []


def test_a_disk_from_before_there_was_the_rule_votes_and_vouches_for_nobody():
    member = Member()
    member.receive("b", accept("b", 1, 0, b"x"))
    del member.disk[b"v"]
    effects = member.restart()
    assert [e for e in effects if isinstance(e, VotingChanged)] == []
    assert len(sent(member.receive("c", LogPrepare(round=round_of("c", 2))), LogPromise)) == 1
    assert sent(member.receive("b", LogFoundAsk(disk=b"disk of b")), LogFoundGrant) == []


# ------------------------------------------------------------------------------------------------------- founding


def test_a_single_member_founds_itself():
    member = Empty("a")
    assert member.machine.state.votes
    assert member.campaign()
    assert member.machine.reign is not None


def test_a_member_is_a_founder_when_everyone_has_vouched_for_its_disk():
    member = Empty()
    member.receive("b", grant("b", disk_of(member)))
    member.receive("b", grant("b", disk_of(member)))
    assert not member.machine.state.votes
    effects = member.receive("c", grant("c", disk_of(member)))
    assert [e.votes for e in effects if isinstance(e, VotingChanged)] == [True]
    assert [e.barrier for e in effects if isinstance(e, Persist)] == [True]
    # Before it has voted for anything.
    member.restart()
    assert len(sent(member.receive("b", LogPrepare(round=round_of("b", 1))), LogPromise)) == 1


def test_everyone_is_asked_with_the_connection_and_again_until_there_is_an_answer():
    member = Empty()
    ask = LogFoundAsk(disk=disk_of(member))
    assert sent(member.step(ChannelReset, "b", 2), LogFoundAsk) == [ask]
    member.receive("b", grant("b", disk_of(member)))
    effects = member.tick(member.settings.retry_s)
    assert [tuple(e.to) for e in effects if isinstance(e, Send)] == [("c",)]
    assert sent(member.tick(), LogFoundAsk) == []


def test_a_disk_keeps_its_name():
    member = Empty()
    before = disk_of(member)
    member.restart()
    assert disk_of(member) == before != b""
    assert LogReplica("a", ("a",), "client", disk=b"given").disk == b"given"


@pytest.mark.parametrize(
    ("source", "word"),
    [("c", grant("c", b"another disk")), ("b", LogFoundGrant(asked=b"", disk=b"disk of b"))],
    ids=["for another disk", "for none"],
)
def test_a_word_for_another_disk_does_not_count(source, word):
    member = Empty()
    member.receive("b", grant("b", disk_of(member)))
    if word.asked:
        member.receive(source, word)
    else:
        with pytest.raises(RemoteProtocolError):
            member.receive(source, word)
    assert not member.machine.state.votes


def test_a_word_counts_from_one_disk_of_a_member_only():
    """c/1 asked us; c/2 vouches for us. It has forgotten whom c/1 vouched for."""
    member = Empty()
    member.receive("c", LogFoundAsk(disk=b"disk of c"))
    member.receive("b", grant("b", disk_of(member)))
    member.receive("c", LogFoundGrant(asked=disk_of(member), disk=b"new disk of c"))
    assert not member.machine.state.votes


@pytest.mark.parametrize("make", [Empty, Member], ids=["empty", "founder"])
def test_a_member_vouches_for_the_first_disk_of_each_other_and_never_for_a_second(make):
    member = make()
    effects = member.receive("b", LogFoundAsk(disk=b"first"))
    word = LogFoundGrant(asked=b"first", disk=disk_of(member))
    assert sent(effects, LogFoundGrant) == [word]
    assert is_behind_a_barrier(effects, LogFoundGrant)
    assert sent(member.receive("b", LogFoundAsk(disk=b"second")), LogFoundGrant) == []
    member.restart()
    assert sent(member.receive("b", LogFoundAsk(disk=b"second")), LogFoundGrant) == []
    assert sent(member.receive("b", LogFoundAsk(disk=b"first")), LogFoundGrant) == [word]
    assert len(sent(member.receive("c", LogFoundAsk(disk=b"second")), LogFoundGrant)) == 1


# ---------------------------------------------------------------------------------------------------- readmission


def rejoined(life: int, number: int = 0, process: str = "b", **more: Any) -> LogRejoined:
    promised = round_of(process, number) if number else Round()
    return LogRejoined(life=life, promised=promised, **more)


def test_a_registered_disk_asks_everyone_and_votes_when_a_majority_of_others_has_noted_it():
    member = Empty("abcde")
    effects = member.step(MayVote, 7)
    assert sent(effects, LogRejoin) == [LogRejoin(life=7)]
    assert is_behind_a_barrier(effects, LogRejoin)
    member.receive("b", rejoined(7, 4))
    member.receive("b", rejoined(7, 4))
    member.receive("c", rejoined(7, 9, "c"))
    member.receive("d", rejoined(6))
    assert not member.machine.state.votes
    effects = member.receive("e", rejoined(7, 2))
    assert [(e.votes, e.life) for e in effects if isinstance(e, VotingChanged)] == [(True, 7)]
    assert [e.barrier for e in effects if isinstance(e, Persist)] == [True]
    for _ in range(2):
        rejection = sent(member.receive("d", LogPrepare(round=round_of("d", 8))), LogRejected)
        assert [rejected.promised for rejected in rejection] == [round_of("c", 9)]
        member.restart()
    [promise] = sent(member.receive("d", LogPrepare(round=round_of("d", 10))), LogPromise)
    assert list(promise.lives) == lives(a=7)


def test_a_member_to_be_readmitted_waits_for_every_slot_that_one_of_them_voted_for():
    member = Empty()
    member.step(MayVote, 7)
    member.receive("b", rejoined(7, 1, unvoted=2))
    # What they vote for later is nothing that could have been forgotten.
    member.receive("c", rejoined(7, 1, unvoted=1))
    member.receive("c", rejoined(7, 1, unvoted=5))
    effects = member.tick(member.settings.retry_s)
    assert [(tuple(e.to), e.message) for e in effects if isinstance(e, Send)] == [
        (("b", "c"), LogRejoin(life=7, until=2))
    ]
    member.receive("b", LogTail(first=0, decided=1, items=[item(b"x")]))
    assert not member.machine.state.votes
    member.receive("b", LogTail(first=1, decided=2, items=[item(b"y")]))
    assert member.machine.state.votes


def test_a_higher_life_begins_the_asking_anew_and_a_lower_one_does_not():
    member = Empty()
    member.step(MayVote, 7)
    member.receive("b", rejoined(7))
    assert sent(member.step(MayVote, 5), LogRejoin) == []
    assert sent(member.step(MayVote, 8), LogRejoin) == [LogRejoin(life=8)]
    member.receive("c", rejoined(7))
    member.receive("c", rejoined(8))
    assert not member.machine.state.votes
    member.receive("b", rejoined(8))
    assert member.machine.state.votes


def test_one_that_is_to_be_readmitted_can_no_longer_be_a_founder():
    """As such it would have life 0, and others have noted another one."""
    member = Empty()
    member.step(MayVote, 7)
    found(member)
    assert not member.machine.state.votes
    member.restart()
    found(member)
    assert not member.machine.state.votes
    assert sent(member.receive("b", LogFoundAsk(disk=b"disk of b")), LogFoundGrant) == []


def test_a_member_that_votes_ignores_that_it_may():
    member = Member()
    assert member.step(MayVote, 7) == []


def test_an_answer_of_an_earlier_life_does_not_count_beside_one_that_knows_the_later():
    member = Empty()
    member.step(MayVote, 7)
    member.receive("b", rejoined(7))
    member.receive("c", rejoined(7, lives=lives(b=6)))
    assert not member.machine.state.votes
    member.receive("b", rejoined(7))
    assert not member.machine.state.votes
    member.receive("b", rejoined(7, lives=lives(b=6)))
    assert member.machine.state.votes


def test_a_readmitted_member_vouches_for_nobody():
    member = Empty()
    member.step(MayVote, 7)
    member.receive("b", rejoined(7))
    member.receive("c", rejoined(7))
    assert LogStandingRecord.FromString(member.disk[b"v"]).standing == LOG_STANDING_READMITTED
    assert sent(member.receive("b", LogFoundAsk(disk=b"disk of b")), LogFoundGrant) == []


# ------------------------------------------------------------------------------------------------- others' lives


def test_a_member_notes_another_ones_life_and_tells_what_it_had_promised_and_voted_for():
    member = Member()
    member.receive("b", accept("b", 3, 0, b"x", b"y"))
    effects = member.receive("c", LogRejoin(life=7))
    assert is_behind_a_barrier(effects, LogRejoined)
    assert sent(effects, LogRejoined) == [rejoined(7, 3, unvoted=2, lives=lives(c=7))]
    member.restart()
    [answer] = sent(member.receive("b", accept("b", 3, 2, b"z")), LogAccepted)
    assert list(answer.lives) == lives(c=7)
    assert sent(member.receive("c", LogRejoin(life=6)), LogRejoined) == []
    assert len(sent(member.receive("c", LogRejoin(life=7)), LogRejoined)) == 1


def test_a_candidate_forgets_the_promise_of_a_life_that_is_over():
    member = Member("abcde")
    member.campaign()
    round_ = Round(number=1, owner=member.incarnation)
    member.receive("e", LogPromise(round=round_))
    member.receive("c", LogPromise(round=round_, lives=lives(e=7)))
    assert member.machine.reign is None
    member.receive("e", LogPromise(round=round_))
    assert member.machine.reign is None
    member.receive("e", LogPromise(round=round_, lives=lives(e=7)))
    assert member.machine.reign is not None


def test_a_leader_forgets_the_votes_of_a_life_that_is_over():
    member = Member("abcde")
    member.lead(LogPromise(), LogPromise())
    member.append(b"x")
    member.receive("e", accepted(0, 1))
    member.receive("e", LogRejoin(life=7))
    assert applied(member.receive("c", accepted(0, 1))) == []
    assert applied(member.receive("e", accepted(0, 1))) == []
    assert applied(member.receive("d", accepted(0, 1))) == [(0, b"x")]


def test_a_member_that_hears_of_a_later_life_of_its_own_is_mute_for_good():
    member = Member("abcde")
    member.lead(LogPromise(), LogPromise())
    member.append(b"x")
    answer = accepted(0, 1)
    answer.lives.extend(lives(a=7))
    effects = member.receive("c", answer)
    assert [e.votes for e in effects if isinstance(e, VotingChanged)] == [False]
    assert member.machine.reign is None
    for _ in range(2):
        assert sent(member.receive("b", LogPrepare(round=round_of("b", 9))), LogPromise) == []
        assert sent(member.receive("b", LogHeartbeat(round=round_of("b", 9))), LogEcho) == []
        member.restart()


def test_the_leader_fills_the_slots_that_a_member_waits_for_and_not_more_than_the_window():
    member = Member(window_count_max=4)
    member.lead()
    assert sent(member.receive("c", LogRejoin(life=7)), LogAccept) == []
    [proposal] = sent(member.receive("c", LogRejoin(life=7, until=2)), LogAccept)
    assert (proposal.first, [one.HasField("value") for one in proposal.items]) == (0, [False, False])
    assert sent(member.receive("c", LogRejoin(life=7, until=2)), LogAccept) == []
    [proposal] = sent(member.receive("c", LogRejoin(life=7, until=NUMBER_MAX)), LogAccept)
    assert (proposal.first, len(proposal.items)) == (2, 2)


# ------------------------------------------------------------------------------------------------ peers' mistakes


@pytest.mark.parametrize(
    "message",
    [
        LogFoundAsk(),
        LogFoundAsk(disk=bytes(DISK_BYTES_MAX + 1)),
        LogFoundGrant(asked=b"asked"),
        LogFoundGrant(disk=b"disk"),
        LogRejoin(),
        LogRejoin(life=NUMBER_MAX + 1),
        LogRejoin(life=1, until=NUMBER_MAX + 1),
        LogRejoined(life=1, unvoted=NUMBER_MAX + 1),
        LogRejoined(life=1, promised=Round(number=NUMBER_MAX + 1)),
        LogRejoined(life=1, lives=[LogLife(member="b")]),
        LogPromise(lives=[LogLife(member="b", life=NUMBER_MAX + 1)]),
        LogAccepted(lives=[LogLife(member="b", life=1)] * (LIVES_COUNT_MAX + 1)),
    ],
    ids=lambda message: type(message).__name__,
)
def test_what_no_member_says_is_refused_and_leaves_nothing_behind(message):
    member = Member()
    before = dict(member.disk)
    with pytest.raises(RemoteProtocolError):
        member.receive("b", message)
    assert member.disk == before
    assert (member.machine.state.lives, member.machine.state.met) == ({}, {})


def test_lives_of_strangers_are_not_kept():
    member = Member()
    member.receive("b", LogAccepted(lives=lives(z=5)))
    assert member.machine.state.lives == {}
