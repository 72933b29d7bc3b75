"""The replicated log, one member at a time: what it answers, in which order, and what it never does."""

from typing import Any

import pytest

from ordercast.core.errors import InvariantBroken, RemoteProtocolError
from ordercast.core.machine import (
    ChannelReset,
    Effect,
    Event,
    Hand,
    Persist,
    Receive,
    Send,
    SetTimer,
    Start,
    TimerFired,
)
from ordercast.protocols.paxos.log import (
    TIMER,
    Append,
    AppendRefused,
    LeaderChanged,
    LogApplied,
    LogReplica,
    LogSnapshot,
    Truncate,
)
from ordercast.protocols.paxos.log_state import NUMBER_MAX, LogSettings
from ordercast.v1.consensus_pb2 import (
    LOG_STANDING_FOUNDER,
    LogAccept,
    LogAccepted,
    LogDecided,
    LogEcho,
    LogFetch,
    LogHeartbeat,
    LogInstall,
    LogItem,
    LogPrepare,
    LogPromise,
    LogRejected,
    LogStandingRecord,
    LogTail,
    LogVote,
    Round,
)
from ordercast.v1.frame_pb2 import Packet

#: The incarnation of each process in these conversations; a restart adds 10.
LIVES = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}


#: On the disk of a member that was founded and has seen nothing since.
FOUNDER = LogStandingRecord(standing=LOG_STANDING_FOUNDER, disk=b"disk of a")


class Member:
    """Process a, its disk, and its clock. Every Persist is durable at once. It was founded, and may vote."""

    def __init__(self, members: str = "abc", **limits: Any) -> None:
        self.members = tuple(members)
        self.settings = LogSettings(**limits)
        self.disk: dict[bytes, bytes] = {b"v": FOUNDER.SerializeToString()}
        self.now = 100.0
        self.incarnation = LIVES["a"] - 10
        self.restart()

    def restart(self) -> list[Effect]:
        self.incarnation += 10
        self.machine = LogReplica("a", self.members, "client", self.settings)
        return self.step(Start, self.incarnation, list(self.disk.items()))

    def step(self, event: type[Event], *fields: Any) -> list[Effect]:
        effects = self.machine.step(event(self.now, 0.0, *fields))
        self.machine.check_invariants()
        for effect in effects:
            if isinstance(effect, Persist):
                for key, value in effect.records:
                    self.disk.pop(key, None) if value is None else self.disk.update({key: value})
        return effects

    def receive(self, source: str, message: Any) -> list[Effect]:
        return self.step(Receive, source, LIVES[source], message)

    def tick(self, seconds: float = 0.0, chance: int = 0) -> list[Effect]:
        self.now += seconds
        return self.step(TimerFired, TIMER, chance)

    def campaign(self) -> list[Effect]:
        self.tick()
        return self.tick(self.settings.suspect_s)

    def lead(self, *promises: LogPromise) -> list[Effect]:
        """In round 1, or a higher one, with the promises of b, c and so on."""
        self.campaign()
        assert self.machine.candidacy is not None
        number = self.machine.candidacy.round[0]
        effects: list[Effect] = []
        for source, promise in zip("bcde", promises or (LogPromise(),), strict=False):
            promise.round.CopyFrom(Round(number=number, owner=self.incarnation))
            effects = self.receive(source, promise)
        return effects

    def append(self, value: bytes, tag: bytes = b"") -> list[Effect]:
        return self.step(Append, value, tag or value)


def round_of(process: str, number: int) -> Round:
    return Round(number=number, owner=LIVES[process])


def item(value: bytes, process: str = "b", number: int = 1) -> LogItem:
    return LogItem(origin=round_of(process, number), value=value)


def accept(process: str, number: int, first: int, *values: bytes, decided: int = 0) -> LogAccept:
    items = [item(value, process, number) for value in values]
    return LogAccept(round=round_of(process, number), decided=decided, first=first, items=items)


def accepted(first: int, count: int, number: int = 1) -> LogAccepted:
    return LogAccepted(round=round_of("a", number), first=first, count=count)


def vote(slot: int, process: str, number: int, value: bytes) -> LogVote:
    return LogVote(slot=slot, round=round_of(process, number), item=item(value, process, number))


