"""How gateways send: everything to the sequencer, until all groups have said that they delivered it."""

from collections.abc import Iterable, Sequence

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, counter_of, pack_u64, unpack_u64
from ordercast.core.session_token import CLOCK_BYTES
from ordercast.core.submission import Groups, Seeing, Sender, Submission, Submitted
from ordercast.core.view import View
from ordercast.v1.common_pb2 import Incarnation, Span
from ordercast.v1.sequencer_pb2 import Disseminate, EnvelopeDelivered
from ordercast_tandem.protocol import Settings
from ordercast_tandem.tandem_pb2 import Unfinished

#: Numbers start at 0, so "has seen nothing" needs a value below.
NOTHING_SEEN = -1


class TandemSubmission(Submission):
    def __init__(self, gateway: Sender, settings: Settings) -> None:
        self.gateway = gateway
        self.settings = settings
        #: In the order in which they left, with the time at which each is sent again.
        self.unfinished: dict[bytes, tuple[Submitted, float]] = {}

    def _sequencer(self, view: View) -> str:
        return next(iter(self.settings.chain(view)), "")

    # What was seen needs no care in sending: whoever has seen a message sends after it was numbered.

    def nothing_seen(self) -> int:
        return NOTHING_SEEN

    def read_session(self, session: bytes) -> int:
        if len(session) != CLOCK_BYTES or unpack_u64(session) > CLOCK_MAX:
            raise RemoteProtocolError("not a number")
        return unpack_u64(session)

    def see(self, seen: int, presented: int) -> int:
        return max(seen, presented)

    def session_of(self, seen: Iterable[int]) -> bytes:
        highest = max(seen)
        return pack_u64(highest) if highest != NOTHING_SEEN else b""

    def choose(self, groups: Groups) -> Incarnation | None:
        sequencer = self._sequencer(self.gateway.view)
        number = self.gateway.connected.get(sequencer)
        return Incarnation(process=sequencer, number=number) if number is not None else None

    def send(self, submitted: Submitted) -> None:
        deadline = self.gateway.now + self.gateway.resend_s
        self.unfinished[submitted.envelope.header.id] = (submitted, deadline)
        again = submitted.sent < self.gateway.now
        message = Disseminate(envelope=submitted.envelope, again=again)
        self.gateway.send((self._sequencer(self.gateway.view),), message)

    def on_delivered(self, submitted: Submitted, source: str, delivered: EnvelopeDelivered) -> None:
        self.read_session(delivered.order_key)

    def on_answered(self, submitted: Submitted, producers: Sequence[Seeing]) -> None:
        """Only now may the next messages of these producers leave: the sequencer may have missed this envelope."""
        number = max(unpack_u64(delivered.order_key) for delivered in submitted.delivered.values())
        for producer in [*producers, *self.gateway.may_follow(submitted)]:
            producer.seen = max(producer.seen, number)

    def places_of(self, submitted: Submitted, index: int) -> list[list[Span]]:
        """One order over all groups, so all of them cut a range into the same runs."""
        spans = [submitted.delivered[group].outcomes[index].spans for group in submitted.groups]
        return [list(run) for run in zip(*spans, strict=True)]

    def is_finished(self, submitted: Submitted) -> bool:
        """Two disks have had it before anybody delivered it: nothing has to be repeated for an answered one."""
        return True

    def on_finished(self, submitted: Submitted) -> None:
        del self.unfinished[submitted.envelope.header.id]
        self._tell()

    def _tell(self) -> None:
        counters = [counter_of(id_) for id_ in self.unfinished]
        self.gateway.send((self._sequencer(self.gateway.view),), Unfinished(counters=counters))

    def on_tick(self) -> None:
        for submitted, deadline in list(self.unfinished.values()):
            if self.gateway.now >= deadline:
                self.send(submitted)

    def on_connected(self, peer: str) -> None:
        if peer == self._sequencer(self.gateway.view):
            self._tell()
            for submitted, _ in list(self.unfinished.values()):
                self.send(submitted)

    def on_view(self, before: View) -> None:
        sequencer = self._sequencer(self.gateway.view)
        if sequencer != self._sequencer(before):
            self.on_connected(sequencer)
