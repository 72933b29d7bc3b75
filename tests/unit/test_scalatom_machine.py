"""One process under SCALATOM, word by word: stamps, decisions, histories, delivery, silence, watermarks."""

import pytest

from ordercast.core.errors import InvariantBroken
from ordercast.core.ids import last_key_of, pack_u64, sn_of
from ordercast.core.machine import (
    Advance,
    Decided,
    Deliver,
    Effect,
    InstanceClosed,
    Persist,
    Propose,
    Send,
    Watermark,
)
from ordercast.protocols.scalatom.settings import Settings
from ordercast.v1.common_pb2 import REFUSAL_GAP
from ordercast.v1.consensus_pb2 import Decide
from ordercast.v1.scalatom_pb2 import (
    EnvelopeDecided,
    EnvelopeDurable,
    Gossip,
    GossipAsk,
    Have,
    HistoryEntry,
    Pull,
    RecTs,
)
from ordercast.v1.sequencer_pb2 import Disseminate, EnvelopeDelivered, FetchLog
from tests.unit.driving import (
    CONFIGURATION,
    delivered,
    destinations,
    envelope_of,
    handed,
    key_of,
    kinds,
    place,
    range_of,
    sends,
    sent,
    sent_when_durable,
)
from tests.unit.scalatom_host import GOSSIP_S, SILENCE_S, Host, chunk_of, told_in

# ---------------------------------------------------------------------------------------------- steps 1 and 2


def test_envelope_and_stamp_are_on_disk_before_the_stamp_leaves():
    host, envelope = Host(), envelope_of(0, "a")
    effects = host.take(envelope)
    assert place(effects, Persist) < place(effects, RecTs)
    assert effects[place(effects, Persist)].barrier
    host.restart()
    assert sends(host.receive("n2", Pull(id=envelope.header.id)), Disseminate) == [
        (["n2"], Disseminate(envelope=envelope))
    ]


def test_a_stamp_goes_to_all_destinations_and_names_the_groups_it_stands_for():
    effects = Host().take(envelope_of(0, "a", "b"))
    stamp = RecTs(id=envelope_of(0).header.id, rec_ts=0, groups=destinations("a", "b"))
    assert sends(effects, RecTs) == [(["n2", "n3", "n4", "n5"], stamp)]


def test_a_stamp_names_no_group_that_the_process_does_not_hold():
    effects = Host().take(envelope_of(0, "a", "c"))
    assert [list(stamp.groups) for stamp in sent(effects, RecTs)] == [destinations("a")]


def test_stamps_rise_in_each_group_by_itself_and_one_for_several_is_above_all_of_them():
    host = Host()
    stamps = [
        sent(host.take(envelope_of(n, *groups)), RecTs)[0].rec_ts
        for n, groups in enumerate(["a", "b", "a", "ab", "a", "b"])
    ]
    assert stamps == [0, 0, 1, 2, 3, 3]


def test_the_stamp_is_above_what_the_session_has_seen():
    host = Host()
    assert sent(host.take(envelope_of(0, "a", session=40)), RecTs)[0].rec_ts == 41
    assert sent(host.take(envelope_of(1, "a", session=7)), RecTs)[0].rec_ts == 42


def test_a_second_copy_gets_no_second_stamp():
    host, envelope = Host(), envelope_of(0, "a")
    host.take(envelope)
    for source in ("g1", "n2"):
        assert host.take(envelope, source) == []
    assert host.machine.buffers()["history"] == 1
    assert host.next_stamp() == 1


def test_a_replica_that_relays_is_answered_with_the_stamp():
    host, envelope = Host(), envelope_of(0, "a")
    host.take(envelope)
    effects = host.take(envelope, "n3", again=True)
    assert [(to, stamp.rec_ts) for to, stamp in sends(effects, RecTs)] == [(["n3"], 0)]


# ------------------------------------------------------------------------------------------------------- step 3


