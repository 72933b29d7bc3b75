"""An envelope that left a gateway."""

from dataclasses import dataclass, field

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX
from ordercast.core.submission import Submitted
from ordercast.gateway.producer import Waiting
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered


@dataclass(slots=True)
class Open(Submitted):
    """An envelope that is not finished, with what the gateway has to know to answer it."""

    #: The requests in it, one list per range of the header.
    requests: list[list[Waiting]] = field(default_factory=list)

    def check(self, delivered: EnvelopeDelivered) -> None:
        """Refuse what is no delivery of this envelope: it says of each of its messages where it went, once."""
        ranges = self.envelope.header.ranges
        if delivered.group not in self.groups or len(delivered.outcomes) != len(ranges):
            raise RemoteProtocolError("not a delivery of this envelope")
        for range_, outcome in zip(ranges, delivered.outcomes, strict=True):
            at = range_.first_sequence
            for span in outcome.spans:
                if span.first_sequence != at or not span.count or span.first_offset > CLOCK_MAX:
                    raise RemoteProtocolError("not where the messages of this envelope went")
                at += span.count
            is_whole = at == range_.first_sequence + range_.count
            if not (is_whole or outcome.refusal or range_.open_token):
                raise RemoteProtocolError("not all messages of this envelope")
