"""What readers of several groups saw: each message once, in one order for all of them, and as the logs have it."""

from ordercast.core.place import Place
from ordercast.local.evidence import Evidence, MergedWitness, Verdict


def check_merged(evidence: Evidence, log: dict[str, dict[int, bytes]], verdict: Verdict) -> None:
    """`log`: by group name, the payload at each offset."""
    places: dict[bytes, Place] = {}
    for reader, witness in evidence.merged.items():
        _check_order(reader, witness, places, verdict)
        _check_offsets(reader, witness, evidence, log, verdict)


def _check_order(reader: str, witness: MergedWitness, places: dict[bytes, Place], verdict: Verdict) -> None:
    last = Place()
    for place, payload, _ in witness.seen:
        if place <= last or places.setdefault(payload, place) != place:
            verdict.order_violations += 1
            verdict.find(f"{reader} sees {payload!r} at {place}, behind {last}; others at {places.get(payload)}")
        last = place


def _check_offsets(
    reader: str, witness: MergedWitness, evidence: Evidence, log: dict[str, dict[int, bytes]], verdict: Verdict
) -> None:
    expected = dict.fromkeys(witness.groups, 0)
    for place, payload, offsets in witness.seen:
        sent = evidence.sent.get(payload)
        if sent is not None and sorted(offsets) != sorted(set(sent.groups) & set(witness.groups)):
            verdict.order_violations += 1
            verdict.find(f"{reader} sees {payload!r} in {sorted(offsets)}, and it is for {sent.groups}")
        for group, offset in offsets.items():
            if offset < expected[group]:
                verdict.duplicated += 1
                verdict.find(f"{reader} sees {group}:{offset} again, behind {expected[group] - 1}, at {place}")
            elif offset > expected[group]:
                verdict.lost += 1
                verdict.find(f"{reader} misses {group}:{expected[group]} to {offset - 1}, at {place}")
            expected[group] = offset + 1
            if log.get(group, {}).get(offset) != payload:
                verdict.order_violations += 1
                verdict.find(f"{reader} sees {payload!r} at {group}:{offset}, where the log has another message")
