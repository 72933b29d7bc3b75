"""Logs of virtually synchronous groups as readers see them: right ones pass, and whatever is wrong is seen."""

import copy
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ordercast.core.ids import group_name, pack_u64
from ordercast.local import verify as verifying
from ordercast.local.casts import CastLog, Named
from ordercast.local.evidence import messages_of
from ordercast.local.verify import Report, Verifier
from ordercast.protocols.isis.stamps import StampCodec
from ordercast.v1.gateway_pb2 import (
    Deliveries,
    DescribeClusterResponse,
    DescribeGroupResponse,
    ReplicaStatus,
    SubscribeResponse,
)
from ordercast.v1.membership_pb2 import GROUP_STATE_ACTIVE, Domain, Group
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse, LogEntry
from tests.unit.causal_stamps import restamping
from tests.unit.isis_stories import IDS, REPLICAS, A, B, Story, right_story

# ------------------------------------------------------------------------------------ logs that are shown in part


def shown(story: Story, group: str) -> list[LogEntry]:
    """As readers see a log: without what has no new message."""
    return [entry for entry in story.evidence.logs[IDS[group]]["n1"] if messages_of(entry)]


def taken(entries: list[LogEntry], group: str = "a", *, is_whole: bool = True) -> tuple[CastLog, list[str]]:
    log = CastLog(IDS[group], StampCodec(), is_whole)
    return log, [problem for entry in entries for problem in log.take(entry)]


def test_a_cast_that_readers_are_not_shown_may_be_where_a_position_is_missing() -> None:
    log, problems = taken(shown(right_story(), "a"))
    assert not problems
    # It is 1:1.2, at position 2, between two views.
    assert not log.lacks(Named(A, 1, 1, 2))
    assert log.lacks(Named(A, 1, 1, 3))
    assert not log.lacks(Named(A, 2, 2, 1))
    assert log.lacks(Named(A, 3, 0, 1))
    assert not log.lacks(Named(A, 3, 0, 1), end=7)
    assert log.lacks(Named(A, 1, 1, 3), end=7)


def test_where_all_entries_are_shown_nothing_can_hide() -> None:
    log, problems = taken(right_story().evidence.logs[A]["n1"])
    assert not problems
    assert not log.lacks(Named(A, 1, 1, 2))
    assert log.lacks(Named(A, 2, 2, 1))


def test_more_casts_are_left_out_than_there_are_positions_for() -> None:
    entries = shown(right_story(), "a")
    with restamping(entries[3]) as stamp:
        stamp.key.number = 3
    _, problems = taken(entries)
    assert any("is there without number 1 of its caster" in problem for problem in problems)


def test_a_position_before_a_cast_hides_nothing_that_comes_behind_it() -> None:
    story = Story()
    story.send("m1", "a")
    story.send("m2", "a")
    story.log("a", "1:1.1")
    story.log("a", "1:0.1", "m1")
    story.log("a", "1:0.2", "m2")
    entries = shown(story, "a")
    log, problems = taken(entries)
    assert not problems
    assert not log.lacks(Named(A, 1, 1, 1))
    assert log.lacks(Named(A, 1, 0, 3))
    with restamping(entries[1]) as stamp:
        stamp.key.number = 3
    _, problems = taken(entries)
    assert problems == ["cast 1:0.3 at position 2 is there without number 2 of its caster"]


def test_a_cast_that_was_taken_for_hidden_and_comes_later_is_noticed() -> None:
    story = Story()
    for payload, producer in (("m1", "p"), ("m2", "q"), ("m3", "r")):
        story.send(payload, "a", producer=producer)
    story.log("a", "1:0.1", "m1")
    story.log("a", "1:2.1")
    story.log("a", "1:0.2", "m2", {"a": "1:1.1"})
    story.log("a", "1:1.1", "m3")
    _, problems = taken(shown(story, "a"))
    assert problems == ["cast 1:1.1 at position 3 comes behind one that comes after it"]


