"""Virtually synchronous groups on real processes: publishing, reading, retries, sessions, refusals, commands."""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from typer.testing import CliRunner, Result

import ordercast
from ordercast import errors
from ordercast.cli.connection import GATEWAY_VARIABLE
from ordercast.cli.exit_codes import ExitCode
from ordercast.cli.main import app
from ordercast.core.ids import group_name, pack_u64
from ordercast.local.audit import audit
from ordercast.local.casts import Named, named_by
from ordercast.local.cluster import LocalCluster
from ordercast.local.load import Load, collect_logs, wait_for_equal_logs
from ordercast.local.setup import create_domain, create_groups
from ordercast.v1.common_pb2 import Message
from ordercast.v1.gateway_pb2 import PublishReply, PublishRequest
from ordercast.v1.sequencer_pb2 import LogEntry
from tests.cluster.asking import CALL_S_MAX, assert_replicas_agree, in_time, payloads, raw, read_all, start_of
from tests.cluster.conftest import MakeCluster
from tests.cluster.synchrony import CODEC

CAUSAL, TOTAL = "causal", "total"
#: What a group of one replica each has: nobody is a member of two of them.
ALONE = ["alone-1", "alone-2", "alone-3"]
BUSY_COUNT = 2
LINKS_COUNT = 9

NewGroups = Callable[..., list[str]]


@pytest.fixture(scope="module")
def cluster(make_module_cluster: MakeCluster) -> Iterator[LocalCluster]:
    """Two domains; in one of them each group has a total order. After the last test all replicas have to agree."""
    made = make_module_cluster()
    for ordering in (CAUSAL, TOTAL):
        create_domain(made.gateways, ordering, "isis", {"ordering": ordering})
    create_groups(made.gateways, ALONE, replicas=1, domain=CAUSAL)
    yield made
    assert_replicas_agree(made.gateways[0])


@pytest.fixture(scope="module")
def new_groups(cluster: LocalCluster) -> NewGroups:
    numbers = itertools.count(1)

    def make(count: int, domain: str = CAUSAL) -> list[str]:
        names = [f"{domain}-{next(numbers)}" for _ in range(count)]
        create_groups(cluster.gateways, names, domain=domain)
        return names

    return make


def request_of(groups: list[str], producer: bytes, *texts: bytes, first: int = 1) -> PublishRequest:
    messages = [Message(payload=text) for text in texts]
    return PublishRequest(producer=producer, groups=groups, first_sequence=first, messages=messages)


def offsets_of(reply: PublishReply) -> dict[str, int]:
    return {offset.group: offset.first_offset for offset in reply.offsets}


def entries_of(address: str, group: str) -> list[LogEntry]:
    """What readers are shown of the log so far."""
    request = start_of(group, earliest=True)
    request.start.stop_at_end = True
    with raw(address) as stub:
        responses = stub.Subscribe(iter([request]), timeout=CALL_S_MAX)
        return [LogEntry.FromString(data) for response in responses for data in response.deliveries.entries]


def entry_with(address: str, group: str, payload: bytes) -> LogEntry:
    return next(entry for entry in entries_of(address, group) if payload in entry.envelope.body)


# --------------------------------------------------------------------------------------------------- receipts


@pytest.mark.parametrize("domain", [CAUSAL, TOTAL])
def test_a_receipt_tells_where_the_message_is(cluster: LocalCluster, new_groups: NewGroups, domain: str) -> None:
    one, two = new_groups(2, domain)

    async def publish() -> list[ordercast.Receipt]:
        async with ordercast.connect(*cluster.gateways) as oc:
            first = await oc.publish(b"first", to=one, key="k", headers={"colour": "blue"})
            return [first, await oc.publish(b"second", to=one), await oc.publish(b"elsewhere", to=two)]

    first, second, elsewhere = in_time(publish())
    assert (first.offsets, second.offsets, elsewhere.offsets) == ({one: 0}, {one: 1}, {two: 0})
    assert first.order_key < second.order_key
    found = read_all(cluster.gateways[1], one)[0]
    assert (found.message_id, found.order_key) == (first.message_id, first.order_key)
    assert (found.payload, found.key, found.headers) == (b"first", b"k", {"colour": b"blue"})


