"""The job from Kafka, with a real broker and Spark's own connector: `make test-kafka`."""

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pytest

from tests.analytics.needed import need_packages, need_spark
from tests.kafka.broker import JARS, ROOT
from tests.left_out import leave_out

CONNECTOR = ROOT / "build" / "kafka" / "connector"
if not (JARS / ".ready").exists() or not (CONNECTOR / ".ready").exists() or version("pyspark") != "4.0.0":
    leave_out("the job from Kafka: that is `make test-kafka`")
need_packages()

from confluent_kafka import Producer  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402

from ordercast.analytics.synthetic import Cluster  # noqa: E402
from ordercast.analytics.tables import EVENTS, Tables  # noqa: E402
from tests.analytics.planted import PLAN, plant, sent_twice, spoiled  # noqa: E402
from tests.kafka.broker import broker  # noqa: E402

TOPIC = "telemetry"
PARTITIONS = 3
ROWS_OF_MESSAGE = 400
PATIENCE_S = 600

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    need_spark()
    with broker(tmp_path_factory.mktemp("broker")) as address:
        yield address


def message(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def produce(address: str, table: pa.Table) -> None:
    """In messages of a few hundred records, over all partitions."""
    producer = Producer({"bootstrap.servers": address})
    for number, begin in enumerate(range(0, table.num_rows, ROWS_OF_MESSAGE)):
        value = message(table.slice(begin, ROWS_OF_MESSAGE))
        producer.produce(TOPIC, value, partition=number % PARTITIONS)
    producer.produce(TOPIC, b"this is no Arrow", partition=0)
    assert producer.flush(60) == 0


def run_once(address: str, folder: Path) -> None:
    command = [sys.executable, "-m", "ordercast.cli.main", "analytics", "run", "--source", "kafka", "--once"]
    command += ["--address", address, "--topic", TOPIC, "--jars", str(CONNECTOR), "--output", str(folder)]
    command += ["--per-trigger", "40", "--keep-days", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr[-3000:]


def test_records_from_kafka_come_to_the_same_and_a_message_that_nobody_can_read_is_poison(
    address: str, tmp_path: Path
):
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=1)])[TOPIC].result(60)
    cluster = Cluster(PLAN)
    other_key = plant(cluster)
    clean = cluster.table()
    whole = spoiled(sent_twice(clean))
    half = whole.num_rows // 2
    tables = Tables(tmp_path / "tables")
    for part in (whole.slice(0, half), whole.slice(half)):
        produce(address, part)
        run_once(address, tables.folder)
    events = tables.read(EVENTS, columns=["kind"]).to_pandas()["kind"].value_counts().to_dict()
    kinds = clean.column("kind").to_pylist()
    assert events == {kind: kinds.count(kind) for kind in set(kinds)} | {"poison": 7}
    letters = tables.read("dead_letters").to_pandas()["reason"]
    assert sum(reason.startswith("unreadable message") for reason in letters) == 2
    audit = tables.read("audit").to_pandas()
    violations = audit[audit["severity"] == "violation"]
    found = set(violations[["violation", "group", "position"]].itertuples(index=False, name=None))
    assert {("order", "a", 100), ("order", "a", 101), ("gap", "b", 500), ("gap", "c", 1023)} <= found
    assert {("duplicate", "d", 77), ("offset", "c", 300)} <= found
    key = violations[violations["violation"] == "key"].iloc[0]
    assert other_key in (key["position"], key["other_position"])
    assert not tables.read("lag").to_pandas().duplicated(["window_end", "domain", "group", "measure"]).any()
