"""A cluster of real processes on 127.0.0.1: started, watched, killed, paused, partitioned.

By default each node is one process with all services. Apart, each service of each node is a process of its own.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from ordercast.runtime.storage.private_files import make_private
from ordercast.v1.faults_pb2 import InjectRequest
from ordercast.v1.faults_pb2_grpc import FaultServiceStub

SERVICES = ("membership", "consensus", "sequencer", "gateway")
HOST = "127.0.0.1"
#: None is a promise: machines that do other work beside are slow, and what never comes to its end has to have one.
START_S_MAX = 90.0
STOP_S_MAX = 60.0
INJECT_S_MAX = 30.0


class ClusterError(Exception):
    """The cluster did not do what was asked of it."""


@dataclass(slots=True)
class Member:
    """One process of the cluster, whether it runs or not."""

    name: str
    services: tuple[str, ...]
    data: Path
    peer_port: int
    client_port: int | None
    process: subprocess.Popen[bytes] | None = None
    started: int = 0
    extra: list[str] = field(default_factory=list)
    is_paused: bool = False
    #: Where the package `ordercast` of another version is; None: the one that runs here.
    source: Path | None = None

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def log(self) -> Path:
        return self.data.parent / f"{self.name}.log"


class LocalCluster:
    def __init__(
        self,
        directory: Path,
        *,
        nodes: int = 3,
        workers: int = 0,
        separate: bool = False,
        port: int | None = None,
        options: Sequence[str] = (),
        fault_injection: bool = False,
        mutant: str | None = None,
    ) -> None:
        """Without a port, free ones are taken: gateways at port, port + 1, ..., peers behind them.

        Workers are nodes with all services but membership, whose nodes are fixed: they come and go.
        """
        self.directory = directory
        self.program = ["ordercast.local.mutants", mutant] if mutant else ["ordercast.cli.services"]
        self.options = [*options, *(["--fault-injection"] if fault_injection else [])]
        self.members: dict[str, Member] = {}
        count = nodes * (len(SERVICES) if separate else 1) + nodes + 2 * workers
        ports = list(range(port, port + count)) if port is not None else free_ports(count)
        clients, peers = ports[: nodes + workers], iter(ports[nodes + workers :])
        for number in range(1, nodes + 1):
            if separate:
                for service in SERVICES:
                    client = clients[number - 1] if service == "gateway" else None
                    self._add(f"{service}-{number}", (service,), next(peers), client)
            else:
                self._add(f"node-{number}", SERVICES, next(peers), clients[number - 1])
        for number in range(nodes + 1, nodes + workers + 1):
            self._add(f"node-{number}", SERVICES[1:], next(peers), clients[number - 1])

    def _add(self, name: str, services: tuple[str, ...], peer_port: int, client_port: int | None) -> None:
        self.members[name] = Member(name, services, self.directory / name, peer_port, client_port)

    # ------------------------------------------------------------------------------------------- addresses

    @property
    def gateways(self) -> list[str]:
        return [f"{HOST}:{m.client_port}" for m in self.members.values() if m.client_port is not None]

    def running(self, service: str | None = None) -> list[Member]:
        members = self.members.values()
        return [m for m in members if m.is_running and (service is None or service in m.services)]

    # ------------------------------------------------------------------------------------------------ life

    def start(self, names: Iterable[str] | None = None) -> None:
        for name in self.members if names is None else names:
            self._start(self.members[name])

    def _start(self, member: Member) -> None:
        make_private(member.data)
        peers = [m for m in self.members.values() if "membership" in m.services]
        command = [
            sys.executable,
            "-m",
            *self.program,
            *member.services,
            f"--name={member.name}",
            f"--data={member.data}",
            f"--peer-listen={HOST}:{member.peer_port}",
            f"--membership={','.join(f'{m.name}={HOST}:{m.peer_port}' for m in peers)}",
            *self.options,
            *member.extra,
        ]
        if member.client_port is not None:
            command.append(f"--client-listen={HOST}:{member.client_port}")
        # Whatever is set for this command is not meant for the processes.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ORDERCAST_")}
        if member.source is not None:
            # It comes before whatever is installed.
            environment["PYTHONPATH"] = str(member.source)
        # A session of its own: Ctrl-C in the terminal is for who runs the cluster, and not for each process.
        with member.log.open("ab") as log:
            member.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        member.started += 1
        member.is_paused = False

    def wait_healthy(self, names: Iterable[str] | None = None, timeout_s: float = START_S_MAX) -> None:
        """Until each of these processes says that it serves."""
        deadline = time.monotonic() + timeout_s
        for name in list(self.members if names is None else names):
            member = self.members[name]
            while not is_serving(f"{HOST}:{member.peer_port}"):
                if not member.is_running:
                    raise ClusterError(
                        f"{name} ended with {member.process and member.process.returncode}: {tail(member.log)}"
                    )
                if time.monotonic() > deadline:
                    raise ClusterError(f"{name} is not healthy after {timeout_s:.0f} s: {tail(member.log)}")
                time.sleep(0.05)

    def stop(self, timeout_s: float = STOP_S_MAX) -> dict[str, int]:
        """SIGTERM to all; the exit codes."""
        for member in self.members.values():
            if member.is_running:
                self.resume(member.name)
                self._signal(member, signal.SIGTERM)
        codes = {}
        deadline = time.monotonic() + timeout_s
        for member in self.members.values():
            if member.process is None:
                continue
            try:
                codes[member.name] = member.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.kill(member.name)
                codes[member.name] = -signal.SIGKILL
        return codes

    def __enter__(self) -> "LocalCluster":
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members.values():
            if member.is_running:
                self.kill(member.name)

    def upgrade(self, name: str, source: Path | None, timeout_s: float = STOP_S_MAX) -> int:
        """SIGTERM, then another version (see Member.source) on the same data. Returns how the first one ended."""
        member = self.members[name]
        if member.process is None:
            raise ClusterError(f"{name} does not run")
        self._signal(member, signal.SIGTERM)
        try:
            code = member.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise ClusterError(f"{name} has not stopped after {timeout_s:.0f} s: {tail(member.log)}") from None
        member.source = source
        self._start(member)
        return code

    # -------------------------------------------------------------------------------------------- faults

    def kill(self, *names: str) -> None:
        """SIGKILL; all of them before the first is waited for."""
        for name in names:
            self._signal(self.members[name], signal.SIGKILL)
        for name in names:
            process = self.members[name].process
            if process is not None:
                process.wait()

    def pause(self, name: str) -> None:
        self.members[name].is_paused = True
        self._signal(self.members[name], signal.SIGSTOP)

    def resume(self, name: str) -> None:
        if self.members[name].is_paused:
            self.members[name].is_paused = False
            self._signal(self.members[name], signal.SIGCONT)

    def _signal(self, member: Member, number: int) -> None:
        if member.process is not None and member.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member.process.pid, number)

    def inject(self, name: str, request: InjectRequest) -> None:
        with grpc.insecure_channel(f"{HOST}:{self.members[name].peer_port}") as channel:
            FaultServiceStub(channel).Inject(request, timeout=INJECT_S_MAX, wait_for_ready=True)

    def partition(self, *sides: Iterable[str]) -> None:
        """Nobody on one side hears anybody on another. Whoever is named nowhere is not touched."""
        groups = [list(side) for side in sides]
        for side in groups:
            others = [name for other in groups if other is not side for name in other]
            for name in side:
                if self.members[name].is_running:
                    self.inject(name, InjectRequest(deaf_to=others, mute_to=others))

    def heal(self) -> None:
        for member in self.running():
            if not member.is_paused:
                self.inject(member.name, InjectRequest())


def is_serving(address: str) -> bool:
    request = health_pb2.HealthCheckRequest(service="")
    with grpc.insecure_channel(address) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(request, timeout=1)
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


#: Below those that the system hands out to clients by itself.
PORTS = range(20_000, 32_000)
PORTS_PER_BLOCK = 150


class PortBlocks:
    """Ports for clusters of this process, which no other process of ours takes.

    While the process that shall listen at a port is down, somebody else could find that port free. So this process
    owns blocks of ports, each for as long as it listens at the first of them; and a port that was given away comes
    again only after all the others of the block.
    """

    def __init__(self) -> None:
        self._owners: list[socket.socket] = []
        self._ports: deque[int] = deque()

    def take(self, count: int) -> list[int]:
        found: list[int] = []
        looked = 0
        while len(found) < count:
            if looked >= len(self._ports):
                self._own_another()
                looked = 0
            candidate = self._ports.popleft()
            self._ports.append(candidate)
            looked += 1
            if candidate not in found and is_free(candidate):
                found.append(candidate)
        return found

    def _own_another(self) -> None:
        firsts = PORTS[::PORTS_PER_BLOCK]
        # Not all processes begin with the same block: what listens there may have nothing to do with us.
        begin = os.getpid() % len(firsts)
        for first in (*firsts[begin:], *firsts[:begin]):
            owner = socket.socket()
            try:
                owner.bind((HOST, first))
                owner.listen()
            except OSError:
                owner.close()
                continue
            self._owners.append(owner)
            self._ports.extendleft(reversed(range(first + 1, first + PORTS_PER_BLOCK)))
            return
        raise ClusterError(f"no free ports in {PORTS.start} to {PORTS.stop - 1}")


_blocks = PortBlocks()


def free_ports(count: int) -> list[int]:
    """So many ports that are free, and stay so for a while."""
    return _blocks.take(count)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def tail(path: Path, lines: int = 5) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return "no log"


def wait_until(what: str, is_so: Callable[[], bool], timeout_s: float, look_s: float = 0.05) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > deadline:
            raise ClusterError(f"not within {timeout_s:.0f} s: {what}")
        time.sleep(look_s)
