"""SCALATOM as everybody else sees it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ordercast.core.clock_codec import ClockCodec
from ordercast.core.ids import KEY_BYTES
from ordercast.core.protocol import Early, Genuine, Members, Orders, Protocol, Stage, Traits
from ordercast.protocols.group_records import GroupRecords
from ordercast.protocols.scalatom import records
from ordercast.protocols.scalatom.settings import documented, from_map
from ordercast.v1.sequencer_pb2 import PositionRecord

if TYPE_CHECKING:
    from ordercast.core.machine import Machine
    from ordercast.core.submission import MakeSubmission

NAME = "scalatom"


def replica(process: str, settings: Mapping[str, str], *, observe: bool) -> "dict[str, Machine]":
    # Here, for whoever asks for traits does not want to wait for machines.
    from ordercast.protocols.paxos.proposer import Proposer
    from ordercast.protocols.scalatom.machine import PROPOSER, Scalatom

    machine = Scalatom(process, from_map(settings), observe=observe)
    return {NAME: machine, PROPOSER: Proposer(process, NAME)}


def acceptor(process: str) -> "dict[str, Machine]":
    from ordercast.protocols.paxos.acceptor import Acceptor

    return {"acceptor": Acceptor(process)}


def submission(settings: Mapping[str, str]) -> "MakeSubmission":
    from ordercast.protocols.scalatom.submission import ScalatomSubmission

    return ScalatomSubmission


STAGES = {
    "timestamped": Stage("timestamp"),
    "decided": Stage("decide", ("timestamped",)),
    "predecessors": Stage("predecessors", ("decided",)),
    "delivered": Stage("deliver", ("decided", "predecessors")),
}

SCALATOM = Protocol(
    name=NAME,
    level=0,
    traits=Traits(
        orders=Orders.ACROSS,
        causal=False,
        early=Early.NONE,
        key_bytes=KEY_BYTES,
        merges=True,
        members=Members.CONFIGURATIONS,
        acceptors=True,
        genuine=Genuine.YES,
    ),
    settings=documented(),
    parse=from_map,
    replica=replica,
    submission=submission,
    acceptor=acceptor,
    seen=ClockCodec(KEY_BYTES),
    stages=STAGES,
    records=GroupRecords(
        records.OF_GROUPS,
        records.group_of,
        records.POSITION,
        lambda value: PositionRecord.FromString(value).position,
    ),
)
