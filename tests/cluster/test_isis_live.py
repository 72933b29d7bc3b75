"""Live delivery: what a replica has delivered, in causal order, before the log shows it."""

import asyncio
import json
from collections.abc import Callable

import grpc
import pytest
from typer.testing import CliRunner, Result

import ordercast
from ordercast import errors
from ordercast.cli.connection import GATEWAY_VARIABLE
from ordercast.cli.exit_codes import ExitCode
from ordercast.cli.main import app
from ordercast.client.aio_live import LiveSubscription
from ordercast.client.live import LiveDelivery
from ordercast.local.cluster import LocalCluster
from ordercast.local.setup import create_groups
from ordercast.v1.gateway_pb2 import SubscribeLiveRequest
from ordercast.v1.membership_pb2 import Group
from tests.cluster.asking import described_whole, error_info, in_time, payloads, raw, read_all
from tests.cluster.conftest import MakeCluster
from tests.cluster.synchrony import CAUSAL, TOTAL, wait_until_back, wait_until_left_out, with_domains
from tests.cluster.trial import PATIENCE_S, gateway_of, others_than, start_again

ROUNDS = 20


@pytest.fixture(scope="module")
def cluster(make_module_cluster: MakeCluster) -> LocalCluster:
    made = with_domains(make_module_cluster(fault_injection=True))
    create_groups(made.gateways, ["plain"], domain=CAUSAL)
    create_groups(made.gateways, ["one-order"])
    return made


async def take(deliveries: LiveSubscription, count: int) -> list[LiveDelivery]:
    async with asyncio.timeout(PATIENCE_S):
        return [await anext(deliveries) for _ in range(count)]


@pytest.mark.parametrize("ordering", [CAUSAL, TOTAL])
def test_each_replica_delivers_each_message_once_in_its_producers_order(
    cluster: LocalCluster, ordering: str
) -> None:
    group = f"live-{ordering}"
    create_groups(cluster.gateways, [group], domain=ordering)
    described_whole(cluster.gateways[0], group)

    async def talk() -> tuple[list[list[LiveDelivery]], list[str]]:
        async with ordercast.connect(*cluster.gateways) as oc, asyncio.TaskGroup() as tasks:
            reading = [oc.subscribe_live(group, replica=name) for name in sorted(cluster.members)]
            for live in reading:
                await live.__aenter__()
            assert [live.replica for live in reading] == sorted(cluster.members)
            taking = [tasks.create_task(take(live, 2 * ROUNDS)) for live in reading]
            async with ordercast.connect(*reversed(cluster.gateways)) as other:
                receipts = []
                for number in range(ROUNDS):
                    receipts.append(await oc.publish(b"one %d" % number, to=group, key="k", headers={"h": "v"}))
                    receipts.append(await other.publish(b"two %d" % number, to=group))
            found = [await task for task in taking]
            for live in reading:
                await live.__aexit__(None, None, None)
            return found, [receipt.message_id for receipt in receipts]

    found, ids = in_time(talk(), PATIENCE_S)
    for deliveries in found:
        assert sorted(delivery.message_id for delivery in deliveries) == sorted(ids)
        for name in (b"one", b"two"):
            mine = [delivery.payload for delivery in deliveries if delivery.payload.startswith(name)]
            assert mine == [b"%s %d" % (name, number) for number in range(ROUNDS)]
    first = next(delivery for delivery in found[0] if delivery.payload == b"one 0")
    assert (first.group, first.key, first.headers) == (group, b"k", {"h": b"v"})


def test_answers_to_what_was_read_live_come_behind_it_everywhere(cluster: LocalCluster) -> None:
    """Through another gateway than the question, and read at a third replica."""
    group = "answered"
    create_groups(cluster.gateways, [group], domain=CAUSAL)
    first, second, third = cluster.gateways

    async def talk() -> list[LiveDelivery]:
        async with (
            ordercast.connect(first) as asking,
            ordercast.connect(second) as answering,
            ordercast.connect(third) as watching,
            answering.subscribe_live(group) as questions,
            watching.subscribe_live(group) as everything,
        ):
            for number in range(ROUNDS):
                receipt = asyncio.ensure_future(asking.publish(b"q%d" % number, to=group))
                await take(questions, 1)
                await answering.publish(b"a%d" % number, to=group)
                await take(questions, 1)
                await receipt
            return await take(everything, 2 * ROUNDS)

    live = [delivery.payload for delivery in in_time(talk(), PATIENCE_S)]
    expected = [b"%s%d" % (kind, number) for number in range(ROUNDS) for kind in (b"q", b"a")]
    assert live == expected
    assert payloads(third, group) == expected


def test_what_a_minority_delivers_is_live_and_in_no_log(cluster: LocalCluster) -> None:
    """And when the others are back, it is in all of them."""
    group = "alone"
    create_groups(cluster.gateways, [group], domain=CAUSAL)
    one, *others = sorted(cluster.members)
    gateway = gateway_of(cluster, one)

    async def talk() -> LiveDelivery:
        async with ordercast.connect(gateway) as oc, oc.subscribe_live(group, replica=one) as live:
            for name in others:
                cluster.pause(name)
            try:
                receipt = asyncio.ensure_future(oc.publish(b"early", to=group, timeout=PATIENCE_S))
                delivery = (await take(live, 1))[0]
                await asyncio.sleep(0.2)
                assert not receipt.done()
                # The others cannot be asked where the log ends: this one can, and shows nothing.
                assert not read_all(gateway, group, replica=one)
            finally:
                for name in others:
                    cluster.resume(name)
            assert (await receipt).message_id == delivery.message_id
            return delivery

    delivery = in_time(talk(), PATIENCE_S)
    assert delivery.payload == b"early"
    assert payloads(gateway_of(cluster, others[0]), group) == [b"early"]