def test_the_coordinator_proposes_the_highest_stamp_once_a_qualified_majority_has_stamped():
    host = Host()
    envelope = envelope_of(7, "a", "b", coordinator="n1", done=3, open=[1])
    host.take(envelope)
    assert handed(host.stamp("n2", envelope, 9), Propose) == []
    assert handed(host.stamp("n3", envelope, 4), Propose) == [], "all of a, but one of b"
    (proposal,) = handed(host.stamp("n5", envelope, 2), Propose)
    assert (proposal.instance, proposal.value) == (envelope.header.id, pack_u64(9))
    assert (proposal.groups, proposal.configurations) == (("a", "b"), (CONFIGURATION, CONFIGURATION))
    assert (proposal.owner, proposal.done, proposal.open) == (host.incarnation, 3, (1,))
    assert handed(host.stamp("n4", envelope, 50), Propose) == [], "once"


def test_the_first_stamp_of_a_replica_counts_and_not_a_later_one():
    host, envelope = Host(), envelope_of(0, "a", "b")
    host.take(envelope)
    host.stamp("n2", envelope, 9)
    host.stamp("n2", envelope, 30)
    assert handed(host.stamp("n4", envelope, 3), Propose)[0].value == pack_u64(9)


def test_stamps_that_come_before_the_envelope_count():
    host, envelope = Host(), envelope_of(0, "a")
    host.stamp("n2", envelope, 9)
    assert [p.value for p in handed(host.take(envelope), Propose)] == [pack_u64(9)]


def test_who_is_not_the_coordinator_does_not_propose_at_first():
    host, envelope = Host(), envelope_of(0, "a", coordinator="n2")
    host.take(envelope)
    assert handed(host.stamp("n2", envelope, 0) + host.stamp("n3", envelope, 0), Propose) == []


def test_the_coordinator_does_not_act_as_such_in_its_next_life():
    host, envelope = Host(), envelope_of(0, "a", coordinator="n1")
    host.take(envelope)
    host.restart()
    assert handed(host.stamp("n2", envelope, 0) + host.stamp("n3", envelope, 0), Propose) == []


def test_a_stamp_of_an_unrelated_process_that_came_first_is_not_counted():
    """n4 holds b and the envelope is for a; that shows only when the envelope itself comes."""
    host, envelope = Host(), envelope_of(0, "a")
    host.receive("n4", RecTs(id=envelope.header.id, rec_ts=70, groups=destinations("b")))
    host.take(envelope)
    assert handed(host.stamp("n2", envelope, 5), Propose)[0].value == pack_u64(5)


# ------------------------------------------------------------------------------------------------------- step 4


def test_the_gateway_hears_of_a_decision_at_once_and_before_delivery():
    host, envelope = Host(), envelope_of(0, "a")
    host.take(envelope)
    effects = host.decide(envelope, 9)
    expected = EnvelopeDecided(id=envelope.header.id, order_key=key_of(9, envelope))
    assert sends(effects, EnvelopeDecided) == [(["g1"], expected)]
    assert delivered(effects) == []


def test_a_decision_raises_the_clock_above_it():
    host, envelope = Host(), envelope_of(0, "a")
    host.take(envelope)
    host.told("n2", envelope, 30)
    assert host.next_stamp() == 31


def test_the_clock_is_on_disk_before_anybody_is_told_it():
    host, envelope = Host(clock_reserved=5), envelope_of(0, "a")
    host.take(envelope)
    host.stamp("n2", envelope, 30)
    effects = host.told("n2", envelope, 30)
    assert place(effects, Persist) < place(effects, Gossip)
    assert effects[place(effects, Persist)].barrier


def test_who_is_known_to_hold_an_envelope_is_told_its_entry_before_it_has_to_wait_but_not_urgently():
    host, envelope = Host(), envelope_of(0, "a", "b")
    host.take(envelope)
    (send,) = [e for e in host.stamp("n2", envelope, 0) if isinstance(e, Send) and isinstance(e.message, Gossip)]
    assert (list(send.to), [entry.id for entry in send.message.entries]) == (["n2"], [envelope.header.id])
    assert not send.urgent
    effects = host.decide(envelope, 0)
    assert [entry for gossip in told_in(effects, "n2") for entry in gossip.entries] == []


