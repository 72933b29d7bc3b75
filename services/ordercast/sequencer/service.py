"""The sequencer service: the protocol's machines of each domain, and the logs that they write."""

import asyncio
from collections.abc import Sequence
from typing import ClassVar

import structlog

from ordercast.core.cells import cell_of
from ordercast.core.ids import CLOCK_MAX, unpack_u64
from ordercast.core.machine import Advance, HoldsUp, Machine, TellsReaders
from ordercast.core.members import holders_of
from ordercast.protocols.catalogue import named
from ordercast.runtime.process.node import Node
from ordercast.runtime.telemetry.meters import Labels, Meters
from ordercast.sequencer.cursor_lags import CursorLags
from ordercast.sequencer.repair import LogRepair
from ordercast.sequencer.retention import Retention
from ordercast.sequencer.server import SequencerServer
from ordercast.telemetry.schema import names
from ordercast.v1.membership_pb2 import Domain
from ordercast.v1.sequencer_pb2 import DESCRIPTOR, DescribeReplicaResponse
from ordercast.v1.sequencer_pb2_grpc import add_SequencerServiceServicer_to_server

log = structlog.get_logger("sequencer")


class Sequencer:
    name: ClassVar[str] = "sequencer"

    def __init__(self, node: Node) -> None:
        self.node = node
        self.retention = Retention(node)
        self.repair = LogRepair(node)
        self.cursor_lags = CursorLags(node)
        node.logs.serves = self._serves
        node.logs.holds = self._holds
        node.logs.describe_view = self._describe_view
        node.logs.read_besides = self._read_besides
        node.logs.end_of = self._end_of
        self._changed = asyncio.Event()
        node.logs.advance = self._advance
        node.logs.mend = self.repair.mend
        node.host.mend = lambda damaged: asyncio.ensure_future(self.repair.mend(damaged))

    def _serves(self, group: str) -> bool:
        found = self.node.directory.cells.get(group)
        return found is not None and self.node.name in found.replicas and self.node.name not in found.lost

    def _holds(self, group: str) -> bool:
        found = self.node.directory.cells.get(group)
        return found is not None and self.node.name in holders_of(found)

    def _describe_view(self, group: str, found: DescribeReplicaResponse) -> None:
        machine = self._telling_machine(group)
        if machine is not None:
            machine.describe(group, found)

    def _read_besides(self, group: str) -> bytes:
        machine = self._telling_machine(group)
        return machine.read_besides(group) if machine is not None else b""

    def _end_of(self, address: str) -> int:
        """Of a group that shares its cell, as the machine has it on disk."""
        cell = self.node.directory.cells.get(cell_of(address))
        domain = self.node.directory.domains.get(cell.domain) if cell is not None else None
        if domain is None:
            return 0
        key = named(domain.protocol).records.end_of(address)
        value = self.node.storage.record(domain.name, domain.protocol, key)
        return unpack_u64(value) if value is not None else 0

    def _telling_machine(self, group: str) -> TellsReaders | None:
        """The machine of the group's domain, if it has something to tell of its logs beside their entries."""
        known = self.node.directory.cells.get(group)
        domain = self.node.directory.domains.get(known.domain) if known is not None else None
        slot = self.node.host.slots.get((domain.name, domain.protocol)) if domain is not None else None
        return slot.machine if slot is not None and isinstance(slot.machine, TellsReaders) else None

    def _advance(self, cells: Sequence[str], order_key: bytes) -> None:
        """Of cells that are not here, or whose logs cannot be merged, nobody here can say anything."""
        clock = self.node.clock.read()
        for name in cells:
            cell = self.node.directory.cells.get(name)
            domain = self.node.directory.domains.get(cell.domain) if cell is not None else None
            if domain is None or not self._serves(name) or not is_key_of(domain, order_key):
                continue
            self.node.host.tell(domain.name, domain.protocol, Advance(*clock, name, order_key))

    def machines(self, domain: Domain) -> dict[str, Machine]:
        observe = self.node.observe
        return named(domain.protocol).replica(self.node.name, domain.settings, observe=observe)

    def changed(self) -> None:
        """Forget those who read logs that are not served here any more, and soon the logs."""
        self._changed.set()
        self.node.logs.let_go()

    async def _drop_logs(self) -> None:
        """Of groups that are gone, or elsewhere; once the machines know, and write nothing more."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self.node.host.caught_up()
            for group in self.node.storage.groups():
                if not self._holds(group):
                    log.info("no replica here any more", group=group)
                    self.node.writer.drop_group(group)
                    self.node.writer.kick()

    async def start(self) -> None:
        servicer = SequencerServer(self.node)
        service = DESCRIPTOR.services_by_name["SequencerService"]
        self.node.peer_server.add(service, add_SequencerServiceServicer_to_server, servicer)
        self.node.spawn(self.retention.run())
        self.node.spawn(self.retention.sweep())
        self.node.spawn(self._drop_logs())
        if self.node.telemetry is not None:
            self.node.spawn(self.cursor_lags.run())

    async def drain(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    def measure(self, meters: Meters) -> None:
        waiting: dict[Labels, float] = {}
        ages: dict[Labels, float] = {}
        for domain in self.node.directory.domains.values():
            slot = self.node.host.slots.get((domain.name, domain.protocol))
            if slot is not None and isinstance(slot.machine, HoldsUp):
                count, since = slot.machine.undelivered()
                waiting[(domain.name,)] = count
                ages[(domain.name,)] = self.node.clock.now() - since if count else 0.0
        meters.gauge(names.METRIC_ORDER_WAITING).replace(waiting)
        meters.gauge(names.METRIC_ORDER_WAITING_AGE).replace(ages)
        positions: dict[Labels, float] = {}
        for id_ in self.node.storage.groups():
            group = self.node.directory.cells.get(id_)
            if group is not None and self._serves(id_):
                positions[(group.domain, group.name)] = self.node.writer.own_bounds(id_).ends
        meters.gauge(names.METRIC_DELIVERY_POSITION).replace(positions)
        self.cursor_lags.measure(meters)


def is_key_of(domain: Domain, order_key: bytes) -> bool:
    """Whether it may be an order key of the domain, whose logs are merged. Its first 8 bytes are a number then."""
    traits = named(domain.protocol).traits
    return traits.merges and len(order_key) == traits.key_bytes and unpack_u64(order_key[:8]) <= CLOCK_MAX
