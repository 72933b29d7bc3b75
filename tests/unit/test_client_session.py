"""A producer's session, one rule at a time. Faults in all combinations are in test_client_session_faults.py."""

from math import inf

import pytest

from ordercast.client import lanes as lanes_module
from ordercast.client import session as session_module
from ordercast.client.backoff import BACKOFF_S_MAX, SPREAD, backoff_s, wait_s
from ordercast.client.errors import (
    DeadlineExceeded,
    FailedPrecondition,
    Fenced,
    InvalidArgument,
    NotFound,
    OutcomeUnknown,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
)
from ordercast.client.session import Session
from ordercast.client.session_tokens import merge
from ordercast.client.types import Receipt, message_id
from ordercast.core.limits import BATCH_BYTES_MAX, BATCH_MESSAGES_MAX
from ordercast.core.session_token import PARTS_MAX
from ordercast.v1.common_pb2 import Message
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_INVALID_ARGUMENT,
    PUBLISH_STATUS_RESOURCE_EXHAUSTED,
    PUBLISH_STATUS_UNAVAILABLE,
    PublishReply,
    PublishStreamResponse,
)
from tests.unit.adversarial_gateways import World, token_of

A, AB, B = ("a",), ("a", "b"), ("b",)


def connected(**options) -> World:
    world = World(**options)
    world.publish(A)
    world.heal()
    return world


def finish(world: World) -> None:
    while world.read() or world.order() or world.receive():
        pass


def test_messages_to_one_set_that_follow_on_each_other_leave_as_one_request():
    world = connected(credits=(64,), in_flight_max=64)
    for groups in (A, A, AB, AB, A):
        world.publish(groups)
    requests = world.write()
    assert [(tuple(r.groups), r.first_sequence, len(r.messages)) for r in requests] == [
        (A, 2, 2),
        (AB, 1, 2),
        (A, 4, 1),
    ]


def test_ordered_and_unordered_messages_do_not_share_a_request():
    world = connected(credits=(64,), in_flight_max=64)
    world.publish(A)
    world.publish(A, unordered=True)
    assert [request.unordered for request in world.write()] == [False, True]


