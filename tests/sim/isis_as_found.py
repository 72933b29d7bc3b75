"""Runs of ISIS as they were when they found something: a seed is the same run only with the clients of its time.

They were written for the simulator, and are not the SDK's session; some runs had no gateways at all. Nothing new
is tried with them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from ordercast.core.ids import pack_u64, sn_of, unpack_u64
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
from ordercast.protocols.isis import times
from ordercast.protocols.isis.times import Stamp
from ordercast.sim.board import Board, Groups, MessageKey, Receipt, Sent
from ordercast.sim.client import TIMER, UNKNOWN_S_MAX, ClientSettings, Dial, Plan
from ordercast.sim.isis.cluster import IsisCluster
from ordercast.sim.isis.scenario import (
    IsisScenario,
    draw_answers,
    draw_gateways,
    draw_members,
    draw_own_settings,
    draw_passing,
)
from ordercast.v1.common_pb2 import Message
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_FENCED,
    PUBLISH_STATUS_NOT_FOUND,
    PUBLISH_STATUS_OK,
    PublishReply,
    PublishRequest,
)
from ordercast.v1.isis_pb2 import Seen


class ClusterAsFound(IsisCluster):
    def make_client(self, name: str) -> Any:
        return EarlierPublisher(name, self.scenario.clients[name], self.board)


def draw_as_found(seed: int) -> IsisScenario:
    """Four in ten runs had gateways, and nobody was lost for good."""
    scenario = draw_members(seed)
    random = Random(f"{seed}/gateways")
    if random.random() < 0.4:
        draw_gateways(random, scenario)
    scenario.reads_live = Random(f"{seed}/live").random() < 0.4
    draw_own_settings(Random(f"{seed}/own"), scenario)
    draw_answers(Random(f"{seed}/answers"), scenario)
    draw_passing(Random(f"{seed}/passing"), scenario)
    return scenario


@dataclass(slots=True)
class Request:
    message: PublishRequest
    missing: dict[int, None]


class EarlierClient:
    handles = (PublishReply,)

    def __init__(self, name: str, settings: ClientSettings, board: Board) -> None:
        self.name = name
        self.producer = name.encode()
        self.settings = settings
        self.board = board
        self.plans = list(settings.plans)
        self.gateway = settings.gateways[0]
        self.connected = False
        self.waiting_since = 0.0
        self.outstanding: list[Request] = []
        self.sequences: dict[Groups, int] = {}
        self.epochs: dict[Groups, int] = {}
        self.session = 0
        self.after: list[MessageKey] = []
        self.credits = 64
        self.index = 0
        self.retry_at: float | None = None
        self.patience_s = settings.patience_s
        self.fenced = False
        #: The groups it knows, those that are being deleted or gone, and sets that it was told to give up.
        self.groups: dict[str, None] = {}
        self.lost: dict[str, None] = {}
        self.given_up: dict[Groups, None] = {}

    @property
    def is_done(self) -> bool:
        return self.fenced or not (self.plans or self.outstanding)

    def buffers(self) -> dict[str, int]:
        return {"outstanding": len(self.outstanding)}

    def step(self, event: Event) -> list[Effect]:
        match event:
            case Receive():
                return self._on_reply(event.message, event.now)
            case TimerFired():
                effects = self._on_timer(event)
                if not self.is_done:
                    effects.append(SetTimer(TIMER, self._next_look(event.now)))
                return effects
            case ChannelReset() if event.peer == self.gateway:
                self.connected = True
                self.retry_at = None
                self.waiting_since = event.now
                return [Send((self.gateway,), request.message) for request in self.outstanding]
            case ViewChanged():
                known = {group.group: None for group in event.view.groups}
                self.lost.update({name: None for name in self.groups if name not in known})
                self.groups = known
            case GroupsClosed():
                self.lost.update(dict.fromkeys(event.groups))
            case Start():
                return [SetTimer(TIMER, 0.02)]
        return []

    def _is_hopeless(self, plan: Plan, now: float) -> bool:
        if plan.groups in self.given_up or any(group in self.lost for group in plan.groups):
            return True
        # A group may be gone before a client hears that it was there.
        return now > plan.at + UNKNOWN_S_MAX and not all(group in self.groups for group in plan.groups)

    # ----------------------------------------------------------------------------------------- sending

    def _on_timer(self, event: TimerFired) -> list[Effect]:
        now = event.now
        if self.fenced:
            return []
        if self.retry_at is not None:
            return self._dial(self.gateway, now) if now >= self.retry_at else []
        if (self.outstanding or not self.connected) and now - self.waiting_since > self.patience_s:
            gateways = self.settings.gateways
            self.patience_s = min(self.patience_s * 2, 5.0)  # back to normal with the next receipt
            return self._dial(gateways[event.chance % len(gateways)], now)
        effects: list[Effect] = []
        self.plans = [plan for plan in self.plans if not self._is_hopeless(plan, now)]
        while self.connected and self._may_send(now):
            plan = self.plans[0]
            if self.settings.passing and not self._is_opened:
                self._become_another()
            if self.settings.opens and plan.groups not in self.epochs:
                effects += self._open(plan.groups, now)
                break
            effects += self._publish(self.plans.pop(0), now, event.chance)
        return effects

    @property
    def _is_opened(self) -> bool:
        """Of producers that pass by: it has not published yet."""
        return bool(self.epochs) and not any(self.sequences.values())

    def _become_another(self) -> None:
        self.producer = f"{self.name}.{self.index}".encode()
        self.epochs, self.sequences = {}, {}

    def _next_look(self, now: float) -> float:
        """Soon if a publish is due, else when the next one is or patience may end."""
        due = self.plans[0].at - now if self.plans else 1.0
        return min(max(due, 0.02), 0.1)

    def _may_send(self, now: float) -> bool:
        if not self.plans or self.plans[0].at > now or len(self.outstanding) >= self.settings.pipeline:
            return False
        if not all(group in self.groups for group in self.plans[0].groups):
            return False
        if any(request.message.open_token for request in self.outstanding):
            return False
        unacknowledged = sum(len(request.missing) for request in self.outstanding)
        return self.settings.greedy or unacknowledged + self.plans[0].count <= self.credits

    def _dial(self, gateway: str, now: float) -> list[Effect]:
        self.gateway = gateway
        self.connected = False
        self.retry_at = None
        self.waiting_since = now
        return [Dial(gateway)]

    def _open(self, groups: Groups, now: float) -> list[Effect]:
        token = f"{self.name}/{self.index}".encode()
        self.index += 1
        request = PublishRequest(producer=self.producer, groups=groups, open_token=token)
        return self._send(request, {0: None}, now)

    def _publish(self, plan: Plan, now: float, chance: int) -> list[Effect]:
        if plan.reads and self.board.tokens:
            clock, key = self.board.tokens[chance % len(self.board.tokens)]
            self._see(clock, key)
        first = self.sequences.get(plan.groups, 0) + 1
        self.sequences[plan.groups] = first + plan.count - 1
        messages = []
        for sequence in range(first, first + plan.count):
            payload = f"{self.name} to {','.join(plan.groups)} #{sequence}".encode()
            messages.append(Message(payload=payload))
            key = (self.producer, plan.groups, sequence)
            # Those that pass by have payloads in common: they are known by their numbers.
            self.board.sent[key] = Sent(self.index, plan.unordered, payload, list(self.after))
            self.index += 1
        request = PublishRequest(
            producer=self.producer,
            epoch=self.epochs.get(plan.groups, 0),
            groups=plan.groups,
            first_sequence=first,
            messages=messages,
            unordered=plan.unordered,
            session=self.session_token(),
        )
        return self._send(request, dict.fromkeys(range(first, first + plan.count)), now)

    def _send(self, request: PublishRequest, missing: dict[int, None], now: float) -> list[Effect]:
        if not self.outstanding:
            self.waiting_since = now
        self.outstanding.append(Request(request, missing))
        return [Send((self.gateway,), request)]

    def session_token(self) -> bytes:
        return pack_u64(self.session) if self.session else b""

    def learn(self, clock: Any) -> None:
        self.session = max(self.session, clock)

    def clock_in(self, reply: PublishReply) -> Any:
        """What a receipt says its reader has seen, as it is told to others."""
        return max(unpack_u64(reply.session), sn_of(reply.order_key) if reply.order_key else 0)

    def _see(self, clock: Any, key: MessageKey) -> None:
        self.learn(clock)
        self.after.append(key)
        del self.after[:-8]

    # ----------------------------------------------------------------------------------------- replies

    def _on_reply(self, reply: PublishReply, now: float) -> list[Effect]:
        self.waiting_since = now
        if reply.producer != self.producer:
            return []  # one that has passed
        if reply.status == PUBLISH_STATUS_FENCED:
            self.fenced = not self.settings.passing
            if self.settings.passing:
                self._give_up(reply)  # it was forgotten meanwhile
            return []
        if reply.status == PUBLISH_STATUS_NOT_FOUND:
            # The set is not used again, so that no sequence is missing in it.
            self.given_up[tuple(reply.groups)] = None
            self._give_up(reply)
            return []
        if reply.status != PUBLISH_STATUS_OK and any(group in self.lost for group in reply.groups):
            self._give_up(reply)  # it was closed, and is gone by now
        if reply.status != PUBLISH_STATUS_OK:
            # Refused: nothing was stored. Wait, then repeat everything in the order sent.
            self.retry_at = now + 0.2
            return []
        groups = tuple(reply.groups)
        if reply.open_token:
            if not any(request.message.open_token == reply.open_token for request in self.outstanding):
                return []  # answered before, through another gateway
            self.epochs[groups] = reply.epoch
            self.sequences[groups] = reply.last_sequence
            self._forget(lambda request: request.message.open_token == reply.open_token)
            return []
        self.credits = reply.credits
        if not reply.duplicate:
            self.patience_s = self.settings.patience_s
        for index in range(reply.count):
            key = (self.producer, groups, reply.first_sequence + index)
            offsets = {offset.group: offset.first_offset + index for offset in reply.offsets}
            self.board.receipts.append(Receipt(key, reply.order_key, offsets, reply.duplicate))
            for request in self.outstanding:
                if tuple(request.message.groups) == groups:
                    request.missing.pop(key[2], None)
            clock = self.clock_in(reply)
            self._see(clock, key)
            self.board.post(clock, key)
        self._forget(lambda request: not request.missing)
        return []

    def _give_up(self, reply: PublishReply) -> None:
        def is_meant(request: Request) -> bool:
            message = request.message
            place = (tuple(message.groups), message.first_sequence, message.open_token)
            return place == (tuple(reply.groups), reply.first_sequence, reply.open_token)

        for request in self.outstanding:
            if is_meant(request):
                keys = [(self.producer, tuple(request.message.groups), sequence) for sequence in request.missing]
                self.board.given_up.update(dict.fromkeys(keys))
        self._forget(is_meant)

    def _forget(self, is_done: Callable[[Request], bool]) -> None:
        self.outstanding = [request for request in self.outstanding if not is_done(request)]


class EarlierPublisher(EarlierClient):
    """What it has seen is a Seen, and not a clock."""

    def __init__(self, name: str, settings: ClientSettings, board: Board) -> None:
        super().__init__(name, settings, board)
        self.seen = Stamp()
        self.seen_epoch = 0

    def session_token(self) -> bytes:
        return times.seen_from(self.seen, self.seen_epoch).SerializeToString()

    def learn(self, clock: Any) -> None:
        seen = Seen.FromString(clock)
        self.seen.merge(times.stamp_from(seen))
        self.seen_epoch = max(self.seen_epoch, seen.epoch)

    def clock_in(self, reply: PublishReply) -> bytes:
        return reply.session

    def waits_for(self) -> str:
        return f"{len(self.outstanding)} requests"
