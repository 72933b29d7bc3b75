"""What replicas here have delivered, all of it: the order audit needs every one.

A delivery is a few dozen bytes, and many leave in one event.
"""

from dataclasses import dataclass, field

from ordercast.v1.sequencer_pb2 import LogEntry
from ordercast.v1.telemetry_pb2 import Delivery, DeliveryBatch

#: In one event.
BATCH_MAX = 1024

Place = tuple[str, str]


@dataclass(slots=True)
class Pending:
    deliveries: list[Delivery] = field(default_factory=list)
    #: The position behind the last one.
    next: int = -1
    begins: bool = False


def messages_of(entry: LogEntry) -> int:
    """Those that got offsets: duplicates and what was refused got none."""
    return sum(span.count for outcome in entry.outcomes for span in outcome.spans if not span.duplicate)


class Deliveries:
    def __init__(self) -> None:
        #: By domain and group.
        self._pending: dict[Place, Pending] = {}
        self.full: list[tuple[Place, DeliveryBatch]] = []
        self.count = 0

    def take(self, place: Place, position: int, entry: LogEntry, messages: int, wall_ns: int) -> None:
        pending = self._pending.get(place)
        if pending is None:
            pending = self._pending[place] = Pending()
        header = entry.envelope.header
        delivery = Delivery(
            envelope_id=header.id,
            order_key=entry.order_key,
            first_offset=entry.first_offset,
            messages=messages,
            published_ns=header.accepted_ns,
            delivered_ns=wall_ns,
            begins=pending.begins,
        )
        if position != pending.next or not pending.deliveries:
            delivery.position = position
        pending.next, pending.begins = position + 1, False
        pending.deliveries.append(delivery)
        self.count += 1
        if len(pending.deliveries) >= BATCH_MAX:
            self._close(place, pending)

    def reset(self, place: Place) -> None:
        """The log was set anew: positions may jump, once."""
        self._pending.setdefault(place, Pending()).begins = True

    def _close(self, place: Place, pending: Pending) -> None:
        self.full.append((place, DeliveryBatch(deliveries=pending.deliveries)))
        pending.deliveries = []

    def drain(self) -> list[tuple[Place, DeliveryBatch]]:
        for place, pending in self._pending.items():
            if pending.deliveries:
                self._close(place, pending)
        full, self.full, self.count = self.full, [], 0
        return full
