"""Several groups as one stream in causal order, read from a gateway."""

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

import ordercast
from ordercast.client import aio_causal, aio_silence
from ordercast.core.ids import envelope_id, order_key
from ordercast.errors import FailedPrecondition, InvalidArgument
from ordercast.v1.common_pb2 import (
    Batch,
    Destination,
    Envelope,
    Header,
    Message,
    ProducerRange,
    RangeOutcome,
    Span,
)
from ordercast.v1.gateway_pb2 import DescribeGroupResponse, ListDomainsResponse, ReplicaStatus
from ordercast.v1.gateway_pb2_grpc import add_GatewayServiceServicer_to_server
from ordercast.v1.isis_pb2 import CastStamp, LogInView
from ordercast.v1.membership_pb2 import Domain, Group
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse, LogEntry
from tests.unit.causal_stamps import stamp, time_of
from tests.unit.client_gateway import ClusterModel, GatewayServicer
from tests.unit.hanging import hanging


class CausalGateway(GatewayServicer):
    """Its groups are in a domain that the test chooses; entries have stamps."""

    def __init__(self, cluster: ClusterModel) -> None:
        super().__init__(cluster)
        self.domain = Domain(name="rooms", protocol="isis")
        self.view = 1
        self.counts: list[int] = []
        self.questions = 0

    def DescribeGroup(self, request, context):  # noqa: N802
        self.questions += 1
        group = self.cluster.groups[request.name]
        log = DescribeReplicaResponse(next_offset=group.next_offset)
        log.protocol = LogInView(view=self.view, counts=self.counts).SerializeToString()
        return DescribeGroupResponse(
            group=Group(name=request.name, id=group.id, domain=self.domain.name),
            replicas=[ReplicaStatus(node="away", error="does not answer"), ReplicaStatus(node="here", log=log)],
        )

    def ListDomains(self, request, context):  # noqa: N802
        return ListDomainsResponse(domains=[Domain(name="default"), self.domain])

    def append(self, name: str, cast: CastStamp) -> None:
        """One message. The entry's name begins with its group's, and is its payload."""
        cluster = self.cluster
        with cluster.changed:
            group = cluster.groups[name[0]]
            offset = group.next_offset
            cluster.sn += 1
            header = Header(
                destinations=[Destination(group=group.id)],
                ranges=[ProducerRange(producer=b"p", first_sequence=offset + 1, count=1)],
            )
            body = Batch(messages=[Message(payload=name.encode())]).SerializeToString()
            outcome = RangeOutcome(spans=[Span(first_sequence=offset + 1, count=1, first_offset=offset)])
            entry = LogEntry(
                order_key=order_key(cluster.sn, envelope_id(1, cluster.sn)),
                envelope=Envelope(header=header, body=body),
                first_offset=offset,
                outcomes=[outcome],
                protocol=cast.SerializeToString(),
            )
            group.entries.append(entry)
            group.next_offset = offset + 1
            cluster.changed.notify_all()


@pytest.fixture
def gateway():
    return CausalGateway(ClusterModel("a", "b"))


@pytest.fixture
def address(gateway):
    server = grpc.server(ThreadPoolExecutor(max_workers=16))
    add_GatewayServiceServicer_to_server(gateway, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(0).wait()


def run(main) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await main()

    asyncio.run(bounded())


async def take(deliveries, count: int) -> list[str]:
    return [(await anext(deliveries)).payload.decode() for _ in range(count)]


async def is_silent(deliveries) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.3):
            await anext(deliveries)
            return False
    return True


def test_a_paused_group_holds_up_what_comes_after_its_messages(gateway, address):
    gateway.append("a1", stamp(1, 0, 1))
    gateway.append("b1", stamp(1, 0, 1))
    gateway.append("b2", stamp(1, 0, 2, time_of("a", 1, {0: 1})))

    async def main():
        async with ordercast.connect(address) as oc, oc.subscribe_causal(["b", "a"]) as deliveries:
            deliveries.pause("a")
            assert await take(deliveries, 1) == ["b1"]
            assert await is_silent(deliveries)
            assert deliveries.waiting == {"a": 0, "b": 1}
            assert deliveries.offsets == {"a": 0, "b": 1}
            deliveries.resume("a")
            assert await take(deliveries, 2) == ["a1", "b2"]
            assert deliveries.offsets == {"a": 1, "b": 2}
            with pytest.raises(InvalidArgument):
                deliveries.pause("c")

    run(main)


def test_what_was_read_is_seen_and_there_is_no_cursor_to_acknowledge_to(gateway, address):
    gateway.append("a1", stamp(1, 0, 1))

    async def main():
        async with ordercast.connect(address) as oc, oc.subscribe_causal(["a", "b"]) as deliveries:
            assert oc.session_token == b""
            delivery = await anext(deliveries)
            assert oc.session_token != b""
            with pytest.raises(FailedPrecondition):
                await delivery.ack()

    run(main)


