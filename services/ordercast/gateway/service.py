"""The gateway service: a machine for each domain, and the clients' side of it."""

import asyncio
from dataclasses import replace
from typing import ClassVar

from ordercast.core.machine import Event, Machine, NodesJudged, Stopping
from ordercast.core.protocol import Orders
from ordercast.gateway.administration import Administration
from ordercast.gateway.budgets import Budgets
from ordercast.gateway.clients import Clients
from ordercast.gateway.cursors import Cursors
from ordercast.gateway.freshness import Freshness
from ordercast.gateway.machine import ROLE, Gateway
from ordercast.gateway.merging import Merging
from ordercast.gateway.publishing import Publishing
from ordercast.gateway.reading import Reading
from ordercast.gateway.reassignment import Planner
from ordercast.gateway.server import GatewayServer
from ordercast.gateway.settings import GatewaySettings
from ordercast.gateway.subscribing import Subscribing
from ordercast.gateway.translation import Translation
from ordercast.protocols.catalogue import named, protocols
from ordercast.runtime.process.node import Node
from ordercast.runtime.telemetry.meters import Labels, Meters
from ordercast.telemetry.schema import names
from ordercast.v1.gateway_pb2 import DESCRIPTOR
from ordercast.v1.gateway_pb2_grpc import add_GatewayServiceServicer_to_server
from ordercast.v1.membership_pb2 import Domain

LOOK_S = 0.02


class GatewayProcess:
    name: ClassVar[str] = "gateway"

    def __init__(self, node: Node) -> None:
        self.node = node
        self.translation = Translation(node)
        self.reading = Reading(node)
        cursors = Cursors(node)
        self.budgets = Budgets()
        freshness = Freshness(node)
        self.subscribing = Subscribing(node, self.translation, self.reading, cursors, freshness, self.budgets)
        self.merging = self.subscribing.merged = Merging(self.subscribing)
        self.publishing = Publishing(node, self.translation, freshness, Clients(), self.budgets)
        self.admin = Administration(node, self.reading, cursors, self.subscribing, self.planner())
        self.is_draining = False
        #: By domain: who is up and whose disks are full, as its machine was told last.
        self._judged: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        limits = node.settings.limits
        self.settings = GatewaySettings(
            producer_messages_max=limits.producer_messages_max,
            envelopes_open_max=limits.envelopes_open_max,
            envelope_messages_max=limits.envelope_messages_max,
            envelope_bytes_max=limits.envelope_bytes_max,
            payload_bytes_max=limits.payload_bytes_max,
            waiting_bytes_max=limits.waiting_bytes_max,
            backlog_s_max=limits.backlog_s_max,
            groups_max=limits.groups_max,
            protocols_across=tuple(
                name for name, protocol in protocols().items() if protocol.traits.orders == Orders.ACROSS
            ),
            tells_time=node.settings.telemetry.is_on,
        )

    def planner(self) -> Planner | None:
        """By itself a gateway does not know how to even out a cluster."""
        return None

    def machines(self, domain: Domain) -> dict[str, Machine]:
        observe = self.node.observe
        settings = replace(self.settings, sampling=self.node.settings.telemetry.share_of(domain.name))
        machine = Gateway(
            self.node.name, named(domain.protocol).submission(domain.settings), settings, observe=observe
        )
        self.translation.machines[domain.name] = machine
        return {ROLE: machine}

    def changed(self) -> None:
        """Machines hear who is up and has room, as membership sees it, when that is new to them."""
        nodes = self.node.directory.nodes.values()
        up = frozenset(node.name for node in nodes if not node.suspected)
        full = frozenset(node.name for node in nodes if node.read_only)
        for domain in self.translation.machines:
            if self._judged.get(domain) != (up, full):
                self._judged[domain] = (up, full)
                self._tell(domain, NodesJudged(*self.node.clock.read(), up, full))
                if self.is_draining:
                    self._tell(domain, Stopping(*self.node.clock.read()))

    def _tell(self, domain: str, event: Event) -> None:
        self.node.host.tell(domain, ROLE, event)

    async def start(self) -> None:
        servicer = GatewayServer(self.publishing, self.subscribing, self.merging, self.admin, self.budgets)
        service = DESCRIPTOR.services_by_name["GatewayService"]
        self.node.client_server.add(service, add_GatewayServiceServicer_to_server, servicer)

    def measure(self, meters: Meters) -> None:
        counts = self.translation.counts
        waiting: dict[Labels, float] = {}
        opened: dict[Labels, float] = {}
        for domain, machine in self.translation.machines.items():
            buffers = machine.buffers()
            waiting[(domain,)], opened[(domain,)] = buffers["waiting"], buffers["unanswered"]
        meters.gauge(names.METRIC_PUBLISH_WAITING).replace(waiting)
        meters.gauge(names.METRIC_PUBLISH_OPEN).replace(opened)
        meters.gauge(names.METRIC_PUBLISH_CREDITS).set(self.translation.credits())
        meters.gauge(names.METRIC_CLIENTS).set(self.publishing.clients)
        meters.gauge(names.METRIC_SUBSCRIPTIONS).set(self.subscribing.streams)
        meters.counter(names.METRIC_SUBSCRIBE_MESSAGES).rise_to(counts.delivered)
        for domain, messages in counts.published.items():
            meters.counter(names.METRIC_PUBLISH_MESSAGES).rise_to(messages, domain)
        for (domain, reason), requests in counts.refused.items():
            meters.counter(names.METRIC_PUBLISH_REFUSED).rise_to(requests, domain, reason)
        self._tell_refusals(counts.take_recent())

    def _tell_refusals(self, recent: dict[tuple[str, str, str], int]) -> None:
        telemetry = self.node.telemetry
        for (domain, group, reason), count in recent.items():
            if telemetry is not None:
                telemetry.event(
                    names.EVENT_REFUSED,
                    {
                        names.ATTRIBUTE_DOMAIN: domain,
                        names.ATTRIBUTE_GROUP: group,
                        names.ATTRIBUTE_REASON: reason,
                        names.ATTRIBUTE_COUNT: count,
                    },
                )

    async def drain(self) -> None:
        """Clients are sent elsewhere, and what they gave us is answered."""
        self.is_draining = True
        for domain in self.translation.machines:
            self._tell(domain, Stopping(*self.node.clock.read()))
        machines = self.translation.machines
        while any(size["waiting"] or size["unanswered"] for size in (m.buffers() for m in machines.values())):
            await asyncio.sleep(LOOK_S)

    async def stop(self) -> None:
        await self.reading.stop()
