"""A subscription to one group: where it reads, and what is in the entries that come. Without I/O.

The position moves when an entry of the log is unpacked, so a new stream goes on behind what the consumer was
given: no gap, no duplicate. With a cursor the gateway starts where the cursor stands, at or before that position,
and what comes again is skipped. What all subscriptions have in common is in stream_reader.py.
"""

from collections.abc import Sequence
from typing import TypeVar

from google.protobuf.message import DecodeError

from ordercast.client.errors import Internal
from ordercast.client.stream_reader import StreamReader
from ordercast.client.types import Delivery, id_prefix
from ordercast.core.ids import group_name
from ordercast.v1.common_pb2 import Batch
from ordercast.v1.gateway_pb2 import (
    Ack,
    Acked,
    SetCursorRequest,
    SubscribeRequest,
    SubscribeResponse,
    SubscribeStart,
    SubscribeStarted,
)
from ordercast.v1.sequencer_pb2 import LogEntry, StartAt

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


#: A serialised entry, when it was stored, and the session token that came with it.
Ahead = tuple[bytes, int, bytes]


class Reader(StreamReader[int, D, Ahead]):
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
        super().__init__(0, kind, source=source, cursor=cursor, has_start=start is not None)
        self.group = group
        self.start = start
        self.stop_at_end = stop_at_end
        self.replica = replica
        #: What the domain's protocol says of the entry that `take` gave last (`LogEntry.protocol`); and its bytes.
        self.protocol = b""
        self.size = 0

    @property
    def ends(self) -> bool:
        return self.stop_at_end

    def _start_request(self) -> SubscribeRequest:
        start = self.start if self.next is None else StartAt(offset=self.next)
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

    def _deliveries(self, response: SubscribeResponse) -> list[tuple[Ahead, int]]:
        if self.started is None:
            raise Internal("deliveries before the start of the subscription")
        entries: Sequence[bytes] = response.deliveries.entries
        stored_ms: Sequence[int] = response.deliveries.stored_ms or [0] * len(entries)
        if len(stored_ms) != len(entries):
            raise Internal(f"times for {len(stored_ms)} of {len(entries)} entries")
        session = response.deliveries.session
        return [((entry, at, session), len(entry)) for entry, at in zip(entries, stored_ms, strict=True)]

    def take(self) -> list[D]:
        while self._ahead:
            assert self.next is not None
            serialised, stored_ms, session = self._ahead.popleft()
            self._ahead_bytes -= len(serialised)
            entry = parse(serialised, self.group)
            deliveries, self._reached = unpack_entry(
                entry, self.group, self.next, self.kind, self.source, stored_ms
            )
            if deliveries:
                if deliveries[0].offset != self.next:
                    raise Internal(f"offset {deliveries[0].offset} instead of {self.next} in {self.group!r}")
                self.next = deliveries[-1].offset + 1
                self.session, self.protocol, self.size = session, entry.protocol, len(serialised)
                return deliveries
        return []

    def _position_in(self, message: SubscribeStarted | Acked) -> int:
        return message.offset

    def _ack(self, position: int) -> Ack:
        return Ack(offset=position)

    def _behind(self, position: int) -> int:
        return position + 1

    def confirm_request(self) -> SetCursorRequest:
        at = StartAt(offset=self._wanted)
        return SetCursorRequest(group=self.group, name=self.cursor or "", start=at)

    def described(self, position: int) -> str:
        return f"offset {position}"
