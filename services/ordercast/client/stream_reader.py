"""What all subscriptions have in common, without I/O: what is read ahead, how far is acknowledged, when to
leave.

A *position* is an offset in one group, or a place in the order of several. One acknowledgement is under way at
a time; those that come meanwhile become one. A stream takes acknowledgements only of what it delivered itself,
and none if it ends by itself: then it is half-closed, for only that ends it. What could not be confirmed on the
stream, the driver confirms with a call.

A gateway that hangs is left like one that is lost. It is asked for signs of life, and one that gives them and
then falls silent hangs (`Silence`). Gateways of an early version give none: those are left if they never say
anything.
"""

from abc import ABC, abstractmethod
from collections import deque
from typing import Any, Generic, TypeVar

from ordercast.client.errors import FailedPrecondition, InvalidArgument
from ordercast.core.silence import Silence
from ordercast.v1.gateway_pb2 import (
    Ack,
    Acked,
    SetCursorRequest,
    SubscribeRequest,
    SubscribeResponse,
    SubscribeStarted,
)

#: Read ahead, in entries and their bytes. One response may go beyond.
AHEAD_ENTRIES_MAX = 256
AHEAD_BYTES_MAX = 8 << 20

#: Of positions, which have to compare; of what is handed to the consumer; and of what is read ahead.
P = TypeVar("P")
D = TypeVar("D")
T = TypeVar("T")


class StreamReader(ABC, Generic[P, D, T]):
    def __init__(self, first: P, kind: type[D], *, source: object, cursor: str | None, has_start: bool) -> None:
        """`first` is before all other positions."""
        if not has_start and cursor is None:
            raise InvalidArgument("a subscription needs a start, or a cursor that tells where it stands")
        self.kind = kind
        self.source = source
        self.cursor = cursor
        #: What the gateway said first, on the latest stream.
        self.started: SubscribeStarted | None = None
        #: Of the next delivery that the consumer gets; None before it is known.
        self.next: P | None = None
        self._ahead: deque[T] = deque()
        self._ahead_bytes = 0
        #: What the consumer has seen by what `take` gave it last: to be merged.
        self.session = b""
        #: Cursor positions: wanted, under way on this stream, and confirmed; and how far this stream was used.
        self._first = first
        self._wanted: Any = first
        self._confirmed: Any = first
        self._reached: Any = first
        self._under_way: P | None = None
        self._is_leaving = False
        #: Whom the stream waits for, if it says so.
        self.waiting_for: tuple[str, ...] = ()
        #: On the latest stream; and on how many streams in a row there was nothing else.
        self.silence = Silence()
        self._silences = 0

    # ------------------------------------------------------------------------------------- what a kind gives

    @property
    @abstractmethod
    def ends(self) -> bool:
        """Whether the stream ends by itself, when it has delivered everything that was asked for."""

    @abstractmethod
    def _start_request(self) -> SubscribeRequest: ...

    @abstractmethod
    def _deliveries(self, response: SubscribeResponse) -> list[tuple[T, int]]:
        """What a response brought, each with its bytes."""

    @abstractmethod
    def take(self) -> list[D]:
        """The deliveries of the next entry that has some for us; none if nothing was read ahead.

        Whoever hands them on lets the consumer's connection see `session` first. It stands for the last entry
        of the response, so also for some that the consumer gets later: what it publishes may come behind more
        than it knows of, but never before what it has in hand.
        """

    @abstractmethod
    def _position_in(self, message: SubscribeStarted | Acked) -> P: ...

    @abstractmethod
    def _ack(self, position: P) -> Ack: ...

    @abstractmethod
    def _behind(self, position: P) -> P:
        """Of what comes behind the delivery at this position."""

    @abstractmethod
    def confirm_request(self) -> SetCursorRequest:
        """What moves the cursor to where it is not known to be."""

    @abstractmethod
    def described(self, position: P) -> str: ...

    # ------------------------------------------------------------------------------------------- reading

    def new_stream(self) -> Silence:
        """Before each stream. The driver looks at the silence at intervals, and leaves when that tells it to."""
        self._silences = self._silences + 1 if self.silence.is_too_long and self.started is None else 0
        self.silence = Silence(self._silences)
        return self.silence

    def start_request(self) -> SubscribeRequest:
        """What a new stream begins with. What was read ahead and not used comes again."""
        self._ahead.clear()
        self._ahead_bytes = 0
        self.started = None
        self._under_way = None
        self._reached = self._first
        self.waiting_for = ()
        return self._start_request()

    @property
    def has_room(self) -> bool:
        """Whether the driver should read another response."""
        return len(self._ahead) < AHEAD_ENTRIES_MAX and self._ahead_bytes < AHEAD_BYTES_MAX

    def received(self, response: SubscribeResponse) -> None:
        self.silence.heard(response.alive.alive_ms)
        match response.WhichOneof("step"):
            case "started":
                self._on_started(response.started)
            case "acked":
                self._confirmed = max(self._confirmed, self._position_in(response.acked))
                self._under_way = None
            case "waiting":
                self.waiting_for = tuple(response.waiting.groups)
            case "deliveries" | "merged":
                for item, size in self._deliveries(response):
                    if not self._is_leaving:
                        self._ahead.append(item)
                        self._ahead_bytes += size

    def _on_started(self, started: SubscribeStarted) -> None:
        self.started = started
        position: Any = self._position_in(started)
        self._reached = position
        if self.cursor is not None:
            self._confirmed = max(self._confirmed, position)
        if self.next is None:
            self.next = position
        elif position > self.next and not self._is_leaving:
            raise FailedPrecondition(
                f"the cursor {self.cursor!r} was moved to {self.described(position)} by someone else, beyond "
                f"{self.described(self.next)} where this subscription is"
            )

    # ----------------------------------------------------------------------------------- acknowledgements

    def ack(self, position: P) -> None:
        """The consumer is done with the delivery at this position, and all before it."""
        if self.cursor is None:
            raise FailedPrecondition("this subscription has no cursor that could be moved")
        following: Any = self.next
        if following is None or not self._first <= position < following:  # type: ignore[operator]
            raise InvalidArgument(f"{self.described(position)} was not delivered by this subscription")
        self._wanted = max(self._wanted, self._behind(position))

    @property
    def unconfirmed(self) -> P | None:
        """Where the cursor has to be and is not known to be."""
        wanted: P = self._wanted
        return wanted if self._wanted > self._confirmed else None

    @property
    def takes_acks(self) -> bool:
        """Whether the stream stays open for writing."""
        return self.cursor is not None and not self.ends

    @property
    def may_confirm(self) -> bool:
        """Whether this stream can still confirm what is unconfirmed."""
        is_delivered: bool = self.started is not None and self._wanted <= self._reached
        return self.takes_acks and self.unconfirmed is not None and is_delivered

    def ack_request(self) -> SubscribeRequest | None:
        """What to write now, if anything."""
        if self._under_way is not None or not self.may_confirm:
            return None
        self._under_way = self._wanted
        return SubscribeRequest(ack=self._ack(self._wanted))

    def leave(self) -> None:
        """The consumer wants no more deliveries, only its last acknowledgement confirmed."""
        self._is_leaving = True
        self._ahead.clear()
        self._ahead_bytes = 0
