"""One port of a process: a gRPC server with health and reflection, and limits on what it takes from strangers."""

from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health, health_pb2, health_pb2_grpc  # type: ignore[import-untyped]
from grpc_reflection.v1alpha import reflection, reflection_pb2  # type: ignore[import-untyped]

from ordercast.core.limits import Limits
from ordercast.runtime.process.health import Phase
from ordercast.runtime.process.settings import MESSAGE_BYTES_MAX
from ordercast.runtime.transport.status import Admit, Guard

OF_ALL_PORTS = (
    health_pb2.DESCRIPTOR.services_by_name["Health"],
    reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"],
)
HEALTH = OF_ALL_PORTS[0].full_name
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING

KEEPALIVE_S = 10
KEEPALIVE_TIMEOUT_S = 5
#: Who pings more often than this is cut off.
PING_INTERVAL_S_MIN = 1
#: Whoever connects and does not get on with it is cut off.
HANDSHAKE_S_MAX = 10
#: Calls at a time on one connection.
STREAMS_MAX = 1024
CONNECTIONS_MAX = 4096
#: The set of algorithms that has only `identity` in it. A few kilobytes of gzip may be a gigabyte of zeros.
NOT_COMPRESSED = 1 << 0
#: Of clients: a connection without a call for so long is closed. For the next call gRPC opens another one.
IDLE_S_MAX = 60

Register = Callable[[Any, grpc.aio.Server], None]


class ListenError(Exception):
    """The server cannot listen at that address."""


class GrpcServer:
    """Add services, start, say what serves, stop. To be made and used in the event loop that it runs in."""

    def __init__(
        self,
        connections_max: int = CONNECTIONS_MAX,
        streams_max: int = STREAMS_MAX,
        receive_bytes_max: int | None = None,
        send_bytes_max: int = MESSAGE_BYTES_MAX,
        takes_compressed: bool = False,
        admit: Admit | None = None,
        limits: Limits | None = None,
        idle_s_max: float | None = None,
    ) -> None:
        """`takes_compressed`: what is inflated may have `receive_bytes_max` too; otherwise it is UNIMPLEMENTED.

        Without `receive_bytes_max` gRPC takes in what the largest request may have, by the limits.
        `admit` raises Refused for callers who may call nothing here.
        """
        self._admit = admit
        self._limits = Limits() if limits is None else limits
        self._receive_bytes_max = receive_bytes_max
        self._options = _options(connections_max, streams_max, send_bytes_max)
        if not takes_compressed:
            # gRPC reads the headers first, so nothing of such a request is inflated.
            self._options.append(("grpc.compression_enabled_algorithms_bitset", NOT_COMPRESSED))
        if idle_s_max is not None:
            self._options.append(("grpc.max_connection_idle_ms", round(idle_s_max * 1000)))
        self._server: grpc.aio.Server | None = None
        self._health = health.aio.HealthServicer()
        self._names = [""]
        self._services: list[tuple[Register, Any]] = [(health_pb2_grpc.add_HealthServicer_to_server, self._health)]
        self._requests = [method.input_type for service in OF_ALL_PORTS for method in service.methods]
        #: Of the process: what health checks are told without a name, and why.
        self.phase: Phase = "starting"

    def add(self, service: ServiceDescriptor, register: Register, servicer: Any, is_raw: bool = False) -> None:
        """Before the start: `add(pb2.DESCRIPTOR.services_by_name["X"], pb2_grpc.add_XServicer_to_server, x)`.

        `is_raw`: its requests come as bytes, and the service has a limit for them as a whole.
        """
        self._services.append((register, servicer))
        self._names.append(service.full_name)
        if not is_raw:
            self._requests += [method.input_type for method in service.methods]

    async def start(self, address: str, credentials: grpc.ServerCredentials | None = None) -> int:
        """Listens at host:port and returns the port, which the system chooses if it is 0.

        Nothing is healthy until `set_serving` says so. `NoLimit`, if a field of a request has no limit.
        """
        receive_bytes_max = self._limits.receive_bytes_max(self._requests)
        if self._receive_bytes_max is not None:
            receive_bytes_max = self._receive_bytes_max
        options = [*self._options, ("grpc.max_receive_message_length", receive_bytes_max)]
        self._server = grpc.aio.server(interceptors=[Guard(self._limits, self._admit)], options=options)
        for name in self._names:
            await self._health.set(name, NOT_SERVING)
        for register, servicer in self._services:
            register(servicer, self._server)
        reflection.enable_server_reflection((*self._names[1:], HEALTH, reflection.SERVICE_NAME), self._server)
        try:
            if credentials is None:
                port = self._server.add_insecure_port(address)
            else:
                port = self._server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise ListenError(f"cannot listen at {address}: {error}") from error
        await self._server.start()
        return port

    async def set_serving(self, serving: bool, service: ServiceDescriptor | None = None) -> None:
        """What health checks are told of one service; without one, of the process and of every service."""
        if service is None:
            self.phase = "serving" if serving else "stopping"
        for name in self._names if service is None else [service.full_name]:
            await self._health.set(name, SERVING if serving else NOT_SERVING)

    async def stop(self, grace_s: float | None) -> None:
        """Health checks fail from now on, and no call begins; open ones may end within the grace period."""
        self.phase = "stopping"
        await self._health.enter_graceful_shutdown()
        if self._server is not None:
            await self._server.stop(grace_s)


def _options(connections_max: int, streams_max: int, send_bytes_max: int) -> list[tuple[str, int]]:
    # There is no age limit on connections: streams between processes are meant to last.
    return [
        ("grpc.max_send_message_length", send_bytes_max),
        ("grpc.keepalive_time_ms", KEEPALIVE_S * 1000),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_S * 1000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", PING_INTERVAL_S_MIN * 1000),
        ("grpc.max_concurrent_streams", streams_max),
        ("grpc.max_allowed_incoming_connections", connections_max),
        ("grpc.server_handshake_timeout_ms", HANDSHAKE_S_MAX * 1000),
        # Otherwise a second process could listen at the same address, and would get half of the connections.
        ("grpc.so_reuseport", 0),
    ]
