"""The consensus service: an acceptor for each domain whose protocol has them, durable, behind the peers' streams.

Sequencers propose over those streams; the acceptor answers there. There is nothing else to serve.
"""

from typing import ClassVar

from ordercast.core.machine import Machine
from ordercast.protocols.catalogue import named
from ordercast.runtime.process.node import Node
from ordercast.runtime.telemetry.meters import Meters
from ordercast.v1.membership_pb2 import Domain


class Consensus:
    name: ClassVar[str] = "consensus"

    def __init__(self, node: Node) -> None:
        self.node = node

    def machines(self, domain: Domain) -> dict[str, Machine]:
        acceptor = named(domain.protocol).acceptor
        return acceptor(self.node.name) if acceptor is not None else {}

    def changed(self) -> None:
        pass

    async def start(self) -> None:
        pass

    async def drain(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    def measure(self, meters: Meters) -> None:
        pass
