"""ToTo as everybody else sees it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ordercast.core.clock_codec import ClockCodec
from ordercast.core.protocol import Genuine, Protocol, Stage, Traits
from ordercast.core.session_token import CLOCK_BYTES
from ordercast.protocols.celllog.numbered_records import NUMBERED_RECORDS
from ordercast.protocols.toto.settings import documented, from_map

if TYPE_CHECKING:
    from ordercast.core.machine import Machine
    from ordercast.core.submission import MakeSubmission

NAME = "toto"


def replica(process: str, settings: Mapping[str, str], *, observe: bool) -> "dict[str, Machine]":
    # Here, for whoever asks for traits does not want to wait for machines.
    from ordercast.protocols.toto.machine import Toto

    return {NAME: Toto(process, from_map(settings), observe=observe)}


def submission(settings: Mapping[str, str]) -> "MakeSubmission":
    from ordercast.protocols.toto.submission import TotoSubmission

    from_map(settings)
    return TotoSubmission


TOTO = Protocol(
    name=NAME,
    # Headers go to all processes of the domain, and they all vote.
    traits=Traits(key_bytes=CLOCK_BYTES, genuine=Genuine.NO),
    settings=documented(),
    parse=from_map,
    replica=replica,
    submission=submission,
    # What a client has seen is the highest index of a message that it knows of.
    seen=ClockCodec(),
    records=NUMBERED_RECORDS,
    stages={"cast": Stage("cast"), "delivered": Stage("deliver", ("cast",))},
)