def sent(effects: list[Effect], type_: type) -> list[Any]:
    return [e.message for e in effects if isinstance(e, Send) and isinstance(e.message, type_)]


def handed(effects: list[Effect], type_: type) -> list[Any]:
    return [e.event for e in effects if isinstance(e, Hand) and isinstance(e.event, type_)]


def applied(effects: list[Effect]) -> list[tuple[int, bytes | None]]:
    return [(event.slot, event.value) for event in handed(effects, LogApplied)]


def kinds(effects: list[Effect]) -> list[str]:
    return [type(getattr(e, "message", None) or getattr(e, "event", None) or e).__name__ for e in effects]


def barrier_of(effects: list[Effect]) -> int:
    return next(i for i, effect in enumerate(effects) if isinstance(effect, Persist) and effect.barrier)


# ------------------------------------------------------------------------------------------------ acceptors


def test_a_promise_is_on_disk_before_it_leaves():
    effects = Member().receive("b", LogPrepare(round=round_of("b", 1)))
    assert kinds(effects) == ["Persist", "LogPromise"]
    assert barrier_of(effects) == 0


def test_a_vote_is_on_disk_before_it_leaves():
    effects = Member().receive("b", accept("b", 1, 0, b"x", b"y"))
    assert kinds(effects) == ["LeaderChanged", "Persist", "LogAccepted"]
    assert (sent(effects, LogAccepted)[0].first, sent(effects, LogAccepted)[0].count) == (0, 2)


def test_a_lower_round_than_the_promised_one_is_rejected_even_after_a_restart():
    member = Member()
    member.receive("c", LogPrepare(round=round_of("c", 2)))
    for _ in range(2):
        for message in (LogPrepare(round=round_of("b", 1)), accept("b", 1, 0, b"x")):
            assert kinds(member.receive("b", message)) == ["LogRejected"]
        assert sent(member.receive("b", accept("b", 1, 0, b"x")), LogRejected)[0].promised == round_of("c", 2)
        member.restart()


def test_a_promise_tells_the_votes_in_open_slots_even_after_a_restart():
    member = Member()
    member.receive("b", accept("b", 1, 0, b"x", b"y", b"z"))
    member.receive("b", LogDecided(round=round_of("b", 1), decided=1))
    member.receive("b", accept("b", 1, 3, b"w", decided=1))
    member.restart()
    promise = sent(member.receive("c", LogPrepare(round=round_of("c", 2))), LogPromise)[0]
    assert promise.decided == 1
    assert list(promise.votes) == [vote(1, "b", 1, b"y"), vote(2, "b", 1, b"z"), vote(3, "b", 1, b"w")]


def test_a_promise_leaves_out_what_the_candidate_knows_to_be_decided():
    member = Member()
    member.receive("b", accept("b", 1, 0, b"x", b"y"))
    promise = sent(member.receive("c", LogPrepare(round=round_of("c", 2), decided=1)), LogPromise)[0]
    assert [v.slot for v in promise.votes] == [1]


def test_slots_beyond_the_window_get_no_vote():
    member = Member(window_count_max=2)
    answer = sent(member.receive("b", accept("b", 1, 1, b"x", b"y")), LogAccepted)[0]
    assert (answer.first, answer.count) == (1, 1)
    assert sent(member.receive("b", accept("b", 1, 7, b"z")), LogAccepted)[0].count == 0


# ------------------------------------------------------------------------------------------------- learners


def test_slots_are_applied_in_order_and_once():
    member = Member()
    member.receive("b", accept("b", 1, 0, b"x", b"y"))
    assert applied(member.receive("b", LogHeartbeat(round=round_of("b", 1), decided=1))) == [(0, b"x")]
    assert applied(member.receive("b", LogHeartbeat(round=round_of("b", 1), decided=1))) == []
    assert applied(member.receive("b", accept("b", 1, 2, b"z", decided=2))) == [(1, b"y")]


def test_a_vote_of_another_round_is_not_taken_for_the_decision_but_fetched():
    member = Member()
    member.receive("b", accept("b", 1, 0, b"x"))
    effects = member.receive("c", LogHeartbeat(round=round_of("c", 2), decided=1))
    assert applied(effects) == []
    assert sent(effects, LogFetch) == [LogFetch(decided=0)]
    effects = member.receive("c", LogTail(first=0, decided=1, items=[item(b"y", "c", 2)]))
    assert applied(effects) == [(0, b"y")]


