"""The consensus service: an acceptor for each domain, durable, behind the peers' streams.

Sequencers propose over those streams; the acceptor answers there. There is nothing else to serve.
"""

from typing import ClassVar

from ordercast.core.machine import Machine
from ordercast.protocols.paxos.acceptor import Acceptor
from ordercast.runtime.node import Node
from ordercast.runtime.telemetry.meters import Meters
from ordercast.v1.membership_pb2 import Domain


class Consensus:
    name: ClassVar[str] = "consensus"

    def __init__(self, node: Node) -> None:
        self.node = node

    def machines(self, domain: Domain) -> dict[str, Machine]:
        return {"acceptor": Acceptor(self.node.name)}

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
