"""All telemetry of one process: what the runtime and the machines hand in, and when it leaves."""

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import structlog
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from ordercast.core import packets
from ordercast.core.ids import group_name
from ordercast.core.machine import Deliver, Observe
from ordercast.core.tracing import span_id, trace_id
from ordercast.runtime.process.health import Health
from ordercast.runtime.telemetry import otlp
from ordercast.runtime.telemetry.deliveries import Deliveries, messages_of
from ordercast.runtime.telemetry.exporter import LOGS, METRICS, TRACES, Exporter
from ordercast.runtime.telemetry.gauges import MALFORMED, UNEXPECTED, WRONG, Gauges
from ordercast.runtime.telemetry.meters import Exemplar
from ordercast.runtime.telemetry.ring import DeliveredHere
from ordercast.runtime.telemetry.tracing import SpanRecord, Tracing, Value
from ordercast.runtime.telemetry.web import Server
from ordercast.telemetry.schema import names
from ordercast.v1.telemetry_pb2 import KeepTraces
from ordercast.version import installed

if TYPE_CHECKING:
    from ordercast.runtime.process.node import Node

log = structlog.get_logger("telemetry")

SECOND_S = 1.0
#: What is left when a process stops has so long.
LAST_S_MAX = 1.0


class Telemetry:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self.settings = node.settings.telemetry
        self.meters = node.meters
        self.deliveries = Deliveries()
        self.tracing = Tracing(
            node.name,
            self.meters,
            tell=self._span,
            spread=self._spread,
            protocol_of=self._protocol_of,
            wall=node.clock.wall,
        )
        self.gauges = Gauges(node, self.meters)
        self.exporter: Exporter | None = None
        self._deltas = otlp.Deltas(self._wall_ns())
        self._server: Server | None = None
        self._lag = self.meters.histogram(names.METRIC_DELIVERY_LAG)
        self._messages = self.meters.counter(names.METRIC_DELIVERY_MESSAGES)
        self._frames = self.meters.histogram(names.METRIC_FRAME_SIZE)
        self._commits = self.meters.histogram(names.METRIC_STORAGE_COMMIT_DURATION)
        self._decisions = self.meters.counter(names.METRIC_CONSENSUS_DECISIONS)
        self._rounds = self.meters.counter(names.METRIC_CONSENSUS_ROUNDS)
        #: By group: the view that is being begun, and since when.
        self._flushes: dict[str, tuple[str, float]] = {}
        self._begin_with_zeros()
        self._connect()

    def _begin_with_zeros(self) -> None:
        """A counter that appears with its first count has no rate until its second."""
        for signal in (TRACES, METRICS, LOGS):
            self.meters.counter(names.METRIC_TELEMETRY_SENT).add(0, signal)
            self.meters.counter(names.METRIC_TELEMETRY_DROPPED).add(0, signal)
        for reason in (MALFORMED, UNEXPECTED, WRONG):
            self.meters.counter(names.METRIC_INPUTS_REFUSED).add(0, reason)
        self.meters.counter(names.METRIC_PEER_RESETS).add(0)

    def _connect(self) -> None:
        node = self.node
        node.host.on_observe = self.observe
        node.host.on_delivered = self.delivered
        node.host.on_reset = self.reset
        node.host.on_message[KeepTraces] = self._keep
        node.writer.on_committed = self._commits.observe
        node.mesh.on_frame = self._frame

    def _protocol_of(self, domain: str) -> str:
        found = self.node.directory.domains.get(domain)
        return found.protocol if found is not None else ""

    def _wall_ns(self) -> int:
        return int(self.node.clock.wall() * 1e9)

    # ------------------------------------------------------------------------------------------------- a life

    async def start(self) -> None:
        """Before the process is known to anybody: a port that is not to be had ends the start."""
        settings = self.settings
        if settings.metrics_listen:
            health = Health(lambda: self.node.peer_server.phase)
            self._server = Server(self.meters, health, settings.metrics_listen)
            log.info("serving metrics and health", port=self._server.port)
        if settings.endpoint:
            # A service, which has no name of a process.
            channel = self.node.credentials.dial_at(settings.endpoint, settings.service_name)
            self.exporter = Exporter(channel, self.meters, settings.queue_records_max)
        self.node.spawn(self._run())

    def ready(self) -> None:
        self.tracing.cluster = self.node.directory.cluster_id
        self.event(names.EVENT_STARTED, {})

    async def stop(self) -> None:
        """What is left leaves, if it can."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_S_MAX):
                await self._flush()
        if self.exporter is not None:
            await self.exporter.stop()
        if self._server is not None:
            await asyncio.to_thread(self._server.stop)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(SECOND_S)
            self.tracing.second()
            self.gauges.look()
            await self._flush()

    # ------------------------------------------------------------------------------------ from the machines

    def observe(self, domain: str, effect: Observe) -> None:
        now = self.node.clock.now()
        if effect.id:
            self.tracing.observe(domain, effect, now)
            self._count(domain, effect)
        elif effect.stage == "sealed":
            group, _, view = effect.detail.rpartition(" ")
            self._flushes[group] = (view, now)
        elif effect.stage == "installed":
            self._installed(domain, effect, now)

    def _count(self, domain: str, effect: Observe) -> None:
        if effect.stage == "decided" and effect.blocked_on:
            # Its coordinator says so.
            way = self.tracing.ring.of((domain, effect.id))
            voted = any(mark.stage == "proposed" for mark in way.marks)
            self._decisions.add(1, domain, "voted" if voted else "implied")
        elif effect.stage == "proposed":
            self._rounds.add(1, domain)

    def _installed(self, domain: str, effect: Observe, now: float) -> None:
        group, _, view = effect.detail.rpartition(" ")
        defined, since = self._flushes.pop(group, (view, now))
        found = self.node.directory.cells.get(group)
        attributes: dict[str, Value] = {
            names.ATTRIBUTE_DOMAIN: domain,
            names.ATTRIBUTE_PROTOCOL: self._protocol_of(domain),
            names.ATTRIBUTE_GROUP: group_name(group),
            names.ATTRIBUTE_VIEW_NUMBER: int(view),
            names.ATTRIBUTE_VIEW_MEMBERS: ",".join(found.replicas) if found is not None else "",
        }
        trace = trace_id(self.tracing.cluster, domain, f"{group} {view}".encode())
        own = span_id(trace, self.node.name, names.SPAN_FLUSH)
        begun = since if defined == view else now
        self._span(SpanRecord(trace, own, b"", names.SPAN_FLUSH, begun, now, attributes))

    def delivered(self, domain: str, effect: Deliver) -> None:
        """Into the log of a replica here."""
        entry, group = effect.entry, effect.group
        header = entry.envelope.header
        messages = messages_of(entry)
        wall_ns = self._wall_ns()
        name = group_name(group)
        if header.accepted_ns:
            lag_s = max(wall_ns - header.accepted_ns, 0) / 1e9
            self._lag.observe(lag_s, domain, name)
            if header.trace:
                trace = trace_id(self.tracing.cluster, domain, header.id)
                self._lag.note(Exemplar(trace, lag_s, wall_ns / 1e9), domain, name)
        self._messages.add(messages, domain, name)
        found = DeliveredHere(effect.position, entry.first_offset, messages, header.accepted_ns)
        self.tracing.delivered(domain, group, header.id, header.trace, found)
        if self.exporter is not None:
            self.deliveries.take((domain, group), effect.position, entry, messages, wall_ns)

    def reset(self, domain: str, group: str) -> None:
        self.deliveries.reset((domain, group))

    def _frame(self, direction: str, size: int) -> None:
        self._frames.observe(size, direction)

    # --------------------------------------------------------------------------------------- late decisions

    def _spread(self, domain: str, id_: bytes, groups: str) -> None:
        """To the replicas of an envelope's groups: it is worth keeping."""
        directory = self.node.directory
        found = [directory.cells[group] for group in groups.split(",") if group in directory.cells]
        processes = dict.fromkeys(name for group in found for name in group.replicas)
        packet = packets.encode(KeepTraces(envelope_ids=[id_]))
        for name in processes:
            if name != self.node.name:
                self.node.mesh.send(name, domain, packet, urgent=False)

    def _keep(self, domain: str, message: Any) -> None:
        for id_ in message.envelope_ids:
            self.tracing.keep(domain, id_)

    # --------------------------------------------------------------------------------------------- leaving

    def _span(self, record: SpanRecord) -> None:
        if self.exporter is not None:
            self.exporter.spans.add(record)

    def event(self, name: str, attributes: dict[str, Value], body: bytes = b"", count: int = 1) -> None:
        if self.exporter is not None:
            self.exporter.events.add(otlp.event(name, self._wall_ns(), attributes, body), count)

    def _resource(self) -> Resource:
        """Describe this process, which is the source of all that is exported."""
        node = self.node
        return Resource(
            attributes=otlp.attributes_of(
                {
                    names.ATTRIBUTE_SERVICE_NAME: "ordercast",
                    names.ATTRIBUTE_SERVICE_INSTANCE_ID: node.name,
                    names.ATTRIBUTE_SERVICE_VERSION: installed(),
                    names.ATTRIBUTE_INCARNATION: node.incarnation,
                    names.ATTRIBUTE_SCHEMA: names.VERSION,
                    names.ATTRIBUTE_CLUSTER: node.directory.cluster_id.hex(),
                    names.ATTRIBUTE_ZONE: node.settings.zone,
                }
            )
        )

    async def _flush(self) -> None:
        exporter = self.exporter
        if exporter is None:
            return
        for (domain, group), batch in self.deliveries.drain():
            attributes: dict[str, Value] = {
                names.ATTRIBUTE_DOMAIN: domain,
                names.ATTRIBUTE_PROTOCOL: self._protocol_of(domain),
                names.ATTRIBUTE_GROUP: group_name(group),
                names.ATTRIBUTE_GROUP_ID: group,
            }
            body = batch.SerializeToString()
            self.event(names.EVENT_DELIVERIES, attributes, body, len(batch.deliveries))
        if not self.node.incarnation:
            return  # Nobody yet: what is here leaves under our name later.
        resource = self._resource()
        epoch_s = self.node.clock.wall() - self.node.clock.now()
        await exporter.flush(exporter.events, lambda records: otlp.logs(resource, records))
        await exporter.flush(exporter.spans, lambda records: otlp.traces(resource, records, epoch_s))
        if not exporter.is_pausing() and self._is_time_for_metrics():
            request = self._deltas.request(resource, self.meters.by_name, self._wall_ns())
            count = len(request.resource_metrics[0].scope_metrics[0].metrics)
            await exporter.send(METRICS, request, count)

    def _is_time_for_metrics(self) -> bool:
        now = self.node.clock.now()
        if now < self._metrics_due:
            return False
        self._metrics_due = now + self.settings.metrics_s
        return True

    _metrics_due = 0.0
