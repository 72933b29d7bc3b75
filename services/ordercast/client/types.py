"""What users hold in their hands: receipts, deliveries, TLS settings; and the checks of what they pass in."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ordercast.client.errors import InvalidArgument
from ordercast.client.session_tokens import parts_of
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.limits import AROUND_BYTES_MAX, PAYLOAD_BYTES_MAX
from ordercast.v1.common_pb2 import Message, MessageField
from ordercast.v1.sequencer_pb2 import StartAt

#: Names of destination groups, sorted.
Groups = tuple[str, ...]
#: Where to begin reading: "earliest", "latest", an offset, a time, or how long ago.
Start = str | int | datetime | timedelta

EPOCH = datetime.fromtimestamp(0, UTC)

GROUPS_MAX = 64
PRODUCER_NAME_BYTES_MAX = 128

#: Never the first byte of a text in UTF-8: an anonymous producer is not taken for a named one.
ANONYMOUS = b"\xff"


@dataclass(slots=True)
class Placed:
    """What the receipts of messages that were delivered together have in common."""

    id_prefix: str
    order_key: bytes
    first_sequence: int
    #: (group, offset of the first)
    first_offsets: tuple[tuple[str, int], ...]
    duplicate: bool
    #: For which groups each of them is, if not all are for the same.
    groups: Sequence[Groups] = ()
    #: Of each of them, once somebody has asked.
    _counted: list[dict[str, int]] = field(default_factory=list)

    def offsets(self, index: int) -> dict[str, int]:
        """Of one of them."""
        if not self.groups:
            return {group: first + index for group, first in self.first_offsets}
        if not self._counted:
            self._count()
        return dict(self._counted[index])

    def _count(self) -> None:
        ends = dict(self.first_offsets)
        for groups in self.groups:
            self._counted.append({group: ends[group] for group in groups if group in ends})
            for group in self._counted[-1]:
                ends[group] += 1


class Receipt:
    """The message is durable at a majority of every destination group, and its place in the order is fixed.

    There is one for each message, so each holds little, and says the rest when it is asked.
    """

    __slots__ = ("_placed", "_sequence")

    def __init__(self, placed: Placed, sequence: int) -> None:
        self._placed = placed
        self._sequence = sequence

    @property
    def message_id(self) -> str:
        return f"{self._placed.id_prefix}-{self._sequence}"

    @property
    def order_key(self) -> bytes:
        """Compares bytewise with those of other messages in the domain. Messages sent together share one."""
        return self._placed.order_key

    @property
    def offsets(self) -> dict[str, int]:
        """By group. Empty for a repetition so late that its place is no longer known."""
        return self._placed.offsets(self._sequence - self._placed.first_sequence)

    @property
    def duplicate(self) -> bool:
        """The message was there already: this is the receipt of the first time."""
        return self._placed.duplicate

    def __repr__(self) -> str:
        again = ", duplicate" if self.duplicate else ""
        return f"<Receipt {self.message_id} at {self.offsets}{again}>"


@dataclass(slots=True)
class Delivery:
    """One message as a group's log has it."""

    group: str
    offset: int
    order_key: bytes
    payload: bytes
    key: bytes
    headers: dict[str, bytes]
    producer: bytes
    sequence: int
    #: The message id without the sequence: the same for many deliveries, so it is made once.
    id_prefix: str = field(repr=False)
    #: The subscription that acknowledges it.
    _source: Any = field(default=None, repr=False, compare=False)
    #: In milliseconds since 1970; 0 if the gateway did not say.
    stored_ms: int = field(default=0, repr=False, compare=False)

    @property
    def message_id(self) -> str:
        """The same that the publisher's receipt shows."""
        return f"{self.id_prefix}-{self.sequence}"

    @property
    def stored_at(self) -> datetime | None:
        """When the replica that it was read from stored it, by that replica's clock; in UTC.

        Another replica may say something else. None from a gateway of an earlier version.
        """
        return EPOCH + timedelta(milliseconds=self.stored_ms) if self.stored_ms else None


@dataclass(frozen=True, slots=True)
class TLS:
    """How to recognise gateways, and to be recognised. The files are read anew at each connection."""

    #: Certificates of the authorities that sign gateways' certificates.
    ca: Path
    #: Our own certificate and its key, where gateways ask for one.
    cert: Path | None = None
    key: Path | None = None
    #: The name in the gateway's certificate, if it is not the host that is dialled.
    server_name: str | None = None

    def __post_init__(self) -> None:
        if (self.cert is None) != (self.key is None):
            raise InvalidArgument("a client certificate needs its key, and a key its certificate")


# ------------------------------------------------------------------------------------------------ message ids


def id_prefix(producer: bytes, cells: Iterable[str]) -> str:
    """What the ids of a producer's messages to one set of cells begin with.

    >>> id_prefix(b"billing", ["b", "a"]) == id_prefix(b"billing", ["a", "b"])
    True
    >>> id_prefix(b"billing", ["a"]).startswith("billing-")
    True
    """
    digest = blake2b("\0".join(sorted(cells)).encode(), digest_size=4).hexdigest()
    return f"{producer_text(producer)}-{digest}"


def message_id(producer: bytes, cells: Iterable[str], sequence: int) -> str:
    return f"{id_prefix(producer, cells)}-{sequence}"


def producer_text(producer: bytes) -> str:
    """The name of a named producer, and hexadecimal digits for any other."""
    try:
        text = producer.decode()
    except UnicodeDecodeError:
        return producer.hex()
    return text if text.isprintable() else producer.hex()


