"""Which machines a replica's process runs, by the protocol of the domain."""

from collections.abc import Mapping

from ordercast.core.machine import Machine
from ordercast.protocols.isis import settings as isis
from ordercast.protocols.isis.machine import Isis
from ordercast.protocols.paxos.proposer import Proposer
from ordercast.protocols.scalatom import settings as scalatom
from ordercast.protocols.scalatom.machine import PROPOSER, Scalatom


def ordering_machines(
    protocol: str, process: str, settings: Mapping[str, str], *, observe: bool = False
) -> dict[str, Machine]:
    """By role; the protocol's own machine has the protocol's name."""
    match protocol:
        case "isis":
            return {protocol: Isis(process, isis.from_map(settings), observe=observe)}
        case "scalatom":
            return {
                protocol: Scalatom(process, scalatom.from_map(settings), observe=observe),
                PROPOSER: Proposer(process, protocol),
            }
    raise ValueError(f"no sequencer knows the protocol {protocol!r}")