def test_a_request_is_bounded_in_messages_and_bytes():
    world = connected(credits=(4096,), in_flight_max=4096)
    for _ in range(BATCH_MESSAGES_MAX + 1):
        world.publish(A)
    assert [len(request.messages) for request in world.write()] == [BATCH_MESSAGES_MAX, 1]
    finish(world)
    for number in range(3):
        big = Message(payload=b"x" * (BATCH_BYTES_MAX // 2))
        world.session.publish(big, A, size=big.ByteSize(), handle=10_000 + number, deadline=1e9)
    assert [len(request.messages) for request in world.write()] == [1, 1, 1]


def test_nothing_is_written_before_the_gateway_granted_credits_and_never_more_than_those():
    world = World(credits=(3,), in_flight_max=64)
    for _ in range(10):
        world.publish(A)
    assert world.dial()
    assert world.write() == []
    world.receive()
    assert [len(request.messages) for request in world.write()] == [3]
    assert world.write() == []
    finish(world)
    assert [len(request.messages) for request in world.write()] == [3]


def test_there_is_room_for_no_more_than_the_caller_allows():
    world = World(in_flight_max=3)
    assert [world.publish(A) for _ in range(4)] == [0, 1, 2, None]
    session: Session[int] = Session(b"p", b"i", cell_of=str)
    session.publish(Message(payload=b"x" * 100), A, size=102, handle=1, deadline=1.0)
    assert not session.has_room(session_module.IN_FLIGHT_BYTES_MAX)


def test_a_receipt_says_where_each_message_of_a_run_is():
    world = connected()
    numbers = [world.publish(AB) for _ in range(2)]
    world.heal()
    first, second = (world.outcomes[number] for number in numbers)
    assert (first.offsets, second.offsets) == ({"a": 1, "b": 0}, {"a": 2, "b": 1})
    assert second.message_id == message_id(world.session.producer, AB, 2)
    assert first.order_key == second.order_key
    assert world.session.token == token_of(2)


def test_a_duplicate_whose_place_is_no_longer_known_has_no_offsets():
    world = connected()
    world.publish(A)
    world.write()
    reply = PublishReply(
        producer=world.session.producer, groups=A, first_sequence=2, count=1, status=1, duplicate=True
    )
    reply.offsets.add(group="a", first_offset=0)
    world.session.received(world.session.stream, PublishStreamResponse(replies=[reply]), 0.0, 0.5)
    ((_, receipt),) = world.session.take_settled()
    assert receipt.duplicate
    assert receipt.offsets == {}


def test_after_a_loss_everything_is_repeated_as_it_was_at_the_next_gateway():
    world = connected(credits=(8, 8))
    world.publish(A)
    world.publish(A)
    world.publish(AB)
    before = world.write()
    gateway = world.session.gateway
    world.lose(unread_lost=8)
    assert world.session.gateway == gateway + 1
    assert not world.session.dial_due(world.now)
    world.wait(1.0)
    assert world.dial()
    world.receive()
    assert world.write() == before


def test_a_smaller_gateway_gets_the_repetition_in_smaller_requests():
    world = connected(credits=(8, 2))
    for _ in range(5):
        world.publish(A)
    assert [len(request.messages) for request in world.write()] == [5]
    world.lose()
    world.wait(1.0)
    world.dial()
    world.receive()
    assert [(request.first_sequence, len(request.messages)) for request in world.write()] == [(2, 2)]
    world.heal()
    assert len(world.logs["a"]) == 6


def test_silence_is_a_loss():
    world = connected()
    world.publish(A)
    world.write()
    stream = world.session.stream
    at = world.session.wake_at()
    assert at is not None
    world.wait(at - world.now)
    assert world.session.stream != stream
    assert isinstance(world.session.trouble, Unavailable)


def test_a_gateway_that_never_says_a_first_word_is_given_up():
    world = World()
    world.publish(A)
    world.dial()
    world.wait(session_module.PATIENCE_S)
    assert world.session.stream == 0


def test_a_session_is_as_patient_as_it_is_told():
    session: Session[int] = Session(b"p", b"instance", patience_s=0.5, cell_of=str)
    session.publish(Message(), A, size=1, handle=1, deadline=inf)
    session.dialed(0.0)
    session.tick(0.4, 0.0)
    assert session.stream
    session.tick(0.5, 0.0)
    assert not session.stream


def test_an_idle_session_dials_nobody_and_waits_for_nothing():
    world = connected()
    world.lose()
    world.wait(100.0)
    assert not world.session.dial_due(world.now)
    assert world.session.wake_at() is None or world.session.wake_at() > world.now


def test_backoff_grows_to_its_bound_and_is_spread():
    assert backoff_s(0, 0.0) < backoff_s(0, 0.99) < backoff_s(3, 0.0)
    assert backoff_s(10_000, 1.0) == BACKOFF_S_MAX


def test_nobody_comes_back_sooner_than_a_gateway_says():
    assert wait_s(3, Unavailable("no quorum"), 0.5) == backoff_s(3, 0.5)
    assert wait_s(3, Unavailable("no quorum", retry_after=0.001), 0.5) == backoff_s(3, 0.5)
    assert wait_s(3, Unavailable("no quorum", retry_after=9.0), 0.5) == 9.0


@pytest.mark.parametrize(
    ("status", "is_new"), [(PUBLISH_STATUS_RESOURCE_EXHAUSTED, False), (PUBLISH_STATUS_UNAVAILABLE, True)]
)
def test_after_a_refusal_everything_comes_again_in_order(status, is_new):
    """What was too much goes to the same gateway; a group that this one does not reach, another one may."""
    world = connected(credits=(8, 8))
    numbers = [world.publish(groups) for groups in (A, AB, A)]
    world.gateways[0].refusals.append(status)
    stream = world.session.stream
    world.write()
    finish(world)
    assert world.session.frame(world.now) is None
    world.heal()
    assert (world.session.stream != stream, world.session.gateway) == (is_new, int(is_new))
    assert [world.outcomes[number].offsets["a"] for number in numbers] == [1, 2, 3]


def test_what_was_accepted_before_a_refusal_is_not_sent_again():
    world = connected(credits=(8,))
    first = world.publish(A)
    world.write()
    world.read()
    second = world.publish(B)
    world.gateways[0].refusals.append(PUBLISH_STATUS_RESOURCE_EXHAUSTED)
    world.write()
    world.read()
    world.receive()
    world.wait(1.0)
    assert [tuple(request.groups) for request in world.write()] == [B]
    world.heal()
    assert all(isinstance(world.outcomes[number], Receipt) for number in (first, second))


def test_with_an_answer_still_to_come_what_was_refused_goes_to_a_new_stream():
    """m2 was written behind m1, which is refused. Were m1 repeated now, and then m3, m2 would come behind them."""
    world = connected(credits=(8,))
    stream = world.session.stream
    for _ in range(2):
        world.publish(A)
        world.write()
    world.gateways[0].refusals.append(PUBLISH_STATUS_RESOURCE_EXHAUSTED)
    world.read()
    world.receive()
    world.publish(A)
    world.wait(1.0)
    assert world.session.stream == 0
    world.heal()
    assert world.session.stream > stream
    assert world.logs["a"] == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("chance", [0.0, 0.5, 0.99])
def test_a_refusal_is_waited_out_as_long_as_the_gateway_says_and_a_little_longer(chance):
    world = connected(credits=(8,))
    world.publish(A)
    world.gateways[0].refusals.append(PUBLISH_STATUS_RESOURCE_EXHAUSTED)
    world.gateways[0].retry_after_ms = 700
    world.write()
    world.read()
    world.receive(chance)
    told = world.now + 0.7
    assert told <= world.session.retry_at <= told + 0.7 * SPREAD
    assert world.session.wake_at() == world.session.retry_at
    assert world.session.frame(world.session.retry_at - 0.01) is None


def test_clients_that_were_told_the_same_do_not_come_back_together():
    waits = []
    for chance in (0.1, 0.9):
        world = connected(credits=(8,))
        world.publish(A)
        world.gateways[0].refusals.append(PUBLISH_STATUS_RESOURCE_EXHAUSTED)
        world.write()
        world.read()
        world.receive(chance)
        waits.append(world.session.retry_at - world.now)
    assert waits[0] < waits[1]


def test_a_gateway_cannot_make_a_client_wait_for_ever_nor_not_at_all():
    for told_ms, least, most in (
        (10**9, BACKOFF_S_MAX, BACKOFF_S_MAX * (1 + SPREAD)),
        (1, backoff_s(0, 0.0), 0.1),
    ):
        world = connected(credits=(8,))
        world.publish(A)
        world.gateways[0].refusals.append(PUBLISH_STATUS_RESOURCE_EXHAUSTED)
        world.gateways[0].retry_after_ms = told_ms
        world.write()
        world.read()
        world.receive()
        assert least <= world.session.retry_at - world.now <= most


def test_who_cannot_wait_as_long_as_told_hears_at_the_deadline_when_to_come_back():
    world = connected(credits=(8,))
    number = world.publish(A, timeout=0.5)
    world.gateways[0].refusals.append(PUBLISH_STATUS_RESOURCE_EXHAUSTED)
    world.gateways[0].retry_after_ms = 1500
    world.write()
    finish(world)
    world.wait(0.5)
    assert isinstance(world.outcomes[number], ResourceExhausted)
    assert world.outcomes[number].retry_after == 1.5


def test_what_is_behind_a_refusal_that_was_given_up_is_not_held_up_by_it():
    """The gateway would let nothing pass that shares a group with it, on the same stream, until it comes again."""
    world = connected(credits=(8,))
    stream = world.session.stream
    world.publish(A, timeout=0.5)
    world.gateways[0].refusals.append(PUBLISH_STATUS_RESOURCE_EXHAUSTED)
    world.gateways[0].retry_after_ms = 600
    world.write()
    finish(world)
    world.wait(0.5)
    behind = world.publish(AB)
    world.wait(0.5)
    world.heal()
    assert (world.session.stream, world.session.gateway) == (stream + 1, 0)
    assert world.outcomes[behind].offsets == {"a": 1, "b": 0}


def test_a_refused_opening_comes_again_on_the_same_stream():
    world = connected(is_named=True, credits=(8,))
    stream = world.session.stream
    number = world.publish(AB)
    world.gateways[0].refusals.append(PUBLISH_STATUS_RESOURCE_EXHAUSTED)
    world.write()
    finish(world)
    world.heal()
    assert world.session.stream == stream
    assert isinstance(world.outcomes[number], Receipt)


def test_a_refusal_that_lasts_until_the_deadline_is_what_the_caller_gets():
    world = connected(credits=(8,))
    number = world.publish(A, timeout=1.0)
    behind = world.publish(A)
    world.gateways[0].refusals.append(PUBLISH_STATUS_RESOURCE_EXHAUSTED)
    world.write()
    finish(world)
    world.wait(1.0)
    assert isinstance(world.outcomes[number], ResourceExhausted)
    world.heal()
    assert world.outcomes[behind].message_id.endswith("-2")  # it closed up


def test_what_was_never_written_is_dropped_at_its_deadline():
    world = World()
    number = world.publish(A, timeout=1.0)
    later = world.publish(A)
    world.wait(1.0)
    assert isinstance(world.outcomes[number], DeadlineExceeded)
    world.heal()
    assert world.outcomes[later].message_id.endswith("-1")


def test_what_was_written_is_repeated_after_its_deadline():
    world = connected()
    number = world.publish(A, timeout=1.0)
    world.write()
    world.lose(unread_lost=1)
    world.wait(1.0)
    assert isinstance(world.outcomes[number], OutcomeUnknown)
    later = world.publish(A)
    world.heal()
    assert world.logs["a"] == [b"0", b"1", b"2"]
    assert world.outcomes[later].offsets == {"a": 2}


def test_only_the_message_at_fault_fails():
    world = connected()
    good = world.publish(A)
    bad = world.publish(A, bad=True)
    behind = world.publish(A)
    assert [len(request.messages) for request in world.write()] == [3]
    world.heal()
    assert isinstance(world.outcomes[bad], InvalidArgument)
    assert [world.outcomes[number].offsets for number in (good, behind)] == [{"a": 1}, {"a": 2}]


def payloads(*numbers: int) -> list[bytes]:
    return [str(number).encode() for number in numbers]


def test_what_was_refused_in_several_requests_comes_again_in_its_order():
    """Were {a, b} opened anew when its first two are refused, since two more are under way, the gateway would
    forget their place before {a}.
    """
    world = connected(credits=(64,), in_flight_max=64)
    world.gateways[0].messages_max = 1
    for groups in (AB, AB, A, A, AB, AB):
        world.publish(groups)
    assert [len(request.messages) for request in world.write()] == [2, 2, 2]
    stream = world.session.stream
    world.heal()
    assert world.logs["a"] == payloads(0, 1, 2, 3, 4, 5, 6)
    assert world.session.lanes[AB].epoch == 0
    assert world.session.stream == stream


def test_what_was_refused_with_others_and_is_given_up_holds_nothing_up():
    """Its gateway waits for it to come again. It would take a later message for that, under the same number, and
    let it in before what was refused behind.
    """
    world = connected(credits=(64,), in_flight_max=64)
    world.gateways[0].messages_max = 1
    given_up = [world.publish(AB, timeout=1.0) for _ in range(2)]
    behind = [world.publish(A) for _ in range(2)]
    assert [len(request.messages) for request in world.write()] == [2, 2]
    finish(world)
    assert not world.session.leaves_nothing
    world.wait(1.0)
    assert all(isinstance(world.outcomes[number], DeadlineExceeded) for number in given_up)
    later = world.publish(AB)
    world.heal()
    assert world.logs["a"] == payloads(0, *behind, later)


def test_what_is_behind_a_wrong_request_gets_new_numbers_under_a_new_epoch():
    world = connected()
    world.publish(A, bad=True)
    world.write()
    behind = world.publish(A)
    world.write()
    world.heal()
    assert world.outcomes[behind].message_id.endswith("-2")
    assert world.session.lanes[A].epoch == 1


def test_a_wrong_request_with_nothing_behind_it_costs_no_opening():
    world = connected()
    world.publish(A, bad=True)
    world.heal()
    world.publish(A)
    assert [(request.first_sequence, request.open_token) for request in world.write()] == [(2, b"")]


def test_an_unknown_group_fails_all_that_is_for_it_and_nothing_else():
    world = connected()
    missing = [world.publish(("a", "x")) for _ in range(2)]
    other = world.publish(A)
    world.heal()
    assert all(isinstance(world.outcomes[number], NotFound) for number in missing)
    assert isinstance(world.outcomes[other], Receipt)


def test_a_group_that_went_away_leaves_the_outcome_of_earlier_copies_unknown():
    world = connected()
    number = world.publish(AB)
    world.write()
    world.lose()
    log = world.logs.pop("b")
    world.wait(1.0)
    world.dial()
    world.receive()
    world.write()
    world.streams[1].requests.clear()
    finish(world)
    assert isinstance(world.outcomes[number], OutcomeUnknown)
    world.logs["b"] = log
    later = world.publish(AB)
    world.heal()
    assert isinstance(world.outcomes[later], Receipt)


def test_groups_that_forgot_the_producer_are_opened_anew():
    world = connected()
    for _ in range(2):
        world.forget()
        number = world.publish(A)
        world.heal()
        assert world.outcomes[number].message_id.endswith("-1")


def test_what_forgetful_groups_may_have_stored_has_an_unknown_outcome():
    world = connected()
    number = world.publish(A)
    world.write()
    world.lose(unread_lost=1)
    world.forget()
    world.tables = world._new_tables()
    world.heal()
    assert isinstance(world.outcomes[number], OutcomeUnknown)


def test_a_named_producer_goes_on_where_its_latest_instance_ended():
    world = connected(is_named=True)
    second: Session[int] = Session(b"name", b"j" * 16, is_named=True, cell_of=str)
    first, world.session = world.session, second
    world.streams.clear()
    number = world.publish(A)
    world.heal()
    assert world.outcomes[number].message_id.startswith("name-")
    assert world.outcomes[number].message_id.endswith("-2")
    world.session = first
    world.session.lost(first.stream, Unavailable("lost"), 0.0, 0.5)
    fenced = world.publish(A)
    world.heal()
    assert isinstance(world.outcomes[fenced], Fenced)
    with pytest.raises(Fenced):
        first.publish(Message(), A, size=0, handle=1, deadline=1.0)


def test_an_error_that_repeating_does_not_mend_fails_what_was_not_written():
    world = connected()
    written = world.publish(A)
    world.write()
    waiting = world.publish(A)
    world.session.lost(world.session.stream, PermissionDenied("no"), world.now, 0.5)
    world.settle()
    assert isinstance(world.outcomes[waiting], PermissionDenied)
    assert written not in world.outcomes
    world.heal()
    assert isinstance(world.outcomes[written], Receipt)


def test_closing_tells_everyone_what_is_known():
    world = connected()
    written = world.publish(A)
    world.write()
    waiting = world.publish(A)
    world.session.close()
    world.settle()
    assert isinstance(world.outcomes[written], OutcomeUnknown)
    assert isinstance(world.outcomes[waiting], Unavailable)


def test_a_message_behind_somebody_elses_token_comes_behind_ours_too():
    """In each domain behind what is later, with one request and no opening."""
    world = connected(credits=(64,), in_flight_max=64)
    ours, elsewhere = world.session.token, token_of(3, "e")
    world.publish(B, after=token_of(9))
    world.publish(B, after=elsewhere)
    world.publish(B)
    assert [(request.session, request.open_token) for request in world.write()] == [
        (token_of(9), b""),
        (merge(ours, elsewhere), b""),
        (ours, b""),
    ]
    assert world.session.token == ours, "what one message shows is not what the producer has seen"


def test_messages_behind_the_same_token_share_a_request():
    world = connected(credits=(64,), in_flight_max=64)
    for after in (token_of(9), token_of(9), token_of(8)):
        world.publish(A, after=after)
    assert [len(request.messages) for request in world.write()] == [2, 1]


def test_what_was_read_is_shown_with_the_next_request():
    world = connected()
    world.publish(A)
    world.session.see(token_of(50))
    world.session.see(token_of(40))
    world.session.see(b"")
    assert [request.session for request in world.write()] == [token_of(50)]


def test_a_repetition_shows_what_was_seen_meanwhile():
    world = connected(credits=(8, 8))
    world.publish(A)
    world.write()
    world.lose(unread_lost=1)
    world.session.see(token_of(50))
    world.wait(1.0)
    world.dial()
    world.receive()
    assert [request.session for request in world.write()] == [token_of(50)]


@pytest.mark.parametrize("is_named", [False, True])
def test_one_producer_in_two_domains_shows_what_it_saw_in_both(is_named):
    world = connected(is_named=is_named)
    ours = world.session.token
    world.publish(B)
    request = world.write()[0]
    assert request.session == ours
    reply = PublishReply(producer=request.producer, groups=B, session=token_of(3, "e"))
    world.session.received(world.session.stream, PublishStreamResponse(replies=[reply]), world.now, 0.5)
    world.heal()
    world.publish(A)
    assert world.write()[0].session == merge(world.session.token, token_of(3, "e"))
    assert len(world.session.token) == 2 * len(ours)


def test_an_opening_shows_what_was_seen():
    world = World(is_named=True)
    world.publish(A)
    world.see(7)
    world.dial()
    world.receive()
    (opening,) = world.write()
    assert opening.open_token
    assert opening.session == token_of(7)


def test_a_token_that_the_caller_brought_and_no_gateway_knows_is_an_error():
    world = World()
    made_up = token_of(1)[:-1] + b"?"
    world.session = Session(b"p", b"i", token=made_up, cell_of=str)
    number = world.publish(A)
    world.dial()
    world.receive()
    (request,) = world.session.frame(world.now).requests
    assert request.session == made_up
    reply = PublishReply(
        producer=b"p",
        groups=A,
        first_sequence=1,
        count=1,
        status=PUBLISH_STATUS_INVALID_ARGUMENT,
        detail="no token",
    )
    world.session.received(world.session.stream, PublishStreamResponse(replies=[reply]), world.now, 0.5)
    world.settle()
    assert isinstance(world.outcomes[number], InvalidArgument)


def full_token() -> bytes:
    """With as many domains as a token takes, and none of them the gateways' own."""
    token = b""
    for number in range(PARTS_MAX):
        token = merge(token, token_of(1, f"domain-{number}"))
    return token


def test_a_token_that_does_not_fit_beside_ours_is_refused():
    world = connected()
    with pytest.raises(InvalidArgument, match="at most 16 domains"):
        world.session.publish(Message(), A, size=0, handle=1, deadline=1e9, after=full_token())
    with pytest.raises(InvalidArgument, match="not a session token"):
        world.session.publish(Message(), A, size=0, handle=1, deadline=1e9, after=b"made up")
    assert world.session.pending == 0


def test_who_has_seen_more_domains_than_a_token_takes_publishes_no_more():
    """It is told so; what is under way gets its receipt."""
    session: Session[int] = Session(b"p", b"i", token=full_token(), cell_of=str)
    session.publish(Message(), A, size=0, handle=1, deadline=1e9)
    session.dialed(0.0)
    session.received(1, PublishStreamResponse(credits=8), 0.0, 0.5)
    session.frame(0.0)
    receipt = PublishReply(producer=b"p", groups=A, first_sequence=1, count=1, status=1, session=token_of(1))
    session.received(1, PublishStreamResponse(replies=[receipt]), 0.0, 0.5)
    ((_, outcome),) = session.take_settled()
    assert isinstance(outcome, Receipt)
    assert session.token == full_token()
    with pytest.raises(FailedPrecondition, match="at most 16 domains"):
        session.publish(Message(), A, size=0, handle=2, deadline=1e9)


def test_what_a_message_waits_to_show_keeps_its_room_in_the_token():
    session: Session[int] = Session(b"p", b"i", cell_of=str)
    session.publish(Message(), A, size=0, handle=1, deadline=1e9, after=full_token())
    session.see(token_of(1))
    with pytest.raises(FailedPrecondition):
        session.publish(Message(), A, size=0, handle=2, deadline=1e9)
    session.dialed(0.0)
    session.received(1, PublishStreamResponse(credits=8), 0.0, 0.5)
    assert [request.session for request in session.frame(0.0).requests] == [full_token()]


def test_the_number_of_sets_is_bounded(monkeypatch):
    monkeypatch.setattr(lanes_module, "LANES_MAX", 2)
    world = connected()
    for groups in (AB, B, A):
        number = world.publish(groups)
        world.heal()
        assert isinstance(world.outcomes[number], Receipt)
    assert len(world.session.lanes) == 2
    assert world.outcomes[number].message_id.endswith("-2")  # what was forgotten was learned again
    named = connected(is_named=True)
    named.publish(AB)
    with pytest.raises(ResourceExhausted):
        named.publish(B)


def test_replies_that_concern_nobody_are_ignored():
    world = connected()
    number = world.publish(A)
    world.write()
    stream = world.session.stream
    replies = [
        PublishReply(producer=b"other", groups=A, first_sequence=2, count=1, status=1),
        PublishReply(producer=world.session.producer, groups=("z",), first_sequence=2, count=1, status=1),
        PublishReply(producer=world.session.producer, groups=A, first_sequence=9, count=2**32 - 1, status=1),
        PublishReply(producer=world.session.producer, groups=A, open_token=b"old", status=1),
    ]
    world.session.received(stream, PublishStreamResponse(replies=replies), 0.0, 0.5)
    world.session.received(stream + 1, PublishStreamResponse(replies=replies), 0.0, 0.5)
    assert world.session.take_settled() == []
    world.heal()
    assert isinstance(world.outcomes[number], Receipt)
