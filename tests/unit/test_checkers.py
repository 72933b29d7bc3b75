"""Each checker sees the wrong history it is there for, and has nothing to say about a right one."""

from typing import Any

import pytest

from ordercast.core import packets
from ordercast.core.ids import envelope_id, last_key_of, order_key, pack_u64
from ordercast.core.machine import ResetLog, Watermark
from ordercast.sim.board import MessageKey, Receipt
from ordercast.sim.checkers.ending import check_all_or_nothing, check_receipts, check_refused
from ordercast.sim.checkers.order import check_acyclic, check_causality, check_fifo
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.scalatom.traffic import TrafficChecker
from ordercast.v1.common_pb2 import (
    REFUSAL_GAP,
    Envelope,
    Header,
)
from ordercast.v1.consensus_pb2 import Accept, Accepted, Decide, Round
from ordercast.v1.scalatom_pb2 import EnvelopeDecided, Gossip, GossipAsk, HistoryEntry, RecTs
from ordercast.v1.sequencer_pb2 import Disseminate, EnvelopeDelivered
from tests.unit.driving import destinations, view_of
from tests.unit.histories import REPLICAS, History, violates

# ------------------------------------------------------------------------------------------ agreement, integrity


def test_replicas_that_deliver_the_same_are_right():
    history = History()
    one, two = history.send("a"), history.send("a")
    history.order(a=[one, two])
    assert history.logs.delivered == 6, "counted over all replicas"


def test_another_envelope_at_the_same_position_breaks_agreement():
    history = History()
    one, two = history.send("a"), history.send("a")
    history.deliver("n1", "a", history.entry("a", one, 5))
    with violates("agreement"):
        history.deliver("n2", "a", history.entry("a", two, 6, first_offset=0))


@pytest.mark.parametrize("difference", ["key", "outcome", "offset"])
def test_the_same_envelope_with_another_key_outcome_or_offset_breaks_agreement(difference):
    history = History()
    one = history.send("a")
    right, wrong = history.entry("a", one, 5), history.entry("a", one, 5)
    if difference == "key":
        wrong.order_key = order_key(6, wrong.envelope.header.id)
    elif difference == "outcome":
        wrong.outcomes[0].refusal = REFUSAL_GAP
    else:
        wrong.first_offset = 1
    history.deliver("n1", "a", right)
    with violates("agreement"):
        history.deliver("n2", "a", wrong)


def test_a_delivery_of_a_process_that_crashed_right_afterwards_counts():
    """Durable, though nobody saw it: agreement is uniform."""
    history = History()
    one, two = history.send("a"), history.send("a")
    history.logs.on_commit("n1", "a", 0, history.entry("a", one, 5))
    with violates("agreement"):
        history.deliver("n2", "a", history.entry("a", two, 6, first_offset=0))


def test_a_restarted_replica_must_deliver_the_same_again():
    history = History()
    one, two = history.send("a"), history.send("a")
    entry = history.entry("a", one, 5)
    history.deliver("n1", "a", entry, 0)
    history.deliver("n1", "a", entry, 0)
    with violates("agreement"):
        history.deliver("n1", "a", history.entry("a", two, 6, first_offset=0), 0)


def test_a_skipped_position_breaks_agreement():
    history = History()
    one = history.send("a")
    with violates("agreement"):
        history.deliver("n1", "a", history.entry("a", one, 5), 1)


def test_a_snapshot_beyond_what_was_delivered_breaks_agreement():
    history = History()
    history.order(a=[history.send("a")])
    history.logs.on_log_reset("n2", ResetLog("a", 1))
    with violates("agreement"):
        history.logs.on_log_reset("n2", ResetLog("a", 2))


def test_a_message_delivered_twice_is_not_exactly_once():
    history = History()
    one = history.send("a")
    history.everywhere("a", one, 5)
    history.everywhere("a", one, 6, duplicate=True, first_offset=1)
    assert history.logs.groups["a"].messages == [one]
    with violates("exactly-once"):
        history.deliver("n1", "a", history.entry("a", one, 7))


def test_a_message_that_nobody_sent_breaks_integrity():
    history = History()
    with violates("integrity"):
        history.deliver("n1", "a", history.entry("a", (b"p", ("a",), 1), 5))


