"""A subscription: where it reads, what it has read ahead, how far it is acknowledged. Without I/O.

The position moves when an entry of the log is unpacked, so a new stream goes on behind what the consumer was
given: no gap, no duplicate. With a cursor the gateway starts where the cursor stands, at or before that position,
and what comes again is skipped. One acknowledgement is under way at a time; those that come meanwhile become one.
A stream takes acknowledgements only of what it delivered itself, and none if it ends with the log: then it is
half-closed, for only that ends it. What could not be confirmed on the stream, the driver confirms with a call.

A gateway that hangs is left like one that is lost. It is asked for signs of life, and one that gives them and then
falls silent hangs (`Silence`). Gateways of an early version give none: those are left if they never say anything.
"""

from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

from google.protobuf.message import DecodeError

from ordercast.client.errors import FailedPrecondition, Internal, InvalidArgument
from ordercast.client.types import Delivery, id_prefix
from ordercast.core.ids import group_name
from ordercast.core.silence import Silence
from ordercast.v1.common_pb2 import Batch
from ordercast.v1.gateway_pb2 import (
    Ack,
    Deliveries,
    SubscribeRequest,
    SubscribeResponse,
    SubscribeStart,
    SubscribeStarted,
)
from ordercast.v1.sequencer_pb2 import LogEntry, StartAt

#: Read ahead, in entries of the log and their bytes. One response may go beyond.
AHEAD_ENTRIES_MAX = 256
AHEAD_BYTES_MAX = 8 << 20

D = TypeVar("D", bound=Delivery)


def unpack(
    serialised: bytes, group: str, wanted: int, kind: type[D], source: object = None
) -> tuple[list[D], int]:
    """The deliveries in an entry of the log from the wanted offset on, and the offset behind the entry."""
    return unpack_entry(parse(serialised, group), group, wanted, kind, source)


def parse(serialised: bytes, group: str) -> LogEntry:
    try:
        return LogEntry.FromString(serialised)
    except DecodeError as error:
        raise Internal(f"a damaged entry in the log of {group!r}: {error}") from error


def unpack_entry(
    entry: LogEntry, group: str, wanted: int, kind: type[D], source: object = None, stored_ms: int = 0
) -> tuple[list[D], int]:
    try:
        messages = Batch.FromString(entry.envelope.body).messages
    except DecodeError as error:
        raise Internal(f"a damaged entry in the log of {group!r}: {error}") from error
    header = entry.envelope.header
    names = [group_name(destination.group) for destination in header.destinations]
    order_key = entry.order_key
    found: list[D] = []
    end = entry.first_offset
    #: The index of the range's first message.
    start = 0
    if len(header.ranges) != len(entry.outcomes) or sum(range_.count for range_ in header.ranges) != len(messages):
        raise Internal(f"an entry in the log of {group!r} contradicts itself")
    for range_, outcome in zip(header.ranges, entry.outcomes, strict=True):
        producer = range_.producer
        prefix = id_prefix(producer, names)
        for span in outcome.spans:
            if span.duplicate:
                continue
            first = span.first_sequence - range_.first_sequence
            if first < 0 or first + span.count > range_.count:
                raise Internal(f"an entry in the log of {group!r} contradicts itself")
            skipped = min(max(wanted - span.first_offset, 0), span.count)
            sequence, offset = span.first_sequence + skipped, span.first_offset + skipped
            for message in messages[start + first + skipped : start + first + span.count]:
                headers = {field.name: field.value for field in message.headers} if message.headers else {}
                found.append(
                    kind(
                        group,
                        offset,
                        order_key,
                        message.payload,
                        message.key,
                        headers,
                        producer,
                        sequence,
                        prefix,
                        source,
                        stored_ms,
                    )
                )
                sequence += 1
                offset += 1
            end = span.first_offset + span.count
        start += range_.count
    return found, end


