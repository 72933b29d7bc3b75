"""An envelope that left a gateway."""

from dataclasses import dataclass, field

from ordercast.gateway.producer import Groups, Waiting
from ordercast.v1.common_pb2 import Envelope
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered


@dataclass(slots=True)
class Open:
    """An envelope that is not finished."""

    envelope: Envelope
    groups: Groups
    #: The requests in it, one list per range of the header.
    requests: list[list[Waiting]]
    deadline: float
    delay: float
    sent: float
    delivered: dict[str, EnvelopeDelivered] = field(default_factory=dict)
    durable: dict[str, dict[str, None]] = field(default_factory=dict)
    decided: bool = False
    answered: bool = False
