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
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ClassVar, Protocol

import grpc
import structlog

from ordercast.core.ids import U64_MAX
from ordercast.core.level import LEVEL
from ordercast.core.limits import Limits
from ordercast.core.machine import (
    ChangesConfigurations,
    ChannelReset,
    Ended,
    Event,
    GroupsClosed,
    KeepsIncarnations,
    Machine,
    NamesGroups,
    Retired,
    ViewChanged,
)
from ordercast.core.members import can_leave, has_views, is_changing
from ordercast.protocols.catalogue import installed
from ordercast.runtime.driver.clock import Clock
from ordercast.runtime.driver.host import Host
from ordercast.runtime.driver.live import LiveFeeds
from ordercast.runtime.driver.profile import Profile
from ordercast.runtime.kubernetes.endpoint_slices import EndpointSlices
from ordercast.runtime.kubernetes.pod_addresses import PodAddresses, family_of
from ordercast.runtime.process.directory import Directory
from ordercast.runtime.process.fault_service import serve_faults
from ordercast.runtime.process.settings import ProcessSettings, split_address
from ordercast.runtime.storage.disbelief import Disbelief
from ordercast.runtime.storage.local_log import LocalLogs
from ordercast.runtime.storage.store import Storage
from ordercast.runtime.storage.writer import Writer
from ordercast.runtime.telemetry.envelope_stages import Stages
from ordercast.runtime.telemetry.hub import Telemetry
from ordercast.runtime.telemetry.meters import Meters
from ordercast.runtime.transport.admission import Admission
from ordercast.runtime.transport.frame_listener import FrameListener
from ordercast.runtime.transport.mesh import WIRE_VERSION, Events, Mesh, Unwelcome
from ordercast.runtime.transport.peer_service import serve_peers
from ordercast.runtime.transport.server import IDLE_S_MAX, GrpcServer
from ordercast.runtime.transport.status import Refused
from ordercast.runtime.transport.tls import Credentials
from ordercast.telemetry.schema import names
from ordercast.v1.frame_pb2 import CHANNEL_DOMAINS, Frame, Hello
from ordercast.v1.membership_pb2 import (
    GROUP_STATE_DELETING,
    Command,
    CommandResult,
    Domain,
    DomainView,
    EndIncarnation,
    GroupProgress,
    HeartbeatRequest,
    RegisterNode,
)
from ordercast.v1.membership_pb2 import (
    Node as NodeRecord,
)

log = structlog.get_logger("node")

#: The process can no longer be trusted, or its disk cannot.
EXIT_BROKEN = 70
#: Membership has given this incarnation up: starting again gives it a new one.
EXIT_FENCED = 75
#: Starting again does not help: somebody has to look at the configuration.
EXIT_REFUSED = 78

#: How often membership hears of those who take part in a change; and how soon that somebody has got further with
#: one of a group that has views, whose members wait for it.
CHANGING_S = 0.1
FURTHER_S = 0.02
#: So long a process that stops waits for views without it.
LEAVE_S_MAX = 3.0
#: And so long a gateway to be heard that it is over.
END_S_MAX = 2.0
#: Nothing was changed by a command that is answered so: it may be tried again, as another request.
COME_AGAIN = (grpc.StatusCode.UNAVAILABLE.value[0], grpc.StatusCode.RESOURCE_EXHAUSTED.value[0])

#: The domain of membership's own machines: no domain of users has such a name.
SYSTEM = "#membership"

#: Who talks to whom. Acceptors hand their votes over when a configuration follows another.
CONVERSATIONS = (
    ("sequencer", "sequencer"),
    ("sequencer", "consensus"),
    ("sequencer", "gateway"),
    ("consensus", "consensus"),
)


