"""The spool as a source: how batches are admitted and divided, and what a reader gets of segments."""

import pyarrow as pa
import pytest

from tests.analytics.needed import need_packages

need_packages()

from ordercast.analytics.errors import AnalyticsError  # noqa: E402
from ordercast.analytics.records import arrow_schema, as_records  # noqa: E402
from ordercast.analytics.source import Options, admitted, cuts_of, divided, what_is_left  # noqa: E402
from ordercast.analytics.spool_client import SpoolClient, SpoolState  # noqa: E402
from ordercast.analytics.spool_server import MemorySpool, served  # noqa: E402
from ordercast.analytics.synthetic import Cluster, Plan  # noqa: E402

SPOOL = SpoolState(begin=100, end=1200, taken=1200, schema_version=1, segments=(100, 400, 700, 1000), spool_id="s")


def ranges(spool: SpoolState, start: int, end: int, count: int) -> list[tuple[int, int]]:
    return [(part.begin, part.end) for part in divided(spool, start, end, count)]


def test_a_batch_takes_all_there_is_if_that_is_not_too_much():
    assert admitted(SPOOL, 100, 1200, 1100) == 1200
    assert admitted(SPOOL, 1200, 1200, 1100) == 1200


def test_a_batch_that_is_limited_ends_between_two_segments():
    assert admitted(SPOOL, 100, 1200, 700) == 700
    assert admitted(SPOOL, 100, 1200, 100) == 200, "in a segment if it has to"


def test_a_batch_begins_where_the_spool_does_if_the_rest_is_deleted():
    assert admitted(SPOOL, 0, 1200, 300) == 400


def test_a_range_is_divided_between_segments_only():
    assert ranges(SPOOL, 100, 1200, 2) == [(100, 700), (700, 1200)]
    assert ranges(SPOOL, 100, 1200, 4) == [(100, 400), (400, 700), (700, 1000), (1000, 1200)]
    assert ranges(SPOOL, 1000, 1200, 4) == [(1000, 1200)], "what is not sealed is one piece"
    assert ranges(SPOOL, 450, 600, 2) == [(450, 600)]
    assert ranges(SPOOL, 1200, 1200, 2) == []


@pytest.mark.parametrize("count", [1, 2, 3, 5, 50])
@pytest.mark.parametrize(("start", "end"), [(100, 1200), (399, 401), (400, 1000), (150, 1100)])
def test_parts_are_the_whole_and_do_not_overlap(start: int, end: int, count: int):
    parts = ranges(SPOOL, start, end, count)
    assert [at for part in parts for at in range(*part)] == list(range(start, end))
    assert len(parts) <= count


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs the option `address`"),
        ({"address": "a:1", "partitions": "0"}, "`partitions`"),
        ({"address": "a:1", "rows_per_trigger_max": "many"}, "`rows_per_trigger_max`.*not 'many'"),
        ({"address": "a:1", "ca": "ca.pem", "cert": "c.pem"}, "`cert` and `key`.*go together"),
        ({"address": "a:1", "cert": "c.pem", "key": "c.key"}, "only with the option `ca`"),
        ({"address": "a:1", "server_name": "telemetry"}, "only with the option `ca`"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, str], words: str):
    with pytest.raises(AnalyticsError, match=words):
        Options.of(options)


def test_a_range_is_read_exactly_though_segments_come_whole():
    spool = MemorySpool(Cluster(Plan(100)).table(), 150)
    with served(spool) as address, SpoolClient(address) as client:
        described = client.describe()
        assert described.end == spool.end
        assert cuts_of(described)[:3] == (0, 150, 300)
        offsets = [offset for batch in client.read(140, 310) for offset in batch.column("offset").to_pylist()]
    assert offsets == list(range(140, 310))


def test_what_retention_has_deleted_is_passed_over_and_said(capsys: pytest.CaptureFixture[str]):
    spool = MemorySpool(Cluster(Plan(100)).table(), 150)
    spool.begin = 200
    with served(spool) as address, SpoolClient(address) as client:
        batches = list(what_is_left(client, 140, 310))
    offsets = [offset for batch in batches for offset in batch.column("offset").to_pylist()]
    assert offsets == list(range(200, 310))
    assert "dropped its records 140 to 199" in capsys.readouterr().err


def test_a_spool_of_another_version_gives_our_columns():
    batch = pa.RecordBatch.from_pylist([{"offset": 7, "kind": "span", "colour": "red"}])
    records = as_records(batch)
    assert records.schema.equals(arrow_schema())
    assert records.to_pylist()[0]["offset"] == 7
    assert records.to_pylist()[0]["envelope"] is None
