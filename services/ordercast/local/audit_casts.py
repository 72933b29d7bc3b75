"""What really happened in virtually synchronous groups, judged by what they promise.

Each group has one log, the same at all replicas: its views follow each other, a caster's casts keep their order,
and nothing comes before what it comes after. There is no order across groups, but a message to several is in all
of them or in none, and what clients had seen when they sent something comes first wherever both are. Stamps are
believed in one respect alone: what they say comes first has to.
"""

from itertools import pairwise

from ordercast.core.causal import CausalCodec
from ordercast.core.cells import cell_of, cells_of
from ordercast.core.ids import group_name
from ordercast.core.level import LEVEL
from ordercast.local.casts import CastLog, Named, named_by, place_in, position_of
from ordercast.local.evidence import Evidence, Verdict, messages_of
from ordercast.protocols import catalogue
from ordercast.sim.board import MessageKey
from ordercast.v1.membership_pb2 import Domain
from ordercast.v1.sequencer_pb2 import LogEntry

#: Of one group: the place of each message, what it is, and the key of its entry.
Places = dict[bytes, tuple[int, MessageKey, bytes]]


def audit_casts(evidence: Evidence, verdict: Verdict) -> None:
    """Adds to the verdict. That receipts and subscribers are right about offsets is looked at elsewhere."""
    cells = {id_: _one_log(id_, replicas, verdict) for id_, replicas in evidence.cells.items()}
    logs = {id_: cells.get(id_) or _one_log(id_, replicas, verdict) for id_, replicas in evidence.logs.items()}
    places = {id_: _places(entries) for id_, entries in logs.items()}
    of_cells = {id_: _places(entries) for id_, entries in cells.items()}
    _check_integrity(evidence, places, verdict)
    _check_shown(places, of_cells, verdict)
    _check_casts(evidence, cells, verdict)
    _check_all_or_nothing(places, verdict)
    _check_fifo(evidence, of_cells, verdict)
    _check_sessions(evidence, places, verdict)
    _check_order_keys(evidence, places, verdict)


def _wrong(verdict: Verdict, text: str) -> None:
    verdict.order_violations += 1
    verdict.find(text)


def _one_log(group: str, replicas: dict[str, list[LogEntry]], verdict: Verdict) -> list[LogEntry]:
    """All replicas together, which have the same entry wherever they have one. Some may have less."""
    found: dict[int, tuple[str, LogEntry]] = {}
    for replica, entries in replicas.items():
        last = -1
        for entry in entries:
            position = position_of(entry)
            if position <= last:
                _wrong(verdict, f"{replica} has position {position} of {group} behind {last}")
            last = position
            first, known = found.setdefault(position, (replica, entry))
            if known != entry:
                _wrong(verdict, f"{first} and {replica} differ at position {position} of {group}")
    return [found[position][1] for position in sorted(found)]


def _places(entries: list[LogEntry]) -> Places:
    return {
        payload: (offset, key, entry.order_key) for entry in entries for offset, payload, key in messages_of(entry)
    }


def _check_integrity(evidence: Evidence, places: dict[str, Places], verdict: Verdict) -> None:
    """Only what was sent is there, and only where it was sent to."""
    for group, found in places.items():
        for payload, (_, key, _) in found.items():
            sent = evidence.sent.get(payload)
            names = tuple(sorted(map(group_name, key[1])))
            if sent is None:
                _wrong(verdict, f"{payload!r} is in {group}, and nobody sent it")
            elif group not in key[1] or names != tuple(sorted(sent.groups)):
                _wrong(verdict, f"{payload!r} is in {group} as one to {names}, and was sent to {sent.groups}")


def _check_shown(places: dict[str, Places], of_cells: dict[str, Places], verdict: Verdict) -> None:
    """Readers of a group that shares its cell are shown its messages, where and in the order its cell has them."""
    for group, found in places.items():
        cell = of_cells.get(cell_of(group), {})
        there = {payload: (key, order_key) for payload, (_, key, order_key) in cell.items() if group in key[1]}
        shown = {payload: (key, order_key) for payload, (_, key, order_key) in found.items()}
        for payload in sorted(
            payload for payload in there.keys() | shown.keys() if there.get(payload) != shown.get(payload)
        ):
            _wrong(verdict, f"{group} does not show {payload!r} as the log of its cell has it")
        in_order = sorted(found, key=lambda payload: found[payload][0])
        for before, after in pairwise([cell[payload][0] for payload in in_order if payload in cell]):
            if after <= before:
                _wrong(verdict, f"{group} shows its messages in another order than its cell has them")


# ------------------------------------------------------------------------------------------------------ casts