def test_the_replicas_are_asked_when_a_log_shows_nothing_of_a_view(gateway, address, monkeypatch):
    monkeypatch.setattr(aio_causal, "ASK_S", 0.01)
    gateway.append("a1", stamp(1, 0, 1))
    gateway.append("b1", stamp(1, 0, 1, time_of("a", 2)))

    async def main():
        async with ordercast.connect(address) as oc, oc.subscribe_causal(["a", "b"]) as deliveries:
            assert await take(deliveries, 1) == ["a1"]
            assert await is_silent(deliveries)
            before = gateway.questions
            gateway.view = 2
            assert await take(deliveries, 1) == ["b1"]
            assert gateway.questions > before

    run(main)


def test_the_replicas_are_asked_for_entries_that_show_no_message(gateway, address, monkeypatch):
    """A producer was opened, or a message repeated: that counts, and no reader is shown it."""
    monkeypatch.setattr(aio_causal, "ASK_S", 0.01)
    gateway.append("a1", stamp(1, 0, 1))
    gateway.append("b1", stamp(1, 0, 1, time_of("a", 1, {0: 2, 1: 1})))

    async def main():
        async with ordercast.connect(address) as oc, oc.subscribe_causal(["a", "b"]) as deliveries:
            assert await take(deliveries, 1) == ["a1"]
            for counts in ([], [1, 1]):
                gateway.counts = counts
                assert await is_silent(deliveries)
            gateway.counts = [2, 1]
            assert await take(deliveries, 1) == ["b1"]

    run(main)


def test_from_the_latest_on_nothing_old_is_waited_for(gateway, address):
    for number in range(1, 101):
        gateway.append(f"a{number}", stamp(1, 0, number))

    async def main():
        async with ordercast.connect(address) as oc, oc.subscribe_causal(["a", "b"], "latest") as deliveries:
            gateway.append("b1", stamp(1, 0, 1, time_of("a", 1, {0: 100})))
            assert await take(deliveries, 1) == ["b1"]
            assert deliveries.offsets == {"a": 100, "b": 1}

    run(main)


def test_reading_goes_on_where_it_was(gateway, address):
    for number in range(1, 6):
        gateway.append(f"a{number}", stamp(1, 0, number))

    async def main():
        async with ordercast.connect(address) as oc:
            async with oc.subscribe_causal(["a", "b"]) as deliveries:
                assert await take(deliveries, 2) == ["a1", "a2"]
                offsets = deliveries.offsets
            async with oc.subscribe_causal(["a", "b"], offsets) as deliveries:
                assert await take(deliveries, 3) == ["a3", "a4", "a5"]

    run(main)


def test_a_broken_stream_goes_on_without_a_gap(gateway, address):
    gateway.append("a1", stamp(1, 0, 1))

    async def main():
        async with ordercast.connect(address) as oc, oc.subscribe_causal(["a", "b"]) as deliveries:
            assert await take(deliveries, 1) == ["a1"]
            gateway.cluster.break_streams()
            gateway.append("b1", stamp(1, 0, 1, time_of("a", 1, {0: 2})))
            gateway.append("a2", stamp(1, 0, 2))
            assert await take(deliveries, 2) == ["a2", "b1"]

    run(main)


@pytest.mark.parametrize(
    ("domain", "word"),
    [
        (Domain(name="rooms", protocol="scalatom"), "order key"),
        (Domain(name="rooms", protocol="isis", settings={"causality": "conservative"}), "causality=timestamps"),
        (Domain(name="rooms", protocol="isis", settings={"causality": "epochs"}), "causality=timestamps"),
        (Domain(name="rooms", protocol="theirs"), "not installed here"),
    ],
    ids=["another protocol", "conservative", "epochs", "not installed"],
)
def test_a_domain_whose_messages_do_not_say_what_they_come_after_is_refused(gateway, address, domain, word):
    gateway.domain = domain

    async def main():
        async with ordercast.connect(address) as oc:
            with pytest.raises(FailedPrecondition, match=word):
                async with oc.subscribe_causal(["a", "b"]):
                    pass

    run(main)


@pytest.mark.parametrize("start", [3, {"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": None}, "sometime"])
def test_a_start_that_is_not_one_for_each_group_is_refused(start):
    connection = ordercast.connect("127.0.0.1:1")
    with pytest.raises(InvalidArgument):
        connection.subscribe_causal(["a", "b"], start)


def test_all_groups_leave_a_gateway_that_hangs(gateway, address, monkeypatch):
    monkeypatch.setattr(aio_silence, "LOOK_S", 0.1)
    gateway.append("a1", stamp(1, 0, 1))
    gateway.append("b1", stamp(1, 0, 1))

    async def main():
        with hanging(address) as puppet:
            async with (
                ordercast.connect(puppet.address, address) as oc,
                oc.subscribe_causal(["a", "b"]) as deliveries,
            ):
                assert sorted(await take(deliveries, 2)) == ["a1", "b1"]
                puppet.hang()
                gateway.append("b2", stamp(1, 0, 2, time_of("a", 1, {0: 2})))
                gateway.append("a2", stamp(1, 0, 2))
                assert await take(deliveries, 2) == ["a2", "b2"]

    run(main)
