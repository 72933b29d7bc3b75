"""The whole job over a spool in which everything is wrong that can be: what the tables hold afterwards."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pytest

from ordercast.analytics import rest
from ordercast.analytics.audit.findings import AUDITED, VIOLATION
from ordercast.analytics.job import Job
from ordercast.analytics.sources import spool
from ordercast.analytics.spool_server import MemorySpool, served
from ordercast.analytics.streams import STREAMS
from ordercast.analytics.synthetic import BEGIN_NS, SECOND
from ordercast.analytics.tables import EVENTS
from tests.analytics.planted import Planted, sent_twice


def kinds_of(events: pd.DataFrame) -> dict[str, int]:
    return events[events["kind"] != "poison"]["kind"].value_counts().to_dict()


def test_events_are_the_records(run: Planted):
    events = run.tables.read(EVENTS, columns=["kind"]).to_pandas()
    assert kinds_of(events) == kinds_of(run.clean.select(["kind"]).to_pandas())


def test_what_a_source_may_have_twice_is_an_event_once(spark: Any, run: Planted, tmp_path: Path):
    twice = sent_twice(run.clean)
    assert twice.num_rows > run.clean.num_rows
    job = Job.at(spark, tmp_path)
    job.prepare()
    with served(MemorySpool(twice, 7000)) as address:
        records = replace(spool(spark, address, 10_000, 2), may_repeat=True)
        job.land(records, is_once=True).awaitTermination()
    events = job.tables.read(EVENTS, columns=["kind"]).to_pandas()
    assert kinds_of(events) == kinds_of(run.clean.select(["kind"]).to_pandas())


def test_a_position_that_a_replica_delivered_twice_stays_twice(run: Planted):
    events = run.tables.read(EVENTS, columns=["kind", "group", "node", "position"]).to_pandas()
    same = events[(events["group"] == "d") & (events["node"] == "n1") & (events["position"] == 77)]
    assert len(same) == 2


def test_poison_is_set_aside_with_its_reason(run: Planted):
    letters = run.read("dead_letters")
    assert sorted(letters["reason"]) == [
        "delivery with a malformed id",
        "delivery without position",
        "malformed OTLP: cut short",
        "unknown kind",
        "unknown schema version",
    ]
    assert '"group_id":' in letters[letters["reason"] == "unknown kind"]["record"].iloc[0]


def found(run: Planted, violation: str) -> pd.DataFrame:
    audit = run.read("audit")
    return audit[(audit["severity"] == VIOLATION) & (audit["violation"] == violation)]


def trace_at(run: Planted, group: str, node: str, position: int) -> str:
    rows = run.cluster.deliveries
    return run.cluster.traces[rows.envelope[rows.where(group, node, position)]].tobytes().hex()


def test_two_swapped_deliveries_are_found_with_both_traces(run: Planted):
    order = found(run, "order").sort_values("position")
    assert order["position"].tolist() == [100, 101]
    assert set(order["group"]) == {"a"}
    for row in order.to_dict("records"):
        told = {row["node"]: row["trace"], row["other_node"]: row["other_trace"]}
        assert told.pop("n3") == trace_at(run, "a", "n3", row["position"])
        assert list(told.values()) == [trace_at(run, "a", "n1", row["position"])]


def test_a_gap_is_found_also_at_the_end_of_a_range(run: Planted):
    gaps = found(run, "gap").sort_values("group")
    assert gaps[["group", "node", "position", "position_last"]].values.tolist() == [
        ["b", "n2", 500, 500],
        ["c", "n1", 1023, 1023],
    ]
    first = gaps.iloc[0]
    assert [first["trace"], first["other_trace"]] == [trace_at(run, "b", "n2", at) for at in (499, 501)]


def test_a_position_that_was_delivered_twice_is_found(run: Planted):
    (duplicate,) = found(run, "duplicate").to_dict("records")
    assert (duplicate["group"], duplicate["node"], duplicate["position"]) == ("d", "n1", 77)
    assert duplicate["trace"] == duplicate["other_trace"] == trace_at(run, "d", "n2", 77)


def test_an_offset_that_differs_is_found(run: Planted):
    offsets = found(run, "offset")
    assert set(offsets["group"]) == {"c"}
    assert 300 in set(offsets["position"])
    assert set(offsets["position"]) <= {300, 301}
    assert "n2" in set(offsets["node"]) | set(offsets["other_node"])


def test_an_envelope_with_two_keys_is_found_once(run: Planted):
    (key,) = found(run, "key").to_dict("records")
    sides = {key["group"]: key["position"], key["other_group"]: key["other_position"]}
    assert len(sides) == 2
    assert sides["a"] == run.other_key
    assert key["trace"] == key["other_trace"] == trace_at(run, "a", "n1", run.other_key)


def test_every_delivery_was_audited_by_three_replicas(run: Planted):
    audit = run.read("audit")
    audited = audit[audit["severity"] == AUDITED]
    kinds = run.clean.column("kind").to_pylist()
    # The position that was delivered twice counts once.
    assert audited["count"].sum() == kinds.count("delivery") - 1
    assert set(audited["replicas"]) == {3}


def window(run: Planted, at_s: int, group: str) -> np.ndarray:
    """Lags of the deliveries of a group in the minute that ends then, in seconds."""
    # Nanoseconds are whole numbers only among records that all have them.
    rows = run.clean.filter(pc.equal(run.clean.column("kind"), "delivery")).to_pandas()
    end = BEGIN_NS + at_s * SECOND
    chosen = rows[rows["group"] == group]
    # One replica's clock is ahead: nothing happened after it was received.
    at = chosen[["time_ns", "received_ns"]].min(axis=1)
    chosen = chosen[(at >= end - 60 * SECOND) & (at < end)]
    return ((chosen["time_ns"] - chosen["published_ns"]) / 1e9).to_numpy()


@pytest.mark.parametrize("at_s", [60, 110])
def test_lag_is_that_of_the_window_whether_the_watermark_has_passed_it_or_not(run: Planted, at_s: int):
    end = datetime.fromtimestamp(BEGIN_NS / SECOND + at_s, UTC)
    assert (end <= rest.watermark(run.checkpoints / "lag")) == (at_s == 60), "one of each"
    lag = run.read("lag")
    row = lag[
        (lag["measure"] == "delivery") & (lag["group"] == "a") & (lag["window_end"] == end.replace(tzinfo=None))
    ]
    (told,) = row.to_dict("records")
    expected = np.sort(window(run, at_s, "a"))
    assert told["count"] == len(expected)
    assert told["max"] == pytest.approx(expected[-1])
    for name, quantile in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        assert told[name] == pytest.approx(expected[int(np.ceil(quantile * len(expected))) - 1])


def test_every_stage_has_its_lag(run: Planted):
    measures = set(run.read("lag")["measure"])
    assert measures == {"delivery", "publish", "timestamp", "decide", "predecessors", "deliver"}


def test_the_slow_replica_is_behind_and_its_disk_tells_why(run: Planted):
    spread = run.read("spread")
    behind = spread[spread["node"].notna()].groupby("node")["p50"].median()
    assert behind["n3"] == pytest.approx(0.08, abs=0.002)
    assert behind["n1"] < 0.002
    apart = spread[spread["node"].isna()]["p50"].median()
    assert apart == pytest.approx(behind["n3"], abs=0.002)
    stragglers = run.read("stragglers").groupby("node")
    assert stragglers["commit_p95"].max().to_dict() == {"n1": 0.0025, "n2": 0.0025, "n3": 0.1}


def test_a_clock_that_runs_ahead_shows_in_the_time_that_records_take(run: Planted):
    transit = run.read("stragglers").groupby("node")["transit_min"].median()
    assert transit["n1"] - transit["n2"] == pytest.approx(0.04, abs=0.002)
    assert transit["n1"] - transit["n3"] == pytest.approx(0.0, abs=0.002)


def test_the_slow_replica_is_the_first_of_the_blockers_also_through_messages(run: Planted):
    blockers = run.read("blockers")
    blockers = blockers[blockers["window_start"].dt.second == blockers["window_start"].dt.second.mode()[0]]
    waits = blockers.groupby("blocker")["wait_sum"].sum().sort_values(ascending=False)
    assert waits.index[0] == "replica:n3"
    through = blockers[blockers["blocker"] == "replica:n3"].groupby("stage")["through_messages"].sum()
    assert through["deliver"] > 0
    assert through["decide"] == 0
    assert any(name.startswith("message:") for name in waits.index), "what it waited for was not sampled"


def test_a_group_that_refused_publishes_was_unavailable(run: Planted):
    (session,) = run.read("unavailability").to_dict("records")
    assert (session["domain"], session["group"], session["refused"]) == ("default", "d", 30)
    # Refusals are told for each second.
    assert session["duration_us"] == 6_000_000


def test_all_streams_have_their_table(run: Planted):
    for stream in STREAMS:
        assert not run.read(stream.name).empty, stream.name
