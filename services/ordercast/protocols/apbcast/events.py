"""What machines of this protocol are told, and tell, besides what every machine is."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ordercast.core.machine import Effect, Event
from ordercast.v1.apbcast_pb2 import AskHead, AskMissed, Numbered, Publication

#: The log of all messages of the domain, in which a position is a number.
LOG = "log"

ROOT, BROADCASTER, LEAF, REGISTRAR = "root", "broadcaster", "leaf", "registrar"


@dataclass(slots=True)
class Written(Event):
    """To a machine from itself: what it gave to the disk with this ticket is durable."""

    ticket: int = 0


@dataclass(slots=True)
class Publish(Event):
    """To a broadcaster: a producer's next message."""

    cast: Publication = field(default_factory=Publication)
    #: The lowest sequence of this producer that has no receipt.
    first_open: int = 0


@dataclass(slots=True)
class Quit(Event):
    """To a broadcaster: take nothing new, and end the stream when all that was taken has its receipt."""


@dataclass(slots=True)
class MoveHome(Event):
    """To a broadcaster: let this root group be its home."""

    home: str = ""


@dataclass(slots=True)
class Given(Event):
    """To the gossip of a process, from its root or broadcaster: these have their numbers."""

    items: Sequence[Numbered] = ()
    #: The next number, or 0.
    head: int = 0


@dataclass(slots=True)
class Asked(Event):
    """To the root of a process, from its gossip: it has not kept what somebody asks for."""

    source: str = ""
    question: AskMissed | AskHead = field(default_factory=AskMissed)


@dataclass(slots=True)
class PlaceRoots(Event):
    """To the registrar, from whoever administers: let these processes be a root group; nobody, to give it up."""

    group: str = ""
    members: tuple[str, ...] = ()


@dataclass(slots=True)
class Receipted(Effect):
    """A broadcaster tells a producer what became of its message."""

    cast: Publication
    duplicate: bool
    mseq: int
    places: tuple[tuple[str, int], ...]
    #: The root that said so, and the home group.
    source: str
    home: str


@dataclass(slots=True)
class NotTaken(Effect):
    """A broadcaster refuses a message, which has left no trace."""

    cast: Publication
    reason: str


@dataclass(slots=True)
class Handed(Effect):
    """A leaf hands messages to its program, in their order."""

    items: Sequence[Numbered]


@dataclass(slots=True)
class Skipped(Effect):
    """What a leaf lacks is not kept any more: its program has missed all before this place."""

    group: str
    place: int
