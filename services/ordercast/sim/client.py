"""A simulated client: the SDK's own session, driven by simulated time, and what an application does with it.

The session decides all that publishing decides: what is repeated, where and when, under which numbers, behind what
its producer has seen (client/session.py). Here are its streams, which are connections to gateways; and, for what
gateways keep in their service and not in their machine, the signing of session tokens.

The application publishes to a group once it knows it, and gives up what is for a group that is being deleted.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import inf

from ordercast.client.errors import NotFound, OrdercastError, OutcomeUnknown, Unavailable
from ordercast.client.session import Session
from ordercast.client.types import Receipt as SdkReceipt
from ordercast.core.cells import cell_of, cells_of, within
from ordercast.core.machine import (
    ChannelReset,
    Effect,
    Event,
    GroupsClosed,
    Receive,
    Send,
    SetTimer,
    Start,
    TimerFired,
    ViewChanged,
)
from ordercast.core.protocol import SeenCodec
from ordercast.gateway.rows import messages_of
from ordercast.gateway.tokens import Tokens
from ordercast.sim.board import Board, Groups, MessageKey, Receipt, Sent, Shown, name_of
from ordercast.sim.reading import LogReading
from ordercast.v1.common_pb2 import Message
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_INVALID_ARGUMENT,
    PUBLISH_STATUS_NOT_FOUND,
    PUBLISH_STATUS_UNAVAILABLE,
    PublishReply,
    PublishStreamResponse,
)

TIMER = "client"
#: How long to wait for a view that has a planned group.
UNKNOWN_S_MAX = 3.0
#: How long to look for something to answer.
LOOKING_S = 0.5
#: So much of what a client has seen is remembered, for checkers.
SEEN_KEPT = 8
#: What a gateway allows a new stream, and what a greedy client allows itself.
CREDITS = 64
CREDITS_GREEDY = 1 << 30

_TOKENS = Tokens(b"simulated")
_DOMAIN = "sim"


@dataclass(slots=True)
class Dial(Effect):
    """Connect anew to a gateway: a new stream of requests."""

    gateway: str


@dataclass(slots=True)
class Plan:
    """A publish that is to happen at some time."""

    at: float
    groups: Groups
    count: int
    unordered: bool
    #: Read something first.
    reads: bool = False
    #: Read a message to several groups in one of them, and publish in another one where it is not in the log yet.
    #: `groups` says nothing then.
    answers: bool = False
    #: For which groups each of the messages is, if they are for different ones of the same cells.
    each: Sequence[Groups] = ()

    def groups_of(self, index: int) -> Groups:
        return self.each[index] if self.each else self.groups


@dataclass(slots=True)
class ClientSettings:
    plans: list[Plan]
    gateways: list[str]
    #: So many messages may be without a receipt.
    pipeline: int = 4
    patience_s: float = 1.0
    #: The producer has a name, and opens the sets that it publishes to.
    opens: bool = False
    #: It does not care for its credits.
    greedy: bool = False
    #: Each publish comes from another producer, which opens, and is never heard of again.
    passing: bool = False


class Client:
    handles = (PublishReply,)

    def __init__(
        self,
        name: str,
        settings: ClientSettings,
        board: Board,
        codec: SeenCodec,
        reading: LogReading,
    ) -> None:
        self.name = name
        self.settings = settings
        self.board = board
        self.codec = codec
        self.reading = reading
        self.plans = list(settings.plans)
        self.session = self._session(name)
        self.dialed = ""
        self.chance = 0.0
        self.after: list[MessageKey] = []
        self.shown: list[Hashable] = []
        self.by_receipt: list[MessageKey] = []
        #: Counts its messages; and those to each set, of each producer.
        self.index = 0
        self.numbers: dict[tuple[bytes, Groups], int] = {}
        #: The numbers that messages went under.
        self.sequences: dict[MessageKey, int] = {}
        #: What is published without an outcome, with its plan.
        self.open: dict[MessageKey, Plan] = {}
        #: The groups it knows, those that are being deleted or gone, and sets that it was told to give up.
        self.groups: dict[str, None] = {}
        self.lost: dict[str, None] = {}
        self.given_up: dict[Groups, None] = {}

    def _session(self, producer: str, token: bytes = b"") -> Session[MessageKey]:
        settings = self.settings
        return Session(
            producer.encode(),
            f"instance of {producer}".encode(),
            is_named=settings.opens,
            in_flight_max=settings.pipeline,
            token=token,
            patience_s=settings.patience_s,
            cell_of=cell_of,
        )

    @property
    def is_done(self) -> bool:
        return self.session.fenced is not None or not (self.plans or self.open)

    def waits_for(self) -> str:
        first = next(iter(self.open), None)
        return name_of(first) if first is not None else f"{len(self.plans)} plans"

    def buffers(self) -> dict[str, int]:
        return {"outstanding": self.session.pending}

    def be_patient(self, seconds: float) -> None:
        self.session.patience_s = self.session._patience_s = seconds

    def step(self, event: Event) -> list[Effect]:
        match event:
            case Receive():
                if event.source == self.dialed and self.session.is_ready:
                    self._on_reply(event.message, event.now)
                return self._go_on(event.now)
            case TimerFired():
                self.chance = event.chance / (1 << 64)
                self.session.tick(event.now, self.chance)
                self._publish_due(event.now, event.chance)
                effects = self._go_on(event.now)
                if not self.is_done:
                    effects.append(SetTimer(TIMER, self._next_look(event.now)))
                return effects
            case ChannelReset():
                self._on_connected(event.peer, event.now)
                return self._go_on(event.now)
            case ViewChanged():
                known = {group.group: None for group in event.view.groups}
                self.lost.update({name: None for name in self.groups if name not in known})
                self.groups = known
            case GroupsClosed():
                self.lost.update(dict.fromkeys(event.groups))
            case Start():
                return [SetTimer(TIMER, 0.02)]
        return []

    # ------------------------------------------------------------------------------------------- streams

    @property
    def gateway(self) -> str:
        gateways = self.settings.gateways
        return gateways[self.session.gateway % len(gateways)]

    def _on_connected(self, peer: str, now: float) -> None:
        """A connection is a stream. If there was one to that gateway already, it broke."""
        session = self.session
        if session.stream and session.is_ready and peer == self.dialed:
            session.lost(session.stream, Unavailable("the connection broke"), now, self.chance)
            return
        if not session.stream and session.retry_at is None and peer == self.gateway:
            self.dialed = peer
            session.dialed(now)
        if session.stream and peer == self.dialed:
            self._received(PublishStreamResponse(credits=CREDITS, batches=True), now)

    def _received(self, response: PublishStreamResponse, now: float) -> None:
        self.session.received(self.session.stream, response, now, self.chance)
        if self.settings.greedy:
            self.session.credits = CREDITS_GREEDY

    def _go_on(self, now: float) -> list[Effect]:
        """Tell the application what became of its messages, dial if it is time, and write all that may be."""
        session = self.session
        effects: list[Effect] = []
        for key, outcome in session.take_settled():
            self._settled(key, outcome)
        if session.dial_due(now):
            self.dialed = self.gateway
            session.dialed(now)
            effects.append(Dial(self.dialed))
        while frame := session.frame(now):
            for request in frame.requests:
                if request.session:
                    request.session = _TOKENS.verify(_DOMAIN, request.session, self.codec)
                for index, message in enumerate(messages_of(request)):
                    self._numbered(self.board.by_payload[message.payload], request.first_sequence + index)
                effects.append(Send((self.dialed,), request))
        return effects

    def _numbered(self, key: MessageKey, sequence: int) -> None:
        if self.sequences.setdefault(key, sequence) != sequence:
            self.sequences[key] = sequence
            self.board.renumbered[key] = None

    def _on_reply(self, reply: PublishReply, now: float) -> None:
        if reply.session:
            reply.session = _TOKENS.sign(_DOMAIN, reply.session, self.codec)
        if reply.status == PUBLISH_STATUS_INVALID_ARGUMENT and reply.detail.startswith("unknown group"):
            # Its view lacks the group. A gateway's service waits until that is settled, and hands a request to the
            # machine only then: so it comes again, or the group is gone.
            gone = self._is_lost(reply.groups)
            reply.status = PUBLISH_STATUS_NOT_FOUND if gone else PUBLISH_STATUS_UNAVAILABLE
        self._received(PublishStreamResponse(replies=[reply]), now)

    # ---------------------------------------------------------------------------------------- application

    def _is_hopeless(self, plan: Plan, now: float) -> bool:
        if plan.groups in self.given_up or self._is_lost(plan.groups):
            return True
        # A group may be gone before a client hears that it was there.
        return now > plan.at + UNKNOWN_S_MAX and not self._are_there(plan.groups)

    def _is_lost(self, groups: Iterable[str]) -> bool:
        """A group that shares its cell is gone with the cell."""
        return any(cell_of(group) in self.lost for group in groups)

    def _are_there(self, groups: Groups) -> bool:
        return all(cell in self.groups for cell in cells_of(groups))

    def _next_look(self, now: float) -> float:
        """Soon if a publish is due, else when the next one is or patience may end."""
        due = self.plans[0].at - now if self.plans else 1.0
        return min(max(due, 0.02), 0.1)

    def _publish_due(self, now: float, chance: int) -> None:
        self.plans = [plan for plan in self.plans if not self._is_hopeless(plan, now)]
        while self.plans and self.session.fenced is None and self._may_publish(self.plans[0], now):
            if self.plans[0].answers and not self._answer(self.plans[0]):
                if now < self.plans[0].at + LOOKING_S:
                    break
                self.plans.pop(0)
                continue
            if self.settings.passing:
                self._become_another()
            self._publish(self.plans.pop(0), chance)

    def _answer(self, plan: Plan) -> bool:
        """Whether there was something to answer."""
        found = self.reading.part()
        if found is None:
            return False
        shown, cell = found
        self._read(shown)
        plan.groups = within(cell, shown.key[1])[:1]
        return True

    def _read(self, shown: Shown) -> None:
        self.session.see(_TOKENS.sign(_DOMAIN, shown.seen, self.codec))
        if not shown.may_be_lost:
            self._has_seen(shown.key)
        if shown.place is not None:
            self.shown.append(shown.place)
            del self.shown[:-SEEN_KEPT]
        else:
            self._has_heard(shown.key)

    def _may_publish(self, plan: Plan, now: float) -> bool:
        if plan.at > now or not self._are_there(plan.groups):
            return False
        pending = self.session.pending
        return pending == 0 or (not self.settings.passing and pending + plan.count <= self.settings.pipeline)

    def _become_another(self) -> None:
        """The stream is the next one's, and so is the token: checkers hold that it has seen what this one has."""
        before = self.session
        self.session = self._session(f"{self.name}.{self.index}", before.token)
        self.session.gateway = before.gateway
        self.dialed = ""

    def _publish(self, plan: Plan, chance: int) -> None:
        found = self.reading.anything(chance) if plan.reads else None
        if found is not None:
            self._read(found)
        producer = self.session.producer
        for index in range(plan.count):
            groups = plan.groups_of(index)
            number = self.numbers[producer, groups] = self.numbers.get((producer, groups), 0) + 1
            key = (producer, groups, number)
            payload = name_of(key).encode()
            seen = list(self.after), list(self.shown), list(self.by_receipt)
            self.board.send(key, Sent(self.index, plan.unordered, payload, *seen))
            self.index += 1
            self.open[key] = plan
            self.session.publish(
                Message(payload=payload),
                groups,
                size=len(payload),
                handle=key,
                deadline=inf,
                unordered=plan.unordered,
            )

    def _has_heard(self, key: MessageKey) -> None:
        self.by_receipt.append(key)
        del self.by_receipt[:-SEEN_KEPT]

    def _has_seen(self, key: MessageKey) -> None:
        self.after.append(key)
        del self.after[:-SEEN_KEPT]

    def _settled(self, key: MessageKey, outcome: SdkReceipt | OrdercastError) -> None:
        plan = self.open.pop(key)
        if isinstance(outcome, SdkReceipt):
            self._has_seen(key)
            self._has_heard(key)
            self.board.receipts.append(Receipt(key, outcome.order_key, outcome.offsets, outcome.duplicate))
            self.board.post(Shown(_TOKENS.verify(_DOMAIN, self.session.token, self.codec), key))
            return
        unknown = isinstance(outcome, OutcomeUnknown) or self.session.fenced is not None
        (self.board.given_up if unknown else self.board.refused)[key] = None
        if isinstance(outcome, NotFound):
            self.given_up[plan.groups] = None