def test_the_group_is_told_a_clock_above_the_decision():
    host, envelope = Host(gossip_early=False), envelope_of(0, "a", "b")
    host.take(envelope)
    for peer in ("n2", "n3", "n4"):
        host.stamp(peer, envelope, 0)
    effects = host.decide(envelope, 9)
    entry = HistoryEntry(id=envelope.header.id, rec_ts=0)
    for peer in ("n2", "n3", "n4"):
        (gossip,) = told_in(effects, peer)
        assert (gossip.clock, list(gossip.entries)) == (10, [entry])
    assert gossip.group == "b"
    assert told_in(effects, "n5") == [], "it is not known to hold the envelope"


def test_an_entry_is_withheld_from_a_peer_until_it_is_known_to_hold_the_envelope():
    """[E4] And while it is, the clock told is at most the entry's stamp."""
    host, envelope = Host(), envelope_of(0, "a", session=4)
    host.take(envelope)
    host.decide(envelope, 9)
    (gossip,) = told_in(host.tick(GOSSIP_S), "n2")
    assert (gossip.clock, list(gossip.entries)) == (5, [])
    (gossip,) = told_in(host.stamp("n2", envelope, 0), "n2")
    assert (gossip.base, gossip.clock, [entry.rec_ts for entry in gossip.entries]) == (5, 10, [5])


def test_an_entry_that_a_peer_once_heard_of_by_the_envelope_itself_is_still_withheld():
    """Sent is not received: only the peer's own word counts."""
    host, envelope = Host(), envelope_of(0, "a")
    host.take(envelope)
    assert sent(host.tick(SILENCE_S), Disseminate), "relayed"
    (gossip,) = told_in(host.tick(GOSSIP_S), "n2")
    assert gossip.clock == 0


def test_a_decision_of_an_unknown_envelope_waits_for_the_envelope():
    host, envelope = Host(), envelope_of(0, "a")
    assert delivered(host.told("n2", envelope, 9)) == []
    host.take(envelope)
    assert delivered(host.gossip("n2", 10)) == [("a", 0, envelope.header.id)]


def test_a_proposer_here_is_stopped_by_a_decision_from_elsewhere():
    host, envelope = Host(), envelope_of(0, "a")
    host.take(envelope)
    host.stamp("n2", envelope, 3)
    (decided,) = handed(host.told("n3", envelope, 3), Decided)
    assert decided.instance == envelope.header.id


@pytest.mark.parametrize("late", [False, True], ids=["undelivered", "delivered"])
def test_two_decisions_of_one_envelope_stop_the_process(late):
    host, envelope = Host(), envelope_of(0, "a")
    host.order(envelope, 9) if late else host.told("n2", envelope, 9)
    host.told("n3", envelope, 9)
    with pytest.raises(InvariantBroken):
        host.told("n3", envelope, 10)


# ---------------------------------------------------------------------------------------------- steps 5 and 6


def test_delivery_waits_for_the_histories_of_a_majority_up_to_the_decision():
    host, envelope = Host(), envelope_of(0, "a", "b")
    host.take(envelope)
    host.decide(envelope, 9)
    assert delivered(host.gossip("n2", 9)) == [], "complete below 9, and m may be at 9"
    assert delivered(host.gossip("n2", 10)) == [("a", 0, envelope.header.id)]
    assert delivered(host.gossip("n4", 10)) == [("b", 0, envelope.header.id)], "each group by its own histories"


def test_a_group_of_one_is_its_own_majority():
    host, envelope = Host("n6"), envelope_of(0, "c", coordinator="n6")
    effects = host.take(envelope) + host.decide(envelope, 0)
    assert delivered(effects) == [("c", 0, envelope.header.id)]


def test_a_statement_that_does_not_follow_on_what_is_known_is_asked_for_again():
    host, envelope = Host(), envelope_of(0, "a")
    host.take(envelope)
    host.decide(envelope, 9)
    effects = host.gossip("n2", 20, base=5)
    assert sends(effects, GossipAsk) == [(["n2"], GossipAsk(group="a", configuration=CONFIGURATION, base=0))]
    assert delivered(effects) == []
    assert delivered(host.gossip("n2", 20, base=0)) != []


