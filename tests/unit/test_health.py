"""Without TLS, `/healthz` and `/readyz` say what health checks by gRPC are told, and that a loop is stuck."""

import asyncio
import contextlib
import http.client
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ordercast.local.cluster import free_ports
from ordercast.runtime.process import health
from ordercast.runtime.process.health import Health
from ordercast.runtime.telemetry import web
from ordercast.runtime.telemetry.meters import Meters
from ordercast.runtime.telemetry.web import Server
from ordercast.runtime.transport.server import GrpcServer, ListenError
from tests.left_out import leave_out

HOST = "127.0.0.1"
SERVING = health_pb2.HealthCheckResponse.SERVING

Answer = tuple[int, str]


def get(port: int, path: str, host: str = HOST) -> Answer:
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class Process:
    """A gRPC server, and the HTTP server that tells of it."""

    def __init__(self) -> None:
        (self.port,) = free_ports(1)
        self.grpc = GrpcServer()
        self.grpc_port = 0
        self.web = Server(Meters(), Health(lambda: self.grpc.phase), f"{HOST}:{self.port}")

    async def start(self) -> None:
        self.grpc_port = await self.grpc.start(f"{HOST}:0")

    async def asked(self, path: str) -> Answer:
        return await asyncio.to_thread(get, self.port, path)

    async def asked_by_grpc(self) -> int:
        async with grpc.aio.insecure_channel(f"{HOST}:{self.grpc_port}") as channel:
            request = health_pb2.HealthCheckRequest()
            answer = await health_pb2_grpc.HealthStub(channel).Check(request, timeout=10)
            return int(answer.status)


@contextlib.asynccontextmanager
async def process() -> AsyncIterator[Process]:
    made = Process()
    try:
        yield made
    finally:
        await made.grpc.stop(None)
        made.web.stop()


def with_process(test: Callable[[Process], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with process() as made:
            await test(made)

    asyncio.run(run())


def test_readiness_is_what_health_checks_by_grpc_are_told():
    async def run(made: Process) -> None:
        assert await made.asked("/readyz") == (503, "starting\n")
        await made.start()
        assert await made.asked("/readyz") == (503, "starting\n")
        assert await made.asked_by_grpc() != SERVING
        await made.grpc.set_serving(True)
        assert await made.asked("/readyz") == (200, "serving\n")
        assert await made.asked_by_grpc() == SERVING
        await made.grpc.set_serving(False)
        assert await made.asked("/readyz") == (503, "stopping\n")
        assert await made.asked_by_grpc() != SERVING

    with_process(run)


def test_a_process_lives_while_it_starts_and_while_it_stops():
    async def run(made: Process) -> None:
        assert await made.asked("/healthz") == (200, "starting\n")
        await made.start()
        await made.grpc.set_serving(True)
        assert await made.asked("/healthz") == (200, "serving\n")
        await made.grpc.stop(None)
        assert await made.asked("/healthz") == (200, "stopping\n")
        assert await made.asked("/readyz") == (503, "stopping\n")

    with_process(run)


def test_a_loop_that_is_stuck_neither_lives_nor_serves(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(health, "ANSWER_S_MAX", 0.2)

    async def run(made: Process) -> None:
        await made.grpc.set_serving(True)
        with ThreadPoolExecutor() as threads:
            # Waiting for them here is what the loop is stuck with.
            healthy, ready, metrics = threads.map(partial(get, made.port), ("/healthz", "/readyz", "/metrics"))
        assert (healthy, ready) == ((503, "stuck\n"), (503, "stuck\n"))
        # A scrape does not wait for the loop.
        assert metrics[0] == 200
        monkeypatch.undo()
        assert await made.asked("/healthz") == (200, "serving\n")

    with_process(run)


def test_a_misspelt_probe_is_not_answered_with_metrics():
    async def run(made: Process) -> None:
        for path in ("/", "/ready", "/readyz/", "/metricsz"):
            assert (await made.asked(path))[0] == 404, path

    with_process(run)


def test_an_address_of_either_kind_is_listened_at():
    async def run() -> None:
        (port,) = free_ports(1)
        try:
            server = Server(Meters(), Health(lambda: "serving"), f"[::1]:{port}")
        except ListenError as error:
            leave_out(f"/readyz over IPv6: {error}")
        try:
            assert await asyncio.to_thread(get, port, "/readyz", "::1") == (200, "serving\n")
        finally:
            server.stop()

    asyncio.run(run())


def test_an_address_that_is_not_to_be_had_is_named():
    async def run(made: Process) -> None:
        address = f"{HOST}:{made.port}"
        with pytest.raises(ListenError, match=f"cannot serve metrics at {address}"):
            Server(Meters(), Health(lambda: "serving"), address)

    with_process(run)


def test_after_the_end_of_the_loop_nobody_waits_for_it():
    async def run() -> Health:
        return Health(lambda: "serving")

    assert asyncio.run(run()).condition() == "stopping"


def test_connections_that_say_nothing_are_few_and_go_when_they_take_long(monkeypatch, capfd):
    monkeypatch.setattr(web, "REQUESTS_MAX", 3)
    (port,) = free_ports(1)
    server = Server(Meters(), SimpleNamespace(condition=lambda: "serving"), f"{HOST}:{port}")
    try:
        silent = [socket.create_connection((HOST, port)) for _ in range(8)]
        for connection in silent:
            connection.settimeout(30)
        assert [connection.recv(1) for connection in silent[3:]] == [b""] * 5, "there is no thread for them"
        monkeypatch.setattr(web, "REQUEST_S_MAX", 0.0)
        asking = http.client.HTTPConnection(HOST, port, timeout=30)
        asking.request("GET", "/metrics")
        assert asking.getresponse().status == 200
        assert silent[0].recv(1) == b"", "the oldest made room"
        for connection in silent:
            connection.close()
    finally:
        server.stop()
    assert "Traceback" not in capfd.readouterr().err


def test_a_client_that_does_not_get_on_leaves_no_traceback(monkeypatch, capfd):
    monkeypatch.setattr(web._Handler, "timeout", 0.05)
    (port,) = free_ports(1)
    server = Server(Meters(), SimpleNamespace(condition=lambda: "serving"), f"{HOST}:{port}")
    try:
        for said in (b"", b"GET /metrics", b"GET /metrics HTTP/1.1\r\nA: "):
            with socket.create_connection((HOST, port)) as connection:
                connection.settimeout(30)
                connection.sendall(said)
                assert connection.recv(1) == b""
    finally:
        server.stop()
    captured = capfd.readouterr()
    assert "Traceback" not in captured.err + captured.out