class Reader(Generic[D]):
    """One subscriber of one group."""

    def __init__(
        self,
        group: str,
        kind: type[D],
        *,
        source: object = None,
        start: StartAt | None,
        cursor: str | None = None,
        stop_at_end: bool = False,
        replica: str | None = None,
    ) -> None:
        if start is None and cursor is None:
            raise InvalidArgument("a subscription needs a start, or a cursor that tells where it stands")
        self.group = group
        self.kind = kind
        self.source = source
        self.start = start
        self.cursor = cursor
        self.stop_at_end = stop_at_end
        self.replica = replica
        #: What the gateway said first, on the latest stream.
        self.started: SubscribeStarted | None = None
        #: The offset of the next delivery that the consumer gets; None before it is known.
        self.next_offset: int | None = None
        #: Entries that were read ahead, each with when it was stored and the session token that came with it.
        self._ahead: deque[tuple[bytes, int, bytes]] = deque()
        self._ahead_bytes = 0
        #: What the consumer has seen by what `take` gave it last: to be merged.
        self.session = b""
        #: What the domain's protocol says of the entry that `take` gave last (`LogEntry.protocol`); and its bytes.
        self.protocol = b""
        self.size = 0
        #: Cursor positions: wanted, under way on this stream, and confirmed.
        self._wanted = self._under_way = self._confirmed = 0
        #: How far this stream was used.
        self._reached = 0
        self._is_leaving = False
        #: On the latest stream; and on how many streams in a row there was nothing else.
        self.silence = Silence()
        self._silences = 0

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
        self._under_way = self._reached = 0
        start = self.start if self.next_offset is None else StartAt(offset=self.next_offset)
        return SubscribeRequest(
            start=SubscribeStart(
                group=self.group,
                start=start,
                cursor=self.cursor or "",
                stop_at_end=self.stop_at_end,
                replica=self.replica or "",
                alive=True,
            )
        )

    @property
    def has_room(self) -> bool:
        """Whether the driver should read another response."""
        return len(self._ahead) < AHEAD_ENTRIES_MAX and self._ahead_bytes < AHEAD_BYTES_MAX

    def received(self, response: SubscribeResponse) -> None:
        self.silence.heard(response.alive.alive_ms)
        match response.WhichOneof("step"):
            case "started":
                self._on_started(response.started)
            case "deliveries":
                if self.started is None:
                    raise Internal("deliveries before the start of the subscription")
                if not self._is_leaving:
                    self._read_ahead(response.deliveries)
            case "acked":
                self._confirmed = max(self._confirmed, response.acked.offset)
                self._under_way = 0

    def _read_ahead(self, deliveries: Deliveries) -> None:
        entries: Sequence[bytes] = deliveries.entries
        stored_ms: Sequence[int] = deliveries.stored_ms or [0] * len(entries)
        if len(stored_ms) != len(entries):
            raise Internal(f"times for {len(stored_ms)} of {len(entries)} entries")
        session = deliveries.session
        self._ahead.extend((entry, stored, session) for entry, stored in zip(entries, stored_ms, strict=True))
        self._ahead_bytes += sum(map(len, entries))

    def _on_started(self, started: SubscribeStarted) -> None:
        self.started = started
        self._reached = started.offset
        if self.cursor is not None:
            self._confirmed = max(self._confirmed, started.offset)
        if self.next_offset is None:
            self.next_offset = started.offset
        elif started.offset > self.next_offset and not self._is_leaving:
            raise FailedPrecondition(
                f"the cursor {self.cursor!r} was moved to {started.offset} by someone else, beyond "
                f"{self.next_offset} where this subscription is"
            )

    def take(self) -> list[D]:
        """The deliveries of the next entry that has some for us; none if nothing was read ahead.

        Whoever hands them on lets the consumer's connection see `session` first. It stands for the last entry of
        the response, so also for some that the consumer gets later: what it publishes may come behind more than it
        knows of, but never before what it has in hand.
        """
        while self._ahead:
            assert self.next_offset is not None
            serialised, stored_ms, session = self._ahead.popleft()
            self._ahead_bytes -= len(serialised)
            entry = parse(serialised, self.group)
            deliveries, self._reached = unpack_entry(
                entry, self.group, self.next_offset, self.kind, self.source, stored_ms
            )
            if deliveries:
                if deliveries[0].offset != self.next_offset:
                    raise Internal(
                        f"offset {deliveries[0].offset} instead of {self.next_offset} in {self.group!r}"
                    )
                self.next_offset = deliveries[-1].offset + 1
                self.session, self.protocol, self.size = session, entry.protocol, len(serialised)
                return deliveries
        return []

    # ----------------------------------------------------------------------------------- acknowledgements

    def ack(self, offset: int) -> None:
        """The consumer is done with this offset and all before it."""
        if self.cursor is None:
            raise FailedPrecondition("this subscription has no cursor that could be moved")
        if self.next_offset is None or not 0 <= offset < self.next_offset:
            raise InvalidArgument(f"offset {offset} was not delivered by this subscription")
        self._wanted = max(self._wanted, offset + 1)

    @property
    def unconfirmed(self) -> int | None:
        """Where the cursor has to be and is not known to be."""
        return self._wanted if self._wanted > self._confirmed else None

    @property
    def takes_acks(self) -> bool:
        """Whether the stream stays open for writing."""
        return self.cursor is not None and not self.stop_at_end

    @property
    def may_confirm(self) -> bool:
        """Whether this stream can still confirm what is unconfirmed."""
        is_delivered = self.started is not None and self._wanted <= self._reached
        return self.takes_acks and self.unconfirmed is not None and is_delivered

    def ack_request(self) -> SubscribeRequest | None:
        """What to write now, if anything."""
        if self._under_way or not self.may_confirm:
            return None
        self._under_way = self._wanted
        return SubscribeRequest(ack=Ack(offset=self._wanted))

    def leave(self) -> None:
        """The consumer wants no more deliveries, only its last acknowledgement confirmed."""
        self._is_leaving = True
        self._ahead.clear()
        self._ahead_bytes = 0