def test_a_replica_that_is_killed_ends_it_and_another_one_goes_on(cluster: LocalCluster) -> None:
    group = "ended"
    create_groups(cluster.gateways, [group], domain=CAUSAL)
    victim, *others = others_than(cluster)

    async def talk() -> list[LiveDelivery]:
        async with ordercast.connect(*(gateway_of(cluster, name) for name in others)) as oc:
            async with oc.subscribe_live(group, replica=victim) as live:
                await oc.publish(b"before", to=group)
                found = await take(live, 1)
                cluster.kill(victim)
                with pytest.raises(errors.Unavailable):
                    await take(live, 1)
            async with oc.subscribe_live(group, replica=others[0]) as live:
                await oc.publish(b"after", to=group)
                return found + await take(live, 1)

    found = in_time(talk(), PATIENCE_S)
    assert [delivery.payload for delivery in found] == [b"before", b"after"]
    start_again(cluster, victim)
    wait_until_back(cluster, group, victim)


def test_a_replica_that_was_left_out_says_that_something_is_missing(cluster: LocalCluster) -> None:
    group = "missed"
    create_groups(cluster.gateways, [group], domain=CAUSAL)
    victim, *others = others_than(cluster)
    without: list[Group] = []

    async def talk() -> errors.OrdercastError:
        async with (
            ordercast.connect(*(gateway_of(cluster, name) for name in others)) as oc,
            ordercast.connect(gateway_of(cluster, victim)) as there,
            there.subscribe_live(group, replica=victim) as live,
        ):
            await oc.publish(b"seen", to=group)
            await take(live, 1)
            cluster.pause(victim)
            try:
                without.append(await asyncio.to_thread(wait_until_left_out, cluster, group, victim))
                await oc.publish(b"missed", to=group)
            finally:
                cluster.resume(victim)
            with pytest.raises(errors.Unavailable) as ended:
                await take(live, 1)
            return ended.value

    assert in_time(talk(), PATIENCE_S).details["reason"] == "LIVE_INTERRUPTED"
    wait_until_back(cluster, group, victim, without[0])


# --------------------------------------------------------------------------------------------------- refusals


def test_threads_read_live_too_where_there_is_such_a_thing(cluster: LocalCluster) -> None:
    with ordercast.connect_sync(*cluster.gateways) as oc:
        with pytest.raises(errors.FailedPrecondition), oc.subscribe_live("one-order"):
            pass
        create_groups(cluster.gateways, ["from-a-thread"], domain=CAUSAL)
        with oc.subscribe_live("from-a-thread") as live:
            receipt = oc.publish(b"hello", to="from-a-thread")
            assert next(live).message_id == receipt.message_id


@pytest.mark.parametrize(
    ("request_", "code", "reason"),
    [
        (SubscribeLiveRequest(group="nobody"), grpc.StatusCode.NOT_FOUND, "UNKNOWN_GROUP"),
        (SubscribeLiveRequest(group="plain", replica="x"), grpc.StatusCode.INVALID_ARGUMENT, "NO_REPLICA"),
        (SubscribeLiveRequest(group="one-order"), grpc.StatusCode.FAILED_PRECONDITION, "NO_LIVE_DELIVERY"),
    ],
)
def test_what_cannot_be_is_refused(
    cluster: LocalCluster, request_: SubscribeLiveRequest, code: grpc.StatusCode, reason: str
) -> None:
    with raw(cluster.gateways[0]) as stub, pytest.raises(grpc.RpcError) as refused:
        next(stub.SubscribeLive(request_, timeout=PATIENCE_S))
    assert (refused.value.code(), error_info(refused.value).reason) == (code, reason)


# ---------------------------------------------------------------------------------------------- command line


@pytest.fixture
def command(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv(GATEWAY_VARIABLE, ",".join(cluster.gateways))
    return lambda *args: CliRunner().invoke(app, list(args))


def test_it_is_followed_from_the_command_line(cluster: LocalCluster, command: Callable[..., Result]) -> None:
    create_groups(cluster.gateways, ["shell"], domain=CAUSAL)

    async def follow(*form: str) -> Result:
        """Who follows begins at some time: what is published until then is not for it."""
        async with ordercast.connect(*cluster.gateways) as oc:
            following = asyncio.to_thread(command, "subscribe", "shell", "--live", "--limit", "1", *form)
            task = asyncio.ensure_future(following)
            while not task.done():
                await oc.publish(b"hello", to="shell", key="k")
                await asyncio.sleep(0.1)
            return task.result()

    forms = ((), ("--json",), ("--payload-only",))
    plain, as_json, payload = (in_time(follow(*form), PATIENCE_S) for form in forms)
    assert [result.exit_code for result in (plain, as_json, payload)] == [0, 0, 0], plain.output
    assert plain.stdout.split() == ["live", "k:", "hello"]
    document = json.loads(as_json.stdout)
    assert (document["live"], document["payload"], "offset" in document) == (True, "hello", False)
    assert payload.stdout == "hello\n"


@pytest.mark.parametrize("other", [("--from", "earliest"), ("--cursor", "c"), ("--until-end",)])
def test_it_has_no_place_in_the_log(command: Callable[..., Result], other: tuple[str, ...]) -> None:
    assert command("subscribe", "shell", "--live", *other).exit_code == ExitCode.USAGE
