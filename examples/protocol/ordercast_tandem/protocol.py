"""What Ordercast has to know about the protocol: one value, which the package's entry point names."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ordercast.core.clock_codec import ClockCodec
from ordercast.core.protocol import Genuine, Protocol, Setting, Stage, Traits
from ordercast.core.session_token import CLOCK_BYTES
from ordercast.core.view import View
from ordercast.protocols.celllog.numbered_records import NUMBERED_RECORDS
from ordercast.protocols.celllog.setting_texts import InvalidSettings, refuse_unknown
from ordercast.protocols.celllog.settings import LogSettings

if TYPE_CHECKING:
    from ordercast.core.machine import Machine
    from ordercast.core.submission import MakeSubmission

NAME = "tandem"


@dataclass(frozen=True, slots=True)
class Settings(LogSettings):
    """Two nodes. The defaults are the names that `ordercast up` gives to its first two."""

    sequencer: str = "node-1"
    standby: str = "node-2"

    def chain(self, view: View) -> tuple[str, str]:
        """Sequencer and stand-by: the two nodes, without those that lost their disks. Who is missing is empty."""
        lost = {process for group in view.groups.values() for process in group.lost}
        left = [process for process in (self.sequencer, self.standby) if process not in lost]
        sequencer, standby, *_ = *left, "", ""
        return sequencer, standby


def parse(settings: Mapping[str, str], level: int = 0) -> Settings:
    refuse_unknown(settings, ["sequencer", "standby"])
    found = Settings(**settings)  # type: ignore[arg-type]  # the two that are strings
    if not found.sequencer or not found.standby or found.sequencer == found.standby:
        raise InvalidSettings("sequencer and standby have to be two nodes")
    return found


# Whoever asks for traits does not want to wait for machines, so these import what they need.


def replica(process: str, settings: Mapping[str, str], *, observe: bool) -> "dict[str, Machine]":
    from ordercast_tandem.machine import Tandem

    return {NAME: Tandem(process, parse(settings), observe=observe)}


def submission(settings: Mapping[str, str]) -> "MakeSubmission":
    """Gateways send everything to the sequencer, until all groups have said that they delivered it."""
    from ordercast.core.one_receiver import OneReceiver
    from ordercast_tandem.tandem_pb2 import Unfinished

    found = parse(settings)
    return partial(OneReceiver, receiver=lambda view: found.chain(view)[0], unfinished=Unfinished)


TANDEM = Protocol(
    name=NAME,
    # It is not genuine: the sequencer works for every message of the domain.
    traits=Traits(key_bytes=CLOCK_BYTES, genuine=Genuine.NO),
    settings=(
        Setting("sequencer", "the name of a node", Settings().sequencer),
        Setting("standby", "the name of another node", Settings().standby),
    ),
    parse=parse,
    replica=replica,
    submission=submission,
    # What a client has seen is the highest number of a message that it knows of.
    seen=ClockCodec(),
    records=NUMBERED_RECORDS,
    stages={"numbered": Stage("number"), "delivered": Stage("deliver", ("numbered",))},
)
