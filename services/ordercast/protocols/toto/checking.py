"""What processes may say: it is checked here, as a whole, before a handler changes anything."""

from collections.abc import Sequence

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, ID_BYTES
from ordercast.core.view import names_of
from ordercast.v1.causal_pb2 import CastKey
from ordercast.v1.toto_pb2 import DagBegin, DagFlush, DagMessage

#: So many agreed messages without a place in the log may a process have under way: gateways' credits keep it
#: far below.
BODIES_MAX = 1 << 17
GROUPS_MAX = 1 << 16


def check_counts(counts: Sequence[int], size: int) -> None:
    if len(counts) != size or any(count > CLOCK_MAX for count in counts):
        raise RemoteProtocolError("not the counts of this view")


def check_keys(keys: Sequence[CastKey], size: int) -> None:
    if any(key.member >= size or not 0 < key.number <= CLOCK_MAX for key in keys):
        raise RemoteProtocolError("not a message of this view")


def check_message(message: DagMessage, members: Sequence[str], source: str = "") -> None:
    """In a view with these members; from its sender, unless somebody else forwards it."""
    check_keys((message.key,), len(members))
    check_counts(message.vector, len(members))
    if message.vector[message.key.member] != message.key.number:
        raise RemoteProtocolError("a message follows itself, and all that its sender sent before")
    if source and members[message.key.member] != source:
        raise RemoteProtocolError("a message of somebody else")
    if not message.agreed:
        if message.id or message.groups or message.HasField("envelope"):
            raise RemoteProtocolError("a message that only votes has no envelope")
        return
    if len(message.id) != ID_BYTES or not message.groups:
        raise RemoteProtocolError("an agreed message has an id, and is for some groups")
    if message.HasField("envelope"):
        header = message.envelope.header
        if header.id != message.id or list(names_of(header.destinations)) != list(message.groups):
            raise RemoteProtocolError("the envelope of another message")


def check_flush(flush: DagFlush, ends: int, size: int) -> None:
    check_counts(flush.received, size)
    check_counts(flush.settled, size)
    check_keys(flush.bodies, size)
    if flush.ends != ends or len(flush.bodies) > BODIES_MAX:
        raise RemoteProtocolError("not a contribution")
    if any(settled > received for settled, received in zip(flush.settled, flush.received, strict=True)):
        raise RemoteProtocolError("a contribution that calls settled what did not come")


def check_begin(begin: DagBegin) -> None:
    groups = list(begin.groups)
    if len(groups) != len(begin.positions) or len(groups) > GROUPS_MAX or groups != sorted(set(groups)):
        raise RemoteProtocolError("not the beginning of a view")
    if any(number > CLOCK_MAX for number in (begin.index, *begin.positions)) or begin.view >= CLOCK_MAX:
        raise RemoteProtocolError("not the beginning of a view")
