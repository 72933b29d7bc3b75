"""The gateway of a domain of virtually synchronous groups: casts go through one member of their group.

[BSS91 7.1] Clients are no members. What a gateway has for a group it submits to one member, in order, as a stream;
that member casts it, and whoever holds the token says when it is visible. When the member falls silent, or the
connection to it breaks, another stream begins, with everything that is not visible yet: what was cast twice is one
in the log. So a producer's messages keep their order, whoever cast them.

What goes to several groups is submitted to a member of the first, which sees to the others.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import ChannelReset, Receive, Send
from ordercast.core.view import View
from ordercast.gateway.machine import Gateway
from ordercast.gateway.opened import Open
from ordercast.gateway.producer import Groups, Producer
from ordercast.gateway.settings import GatewaySettings
from ordercast.protocols.isis import times
from ordercast.protocols.isis.checking import check_keys, check_numbers, check_seen
from ordercast.protocols.isis.confirmed import seen_with, settle
from ordercast.protocols.isis.replica import seen_of
from ordercast.protocols.isis.settings import Ordering, Settings
from ordercast.v1.common_pb2 import Incarnation, Span
from ordercast.v1.gateway_pb2 import PublishRequest
from ordercast.v1.isis_pb2 import Seen, Submit
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered

#: Protocols that order messages to several groups.
ACROSS_GROUPS = ("scalatom",)


@dataclass(slots=True)
class Stream:
    """To one member of a group: what was submitted and is not visible yet, in order."""

    member: str
    number: int
    index: int = 0
    under_way: dict[bytes, Open] = field(default_factory=dict)
    #: When something was last heard, or the first was sent.
    heard: float = 0.0
    delay: float = 0.0


class CastingGateway(Gateway):
    def __init__(
        self,
        process: str,
        settings: GatewaySettings | None = None,
        protocol: Settings | None = None,
        *,
        observe: bool = False,
    ) -> None:
        super().__init__(process, settings, observe=observe)
        self.is_total = (protocol or Settings()).ordering == Ordering.TOTAL
        self.streams: dict[str, Stream] = {}
        #: By group: who last said that something is visible; that is its token holder.
        self.holders: dict[str, str] = {}
        self._numbers = 0

    # ---------------------------------------------------------------------------------------------- intake

    def wrong_for_protocol(self, request: PublishRequest, groups: Groups) -> str:
        if self.is_total and len(groups) > 1:
            return (
                "this domain orders each group by itself: there is no total order over several of its groups. "
                f"Protocols that order across groups: {', '.join(ACROSS_GROUPS)}"
            )
        try:
            check_seen(Seen.FromString(request.session))
        except (DecodeError, RemoteProtocolError):
            return "not a session token"
        return ""

    def see(self, producer: Producer, session: bytes) -> None:
        self._see(producer, Seen.FromString(session))

    def _see(self, producer: Producer, seen: Seen) -> None:
        producer.seen.merge(times.stamp_from(seen))
        producer.seen_epoch = max(producer.seen_epoch, seen.epoch)

    def session_of(self, producers: Iterable[Producer]) -> bytes:
        together = [times.seen_from(producer.seen, producer.seen_epoch) for producer in producers]
        return times.merged(together).SerializeToString(deterministic=True)

    # ------------------------------------------------------------------------------------------ submitting

    def _choose_coordinator(self, groups: Groups) -> Incarnation | None:
        """The member that casts. While something is under way it stays: a change may cost a second cast."""
        stream = self.streams.get(groups[0])
        if stream is not None and stream.under_way:
            number = self.connected.get(stream.member)
            return Incarnation(process=stream.member, number=number) if number is not None else None
        best = self._best_member(groups[0])
        return Incarnation(process=best, number=self.connected[best]) if best else None

    def _best_member(self, name: str, besides: str = "") -> str:
        """Our own process, where nothing has to travel; or the token holder, whose casts need no sets-order."""
        assert self.view is not None
        members = [p for p in self.view.groups[name].working if p in self.connected and p != besides]
        up = [process for process in members if not self._is_suspected(process)] or members
        return max(up, key=lambda p: (p == self.process, p == self.holders.get(name), p), default="")

    def disseminate(self, opened: Open) -> None:
        name = opened.groups[0]
        member = opened.envelope.header.coordinator.process
        stream = self.streams.get(name)
        if stream is None or stream.member != member:
            assert stream is None or not stream.under_way
            stream = self.streams[name] = self._stream(member, [])
        if not stream.under_way:
            stream.heard = self.now
        stream.under_way[opened.envelope.header.id] = opened
        self._send(name, stream, opened, again=False)

    def _stream(self, member: str, under_way: Iterable[Open]) -> Stream:
        self._numbers += 1
        opened = {one.envelope.header.id: one for one in under_way}
        return Stream(member, self._numbers, under_way=opened, heard=self.now, delay=self.settings.resend_s)

    def _send(self, name: str, stream: Stream, opened: Open, *, again: bool) -> None:
        stream.index += 1
        submit = Submit(
            group=name,
            envelope=opened.envelope,
            total=self.is_total,
            again=again,
            stream=stream.number,
            index=stream.index,
        )
        self.out.append(Send((stream.member,), submit))

    def _begin_stream(self, name: str, member: str) -> None:
        """Everything that is not visible yet, in order, through this member."""
        before = self.streams[name]
        stream = self.streams[name] = self._stream(member, before.under_way.values())
        stream.delay = min(2 * before.delay, self.settings.resend_s_max)
        for opened in stream.under_way.values():
            self._send(name, stream, opened, again=True)

    # -------------------------------------------------------------------------------------------- answers

    def _on_delivered(self, event: Receive) -> None:
        delivered: EnvelopeDelivered = event.message
        opened = self.open.get(delivered.id)
        if opened is not None:
            check_keys((delivered.stamp.key,), times.MEMBERS_MAX)
            check_numbers(delivered.stamp.epoch, delivered.stamp.view)
            times.stamp_from(delivered.stamp)
        super()._on_delivered(event)
        if opened is not None:
            self.holders[delivered.group] = event.source
            stream = self.streams.get(opened.groups[0])
            if stream is not None:
                stream.heard, stream.delay = self.now, self.settings.resend_s
        if opened is not None and len(opened.delivered) == len(opened.groups):
            self._is_visible(opened)

    def _is_decided(self, opened: Open, order_key: bytes) -> None:
        """In one of its groups, that says nothing about the others."""

    def _is_visible(self, opened: Open) -> None:
        """In all of its groups: now the producer's next ones may follow, and come behind it."""
        opened.decided = self._may_fill = True
        header = opened.envelope.header
        for range_ in header.ranges:
            self.producers[range_.producer].envelope_decided(header.id, self.now)

    def _answer(self, opened: Open) -> None:
        """Its producers have seen it now: all of its parts, and not one before the others."""
        header = opened.envelope.header
        seen = times.merged(
            [seen_with(seen_of(group, found.stamp), found.read) for group, found in opened.delivered.items()]
        )
        presented = times.stamp_from(Seen.FromString(header.session))
        for range_ in header.ranges:
            producer = self.producers[range_.producer]
            self._see(producer, seen)
            settle(producer.seen, presented, opened.groups)
        super()._answer(opened)

    def places_of(self, opened: Open, index: int) -> list[list[Span]]:
        """There is no order across groups: what came first in one may be the repetition in another, so that their
        spans end at different messages. A run ends where one of them does.
        """
        range_ = opened.envelope.header.ranges[index]
        spans = [list(opened.delivered[group].outcomes[index].spans) for group in opened.groups]
        starts = sorted({span.first_sequence for there in spans for span in there})
        if not starts:
            return []  # It opened the producer.
        ends = [*starts[1:], range_.first_sequence + range_.count]
        return [[part_of(there, *run) for there in spans] for run in zip(starts, ends, strict=True)]

    def is_finished(self, opened: Open) -> bool:
        """What is visible is on the disks of a majority."""
        if len(opened.delivered) < len(opened.groups):
            return False
        stream = self.streams.get(opened.groups[0])
        if stream is not None:
            stream.under_way.pop(opened.envelope.header.id, None)
        return True

    # -------------------------------------------------------------------------------------------- silence

    def _on_tick(self) -> None:
        for name, stream in list(self.streams.items()):
            if not stream.under_way or self.now - stream.heard < stream.delay:
                continue
            self.suspected[stream.member] = self.now + self.settings.suspicion_s
            member = self._best_member(name, besides=stream.member) or stream.member
            self._begin_stream(name, member)

    def _on_channel_reset(self, event: ChannelReset) -> None:
        peer = event.peer
        self._on_new_stream(peer)
        self.connected[peer] = event.incarnation
        self._may_fill = True
        self.suspected.pop(peer, None)
        for name, stream in list(self.streams.items()):
            if stream.member == peer and stream.under_way:
                self._begin_stream(name, peer)

    def _on_view(self, view: View) -> None:
        """What a group's member had not cast when it left goes through another one."""
        super()._on_view(view)
        for name, stream in list(self.streams.items()):
            group = view.groups.get(name)
            if group is None:
                del self.streams[name]
            elif stream.member not in group.replicas and stream.under_way:
                member = self._best_member(name)
                if member:
                    self._begin_stream(name, member)

    def _begin_again(self, changed: list[str]) -> None:
        """Streams look after themselves."""


def part_of(spans: list[Span], first: int, end: int) -> Span:
    """Where these messages are; they are in one of the spans."""
    span = next(s for s in spans if s.first_sequence <= first < s.first_sequence + s.count)
    # Of what is older than the window the place is not known.
    offset = span.first_offset + (first - span.first_sequence if span.order_key else 0)
    return Span(
        first_sequence=first,
        count=end - first,
        first_offset=offset,
        order_key=span.order_key,
        duplicate=span.duplicate,
    )