def test_a_restarted_member_applies_its_log_again_from_the_snapshot_on():
    member = Member()
    member.receive("b", accept("b", 1, 0, b"x", b"y", b"z"))
    member.receive("b", LogDecided(round=round_of("b", 1), decided=3))
    member.step(Truncate, 2, b"x and y")
    effects = member.restart()
    assert [(e.slot, e.snapshot) for e in handed(effects, LogSnapshot)] == [(2, b"x and y")]
    assert applied(effects) == [(2, b"z")]


def test_a_silent_peer_is_not_asked_twice_in_a_row():
    member = Member()
    member.receive("c", LogEcho(round=round_of("a", 1), decided=1))
    effects = member.receive("b", LogHeartbeat(round=round_of("b", 1), decided=1))
    assert not sent(effects, LogFetch), "one question at a time"
    effects = member.tick(member.settings.retry_s)
    assert [list(e.to) for e in effects if isinstance(e, Send) and isinstance(e.message, LogFetch)] == [["b"]]


def test_a_long_log_is_fetched_piece_by_piece():
    member = Member()
    member.receive("b", LogHeartbeat(round=round_of("b", 1), decided=2))
    effects = member.receive("b", LogTail(first=0, decided=2, items=[item(b"x")]))
    assert applied(effects) == [(0, b"x")]
    assert sent(effects, LogFetch) == [LogFetch(decided=1)]


def test_a_fetch_is_answered_within_the_limits_of_a_message():
    member = Member(batch_bytes_max=5, fetch_count_max=3)
    member.receive("b", accept("b", 1, 0, b"xx", b"yy", b"zz", b"", b"", b""))
    member.receive("b", LogDecided(round=round_of("b", 1), decided=6))
    for first, count in ((0, 2), (2, 3), (5, 1), (6, 0)):
        tail = sent(member.receive("c", LogFetch(decided=first)), LogTail)[0]
        assert (tail.first, len(tail.items), tail.decided) == (first, count, 6)


# ------------------------------------------------------------------------------------------------- leaders


def test_patience_is_what_chance_makes_it():
    settings = LogSettings()
    for chance, share in ((0, 1.0), (2**63, 1.5)):
        member = Member()
        member.tick(chance=chance)
        assert not sent(member.tick(settings.suspect_s * share * 0.99), LogPrepare)
        effects = member.tick(settings.suspect_s * share * 0.02)
        assert sent(effects, LogPrepare) == [LogPrepare(round=round_of("a", 1))]


def test_a_heartbeat_keeps_suspicion_away():
    member = Member()
    for _ in range(10):
        member.receive("b", LogHeartbeat(round=round_of("b", 1)))
        assert not sent(member.tick(member.settings.suspect_s * 0.9), LogPrepare)


def test_a_new_leader_adopts_the_highest_votes_and_fills_holes_with_nothing():
    member = Member("abcde")
    member.receive("b", accept("b", 1, 0, b"old"))
    effects = member.lead(
        LogPromise(votes=[vote(0, "c", 1, b"newer"), vote(3, "b", 1, b"last")]),
        LogPromise(votes=[vote(0, "b", 1, b"old"), vote(1, "b", 1, b"one")]),
    )
    (proposal,) = sent(effects, LogAccept)
    filler = LogItem(origin=proposal.round)
    assert proposal.first == 0
    assert list(proposal.items) == [item(b"newer", "c", 1), item(b"one"), filler, item(b"last")]


def test_a_filled_hole_is_applied_as_nothing():
    member = Member()
    member.lead(LogPromise(votes=[vote(1, "b", 0, b"x")]))
    assert applied(member.receive("b", accepted(0, 2))) == [(0, None), (1, b"x")]


def test_an_empty_value_is_a_value():
    member = Member("a")
    member.campaign()
    assert applied(member.append(b"", b"tag")) == [(0, b"")]


