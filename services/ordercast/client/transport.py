"""gRPC, for both drivers: addresses, channels, credentials, and statuses as errors."""

import asyncio
import os
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo  # type: ignore[import-untyped]
from grpc_status import rpc_status  # type: ignore[import-untyped]

from ordercast.client.errors import InvalidArgument, OrdercastError, Unavailable, of_code
from ordercast.client.lane import H
from ordercast.client.session import Session
from ordercast.client.types import ANONYMOUS, TLS, checked_producer, checked_token

TIMEOUT_S = 30.0
#: How long to wait for a cursor's last move when a subscription ends.
LAST_ACK_S = 5.0
MESSAGE_BYTES_MAX = 64 << 20
ERROR_DOMAIN = "ordercast"
#: What gRPC says for a server that does not know the method.
METHOD_UNKNOWN = "Method not found!"
NOT_FOR_CLIENTS = (
    "the server there does not know this request: it is the port for peers, or an older gateway; "
    "a gateway's port for clients is 7400 unless set otherwise"
)
#: Any process that serves gRPC answers this at once, be it with an error. One that hangs does not.
PROBE = "/grpc.health.v1.Health/Check"
#: What is said of a gateway that hangs.
SILENT = "the gateway fell silent"

StreamCall = grpc.aio.StreamStreamCall[Any, Any]

_OPTIONS: list[tuple[str, int | str]] = [
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    # A channel is made anew for each connection: it must not wait out the failures of the one before.
    ("grpc.use_local_subchannel_pool", 1),
]


def parse_addresses(addresses: tuple[str, ...]) -> list[str]:
    """`"host:port"`, several of them, or several in one text with commas between.

    >>> parse_addresses(("a:1, b:2", "[::1]:3"))
    ['a:1', 'b:2', '[::1]:3']
    """
    found = [part.strip() for address in addresses for part in address.split(",")]
    if not found:
        raise InvalidArgument("give the address of at least one gateway, as host:port")
    for address in found:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise InvalidArgument(f"an address is host:port, not {address!r}")
    return found


def new_session(producer: str | None, in_flight_max: int, token: bytes | None) -> Session[H]:
    """With the chance that the pure part does not have itself."""
    if in_flight_max < 1:
        raise InvalidArgument(f"in_flight_max is at least 1, not {in_flight_max}")
    id_ = ANONYMOUS + os.urandom(15) if producer is None else checked_producer(producer)
    return Session(
        id_, os.urandom(16), is_named=producer is not None, in_flight_max=in_flight_max, token=checked_token(token)
    )


def _options(tls: TLS | None) -> list[tuple[str, int | str]]:
    if tls is None or tls.server_name is None:
        return _OPTIONS
    return [*_OPTIONS, ("grpc.ssl_target_name_override", tls.server_name)]


def _credentials(tls: TLS) -> grpc.ChannelCredentials:
    try:
        ca = tls.ca.read_bytes()
        cert = tls.cert.read_bytes() if tls.cert else None
        key = tls.key.read_bytes() if tls.key else None
    except OSError as error:
        raise InvalidArgument(f"cannot read a TLS file: {error}") from error
    return grpc.ssl_channel_credentials(ca, key, cert)


def aio_channel(address: str, tls: TLS | None) -> grpc.aio.Channel:
    if tls is None:
        return grpc.aio.insecure_channel(address, options=_options(tls))
    return grpc.aio.secure_channel(address, _credentials(tls), options=_options(tls))


def sync_channel(address: str, tls: TLS | None) -> grpc.Channel:
    if tls is None:
        return grpc.insecure_channel(address, options=_options(tls))
    return grpc.secure_channel(address, _credentials(tls), options=_options(tls))


async def is_written(call: StreamCall, request: Any) -> bool:
    """False if the stream is over; then reading from it tells why."""
    try:
        await call.write(request)
    except (grpc.RpcError, asyncio.InvalidStateError):
        return False
    except asyncio.CancelledError:
        # Of the call, which we or the gateway ended, or of the task that waits for it.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return False
    return True


def to_error(error: grpc.RpcError) -> OrdercastError:
    """What a failed call says, with its `google.rpc` details."""
    if not isinstance(error, grpc.Call | grpc.aio.AioRpcError):
        return Unavailable(str(error))
    details: dict[str, str] = {}
    retry_after: float | None = None
    try:
        status = rpc_status.from_call(error)
        for detail in status.details if status is not None else ():
            info, retry = ErrorInfo(), RetryInfo()
            if detail.Unpack(info) and info.domain == ERROR_DOMAIN:
                details = {"reason": info.reason, **info.metadata}
            elif detail.Unpack(retry):
                retry_after = retry.retry_delay.ToMicroseconds() / 1e6
    except (ValueError, DecodeError):
        # Details that contradict the status: the status counts.
        details, retry_after = {}, None
    message = error.details() or error.code().name
    if message == METHOD_UNKNOWN:
        message = NOT_FOR_CLIENTS
    return of_code(error.code().name, message, details=details, retry_after=retry_after)