def test_a_message_to_several_groups_is_in_all_of_them(cluster: LocalCluster, new_groups: NewGroups) -> None:
    one, two, three = new_groups(3)

    async def publish() -> ordercast.Receipt:
        async with ordercast.connect(*cluster.gateways) as oc:
            await oc.publish(b"before", to=one)
            return await oc.publish(b"all", to=[three, two, one])

    receipt = in_time(publish())
    assert receipt.offsets == {one: 1, two: 0, three: 0}
    for group in (one, two, three):
        found = read_all(cluster.gateways[2], group)[receipt.offsets[group]]
        assert (found.payload, found.message_id) == (b"all", receipt.message_id)


def test_receipts_to_come_keep_the_order_of_the_calls_over_all_sets(
    cluster: LocalCluster, new_groups: NewGroups
) -> None:
    one, two = new_groups(2)
    sets = [[one], [one, two], [two], [one, two]]
    count = 60

    async def publish() -> list[ordercast.Receipt]:
        async with ordercast.connect(*cluster.gateways) as oc:
            soon = [await oc.publish_soon(b"%d" % n, to=sets[n % len(sets)]) for n in range(count)]
            return list(await asyncio.gather(*soon))

    receipts = in_time(publish())
    for group in (one, two):
        sent = [number for number in range(count) if group in sets[number % len(sets)]]
        assert payloads(cluster.gateways[1], group) == [b"%d" % number for number in sent]
        assert [receipts[number].offsets[group] for number in sent] == list(range(len(sent)))


@pytest.mark.parametrize("domain", [CAUSAL, TOTAL])
def test_what_many_producers_send_through_all_gateways_is_as_promised(
    cluster: LocalCluster, new_groups: NewGroups, domain: str
) -> None:
    groups = new_groups(3, domain)
    load = Load(cluster.gateways, groups, seed=7, set_size_max=1 if domain == TOTAL else None)

    async def run() -> None:
        subscribers = [
            asyncio.create_task(load.subscribe(f"subscriber-{number}", group))
            for group in groups
            for number in (1, 2)
        ]
        await asyncio.gather(*(load.produce(f"producer-{number}", count=80) for number in range(4)))
        await load.caught_up(CALL_S_MAX)
        for task in subscribers:
            task.cancel()
        await asyncio.gather(*subscribers, return_exceptions=True)

    in_time(run())
    wait_for_equal_logs(cluster.gateways[0], CALL_S_MAX)
    collect_logs(cluster.gateways[0], load.evidence)
    load.evidence.logs = {id_: log for id_, log in load.evidence.logs.items() if group_name(id_) in groups}
    verdict = audit(load.evidence)
    assert verdict.is_clean, verdict.findings
    assert (verdict.acknowledged, load.failed) == (320, {})


# ---------------------------------------------------------------------------------------------------- retries


@pytest.mark.parametrize("count", [1, 2])
def test_a_retry_over_another_gateway_gets_the_first_receipt(
    cluster: LocalCluster, new_groups: NewGroups, count: int
) -> None:
    groups = new_groups(count)
    request = request_of(groups, b"retrying", b"once", b"and this")
    replies = []
    for gateway in cluster.gateways:
        with raw(gateway) as stub:
            (reply,) = stub.Publish(request, timeout=CALL_S_MAX).replies
            replies.append(reply)
    first, *again = replies
    assert not first.duplicate
    for reply in again:
        assert reply.duplicate
        assert (reply.order_key, offsets_of(reply)) == (first.order_key, offsets_of(first))
    for group in groups:
        assert payloads(cluster.gateways[0], group) == [b"once", b"and this"]


def test_what_is_new_behind_a_retry_is_stored(cluster: LocalCluster, new_groups: NewGroups) -> None:
    """The client had a receipt for the first message only, and now sends both, in one request."""
    groups = new_groups(2)
    with raw(cluster.gateways[0]) as stub:
        stub.Publish(request_of(groups, b"half", b"known"), timeout=CALL_S_MAX)
    with raw(cluster.gateways[1]) as stub:
        response = stub.Publish(request_of(groups, b"half", b"known", b"new"), timeout=CALL_S_MAX)
    found = [(reply.duplicate, offsets_of(reply)) for reply in response.replies]
    assert found == [(True, dict.fromkeys(groups, 0)), (False, dict.fromkeys(groups, 1))]
    for group in groups:
        assert payloads(cluster.gateways[2], group) == [b"known", b"new"]