def test_a_message_with_another_payload_breaks_integrity():
    history = History()
    one = history.send("a")
    with violates("integrity"):
        history.deliver("n1", "a", history.entry("a", one, 5, payload=b"forged"))


def test_a_message_delivered_in_a_group_it_is_not_for_breaks_integrity():
    history = History()
    one = history.send("b")
    with violates("integrity"):
        history.deliver("n1", "a", history.entry("a", one, 5))


def test_a_delivery_by_a_process_that_is_no_replica_breaks_integrity():
    history = History()
    one = history.send("a")
    with violates("integrity"):
        history.deliver("n4", "a", history.entry("a", one, 5))


@pytest.mark.parametrize(("of_the_entry", "of_the_span"), [(2, 2), (2, 1), (1, 2), (1, 0)])
def test_an_offset_that_is_not_the_next_breaks_integrity(of_the_entry, of_the_span):
    history = History()
    one, two = history.send("a"), history.send("a")
    history.everywhere("a", one, 5)
    wrong = history.entry("a", two, 6)
    wrong.first_offset = of_the_entry
    wrong.outcomes[0].spans[0].first_offset = of_the_span
    with violates("integrity"):
        history.deliver("n1", "a", wrong)


def test_a_key_that_does_not_rise_breaks_the_order():
    history = History()
    one, two = history.send("a"), history.send("a")
    history.everywhere("a", one, 5)
    with violates("order"):
        history.deliver("n1", "a", history.entry("a", two, 4))


# ------------------------------------------------------------------------------------------------------ watermarks


def test_a_watermark_behind_which_everything_was_delivered_is_right():
    history = History()
    history.everywhere("a", history.send("a"), 5)
    history.logs.on_watermark("n1", Watermark("a", last_key_of(8), 0))
    history.everywhere("a", history.send("a"), 9)
    assert history.logs.groups["a"].watermark == last_key_of(8)


def test_a_delivery_at_or_below_a_watermark_breaks_it():
    history = History()
    one = history.send("a")
    history.logs.on_watermark("n1", Watermark("a", last_key_of(8), 0))
    with violates("watermark"):
        history.deliver("n2", "a", history.entry("a", one, 8))


def test_a_delivery_at_the_very_key_of_a_watermark_breaks_it():
    history = History()
    entry = history.entry("a", history.send("a"), 8)
    history.logs.on_watermark("n1", Watermark("a", entry.order_key, 0))
    with violates("watermark"):
        history.deliver("n2", "a", entry)


def test_a_watermark_of_a_replica_that_is_not_that_far_itself_is_wrong():
    history = History()
    one = history.send("a")
    history.deliver("n1", "a", history.entry("a", one, 5))
    history.logs.on_watermark("n2", Watermark("a", last_key_of(4), 0))
    with violates("watermark"):
        history.logs.on_watermark("n2", Watermark("a", last_key_of(5), 0))


# --------------------------------------------------------------------------------------------------- order of all


def check_order(history: History) -> None:
    for check in (check_acyclic, check_fifo, check_causality):
        check(history.logs.groups, history.board)


def test_an_order_that_all_groups_share_is_right():
    history = History()
    one, two, three = history.send("ab"), history.send("bc"), history.send("abc")
    history.order(a=[one, three], b=[one, two, three], c=[two, three])
    check_order(history)


def test_two_groups_that_disagree_break_the_order():
    history = History()
    one, two = history.send("ab"), history.send("ab", producer=b"q")
    history.order(a=[one, two], b=[two, one])
    with violates("order"):
        check_acyclic(history.logs.groups, history.board)


def test_a_cycle_over_three_groups_breaks_the_order_though_no_two_groups_disagree():
    history = History()
    one, two, three = (history.send(groups, producer=groups.encode()) for groups in ("ac", "ab", "bc"))
    history.order(a=[one, two], b=[two, three], c=[three, one])
    with violates("order"):
        check_acyclic(history.logs.groups, history.board)


def test_a_cycle_through_what_a_sender_had_seen_breaks_the_order():
    """m1 before m2 in a, and m1's sender had seen m3, which had seen m2."""
    history = History()
    two = history.send("a", producer=b"x")
    three = history.send("c", producer=b"y", after=[two])
    one = history.send("a", producer=b"z", after=[three])
    history.order(a=[one, two], c=[three])
    with violates("order"):
        check_acyclic(history.logs.groups, history.board)


