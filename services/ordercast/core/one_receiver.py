"""The simplest Submission: all envelopes go to one process, until all of their groups have delivered them.

It suits protocols in which one process at a time gives every message its number, and a message that was delivered
is safe. What was sent is sent again when there was no answer for a while, when the connection is new, and when
another process is the receiver. So the receiver has to know an envelope again by its id.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ordercast.core.clock_submission import ClockSubmission
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, counter_of, sn_of
from ordercast.core.session_token import CLOCK_BYTES
from ordercast.core.submission import Groups, Seeing, Sender, Submitted
from ordercast.core.view import View
from ordercast.v1.common_pb2 import Incarnation
from ordercast.v1.sequencer_pb2 import Disseminate, EnvelopeDelivered


class OneReceiver(ClockSubmission):
    def __init__(
        self, gateway: Sender, *, receiver: Callable[[View], str], unfinished: Callable[..., Any]
    ) -> None:
        """`receiver`: the process that envelopes go to while this is the view; empty if there is none.

        `unfinished` makes the message that tells the receiver which envelopes of this gateway may still be
        repeated: those with these `counters` (core.ids.counter_of). It may forget the others.
        """
        self.gateway = gateway
        self.receiver = receiver
        self.make_unfinished = unfinished
        #: In the order in which they left, with the time at which each is sent again.
        self.unfinished: dict[bytes, tuple[Submitted, float]] = {}

    def choose(self, groups: Groups) -> Incarnation | None:
        receiver = self.receiver(self.gateway.view)
        number = self.gateway.connected.get(receiver)
        return Incarnation(process=receiver, number=number) if number is not None else None

    def send(self, submitted: Submitted) -> None:
        deadline = self.gateway.now + self.gateway.resend_s
        self.unfinished[submitted.envelope.header.id] = (submitted, deadline)
        again = submitted.sent < self.gateway.now
        message = Disseminate(envelope=submitted.envelope, again=again)
        self.gateway.send((self.receiver(self.gateway.view),), message)

    # ------------------------------------------------------------------------------------------------ answers

    def on_delivered(self, submitted: Submitted, source: str, delivered: EnvelopeDelivered) -> None:
        key = delivered.order_key
        if len(key) < CLOCK_BYTES or sn_of(key) > CLOCK_MAX:
            raise RemoteProtocolError("not an order key")

    def on_answered(self, submitted: Submitted, producers: Sequence[Seeing]) -> None:
        """Only now may the next messages of these producers leave: the receiver may have missed this envelope."""
        number = max(sn_of(delivered.order_key) for delivered in submitted.delivered.values())
        for producer in [*producers, *self.gateway.may_follow(submitted)]:
            producer.seen = max(producer.seen, number)

    def is_finished(self, submitted: Submitted) -> bool:
        """What was delivered is safe without us, so an answered one has to be repeated to nobody."""
        return True

    def on_finished(self, submitted: Submitted) -> None:
        del self.unfinished[submitted.envelope.header.id]
        self._tell_unfinished()

    def _tell_unfinished(self) -> None:
        message = self.make_unfinished(counters=[counter_of(id_) for id_ in self.unfinished])
        self.gateway.send((self.receiver(self.gateway.view),), message)

    # ------------------------------------------------------------------------------------------------ silence

    def on_tick(self) -> None:
        for submitted, deadline in list(self.unfinished.values()):
            if self.gateway.now >= deadline:
                self.send(submitted)

    def on_connected(self, peer: str) -> None:
        if peer == self.receiver(self.gateway.view):
            self._tell_unfinished()
            for submitted, _ in list(self.unfinished.values()):
                self.send(submitted)

    def on_view(self, before: View) -> None:
        receiver = self.receiver(self.gateway.view)
        if receiver != self.receiver(before):
            self.on_connected(receiver)
