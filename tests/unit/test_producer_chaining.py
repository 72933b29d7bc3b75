"""Which of a producer's messages may leave a gateway: none overtakes, and none waits without need (E6)."""

from dataclasses import dataclass
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from ordercast.core.ids import envelope_id
from ordercast.gateway.producer import Groups, Producer, WaitingRequest
from ordercast.gateway.rows import Rows

A, B, C, AB, BC = ("a",), ("b",), ("c",), ("a", "b"), ("b", "c")


@dataclass(frozen=True)
class Sent:
    """A message that waits, or an envelope that is under way."""

    groups: Groups
    unordered: bool = False


def producer_of(waiting: list[Sent], undecided: list[Sent]) -> Producer:
    producer = Producer(b"p", "c1", "c1")
    for number, envelope in enumerate(undecided):
        producer.undecided[envelope_id(1, number)] = (envelope.groups, not envelope.unordered)
    for number, item in enumerate(waiting):
        producer.waiting.append(
            WaitingRequest(
                "c1",
                b"p",
                0,
                item.groups,
                number,
                Rows(b"", 0, (item.groups,), ()),
                item.unordered,
                b"",
                b"",
                size=1,
            )
        )
    return producer


def leaving(*waiting: Groups | Sent, undecided: tuple[Groups | Sent, ...] = ()) -> list[int]:
    """The numbers of those that leave, from 1 as in m1, m2, m3."""
    items, envelopes = [[w if isinstance(w, Sent) else Sent(w) for w in ws] for ws in (waiting, undecided)]
    return [item.first_sequence + 1 for item in producer_of(items, envelopes).ready()]


def test_everything_to_one_set_leaves_together():
    assert leaving(A, A, A) == [1, 2, 3]


def test_messages_to_sets_without_a_common_group_leave_together():
    assert leaving(A, B, C, A) == [1, 2, 3, 4]


def test_the_third_message_does_not_ride_with_the_first_past_the_second():
    """m1 to {a}, m2 to {a, b}, m3 to {a}: m3 in m1's envelope would come before m2."""
    assert leaving(A, AB, A) == [1]


def test_a_message_waits_for_one_that_waits_itself():
    """m2 waits for m1 in a; m3 shares only b with m2, and c goes on."""
    assert leaving(A, AB, BC, C) == [1]
    assert leaving(A, AB, B, C) == [1, 4]


def test_a_message_waits_until_the_envelope_it_shares_a_group_with_is_decided():
    assert leaving(AB, undecided=(A,)) == []
    assert leaving(AB, undecided=(BC,)) == []
    assert leaving(AB, undecided=(C,)) == [1]


def test_the_next_envelope_to_the_same_set_waits_for_the_last():
    assert leaving(A, A, undecided=(A,)) == []


def test_the_chain_runs_on_one_decision_at_a_time():
    producer = producer_of([Sent(A), Sent(AB), Sent(A)], [])
    for number in range(3):
        (item,) = producer.ready()
        assert item.first_sequence == number
        producer.waiting.remove(item)
        producer.undecided[b"id"] = (item.groups, True)
        assert producer.ready() == []
        producer.envelope_decided(b"id", 0.0)


def test_an_unordered_message_passes_those_to_other_sets():
    assert leaving(A, Sent(AB, unordered=True), undecided=(A,)) == [2]
    assert leaving(Sent(AB, unordered=True), A) == [1, 2]


def test_an_unordered_message_still_keeps_the_sequence_of_its_own_set():
    """A gap would be refused at delivery."""
    assert leaving(Sent(A, unordered=True), undecided=(Sent(A, unordered=True),)) == []
    assert leaving(A, Sent(A, unordered=True), undecided=(AB,)) == []


def test_an_unordered_message_holds_up_only_its_own_set():
    assert leaving(AB, A, undecided=(Sent(A, unordered=True),)) == [1]


# ------------------------------------------------------------------------------------------- by its definition


def may_leave(index: int, waiting: list[Sent], undecided: list[Sent]) -> bool:
    """In sequence within its set; and if ordered, behind every earlier ordered message that shares a group."""
    item, earlier = waiting[index], waiting[:index]
    if any(envelope.groups == item.groups for envelope in undecided):
        return False
    if any(
        other.groups == item.groups and not may_leave(number, waiting, undecided)
        for number, other in enumerate(earlier)
    ):
        return False
    overtaken = [other for other in (*undecided, *earlier) if other.groups != item.groups and not other.unordered]
    return item.unordered or not any(set(other.groups) & set(item.groups) for other in overtaken)


SENT = st.builds(
    Sent,
    st.sets(st.sampled_from("abcd"), min_size=1, max_size=3).map(lambda groups: tuple(sorted(groups))),
    st.booleans(),
)


@given(st.lists(SENT, max_size=8), st.lists(SENT, max_size=3))
def test_exactly_those_leave_that_may(waiting, undecided):
    ready = {item.first_sequence for item in producer_of(waiting, undecided).ready()}
    assert ready == {number for number in range(len(waiting)) if may_leave(number, waiting, undecided)}


@given(st.lists(SENT, min_size=1, max_size=8), st.data())
def test_whatever_is_decided_first_envelopes_of_shared_groups_leave_in_the_order_sent(sent, data):
    """Each envelope is decided before any later one that shares a group with it leaves."""
    producer = producer_of(sent, [])
    left: list[int] = []
    under_way: dict[bytes, list[int]] = {}
    counter = count()
    while producer.waiting or producer.undecided:
        by_set: dict[Groups, list[WaitingRequest]] = {}
        for item in producer.ready():
            by_set.setdefault(item.groups, []).append(item)
        for groups, items in by_set.items():
            id_ = envelope_id(2, next(counter))
            under_way[id_] = [item.first_sequence for item in items]
            for item in items:
                producer.waiting.remove(item)
                for number in range(item.first_sequence):
                    one, other = sent[number], sent[item.first_sequence]
                    ordered = one.groups == other.groups or not (one.unordered or other.unordered)
                    if ordered and set(one.groups) & set(other.groups):
                        assert number in left or number in under_way[id_]
            producer.undecided[id_] = (groups, any(not item.unordered for item in items))
        assert producer.undecided, "something is always under way, or nothing could go on"
        decided = data.draw(st.sampled_from(sorted(producer.undecided)))
        producer.envelope_decided(decided, 0.0)
        left += under_way.pop(decided)
    assert sorted(left) == list(range(len(sent)))


def waiting_for(groups: Groups, number: int = 0) -> WaitingRequest:
    return WaitingRequest("c1", b"p", 0, groups, number, Rows(b"", 0, (groups,), ()), False, b"", b"", size=1)


def test_a_producer_that_is_held_up_goes_on_with_what_comes_newly():
    producer = producer_of([Sent(AB)], [Sent(A)])
    assert producer.ready() == []
    newcomer = waiting_for(C, 1)
    producer.accept(newcomer)
    assert producer.ready() == [newcomer]


def test_a_producer_that_is_held_up_goes_on_when_what_held_it_up_is_given_up():
    """m1 to {a, b} waits for an envelope to {a}, and m2 to {b} waits for m1; then a is deleted, and with it m1.

    m2 is given back as well: the client sends it again, and then it leaves.
    """
    producer = Producer(b"p", "c1", "c1")
    producer.undecided[b"id"] = (A, True)
    first, second = waiting_for(AB), waiting_for(B)
    for item in (first, second):
        producer.accept(item)
    assert producer.ready() == []
    assert producer.give_up(A) == ([first], [second])
    producer.accept(second)
    assert producer.ready() == [second]