def test_a_candidate_that_lags_fetches_what_is_decided_before_it_leads():
    member = Member()
    effects = member.lead(LogPromise(decided=1, votes=[vote(1, "b", 0, b"y")]))
    assert member.machine.reign is None
    assert sent(effects, LogFetch) == [LogFetch(decided=0)]
    effects = member.receive("b", LogTail(first=0, decided=1, items=[item(b"x")]))
    assert applied(effects) == [(0, b"x")]
    assert [(a.first, a.items[0].value) for a in sent(effects, LogAccept)] == [(1, b"y")]
    assert [e.leader for e in handed(effects, LeaderChanged)] == ["a"]


def test_a_candidate_that_cannot_fetch_what_is_decided_prepares_a_new_round():
    member = Member()
    member.lead(LogPromise(decided=1))
    member.tick()
    effects = member.tick(member.settings.suspect_s)
    assert sent(effects, LogPrepare) == [LogPrepare(round=round_of("a", 2))]


def test_a_candidate_without_answers_asks_again_in_the_same_round():
    member = Member("abcde")
    member.campaign()
    member.receive("b", LogPromise(round=round_of("a", 1)))
    (again,) = [e for e in member.tick(5.0) if isinstance(e, Send)]
    assert (list(again.to), again.message.round) == (["c", "d", "e"], round_of("a", 1))


def test_one_promise_of_five_makes_no_leader():
    member = Member("abcde")
    member.lead(LogPromise())
    assert member.machine.reign is None


def test_promises_of_an_earlier_round_are_not_counted():
    member = Member()
    member.campaign()
    member.receive("c", LogRejected(promised=round_of("c", 4)))
    effects = member.campaign()
    assert sent(effects, LogPrepare)[0].round == round_of("a", 5)
    member.receive("b", LogPromise(round=round_of("a", 1)))
    assert member.machine.reign is None


def test_an_append_is_proposed_before_the_own_vote_is_written_and_applied_behind_it():
    member = Member()
    member.lead()
    effects = member.append(b"x")
    assert kinds(effects) == ["LogAccept", "Persist"]
    assert barrier_of(effects) == 1
    effects = member.receive("c", accepted(0, 1))
    assert kinds(effects) == ["LogApplied", "LogDecided"]
    assert handed(effects, LogApplied)[0].tag == b"x"


def test_votes_for_later_slots_wait_until_earlier_slots_are_decided():
    member = Member()
    member.lead()
    member.append(b"x")
    member.append(b"y")
    assert applied(member.receive("b", accepted(1, 1))) == []
    assert applied(member.receive("c", accepted(0, 1))) == [(0, b"x"), (1, b"y")]


def test_the_same_vote_twice_counts_once():
    member = Member("abcde")
    member.lead(LogPromise(), LogPromise())
    member.append(b"x")
    member.receive("b", accepted(0, 1))
    assert applied(member.receive("b", accepted(0, 1))) == []
    assert applied(member.receive("c", accepted(0, 1))) == [(0, b"x")]


def test_what_queues_up_while_batches_are_under_way_becomes_one_batch():
    member = Member(batches_open_max=1, window_count_max=4)
    member.lead()
    effects = [member.append(value) for value in (b"1", b"2", b"3", b"4", b"5", b"6")]
    assert [len(sent(e, LogAccept)) for e in effects] == [1, 0, 0, 0, 0, 0]
    effects = member.receive("b", accepted(0, 1))
    (batch,) = sent(effects, LogAccept)
    assert (batch.first, batch.decided, [i.value for i in batch.items]) == (1, 1, [b"2", b"3", b"4", b"5"])
    assert not sent(effects, LogDecided), "the news travels with the batch"


def test_a_candidate_leads_only_behind_its_own_promise():
    effects = Member("a").campaign()
    assert barrier_of(effects) < kinds(effects).index("LeaderChanged")


def test_a_member_alone_decides_by_itself_behind_the_barrier():
    member = Member("a")
    member.campaign()
    effects = member.append(b"x")
    assert kinds(effects) == ["Persist", "LogApplied"]


def test_a_follower_refuses_to_append_and_names_the_leader():
    member = Member()
    assert [e.leader for e in handed(member.append(b"x", b"1"), AppendRefused)] == [None]
    member.receive("b", LogHeartbeat(round=round_of("b", 1)))
    assert [(e.tag, e.leader) for e in handed(member.append(b"x", b"2"), AppendRefused)] == [(b"2", "b")]


