"""A gateway's administration over real gRPC, on the real state of membership, with no processes behind it.

Membership is one member that applies commands at once. What nodes report with their heartbeats, and what comes of
it, is done here as soon as it is due, unless a test holds it back.
"""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import grpc

from ordercast.gateway.administration import Administration
from ordercast.gateway.budgets import Budgets
from ordercast.gateway.server import GatewayServer
from ordercast.membership.placement import rebalance
from ordercast.membership.state import State
from ordercast.runtime.process.directory import Directory
from ordercast.runtime.process.settings import TlsSettings
from ordercast.runtime.transport.server import GrpcServer
from ordercast.runtime.transport.status import Refused
from ordercast.runtime.transport.tls import Credentials
from ordercast.v1 import gateway_pb2, membership_pb2
from ordercast.v1.gateway_pb2_grpc import add_GatewayServiceServicer_to_server
from ordercast.v1.membership_pb2 import (
    REPLICA_CHANGE_REPLACE,
    BeginConfiguration,
    ChangeReplicas,
    Command,
    CommandBatch,
    CommandResult,
    CreateGroup,
    ExecuteResponse,
    FoundCluster,
    Group,
    RaiseLevel,
    RecordStarted,
    RegisterNode,
)
from ordercast.v1.membership_pb2_grpc import MembershipServiceServicer, add_MembershipServiceServicer_to_server
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse, ReplicaFact

ALL = ("consensus", "gateway", "sequencer")
STEP_S = 0.01
SIGN_OF_LIFE_S = 0.5
WAIT_S_MAX = 30.0


class Member(MembershipServiceServicer):
    def __init__(self) -> None:
        self.state = State()
        self.requests = 0
        self.changed = asyncio.Event()

    def apply(self, command: Command) -> CommandResult:
        batch = CommandBatch(commands=[command]).SerializeToString()
        ((_, result),) = self.state.apply(self.state.revision, batch)
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()
        return result

    def do(self, **what: Any) -> CommandResult:
        self.requests += 1
        return self.apply(Command(request_id=b"by the test %d" % self.requests, **what))

    async def Execute(self, request, context):  # noqa: N802 (a method of the service)
        return ExecuteResponse(result=self.apply(request.command))

    async def Watch(self, request, context):  # noqa: N802 (a method of the service)
        revision = request.revision
        while True:
            change = self.state.changes_since(revision)
            revision = change.revision
            yield change
            # Also without news: a member that says nothing is left.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SIGN_OF_LIFE_S):
                    while self.state.revision == revision:
                        await self.changed.wait()


class Logs:
    """In place of replicas that are asked how far they are."""

    def __init__(self) -> None:
        #: By node.
        self.positions: dict[str, int] = {}
        #: What each of them says of its protocol.
        self.facts: dict[str, str] = {}

    async def describe(self, group: Group) -> dict[str, DescribeReplicaResponse | str]:
        return {name: self._describe(name) for name in group.replicas}

    def _describe(self, name: str) -> DescribeReplicaResponse | str:
        if name not in self.positions:
            return "UNAVAILABLE: nobody there"
        position = self.positions[name]
        facts = [ReplicaFact(name=fact, value=value) for fact, value in self.facts.items()]
        return DescribeReplicaResponse(position=position, next_offset=10 * position, facts=facts)


