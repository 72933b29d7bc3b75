"""A subscription to several groups: where it is in their common order, and what comes. Without I/O.

The place moves when an envelope is unpacked, so a new stream goes on behind what the consumer was given, at any
gateway: no gap, no duplicate. An envelope for several of the groups comes once, with an entry of each.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ordercast.client.errors import Internal, InvalidArgument
from ordercast.client.merged_types import Cut, MergedDelivery, message_of, place_of
from ordercast.client.stream_reader import StreamReader
from ordercast.client.subscription import parse
from ordercast.client.types import Groups, id_prefix
from ordercast.core.batch_order import in_order
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import group_name
from ordercast.core.limits import MERGED_GROUPS_MAX
from ordercast.core.place import NTH_MAX, Place
from ordercast.v1.gateway_pb2 import (
    Ack,
    Acked,
    MergedEntry,
    SetCursorRequest,
    SubscribeRequest,
    SubscribeResponse,
    SubscribeStart,
    SubscribeStarted,
)
from ordercast.v1.sequencer_pb2 import StartAt

#: An envelope, and the session token that came with it.
Ahead = tuple[MergedEntry, bytes]

M = TypeVar("M", bound=MergedDelivery)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which groups: by their names, or those of a domain, perhaps with a pattern."""

    groups: Groups = ()
    domain: str = ""
    pattern: str = ""


def checked_choice(
    groups: Iterable[str] | None = None, *, domain: str | None = None, pattern: str | None = None
) -> Choice:
    if groups is not None:
        if domain is not None or pattern is not None:
            raise InvalidArgument("name groups, or a domain and perhaps a pattern")
        names = tuple(groups)
        if not names or not all(isinstance(name, str) and name for name in names):
            raise InvalidArgument("groups are named by texts, and there has to be one at least")
        if len(dict.fromkeys(names)) < len(names) or len(names) > MERGED_GROUPS_MAX:
            raise InvalidArgument(f"at most {MERGED_GROUPS_MAX} groups are read together, each named once")
        return Choice(groups=tuple(sorted(names)))
    if not domain:
        raise InvalidArgument("a merged subscription is to groups, or to those of a domain")
    return Choice(domain=domain, pattern=pattern or "")


def check_merged(last: int | None, replica: str | None) -> None:
    if last is not None or replica is not None:
        raise InvalidArgument("`last` and `replica` are about one group's log")


def checked_merged_start(start: str | Cut | None) -> StartAt | Cut | None:
    """`"earliest"`, `"latest"`, a cut, or None for "where the cursor stands"."""
    match start:
        case None | Cut():
            return start
        case "earliest":
            return StartAt(earliest=True)
        case "latest":
            return StartAt(latest=True)
    raise InvalidArgument(f"several groups begin at 'earliest', at 'latest', or at a cut, not at {start!r}")


class MergedReader(StreamReader[Place, M, Ahead]):
    def __init__(
        self,
        choice: Choice,
        kind: type[M],
        *,
        source: object = None,
        start: StartAt | Cut | None,
        cursor: str | None = None,
        until: Cut | None = None,
        stop_at_end: bool = False,
    ) -> None:
        super().__init__(Place(), kind, source=source, cursor=cursor, has_start=start is not None)
        self.choice = choice
        self.start = start
        #: Where it ends, if it does; with `stop_at_end` the gateway says so first, and then it stays there.
        self.until = until.place if until is not None else None
        self.stop_at_end = stop_at_end
        #: Of the groups, as the gateway says.
        self.domain = choice.domain

    @property
    def ends(self) -> bool:
        return self.stop_at_end or self.until is not None

    def _start_request(self) -> SubscribeRequest:
        start = SubscribeStart(
            groups=self.choice.groups,
            domain=self.choice.domain,
            pattern=self.choice.pattern,
            cursor=self.cursor or "",
            stop_at_end=self.stop_at_end and self.until is None,
            alive=True,
        )
        if self.next is not None:
            start.place.CopyFrom(message_of(self.next))
        elif isinstance(self.start, Cut):
            start.place.CopyFrom(message_of(self.start.place))
        elif self.start is not None:
            start.start.CopyFrom(self.start)
        if self.until is not None:
            start.until.CopyFrom(message_of(self.until))
        return SubscribeRequest(start=start)

    def _on_started(self, started: SubscribeStarted) -> None:
        super()._on_started(started)
        self.domain = started.domain
        if started.HasField("until"):
            self.until = place_of(started.until)

    def _deliveries(self, response: SubscribeResponse) -> list[tuple[Ahead, int]]:
        if self.started is None:
            raise Internal("deliveries before the start of the subscription")
        merged = response.merged
        return [((entry, merged.session), sum(map(len, entry.entries))) for entry in merged.entries]

    def take(self) -> list[M]:
        while self._ahead:
            envelope, session = self._ahead.popleft()
            self._ahead_bytes -= sum(map(len, envelope.entries))
            deliveries = self._unpacked(envelope)
            if deliveries:
                last = deliveries[-1]
                self.next = Place(last.order_key, last.index + 1)
                self.session = session
                return deliveries
        return []

    def _unpacked(self, envelope: MergedEntry) -> list[M]:
        """What is not before the place where the consumer is, and before the end."""
        assert self.started is not None and self.next is not None
        names: Sequence[str] = self.started.groups
        if len(envelope.groups) != len(envelope.entries) or not all(at < len(names) for at in envelope.groups):
            raise Internal("an envelope of other groups than this subscription reads")
        parts = [(names[at], parse(data, names[at])) for at, data in zip(*_lists(envelope), strict=True)]
        first = parts[0][1]
        if any(entry.order_key != first.order_key for _, entry in parts):
            raise Internal("an envelope with several places in the order")
        self._reached = max(self._reached, Place(first.order_key, NTH_MAX))
        try:
            found = in_order(parts)
        except RemoteProtocolError as error:
            raise Internal(f"a damaged entry in the log of {parts[0][0]!r}: {error}") from error
        destinations = [group_name(destination.group) for destination in first.envelope.header.destinations]
        kept = []
        for one, offsets in found:
            place = Place(first.order_key, one.nth)
            if place < self.next or (self.until is not None and place >= self.until):
                continue
            message, producer = one.message, one.range_.producer
            headers = {each.name: each.value for each in message.headers} if message.headers else {}
            kept.append(
                self.kind(
                    offsets,
                    first.order_key,
                    one.nth,
                    message.payload,
                    message.key,
                    headers,
                    producer,
                    one.sequence,
                    id_prefix(producer, destinations),
                    self.source,
                    envelope.stored_ms,
                )
            )
        return kept

    # ----------------------------------------------------------------------------------- acknowledgements

    def _position_in(self, message: SubscribeStarted | Acked) -> Place:
        return place_of(message.place)

    def _ack(self, position: Place) -> Ack:
        return Ack(place=message_of(position))

    def _behind(self, position: Place) -> Place:
        return position.behind()

    def confirm_request(self) -> SetCursorRequest:
        place = message_of(self._wanted)
        return SetCursorRequest(domain=self.domain, name=self.cursor or "", place=place)

    def described(self, position: Place) -> str:
        return f"the place {Cut(position.order_key, position.nth)}"


def _lists(envelope: MergedEntry) -> tuple[Sequence[int], Sequence[bytes]]:
    return envelope.groups, envelope.entries
