"""The sequencer service: the protocol's machines of each domain, and the logs that they write."""

import asyncio
from typing import ClassVar

import structlog

from ordercast.core.machine import Machine
from ordercast.runtime.node import Node
from ordercast.sequencer.protocols import ordering_machines
from ordercast.sequencer.repair import LogRepair
from ordercast.sequencer.retention import Retention
from ordercast.sequencer.server import SequencerServer
from ordercast.v1.membership_pb2 import Domain
from ordercast.v1.sequencer_pb2 import DESCRIPTOR
from ordercast.v1.sequencer_pb2_grpc import add_SequencerServiceServicer_to_server

log = structlog.get_logger("sequencer")


class Sequencer:
    name: ClassVar[str] = "sequencer"

    def __init__(self, node: Node) -> None:
        self.node = node
        self.retention = Retention(node)
        self.repair = LogRepair(node)
        node.logs.serves = self._serves
        node.logs.mend = self.repair.mend
        node.host.mend = lambda damaged: asyncio.ensure_future(self.repair.mend(damaged))

    def _serves(self, group: str) -> bool:
        found = self.node.directory.groups.get(group)
        return found is not None and self.node.name in found.replicas

    def machines(self, domain: Domain) -> dict[str, Machine]:
        observe = self.node.settings.stages
        return ordering_machines(domain.protocol, self.node.name, domain.settings, observe=observe)

    def changed(self) -> None:
        """Forget the logs of groups that are gone, and those who read them."""
        for group in self.node.storage.groups():
            if group not in self.node.directory.groups:
                log.info("group is gone", group=group)
                self.node.writer.drop_group(group)
                self.node.writer.kick()
        self.node.logs.let_go()

    async def start(self) -> None:
        servicer = SequencerServer(self.node)
        service = DESCRIPTOR.services_by_name["SequencerService"]
        self.node.peer_server.add(service, add_SequencerServiceServicer_to_server, servicer)
        self.node.spawn(self.retention.run())

    async def drain(self) -> None:
        pass

    async def stop(self) -> None:
        pass
