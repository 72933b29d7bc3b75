"""`ordercast verify` where groups share cells: a right history passes, and whatever is wrong is seen."""

import copy
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from ordercast.local import verify as verifying
from ordercast.local.messages import new_messages
from ordercast.local.verify import Report, Verifier
from ordercast.v1.common_pb2 import Batch
from ordercast.v1.sequencer_pb2 import LogEntry
from tests.unit.shared_logs import C, Gateway, SharedLogs, U, V

Logs = dict[str, list[LogEntry]]


@pytest.fixture
def verify(monkeypatch: pytest.MonkeyPatch) -> Callable[[Gateway], Report]:
    monkeypatch.setattr(verifying, "LOOK_S", 0.0)
    monkeypatch.setattr(verifying, "GatewayServiceStub", lambda channel: None)

    def run(gateway: Gateway) -> Report:
        verifier = Verifier(SimpleNamespace(stream_stream=None, unary_unary=None, unary_stream=None))
        verifier.stub = gateway  # type: ignore[assignment]
        return verifier.run()

    return run


def right_history(protocol: str = "scalatom") -> SharedLogs:
    logs = SharedLogs(protocol)
    logs.publish("u:1", "v:2", "uv:3", "u:4")
    logs.publish("uc:5", "uvc:6", "vc:7")
    logs.publish("c:8")
    logs.publish("v:9", producer="q")
    logs.publish("uv:10", "u:11")
    logs.publish("uvc:12")
    logs.publish("uv:13", "uv:14")
    return logs


def test_logs_of_a_right_history_are_verified(verify: Callable[[Gateway], Report]) -> None:
    logs = right_history().shown()
    payloads = {
        group: [told.payload for entry in logs[group] for told in new_messages(entry)] for group in (U, V, C)
    }
    assert payloads[U] == [b"1", b"3", b"4", b"5", b"6", b"10", b"11", b"12", b"13", b"14"]
    assert payloads[V] == [b"2", b"3", b"6", b"7", b"9", b"10", b"12", b"13", b"14"]
    assert payloads[C] == [b"5", b"6", b"7", b"8", b"12"]
    report = verify(Gateway(logs))
    assert report.is_ok, report.problems
    assert report.is_complete
    assert {group.group: group.messages for group in report.groups} == {"u": 10, "v": 9, "c": 5}


def test_a_group_of_a_cell_that_has_dropped_its_beginning_or_is_gone_is_no_problem(
    verify: Callable[[Gateway], Report],
) -> None:
    logs = right_history().shown()
    report = verify(Gateway({U: logs[U][2:], V: logs[V], C: logs[C]}))
    assert report.is_ok, report.problems
    report = verify(Gateway({V: logs[V], C: logs[C]}))
    assert report.is_ok, report.problems


def test_what_comes_while_others_are_read_is_looked_for_again(verify: Callable[[Gateway], Report]) -> None:
    logs = right_history().shown()
    gateway = Gateway({**logs, V: logs[V][:-1]})
    gateway.later = {V: logs[V][-1:]}
    report = verify(gateway)
    assert report.is_ok, report.problems


def set_payload(entry: LogEntry, payload: bytes) -> None:
    batch = Batch.FromString(entry.envelope.body)
    batch.messages[0].payload = payload
    entry.envelope.body = batch.SerializeToString()


def test_what_comes_late_is_looked_at_too(verify: Callable[[Gateway], Report]) -> None:
    logs = right_history().shown()
    late = copy.deepcopy(logs[V][-1])
    set_payload(late, b"another")
    gateway = Gateway({**logs, V: logs[V][:-1]})
    gateway.later = {V: [late]}
    report = verify(gateway)
    assert any("show different messages" in problem for problem in report.problems), report.problems


def show_what_is_for_another(logs: Logs) -> None:
    """v shows what u shows of the first entry."""
    of_u = copy.deepcopy(logs[U][0])
    count = len(list(new_messages(of_u))) - len(list(new_messages(logs[V][0])))
    logs[V][0] = of_u
    for entry in logs[V][1:]:
        shift(entry, count)


def shift(entry: LogEntry, count: int) -> None:
    entry.first_offset += count
    for outcome in entry.outcomes:
        for span in outcome.spans:
            span.first_offset += count