class Service(Protocol):
    """What a service adds to a process."""

    name: ClassVar[str]

    def machines(self, domain: Domain) -> dict[str, Machine]:
        """By role, for each domain that there is."""
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
        self.live = LiveFeeds()
        self.host.on_live = self.live.delivered
        self.host.on_interrupted = self.live.interrupted
        self.directory = Directory(self.name, settings.members, self.credentials)
        self.directory.on_change = self._directory_changed
        self.directory.settled = self.host.caught_up
        self.disbelief = Disbelief(self.name, self.storage)
        self.mesh = Mesh(
            CHANNEL_DOMAINS,
            self._hello,
            Events(self._opened, self._received, self._check_hello, self.host.room),
            self.credentials,
            settings.peer_queue_bytes_max,
        )
        self.services: list[Service] = []
        self.incarnation = 0
        self.is_read_only = False
        self.meters = Meters()
        self.telemetry = Telemetry(self) if settings.telemetry.is_on else None
        self.stages = Stages(self.clock.now) if settings.stages else None
        if self.stages is not None:
            self.host.on_observe = both(self.host.on_observe, self.stages.observe)
        #: Membership's own streams, where this process is a membership node.
        self.system_mesh: Mesh | None = None
        self.peer_server = GrpcServer(admit=Admission((settings.tls.peer_uri,)))
        self.frames = FrameListener(self.credentials)
        #: What clients' requests may have: the gateway looks things up in it too.
        self.client_limits = Limits(settings.limits.table())
        self.client_server = _server_for_clients(settings, self.client_limits)
        self.key = b""
        self._leaving = False
        self._views: dict[str, DomainView] = {}
        self._ended: dict[str, int] = {}
        self._retired = 0
        self._closed: dict[str, tuple[str, ...]] = {}
        #: Peers that sent something for a domain that is not known here yet: it was lost.
        self._missed: dict[str, None] = {}
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[Any]] = []

    @property
    def observe(self) -> bool:
        """Whether somebody wants to know of the stages of envelopes."""
        return self.telemetry is not None or self.stages is not None

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
        await self._register()
        self.spawn(self.directory.follow())
        self.spawn(self._heartbeats())
        while self.directory.revision == 0:
            await self.wait_for_change()
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
        self._leaving = True
        if self.telemetry is not None:
            self.telemetry.event(names.EVENT_STOPPING, {})
        for server in (self.peer_server, self.client_server):
            await server.set_serving(False)
        try:
            async with asyncio.timeout(self.settings.drain_s):
                for service in self.services:
                    await service.drain()
                if self.incarnation:
                    await self._heartbeat()
                    await self._leave_views()
        except TimeoutError:
            log.warning("what is open could not be finished in time", drain_s=self.settings.drain_s)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.incarnation and set(self.settings.services) == {"gateway"}:
            await self._end_incarnation()
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
        if self.stages is not None:
            self.stages.log_all()
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

    # -------------------------------------------------------------------------------------- registration

    async def _register(self) -> None:
        settings = self.settings
        register = RegisterNode(
            name=self.name,
            node_id=self.storage.node_id,
            services=sorted(settings.services),
            peer_address=settings.peer_advertise,
            client_address=settings.client_advertise if "gateway" in settings.services else "",
            zone=settings.zone,
            cluster_id=self.storage.meta_get(b"cluster_id") or b"",
            level=LEVEL,
            protocols=installed(),
        )
        result = await self._execute_patiently(Command(register=register))
        if result.code != grpc.StatusCode.OK.value[0]:
            log.critical("membership refused this process", why=result.message)
            os._exit(EXIT_REFUSED)
        self.directory.revision_min = result.revision
        self.incarnation = result.registered.incarnation
        self.key = result.registered.key
        if not register.cluster_id:
            self.storage.meta_put(b"cluster_id", result.registered.cluster_id)
        log.info("registered", incarnation=self.incarnation)

    async def _end_incarnation(self) -> None:
        """Whoever holds data is waited for when it is gone. A gateway alone is not, and can say so itself."""
        command = Command(end_incarnation=EndIncarnation(name=self.name, incarnation=self.incarnation))
        try:
            await self.directory.execute(command, timeout_s=END_S_MAX)
        except Refused as refused:
            log.warning("membership did not hear that this gateway is over", why=str(refused))

    async def _execute_patiently(self, command: Command) -> CommandResult:
        """Whoever starts first waits for a majority of the membership nodes."""
        while True:
            try:
                result = await self.directory.execute(command, timeout_s=5.0)
                if result.code not in COME_AGAIN:
                    return result
                why = result.message
                # Another request, for this one is answered: membership would remember that.
                command.request_id = b""
            except Refused as refused:
                why = str(refused)
            log.info("waiting for membership", peers=sorted(self.settings.members), why=why)
            await asyncio.sleep(self.settings.heartbeat_s)

    async def _heartbeats(self) -> None:
        while True:
            await self._until_due(await self._heartbeat())

    async def _until_due(self, reported: list[GroupProgress]) -> None:
        """Until membership has to hear from us again: soon if we are in a change, since everyone in it waits for
        the others; and if groups have views, as soon as we are further than we said.
        """
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while True:
            changing = [group for group in self.directory.groups.values() if is_changing(group, self.name)]
            heartbeat_s = self.settings.heartbeat_s
            left_s = begun + (min(heartbeat_s, CHANGING_S) if changing else heartbeat_s) - loop.time()
            if left_s <= 0:
                return
            if not any(has_views(group) for group in changing):
                await self.wait_for_change(left_s)
                continue
            await asyncio.sleep(min(left_s, FURTHER_S))
            if _steps(self._progress()) != _steps(reported):
                return

    async def _leave_views(self) -> None:
        """Membership has heard that we leave. Until views go on without us, the others need our contribution."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S_MAX):
                while self._is_expected():
                    await self.wait_for_change(CHANGING_S)

    def _is_expected(self) -> bool:
        """In a view that is about to be left. One that nothing can follow is left as it is."""
        up = [name for name, node in self.directory.nodes.items() if not (node.suspected or node.ended)]
        return any(
            has_views(group) and self.name in (*group.replicas, *group.leaving) and can_leave(group, self.name, up)
            for group in self.directory.groups.values()
        )

    async def _heartbeat(self) -> list[GroupProgress]:
        """What it said of changes."""
        revision = self.directory.revision
        oldest_open, clear_of, progress = await self._what_is_open()
        request = HeartbeatRequest(
            name=self.name,
            incarnation=self.incarnation,
            revision=revision,
            oldest_open=oldest_open,
            read_only=self.is_read_only,
            clear_of=clear_of,
            leaving=self._leaving,
            progress=progress,
            damaged=self.disbelief.to_report(self.directory.groups),
            level=LEVEL,
            protocols=installed(),
        )
        response = await self.directory.heartbeat(request)
        if response is not None and (response.incarnation > self.incarnation or response.ended):
            log.critical("this incarnation was given up", latest=response.incarnation)
            os._exit(EXIT_FENCED)
        return progress

    async def _what_is_open(self) -> tuple[int, list[str], list[GroupProgress]]:
        """The lowest gateway incarnation with something open here, the deleted groups we are clear of, and how far
        we are with changes.

        Machines answer when they have heard all that we have. What they say counts when it is on disk: after a
        crash they would say otherwise. While that cannot be had, everything counts as open.
        """
        try:
            async with asyncio.timeout(self.settings.heartbeat_s / 2):
                await self.host.caught_up()
                machines = [slot.machine for slot in self.host.slots.values()]
                keepers = [machine for machine in machines if isinstance(machine, KeepsIncarnations)]
                namers = [machine for machine in machines if isinstance(machine, NamesGroups)]
                oldest_open = min((machine.oldest_open() for machine in keepers), default=U64_MAX)
                deleting = self._deleting()
                clear_of = [group for group in deleting if not any(m.mentions(group) for m in namers)]
                progress = self._progress()
                await self.host.synced()
        except TimeoutError:
            return 0, [], []
        return oldest_open, clear_of, progress

    def _progress(self) -> list[GroupProgress]:
        """Started is who has in every role."""
        found: dict[str, GroupProgress] = {}
        for slot in self.host.slots.values():
            if not isinstance(slot.machine, ChangesConfigurations):
                continue
            for group, progress in slot.machine.progress().items():
                known = found.setdefault(
                    group, GroupProgress(group=group, configuration=progress.configuration, started=True)
                )
                known.started = known.started and progress.started
                known.caught_up = known.caught_up or progress.caught_up
                known.position = max(known.position, progress.position)
                known.head = max(known.head, progress.head)
                known.epoch = max(known.epoch, progress.epoch)
        return [found[group] for group in sorted(found)]

    def _deleting(self) -> list[str]:
        groups = self.directory.groups.values()
        return [group.id for group in groups if group.state == GROUP_STATE_DELETING]

    # ----------------------------------------------------------------------------------------- directory

    async def wait_for_change(self, timeout_s: float = 1.0) -> None:
        """Of the directory, or until the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()

    def _directory_changed(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        directory = self.directory
        peers = [node for node in directory.nodes.values() if self._speaks_with(node)]
        self.mesh.follow({node.name: node.peer_address for node in peers})
        ended = directory.ended()
        for peer, incarnation in self.mesh.connected():
            if incarnation <= ended.get(peer, 0):
                self.mesh.close(peer)  # Machines are told that nothing comes from it any more.
        for name in directory.domains:
            self._follow_domain(name)
        self.disbelief.forget_what_is_over(directory.groups)
        self._ended, self._retired = directory.ended(), directory.retired
        for service in self.services:
            service.changed()

    def _speaks_with(self, node: NodeRecord) -> bool:
        mine, theirs = self.settings.services, node.services
        return node.name != self.name and any(
            (a in mine and b in theirs) or (b in mine and a in theirs) for a, b in CONVERSATIONS
        )

    def _follow_domain(self, name: str) -> None:
        """Tell the machines of a domain what is new to them; start them if the domain is."""
        view = self.disbelief.overlay(self.directory.view(name), self.directory.groups, self.incarnation)
        known = self._views.get(name)
        clock = self.clock.read()
        news: list[Event] = []
        # Also of changes that views do not show: others name them, and what names them waits until we have heard.
        is_news = known is None or (known.changed, known.level) != (view.changed, view.level)
        if is_news or (known is not None and list(known.groups) != list(view.groups)):
            news.append(ViewChanged(*clock, view))
        for process, incarnation in sorted(self.directory.ended().items()):
            if incarnation and (known is None or self._ended.get(process) != incarnation):
                news.append(Ended(*clock, process, incarnation))
        if self.directory.retired and (known is None or self.directory.retired != self._retired):
            news.append(Retired(*clock, self.directory.retired))
        closed = tuple(group for group in self._deleting() if self.directory.groups[group].domain == name)
        if closed != self._closed.get(name, ()):
            news.append(GroupsClosed(*clock, closed))
        self._views[name] = view
        self._closed[name] = closed
        if known is None:
            self._open_domain(name, news)
            return
        for event in news:
            self.host.tell_domain(name, event)

    def _open_domain(self, name: str, news: list[Event]) -> None:
        domain = self.directory.domains[name]
        for service in self.services:
            for role, machine in service.machines(domain).items():
                self.host.add(name, role, machine)
        for peer, incarnation in self.mesh.connected():
            news.append(ChannelReset(*self.clock.read(), peer, incarnation))
        self.host.start(name, self.incarnation, news)
        # Those who knew the domain before us have to hear that what they sent is lost.
        for peer in self._missed:
            self.mesh.close(peer)
        self._missed.clear()

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

    def _opened(self, peer: str, incarnation: int) -> None:
        for name in self._views:
            self.host.tell_domain(name, ChannelReset(*self.clock.read(), peer, incarnation))

    def _received(self, peer: str, incarnation: int, frame: Frame) -> None:
        for section in frame.sections:
            if section.domain in self._views:
                self.host.receive(section.domain, peer, incarnation, section.packets)
            else:
                self._missed[peer] = None

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


def both(one: Callable[..., None], other: Callable[..., None]) -> Callable[..., None]:
    def tell(*arguments: Any) -> None:
        one(*arguments)
        other(*arguments)

    return tell


def _steps(progress: list[GroupProgress]) -> list[tuple[str, int, bool, bool]]:
    """What others wait for; not how far a copy is."""
    return [(one.group, one.configuration, one.started, one.caught_up) for one in progress]
