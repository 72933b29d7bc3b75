"""What really happened on a cluster, judged by the simulator's checkers.

Three witnesses are heard: what clients sent and had receipts for, what subscribers saw, and what every replica's
log shows. Where each group is ordered by itself there is no order across them, and others judge (audit_casts.py).
"""

from ordercast.core.cells import shares_cell
from ordercast.core.ids import group_name
from ordercast.core.protocol import Orders
from ordercast.local.audit_casts import audit_casts
from ordercast.local.audit_merged import check_merged
from ordercast.local.evidence import Acknowledged, Evidence, SentMessage, Verdict, messages_of
from ordercast.sim.board import Board, MessageKey, Receipt, Sent, name_of
from ordercast.sim.checkers.by_trait import check_history
from ordercast.sim.checkers.logs import LogChecker
from ordercast.sim.checkers.violation import Violation

__all__ = ["Acknowledged", "Evidence", "SentMessage", "Verdict", "audit", "messages_of"]

#: Which count a checker's finding goes into; all others are about order.
LOST = ("receipt", "durability", "termination")
DUPLICATED = ("exactly-once",)


def audit(evidence: Evidence) -> Verdict:
    verdict = Verdict(acknowledged=len(evidence.receipts))
    offsets = _offsets_by_payload(evidence, verdict)
    _check_receipts(evidence, offsets, verdict)
    _check_subscribers(evidence, verdict)
    within = evidence.ordered_within()
    if within:
        audit_casts(evidence.of_groups(within), verdict)
    others = [id_ for id_ in evidence.logs if id_ not in within]
    if others or not within:
        _check_with_simulator(evidence.of_groups(others) if within else evidence, verdict)
    return verdict


def _offsets_by_payload(evidence: Evidence, verdict: Verdict) -> dict[str, dict[bytes, int]]:
    """group name -> payload -> offset, over all replicas; the same payload at two places is a duplicate."""
    offsets: dict[str, dict[bytes, int]] = {}
    for group, replicas in evidence.logs.items():
        found = offsets.setdefault(group_name(group), {})
        for replica, entries in replicas.items():
            for entry in entries:
                for offset, payload, _ in messages_of(entry):
                    if found.setdefault(payload, offset) != offset:
                        verdict.duplicated += 1
                        verdict.find(
                            f"{payload!r} is in {group} at {found[payload]} and, at {replica}, at {offset}"
                        )
    return offsets


def _check_receipts(evidence: Evidence, offsets: dict[str, dict[bytes, int]], verdict: Verdict) -> None:
    for payload, receipt in evidence.receipts.items():
        for group in evidence.sent[payload].groups:
            offset = offsets.get(group, {}).get(payload)
            if offset is None:
                verdict.lost += 1
                verdict.find(f"{payload!r} has a receipt and is not in {group}")
            elif receipt.offsets.get(group) != offset:
                verdict.order_violations += 1
                verdict.find(
                    f"{payload!r} is in {group} at {offset}; its receipt says {receipt.offsets.get(group)}"
                )


def _check_subscribers(evidence: Evidence, verdict: Verdict) -> None:
    """No gap, no duplicate, and what was seen is what the log shows."""
    log: dict[str, dict[int, bytes]] = {}
    for group, replicas in evidence.logs.items():
        for entries in replicas.values():
            for entry in entries:
                for offset, payload, _ in messages_of(entry):
                    log.setdefault(group_name(group), {}).setdefault(offset, payload)
    check_merged(evidence, log, verdict)
    for (subscriber, group), seen in evidence.seen.items():
        expected = seen[0][0] if seen else 0
        for offset, payload in seen:
            if offset < expected:
                verdict.duplicated += 1
                verdict.find(f"{subscriber} sees {group}:{offset} again, behind {expected - 1}")
            elif offset > expected:
                verdict.lost += 1
                verdict.find(f"{subscriber} misses {group}:{expected} to {offset - 1}")
            expected = offset + 1
            if log.get(group, {}).get(offset) != payload:
                verdict.order_violations += 1
                verdict.find(
                    f"{subscriber} sees {payload!r} at {group}:{offset}, where the log has another message"
                )


def _check_with_simulator(evidence: Evidence, verdict: Verdict) -> None:
    """Agreement, integrity, order over all groups, FIFO and causality, as every simulated run is checked."""
    board, keys = _board(evidence)
    cells = evidence.cells
    logs = LogChecker(board, {cell: tuple(replicas) for cell, replicas in cells.items()})
    board.receipts = [
        Receipt(keys[payload], receipt.order_key, _by_id(evidence, receipt.offsets), receipt.duplicate)
        for payload, receipt in evidence.receipts.items()
        if payload in keys
    ]
    try:
        for cell, replicas in cells.items():
            for replica, entries in sorted(replicas.items(), key=lambda item: -len(item[1])):
                for position, entry in enumerate(entries):
                    logs.on_commit(replica, cell, position, entry)
        check_history(logs, board, Orders.ACROSS)
        _check_shown(evidence, logs)
    except Violation as violation:
        if violation.property in LOST:
            verdict.lost += 1
        elif violation.property in DUPLICATED:
            verdict.duplicated += 1
        else:
            verdict.order_violations += 1
        verdict.find(str(violation))


def _check_shown(evidence: Evidence, logs: LogChecker) -> None:
    """Readers of a group that shares its cell are shown its messages, where the cell's log has them."""
    for group, replicas in evidence.logs.items():
        if not shares_cell(group):
            continue
        there = logs.offsets_in(group)
        for replica, entries in replicas.items():
            shown = {key: offset for entry in entries for offset, _, key in messages_of(entry)}
            if shown != there:
                where = sorted(there.keys() ^ shown.keys()) or [key for key in there if there[key] != shown[key]]
                text = f"{replica} does not show {name_of(where[0])} in {group} as the log of its cell has it"
                raise Violation("agreement", text)


def _board(evidence: Evidence) -> tuple[Board, dict[bytes, MessageKey]]:
    keys: dict[bytes, MessageKey] = {}
    for replicas in (*evidence.cells.values(), *evidence.logs.values()):
        for entries in replicas.values():
            for entry in entries:
                for _, payload, key in messages_of(entry):
                    keys.setdefault(payload, key)
    board = Board()
    for payload, sent in evidence.sent.items():
        if payload in keys:
            after = [keys[seen] for seen in sent.after if seen in keys]
            board.send(keys[payload], Sent(sent.index, sent.unordered, payload, after))
    return board, keys


def _by_id(evidence: Evidence, offsets: dict[str, int]) -> dict[str, int]:
    return {id_: offsets[group_name(id_)] for id_ in evidence.logs if group_name(id_) in offsets}