def test_what_retention_dropped_is_not_missed() -> None:
    entries = right_story().evidence.logs[A]["n1"][1:]
    log, problems = taken(entries, is_whole=False)
    assert not problems
    assert not log.lacks(Named(A, 1, 0, 9))
    assert not log.lacks(Named(A, 1, 1, 1))
    assert log.lacks(Named(A, 1, 1, 3))
    _, problems = taken(entries)
    # The first position may have been any cast, but not this one's predecessor and two others.
    assert not problems


def test_what_retention_left_is_judged() -> None:
    entries = right_story().evidence.logs[A]["n1"][1:]
    with restamping(entries[-1]) as stamp:
        stamp.times[0].counts[0] = 2
    _, problems = taken(entries, is_whole=False)
    assert any("comes after a#1/2:1.2, which is not before it" in problem for problem in problems)


# ------------------------------------------------------------------------------------------------- the verifier


class Gateway:
    """Answers as a gateway does that has these logs. A look at a group may find more than the one before."""

    def __init__(self, logs: dict[str, list[LogEntry]], later: dict[str, list[LogEntry]] | None = None) -> None:
        self.logs = logs
        self.later = later or {}
        self.of_replica: dict[tuple[str, str], list[LogEntry]] = {}
        self.groups = [
            Group(
                name=group_name(id_),
                id=id_,
                domain="d",
                replicas=REPLICAS,
                placement=REPLICAS,
                state=GROUP_STATE_ACTIVE,
            )
            for id_ in logs
        ]

    def DescribeCluster(self, request: Any, timeout: float) -> DescribeClusterResponse:  # noqa: N802
        return DescribeClusterResponse(groups=self.groups, domains=[Domain(name="d", protocol="isis")])

    def DescribeGroup(self, request: Any, timeout: float) -> DescribeGroupResponse:  # noqa: N802
        group = next(group for group in self.groups if group.name == request.name)
        entries = self.logs[group.id]
        position = int.from_bytes(entries[-1].order_key, "big") + 1 if entries else 0
        log = DescribeReplicaResponse(position=position, first_offset=entries[0].first_offset if entries else 0)
        return DescribeGroupResponse(
            group=group, replicas=[ReplicaStatus(node=replica, log=log) for replica in REPLICAS]
        )

    def Subscribe(self, requests: Iterator[Any]) -> Iterator[SubscribeResponse]:  # noqa: N802
        start = next(requests).start
        id_ = next(group.id for group in self.groups if group.name == start.group)
        entries = self.of_replica.get((id_, start.replica), self.logs[id_])
        if not start.replica:
            entries = [*entries, *self.later.pop(id_, [])]
            self.logs[id_] = entries
        new = [entry for entry in entries if messages_of(entry)]
        yield SubscribeResponse(deliveries=Deliveries(entries=[entry.SerializeToString() for entry in new]))


@pytest.fixture
def verify(monkeypatch: pytest.MonkeyPatch) -> Callable[[Gateway], Report]:
    monkeypatch.setattr(verifying, "LOOK_S", 0.0)

    def run(gateway: Gateway) -> Report:
        verifier = Verifier(SimpleNamespace(stream_stream=None, unary_unary=None, unary_stream=None))
        verifier.stub = gateway
        return verifier.run()

    monkeypatch.setattr(verifying, "GatewayServiceStub", lambda channel: None)
    return run


def leave_out_a_sequence(entry: LogEntry) -> None:
    entry.envelope.header.ranges[0].first_sequence += 1
    entry.outcomes[0].spans[0].first_sequence += 1


def whole(story: Story) -> dict[str, list[LogEntry]]:
    return {id_: log["n1"] for id_, log in story.evidence.logs.items()}


def test_logs_of_a_right_history_are_verified(verify: Callable[[Gateway], Report]) -> None:
    report = verify(Gateway(whole(right_story())))
    assert report.is_ok, report.problems
    assert report.is_complete
    assert [(group.group, group.messages) for group in report.groups] == [("a", 5), ("b", 2)]


def test_what_comes_while_others_are_read_is_looked_for_again(verify: Callable[[Gateway], Report]) -> None:
    """m3 is shown in a, and m6, that comes after it, before b shows it."""
    logs = whole(right_story())
    later = {B: logs[B][1:]}
    del logs[B][1:]
    report = verify(Gateway(logs, later))
    assert report.is_ok, report.problems