class AdminGateway:
    """To be used in the test's thread; everything runs in another one."""

    def __init__(self) -> None:
        self.address = ""
        self.logs = Logs()
        #: Which duties are done by themselves.
        self.begins = self.starts = self.moves = True
        self.is_planning = True
        #: Of the software of all nodes.
        self.level = 1
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._over: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),), daemon=True)

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(WAIT_S_MAX)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(lambda: self._over is not None and self._over.set())
        self._thread.join(WAIT_S_MAX)
        self._loop.close()

    def run(self, coroutine: Any) -> Any:
        """In the loop of the gateway: a process has only one under gRPC."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(WAIT_S_MAX)

    def do(self, **what: Any) -> CommandResult:
        """A command of membership, past the gateway."""

        async def apply() -> CommandResult:
            result = self.member.do(**what)
            while self.directory.revision < result.revision:
                await asyncio.sleep(STEP_S)
            return result

        result: CommandResult = self.run(apply())
        assert result.code == 0, result.message
        return result

    def register(self, name: str, **fields: Any) -> None:
        values = {"services": ALL, "node_id": f"disk of {name}".encode(), "peer_address": f"{name}:1"}
        values["level"] = self.level
        self.do(register=RegisterNode(name=name, **(values | fields)))

    def create(self, name: str, replicas: int = 3) -> Group:
        return self.do(create_group=CreateGroup(name=name, domain="default", replicas=replicas)).group

    def group(self, name: str) -> Group:
        return self.member.state.groups[name]

    # ------------------------------------------------------------------------------------- in the other thread

    async def _run(self) -> None:
        self._over = asyncio.Event()
        self.member = Member()
        self.member.do(found=FoundCluster(cluster_id=b"cluster", key=b"key"))
        members = GrpcServer()
        service = membership_pb2.DESCRIPTOR.services_by_name["MembershipService"]
        members.add(service, add_MembershipServiceServicer_to_server, self.member)
        at = f"127.0.0.1:{await members.start('127.0.0.1:0')}"
        self.directory = Directory("g", {"m": at}, Credentials(TlsSettings()))
        gateway = GrpcServer()
        service = gateway_pb2.DESCRIPTOR.services_by_name["GatewayService"]
        gateway.add(
            service,
            add_GatewayServiceServicer_to_server,
            GatewayServer(None, None, None, self._administration(), Budgets()),
        )
        self.address = f"127.0.0.1:{await gateway.start('127.0.0.1:0')}"
        tasks = [asyncio.create_task(self.directory.follow()), asyncio.create_task(self._do_duties())]
        self._ready.set()
        await self._over.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.directory.stop()
        await gateway.stop(None)
        await members.stop(None)
        # Calls that were cut off have their last word.
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        await asyncio.gather(*others, return_exceptions=True)

    def _administration(self) -> Administration:
        async def wait_for_change() -> None:
            await asyncio.sleep(STEP_S)

        node = SimpleNamespace(name="g", directory=self.directory, wait_for_change=wait_for_change)

        subscribing = SimpleNamespace(group=self._group)
        return Administration(node, self.logs, None, subscribing, rebalance if self.is_planning else None)

    async def _group(self, name: str) -> Group:
        if name not in self.directory.group_by_name:
            raise Refused(grpc.StatusCode.NOT_FOUND, f"unknown group {name!r}", "UNKNOWN_GROUP")
        return self.directory.group_by_name[name]

    async def _do_duties(self) -> None:
        while True:
            state = self.member.state
            level = min((node.level for node in state.nodes.values()), default=0)
            if state.level < level:
                present = {name: node.incarnation for name, node in state.nodes.items()}
                self.member.do(raise_level=RaiseLevel(level=level, incarnations=present))
            for group in state.placed():
                self._do_duty(group)
            await asyncio.sleep(STEP_S)

    def _do_duty(self, group: Group) -> None:
        nodes = self.member.state.nodes
        if self.begins and group.HasField("next"):
            begin = BeginConfiguration(group=group.id, configuration=group.next.number)
            self.member.do(begin_configuration=begin)
        elif self.starts and group.starting:
            started = RecordStarted(group=group.id, configuration=group.configuration, members=group.starting)
            self.member.do(record_started=started)
        elif self.moves and not (group.HasField("next") or group.HasField("previous")):
            for name in group.replicas:
                if nodes[name].draining:
                    change = ChangeReplicas(group=group.name, change=REPLICA_CHANGE_REPLACE, node=name)
                    self.member.do(change_replicas=change)
                    return


@contextlib.contextmanager
def running(*, is_planning: bool = True) -> Iterator[AdminGateway]:
    gateway = AdminGateway()
    gateway.is_planning = is_planning
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop()
