"""What is judged about virtually synchronous groups: a right history passes, and whatever is wrong is seen."""

import copy
from collections.abc import Callable

import pytest

from ordercast.core.ids import pack_u64
from ordercast.local.audit import audit
from ordercast.local.evidence import Evidence
from tests.unit.causal_stamps import restamping
from tests.unit.isis_stories import A, Story, each, forget_stamps, put_in_order, right, right_story


def test_a_right_history_is_clean() -> None:
    verdict = audit(right())
    assert verdict.is_clean, verdict.findings
    assert not verdict.findings
    assert verdict.acknowledged == 6


def test_a_right_history_of_a_total_domain_is_clean() -> None:
    story = Story("total")
    story.send("m1", "a")
    story.send("m2", "b", after="m1")
    story.log("a", "1:0.1", "m1")
    story.log("b", "1:0.1", "m2", {"a": "1:0.1"})
    verdict = audit(story.tell())
    assert verdict.is_clean, verdict.findings


def test_a_replica_that_is_behind_is_no_disagreement() -> None:
    evidence = right()
    del evidence.logs[A]["n3"][2:]
    assert audit(evidence).is_clean


# ----------------------------------------------------------------------------------------- evidence that is wrong

Break = Callable[[Evidence], None]
#: What is done to the evidence, which count rises, and what the finding says.
MUTANTS: dict[str, tuple[Break, str, str]] = {}


def mutant(count: str, text: str) -> Callable[[Break], Break]:
    def register(break_: Break) -> Break:
        MUTANTS[break_.__name__.replace("_", " ")] = (break_, count, text)
        return break_

    return register


@mutant("lost", "b'm4' has a receipt and is not in a")
def an_acknowledged_message_is_in_no_log(evidence: Evidence) -> None:
    for entries in each(evidence, "a"):
        del entries[3:]


@mutant("order_violations", "its receipt says 7")
def a_receipt_shows_another_offset(evidence: Evidence) -> None:
    evidence.receipts[b"m4"].offsets["a"] = 7


@mutant("order_violations", "shows an order key that it has nowhere")
def a_receipt_shows_another_key(evidence: Evidence) -> None:
    evidence.receipts[b"m4"].order_key = pack_u64(77)


@mutant("duplicated", "is in a#1 at 0 and")
def a_message_is_there_twice(evidence: Evidence) -> None:
    for entries in each(evidence, "a"):
        again = copy.deepcopy(entries[0])
        again.order_key, again.first_offset = pack_u64(len(entries)), 5
        again.outcomes[0].spans[0].first_offset = 5
        entries.append(again)


@mutant("order_violations", "n1 and n2 differ at position 1 of a#1")
def two_replicas_have_two_orders(evidence: Evidence) -> None:
    entries = evidence.logs[A]["n2"]
    entries[0], entries[1] = copy.deepcopy(entries[1]), copy.deepcopy(entries[0])
    for position, entry in enumerate(entries[:2]):
        entry.order_key = pack_u64(position)


@mutant("order_violations", "n1 and n3 differ at position 4 of a#1")
def two_replicas_have_two_stamps(evidence: Evidence) -> None:
    with restamping(evidence.logs[A]["n3"][4]) as stamp:
        stamp.epoch = 9


@mutant("order_violations", "n2 has position 0 of a#1 behind 1")
def a_replica_shows_its_log_backwards(evidence: Evidence) -> None:
    entries = evidence.logs[A]["n2"]
    entries[0], entries[1] = entries[1], entries[0]


@mutant("lost", "reader misses a:1 to 1")
def a_subscriber_misses_one(evidence: Evidence) -> None:
    del evidence.seen[("reader", "a")][1]


@mutant("duplicated", "reader sees a:1 again")
def a_subscriber_sees_one_again(evidence: Evidence) -> None:
    seen = evidence.seen[("reader", "a")]
    seen.insert(2, seen[1])


@mutant("order_violations", "where the log has another message")
def a_subscriber_sees_something_else(evidence: Evidence) -> None:
    evidence.seen[("reader", "a")][1] = (1, b"m6")


@mutant("order_violations", "b'm3' is in a#1 and not in b#2")
def a_message_without_a_receipt_is_in_one_of_its_two_groups(evidence: Evidence) -> None:
    del evidence.receipts[b"m3"], evidence.seen[("reader", "b")][1]
    for entries in each(evidence, "b"):
        del entries[1]
    for entries in each(evidence, "a"):
        # Nothing comes after it: that it is missing would be seen by that, too.
        for entry in entries[4:]:
            with restamping(entry) as stamp:
                stamp.ClearField("carried")
                stamp.ClearField("times")


@mutant("order_violations", "b'm3' is in a#1 and not in b#2")
def the_two_groups_know_a_message_by_two_numbers(evidence: Evidence) -> None:
    for entries in each(evidence, "b"):
        entries[1].envelope.header.ranges[0].first_sequence = 2
        entries[1].outcomes[0].spans[0].first_sequence = 2


@mutant("order_violations", "nobody sent it")
def somebody_else_wrote_into_the_log(evidence: Evidence) -> None:
    del evidence.sent[b"m2"], evidence.receipts[b"m2"]


@mutant("order_violations", "was sent to")
def a_message_has_other_destinations_than_it_was_sent_to(evidence: Evidence) -> None:
    for entries in each(evidence, "b"):
        entries[0].envelope.header.destinations.add(group=A)


