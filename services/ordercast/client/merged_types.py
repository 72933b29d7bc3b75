"""What users of merged subscriptions hold in their hands: places in a domain's order, and deliveries of several
groups.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ordercast.client.errors import InvalidArgument
from ordercast.client.types import EPOCH
from ordercast.core.place import Place
from ordercast.v1.common_pb2 import Place as PlaceMessage

ORDER_KEY_BYTES_MAX = 64


@dataclass(frozen=True, slots=True, order=True)
class Cut:
    """A place in the order of a domain: a consistent cut through all of its groups.

    Everything before it is in the cut, and nothing else. Cuts of one domain compare as they follow each other.
    As a text, a cut can be kept anywhere.

    >>> cut = Cut(bytes(24), 3)
    >>> Cut.parse(str(cut)) == cut, cut < Cut(bytes(24), 4)
    (True, True)
    """

    order_key: bytes = b""
    index: int = 0

    def __str__(self) -> str:
        return f"{self.order_key.hex()}.{self.index}"

    @classmethod
    def parse(cls, text: str) -> "Cut":
        key, _, index = text.partition(".")
        try:
            return cls.of(Place(bytes.fromhex(key), int(index or "0")))
        except ValueError:
            raise InvalidArgument(f"{text[:80]!r} is no cut: those are printed as hexadecimal digits") from None

    @classmethod
    def of(cls, place: Place) -> "Cut":
        if len(place.order_key) > ORDER_KEY_BYTES_MAX or not 0 <= place.nth < 1 << 32:
            raise InvalidArgument(f"there is no place in the order with a key of {len(place.order_key)} bytes")
        return cls(place.order_key, place.nth)

    @property
    def place(self) -> Place:
        return Place(self.order_key, self.index)


def message_of(place: Place) -> PlaceMessage:
    return PlaceMessage(order_key=place.order_key, index=place.nth)


def place_of(message: PlaceMessage) -> Place:
    return Place(message.order_key, message.index)


@dataclass(slots=True)
class MergedDelivery:
    """One message of a merged subscription. It comes once, however many of the groups it is for."""

    #: By group, of those that are read and that it is for.
    offsets: dict[str, int]
    order_key: bytes
    #: Among the messages that were ordered together, and have the same key.
    index: int
    payload: bytes
    key: bytes
    headers: dict[str, bytes]
    producer: bytes
    sequence: int
    #: The message id without the sequence.
    id_prefix: str = field(repr=False)
    #: The subscription that acknowledges it.
    _source: Any = field(default=None, repr=False, compare=False)
    #: In milliseconds since 1970; 0 if the gateway did not say.
    stored_ms: int = field(default=0, repr=False, compare=False)

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(self.offsets)

    @property
    def cut(self) -> Cut:
        """Behind this message: a subscription that begins there goes on with the next one."""
        return Cut(self.order_key, self.index + 1)

    @property
    def message_id(self) -> str:
        """The same that the publisher's receipt shows."""
        return f"{self.id_prefix}-{self.sequence}"

    @property
    def stored_at(self) -> datetime | None:
        """As of `Delivery`."""
        return EPOCH + timedelta(milliseconds=self.stored_ms) if self.stored_ms else None

    @property
    def _place(self) -> Place:
        return Place(self.order_key, self.index)
