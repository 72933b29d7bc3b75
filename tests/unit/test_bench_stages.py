"""A message's time by stage: what the bench makes of the marks of all processes, here made up."""

import asyncio
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from ordercast.bench import stages, table
from ordercast.bench.servers import BenchError
from ordercast.bench.stages import EnvelopeMeter, EnvelopeWay, entries_of, marks_in, way_of
from ordercast.runtime.telemetry.envelope_stages import EVENT, Marks

#: Sums of such parts are exact.
TICK = 1 / 1024


def at(ticks: float, since: float | None = None) -> tuple[float, float]:
    return ((ticks if since is None else since) * TICK, ticks * TICK)


def gateway_and_coordinator() -> Marks:
    return {
        "submit": at(102, since=100),
        "timestamped": at(106, since=102),
        "decided": at(112),
        "delivered a": at(113),
        "delivered b": at(115),
        "answered": at(118),
    }


def others() -> list[Marks]:
    """n2's stamp is the last; n3 delivers before anybody else in b."""
    n2 = {"timestamped": at(110, since=105), "decided": at(114), "delivered a": at(120), "delivered b": at(121)}
    n3 = {"timestamped": at(108, since=103), "decided": at(113), "delivered a": at(119), "delivered b": at(114)}
    return [n2, n3]


def way(seen: list[Marks], total: float = 30) -> EnvelopeWay:
    found = way_of(total * TICK, seen)
    assert found is not None
    return found


def ticks(found: EnvelopeWay) -> list[float]:
    return [spent / TICK for spent in found.spent_s().values()]


# ------------------------------------------------------------------------------------------------- one envelope


def test_a_number_that_stamps_imply_takes_no_time_and_all_stages_add_up() -> None:
    found = way([gateway_and_coordinator(), *others()])
    assert found.is_implied
    assert list(found.spent_s()) == list(stages.STAGES)
    # 30 less the 18 at the gateway; then up to n2, its sync, and back; the groups were delivered at 113 and 114.
    assert ticks(found) == [12, 2, 3, 5, 2, 0, 2, 4]
    assert sum(found.spent_s().values()) == found.total_s


def test_a_stamp_that_came_after_the_proposal_did_not_count() -> None:
    found = way([{**gateway_and_coordinator(), "proposed": at(109)}, *others()])
    assert not found.is_implied
    # n3's stamp was the last of the quorum.
    assert ticks(found) == [12, 2, 1, 5, 1, 3, 2, 4]
    assert sum(ticks(found)) == 30


def test_who_only_stepped_in_did_not_know_the_stamps_first() -> None:
    n2, n3 = others()
    found = way([gateway_and_coordinator(), {**n2, "proposed": at(111)}, n3])
    assert found.is_implied


def test_a_process_that_received_before_it_had_noted_the_sending_makes_no_stage_negative() -> None:
    n1 = {**gateway_and_coordinator(), "timestamped": at(111, since=101)}
    assert ticks(way([n1, *others()])) == [12, 2, 0, 9, 1, 0, 2, 4]


@pytest.mark.parametrize("lost", ["submit", "answered"])
def test_an_envelope_that_its_gateway_has_forgotten_is_left_out(lost: str) -> None:
    n1 = gateway_and_coordinator()
    del n1[lost]
    assert way_of(30 * TICK, [n1, *others()]) is None


def test_an_envelope_of_which_no_replica_knows_is_left_out() -> None:
    n1 = gateway_and_coordinator()
    assert way_of(30 * TICK, [{stage: n1[stage] for stage in ("submit", "answered")}]) is None


def test_an_envelope_whose_stamps_are_forgotten_is_left_out() -> None:
    n1 = gateway_and_coordinator()
    del n1["timestamped"]
    assert way_of(30 * TICK, [n1]) is None


# --------------------------------------------------------------------------------------------------------- many


def test_entries_are_stages_in_order_with_their_share_and_the_total() -> None:
    proposed = way([{**gateway_and_coordinator(), "proposed": at(109)}, *others()], total=60)
    entries = entries_of(64, [way([gateway_and_coordinator(), *others()])] * 3 + [proposed])
    assert [entry["stage"] for entry in entries] == [*stages.STAGES, stages.TOTAL]
    assert entries[3] == {
        "in_flight": 64,
        "stage": "sync of the stamp",
        "p50_ms": round(5000 * TICK, 3),
        "p99_ms": round(5000 * TICK, 3),
        "share": round(5 / 30, 3),
        "envelopes": 4,
    }
    assert entries[-1]["share"] == 1.0
    assert entries[-1]["p99_ms"] == round(60_000 * TICK, 3)
    assert [entry["implied_share"] for entry in entries if "implied_share" in entry] == [0.75]


def test_shares_are_those_of_envelopes_that_took_as_long_as_most_and_add_up() -> None:
    quick, slow = way([gateway_and_coordinator(), *others()], total=20), way([gateway_and_coordinator()], total=80)
    middle = [
        way([gateway_and_coordinator(), *others()], total=32),
        way([{**gateway_and_coordinator(), "proposed": at(109)}, *others()], total=32),
    ]
    entries = entries_of(64, [slow] * 4 + middle + [quick] * 4)
    shares = {entry["stage"]: entry["share"] for entry in entries}
    assert shares[stages.NUMBER] == round(3 / 64, 3), "though its median is 0"
    assert sum(shares[stage] for stage in stages.STAGES) == pytest.approx(shares[stages.TOTAL], abs=0.005)


def test_without_any_envelope_there_is_an_error_and_no_table() -> None:
    with pytest.raises(BenchError, match="7 in flight"):
        entries_of(7, [])


def test_the_table_names_each_depth_once_and_fits_in_80_columns() -> None:
    found = way([gateway_and_coordinator(), *others()])
    console = Console(file=io.StringIO(), width=80)
    console.print(table.stages_table(entries_of(1, [found]) + entries_of(1024, [found])))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    firsts = [line.split()[0] for line in text.splitlines() if stages.CLIENT in line]
    assert firsts == ["1", "1,024"]
    assert "number (implied by the stamps: 100%)" in text
    assert "…" not in text


# ----------------------------------------------------------------------------------------- logs and the client


def test_marks_are_read_from_among_other_lines(tmp_path: Path) -> None:
    line = {"event": EVENT, "domain": "default", "envelope": "01", "marks": {"decided": [1.0, 1.0]}}
    log = tmp_path / "n1.log"
    log.write_text(f'no JSON\n{{"event": "stopping"}}\n{json.dumps(line)}\n')
    assert marks_in(log) == {"01": {"decided": [1.0, 1.0]}}


def test_an_envelope_took_as_long_as_its_first_message() -> None:
    def settled(key: bytes) -> "asyncio.Future[Any]":
        soon = loop.create_future()
        soon.set_result(SimpleNamespace(order_key=key))
        return soon

    loop = asyncio.new_event_loop()
    meter, room = EnvelopeMeter(), asyncio.Semaphore(1)
    for begun, id_ in ((1.0, b"a" * 16), (2.0, b"a" * 16), (3.0, b"b" * 16)):
        meter.settle(begun, room, settled(b"sequence" + id_))
    failed = loop.create_future()
    failed.set_exception(OSError())
    meter.settle(0.5, room, failed)
    loop.close()
    assert {id_: begun for id_, (begun, _) in meter.envelopes.items()} == {b"a" * 16: 1.0, b"b" * 16: 3.0}
