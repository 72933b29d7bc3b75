"""How gateways send: to the source group, to the destinations, and to all groups that may hold these up, at once.

A gateway is a sender in the paper's sense, and has one *source group*, which decides the timestamps of all that it
sends. Messages to a source are counted, and a source places them in the order of their counters [E7]. So nothing
has to be waited for between two messages of a producer, whatever sets they go to: they may all be under way
together.

A timestamp is the gateway's clock, above every earlier one of its own and above all that its producers have seen.
So what somebody answers comes before the answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ordercast.core.clock_submission import ClockSubmission
from ordercast.core.ids import unpack_u64
from ordercast.core.submission import Groups, Seeing, Sender, Submitted
from ordercast.core.view import View
from ordercast.protocols.optimistic import keys
from ordercast.protocols.optimistic.clock import Clock
from ordercast.protocols.optimistic.settings import REQUESTED, Settings
from ordercast.v1.common_pb2 import Envelope, Incarnation
from ordercast.v1.optimistic_pb2 import Multicast
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered


@dataclass(slots=True)
class Unfinished:
    submitted: Submitted
    cast: Multicast
    deadline: float
    delay: float


class OptimisticSubmission(ClockSubmission):
    def __init__(self, gateway: Sender, *, settings: Settings) -> None:
        self.gateway = gateway
        self.settings = settings
        self.clock = Clock()
        #: The group that decides what we send; and of our messages to it, how many there were.
        self.source = ""
        self.counter = 0
        self.timestamp = 0
        #: In the order in which they left.
        self.unfinished: dict[bytes, Unfinished] = {}

    # -------------------------------------------------------------------------------------------------- sending

    def choose(self, groups: Groups) -> Incarnation | None:
        """A member of our source group; the source stays the same as long as it is there."""
        gateway = self.gateway
        view = gateway.view
        if self.source not in view.groups:
            if self.unfinished or not view.groups:
                return None  # [FIFO] What is under way in one source has no order with what another one decides.
            self.source, self.counter = self._home(view), 0
        members = [process for process in view.groups[self.source].working if process in gateway.connected]
        up = [process for process in members if not gateway.is_suspected(process)] or members
        if not up:
            return None
        best = gateway.process if gateway.process in up else up[0]
        return Incarnation(process=best, number=gateway.connected[best])

    def _home(self, view: View) -> str:
        """A group with a replica beside us, if there is one."""
        names = sorted(view.groups)
        beside = [name for name in names if self.gateway.process in view.groups[name].working]
        chosen = beside or names
        return chosen[sum(self.gateway.process.encode()) % len(chosen)]

    def send(self, submitted: Submitted) -> None:
        gateway = self.gateway
        header = submitted.envelope.header
        seen = unpack_u64(header.session) if header.session else -1
        self.timestamp = self._above(seen)
        self.counter += 1
        cast = Multicast(
            envelope=submitted.envelope, source=self.source, counter=self.counter, timestamp=self.timestamp
        )
        delay = gateway.resend_s
        self.unfinished[header.id] = Unfinished(submitted, cast, gateway.now + delay, delay)
        concerned = self._concerned(submitted.groups)
        gateway.send(concerned, cast)
        self._ask_others(cast, concerned)
        gateway.may_follow(submitted)

    def _above(self, seen: int) -> int:
        """Rising strictly, and above what the producers have seen, whatever the wall clock says."""
        return max(self.clock.read(self.gateway.wall), self.timestamp + 1, seen + 1)

    def _concerned(self, groups: Groups) -> tuple[str, ...]:
        return self.gateway.view.replicas_of(tuple(sorted({self.source, *groups})))

    def _ask_others(self, cast: Multicast, concerned: Sequence[str]) -> None:
        """[E11] The request for barriers leaves with the message, and has no body."""
        view = self.gateway.view
        others = [name for name in view.replicas_of(tuple(sorted(view.groups))) if name not in concerned]
        if self.settings.liveness == REQUESTED and others:
            bare = Multicast(
                envelope=Envelope(header=cast.envelope.header),
                source=cast.source,
                counter=cast.counter,
                timestamp=cast.timestamp,
                bare=True,
            )
            self.gateway.send(others, bare)

    # -------------------------------------------------------------------------------------------------- answers

    def on_delivered(self, submitted: Submitted, source: str, delivered: EnvelopeDelivered) -> None:
        keys.check(delivered.order_key)

    def on_answered(self, submitted: Submitted, producers: Sequence[Seeing]) -> None:
        number = max(keys.timestamp_of(one.order_key) for one in submitted.delivered.values())
        self.clock.saw(number, self.gateway.wall)
        for producer in producers:
            producer.seen = max(producer.seen, number)

    def is_finished(self, submitted: Submitted) -> bool:
        """What was delivered is decided, and a majority of its source has the payload on disk."""
        return True

    def on_finished(self, submitted: Submitted) -> None:
        del self.unfinished[submitted.envelope.header.id]

    # -------------------------------------------------------------------------------------------------- silence

    def on_tick(self) -> None:
        gateway = self.gateway
        for one in self.unfinished.values():
            if gateway.now < one.deadline:
                continue
            one.deadline = gateway.now + one.delay
            one.delay = min(one.delay * 2, gateway.settings.resend_s_max)
            self._again(one, self._concerned(one.submitted.groups))

    def _again(self, one: Unfinished, to: Sequence[str]) -> None:
        again = Multicast()
        again.CopyFrom(one.cast)
        again.again = True
        self.gateway.send(to, again)

    def on_connected(self, peer: str) -> None:
        """In the order in which they left: a source places them in no other."""
        for one in self.unfinished.values():
            if peer in self._concerned(one.submitted.groups):
                self._again(one, (peer,))

    def on_view(self, before: View) -> None:
        """Whoever is new gets what is open when it is repeated."""
