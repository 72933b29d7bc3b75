"""How long nothing is acknowledged though it could be, as a chaos run tells it, and what is waited for."""

import asyncio

import pytest

from ordercast.local import stalls as module
from ordercast.local.configurations import can_work
from ordercast.local.evidence import SentMessage
from ordercast.local.load import Load
from ordercast.local.stalls import Longest, Stalls, can_all_work, waited_for, watch
from ordercast.v1.gateway_pb2 import DescribeClusterResponse
from ordercast.v1.membership_pb2 import Configuration, Group

NODES = ["n1", "n2", "n3"]


def group_of(name: str = "a", **fields: object) -> Group:
    return Group(**{"name": name, "configuration": 2, "replicas": NODES, "acceptors": NODES, **fields})


BEFORE = Configuration(number=1, replicas=["n3", "n4", "n5"], acceptors=["n3", "n4", "n5"])


def test_it_lasts_from_the_last_receipt_or_from_when_nobody_is_missing_any_more():
    stalls = Longest()
    assert stalls.look(10.0, 9.0, may_wait=False) == 0.0, "what was before the first look is not known"
    assert stalls.look(13.0, 9.0, may_wait=False) == 3.0
    assert stalls.look(14.0, 12.5, may_wait=False) == 1.5
    assert stalls.look(15.0, 12.5, may_wait=True) == 0.0
    assert stalls.look(17.0, 12.5, may_wait=False) == 0.0
    assert stalls.look(18.0, 12.5, may_wait=False) == 1.0


def test_the_longest_is_kept_with_what_it_waited_for():
    stalls = Longest()
    for now, lasts_s, text in ((5.0, 2.0, "one"), (9.0, 4.0, "two"), (20.0, 3.0, "three")):
        stalls.note(now, lasts_s, [text])
    assert (stalls.s_max, stalls.ended, stalls.waited_for) == (4.0, 9.0, ["two"])


def test_what_lasts_while_a_majority_is_missing_is_told_apart():
    stalls = Stalls()
    lasts = [
        stalls.look(now, 9.0, is_idle=is_idle, can_work=can_work)
        for now, is_idle, can_work in (
            (10.0, False, True),
            (12.0, False, True),
            (14.0, False, False),
            (15.0, False, True),
            (18.0, False, True),
            (19.0, True, True),
        )
    ]
    assert lasts == [(0.0, 0.0), (2.0, 2.0), (4.0, 0.0), (5.0, 0.0), (8.0, 3.0), (0.0, 0.0)]


@pytest.mark.parametrize(
    ("any_s", "stalled_s", "is_asked"), [(0.9, 0.9, False), (5.0, 0.0, False), (5.1, 0.0, True), (2.0, 1.1, True)]
)
def test_the_cluster_is_asked_what_it_waits_for_when_it_is_the_longest_time_so_far(any_s, stalled_s, is_asked):
    stalls = Stalls()
    stalls.any.note(20.0, 5.0, ["a majority"])
    assert stalls.are_longer(any_s, stalled_s) is is_asked


@pytest.mark.parametrize(
    ("group", "away", "can"),
    [
        (group_of(), [], True),
        (group_of(), ["n1"], True),
        (group_of(), ["n1", "n2"], False),
        (group_of(lost=["n2"]), ["n1"], False),
        (group_of(acceptors=["n1"]), ["n1"], False),
        (group_of(acceptors=[]), ["n1"], True),
        (group_of(previous=BEFORE), ["n3"], True),
        (group_of(previous=BEFORE), ["n4", "n5"], False),
        (group_of(next=BEFORE), ["n4", "n5"], True),
    ],
)
def test_a_group_can_work_if_majorities_of_it_are_there_and_of_the_configuration_that_hands_over(group, away, can):
    assert can_work(group, away) is can


def test_all_groups_have_to_be_able_to_and_of_none_nothing_is_known():
    assert can_all_work([group_of("a"), group_of("b")], ["n1"])
    assert not can_all_work([group_of("a"), group_of("b", replicas=["n1"])], ["n1"])
    assert not can_all_work([], [])


def test_what_is_waited_for_are_publishes_and_changes_and_majorities_and_who_is_away():
    load = Load([], ["a", "b", "c"])
    for index, groups in enumerate([("a", "b"), ("a",), ("a", "b")]):
        payload = b"%d" % index
        load.waiting[payload] = SentMessage(payload, index, groups, False, ())
    groups = [group_of("a"), group_of("b", previous=BEFORE, starting=["n1"])]
    assert waited_for(load, groups, ["n5", "n4"], answers=False) == [
        "2 to a,b",
        "1 to a",
        "b is in configuration 2 with n1, n2, n3; 1 is not left; not started: n1; lost: -",
        "b has no majority",
        "away: n4, n5",
        "no gateway says how the groups are",
    ]
    load.waiting.clear()
    assert waited_for(load, groups[:1], [], answers=True) == []


@pytest.mark.parametrize(("away", "has_stalled"), [(["n1"], True), (["n1", "n2"], False)])
def test_who_watches_a_load_finds_what_it_waits_for(monkeypatch, away, has_stalled):
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    monkeypatch.setattr(module, "ASK_S", 0.0)
    monkeypatch.setattr(module, "cluster_of", lambda gateways: DescribeClusterResponse(groups=[group_of()]))
    load, stalls = Load([], ["a"]), Stalls()
    load.waiting[b"m"] = SentMessage(b"m", 0, ("a",), False, ())

    async def watch_until_found() -> None:
        watching = asyncio.create_task(watch(stalls, load, lambda: away))
        while not stalls.any.s_max or (has_stalled and not stalls.with_majorities.s_max):
            await asyncio.sleep(0)
        watching.cancel()

    asyncio.run(watch_until_found())
    assert stalls.any.waited_for[0] == "1 to a"
    assert bool(stalls.with_majorities.s_max) is has_stalled
