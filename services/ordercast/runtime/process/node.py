"""One process of the cluster: its disk, its machines, its streams, and the services that it runs.

The order of a start: open the disk; serve peers; if this is a membership node, join membership's own log; register
and get an incarnation; follow membership; start the machines of each domain. The order of a stop is the reverse,
with a drain in front: what was taken is finished before the process leaves.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Coroutine, Sequence
from typing import Any, ClassVar, Protocol

import structlog

from ordercast.core.limits import Limits
from ordercast.core.machine import (
    Machine,
)
from ordercast.runtime.driver.clock import Clock
from ordercast.runtime.driver.host import Host
from ordercast.runtime.driver.live import LiveFeeds
from ordercast.runtime.driver.profile import Profile
from ordercast.runtime.kubernetes.endpoint_slices import EndpointSlices
from ordercast.runtime.kubernetes.pod_addresses import PodAddresses, family_of
from ordercast.runtime.process.directory import Directory
from ordercast.runtime.process.domains import Domains
from ordercast.runtime.process.exits import EXIT_BROKEN
from ordercast.runtime.process.fault_service import serve_faults
from ordercast.runtime.process.registration import Registration
from ordercast.runtime.process.settings import ProcessSettings, split_address
from ordercast.runtime.storage.disbelief import Disbelief
from ordercast.runtime.storage.local_log import LocalLogs
from ordercast.runtime.storage.store import Storage
from ordercast.runtime.storage.writer import Writer
from ordercast.runtime.telemetry.envelope_stages import log_stages
from ordercast.runtime.telemetry.hub import Telemetry
from ordercast.runtime.telemetry.meters import Meters
from ordercast.runtime.transport.admission import Admission
from ordercast.runtime.transport.frame_listener import FrameListener
from ordercast.runtime.transport.mesh import WIRE_VERSION, Events, Mesh, Unwelcome
from ordercast.runtime.transport.peer_service import serve_peers
from ordercast.runtime.transport.server import IDLE_S_MAX, GrpcServer
from ordercast.runtime.transport.tls import Credentials
from ordercast.telemetry.schema import names
from ordercast.v1.frame_pb2 import CHANNEL_DOMAINS, Hello
from ordercast.v1.membership_pb2 import (
    Domain,
)

log = structlog.get_logger("node")

#: The domain of membership's own machines: no domain of users has such a name.
SYSTEM = "#membership"


class Service(Protocol):
    """What a service adds to a process."""

    name: ClassVar[str]

    def machines(self, domain: Domain) -> dict[str, Machine]:
        """Make the machines that this service runs for a domain, by role."""
        ...

    def changed(self) -> None:
        """The directory has changed."""
        ...

    async def start(self) -> None:
        """Before registration: gRPC services are added to the servers here."""
        ...

    async def drain(self) -> None:
        """Take nothing new, and finish what was taken."""
        ...

    async def stop(self) -> None: ...

    def measure(self, meters: Meters) -> None:
        """Once a second, if somebody looks on: what nobody says when it changes."""
        ...


def _server_for_clients(settings: ProcessSettings, limits: Limits) -> GrpcServer:
    return GrpcServer(settings.limits.connections_max, limits=limits, idle_s_max=IDLE_S_MAX)


class Node:
    def __init__(self, settings: ProcessSettings) -> None:
        self.settings = settings
        self.name = settings.name
        loop = asyncio.get_running_loop()
        self.clock = Clock(loop, settings.wall_offset_s)
        self.storage = Storage(settings.data, map_bytes=settings.storage.map_bytes)
        self.pods = PodAddresses(family_of(settings.peer_listen))
        self.endpoint_slices: EndpointSlices | None = None
        if settings.kubernetes.selector:
            self.endpoint_slices = EndpointSlices(settings.kubernetes, self.pods)
        self.credentials = Credentials(settings.tls, self.pods.locate)
        self.profile = Profile() if settings.profile else None
        self.host = Host(
            self.name, self.storage, self.clock, send=self._send, on_broken=self.broken, profile=self.profile
        )
        self.writer = self.host.writer = Writer(
            self.storage,
            loop,
            on_durable=self.host.durable,
            on_full=self._disk_full,
            on_fatal=self.broken,
            wall_ms=self.clock.wall_ms,
            reserve_bytes=settings.storage.reserve_bytes,
        )
        self.logs = LocalLogs(self.storage, self.writer)
        self.host.on_logged = self.logs.notify
        self.host.on_watermark = self.logs.said
        self.live = LiveFeeds()
        self.host.on_live = self.live.delivered
        self.host.on_interrupted = self.live.interrupted
        self.directory = Directory(self.name, settings.members, self.credentials)
        self.directory.on_change = self._directory_changed
        self.directory.settled = self.host.caught_up
        self.disbelief = Disbelief(self.name, self.storage)
        self.registration = Registration(self)
        self.domains = Domains(self)
        self.mesh = Mesh(
            CHANNEL_DOMAINS,
            self._hello,
            Events(self.domains.opened, self.domains.received, self._check_hello, self.host.room),
            self.credentials,
            settings.peer_queue_bytes_max,
        )
        self.services: list[Service] = []
        self.incarnation = 0
        self.is_read_only = False
        self.meters = Meters()
        self.telemetry = Telemetry(self) if settings.telemetry.is_on or settings.stages else None
        #: Membership's own streams, where this process is a membership node.
        self.system_mesh: Mesh | None = None
        self.peer_server = GrpcServer(admit=Admission((settings.tls.peer_uri,)))
        self.frames = FrameListener(self.credentials)
        #: What clients' requests may have: the gateway looks things up in it too.
        self.client_limits = Limits(settings.limits.table())
        self.client_server = _server_for_clients(settings, self.client_limits)
        self.key = b""
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[Any]] = []

    @property
    def observe(self) -> bool:
        """Whether somebody wants to know of the stages of envelopes."""
        return self.telemetry is not None

    # ------------------------------------------------------------------------------------------------ life

    async def run(self, services: Sequence[type]) -> int:
        """Until it is told to stop; the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        starting = asyncio.create_task(self.start(services))
        stopping = asyncio.create_task(self._stopping.wait())
        # Without a majority of the membership nodes a start takes for ever, and still has to end when told to.
        await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            await stopping
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await self.stop()
        return 0

    async def start(self, services: Sequence[type]) -> None:
        settings = self.settings
        self.services = [service(self) for service in services]
        if self.endpoint_slices is not None:
            self.endpoint_slices.start()
        if self.telemetry is not None:
            await self.telemetry.start()
        serve_peers(self)
        if settings.fault_injection:
            serve_faults(self)
        for service in self.services:
            await service.start()
        frames_port = self.frames.start(split_address(settings.peer_listen)[0], settings.frames_port)
        port = await self.peer_server.start(settings.peer_listen, self.credentials.for_peers())
        log.info("serving peers", port=port, frames=frames_port, services=[s.name for s in self.services])
        await self.registration.register()
        self.spawn(self.directory.follow())
        self.spawn(self.registration.heartbeats())
        while self.directory.revision == 0:
            await self.wait_for_change()
        self.spawn(self.domains.forget_removed())
        if "gateway" in settings.services:
            # Not before the groups are known here: a client would be told that there are none.
            port = await self.client_server.start(settings.client_listen, self.credentials.for_clients())
            log.info("serving clients", port=port)
        for server in (self.peer_server, self.client_server):
            await server.set_serving(True)
        if self.telemetry is not None:
            self.telemetry.ready()
        log.info("ready", incarnation=self.incarnation, cluster=self.directory.cluster_id.hex())

    async def stop(self) -> None:
        """Drain, then leave."""
        log.info("stopping")
        self.registration.is_leaving = True
        if self.telemetry is not None:
            self.telemetry.event(names.EVENT_STOPPING, {})
        for server in (self.peer_server, self.client_server):
            await server.set_serving(False)
        try:
            async with asyncio.timeout(self.settings.drain_s):
                for service in self.services:
                    await service.drain()
                if self.incarnation:
                    await self.registration.heartbeat()
                    await self.registration.leave_views()
        except TimeoutError:
            log.warning("what is open could not be finished in time", drain_s=self.settings.drain_s)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.incarnation and set(self.settings.services) == {"gateway"}:
            await self.registration.end_incarnation()
        for service in self.services:
            await service.stop()
        if self.telemetry is not None:
            await self.telemetry.stop()
        await self.client_server.stop(1.0)
        await self.mesh.stop()
        if self.system_mesh is not None:
            await self.system_mesh.stop()
        await self.frames.stop()
        await self.peer_server.stop(1.0)
        await self.directory.stop()
        if self.endpoint_slices is not None:
            self.endpoint_slices.stop()
        self.host.stop()
        if self.profile is not None:
            log.info("profile", cpu_s=time.process_time(), spent=self.profile.document())
        if self.settings.stages and self.telemetry is not None:
            log_stages(self.telemetry.tracing.ring)
        self.writer.stop()
        self.storage.close()
        log.info("stopped")

    def broken(self, error: BaseException) -> None:
        """At once, before what is wrong in memory reaches a disk or a peer."""
        log.critical("this process cannot go on", error=repr(error), exc_info=error)
        os._exit(EXIT_BROKEN)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Work that goes on until the process stops. If it fails, the process ends: nobody else would notice."""
        self._tasks.append(asyncio.create_task(self._guarded(work)))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self.broken(error)

    # ----------------------------------------------------------------------------------------- directory

    async def wait_for_change(self, timeout_s: float = 1.0) -> None:
        """Wait until the directory changes, or until the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()

    def _directory_changed(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        self.domains.follow()

    # ------------------------------------------------------------------------------------------- streams

    def _hello(self) -> Hello:
        return Hello(
            version=WIRE_VERSION,
            channel=CHANNEL_DOMAINS,
            process=self.name,
            incarnation=self.incarnation,
            node_id=self.storage.node_id,
            cluster_id=self.directory.cluster_id,
        )

    async def _check_hello(self, hello: Hello) -> None:
        """Whoever speaks is who membership says it is. What we have not heard of yet, we may hear of soon."""
        if not self.incarnation:
            raise Unwelcome("not registered yet")
        node = self.directory.nodes.get(hello.process)
        if node is None or node.incarnation < hello.incarnation:
            await self.wait_for_change()
            node = self.directory.nodes.get(hello.process)
        if node is None or node.node_id != hello.node_id:
            raise Unwelcome(f"{hello.process!r} is no node of this cluster")
        if hello.cluster_id != self.directory.cluster_id:
            raise Unwelcome("another cluster")
        if node.incarnation != hello.incarnation or node.ended:
            raise Unwelcome(f"{hello.process!r} is in incarnation {node.incarnation}, not {hello.incarnation}")

    def _send(self, peer: str, domain: str, packet: bytes, urgent: bool) -> None:
        mesh = self.mesh if domain != SYSTEM else self.system_mesh
        if mesh is not None:
            mesh.send(peer, domain, packet, urgent)

    # ----------------------------------------------------------------------------------------------- disk

    def _disk_full(self, is_full: bool) -> None:
        self.is_read_only = is_full
        if is_full:
            log.error("the disk is full: nothing new is taken until there is room")
        else:
            log.info("there is room on the disk again")
