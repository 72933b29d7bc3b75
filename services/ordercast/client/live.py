"""Live delivery: what one replica has delivered and the log does not show yet. Without I/O."""

from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from ordercast.client.errors import Internal
from ordercast.client.subscription import parse
from ordercast.client.types import id_prefix
from ordercast.core.ids import group_name
from ordercast.core.silence import Silence
from ordercast.v1.common_pb2 import Batch
from ordercast.v1.gateway_pb2 import SubscribeLiveRequest, SubscribeLiveResponse

#: Producers of which the latest message is remembered, those heard of last.
PRODUCERS_MAX = 4096


@dataclass(frozen=True, slots=True)
class LiveDelivery:
    """One message in causal order. It has no place in the log yet, and a crash may take it back."""

    group: str
    payload: bytes
    key: bytes
    headers: dict[str, bytes]
    producer: bytes
    sequence: int
    id_prefix: str = field(repr=False)

    @property
    def message_id(self) -> str:
        """The same that the publisher's receipt and the log's delivery show."""
        return f"{self.id_prefix}-{self.sequence}"


class LiveReader:
    """Unpacks what comes, and leaves out what came before: a message may be cast again by somebody else."""

    def __init__(self, group: str) -> None:
        self.group = group
        #: By producer, destination set and epoch: the highest sequence so far. A producer's messages to one set
        #: come in their order.
        self._latest: dict[tuple[bytes, str, int], int] = {}
        self.silence = Silence()

    def request(self, replica: str) -> SubscribeLiveRequest:
        """What a new stream begins with."""
        self.silence = Silence()
        return SubscribeLiveRequest(group=self.group, replica=replica, alive=True)

    def received(self, response: SubscribeLiveResponse) -> list[LiveDelivery] | None:
        """None for a sign of life, which tells nothing else."""
        self.silence.heard(response.alive_ms)
        if response.alive_ms:
            return None
        return [delivery for entry in response.entries for delivery in self.unpack(entry)]

    def unpack(self, serialised: bytes) -> list[LiveDelivery]:
        envelope = parse(serialised, self.group).envelope
        try:
            messages = Batch.FromString(envelope.body).messages
        except DecodeError as error:
            raise Internal(f"a damaged message to {self.group!r}: {error}") from error
        names = [group_name(destination.group) for destination in envelope.header.destinations]
        if sum(range_.count for range_ in envelope.header.ranges) != len(messages):
            raise Internal(f"a message to {self.group!r} contradicts itself")
        found: list[LiveDelivery] = []
        start = 0
        for range_ in envelope.header.ranges:
            prefix = id_prefix(range_.producer, names)
            key = (range_.producer, prefix, range_.epoch)
            skipped = max(self._latest.pop(key, 0) + 1 - range_.first_sequence, 0)
            for index in range(min(skipped, range_.count), range_.count):
                message = messages[start + index]
                headers = {field.name: field.value for field in message.headers}
                sequence = range_.first_sequence + index
                found.append(
                    LiveDelivery(
                        self.group, message.payload, message.key, headers, range_.producer, sequence, prefix
                    )
                )
            self._latest[key] = range_.first_sequence + max(range_.count, skipped) - 1
            start += range_.count
        while len(self._latest) > PRODUCERS_MAX:
            del self._latest[next(iter(self._latest))]
        return found
