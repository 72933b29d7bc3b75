"""How gateways send to virtually synchronous groups: casts go through one member of their group.

[BSS91 7.1] Clients are no members. What a gateway has for a group it submits to one member, in order, as a stream;
that member casts it, and whoever holds the token says when it is visible. When the member falls silent, or the
connection to it breaks, another stream begins, with everything that is not visible yet: what was cast twice is one
in the log. So a producer's messages keep their order, whoever cast them.

What goes to several groups is submitted to a member of the first, which sees to the others. A member that may not
have heard of a new group yet is sent everything again sooner, and is not left (core/new_groups.py).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.new_groups import NewGroups
from ordercast.core.submission import Groups, Seeing, Sender, Submission, Submitted
from ordercast.core.view import View
from ordercast.protocols.isis import times
from ordercast.protocols.isis.checking import check_seen, check_stamp
from ordercast.protocols.isis.confirmed import seen_with, settle
from ordercast.protocols.isis.replica import seen_of
from ordercast.protocols.isis.settings import Ordering, Settings
from ordercast.protocols.isis.stamps import besides_in, stamp_in
from ordercast.protocols.isis.times import Stamp
from ordercast.v1.common_pb2 import Incarnation
from ordercast.v1.isis_pb2 import Seen, Submit
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered


@dataclass(slots=True)
class Stream:
    """To one member of a group: what was submitted and is not visible yet, in order."""

    member: str
    number: int
    index: int = 0
    under_way: dict[bytes, Submitted] = field(default_factory=dict)
    #: When something was last heard, or the first was sent.
    heard: float = 0.0
    delay: float = 0.0
    #: Until then its member may not have heard of the group, and is not taken for down.
    patient_until: float = 0.0


@dataclass(slots=True)
class HasSeen:
    """What a producer has seen."""

    stamp: Stamp = field(default_factory=Stamp)
    epoch: int = 0

    def add(self, stamp: Stamp, epoch: int) -> None:
        self.stamp.merge(stamp)
        self.epoch = max(self.epoch, epoch)


class IsisSubmission(Submission):
    #: There is no order across groups: what came first in one may be the repetition in another.
    duplicates_agree = False

    def __init__(self, gateway: Sender, settings: Settings | None = None) -> None:
        self.gateway = gateway
        self.is_total = (settings or Settings()).ordering == Ordering.TOTAL
        #: By the first group of what is submitted.
        self.streams: dict[str, Stream] = {}
        #: By group: who last said that something is visible; that is its token holder.
        self.holders: dict[str, str] = {}
        self.new_groups = NewGroups()
        self._numbers = 0

    # --------------------------------------------------------------------------- what is asked for and was seen

    def wrong_with(self, groups: Groups) -> str:
        if self.is_total and len(groups) > 1:
            return "this domain orders each group by itself: there is no total order over several of its groups"
        return ""

    def nothing_seen(self) -> HasSeen:
        return HasSeen()

    def read_session(self, session: bytes) -> HasSeen:
        try:
            seen = Seen.FromString(session)
        except DecodeError as error:
            raise RemoteProtocolError(f"not what was seen: {error}") from error
        return HasSeen(check_seen(seen), seen.epoch)

    def see(self, seen: HasSeen, presented: HasSeen) -> HasSeen:
        seen.add(presented.stamp, presented.epoch)
        return seen

    def session_of(self, seen: Iterable[HasSeen]) -> bytes:
        together = [times.seen_from(one.stamp, one.epoch) for one in seen]
        return times.merged(together).SerializeToString(deterministic=True)

    # ------------------------------------------------------------------------------------------------ sending

    def choose(self, groups: Groups) -> Incarnation | None:
        """The member that casts. While something is under way it stays: a change may cost a second cast."""
        connected = self.gateway.connected
        stream = self.streams.get(groups[0])
        if stream is not None and stream.under_way:
            number = connected.get(stream.member)
            return Incarnation(process=stream.member, number=number) if number is not None else None
        best = self._best_member(groups[0])
        return Incarnation(process=best, number=connected[best]) if best else None

    def _best_member(self, name: str, besides: str = "") -> str:
        """Our own process, where nothing has to travel; or the token holder, whose casts need no sets-order."""
        gateway = self.gateway
        members = [p for p in gateway.view.groups[name].working if p in gateway.connected and p != besides]
        up = [process for process in members if not gateway.is_suspected(process)] or members
        return max(up, key=lambda p: (p == gateway.process, p == self.holders.get(name), p), default="")

    def send(self, submitted: Submitted) -> None:
        name = submitted.groups[0]
        member = submitted.envelope.header.coordinator.process
        stream = self.streams.get(name)
        if stream is None or stream.member != member:
            assert stream is None or not stream.under_way
            stream = self.streams[name] = self._stream(member, [])
        if not stream.under_way:
            stream.heard = self.gateway.now
            self.new_groups.expire(stream.heard)
            if name in self.new_groups:
                stream.delay = self.gateway.settings.tick_s
                stream.patient_until = stream.heard + self.gateway.resend_s
        stream.under_way[submitted.envelope.header.id] = submitted
        self._submit(name, stream, submitted, again=False)

    def _stream(self, member: str, under_way: Iterable[Submitted]) -> Stream:
        self._numbers += 1
        submitted = {one.envelope.header.id: one for one in under_way}
        delay = self.gateway.resend_s
        return Stream(member, self._numbers, under_way=submitted, heard=self.gateway.now, delay=delay)

    def _submit(self, name: str, stream: Stream, submitted: Submitted, *, again: bool) -> None:
        stream.index += 1
        submit = Submit(
            group=name,
            envelope=submitted.envelope,
            total=self.is_total,
            again=again,
            stream=stream.number,
            index=stream.index,
        )
        self.gateway.send((stream.member,), submit)

    def _begin_stream(self, name: str, member: str) -> None:
        """Everything that is not visible yet, in order, through this member."""
        before = self.streams[name]
        stream = self.streams[name] = self._stream(member, before.under_way.values())
        stream.delay = min(2 * before.delay, self.gateway.settings.resend_s_max)
        stream.patient_until = before.patient_until
        for submitted in stream.under_way.values():
            self._submit(name, stream, submitted, again=True)

    # ------------------------------------------------------------------------------------------------ answers

    def on_delivered(self, submitted: Submitted, source: str, delivered: EnvelopeDelivered) -> None:
        check_stamp(stamp_in(delivered))
        check_seen(besides_in(delivered))
        self.holders[delivered.group] = source
        stream = self.streams.get(submitted.groups[0])
        if stream is not None:
            stream.heard, stream.delay = self.gateway.now, self.gateway.resend_s

    def on_answered(self, submitted: Submitted, producers: Sequence[Seeing]) -> None:
        """It is visible in all of its groups, and not in one before the others: its producers have seen all of its
        parts, and their next ones may follow, and come behind it.
        """
        header = submitted.envelope.header
        seen = times.merged(
            [
                seen_with(seen_of(group, stamp_in(found)), besides_in(found))
                for group, found in submitted.delivered.items()
            ]
        )
        stamp, presented = times.stamp_from(seen), times.stamp_from(Seen.FromString(header.session))
        for producer in producers:
            has_seen: HasSeen = producer.seen
            has_seen.add(stamp, seen.epoch)
            settle(has_seen.stamp, presented, submitted.groups)
        self.gateway.may_follow(submitted)

    def is_finished(self, submitted: Submitted) -> bool:
        """What is visible is on the disks of a majority."""
        return submitted.answered

    def on_finished(self, submitted: Submitted) -> None:
        stream = self.streams.get(submitted.groups[0])
        if stream is not None:
            stream.under_way.pop(submitted.envelope.header.id, None)

    # ------------------------------------------------------------------------------------------------ silence

    def on_tick(self) -> None:
        for name, stream in list(self.streams.items()):
            if not stream.under_way or self.gateway.now - stream.heard < stream.delay:
                continue
            if self.gateway.now < stream.patient_until:
                self._begin_stream(name, stream.member)
                continue
            self.gateway.suspect(stream.member)
            member = self._best_member(name, besides=stream.member) or stream.member
            self._begin_stream(name, member)

    def on_connected(self, peer: str) -> None:
        for name, stream in list(self.streams.items()):
            if stream.member == peer and stream.under_way:
                self._begin_stream(name, peer)

    def on_view(self, before: View) -> None:
        """What a group's member had not cast when it left goes through another one."""
        view = self.gateway.view
        self.new_groups.on_view(before, view, self.gateway.now, self.gateway.resend_s)
        for name, stream in list(self.streams.items()):
            group = view.groups.get(name)
            if group is None:
                del self.streams[name]
            elif stream.member not in group.replicas and stream.under_way:
                member = self._best_member(name)
                if member:
                    self._begin_stream(name, member)
