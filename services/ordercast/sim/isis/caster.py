"""Somebody who casts through a member of his choice: one producer, that speaks to members as a gateway would.

It is for stories and for the paper's tables, where a message has to be at an exact place, or of a kind that
gateways of one domain do not mix. In random runs everybody is a session of the SDK, and goes through gateways.

It sends a group's casts through one member, in order, and repeats all that has no receipt through another one when
that falls silent. To several groups it has one message under way. It presents what it has seen.
"""

from dataclasses import dataclass, field

from ordercast.core.ids import envelope_id
from ordercast.core.machine import (
    ChannelReset,
    Effect,
    Event,
    Receive,
    Send,
    SetTimer,
    Start,
    TimerFired,
    ViewChanged,
)
from ordercast.core.view import View
from ordercast.protocols.isis import past
from ordercast.protocols.isis.confirmed import seen_with, settle
from ordercast.protocols.isis.past import Stamp
from ordercast.protocols.isis.replica import seen_of
from ordercast.protocols.isis.stamps import besides_in, stamp_in
from ordercast.sim.board import Board, Groups, MessageKey, Receipt, name_of
from ordercast.sim.board import Sent as SentMessage
from ordercast.sim.isis.checkers import CastName, cast_name
from ordercast.v1.common_pb2 import Batch, Envelope, Header, Message, ProducerRange
from ordercast.v1.isis_pb2 import CastStamp, Seen, Submit
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered

TIMER = "client"


@dataclass(slots=True)
class CastPlan:
    at: float
    groups: Groups
    total: bool


@dataclass(slots=True)
class CasterSettings:
    plans: list[CastPlan]
    pipeline: int = 4
    patience_s: float = 0.5


@dataclass(slots=True)
class Sent:
    submit: Submit
    sequence: int
    delivered: dict[str, EnvelopeDelivered] = field(default_factory=dict)