def test_the_same_messages_come_through_two_gateways_at_once_in_other_batches(
    cluster: LocalCluster, new_groups: NewGroups
) -> None:
    """As from a client that gave up on the first gateway too early. Groups may see the two in two orders."""
    groups = new_groups(3)
    rounds = 30

    def ask(stub: Any, number: int, sizes: list[int]) -> list[Any]:
        texts, first, calls = [b"%d-%d" % (number, index) for index in range(6)], 1, []
        for size in sizes:
            batch = texts[first - 1 : first - 1 + size]
            calls.append(stub.Publish.future(request_of(groups, b"twice-%d" % number, *batch, first=first)))
            first += size
        return calls

    with raw(cluster.gateways[0]) as one, raw(cluster.gateways[1]) as other:
        for number in range(rounds):
            calls = [*ask(one, number, [6]), *ask(other, number, [2, 4])]
            # The second request of the other gateway may come before the first, and is refused then.
            for call in calls[:2]:
                assert call.result(CALL_S_MAX).replies
            calls[2].exception(CALL_S_MAX)
    expected = sorted(b"%d-%d" % (number, index) for number in range(rounds) for index in range(6))
    for group in groups:
        assert sorted(payloads(cluster.gateways[2], group)) == expected


# --------------------------------------------------------------------------------------------- session tokens


async def read_until(oc: ordercast.Connection, group: str, payload: bytes) -> ordercast.Delivery:
    """Reads the group's log up to the message with this payload."""
    async with oc.subscribe(group, start="earliest") as deliveries:
        async for delivery in deliveries:
            if delivery.payload == payload:
                return delivery
    raise AssertionError("the log ended")


def comes_after(entry: LogEntry, other_group: str, other: LogEntry) -> bool:
    """By the stamp of the first: whoever is in both groups delivers the other one first."""
    wanted = CODEC.place_of(other.protocol)
    return any(
        (group_name(named.group), named.view, named.member) == (other_group, wanted.view, wanted.member)
        and named.number >= wanted.number
        for named in named_by(CODEC.place_of(entry.protocol))
    )


@pytest.mark.parametrize("how", ["read", "handed over with the connection", "handed over with the message"])
def test_an_answer_comes_behind_the_question_though_nobody_is_in_both_groups(
    cluster: LocalCluster, how: str
) -> None:
    """Two clients, two gateways, two groups without a common member: only the session token tells."""
    first, second, third = ALONE
    question, answer, closed = (f"{word} {how}".encode() for word in ("question", "answer", "closed"))

    async def story() -> None:
        async with ordercast.connect(cluster.gateways[0]) as asking:
            await asking.publish(question, to=first)
            token = asking.session_token
        at_connection = token if how.endswith("connection") else None
        at_message = token if how.endswith("message") else None
        async with ordercast.connect(cluster.gateways[1], session_token=at_connection) as answering:
            if how == "read":
                await read_until(answering, first, question)
            await answering.publish(answer, to=second, after=at_message)
        async with ordercast.connect(cluster.gateways[2]) as closing:
            await read_until(closing, second, answer)
            await closing.publish(closed, to=[first, third])

    in_time(story())
    gateway = cluster.gateways[0]
    asked, answered = entry_with(gateway, first, question), entry_with(gateway, second, answer)
    assert comes_after(answered, first, asked)
    assert comes_after(entry_with(gateway, third, closed), second, answered)
    assert comes_after(entry_with(gateway, third, closed), first, asked)
    found = payloads(gateway, first)
    assert found.index(question) < found.index(closed)


def test_who_has_seen_nothing_comes_after_nothing(cluster: LocalCluster) -> None:
    """So that the test before this one does not pass because every stamp names everything."""
    first, second, _ = ALONE

    async def story() -> None:
        async with ordercast.connect(cluster.gateways[0]) as one, ordercast.connect(cluster.gateways[1]) as other:
            await one.publish(b"unseen", to=first)
            await other.publish(b"stranger", to=second)

    in_time(story())
    unseen = entry_with(cluster.gateways[0], first, b"unseen")
    assert not comes_after(entry_with(cluster.gateways[0], second, b"stranger"), first, unseen)


