"""The SDK for threads, against a gateway over real gRPC."""

import threading
import time

import pytest

import ordercast
from ordercast.client.call_threads import CallThreads
from ordercast.errors import (
    AlreadyExists,
    DeadlineExceeded,
    FailedPrecondition,
    Fenced,
    InvalidArgument,
    NotFound,
    OutcomeUnknown,
    OutOfRange,
)
from ordercast.v1.gateway_pb2 import PUBLISH_STATUS_RESOURCE_EXHAUSTED
from tests.unit.client_gateway import ClusterModel, served, token_of


@pytest.fixture
def cluster():
    return ClusterModel("a", "b")


@pytest.fixture
def address(cluster):
    with served(cluster) as address:
        yield address


def test_a_message_is_published_and_read_back_with_all_it_carries(cluster, address):
    with ordercast.connect_sync(address) as oc:
        receipt = oc.publish(b"hello", to=["b", "a"], key="k", headers={"h": "v"})
        assert receipt.offsets == {"a": 0, "b": 0}
        assert not receipt.duplicate
        assert oc.session_token == token_of(1)
        with oc.subscribe("a", start="earliest", stop_at_end=True) as deliveries:
            (delivery,) = list(deliveries)
    assert (delivery.payload, delivery.key, delivery.headers) == (b"hello", b"k", {"h": b"v"})
    assert (delivery.group, delivery.offset, delivery.sequence) == ("a", 0, 1)
    assert delivery.message_id == receipt.message_id
    assert delivery.order_key == receipt.order_key


def test_many_messages_arrive_once_and_in_order(cluster, address):
    payloads = [str(number).encode() for number in range(1000)]
    with ordercast.connect_sync(address, in_flight_max=100) as oc:
        receipts = oc.publish_many(payloads, to=["a"])
    assert [receipt.offsets["a"] for receipt in receipts] == list(range(1000))
    assert cluster.payloads("a") == payloads
    assert len(cluster.requests) < 1000  # they left together


def test_what_was_stored_before_the_stream_broke_is_not_stored_again(cluster, address):
    cluster.lost_answers = 2
    with ordercast.connect_sync(address) as oc:
        receipt = oc.publish(b"once", to=["a", "b"])
        assert receipt.duplicate
        assert receipt.offsets == {"a": 0, "b": 0}
        assert oc.publish(b"next", to=["a", "b"]).offsets == {"a": 1, "b": 1}
    assert cluster.payloads("b") == [b"once", b"next"]


def test_a_refused_message_is_repeated(cluster, address):
    cluster.refusals.extend([PUBLISH_STATUS_RESOURCE_EXHAUSTED] * 2)
    with ordercast.connect_sync(address) as oc:
        assert not oc.publish(b"x", to="a").duplicate
    assert cluster.payloads("a") == [b"x"]


def test_a_gateway_that_is_down_is_passed_over(cluster, address):
    with ordercast.connect_sync("127.0.0.1:1", address) as oc:
        assert oc.publish(b"x", to="a").offsets == {"a": 0}
        assert [group.name for group in oc.groups()] == ["a", "b"]


def test_what_was_never_sent_exceeds_its_deadline():
    with (
        ordercast.connect_sync("127.0.0.1:1") as oc,
        pytest.raises(DeadlineExceeded, match="could not be sent"),
    ):
        oc.publish(b"x", to="a", timeout=0.2)


def test_what_may_be_stored_has_an_unknown_outcome_and_leaves_no_gap(cluster, address):
    with ordercast.connect_sync(address) as oc:
        oc.publish(b"first", to="a")
        cluster.is_answering.clear()
        with pytest.raises(OutcomeUnknown):
            oc.publish(b"second", to="a", timeout=2.0)
        cluster.is_answering.set()
        assert oc.publish(b"third", to="a").offsets == {"a": 2}
    assert cluster.payloads("a") == [b"first", b"second", b"third"]


def test_an_unknown_group_is_named_and_stops_nothing(cluster, address):
    with ordercast.connect_sync(address) as oc:
        with pytest.raises(NotFound, match="nowhere"):
            oc.publish(b"x", to=["a", "nowhere"])
        assert oc.publish(b"y", to="a").offsets == {"a": 0}


def test_a_later_instance_of_a_named_producer_fences_the_first(cluster, address):
    with ordercast.connect_sync(address, producer="billing") as first:
        assert first.publish(b"1", to="a").message_id.startswith("billing-")
        with ordercast.connect_sync(address, producer="billing") as second:
            assert second.publish(b"2", to="a").message_id.endswith("-2")
        for _ in range(2):
            with pytest.raises(Fenced):
                first.publish(b"3", to="a")
    assert cluster.payloads("a") == [b"1", b"2"]