def _check_casts(evidence: Evidence, logs: dict[str, list[LogEntry]], verdict: Verdict) -> None:
    casts = {
        id_: CastLog(id_, _codec_of(evidence.domains[id_]), is_whole=_is_whole(entries))
        for id_, entries in logs.items()
    }
    for group, entries in logs.items():
        domain = evidence.domains[group]
        is_total = not catalogue.named(domain.protocol).parse(domain.settings, LEVEL).spans_groups
        for entry in entries:
            for problem in casts[group].take(entry):
                _wrong(verdict, f"{group}: {problem}")
            place = place_in(entry, casts[group].codec)
            if place.is_total != is_total:
                kind = "an ABCAST" if place.is_total else "a CBCAST"
                _wrong(verdict, f"{group}: {kind} at position {position_of(entry)} is not what the domain is for")
    for group, entries in logs.items():
        for entry in entries:
            for named in named_by(place_in(entry, casts[group].codec)):
                _check_named(named, casts, group, entry, verdict)


def _codec_of(domain: Domain) -> CausalCodec:
    codec = catalogue.named(domain.protocol).causal
    assert codec is not None, "core.protocol sees to that"
    return codec


def _check_named(named: Named, casts: dict[str, CastLog], group: str, entry: LogEntry, verdict: Verdict) -> None:
    """In other groups; the own one's log has been through that, entry by entry."""
    if named.group != group and named.group in casts and casts[named.group].lacks(named):
        _wrong(verdict, f"{group}: what is at position {position_of(entry)} comes after {named}, which is lost")


def _is_whole(entries: list[LogEntry]) -> bool:
    """Retention drops from the beginning."""
    return not entries or entries[0].first_offset == 0


# --------------------------------------------------------------------------------------------------- messages


def _check_all_or_nothing(places: dict[str, Places], verdict: Verdict) -> None:
    for group, found in places.items():
        for payload, (_, key, _) in found.items():
            for other in key[1]:
                there = places.get(other, {}).get(payload)
                if other in places and (there is None or there[1] != key):
                    _wrong(verdict, f"{payload!r} is in {group} and not in {other}")


def _check_fifo(evidence: Evidence, places: dict[str, Places], verdict: Verdict) -> None:
    """Per producer: to the same cells in sequence, without a gap; to others as it sent them, unless unordered."""
    for group, found in places.items():
        last_of_set: dict[tuple[bytes, tuple[str, ...]], int] = {}
        last_ordered: dict[bytes, int] = {}
        for payload, (_, key, _) in sorted(found.items(), key=lambda item: item[1][0]):
            producer, groups, sequence = key
            cells = cells_of(groups)
            before = last_of_set.get((producer, cells))
            if before is not None and sequence != before + 1:
                _wrong(verdict, f"{group} has {payload!r}, number {sequence} of its set, behind number {before}")
            last_of_set[producer, cells] = sequence
            sent = evidence.sent.get(payload)
            if sent is None or sent.unordered:
                continue
            if sent.index < last_ordered.get(producer, -1):
                _wrong(verdict, f"{group} has {payload!r} behind what its producer sent later")
            last_ordered[producer] = max(sent.index, last_ordered.get(producer, -1))


def _check_sessions(evidence: Evidence, places: dict[str, Places], verdict: Verdict) -> None:
    """What a sender had seen, and what the senders of that had seen, comes first in every group that has both.

    Whatever was seen had been sent before: so one pass is enough, in the order in which things were sent.
    """
    by_name = {group_name(id_): found for id_, found in places.items()}
    #: By message and group: the last place of anything that it comes after.
    past: dict[bytes, dict[str, tuple[int, bytes]]] = {}
    for payload, sent in evidence.sent.items():
        mine = past[payload] = {}
        for seen in sent.after:
            there = {name: (found[seen][0], seen) for name, found in by_name.items() if seen in found}
            for name, last in (*past.get(seen, {}).items(), *there.items()):
                mine[name] = max(last, mine.get(name, last))
        for name, (offset, before) in mine.items():
            place = by_name[name].get(payload)
            if place is not None and place[0] <= offset:
                _wrong(verdict, f"{name} has {payload!r} before {before!r}, which its sender had seen")


def _check_order_keys(evidence: Evidence, places: dict[str, Places], verdict: Verdict) -> None:
    """A receipt shows the position in one of the groups."""
    for payload, receipt in evidence.receipts.items():
        keys = [found[payload][2] for found in places.values() if payload in found]
        if keys and receipt.order_key and receipt.order_key not in keys:
            _wrong(verdict, f"the receipt of {payload!r} shows an order key that it has nowhere")