def test_the_shortest_cycle_is_explained_by_name():
    history = History()
    one, two = history.send("ab"), history.send("ab", producer=b"q")
    others = [history.send("a", producer=b"other") for _ in range(5)]
    history.order(a=[*others, one, two], b=[two, one])
    with pytest.raises(Violation) as raised:
        check_acyclic(history.logs.groups, history.board)
    for part in ("[a] q to a,b #1", "[b] p to a,b #1"):
        assert part in raised.value.explanation
    assert "other" not in raised.value.explanation


def test_messages_of_one_producer_out_of_the_order_sent_are_not_fifo():
    history = History()
    one, two = history.send("a"), history.send("ab")
    history.order(a=[two, one])
    with violates("fifo"):
        check_fifo(history.logs.groups, history.board)


def test_messages_to_one_set_are_fifo_even_if_unordered():
    history = History()
    one, two = history.send("a", unordered=True), history.send("a", unordered=True)
    history.order(a=[two, one])
    with violates("fifo"):
        check_fifo(history.logs.groups, history.board)


def test_an_unordered_message_may_pass_those_to_other_sets():
    history = History()
    one, two = history.send("a"), history.send("ab", unordered=True)
    history.order(a=[two, one])
    check_fifo(history.logs.groups, history.board)


def test_different_producers_owe_each_other_no_order():
    history = History()
    one, two = history.send("a"), history.send("a", producer=b"q")
    history.order(a=[two, one])
    check_order(history)


def test_an_early_message_behind_two_later_ones_is_found_though_its_neighbour_is_in_order():
    history = History()
    one, two, three = history.send("a"), history.send("ab"), history.send("a", producer=b"q")
    history.order(a=[two, three, one])
    with violates("fifo"):
        check_fifo(history.logs.groups, history.board)


def test_a_message_before_one_that_its_sender_had_seen_breaks_causality():
    history = History()
    one = history.send("a")
    two = history.send("a", producer=b"q", after=[one])
    history.order(a=[two, one])
    with violates("causality"):
        check_causality(history.logs.groups, history.board)


def test_what_a_sender_had_seen_elsewhere_is_no_matter_of_causality_here():
    history = History()
    one = history.send("b")
    two = history.send("a", producer=b"q", after=[one])
    history.order(a=[two], b=[one])
    check_order(history)


# ------------------------------------------------------------------------------------------------------ the end


def receipt(key: MessageKey, **offsets: int) -> Receipt:
    return Receipt(key, order_key(0, envelope_id(1, 0)), offsets, duplicate=False)


def test_a_receipt_with_the_offsets_of_the_log_is_right():
    history = History()
    one = history.send("ab")
    history.order(a=[one], b=[one])
    history.board.receipts.append(receipt(one, a=0, b=0))
    check_receipts(history.logs, history.board)


def test_a_receipt_for_what_one_group_did_not_deliver_is_wrong():
    history = History()
    one = history.send("ab")
    history.order(a=[one])
    history.board.receipts.append(receipt(one, a=0, b=0))
    with violates("receipt"):
        check_receipts(history.logs, history.board)


@pytest.mark.parametrize("offsets", [{"a": 1, "b": 0}, {"a": 0}])
def test_a_receipt_with_another_offset_is_wrong(offsets):
    history = History()
    one = history.send("ab")
    history.order(a=[one], b=[one])
    history.board.receipts.append(receipt(one, **offsets))
    with violates("receipt"):
        check_receipts(history.logs, history.board)


def test_what_was_refused_for_good_is_nowhere():
    history = History()
    one, two = history.send("a"), history.send("a")
    history.order(a=[one])
    history.board.refused[two] = None
    check_refused(history.logs, history.board)
    history.board.refused[one] = None
    with violates("receipt"):
        check_refused(history.logs, history.board)


def test_a_repetition_of_what_is_not_there_was_not_delivered_once():
    history = History()
    one = history.send("a")
    with violates("exactly-once"):
        history.everywhere("a", one, 1, duplicate=True)


def test_a_receipt_with_another_order_key_is_wrong():
    history = History()
    one = history.send("a")
    history.order(a=[one])
    wrong = receipt(one, a=0)
    wrong.order_key = order_key(7, envelope_id(1, 0))
    history.board.receipts.append(wrong)
    with violates("receipt"):
        check_receipts(history.logs, history.board)


