"""A real cluster and a real telemetry service: what is emitted is what is in the schema, no more and no less."""

import asyncio
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.sdk.trace import TracerProvider

import ordercast
from ordercast.analytics.spool_client import SpoolClient
from ordercast.core.tracing import root_id
from ordercast.local.cluster import HOST, LocalCluster, free_ports, wait_until
from ordercast.local.setup import create_domain, create_groups
from ordercast.local.telemetry import LocalTelemetry
from ordercast.telemetry.schema import names
from ordercast.telemetry.schema.model import load
from ordercast.v1.faults_pb2 import InjectRequest
from ordercast.v1.gateway_pb2 import DescribeGroupRequest
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub

SCHEMA = load()
#: Who is running here.
EMITTERS = ("gateway", "sequencer", "membership", "all", "telemetry")
#: Without TLS nobody has a certificate.
NOT_HERE = {names.METRIC_CERTIFICATE_LEFT, names.METRIC_CERTIFICATE_LIFETIME}
PATIENCE_S = 60.0
GROUPS = ("a", "b", "r", "s")
TRACER = TracerProvider().get_tracer("test")


@dataclass
class Seen:
    """Rows of the spool by kind and name, and what Prometheus would have read."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    scraped: str = ""
    #: What is on the pages of the nodes that are up.
    pages: list[str] = field(default_factory=list)
    trace: bytes = b""

    def of(self, kind: str, name: str | None = None) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["kind"] == kind and name in (None, row["name"])]

    def names(self, kind: str) -> set[str]:
        return {row["name"] for row in self.of(kind)}


async def drive(gateways: list[str], sets: list[list[str]], count: int) -> None:
    """A producer for each set, at once and one message after the other: some have to wait for others."""
    await asyncio.gather(*(produce(gateways, groups, count) for groups in sets))
    async with (
        ordercast.connect(*gateways) as oc,
        oc.subscribe(sets[0][0], start="earliest", stop_at_end=True) as deliveries,
    ):
        async for _ in deliveries:
            pass


async def produce(gateways: list[str], groups: list[str], count: int) -> None:
    async with ordercast.connect(*gateways) as oc:
        for _ in range(count):
            await oc.publish(b"payload", to=groups)


async def publish_in_a_trace(gateway: str, group: str) -> bytes:
    async with ordercast.connect(gateway) as oc:
        with TRACER.start_as_current_span("work") as span:
            await oc.publish(b"traced", to=group)
        return span.get_span_context().trace_id.to_bytes(16)


async def publish_to_nobody(gateway: str) -> None:
    async with ordercast.connect(gateway) as oc:
        with pytest.raises(ordercast.OrdercastError):
            await oc.publish(b"lost", to="no-such-group")


def scrape(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
        return text


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """A cluster with both protocols, a slow disk, a kill, and what clients do wrong."""
    directory: Path = tmp_path_factory.mktemp("emission")
    found = Seen()
    with LocalTelemetry(directory / "telemetry", options=("--seal-s=0.5",)) as telemetry:
        options = [
            f"--telemetry.endpoint={telemetry.address}",
            "--telemetry.sampling=1",
            "--telemetry.metrics-s=0.5",
            "--detection.suspect-s=1",
        ]
        with LocalCluster(directory / "cluster", options=options, fault_injection=True) as cluster:
            addresses = {name: f"{HOST}:{port}" for name, port in zip(cluster.members, free_ports(3), strict=True)}
            for member in cluster.members.values():
                member.extra = [f"--telemetry.metrics-listen={addresses[member.name]}"]
            cluster.start()
            cluster.wait_healthy()
            create_groups(cluster.gateways, ["a", "b"])
            create_domain(cluster.gateways, "chat", "isis", {})
            create_groups(cluster.gateways, ["r", "s"], domain="chat")
            sets = [["a", "b"], ["a"], ["b"], ["r", "s"], ["r"]]
            asyncio.run(drive(cluster.gateways, sets, 20))
            found.trace = asyncio.run(publish_in_a_trace(cluster.gateways[0], "a"))
            asyncio.run(publish_to_nobody(cluster.gateways[0]))
            with ordercast.connect_sync(*cluster.gateways) as oc:
                oc.set_cursor("a", "reader", "earliest")
            cluster.inject("node-2", InjectRequest(disk_delay_s=0.02))
            asyncio.run(drive(cluster.gateways, sets, 5))
            with SpoolClient(telemetry.address, patience_s=PATIENCE_S) as client:
                wait_until("node-3 has told what it delivered", lambda: has_told(client, "node-3"), PATIENCE_S)
            cluster.kill("node-3")
            asyncio.run(drive(cluster.gateways[:2], sets, 5))
            suspicions = 'ordercast_suspicions_total{node="node-3"}'
            wait_until("node-3 is suspected", lambda: suspicions in scrape(addresses["node-1"]), PATIENCE_S)
            asyncio.run(drive(cluster.gateways[:2], sets, 5))
            wait_until("node-2 has all that node-1 has", lambda: are_equal(cluster), PATIENCE_S)
            lag = 'ordercast_cursor_lag{cursor="reader",domain="default",group="a"}'
            wait_until(
                "how far the cursor is behind is known", lambda: lag in scrape(addresses["node-1"]), PATIENCE_S
            )
            found.pages = [scrape(addresses[name]) for name in ("node-1", "node-2")]
            found.scraped = found.pages[0] + scrape(telemetry.metrics_address)
            cluster.stop()
        with SpoolClient(telemetry.address, patience_s=PATIENCE_S) as client:
            wait_until("everything is sealed", lambda: has_stopped(client), PATIENCE_S)
            found.rows = rows_of(client)
    return found


def rows_of(client: SpoolClient) -> list[dict[str, Any]]:
    return [row for batch in client.read(0, client.describe().end) for row in batch.to_pylist()]


def are_equal(cluster: LocalCluster) -> bool:
    with grpc.insecure_channel(cluster.gateways[0]) as channel:
        ask = GatewayServiceStub(channel).DescribeGroup
        for group in GROUPS:
            logs = {one.node: one for one in ask(DescribeGroupRequest(name=group), timeout=PATIENCE_S).replicas}
            first, second = logs["node-1"], logs["node-2"]
            if first.error or second.error or first.log.position != second.log.position:
                return False
    return True


def has_told(client: SpoolClient, node: str) -> bool:
    kinds = {row["kind"] for row in rows_of(client) if row["node"] == node}
    return {"delivery", "span"} <= kinds


def has_stopped(client: SpoolClient) -> bool:
    return sum(row["name"] == names.EVENT_STOPPING for row in rows_of(client)) >= 2


def test_nothing_is_emitted_that_is_not_in_the_schema(seen: Seen):
    assert seen.names("span") <= set(SCHEMA.spans)
    assert seen.names("event") | seen.names("delivery") <= set(SCHEMA.events)
    assert seen.names("point") <= set(SCHEMA.metrics)
    assert seen.of("poison") == []
    known = {metric.prometheus for metric in SCHEMA.metrics.values()}
    told = {line.split()[2] for line in seen.scraped.splitlines() if line.startswith("# TYPE ordercast_")}
    assert told <= known


def test_nothing_is_in_the_schema_that_is_not_emitted(seen: Seen):
    def emitted_here(entries: Any) -> set[str]:
        return {entry.name for entry in entries if entry.emitter in EMITTERS}

    assert emitted_here(SCHEMA.spans.values()) - seen.names("span") == set()
    assert emitted_here(SCHEMA.events.values()) - seen.names("event") - seen.names("delivery") == set()
    scraped = {line.split("{")[0].split(" ")[0] for line in seen.scraped.splitlines()}
    missing = [
        metric.name
        for metric in SCHEMA.metrics.values()
        if metric.emitter in EMITTERS
        and metric.name not in NOT_HERE
        and not any(name.startswith(metric.prometheus) for name in scraped)
    ]
    assert missing == []


def test_one_of_those_who_are_up_leads_membership(seen: Seen):
    """It was agreed with one that the third is suspected."""
    name = SCHEMA.metrics[names.METRIC_MEMBERSHIP_LEADING].prometheus
    told = [line.split()[1] for page in seen.pages for line in page.splitlines() if line.startswith(f"{name} ")]
    assert sorted(told) == ["0.0", "1.0"]


def test_attributes_are_those_of_the_schema(seen: Seen):
    resource = {a.name for a in SCHEMA.attributes.values() if a.resource}
    by_column = {column.name: column.attribute for column in SCHEMA.columns.values() if column.attribute}
    emitters = {"span": SCHEMA.spans, "event": SCHEMA.events, "point": SCHEMA.metrics}
    for kind, entries in emitters.items():
        for row in seen.of(kind):
            said = {by_column[name] for name, value in row.items() if name in by_column and value is not None}
            said |= set(dict(row["attributes"] or []))
            # A histogram's count stands in a column that events have an attribute for; every span has a kind.
            allowed = set(entries[row["name"]].attributes) | resource | {names.ATTRIBUTE_COUNT, "span.kind"}
            assert said <= allowed, (row["name"], said - allowed)


def test_every_delivery_of_every_replica_is_there_once_and_in_order(seen: Seen):
    lives = {(row["node"], row["incarnation"]) for row in seen.of("delivery")}
    assert len({node for node, _ in lives}) == 3
    for group in GROUPS:
        for node in ("node-1", "node-2"):
            rows = [row for row in seen.of("delivery") if (row["group"], row["node"]) == (group, node)]
            assert [row["position"] for row in rows] == list(range(len(rows)))
            assert all(row["published_ns"] <= row["time_ns"] for row in rows)
    deliveries = [row for row in seen.of("delivery") if row["node"] == "node-1"]
    others = {(row["group_id"], row["position"]): row for row in seen.of("delivery") if row["node"] == "node-2"}
    for row in deliveries:
        other = others[row["group_id"], row["position"]]
        for column in ("envelope", "order_key", "first_offset", "messages", "trace_id"):
            assert row[column] == other[column]


def test_a_trace_goes_through_all_processes_of_an_envelope(seen: Seen):
    roots = [row for row in seen.of("span", names.SPAN_PUBLISH) if row["attributes"]]
    assert roots
    root = roots[0]
    assert root["span_id"] == root_id(root["trace_id"])
    spans = [row for row in seen.of("span") if row["trace_id"] == root["trace_id"]]
    # The third was killed, and may have taken the last second with it.
    assert {row["node"] for row in spans} >= {"node-1", "node-2"}
    assert all(row["parent_span_id"] == root["span_id"] for row in spans if row is not root)


def test_a_clients_own_trace_is_linked(seen: Seen):
    (asked,) = [row for row in seen.of("span", names.SPAN_PUBLISH) if row["linked_trace_id"] == seen.trace]
    assert dict(asked["attributes"])[names.ATTRIBUTE_KEPT] == "asked"


def test_what_was_waited_for_is_named(seen: Seen):
    blocked = {row["blocked_on"] for row in seen.of("span") if row["blocked_on"]}
    kinds = {text.partition(":")[0] for text in blocked}
    assert {"replica", "token"} <= kinds
    assert "replica:node-2" in blocked