async def keep_busy(address: str, sets: list[list[str]], number: int) -> None:
    """Other messages, to all kinds of sets, until it is cancelled."""
    async with ordercast.connect(address, in_flight_max=16) as oc:
        for turn in itertools.count(number):
            await oc.publish_soon(b"other", to=sets[turn % len(sets)])


def test_a_chain_of_readers_keeps_its_order_in_every_group_while_others_publish(
    cluster: LocalCluster, new_groups: NewGroups
) -> None:
    """Each link reads the last one in one group of its set, and publishes at another gateway."""
    one, two, three = new_groups(3)
    sets = [[one], [one, two], [two, three], [one, three]]

    async def story() -> None:
        busy = [asyncio.create_task(keep_busy(cluster.gateways[n], sets, n)) for n in range(BUSY_COUNT)]
        try:
            read_in = ""
            for number in range(LINKS_COUNT):
                async with ordercast.connect(cluster.gateways[number % len(cluster.gateways)]) as oc:
                    if read_in:
                        await read_until(oc, read_in, b"link %d" % (number - 1))
                    await oc.publish(b"link %d" % number, to=sets[number % len(sets)])
                read_in = sets[number % len(sets)][-1]
        finally:
            for task in busy:
                task.cancel()
            await asyncio.gather(*busy, return_exceptions=True)

    in_time(story())
    for group in (one, two, three):
        links = [payload for payload in payloads(cluster.gateways[0], group) if payload.startswith(b"link")]
        assert links == [b"link %d" % n for n in range(LINKS_COUNT) if group in sets[n % len(sets)]]


def test_who_reads_many_groups_at_once_can_still_answer(cluster: LocalCluster, new_groups: NewGroups) -> None:
    """Nothing that it reads covers anything else that it reads."""
    groups = new_groups(6)

    async def story() -> None:
        async with ordercast.connect(*cluster.gateways) as reader:
            for number, group in enumerate(groups):
                gateway = cluster.gateways[number % len(cluster.gateways)]
                async with ordercast.connect(gateway) as writer:
                    await writer.publish(b"news", to=group)
            for group in groups:
                await read_until(reader, group, b"news")
            await reader.publish(b"answer", to=groups)

    in_time(story())
    answer = entry_with(cluster.gateways[0], groups[0], b"answer")
    for group in groups[1:]:
        assert comes_after(answer, group, entry_with(cluster.gateways[0], group, b"news"))


def test_a_reader_that_follows_a_busy_group_can_still_answer(cluster: LocalCluster, new_groups: NewGroups) -> None:
    """It sees what many members cast without having heard of each other."""
    (group,) = new_groups(1)

    async def story() -> None:
        busy = [asyncio.create_task(keep_busy(address, [[group]], 0)) for address in cluster.gateways]
        try:
            async with ordercast.connect(*cluster.gateways) as reader:
                async with reader.subscribe(group, start="earliest") as deliveries:
                    for _ in range(200):
                        await anext(deliveries)
                await reader.publish(b"answer", to=group)
        finally:
            for task in busy:
                task.cancel()
            await asyncio.gather(*busy, return_exceptions=True)

    in_time(story())
    assert payloads(cluster.gateways[0], group).index(b"answer") >= 200


# ---------------------------------------------------------------------------------------------------- reading


def test_a_cursor_goes_on_where_it_was(cluster: LocalCluster, new_groups: NewGroups) -> None:
    (group,) = new_groups(1)

    async def story() -> list[bytes]:
        async with ordercast.connect(*cluster.gateways) as oc:
            await oc.publish_many([b"%d" % number for number in range(6)], to=group)
            found: list[bytes] = []
            for count in (2, 4):
                async with oc.subscribe(group, cursor="reader", start="earliest") as deliveries:
                    for _ in range(count):
                        delivery = await anext(deliveries)
                        found.append(delivery.payload)
                        await delivery.ack()
            return found

    assert in_time(story()) == [b"%d" % number for number in range(6)]