@mutant("order_violations", "number 1 of its set, behind number 2")
def a_producer_is_overtaken_by_itself(evidence: Evidence) -> None:
    evidence.sent[b"m4"].after = evidence.sent[b"m6"].after = ()
    put_in_order(evidence, "a", "m4 m3 m1 m5 m6")
    forget_stamps(evidence)


@mutant("order_violations", "number 3 of its set, behind number 1")
def a_message_of_a_producer_is_left_out(evidence: Evidence) -> None:
    del evidence.sent[b"m4"], evidence.receipts[b"m4"]
    put_in_order(evidence, "a", "m1 m3 m5 m6")
    forget_stamps(evidence)


@mutant("order_violations", "behind what its producer sent later")
def a_producer_is_overtaken_by_itself_in_another_set(evidence: Evidence) -> None:
    for entries in (*each(evidence, "a"), *each(evidence, "b")):
        for entry in entries:
            for range_ in entry.envelope.header.ranges:
                range_.producer = b"p" if range_.producer == b"q" else range_.producer
    evidence.sent[b"m5"].after = evidence.sent[b"m6"].after = ()
    put_in_order(evidence, "a", "m1 m4 m3 m5 m6")
    forget_stamps(evidence)


@mutant("order_violations", "a has b'm5' before b'm3', which its sender had seen")
def an_answer_comes_before_what_its_sender_had_seen(evidence: Evidence) -> None:
    put_in_order(evidence, "a", "m1 m5 m3 m4 m6")
    forget_stamps(evidence)


@mutant("order_violations", "a has b'm4' before b'm1', which its sender had seen")
def an_answer_to_an_answer_in_another_group_comes_first(evidence: Evidence) -> None:
    for payload in (b"m1", b"m4", b"m6"):
        evidence.sent[payload].unordered = True
    for entries in each(evidence, "a"):
        entries[3].envelope.header.ranges[0].producer = b"s"
        entries[3].envelope.header.ranges[0].first_sequence = 1
        entries[3].outcomes[0].spans[0].first_sequence = 1
        entries[5].envelope.header.ranges[0].first_sequence = 2
        entries[5].outcomes[0].spans[0].first_sequence = 2
    put_in_order(evidence, "a", "m4 m1 m3 m5 m6")
    forget_stamps(evidence)


@mutant("order_violations", "comes after b#2/1:2.1, which is lost")
def what_somebody_answered_to_in_another_group_is_gone(evidence: Evidence) -> None:
    for entries in each(evidence, "b"):
        with restamping(entries[1]) as stamp:
            stamp.key.member, stamp.key.number = 0, 2


@mutant("order_violations", "what is at position 4 comes after b#2/1:2.7, which is lost")
def what_a_cast_carries_along_is_gone(evidence: Evidence) -> None:
    for entries in each(evidence, "a"):
        with restamping(entries[4]) as stamp:
            stamp.carried[0].counts[0] = 7


@mutant("order_violations", "comes after a#1/2:1.1, which is not before it")
def what_an_entry_comes_after_in_its_own_group_is_behind_it(evidence: Evidence) -> None:
    evidence.sent[b"m6"].after = (b"m4",)
    put_in_order(evidence, "a", "m1 m3 m4 m6 m5")


@mutant("order_violations", "a#1/3:1.1, of a later view")
def an_entry_comes_after_one_of_a_later_view(evidence: Evidence) -> None:
    for entries in each(evidence, "a"):
        with restamping(entries[5]) as stamp:
            stamp.times[0].view = 3


@mutant("order_violations", "view 1 comes behind view 2")
def a_view_comes_back(evidence: Evidence) -> None:
    for entries in each(evidence, "a"):
        with restamping(entries[4]) as stamp:
            stamp.view, stamp.key.number = 1, 3
        with restamping(entries[5]) as stamp:
            stamp.times[0].view = 1


@mutant("order_violations", "is there without number 1 of its caster")
def the_first_cast_of_a_member_is_gone(evidence: Evidence) -> None:
    for entries in each(evidence, "a"):
        with restamping(entries[4]) as stamp:
            stamp.key.number = 2


@mutant("order_violations", "comes behind number 1 of its caster")
def a_cast_is_in_the_log_twice(evidence: Evidence) -> None:
    for entries in each(evidence, "a"):
        with restamping(entries[5]) as stamp:
            stamp.key.number = 1


@mutant("order_violations", "an ABCAST at position 0 is not what the domain is for")
def a_cast_in_a_causal_domain_was_ordered(evidence: Evidence) -> None:
    for entries in each(evidence, "a"):
        with restamping(entries[0]) as stamp:
            stamp.total = True


@mutant("order_violations", "says nothing of where it comes from")
def an_entry_has_no_stamp(evidence: Evidence) -> None:
    for entries in each(evidence, "a"):
        entries[5].ClearField("protocol")


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_wrong_evidence_is_noticed(name: str) -> None:
    break_, count, text = MUTANTS[name]
    evidence = right()
    break_(evidence)
    verdict = audit(evidence)
    assert getattr(verdict, count) > 0, verdict
    assert any(text in finding for finding in verdict.findings), verdict.findings


def test_a_message_to_several_groups_in_a_total_domain_is_an_order_that_nobody_promised() -> None:
    evidence = right_story("total").tell()
    evidence.domains[A].settings["ordering"] = "causal"
    assert any("is not what the domain is for" in finding for finding in audit(evidence).findings)


def test_evidence_of_other_domains_is_judged_beside_it() -> None:
    """Groups without a domain that is known are ordered by SCALATOM: an 8-byte key is nothing there."""
    evidence = right()
    evidence.logs["c#3"] = {"n1": []}
    assert audit(evidence).is_clean