def test_a_leader_without_room_refuses_and_names_itself():
    member = Member(queue_count_max=1, window_count_max=1)
    member.lead()
    assert not handed(member.append(b"proposed") + member.append(b"queued"), AppendRefused)
    assert [e.leader for e in handed(member.append(b"too many"), AppendRefused)] == ["a"]


def test_a_log_that_is_not_truncated_is_full_some_day():
    member = Member("a", log_count_max=2)
    member.campaign()
    assert applied(member.append(b"x") + member.append(b"y")) == [(0, b"x"), (1, b"y")]
    assert handed(member.append(b"z"), AppendRefused)
    member.step(Truncate, 1, b"x")
    assert applied(member.append(b"z")) == [(2, b"z")]


def test_an_overtaken_leader_refuses_what_it_has_not_proposed():
    member = Member(window_count_max=1)
    member.lead()
    member.append(b"proposed")
    member.append(b"queued")
    effects = member.receive("c", LogHeartbeat(round=round_of("c", 2)))
    assert [(e.tag, e.leader) for e in handed(effects, AppendRefused)] == [(b"queued", "c")]


@pytest.mark.parametrize("mine", [True, False])
def test_an_overtaken_leader_tells_its_own_append_from_equal_bytes_of_another(mine):
    member = Member()
    member.lead()
    member.append(b"x", b"tag")
    origin = ("a", 1) if mine else ("c", 2)
    proposal = LogAccept(round=round_of("c", 2), items=[item(b"x", *origin)])
    member.receive("c", proposal)
    effects = member.receive("c", LogDecided(round=round_of("c", 2), decided=1))
    assert applied(effects) == [(0, b"x")]
    assert [e.tag for e in handed(effects, LogApplied)] == [b"tag" if mine else None]
    assert [e.tag for e in handed(effects, AppendRefused)] == ([] if mine else [b"tag"])


def test_a_leader_that_no_majority_answers_steps_down():
    member = Member("abcde")
    member.lead(LogPromise(), LogPromise())
    member.now += 2 * member.settings.suspect_s
    member.receive("b", LogEcho(round=round_of("a", 1)))
    effects = member.tick(0.1)
    assert [e.leader for e in handed(effects, LeaderChanged)] == [None]
    assert handed(member.append(b"x"), AppendRefused)


def test_a_leader_asks_again_for_votes_that_are_overdue():
    member = Member()
    member.lead()
    member.append(b"x")
    assert not sent(member.tick(), LogAccept)
    again = [e for e in member.tick(member.settings.retry_s) if isinstance(e, Send)]
    assert [(list(e.to), type(e.message)) for e in again] == [
        (["b", "c"], LogHeartbeat),
        (["b"], LogAccept),
        (["c"], LogAccept),
    ]
    assert not sent(member.tick(), LogAccept)


def test_after_a_channel_reset_what_may_be_lost_is_sent_again():
    member = Member()
    member.campaign()
    assert kinds(member.step(ChannelReset, "c", 13)) == ["LogPrepare"]
    member.receive("b", LogPromise(round=round_of("a", 1)))
    member.append(b"x")
    assert kinds(member.step(ChannelReset, "c", 13)) == ["LogHeartbeat", "LogAccept"]
    member.receive("c", LogEcho(round=round_of("a", 1), decided=0))
    member.receive("b", accepted(0, 1))
    assert kinds(member.step(ChannelReset, "b", 12)) == ["LogHeartbeat"]
    assert member.step(ChannelReset, "somebody else", 99) == []


def test_a_fetch_is_repeated_after_a_channel_reset():
    member = Member()
    member.receive("b", LogHeartbeat(round=round_of("b", 1), decided=1))
    assert kinds(member.step(ChannelReset, "b", 2)) == ["LogFetch"]


def test_a_leader_that_learns_of_a_decision_it_did_not_propose_steps_down():
    member = Member()
    member.lead()
    member.append(b"x", b"tag")
    assert sent(member.receive("c", LogEcho(round=round_of("a", 1), decided=1)), LogFetch)
    effects = member.receive("c", LogTail(first=0, decided=1, items=[item(b"y", "c", 2)]))
    assert applied(effects) == [(0, b"y")]
    assert [e.tag for e in handed(effects, AppendRefused)] == [b"tag"]
    assert member.machine.reign is None


