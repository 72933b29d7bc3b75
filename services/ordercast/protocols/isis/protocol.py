"""ISIS as everybody else sees it."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from ordercast.core.protocol import Early, Genuine, Members, Orders, Protocol, Stage, Traits
from ordercast.protocols.group_records import GroupRecords
from ordercast.protocols.isis import records
from ordercast.protocols.isis.seen import VectorCodec
from ordercast.protocols.isis.settings import check_group, documented, from_map
from ordercast.protocols.isis.stamps import StampCodec
from ordercast.v1.isis_pb2 import IsisRecord

if TYPE_CHECKING:
    from ordercast.core.machine import Machine
    from ordercast.core.submission import MakeSubmission

NAME = "isis"
#: An order key is a position in the group's log.
KEY_BYTES = 8


def replica(process: str, settings: Mapping[str, str], *, observe: bool) -> "dict[str, Machine]":
    # Here, for whoever asks for traits does not want to wait for machines.
    from ordercast.protocols.isis.machine import Isis

    return {NAME: Isis(process, from_map(settings), observe=observe)}


def submission(settings: Mapping[str, str]) -> "MakeSubmission":
    from ordercast.protocols.isis.submission import IsisSubmission

    return partial(IsisSubmission, settings=from_map(settings))


#: A member has the cast: another one's was received, its own was cast, or a part of a message to several groups.
HAS_CAST = ("received", "cast", "part cast")
STAGES = {
    "cast": Stage("cast", ("submitted",)),
    "causal": Stage("causal", HAS_CAST),
    "ordered": Stage("order", (*HAS_CAST, "causal")),
    "delivered": Stage("deliver", (*HAS_CAST, "causal", "ordered")),
    "stable": Stage("stable", ("delivered",)),
}

ISIS = Protocol(
    name=NAME,
    level=2,
    traits=Traits(
        orders=Orders.WITHIN,
        causal=True,
        early=Early.LIVE,
        key_bytes=KEY_BYTES,
        merges=False,
        members=Members.VIEWS,
        acceptors=False,
        genuine=Genuine.YES,
    ),
    settings=documented(),
    parse=from_map,
    check_group=check_group,
    replica=replica,
    submission=submission,
    seen=VectorCodec(),
    causal=StampCodec(),
    stages=STAGES,
    records=GroupRecords(
        records.OF_GROUPS,
        records.group_of,
        records.POSITION,
        lambda value: IsisRecord.FromString(value).position,
    ),
)