def test_whoever_asks_again_is_told_everything_from_there_on():
    host, one, two = Host(), envelope_of(0, "a"), envelope_of(1, "a")
    for envelope in (one, two):
        host.take(envelope)
        host.stamp("n2", envelope, 0)
    host.tick(GOSSIP_S)
    (gossip,) = told_in(host.tick(GOSSIP_S), "n2")
    assert (gossip.base, gossip.clock, list(gossip.entries)) == (2, 2, []), "nothing new, but with its base"
    ask = GossipAsk(group="a", configuration=CONFIGURATION, base=1)
    (gossip,) = told_in(host.receive("n2", ask), "n2")
    assert (gossip.base, gossip.clock, [e.id for e in gossip.entries]) == (1, 2, [two.header.id])


@pytest.mark.parametrize(("rec_ts", "blocks"), [(8, True), (9, True), (10, False)])
def test_an_undecided_envelope_with_a_stamp_up_to_the_decision_comes_first(rec_ts, blocks):
    """[E2] At the very same number too: it may be decided there, with a lower id."""
    host, envelope, other = Host(), envelope_of(1, "a"), envelope_of(0, "a")
    host.take(envelope)
    host.decide(envelope, 9)
    effects = host.gossip("n2", 20, (rec_ts, other))
    assert (delivered(effects) == []) == blocks
    if blocks:
        host.take(other)
        effects = host.told("n2", other, 9)
        assert [id_ for _, _, id_ in delivered(effects)] == [other.header.id, envelope.header.id]


@pytest.mark.parametrize("own_first", [False, True])
def test_of_several_stamps_on_a_predecessor_the_lowest_counts(own_first):
    host, envelope, other = Host(), envelope_of(1, "a"), envelope_of(0, "a", session=14)
    host.take(envelope)
    host.decide(envelope, 9)
    if own_first:
        host.take(other)
    assert delivered(host.gossip("n2", 20, (3, other))) == []
    host.take(other)
    assert delivered(host.gossip("n3", 20)) == [], "stamped 15 here, and 3 by n2"


def test_a_predecessor_that_is_decided_to_come_later_blocks_no_more():
    host, envelope, other = Host(), envelope_of(1, "a"), envelope_of(0, "a")
    host.take(envelope)
    host.decide(envelope, 9)
    host.gossip("n2", 20, (3, other))
    host.take(other)
    assert delivered(host.told("n2", other, 15)) == [("a", 0, envelope.header.id), ("a", 1, other.header.id)]


def test_envelopes_are_delivered_by_sn_and_then_by_id():
    host = Host()
    sns = {0: 9, 1: 4, 2: 9, 3: 5}
    for counter, sn in sns.items():
        host.take(envelope_of(counter, "a"))
        host.decide(envelope_of(counter, "a"), sn)
    order = [id_ for _, _, id_ in delivered(host.gossip("n2", 20))]
    assert order == [envelope_of(counter).header.id for counter in (1, 3, 0, 2)]


def test_a_peer_that_forgot_what_we_have_not_delivered_does_not_count():
    """[E8] What it no longer lists may come first: our own log has to get there."""
    host, envelope = Host(), envelope_of(1, "a")
    host.take(envelope)
    host.decide(envelope, 9)
    forgotten = key_of(3, envelope_of(0))
    assert delivered(host.gossip("n2", 20, forgotten=forgotten, position=1)) == []
    assert [(to, fetch.position) for to, fetch in sends(host.tick(), FetchLog)] == [(["n2"], 0)]
    assert delivered(host.gossip("n3", 20)) != [], "somebody who forgot nothing counts"


def test_the_receipt_waits_for_no_sync_but_the_word_that_it_is_durable_does():
    host, envelope = Host(), envelope_of(0, "a", ranges=[range_of(b"p", 1, 2)])
    host.take(envelope)
    host.decide(envelope, 9)
    effects = host.gossip("n2", 10)
    ((to, told),) = sends(effects, EnvelopeDelivered)
    assert (to, told.group, told.order_key) == (["g1"], "a", key_of(9, envelope))
    assert [(s.first_sequence, s.count, s.first_offset) for o in told.outcomes for s in o.spans] == [(1, 2, 0)]
    durable = EnvelopeDurable(id=envelope.header.id, group="a", configuration=CONFIGURATION)
    assert sent_when_durable(effects, EnvelopeDurable) == [(["g1"], durable)]
    assert sent(effects, EnvelopeDurable) == []


