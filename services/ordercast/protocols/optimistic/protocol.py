"""What everybody else may know of the protocol: one value."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from ordercast.core.clock_codec import ClockCodec
from ordercast.core.protocol import Early, Genuine, Protocol, Stage, Traits
from ordercast.protocols.optimistic.keys import KEY_BYTES
from ordercast.protocols.optimistic.records import OPTIMISTIC_RECORDS
from ordercast.protocols.optimistic.settings import SETTINGS, parse

if TYPE_CHECKING:
    from ordercast.core.machine import Machine
    from ordercast.core.submission import MakeSubmission

NAME = "optimistic"


# Whoever asks for traits does not want to wait for machines, so these import what they need.


def replica(process: str, settings: Mapping[str, str], *, observe: bool) -> "dict[str, Machine]":
    from ordercast.protocols.optimistic.machine import Optimistic

    return {NAME: Optimistic(process, parse(settings), observe=observe)}


def submission(settings: Mapping[str, str]) -> "MakeSubmission":
    from ordercast.protocols.optimistic.submission import OptimisticSubmission

    return partial(OptimisticSubmission, settings=parse(settings))


OPTIMISTIC = Protocol(
    name=NAME,
    traits=Traits(early=Early.OPTIMISTIC, key_bytes=KEY_BYTES, merges=True, genuine=Genuine.QUASI),
    settings=SETTINGS,
    parse=parse,
    replica=replica,
    submission=submission,
    # What a client has seen is the highest timestamp of a message that it knows of.
    seen=ClockCodec(KEY_BYTES),
    records=OPTIMISTIC_RECORDS,
    stages={"delivered": Stage("deliver")},
)