def leave_out_a_message(logs: Logs) -> None:
    """u shows "5" and not "6", which v and c show at that place."""
    entry = logs[U][1]
    del entry.envelope.header.ranges[1:]
    del entry.outcomes[1:]
    entry.envelope.body = Batch(messages=Batch.FromString(entry.envelope.body).messages[:1]).SerializeToString()
    for later in logs[U][2:]:
        shift(later, -1)


def leave_out_an_entry(logs: Logs) -> None:
    left_out = logs[V].pop(1)
    for entry in logs[V][1:]:
        shift(entry, -len(list(new_messages(left_out))))


def change_order(logs: Logs) -> None:
    """u shows "14" before "13"."""
    entry = logs[U][-1]
    ranges, outcomes = list(entry.envelope.header.ranges), list(entry.outcomes)
    messages = list(Batch.FromString(entry.envelope.body).messages)
    del entry.envelope.header.ranges[:], entry.outcomes[:]
    entry.envelope.header.ranges.extend(ranges[::-1])
    entry.outcomes.extend(outcomes[::-1])
    entry.envelope.body = Batch(messages=messages[::-1]).SerializeToString()


def repeat_in_the_cell(logs: Logs) -> None:
    """What u shows first, v shows once more at a later place, as if it were for v."""
    entry = next(entry for entry in logs[V] if [told.payload for told in new_messages(entry)] == [b"10"])
    entry.envelope.header.ranges[0].first_sequence = 1
    entry.outcomes[0].spans[0].first_sequence = 1


@pytest.mark.parametrize(
    ("break_", "text"),
    [
        (show_what_is_for_another, "cell-1#1/v#3 has message 1 of producer 70"),
        (leave_out_a_message, "message 2 of producer 70"),
        (leave_out_an_entry, "which is also for cell-1#1/v#3 and is not there"),
        (lambda logs: logs[V].pop(), "which is also for cell-1#1/v#3 and does not come"),
        (lambda logs: set_payload(logs[U][1], b"another"), "show different messages as message 1"),
        (lambda logs: set_payload(logs[C][0], b"another"), "show different messages as message 1"),
        (change_order, "show messages in different orders"),
        (repeat_in_the_cell, "cell-1#1: producer 70 is not beyond its message 4"),
    ],
)
def test_what_is_wrong_is_seen(
    verify: Callable[[Gateway], Report], break_: Callable[[Logs], object], text: str
) -> None:
    logs = right_history().shown()
    break_(logs)
    report = verify(Gateway(logs))
    assert any(text in problem for problem in report.problems), report.problems


# ------------------------------------------------------------------------- where each cell has an order of its own


def right_casts() -> Logs:
    return right_history("isis").shown()


def test_casts_of_cells_that_groups_share_are_verified(verify: Callable[[Gateway], Report]) -> None:
    logs = right_casts()
    report = verify(Gateway(logs, "isis"))
    assert report.is_ok, report.problems
    report = verify(Gateway({U: logs[U][2:], V: logs[V], C: logs[C]}, "isis"))
    assert report.is_ok, report.problems
    report = verify(Gateway({V: logs[V], C: logs[C]}, "isis"))
    assert report.is_ok, report.problems


def test_a_cast_that_a_group_of_a_cell_shows_late_is_looked_for_again(verify: Callable[[Gateway], Report]) -> None:
    logs = right_casts()
    gateway = Gateway({**logs, V: logs[V][:-2]}, "isis")
    gateway.later = {V: logs[V][-2:]}
    report = verify(gateway)
    assert report.is_ok, report.problems


@pytest.mark.parametrize(
    ("break_", "text"),
    [
        (show_what_is_for_another, "v: the message at offset 0 is not for it"),
        (leave_out_a_message, "c#4, cell-1#1/u#2, cell-1#1/v#3, and cell-1#1/u#2 does not"),
        (lambda logs: logs[V].pop(), "to cell-1#1/u#2, cell-1#1/v#3, and cell-1#1/v#3 does not"),
        (lambda logs: set_payload(logs[U][-1], b"another"), "different messages of producer 70"),
        (lambda logs: set_payload(logs[C][0], b"another"), "different messages of producer 70"),
        (repeat_in_the_cell, "v: producer 70 continues 3 with 1"),
    ],
)
def test_what_is_wrong_with_casts_is_seen(
    verify: Callable[[Gateway], Report], break_: Callable[[Logs], object], text: str
) -> None:
    logs = right_casts()
    break_(logs)
    report = verify(Gateway(logs, "isis"))
    assert any(text in problem for problem in report.problems), report.problems