def test_what_one_group_delivered_each_must_have_delivered_in_the_end():
    history = History()
    one = history.send("ab")
    history.order(a=[one])
    with violates("agreement"):
        check_all_or_nothing(history.logs)
    history.order(b=[one])
    check_all_or_nothing(history.logs)


# ------------------------------------------------------------------------------------------------------- traffic

ID = envelope_id(21, 0)


class Traffic:
    """An envelope to a and b was submitted by g1; n7 accepts for b."""

    def __init__(self) -> None:
        self.checker = TrafficChecker(view_of(REPLICAS, acceptors={"b": "n3 n7"}))
        header = Header(id=ID, destinations=destinations("a", "b"))
        self.send("g1", "n1 n2 n3 n4 n5", Disseminate(envelope=Envelope(header=header)))

    def send(self, source: str, to: str, message: Any, size: int | None = None) -> None:
        self.checker.on_send(source, to.split(), message, len(packets.encode(message)) if size is None else size)


def test_the_sender_the_replicas_and_the_acceptors_may_speak_of_an_envelope():
    traffic = Traffic()
    traffic.send("n1", "n2 n3 n4 n5", RecTs(id=ID, rec_ts=3, groups=destinations("a")))
    traffic.send("n4", "n1 n7", Accept(instance=ID, value=pack_u64(3), groups=destinations("a", "b")))
    traffic.send("n7", "n4", Accepted(instance=ID))
    traffic.send("n1", "g1", EnvelopeDecided(id=ID, order_key=order_key(3, ID)))
    assert traffic.checker.by_kind == {
        "disseminate": 5,
        "rec_ts": 4,
        "accept": 2,
        "accepted": 1,
        "envelope_decided": 1,
    }


@pytest.mark.parametrize(
    ("source", "to"),
    [("n1", "n2 n6"), ("n6", "n1"), ("n1", "g2")],
    ids=["to a stranger", "by a stranger", "to a gateway"],
)
def test_a_word_to_or_by_somebody_an_envelope_is_not_for_is_one_participant_too_many(source, to):
    with violates("participants"):
        Traffic().send(source, to, Decide(instance=ID, value=pack_u64(3)))


@pytest.mark.parametrize("kind", ["gossip", "delivered"])
def test_an_envelope_spoken_of_in_a_group_it_is_not_for_is_one_role_too_many(kind):
    """Between processes that it is for: they hold replicas of other groups too."""
    entries = [HistoryEntry(id=ID, rec_ts=3)]
    message = Gossip(group="c", entries=entries) if kind == "gossip" else EnvelopeDelivered(id=ID, group="c")
    with violates("participants"):
        Traffic().send("n1", "n2", message)


def test_a_word_about_an_envelope_that_nobody_sent_is_found():
    with violates("participants"):
        Traffic().send("n1", "n2", RecTs(id=envelope_id(21, 1), groups=destinations("a")))


def test_gossip_without_entries_is_about_no_envelope():
    Traffic().send("n6", "n1", Gossip(group="c", clock=3))


def test_a_message_that_grows_with_more_than_its_destinations_is_too_large():
    traffic = Traffic()
    stamp = RecTs(id=ID, rec_ts=3, groups=destinations("a", "b"))
    traffic.send("n3", "n1", stamp)
    with violates("size"):
        traffic.send("n3", "n1", stamp, size=61)
    with violates("size"):
        traffic.send("n3", "n1", Decide(instance=ID, value=bytes(30)))


def test_gossip_may_grow_with_its_entries_and_only_with_them():
    traffic = Traffic()
    entries = [HistoryEntry(id=ID, rec_ts=2**40)] * 100
    traffic.send("n1", "n2", Gossip(group="a", base=2**40, clock=2**41, entries=entries, forgotten=bytes(24)))
    with violates("size"):
        traffic.send("n1", "n2", Gossip(group="a", forgotten=bytes(100)))


def test_an_accept_may_name_as_many_open_envelopes_as_a_gateway_may_have():
    accept = Accept(
        instance=ID,
        round=Round(owner=300),
        value=pack_u64(3),
        groups=destinations("a", "b"),
        done=300,
        open=range(200, 264),
    )
    Traffic().send("n3", "n1 n2", accept)


def test_a_question_about_no_envelope_has_its_size_too():
    with violates("size"):
        Traffic().send("n1", "n2", GossipAsk(group="a" * 100))