class Caster:
    handles = (EnvelopeDelivered,)

    def __init__(self, name: str, settings: CasterSettings, board: Board) -> None:
        self.name = name
        self.settings = settings
        self.board = board
        self.plans = list(settings.plans)
        self.view: View | None = None
        self.incarnation = 0
        self.counter = 0
        self.sequences: dict[Groups, int] = {}
        self.outstanding: dict[Groups, list[Sent]] = {}
        self.member: dict[Groups, int] = {}
        self.heard: dict[Groups, float] = {}
        self.seen = Stamp()
        self.epoch = 0
        self.after: list[MessageKey] = []
        self.shown: list[CastName] = []
        self.connected: dict[str, int] = {}
        self.streams = 0
        #: By set: the stream, what was sent last in it, and through whom.
        self.stream: dict[Groups, tuple[int, int, str]] = {}

    @property
    def is_done(self) -> bool:
        return not self.plans and not any(self.outstanding.values())

    def buffers(self) -> dict[str, int]:
        return {}

    def step(self, event: Event) -> list[Effect]:
        match event:
            case Start():
                self.incarnation = event.incarnation
                return [SetTimer(TIMER, 0.02)]
            case ViewChanged():
                self.view = event.index
            case ChannelReset():
                self.connected[event.peer] = event.incarnation
                return self._again(event.peer)
            case Receive():
                self._on_delivered(event.message, event.now)
            case TimerFired():
                effects = self._on_timer(event)
                if not self.is_done:
                    effects.append(SetTimer(TIMER, 0.02))
                return effects
        return []

    # ---------------------------------------------------------------------------------------------- sending

    def _on_timer(self, event: TimerFired) -> list[Effect]:
        effects: list[Effect] = []
        for groups, waiting in self.outstanding.items():
            if waiting and event.now - self.heard[groups] > self.settings.patience_s:
                self.member[groups] += 1
                self.heard[groups] = event.now
                effects += self._send(groups, waiting, again=True)
        for plan in list(self.plans):
            if plan.at > event.now or self.view is None or not self._has_room(plan):
                break
            self.plans.remove(plan)
            effects += self._publish(plan, event.now)
        return effects

    def _has_room(self, plan: CastPlan) -> bool:
        window = self.settings.pipeline if len(plan.groups) == 1 else 1
        others = [g for g, sent in self.outstanding.items() if sent and g != plan.groups]
        # What it publishes elsewhere comes behind what it published before: so that must be known.
        return not others and len(self.outstanding.get(plan.groups, [])) < window

    def see(self, group: str, stamp: CastStamp, read: Seen, key: MessageKey | None = None) -> None:
        """A delivery, and what is said besides it; and a message, unless the delivery may be lost."""
        seen = seen_with(seen_of(group, stamp), read)
        self.seen.merge(past.stamp_from(seen))
        self.epoch = max(self.epoch, seen.epoch)
        if key is not None:
            self.after.append(key)
        self.shown.append(cast_name(group, stamp))

    def _publish(self, plan: CastPlan, now: float) -> list[Effect]:
        assert self.view is not None
        sequence = self.sequences[plan.groups] = self.sequences.get(plan.groups, 0) + 1
        id_ = envelope_id(self.incarnation, self.counter)
        self.counter += 1
        header = Header(
            id=id_,
            destinations=self.view.destinations(plan.groups),
            session=past.seen_from(self.seen, self.epoch).SerializeToString(),
            ranges=[ProducerRange(producer=self.name.encode(), first_sequence=sequence, count=1)],
            gateway=self.name,
        )
        key = (self.name.encode(), plan.groups, sequence)
        payload = name_of(key).encode()
        self.board.send(key, SentMessage(self.counter, False, payload, list(self.after), list(self.shown)))
        body = Batch(messages=[Message(payload=payload)])
        envelope = Envelope(header=header, body=body.SerializeToString())
        sent = Sent(Submit(group=plan.groups[0], envelope=envelope, total=plan.total), sequence)
        self.outstanding.setdefault(plan.groups, []).append(sent)
        self.member.setdefault(plan.groups, 0)
        self.heard.setdefault(plan.groups, now)
        if len(self.outstanding[plan.groups]) == 1:
            self.heard[plan.groups] = now
        return self._send(plan.groups, [sent], again=False)

    def _send(self, groups: Groups, sent: list[Sent], *, again: bool) -> list[Effect]:
        assert self.view is not None
        turn = self.member[groups]
        # To several groups: each in its turn sees to all of them.
        group = self.view.groups.get(groups[turn % len(groups)])
        if group is None or not group.replicas:
            return []
        to = group.replicas[turn % len(group.replicas)]
        stream, index, through = self.stream.get(groups, (0, 0, ""))
        if again or through != to:
            self.streams += 1
            stream, index, sent = self.streams, 0, self.outstanding[groups]
        effects: list[Effect] = []
        for one in sent:
            index += 1
            message = Submit()
            message.CopyFrom(one.submit)
            message.group, message.again, message.stream, message.index = group.name, again, stream, index
            effects.append(Send((to,), message))
        self.stream[groups] = (stream, index, to)
        return effects

    def _again(self, peer: str) -> list[Effect]:
        effects: list[Effect] = []
        for groups, sent in self.outstanding.items():
            if sent and self.stream.get(groups, (0, 0, ""))[2] == peer:
                effects += self._send(groups, sent, again=True)
        return effects

    # ---------------------------------------------------------------------------------------------- receipts

    def _on_delivered(self, delivered: EnvelopeDelivered, now: float) -> None:
        for groups, waiting in self.outstanding.items():
            for sent in waiting:
                if sent.submit.envelope.header.id == delivered.id:
                    sent.delivered.setdefault(delivered.group, delivered)
                    if len(sent.delivered) == len(groups):
                        waiting.remove(sent)
                        self._receipt(groups, sent)
                        self.heard[groups] = now
                    return

    def _receipt(self, groups: Groups, sent: Sent) -> None:
        key = (self.name.encode(), groups, sent.sequence)
        places = {}
        for group, delivered in sent.delivered.items():
            self.see(group, stamp_in(delivered), besides_in(delivered), key)
            spans = delivered.outcomes[0].spans
            if not spans:
                raise AssertionError(f"{self.name} to {groups} #{sent.sequence}: refused in {group}")
            places[group] = spans[0]
        presented = Seen.FromString(sent.submit.envelope.header.session)
        settle(self.seen, past.stamp_from(presented), groups)
        offsets = {group: span.first_offset for group, span in places.items()}
        first = places[groups[0]]
        self.board.receipts.append(Receipt(key, first.order_key, offsets, first.duplicate))
