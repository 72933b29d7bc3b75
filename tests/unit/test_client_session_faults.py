"""Sessions against adversarial gateways: exactly once, in order, within credits, and no gap is ever left."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.client.errors import (
    DeadlineExceeded,
    InvalidArgument,
    OutcomeUnknown,
    ResourceExhausted,
    Unavailable,
)
from ordercast.client.session_tokens import merge
from ordercast.client.types import Receipt
from ordercast.v1.gateway_pb2 import PUBLISH_STATUS_RESOURCE_EXHAUSTED, PUBLISH_STATUS_UNAVAILABLE
from tests.unit.adversarial_gateways import BAD, World, token_of

SETS = (("a",), ("a", "b"), ("b", "c"), ("c",))
NOT_STORED = (DeadlineExceeded, ResourceExhausted, Unavailable, InvalidArgument)

STEPS = ("publish", "dial", "write", "read", "order", "receive") * 2
STEPS += ("lose", "cut", "wait", "refuse", "overdue", "bad", "forget", "after", "see")
#: Without what makes a message go again under a new number: that one comes behind what was stored meanwhile.
ORDERLY_STEPS = tuple(step for step in STEPS if step not in ("overdue", "bad", "forget", "after"))


def schedules(steps: tuple[str, ...]) -> st.SearchStrategy[list[tuple[str, int]]]:
    return st.lists(st.tuples(st.sampled_from(steps), st.integers(0, 7)), min_size=25, max_size=100)


def perform(world: World, step: str, choice: int) -> None:
    match step:
        case "publish":
            for _ in range(1 + choice // 4):
                world.publish(SETS[choice % 4])
        case "after":
            somebodys = merge(token_of(choice), token_of(choice, "another domain"))
            world.publish(SETS[choice % 4], unordered=choice > 3, after=somebodys)
        case "see":
            world.see(world.sn + choice)
        case "bad":
            world.publish(SETS[choice % 4], bad=True)
        case "overdue":
            world.publish(SETS[choice % 4], timeout=0.1)
        case "dial":
            world.dial()
            world.receive()
        case "write":
            world.write()
        case "read":
            for _ in range(choice):
                world.read(choice)
        case "order":
            for _ in range(choice):
                world.order(choice)
        case "receive":
            for _ in range(choice):
                world.receive(choice / 8)
        case "lose":
            world.lose()
        case "cut":
            world.lose(unread_lost=choice)
        case "wait":
            world.wait((0.01, 0.06, 0.2, 3.0)[choice % 4])
        case "refuse":
            status = (PUBLISH_STATUS_RESOURCE_EXHAUSTED, PUBLISH_STATUS_UNAVAILABLE)[choice % 2]
            world.gateways[choice // 4].refusals.extend([status] * (1 + choice % 3))
        case "forget":
            world.forget()


def check_everyone_was_told_the_truth(world: World) -> None:
    assert len(world.outcomes) == len(world.published)
    for number, (groups, payload) in enumerate(world.published):
        outcome = world.outcomes[number]
        copies = [world.logs[group].count(payload) for group in groups]
        match outcome:
            case Receipt():
                assert copies == [1] * len(groups)
                assert {group: world.logs[group].index(payload) for group in groups} == outcome.offsets
            case OutcomeUnknown():
                assert copies in ([0] * len(groups), [1] * len(groups))
            case _:
                assert isinstance(outcome, NOT_STORED), outcome
                assert copies == [0] * len(groups)
        assert payload.startswith(BAD) or not isinstance(outcome, InvalidArgument)
        assert not payload.startswith(BAD) or not isinstance(outcome, Receipt)


def check_order_within_each_set(world: World) -> None:
    for groups in SETS:
        sent = [payload for to, payload in world.published if to == groups]
        log = world.logs[groups[0]]
        places = [log.index(payload) for payload in sent if payload in log]
        assert places == sorted(places)


@pytest.mark.parametrize("is_named", [False, True])
@settings(max_examples=200)
@given(schedule=schedules(STEPS))
def test_every_message_is_stored_once_in_order_or_its_caller_knows(is_named, schedule):
    world = World(is_named=is_named)
    for step, choice in schedule:
        perform(world, step, choice)
    world.heal()
    check_everyone_was_told_the_truth(world)
    check_order_within_each_set(world)
    # No gap is left: whatever comes next is stored.
    last = [world.publish(groups) for groups in SETS]
    world.heal()
    assert all(isinstance(world.outcomes[number], Receipt) for number in last)


@settings(max_examples=200)
@given(schedule=schedules(ORDERLY_STEPS))
def test_messages_that_share_a_group_keep_the_order_of_the_publish_calls(schedule):
    world = World()
    for step, choice in schedule:
        perform(world, step, choice)
    world.heal()
    for group, log in world.logs.items():
        sent = [payload for to, payload in world.published if group in to]
        assert log == sent
