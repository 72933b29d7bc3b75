"""What users pass in, what they get back, and errors as gRPC brings them."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

import ordercast
from ordercast.client import errors, transport, types
from ordercast.errors import Fenced, Internal, InvalidArgument, NotFound, OrdercastError, OutOfRange, Unavailable
from ordercast.v1.sequencer_pb2 import StartAt


@pytest.mark.parametrize("to", [[], ["a", "a"], [""], [1], [str(n) for n in range(65)]])
def test_wrong_destinations_are_refused(to):
    with pytest.raises(InvalidArgument):
        types.checked_groups(to)


def test_destinations_are_sorted_and_a_single_one_may_be_a_text():
    assert types.checked_groups(iter(["b", "a"])) == ("a", "b")
    assert types.checked_groups("abc") == ("abc",)


@pytest.mark.parametrize(
    "arguments",
    [("text",), (None,), (b"x", 1), (b"x", b"", {"h": 1}), (b"x", b"", {1: b""}), (bytes((1 << 20) + 1),)],
)
def test_wrong_messages_are_refused(arguments):
    with pytest.raises(InvalidArgument):
        types.checked_message(*arguments)


def test_a_payload_of_exactly_a_mebibyte_is_taken_with_a_key_and_headers():
    assert types.checked_message(bytes(1 << 20), b"k" * 1000, {"h": b"v" * 1000}).payload == bytes(1 << 20)
    with pytest.raises(InvalidArgument, match="key and headers of 65"):
        types.checked_message(b"", b"k" * 65_536)


NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


def test_times_are_starts_whatever_zone_they_are_given_in():
    at = StartAt(stored_ms=int(NOON.timestamp() * 1000))
    assert types.checked_start(NOON) == at
    assert types.checked_start(NOON.astimezone(timezone(timedelta(hours=5)))) == at
    assert types.checked_start(NOON.astimezone().replace(tzinfo=None)) == at
    assert types.checked_start(datetime(1900, 1, 1, tzinfo=UTC)) == StartAt(stored_ms=0)


def test_so_long_ago_is_a_time():
    before = types.checked_start(datetime.now(UTC) - timedelta(hours=1))
    found = types.checked_start(timedelta(hours=1))
    after = types.checked_start(datetime.now(UTC) - timedelta(hours=1))
    assert before.stored_ms <= found.stored_ms <= after.stored_ms


def test_the_last_so_many_are_a_start():
    assert types.checked_start(None, 20) == StartAt(last=20)
    for last in (-1, True, "20", 1 << 64):
        with pytest.raises(InvalidArgument, match="last"):
            types.checked_start(None, last)
    with pytest.raises(InvalidArgument, match="two places"):
        types.checked_start("earliest", 20)


def test_several_groups_do_not_begin_at_a_time():
    with pytest.raises(InvalidArgument, match="time"):
        types.checked_starts({"a": NOON}, ("a",))


@pytest.mark.parametrize("start", ["first", -1, 1 << 64, True, 1.5, timedelta.max, datetime.min])
def test_wrong_starts_are_refused(start):
    with pytest.raises(InvalidArgument):
        types.checked_start(start)


@pytest.mark.parametrize("addresses", [(), ("",), ("host",), ("host:",), (":1",), ("host:0",), ("a:1,,b:2",)])
def test_wrong_addresses_are_refused(addresses):
    with pytest.raises(InvalidArgument):
        ordercast.connect(*addresses)


@pytest.mark.parametrize("options", [{"producer": ""}, {"producer": "a\n"}, {"in_flight_max": 0}, {"timeout": -1}])
def test_wrong_options_are_refused(options):
    with pytest.raises(InvalidArgument):
        ordercast.connect_sync("host:1", **options)


def test_a_certificate_without_its_key_is_refused():
    with pytest.raises(InvalidArgument):
        ordercast.TLS(Path("ca"), cert=Path("cert"))


def test_message_ids_tell_names_from_random_ids():
    assert types.message_id(b"billing", ["a"], 7).startswith("billing-")
    anonymous = b"\xff" + bytes(15)
    assert types.message_id(anonymous, ["a"], 7).startswith(anonymous.hex() + "-")
    assert types.message_id(b"p", ["a", "b"], 1) == types.message_id(b"p", ["b", "a"], 1)
    assert types.message_id(b"p", ["a"], 1) != types.message_id(b"p", ["b"], 1)


class Failed(grpc.RpcError, grpc.Call):
    """A failed call, as far as errors are read from it."""

    def __init__(self, code: grpc.StatusCode, message: str, *details: object) -> None:
        status = Status(code=code.value[0], message=message)
        for detail in details:
            packed = AnyMessage()
            packed.Pack(detail)
            status.details.append(packed)
        self._values = (code, message, [("grpc-status-details-bin", status.SerializeToString())])

    def code(self):
        return self._values[0]

    def details(self):
        return self._values[1]

    def trailing_metadata(self):
        return self._values[2]


Failed.__abstractmethods__ = frozenset()


def test_details_of_a_status_are_read():
    info = ErrorInfo(domain="ordercast", reason="OFFSET", metadata={"first_offset": "3", "next_offset": "9"})
    retry = RetryInfo(retry_delay=Duration(seconds=1, nanos=500_000_000))
    error = transport.to_error(Failed(grpc.StatusCode.OUT_OF_RANGE, "too old", info, retry))
    assert isinstance(error, OutOfRange)
    assert (error.first_offset, error.next_offset, error.retry_after) == (3, 9, 1.5)
    assert (error.code, error.message, error.details["reason"]) == ("OUT_OF_RANGE", "too old", "OFFSET")


def test_details_of_another_domain_or_none_are_no_obstacle():
    other = Failed(grpc.StatusCode.NOT_FOUND, "x", ErrorInfo(domain="elsewhere", reason="R"))
    assert transport.to_error(other).details == {}
    bare = Failed(grpc.StatusCode.UNAVAILABLE, "")
    bare._values = (*bare._values[:2], [("grpc-status-details-bin", b"\xff")])
    assert isinstance(transport.to_error(bare), Unavailable)
    assert isinstance(transport.to_error(grpc.RpcError("?")), Unavailable)


def test_every_status_has_an_error():
    for code in grpc.StatusCode:
        assert isinstance(errors.of_code(code.name, "x"), OrdercastError)
    assert isinstance(errors.of_code("FAILED_PRECONDITION", "x", details={"reason": "FENCED"}), Fenced)
    assert isinstance(errors.of_code("DATA_LOSS", "x"), Internal)


def test_an_error_is_copied_with_all_it_says():
    error = NotFound("x", details={"a": "b"}, retry_after=1.0)
    copy = error.copy()
    assert copy is not error
    assert (type(copy), copy.message, copy.details, copy.retry_after) == (NotFound, "x", {"a": "b"}, 1.0)


def test_importing_the_package_loads_no_grpc():
    script = (
        "import sys, ordercast; assert 'grpc' not in sys.modules; ordercast.connect; assert 'grpc' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_public_name_is_there():
    for name in ordercast.__all__:
        assert getattr(ordercast, name) is not None
    with pytest.raises(AttributeError):
        _ = ordercast.nothing