def test_a_leader_may_learn_from_others_that_its_own_proposal_is_decided():
    member = Member()
    member.lead()
    member.append(b"x")
    member.receive("c", LogEcho(round=round_of("a", 1), decided=1))
    effects = member.receive("c", LogTail(first=0, decided=1, items=[item(b"x", "a", 1)]))
    assert [e.tag for e in handed(effects, LogApplied)] == [b"x"]
    assert member.machine.reign is not None
    assert [a.first for a in sent(member.append(b"y"), LogAccept)] == [1]


# ----------------------------------------------------------------------------------------------- snapshots


def test_whoever_lags_behind_a_truncated_log_gets_the_snapshot():
    member = Member()
    member.receive("b", accept("b", 1, 0, b"x", b"y"))
    member.receive("b", LogDecided(round=round_of("b", 1), decided=2))
    member.step(Truncate, 1, b"state")
    assert sent(member.receive("c", LogFetch(decided=0)), LogInstall) == [
        LogInstall(slot=1, decided=2, snapshot=b"state")
    ]
    assert len(sent(member.receive("c", LogFetch(decided=1)), LogTail)[0].items) == 1


def test_a_snapshot_replaces_the_log_and_hides_what_became_of_own_appends():
    member = Member()
    member.lead()
    member.append(b"x", b"tag")
    effects = member.receive("c", LogInstall(slot=3, decided=4, snapshot=b"state"))
    (snapshot,) = handed(effects, LogSnapshot)
    assert (snapshot.slot, snapshot.snapshot, snapshot.unknown) == (3, b"state", (b"tag",))
    assert sent(effects, LogFetch) == [LogFetch(decided=3)]
    assert member.machine.state.entries == {}
    assert [e.slot for e in handed(member.restart(), LogSnapshot)] == [3]


def test_a_snapshot_of_what_is_known_already_changes_nothing():
    member = Member()
    member.receive("b", accept("b", 1, 0, b"x"))
    member.receive("b", LogDecided(round=round_of("b", 1), decided=1))
    assert member.receive("c", LogInstall(slot=1, decided=1, snapshot=b"state")) == []


def test_truncating_twice_at_one_slot_changes_nothing():
    member = Member("a")
    member.campaign()
    member.append(b"x")
    assert kinds(member.step(Truncate, 1, b"state")) == ["Persist"]
    assert member.step(Truncate, 1, b"state") == []


# ---------------------------------------------------------------------------------------------- broken rules


def test_two_values_decided_for_one_slot_stop_the_process():
    member = Member()
    member.receive("b", accept("b", 1, 0, b"x"))
    member.receive("b", LogDecided(round=round_of("b", 1), decided=1))
    with pytest.raises(InvariantBroken, match="decided twice"):
        member.receive("c", LogTail(first=0, decided=1, items=[item(b"y", "c", 2)]))


def test_a_later_round_that_proposes_something_else_in_a_decided_slot_stops_the_process():
    member = Member()
    member.receive("b", accept("b", 1, 0, b"x"))
    member.receive("b", LogDecided(round=round_of("b", 1), decided=1))
    with pytest.raises(InvariantBroken, match="is decided"):
        member.receive("c", accept("c", 2, 0, b"y"))


def test_an_overtaken_leader_may_still_propose_in_a_slot_that_was_fetched_and_gets_no_vote():
    member = Member()
    member.receive("b", LogHeartbeat(round=round_of("b", 1)))
    member.receive("c", LogEcho(round=round_of("a", 9), decided=1))
    member.receive("c", LogTail(first=0, decided=1, items=[item(b"y", "c", 2)]))
    answer = sent(member.receive("b", accept("b", 1, 0, b"x")), LogAccepted)[0]
    assert (answer.count, answer.decided) == (0, 1)