def set_view(entry: LogEntry, view: int) -> None:
    with restamping(entry) as stamp:
        stamp.view = view


def set_view_of_past(entry: LogEntry, view: int) -> None:
    with restamping(entry) as stamp:
        stamp.times[0].view = view


@pytest.mark.parametrize(
    ("break_", "text"),
    [
        (lambda logs: logs[B].pop(), "message 1 of producer 71 to a#1, b#2, and b#2 does not"),
        (lambda logs: logs[B].pop(), "comes after b#2/1:2.1, which is not in its log"),
        (lambda logs: logs[A].pop(3), "offsets 2 to 3 are missing"),
        (lambda logs: set_view(logs[A][3], 3), "a: view 2 comes behind view 3"),
        (lambda logs: set_view_of_past(logs[A][5], 4), "of a later view"),
        (lambda logs: logs[A][0].ClearField("protocol"), "says nothing of where it comes from"),
        (lambda logs: setattr(logs[A][4], "order_key", b"\0" * 24), "does not rise"),
        (lambda logs: logs[B][0].envelope.header.destinations.pop(), "is not for it"),
        (lambda logs: leave_out_a_sequence(logs[A][3]), "producer 70 continues 1 with 3"),
    ],
)
def test_logs_that_cannot_be_are_problems(
    verify: Callable[[Gateway], Report], break_: Callable[[dict[str, list[LogEntry]]], Any], text: str
) -> None:
    logs = whole(right_story())
    break_(logs)
    report = verify(Gateway(logs))
    assert not report.is_ok
    assert any(text in problem for problem in report.problems), report.problems


def test_replicas_that_disagree_are_a_problem(verify: Callable[[Gateway], Report]) -> None:
    gateway = Gateway(whole(right_story()))
    other = copy.deepcopy(gateway.logs[A])
    with restamping(other[4]) as stamp:
        stamp.epoch = 3
    gateway.of_replica[A, "n2"] = other
    report = verify(gateway)
    assert any("a: n1 has" in problem and "n2 has" in problem for problem in report.problems), report.problems


def test_a_group_that_lost_its_beginning_to_retention_lacks_nothing(verify: Callable[[Gateway], Report]) -> None:
    """m3 is left in b alone, and what a's entries come after is not in b any more, but for the last."""
    logs = whole(right_story())
    del logs[A][:3]
    report = verify(Gateway(logs))
    assert report.is_ok, report.problems


def two_to_both() -> dict[str, list[LogEntry]]:
    story = Story()
    for number in (1, 2, 3):
        story.send(f"m{number}", "ab")
        story.log("a", f"1:0.{number}", f"m{number}")
        story.log("b", f"1:1.{number}", f"m{number}")
    return whole(story)


def renumbered(entries: list[LogEntry], *, is_whole: bool) -> list[LogEntry]:
    """As if what is left were all there ever was, or what retention left."""
    for number, entry in enumerate(entries, start=0 if is_whole else 1):
        entry.order_key, entry.first_offset = pack_u64(number), number
        entry.outcomes[0].spans[0].first_offset = number
        with restamping(entry) as stamp:
            stamp.key.number = number + 1
    return entries


@pytest.mark.parametrize(("left", "missing"), [(slice(0, 2), 3), (slice(1, 3), 1)])
def test_one_of_several_messages_to_both_groups_is_in_one_of_them(
    verify: Callable[[Gateway], Report], left: slice, missing: int
) -> None:
    logs = two_to_both()
    logs[B] = renumbered(logs[B][left], is_whole=True)
    report = verify(Gateway(logs))
    assert report.problems == [f"a#1 has message {missing} of producer 70 to a#1, b#2, and b#2 does not"]


def test_the_first_of_several_messages_to_both_groups_is_dropped_by_retention_in_one(
    verify: Callable[[Gateway], Report],
) -> None:
    logs = two_to_both()
    logs[B] = renumbered(logs[B][1:], is_whole=False)
    report = verify(Gateway(logs))
    assert report.is_ok, report.problems