def test_a_delivery_and_what_follows_from_it_are_one_transaction():
    host, envelope = Host(), envelope_of(0, "a")
    host.take(envelope)
    host.decide(envelope, 9)
    effects = host.gossip("n2", 10)
    persists = [effect for effect in effects if isinstance(effect, Persist)]
    assert len(persists) == 1
    assert not persists[0].barrier
    assert place(effects, Deliver) < place(effects, Persist)
    kinds_of_record = {key[:1] for key, value in persists[0].records if value is not None}
    assert {b"p", b"s", b"d"} <= kinds_of_record, "position, producer and the id itself"


def test_offsets_count_new_messages_only():
    host = Host()
    ranges = [[range_of(b"p", 1, 3)], [range_of(b"p", 2, 3)], [range_of(b"p", 9, 1)], [range_of(b"q", 1, 1)]]
    for counter, wanted in enumerate(ranges):
        host.order(envelope_of(counter, "a", ranges=wanted), 10 + counter)
    entries = host.logs["a"].entries
    assert [entry.first_offset for entry in entries] == [0, 3, 4, 4]
    assert entries[2].outcomes[0].refusal == REFUSAL_GAP
    assert [(s.count, s.duplicate) for s in entries[1].outcomes[0].spans] == [(2, True), (1, False)]


# ------------------------------------------------------------------------------------------------------ silence


def test_an_envelope_that_was_only_heard_of_is_pulled_after_a_silence():
    host, envelope = Host(), envelope_of(0, "a")
    host.stamp("n2", envelope, 3)
    assert sent(host.tick(SILENCE_S - 0.01), Pull) == []
    assert sends(host.tick(0.02), Pull) == [(["n2"], Pull(id=envelope.header.id))]


def test_an_envelope_that_came_is_not_pulled():
    host, envelope = Host(), envelope_of(0, "a")
    host.stamp("n2", envelope, 3)
    host.take(envelope)
    assert sent(host.tick(10.0), Pull) == []


def test_an_envelope_that_nobody_can_give_is_given_up_in_the_end():
    host, envelope = Host(), envelope_of(0, "a")
    host.stamp("n2", envelope, 3)
    pulls = sum(len(sent(host.tick(10.0), Pull)) for _ in range(20))
    assert pulls == 8
    assert host.machine.buffers()["held"] == 0


def test_an_envelope_that_others_wait_for_is_never_given_up():
    host, envelope = Host(), envelope_of(0, "a")
    host.gossip("n2", 20, (3, envelope))
    for _ in range(20):
        host.tick(10.0)
    assert host.machine.buffers()["held"] == 1


def test_an_envelope_is_relayed_to_those_who_have_not_stamped_it():
    host, envelope = Host(), envelope_of(0, "a", "b", coordinator="n2")
    host.take(envelope)
    host.stamp("n3", envelope, 0)
    ((to, relayed),) = sends(host.tick(SILENCE_S), Disseminate)
    assert (to, relayed) == (["n2", "n4", "n5"], Disseminate(envelope=envelope, again=True))


def test_an_undecided_envelope_is_asked_about_and_then_taken_over():
    host, envelope = Host(), envelope_of(0, "a", coordinator="n3")
    host.take(envelope)
    host.stamp("n2", envelope, 7)
    effects = host.tick(SILENCE_S)
    assert [(to, stamp.ask) for to, stamp in sends(effects, RecTs)] == [(["n2"], True)]
    (proposal,) = handed(effects, Propose)
    assert (proposal.value, proposal.owner) == (pack_u64(7), 3), "round 0 stays the coordinator's"


def test_without_a_quorum_of_stamps_it_only_finds_out_what_was_decided():
    host, envelope = Host(), envelope_of(0, "a", coordinator="n3")
    host.take(envelope)
    assert [proposal.value for proposal in handed(host.tick(SILENCE_S), Propose)] == [None]


def test_a_long_wait_for_a_quorum_does_not_make_the_process_patient_ever_after():
    """One envelope waited out an outage; when the next one is lost on its way, somebody has to step in soon."""
    host, one, two = Host(), envelope_of(0, "a"), envelope_of(1, "a")
    host.take(one)
    host.now += 1000.0
    host.order(one, 9)
    host.take(two)
    host.now += 10 * Settings().silence_s_max
    assert sent(host.tick(), Disseminate), "relayed to those who have not stamped it"


