"""Runs with --once, one after the other: what was open is finished, and what is late is told apart."""

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ordercast.analytics.audit.findings import AUDITED, VIOLATION
from ordercast.analytics.job import Job
from ordercast.analytics.sources import spool
from ordercast.analytics.spool_server import MemorySpool, served
from ordercast.analytics.streams import AUDIT, LAG, SPREAD, STREAMS, Stream
from ordercast.analytics.synthetic import BEGIN_NS, SECOND, Cluster, Plan, numbered, poisoned
from ordercast.analytics.tables import EVENTS, Tables

STREAMS_HERE = (LAG, SPREAD, AUDIT)
KEYS = {
    LAG.name: ["window_end", "domain", "group", "measure"],
    SPREAD.name: ["window_end", "domain", "group", "node"],
}


def in_two(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Some deliveries of the first ten seconds come last of all, with what is behind the first two hundred."""
    is_early = pc.less(table.column("time_ns"), BEGIN_NS + 200 * SECOND)
    is_late = pc.and_(
        pc.and_(pc.equal(table.column("kind"), "delivery"), pc.equal(table.column("group"), "a")),
        pc.and_(pc.equal(table.column("node"), "n3"), pc.less(table.column("time_ns"), BEGIN_NS + 10 * SECOND)),
    )
    is_late = pc.fill_null(is_late, False)
    first = table.filter(pc.and_(is_early, pc.invert(is_late)))
    late = table.filter(is_late)
    times = pa.repeat(pa.scalar(BEGIN_NS + 245 * SECOND), late.num_rows)
    late = late.set_column(late.schema.get_field_index("received_ns"), "received_ns", times)
    second = pa.concat_tables([table.filter(pc.invert(is_early)), late])
    # A clock that is a year ahead, and a record that was received nobody knows when: no other is late for that.
    span = pc.index(first.column("kind"), "span").as_py()
    first = poisoned(first, span, span_id=b"ahead!!!", time_ns=BEGIN_NS + 31_536_000 * SECOND)
    second = poisoned(second, 0, received_ns=None)
    whole = numbered(pa.concat_tables([first, second]))
    return whole.slice(0, first.num_rows), whole.slice(first.num_rows)


def sorted_rows(frame: pd.DataFrame, stream: Stream) -> pd.DataFrame:
    columns = sorted(frame.columns)
    return frame[columns].sort_values(KEYS[stream.name]).reset_index(drop=True).drop(columns="date")


def batch(spark: Any, tables: Tables, stream: Stream) -> pd.DataFrame:
    """The same transformation over all events at once."""
    return stream.transform(spark.read.parquet(str(tables.path(EVENTS)))).toPandas()


@pytest.mark.long
def test_a_second_run_finishes_what_was_open_and_late_deliveries_are_audited_but_not_in_windows_that_are_over(
    spark: Any, tmp_path: Path
):
    cluster = Cluster(Plan(2400, rate=10, groups=("a", "b"), traced_every=50))
    first, second = in_two(cluster.table())
    memory = MemorySpool(first, 4000)
    job = Job.at(spark, tmp_path)
    with served(memory) as address:
        job.run_once(spool(spark, address, 100_000, 2), STREAMS_HERE)
        for stream in (LAG, SPREAD):
            told = job.tables.read(stream.name).to_pandas()
            expected = batch(spark, job.tables, stream)
            # What is finished and what is open is together what one query over everything says.
            pd.testing.assert_frame_equal(
                sorted_rows(told, stream), sorted_rows(expected, stream), check_dtype=False
            )
            assert job.tables.files(stream.name), "some windows are over"
            assert list(job.tables.open_path(stream.name).rglob("*.parquet")), "and some are not"
        over = pd.concat(pd.read_parquet(path) for path in job.tables.files(LAG.name))
        memory.append(second)
        job.run_once(spool(spark, address, 100_000, 2), STREAMS_HERE)
    lag = job.tables.read(LAG.name).to_pandas()
    assert not lag.duplicated(KEYS[LAG.name]).any(), "no window is there as finished and as open"
    # Windows that were over stay as they were told, whatever comes late.
    again = over.merge(lag, on=KEYS[LAG.name], suffixes=("", "_now"))
    assert len(again) == len(over)
    assert (again["count"] == again["count_now"]).all()
    late = second.filter(pc.less(second.column("time_ns"), BEGIN_NS + 10 * SECOND)).num_rows
    counted = lag[lag["measure"] == "delivery"].groupby("window_end")["count"].sum()
    expected = batch(spark, job.tables, LAG)
    whole = expected[expected["measure"] == "delivery"].groupby("window_end")["count"].sum()
    first_minute = pd.Timestamp(BEGIN_NS // SECOND + 60, unit="s")
    assert late > 50
    assert whole[first_minute] - counted[first_minute] == late
    last_minute = pd.Timestamp(BEGIN_NS // SECOND + 240, unit="s")
    assert whole[last_minute] == counted[last_minute] > 0
    # They are events all the same, and the audit has looked at every one of them.
    audit = job.tables.read(AUDIT.name).to_pandas()
    assert audit[audit["severity"] == AUDITED]["count"].sum() == len(cluster.deliveries.position)
    assert audit[audit["severity"] == VIOLATION].empty
    events = job.tables.read(EVENTS, columns=["kind", "reason"]).to_pandas()
    assert events[events["kind"] == "poison"]["reason"].tolist() == ["without received_ns"]


def test_the_streams_have_names_of_their_own():
    assert len({stream.name for stream in STREAMS}) == len(STREAMS)