def test_positions_are_order_keys_and_what_a_cast_comes_after_is_in_the_logs(
    cluster: LocalCluster, new_groups: NewGroups
) -> None:
    one, two = new_groups(2)

    async def publish() -> None:
        async with ordercast.connect(*cluster.gateways) as oc:
            for number in range(10):
                await oc.publish(b"%d" % number, to=[one, two] if number % 3 else [one])

    in_time(publish())
    entries = {group: entries_of(cluster.gateways[1], group) for group in (one, two)}
    casts = {
        (group, place.view, place.member): place.number
        for group, found in entries.items()
        for place in (CODEC.place_of(entry.protocol) for entry in found)
    }
    named: list[Named] = []
    for found in entries.values():
        assert [entry.order_key for entry in found] == sorted(entry.order_key for entry in found)
        assert all(entry.order_key < pack_u64(100) for entry in found)
        named += [
            n
            for entry in found
            for n in named_by(CODEC.place_of(entry.protocol))
            if group_name(n.group) in entries
        ]
    assert named
    for cast in named:
        assert cast.number <= casts[group_name(cast.group), cast.view, cast.member]


# --------------------------------------------------------------------------------------------------- refusals


def test_several_groups_of_a_total_domain_are_refused_with_the_protocols_that_order_them(
    cluster: LocalCluster, new_groups: NewGroups
) -> None:
    groups = new_groups(2, TOTAL)
    with ordercast.connect_sync(*cluster.gateways) as oc:
        with pytest.raises(errors.InvalidArgument) as caught:
            oc.publish(b"both", to=groups)
        assert "Protocols that order across groups: scalatom" in str(caught.value)
        # What comes behind it is not held up.
        assert oc.publish(b"one", to=groups[0]).offsets == {groups[0]: 0}
    assert payloads(cluster.gateways[0], groups[1]) == []


def test_a_token_that_was_changed_is_refused(cluster: LocalCluster, new_groups: NewGroups) -> None:
    (group,) = new_groups(1)
    with ordercast.connect_sync(*cluster.gateways) as oc:
        oc.publish(b"seen", to=group)
        token = oc.session_token
    forged = token[:-1] + bytes([token[-1] ^ 1])
    request = request_of([group], b"forger", b"forged")
    request.session = forged
    with raw(cluster.gateways[0]) as stub, pytest.raises(grpc.RpcError) as caught:
        stub.Publish(request, timeout=CALL_S_MAX)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert payloads(cluster.gateways[0], group) == [b"seen"]


def test_a_setting_that_there_is_not_is_refused(cluster: LocalCluster) -> None:
    with (
        ordercast.connect_sync(*cluster.gateways) as oc,
        pytest.raises(errors.InvalidArgument, match="ordering has to be one of causal, total"),
    ):
        oc.create_domain("wrong", "isis", {"ordering": "none"})


# --------------------------------------------------------------------------------------------------- commands


@pytest.fixture
def command(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv(GATEWAY_VARIABLE, ",".join(cluster.gateways))
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *args: CliRunner().invoke(app, list(args))


def test_a_domain_is_used_from_the_command_line(command: Callable[..., Result]) -> None:
    made = command("domain", "create", "shell", "--protocol", "isis", "--set", "ordering=total", "--json")
    assert (made.exit_code, json.loads(made.stdout)["protocol"]) == (0, "isis")
    assert command("group", "create", "shell-a", "shell-b", "--domain", "shell").exit_code == 0
    published = command("publish", "shell-a", "hello", "--json")
    assert published.exit_code == 0, published.output
    assert json.loads(published.stdout)["offsets"] == {"shell-a": 0}
    read = command("subscribe", "shell-a", "--until-end", "--payload-only")
    assert read.stdout == "hello\n"
    refused = command("publish", "shell-a,shell-b", "both")
    assert refused.exit_code == ExitCode.REFUSED
    assert "Protocols that order across groups: scalatom" in " ".join(refused.output.split())
    described = command("group", "describe", "shell-a")
    assert described.exit_code == 0, described.output
    assert "view" in described.stdout


def test_verify_reads_groups_of_all_domains(cluster: LocalCluster, command: Callable[..., Result]) -> None:
    create_groups(cluster.gateways, ["ordered-a", "ordered-b"])
    with ordercast.connect_sync(*cluster.gateways) as oc:
        oc.publish(b"both", to=["ordered-a", "ordered-b"])
        oc.publish(b"alone", to=ALONE[0])
    result = command("verify", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["ok"], report["problems"]
    found = {group["group"]: group["messages"] for group in report["groups"]}
    assert (found["ordered-a"], found["ordered-b"]) == (1, 1)
    assert found[ALONE[0]] > 0
