"""What Ordercast has to know about the protocol: one value, which the package's entry point names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import unpack_u64
from ordercast.core.protocol import Early, Genuine, Members, Orders, Protocol, Setting, Stage, Traits
from ordercast.core.session_token import CLOCK_BYTES
from ordercast.core.view import View
from ordercast.protocols.group_records import GroupRecords
from ordercast.v1.sequencer_pb2 import LogEntry

if TYPE_CHECKING:
    from ordercast.core.machine import Machine
    from ordercast.core.submission import MakeSubmission

NAME = "tandem"


@dataclass(frozen=True, slots=True)
class Settings:
    """Two nodes. The defaults are the names that `ordercast up` gives to its first two."""

    sequencer: str = "node-1"
    standby: str = "node-2"
    spans_groups: bool = True
    untold_past: str = ""

    def chain(self, view: View) -> tuple[str, ...]:
        """The sequencer, and its stand-by if there is one: the two nodes, without those that lost their disks."""
        lost = {process for group in view.groups.values() for process in group.lost}
        return tuple(process for process in (self.sequencer, self.standby) if process not in lost)


def parse(settings: Mapping[str, str], level: int = 0) -> Settings:
    if unknown := sorted(set(settings) - {"sequencer", "standby"}):
        raise ValueError(f"no such setting: {unknown[0][:64]!r}; there are sequencer, standby")
    found = Settings(**settings)  # type: ignore[arg-type]  # the two that are strings
    if not found.sequencer or not found.standby or found.sequencer == found.standby:
        raise ValueError("sequencer and standby have to be two nodes")
    return found


class NumberCodec:
    """What a client has seen is the highest number of a message that it knows of: a clock."""

    mark = b""

    def of_entries(self, group: str, entries: Sequence[bytes], besides: Any) -> bytes:
        key: bytes = LogEntry.FromString(entries[-1]).order_key
        return key

    def merged(self, seen: Sequence[bytes]) -> bytes:
        return max(seen)

    def covers(self, one: bytes, other: bytes) -> bool:
        return one >= other

    def check(self, seen: bytes) -> None:
        if len(seen) != CLOCK_BYTES:
            raise RemoteProtocolError("not a number")


# Whoever asks for traits does not want to wait for machines, so these import what they need.


def replica(process: str, settings: Mapping[str, str], *, observe: bool) -> "dict[str, Machine]":
    from ordercast_tandem.machine import Tandem

    return {NAME: Tandem(process, parse(settings), observe=observe)}


def submission(settings: Mapping[str, str]) -> "MakeSubmission":
    from ordercast_tandem.submission import TandemSubmission

    return partial(TandemSubmission, settings=parse(settings))


def group_in(key: bytes) -> str:
    """The group in the key of a record that is one group's."""
    return key[1:].partition(b"\0")[0].decode()


TANDEM = Protocol(
    name=NAME,
    level=0,
    traits=Traits(
        orders=Orders.ACROSS,
        causal=False,
        early=Early.NONE,
        key_bytes=CLOCK_BYTES,
        merges=False,
        members=Members.CONFIGURATIONS,
        acceptors=False,
        genuine=Genuine.NO,
    ),
    settings=(
        Setting("sequencer", "the name of a node", Settings().sequencer),
        Setting("standby", "the name of another node", Settings().standby),
    ),
    parse=parse,
    replica=replica,
    submission=submission,
    seen=NumberCodec(),
    # p<group>: how far the log is delivered; s, w: the group's producers (protocols.celllog.idempotence).
    records=GroupRecords((b"p", b"s", b"w"), group_in, b"p", lambda value: unpack_u64(value[:8])),
    stages={"numbered": Stage("number"), "delivered": Stage("deliver", ("numbered",))},
)