def test_a_subscription_goes_on_after_its_stream_broke(cluster, address):
    with ordercast.connect_sync(address) as oc:
        oc.publish_many([str(n).encode() for n in range(10)], to="a")
        with oc.subscribe("a", start=3) as deliveries:
            got = [next(deliveries).offset for _ in range(4)]
            cluster.break_streams()
            oc.publish_many([b"more"] * 5, to="a")
            got += [next(deliveries).offset for _ in range(8)]
    assert got == list(range(3, 15))


def test_a_cursor_is_where_it_was_acknowledged_when_the_subscription_is_left(cluster, address):
    with ordercast.connect_sync(address) as oc:
        oc.publish_many([b"x"] * 10, to="a")
        with oc.subscribe("a", start="earliest", cursor="mine") as deliveries:
            for delivery in deliveries:
                delivery.ack()
                if delivery.offset == 6:
                    break
        assert cluster.cursors["a", "mine"] == 7
        with oc.subscribe("a", cursor="mine", stop_at_end=True) as deliveries:
            rest = list(deliveries)
            rest[-1].ack()
        assert [delivery.offset for delivery in rest] == [7, 8, 9]
        assert [(c.name, c.offset) for c in oc.cursors("a")] == [("mine", 10)]


@pytest.mark.parametrize("cursor", [None, "c"])
def test_no_thread_of_grpc_outlives_its_stream(address, monkeypatch, cursor):
    """The end of the interpreter could stop it while it holds a lock, and then wait for that lock."""
    noted: list[threading.Thread] = []
    note = CallThreads.note

    def slow_note(self):
        note(self)
        noted.append(threading.current_thread())
        time.sleep(0.2)

    monkeypatch.setattr(CallThreads, "note", slow_note)
    with ordercast.connect_sync(address) as oc:
        oc.publish(b"x", to="a")
        published = len(noted)
        with oc.subscribe("a", start="earliest", cursor=cursor) as deliveries:
            next(deliveries)
        # One asked for requests, and one took the responses.
        assert len(noted) == published + 2
        assert not any(thread.is_alive() for thread in noted[published:])
    assert len(noted) == published + 3
    assert not any(thread.is_alive() for thread in noted)


def test_what_is_published_comes_behind_what_was_handed_to_the_application(cluster, address):
    """The gateway sends three entries at a time; nothing is seen before the first of them is handed out."""
    with ordercast.connect_sync(address) as writer, ordercast.connect_sync(address) as reader:
        for _ in range(9):
            writer.publish(b"x", to="a")
        with reader.subscribe("a", start="earliest") as deliveries:
            deliveries._wait(lambda: len(deliveries._reader._ahead) == 9, 10.0)
            assert reader.session_token == b""
            for _ in range(4):
                delivery = next(deliveries)
                reader.publish(delivery.payload, to="b")
                assert cluster.shows(cluster.requests[-1].session) >= delivery.order_key[:8]
    first = next(request for request in cluster.requests if list(request.groups) == ["b"])
    assert first.session == token_of(3)


@pytest.mark.parametrize("token", [b"made up", token_of(1) * 2, "text"])
def test_a_token_of_a_wrong_shape_is_refused_before_anything_is_sent(cluster, address, token):
    with pytest.raises(InvalidArgument, match="session token"):
        ordercast.connect_sync(address, session_token=token)
    with ordercast.connect_sync(address) as oc, pytest.raises(InvalidArgument, match="session token"):
        oc.publish(b"x", to="a", after=token)
    assert cluster.requests == []


def test_errors_of_a_subscription_have_types_and_details(cluster, address):
    with ordercast.connect_sync(address) as oc:
        with pytest.raises(NotFound) as missing:
            oc.subscribe("nowhere", start="earliest").__enter__()
        assert missing.value.details == {"reason": "NO_GROUP", "group": "nowhere"}
        with pytest.raises(OutOfRange) as beyond:
            oc.subscribe("a", start=5).__enter__()
        assert (beyond.value.first_offset, beyond.value.next_offset) == (0, 0)
        with pytest.raises(InvalidArgument):
            oc.subscribe("a")
        oc.publish(b"x", to="a")
        with oc.subscribe("a", start="earliest") as deliveries, pytest.raises(FailedPrecondition):
            next(deliveries).ack()


def test_administration_has_typed_answers_and_errors(address):
    with ordercast.connect_sync(address) as oc:
        assert oc.create_group("c").name == "c"
        with pytest.raises(AlreadyExists):
            oc.create_group("c")
        assert oc.cluster().gateway == "the only one"
        assert oc.set_cursor("a", "mine", 0).name == "mine"


def test_a_connection_that_is_not_open_publishes_nothing(address):
    oc = ordercast.connect_sync(address)
    with pytest.raises(FailedPrecondition):
        oc.publish(b"x", to="a")
    with oc:
        pass
    with pytest.raises(FailedPrecondition):
        oc.publish(b"x", to="a")
