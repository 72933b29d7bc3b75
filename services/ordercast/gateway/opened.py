"""An envelope that left a gateway."""

from dataclasses import dataclass, field

from ordercast.core.cells import groups_within, names_group
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX
from ordercast.core.submission import Submitted
from ordercast.gateway.producer import WaitingRequest
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered


@dataclass(slots=True)
class Open(Submitted):
    """An envelope that is not finished, with what the gateway has to know to answer it."""

    #: The requests in it, one list per range of the header.
    requests: list[list[WaitingRequest]] = field(default_factory=list)

    def is_for(self, name: str) -> bool:
        """Whether it is for this group or cell."""
        return name in self.groups or names_group(self.envelope.header, name)

    def check(self, delivered: EnvelopeDelivered) -> None:
        """Refuse what is no delivery of this envelope: it says of each of its messages where it went, once."""
        header = self.envelope.header
        ranges = header.ranges
        if delivered.group not in self.groups or len(delivered.outcomes) != len(ranges):
            raise RemoteProtocolError("not a delivery of this envelope")
        if len(delivered.bases) != len(groups_within(delivered.group, header)):
            raise RemoteProtocolError("not a delivery to the groups of this envelope")
        if any(offset > CLOCK_MAX for offset in delivered.bases):
            raise RemoteProtocolError("an offset beyond all limits")
        for range_, outcome in zip(ranges, delivered.outcomes, strict=True):
            at = range_.first_sequence
            for span in outcome.spans:
                offsets = (span.first_offset, *span.offsets)
                if span.first_sequence != at or not span.count or max(offsets) > CLOCK_MAX:
                    raise RemoteProtocolError("not where the messages of this envelope went")
                at += span.count
            is_whole = at == range_.first_sequence + range_.count
            if not (is_whole or outcome.refusal or range_.open_token):
                raise RemoteProtocolError("not all messages of this envelope")