def test_whoever_asks_about_an_undecided_envelope_gets_the_stamp():
    host, envelope = Host(), envelope_of(0, "a", session=4)
    host.take(envelope)
    effects = host.stamp("n2", envelope, 0, ask=True)
    assert [(to, stamp.rec_ts, stamp.ask) for to, stamp in sends(effects, RecTs)] == [(["n2"], 5, False)]
    assert sent(effects, Decide) == []


def test_a_late_question_about_a_delivered_envelope_is_answered_with_its_decision():
    host, envelope = Host(), envelope_of(0, "a")
    host.order(envelope, 9)
    for _ in range(2):
        effects = host.stamp("n2", envelope, 0, ask=True)
        decision = Decide(instance=envelope.header.id, value=pack_u64(9))
        assert sends(effects, Decide) == [(["n2"], decision)]
        have = Have(id=envelope.header.id, groups=destinations("a"))
        assert sent_when_durable(effects, Have) == [(["n2"], have)]
        host.restart()


def test_a_late_question_about_an_envelope_that_came_by_the_log_is_answered_with_its_decision():
    giver, host, envelope = Host("n2"), Host(), envelope_of(0, "a", "b", coordinator="n2")
    giver.take(envelope)
    giver.decide(envelope, 9)
    giver.gossip("n3", 10)
    host.receive("n2", chunk_of(*giver.logs["a"].entries))
    assert sent(host.stamp("n4", envelope, 0, ask=True), Decide) == [
        Decide(instance=envelope.header.id, value=pack_u64(9))
    ]


def test_a_pulled_envelope_that_was_delivered_is_answered_with_where():
    host, envelope = Host(), envelope_of(0, "a")
    host.order(envelope, 9)
    effects = host.receive("n2", Pull(id=envelope.header.id))
    assert sent(effects, Disseminate) == []
    assert sent_when_durable(effects, Have) == [(["n2"], Have(id=envelope.header.id, groups=destinations("a")))]


def test_who_lacks_what_a_peer_has_delivered_fetches_its_log():
    host, envelope = Host(), envelope_of(0, "a")
    host.take(envelope)
    effects = host.receive("n2", Have(id=envelope.header.id, groups=destinations("a")))
    assert sends(effects, FetchLog) == [(["n2"], FetchLog(group="a", configuration=CONFIGURATION, position=0))]


def test_a_closed_instance_is_not_taken_for_a_delivery():
    """[E8] Only the place in the log says what came before it."""
    host, envelope = Host(), envelope_of(0, "a")
    host.take(envelope)
    effects = host.step(InstanceClosed, envelope.header.id)
    assert delivered(effects) == []
    assert [to for to, _ in sends(effects, FetchLog)] == [["n2"], ["n3"]]


def test_after_a_reset_the_peer_hears_again_what_may_be_lost():
    host, one, two = Host(), envelope_of(0, "a"), envelope_of(1, "a")
    host.order(one, 9)
    host.take(two)
    host.stamp("n2", two, 12)
    effects = host.connect("n2")
    assert [(stamp.id, stamp.ask) for stamp in sent(effects, RecTs)] == [(two.header.id, True)]
    assert len(told_in(effects, "n2")) == 1, "with its base, even if empty"
    assert [to for to, _ in sends(host.connect("n4"), RecTs)] == [], "it is not for b"


def test_a_gateway_that_resends_hears_again_how_its_envelope_fares():
    host, envelope = Host(), envelope_of(0, "a")
    host.take(envelope)
    assert host.take(envelope, again=True) == []
    host.decide(envelope, 9)
    assert kinds(host.take(envelope, again=True)) == ["EnvelopeDecided"]
    host.gossip("n2", 10)
    effects = host.take(envelope, again=True)
    effects += host.answer_reads(effects)
    (told,) = sent(effects, EnvelopeDelivered)
    assert (told.order_key, len(told.outcomes)) == (key_of(9, envelope), 1)
    assert sent_when_durable(effects, EnvelopeDurable) == [
        (["g1"], EnvelopeDurable(id=envelope.header.id, group="a", configuration=CONFIGURATION))
    ]