def test_a_log_with_gaps_on_disk_stops_the_process():
    member = Member()
    member.receive("b", accept("b", 1, 0, b"x", b"y"))
    member.receive("b", accept("b", 1, 2, b"z", decided=2))
    del member.disk[b"e" + bytes(8)]
    with pytest.raises(InvariantBroken, match="gaps"):
        member.restart()


@pytest.mark.parametrize(("slot", "snapshot"), [(1, b""), (0, b"too large")])
def test_a_snapshot_that_the_client_cannot_have_stops_the_process(slot, snapshot):
    with pytest.raises(InvariantBroken):
        Member(snapshot_bytes_max=5).step(Truncate, slot, snapshot)


BAD_MESSAGES = {
    "a round of somebody else": LogPrepare(round=round_of("c", 1)),
    "no round": LogHeartbeat(),
    "round 0": LogDecided(round=round_of("b", 0)),
    "a round number without end": LogPrepare(round=round_of("b", NUMBER_MAX + 1)),
    "a promise without end": LogRejected(promised=round_of("c", NUMBER_MAX + 1)),
    "slots without end": LogHeartbeat(round=round_of("b", 1), decided=NUMBER_MAX + 1),
    "an empty proposal": LogAccept(round=round_of("b", 1)),
    "a proposal beyond the last slot": accept("b", 1, NUMBER_MAX + 1, b"x"),
    "a proposal wider than the window": accept("b", 1, 0, *[b"x"] * 5),
    "a value too large": accept("b", 1, 0, b"x" * 9),
    "an item without origin": LogAccept(round=round_of("b", 1), items=[LogItem(value=b"x")]),
    "votes for more than the window": LogAccepted(round=round_of("a", 1), count=5),
    "a vote outside the window": LogPromise(votes=[vote(4, "b", 0, b"x")]),
    "a vote for a decided slot": LogPromise(decided=2, votes=[vote(1, "b", 0, b"x")]),
    "a vote twice": LogPromise(round=round_of("a", 1), votes=[vote(1, "b", 0, b"x")] * 2),
    "a vote above the promise": LogPromise(round=round_of("a", 1), votes=[vote(1, "b", 2, b"x")]),
    "a vote without round": LogPromise(votes=[LogVote(slot=1, item=item(b"x"))]),
    "a tail of undecided slots": LogTail(first=0, decided=1, items=[item(b"x"), item(b"y")]),
    "an empty tail of a longer log": LogTail(first=0, decided=1),
    "a tail too long": LogTail(first=0, decided=9, items=[item(b"x")] * 4),
    "a snapshot of undecided slots": LogInstall(slot=2, decided=1, snapshot=b"x"),
    "a snapshot too large": LogInstall(slot=1, decided=1, snapshot=b"x" * 6),
}


@pytest.mark.parametrize("message", BAD_MESSAGES.values(), ids=BAD_MESSAGES.keys())
def test_what_no_correct_peer_sends_is_refused_and_leaves_nothing_behind(message):
    member = Member(window_count_max=4, value_bytes_max=8, fetch_count_max=3, snapshot_bytes_max=5)
    member.campaign()
    before = (dict(member.disk), member.machine.buffers(), member.machine.highest, member.machine.number_max)
    with pytest.raises(RemoteProtocolError):
        member.receive("b", message)
    after = (dict(member.disk), member.machine.buffers(), member.machine.highest, member.machine.number_max)
    assert after == before


def test_a_stranger_is_refused():
    with pytest.raises(RemoteProtocolError):
        Member().receive("e", LogFetch())


def test_a_value_too_large_is_a_bug_of_the_machine_beside_it():
    with pytest.raises(InvariantBroken):
        Member(value_bytes_max=3).append(b"four")


# ------------------------------------------------------------------------------------------------ the rest


def test_every_message_of_the_log_fits_into_a_packet():
    fields = {type(getattr(Packet(), field.name)) for field in Packet.DESCRIPTOR.fields}
    assert set(LogReplica.handles) <= fields


def test_the_clock_ticks_from_the_start_on():
    member = Member()
    for effects in (member.restart(), member.tick()):
        assert [(e.name, e.delay) for e in effects if isinstance(e, SetTimer)] == [
            (TIMER, member.settings.heartbeat_s)
        ]


def test_a_timer_of_another_name_means_nothing():
    assert Member().step(TimerFired, "other", 0) == []