# ----------------------------------------------------------------------------------------- what users pass in


def checked_groups(to: str | Iterable[str]) -> Groups:
    """A single group may be given as its name."""
    groups = (to,) if isinstance(to, str) else tuple(to)
    try:
        return _checked_groups(groups)
    except TypeError:  # What cannot be hashed is no name either.
        raise InvalidArgument(f"groups are named by texts, not by {groups!r}") from None


@lru_cache(maxsize=1024)
def _checked_groups(groups: Groups) -> Groups:
    """Programs publish to the same sets again and again."""
    if not groups:
        raise InvalidArgument("a message needs at least one destination group")
    if len(groups) > GROUPS_MAX:
        raise InvalidArgument(f"{len(groups)} destination groups; at most {GROUPS_MAX}")
    for group in groups:
        if not isinstance(group, str) or not group:
            raise InvalidArgument(f"a group is named by a text that is not empty, not by {group!r}")
    if len(dict.fromkeys(groups)) < len(groups):
        raise InvalidArgument("a destination group is named twice")
    return tuple(sorted(groups))


def checked_message(
    payload: bytes, key: bytes | str = b"", headers: Mapping[str, bytes | str] | None = None
) -> Message:
    if not isinstance(payload, bytes | bytearray | memoryview):
        raise InvalidArgument(f"a payload is bytes, not {type(payload).__name__}")
    message = Message(payload=bytes(payload))
    if key:
        message.key = _as_bytes(key, "a key")
    for name, value in (headers or {}).items():
        if not isinstance(name, str):
            raise InvalidArgument(f"a header is named by a text, not by {name!r}")
        message.headers.append(MessageField(name=name, value=_as_bytes(value, f"the header {name!r}")))
    if len(message.payload) > PAYLOAD_BYTES_MAX:
        raise InvalidArgument(f"a payload of {len(message.payload)} bytes; at most {PAYLOAD_BYTES_MAX}")
    if (key or headers) and (around := message.ByteSize() - len(message.payload)) > AROUND_BYTES_MAX:
        raise InvalidArgument(f"a key and headers of {around} bytes; at most {AROUND_BYTES_MAX}")
    return message


def _as_bytes(value: bytes | str, what: str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, bytes):
        raise InvalidArgument(f"{what} is bytes or a text, not {type(value).__name__}")
    return value


def checked_producer(name: str) -> bytes:
    """The id of a named producer: its name."""
    encoded = name.encode()
    if not name or not name.isprintable() or len(encoded) > PRODUCER_NAME_BYTES_MAX:
        raise InvalidArgument(f"a producer's name is printable, of 1 to {PRODUCER_NAME_BYTES_MAX} bytes")
    return encoded


def checked_token(token: bytes | None) -> bytes:
    """Empty for none. Only gateways can tell whether it is a true one."""
    if token is None:
        return b""
    if not isinstance(token, bytes):
        raise InvalidArgument(f"a session token is bytes, not {type(token).__name__}")
    try:
        parts_of(token)
    except RemoteProtocolError as error:
        raise InvalidArgument(str(error)) from None
    return token


def checked_timeout(timeout: float) -> float:
    if not timeout > 0:
        raise InvalidArgument(f"a timeout is a positive number of seconds, not {timeout!r}")
    return timeout


def checked_start(start: Start | None, last: int | None = None) -> StartAt | None:
    """`"earliest"`, `"latest"`, an offset, a time, how long ago, or None for "where the cursor stands"."""
    if last is not None:
        if start is not None:
            raise InvalidArgument("start and last are two places to begin at: give one of them")
        if isinstance(last, bool) or not isinstance(last, int) or not 0 <= last < 1 << 64:
            raise InvalidArgument(f"last is a number of messages, not {last!r}")
        return StartAt(last=last)
    match start:
        case None:
            return None
        case timedelta():
            return _stored_at(datetime.now(UTC), start)
        case datetime():
            return _stored_at(start)
        case "earliest":
            return StartAt(earliest=True)
        case "latest":
            return StartAt(latest=True)
        case int() if not isinstance(start, bool) and 0 <= start < 1 << 64:
            return StartAt(offset=start)
    raise InvalidArgument(
        f"start is 'earliest', 'latest', an offset, a datetime, or a timedelta for so long ago, not {start!r}"
    )


def _stored_at(at: datetime, ago: timedelta = timedelta(0)) -> StartAt:
    """A time without a zone is local time, as everywhere in Python."""
    try:
        since = at.astimezone(UTC) - ago - EPOCH
    except (OverflowError, ValueError, OSError):
        raise InvalidArgument(f"there is no such start: {ago} before {at}") from None
    return StartAt(stored_ms=max(since // timedelta(milliseconds=1), 0))


def checked_starts(start: str | Mapping[str, str | int], groups: Groups) -> dict[str, StartAt]:
    """Of several groups: `"earliest"` or `"latest"` for all of them, or a start for each."""
    if isinstance(start, str):
        start = dict.fromkeys(groups, start)
    if not isinstance(start, Mapping):
        raise InvalidArgument("an offset is one group's: give a start for each group, by name")
    if sorted(start) != list(groups):
        raise InvalidArgument("there must be a start for each group, and for no other")
    found: dict[str, StartAt] = {}
    for group in groups:
        if isinstance(start[group], datetime | timedelta):
            raise InvalidArgument(f"several groups begin at offsets, not at a time: {group!r}")
        checked = checked_start(start[group])
        if checked is None:
            raise InvalidArgument(f"there is no cursor that tells where to start in {group!r}")
        found[group] = checked
    return found
