"""What a gateway does in its protocol's own way.

A gateway takes requests (gateway/intake.py), puts what waits for the same groups into envelopes
(gateway/batching.py), and gives the receipts. How an envelope gets to its groups, what may follow it, when it is
finished and what is repeated until then is different in each protocol: that is the protocol's Submission.

There is one submission for each gateway machine. It is as pure as the machine: it sends through the `Sender` that
it is given, and knows the time from there. It keeps nothing on disk. If the gateway dies, clients repeat
elsewhere, and the groups tell what is a duplicate.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import Receive
from ordercast.core.view import View
from ordercast.v1.common_pb2 import Envelope, Incarnation
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered

#: The groups of an envelope or a request, sorted.
Groups = tuple[str, ...]


@dataclass(slots=True)
class Submitted:
    """An envelope that left a gateway and is not finished. What is in it never changes."""

    envelope: Envelope
    groups: Groups
    #: When it left.
    sent: float
    #: By group: the first report that it was delivered there.
    delivered: dict[str, EnvelopeDelivered] = field(default_factory=dict)
    #: Later messages of its producers may leave, though they share a group with it.
    is_followed: bool = False
    #: All of its groups have delivered it, and its producers have their receipts.
    answered: bool = False


class Seeing(Protocol):
    """A producer, as far as it concerns a submission."""

    #: What it has seen, in whatever form the submission keeps it.
    seen: Any


class Patience(Protocol):
    """The settings of a gateway that say when something is repeated."""

    @property
    def tick_s(self) -> float: ...

    @property
    def resend_s_max(self) -> float:
        """What is repeated is repeated at longer and longer intervals, up to this one."""


class Sender(Protocol):
    """What a gateway lends to its submission."""

    @property
    def process(self) -> str:
        """The gateway's own name. A replica in the same process is reached without a network."""

    @property
    def settings(self) -> Patience: ...

    @property
    def now(self) -> float: ...

    @property
    def wall(self) -> float:
        """The wall clock, which may jump."""

    @property
    def resend_s(self) -> float:
        """After so long without a word an envelope is sent again: several times what envelopes take at present."""

    @property
    def view(self) -> View:
        """Empty before the first one came."""

    @property
    def connected(self) -> Mapping[str, int]:
        """The incarnations of the processes that this gateway is connected to."""

    @property
    def heard(self) -> Mapping[str, float]:
        """When each process last said something that was no mistake."""

    def send(self, to: Sequence[str], message: Any) -> None: ...

    def suspect(self, process: str) -> None:
        """It does not answer, so it is believed to be down for a while, or until it is heard again."""

    def is_suspected(self, process: str) -> bool: ...

    def may_follow(self, submitted: Submitted) -> Sequence[Seeing]:
        """From now on later messages of its producers may leave. Returns these producers, one for each range."""


class Submission(ABC):
    #: What replicas report besides EnvelopeDelivered. Each has the envelope's `id`, and the `group` that it is
    #: about unless it is about all of them: the gateway refuses reports of whoever has no replica there.
    handles: ClassVar[tuple[type, ...]] = ()
    #: What is a repetition in one group of a message is one in all of them, as all deliver in one order.
    duplicates_agree: ClassVar[bool] = True

    # ------------------------------------------------------------------------ what clients ask for and have seen

    def wrong_with(self, groups: Groups) -> str:
        """Why a message to these groups cannot be ordered in this domain; empty if it can.

        The text is for users, who know groups by their names and not by their ids (core.ids.group_name).
        """
        return ""

    @abstractmethod
    def nothing_seen(self) -> Any:
        """The `seen` of a producer that has shown and received nothing yet."""

    @abstractmethod
    def read_session(self, session: bytes) -> Any:
        """What a client presents as seen, for `see`.

        It is the only look at these bytes: raise a RemoteProtocolError if they are not what `session_of` makes.
        """

    @abstractmethod
    def see(self, seen: Any, presented: Any) -> Any:
        """The `seen` of a producer that has now seen as well what it presented."""

    @abstractmethod
    def session_of(self, seen: Iterable[Any]) -> bytes:
        """What producers have seen together, in the form of the protocol's `SeenCodec` (core/protocol.py).

        It goes into the header of their envelope, and into receipts.
        """

    # -------------------------------------------------------------------------------------------------- sending

    @abstractmethod
    def choose(self, groups: Groups) -> Incarnation | None:
        """The replica that an envelope to these groups names as the one that looks after it.

        With None nothing leaves for these groups now. They are asked for again at the next tick, and when somebody
        connects.
        """

    @abstractmethod
    def send(self, submitted: Submitted) -> None:
        """A new envelope leaves. Whatever is lost on the way has to be repeated, until it is finished."""

    # -------------------------------------------------------------------------------------------------- answers

    @abstractmethod
    def on_delivered(self, submitted: Submitted, source: str, delivered: EnvelopeDelivered) -> None:
        """A replica of one of its groups says that it delivered the envelope. It may say so twice.

        Raise a RemoteProtocolError if that cannot be, before anything has changed. The receipt is given when all
        groups have delivered, by the gateway.
        """

    def on_report(self, submitted: Submitted, event: Receive) -> None:
        """One of `handles` came. Raise a RemoteProtocolError if it cannot be, before anything has changed."""
        raise RemoteProtocolError(f"nobody here waits for a {type(event.message).__name__}")

    @abstractmethod
    def on_answered(self, submitted: Submitted, producers: Sequence[Seeing]) -> None:
        """All groups have delivered it, and the receipts are about to be written.

        `producers` are those of the ranges in the header: what they have seen goes into their receipts. Whoever
        has not let others follow until now has to do so here, with `may_follow`.
        """

    @abstractmethod
    def is_finished(self, submitted: Submitted) -> bool:
        """Nobody needs this envelope from the gateway any more.

        It is asked of those that are answered, whenever something is reported about them.
        """

    @abstractmethod
    def on_finished(self, submitted: Submitted) -> None:
        """The gateway has forgotten it."""

    # -------------------------------------------------------------------------------------------------- silence

    @abstractmethod
    def on_tick(self) -> None:
        """Every `tick_s` while something is not finished or waits: repeat what has no answer for too long."""

    @abstractmethod
    def on_connected(self, peer: str) -> None:
        """A connection to this process is new, so that what was sent to it before may be lost."""

    @abstractmethod
    def on_view(self, before: View) -> None:
        """The sender's view is another one. No group of an envelope that is not finished is ever missing."""


#: Makes the submission of a gateway machine.
MakeSubmission = Callable[[Sender], Submission]