def test_a_gateway_that_is_a_replica_too_hears_again_what_we_know():
    """n2 asks as a gateway and misses our stamp as a replica: our reports alone would leave it waiting."""
    host, envelope = Host(), envelope_of(0, "a", gateway="n2")
    host.take(envelope, source="n2")
    assert kinds(host.take(envelope, source="n2", again=True)) == ["RecTs"]
    host.decide(envelope, 9)
    effects = host.take(envelope, source="n2", again=True)
    assert kinds(effects) == ["EnvelopeDecided", "RecTs", "Decide"]
    assert [to for to, _ in sends(effects, Decide)] == [["n2"]]


# ------------------------------------------------------------------------------------------------------ watermarks


def watermarks(effects: list[Effect]) -> list[tuple[str, bytes]]:
    return [(e.group, e.key) for e in effects if isinstance(e, Watermark)]


def test_an_idle_group_says_that_nothing_more_will_come_up_to_a_key():
    host = Host()
    effects = host.step(Advance, "a", last_key_of(30))
    assert watermarks(effects) == [], "a majority has to pass it first"
    assert [(to, g.clock, g.advance) for to, g in sends(effects, Gossip)] == [(["n2"], 31, 31), (["n3"], 31, 31)]
    assert place(effects, Persist) < place(effects, Gossip)
    assert watermarks(host.gossip("n2", 30)) == [("a", last_key_of(29))], "on the way there"
    assert watermarks(host.gossip("n2", 31)) == [("a", last_key_of(30))]
    assert watermarks(host.gossip("n3", 40)) == [], "nobody waits for more"


def test_a_question_that_follows_another_one_does_not_put_off_the_first_ones_answer():
    host = Host()
    host.step(Advance, "a", last_key_of(30))
    host.step(Advance, "a", last_key_of(50))
    assert watermarks(host.gossip("n2", 31)) == [("a", last_key_of(30))]


def test_a_watermark_says_from_which_position_of_the_log_on_it_holds():
    host = Host()
    host.order(envelope_of(0, "a"), 5)
    host.step(Advance, "a", last_key_of(30))
    (watermark,) = [e for e in host.gossip("n2", 31) if isinstance(e, Watermark)]
    assert (watermark.key, watermark.position) == (last_key_of(30), 1)


def test_a_peer_lets_its_clock_pass_and_says_so():
    host = Host()
    effects = host.gossip("n2", 31, advance=31)
    assert [gossip.clock for gossip in told_in(effects, "n2")] == [31]
    assert host.next_stamp() == 31


def test_nothing_is_said_while_an_envelope_up_to_the_key_may_still_come():
    host, envelope = Host(), envelope_of(0, "a")
    host.take(envelope)
    host.step(Advance, "a", last_key_of(30))
    assert last_key_of(30) not in [key for _, key in watermarks(host.gossip("n2", 40))]
    effects = host.told("n2", envelope, 30)
    assert delivered(effects) == [("a", 0, envelope.header.id)]
    assert watermarks(effects) == [("a", last_key_of(30))]
    assert place(effects, Deliver) < place(effects, Watermark)


def test_an_envelope_decided_behind_the_key_does_not_hold_it_up():
    host, envelope = Host(), envelope_of(0, "a")
    host.take(envelope)
    host.step(Advance, "a", last_key_of(30))
    host.gossip("n2", 31)
    assert watermarks(host.told("n2", envelope, 31)) == [("a", last_key_of(30))]


def test_no_delivery_after_a_watermark_is_at_or_below_it():
    host = Host()
    host.step(Advance, "a", last_key_of(30))
    host.gossip("n2", 31)
    host.order(envelope_of(0, "a"), host.machine.clock)
    assert sn_of(host.logs["a"].entries[0].order_key) > 30


# ------------------------------------------------------------------------------------------------- genuineness


def test_nobody_hears_of_an_envelope_but_its_groups_and_its_gateway():
    host = Host()
    effects = host.order(envelope_of(0, "b"), 9)
    effects += host.tick(GOSSIP_S) + host.tick(10.0)
    for effect in effects:
        if isinstance(effect, Send) and not isinstance(effect.message, Gossip):
            assert set(effect.to) <= {"n4", "n5", "g1"}
    for to, gossip in sends(effects, Gossip):
        assert gossip.group == "b" or not gossip.entries, f"{to} is told of b in {gossip.group}"
