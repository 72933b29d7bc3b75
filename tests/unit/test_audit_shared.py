"""The audit of runs in which groups share cells: a right history passes, and whatever is wrong is seen."""

from collections.abc import Callable

import pytest

from ordercast.local.audit import audit
from ordercast.local.evidence import Evidence
from ordercast.local.messages import new_messages
from ordercast.v1.common_pb2 import Batch
from ordercast.v1.sequencer_pb2 import LogEntry
from tests.unit.shared_logs import CELL, C, SharedLogs, U, V

PROTOCOLS = ("scalatom", "isis")


def right_history(protocol: str) -> Evidence:
    logs = SharedLogs(protocol)
    logs.publish("u:1", "v:2", "uv:3", "u:4")
    logs.publish("uc:5", "uvc:6", "vc:7")
    logs.publish("c:8")
    logs.publish("v:9", producer="q")
    logs.publish("uv:10", "u:11")
    logs.publish("uvc:12")
    return logs.told()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_right_history_passes(protocol: str) -> None:
    verdict = audit(right_history(protocol))
    assert verdict.is_clean, verdict.findings
    assert verdict.acknowledged == 12


def everywhere(logs: dict[str, list[LogEntry]], number: int) -> list[LogEntry]:
    return [entries[number] for entries in logs.values()]


def shift(entries: list[LogEntry], count: int) -> None:
    for entry in entries:
        entry.first_offset += count
        for outcome in entry.outcomes:
            for span in outcome.spans:
                span.first_offset += count


def show_in_v_what_is_for_u(evidence: Evidence) -> None:
    for replica, entries in evidence.logs[V].items():
        entries.append(evidence.logs[U][replica][2])
        entries[-1].first_offset = entries[-1].outcomes[0].spans[0].first_offset = 6


def leave_out_at_the_end(evidence: Evidence) -> None:
    """Of all that readers of v are shown, at all replicas."""
    for entries in evidence.logs[V].values():
        entries.pop()


def leave_out_without_a_receipt(evidence: Evidence) -> None:
    """Nobody was told that it is there."""
    leave_out_at_the_end(evidence)
    del evidence.receipts[b"12"]
    evidence.seen["subscriber", "v"].pop()


def change_payload_in_v(evidence: Evidence) -> None:
    for entry in everywhere(evidence.logs[V], 1):
        batch = Batch.FromString(entry.envelope.body)
        batch.messages[0].payload = b"7"
        batch.messages[1].payload = b"6"
        entry.envelope.body = batch.SerializeToString()


def leave_out_of_the_cell(evidence: Evidence) -> None:
    """What only v has, with all that it was: its producer's next message has a hole before it."""
    for entries in evidence.shared[CELL].values():
        shift(entries[4:], -len(list(new_messages(entries.pop(3)))))


def lie_about_an_offset(evidence: Evidence) -> None:
    evidence.receipts[b"10"].offsets["v"] += 1


def let_one_replica_differ(evidence: Evidence) -> None:
    entry = evidence.shared[CELL]["n2"][1]
    entry.envelope.header.trace = b"another"


def show_nothing_that_was_for_two(evidence: Evidence) -> None:
    """c lacks what u has."""
    for entries in evidence.logs[C].values():
        shift(entries[1:], -len(list(new_messages(entries.pop(0)))))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "break_",
    [
        show_in_v_what_is_for_u,
        leave_out_at_the_end,
        leave_out_without_a_receipt,
        change_payload_in_v,
        leave_out_of_the_cell,
        lie_about_an_offset,
        let_one_replica_differ,
        show_nothing_that_was_for_two,
    ],
)
def test_what_is_wrong_is_seen(protocol: str, break_: Callable[[Evidence], None]) -> None:
    evidence = right_history(protocol)
    break_(evidence)
    assert not audit(evidence).is_clean
