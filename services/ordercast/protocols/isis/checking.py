"""What members and gateways may say: it is checked here, as a whole, before a handler changes anything.

So a refusal leaves no trace, and nothing that is kept can fail later: what is stored now is encoded, iterated over
and looked up when a view changes, and an error there would lose the view. These checks do not find out a liar. A
member that says what it might have seen is believed, as the paper has it; but no message makes another member
fail, loop or grow beyond what the message itself brings.
"""

from collections.abc import Iterable, Mapping, Sequence

from google.protobuf.message import DecodeError

from ordercast.core.cells import check_targets
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, ID_BYTES
from ordercast.core.view import names_of
from ordercast.protocols.causal.casts import Key
from ordercast.protocols.causal.times import MEMBERS_MAX
from ordercast.protocols.isis import past
from ordercast.protocols.isis.era import Era, key_of
from ordercast.protocols.isis.past import Stamp
from ordercast.protocols.isis.stamps import stamp_in
from ordercast.v1.common_pb2 import Envelope, Header
from ordercast.v1.isis_pb2 import Cast, CastKey, CastStamp, Cut, Flush, Part, Seen, Submit
from ordercast.v1.sequencer_pb2 import LogEntry

#: So many casts of a member may be ordered, or promised about, before they have come. A connection that has so
#: many under way is closed, and what it lost comes again.
AHEAD_MAX = 1 << 17
#: Casts, and open messages, that a view change brings along. Credits keep what is not settled far below that.
FORWARDED_MAX = 1 << 17


def check_numbers(*numbers: int) -> None:
    """Whatever is added to them, they still fit into their fields."""
    if max(numbers) > CLOCK_MAX:
        raise RemoteProtocolError("a number beyond all limits")


def check_keys(keys: Iterable[CastKey], size: int) -> None:
    """They may be of casts in a view of so many members."""
    if any(key.member >= size or not 0 < key.number <= CLOCK_MAX for key in keys):
        raise RemoteProtocolError("not a cast of this view")


def session_of(header: Header) -> Seen:
    """What a gateway says that its client has seen."""
    try:
        seen = Seen.FromString(header.session)
    except DecodeError as error:
        raise RemoteProtocolError(f"not a session: {error}") from error
    check_seen(seen)
    return seen


def check_seen(seen: Seen) -> Stamp:
    check_numbers(seen.epoch)
    return past.stamp_from(seen)


def check_envelope(envelope: Envelope, group: str) -> tuple[str, ...]:
    destinations = names_of(envelope.header.destinations)
    if group not in destinations or len(envelope.header.id) != ID_BYTES:
        raise RemoteProtocolError("not an envelope for this group")
    for range_ in envelope.header.ranges:
        check_numbers(range_.first_sequence, range_.epoch)
    check_targets(envelope.header)
    return destinations


def check_held(held: Submit) -> None:
    """A message to several groups that is open in one whose view ends."""
    check_envelope(held.envelope, held.group)
    check_seen(held.origin)


def check_cast(cast: Cast, size: int) -> Stamp:
    """Its stamp, which counts from the caster's cast before unless it is whole."""
    check_keys((cast.key,), size)
    check_envelope(cast.envelope, cast.group)
    check_numbers(cast.epoch, cast.domain_view, cast.view)
    return past.stamp_from(cast)


def check_entry(group: str, entry: LogEntry) -> None:
    """Of a log that is copied: what it came from may be part of a cut, and then it is delivered as a cast."""
    check_envelope(entry.envelope, group)
    check_stamp(stamp_in(entry))


def check_stamp(stamp: CastStamp) -> None:
    check_keys((stamp.key,), MEMBERS_MAX)
    check_numbers(stamp.epoch, stamp.view)
    past.stamp_from(stamp)


def check_part(part: Part) -> None:
    """Without a view it is of a group that is gone."""
    check_numbers(part.epoch, part.view)
    if part.view:
        check_keys((part.key,), MEMBERS_MAX)


def check_order(era: Era, first: int, keys: Sequence[CastKey]) -> list[tuple[int, Key]]:
    """What of it is news: it contradicts nothing that is known, and itself neither."""
    check_numbers(first)
    check_keys(keys, len(era.members))
    news: dict[Key, int] = {}
    for position, key in enumerate(map(key_of, keys), first):
        if position < era.settled:
            continue
        known = era.places.get(position)
        if known is not None and known != key:
            raise RemoteProtocolError(f"two casts at position {position}")
        if known is not None:
            continue
        if key in era.place_of or key in news or key[1] <= era.settled_counts[key[0]]:
            raise RemoteProtocolError(f"a cast at {position} that has another place")
        if key[1] > era.received[key[0]] + (AHEAD_MAX if key[0] != era.me else 0):
            raise RemoteProtocolError("an order of what is far from being cast")
        news[key] = position
    return [(position, key) for key, position in news.items()]


def check_contribution(flush: Flush, ends: int, size: int, casts: Mapping[Key, Cast], era: Era | None) -> None:
    """To the end of a view of so many members. What its sender has comes before it, on the same connection, so it
    is here. `era` is that view, if we contribute to its end as well: then what everyone has, we have.
    """
    if flush.ends != ends or len(flush.received) != size or len(flush.settled_counts) != size:
        raise RemoteProtocolError("not a contribution")
    if len(flush.positions) != len(flush.keys):
        raise RemoteProtocolError("not a contribution")
    check_keys(flush.keys, size)
    check_seen(flush.confirmed)
    check_numbers(flush.epoch, flush.settled, *flush.received, *flush.settled_counts, *flush.positions)
    for member, (settled, received) in enumerate(zip(flush.settled_counts, flush.received, strict=True)):
        if not 0 <= received - settled <= len(casts):
            raise RemoteProtocolError("a contribution without its casts")
        if any((member, number) not in casts for number in range(settled + 1, received + 1)):
            raise RemoteProtocolError("a contribution without its casts")
    if era is None or flush.settled <= era.settled:
        return
    if flush.settled > era.ordered or list(flush.settled_counts) != era.counts_below(flush.settled):
        raise RemoteProtocolError("a contribution that calls settled what is not here")
    # An order may come before its casts do.
    if any(era.places[place] not in era.casts for place in range(era.settled, flush.settled)):
        raise RemoteProtocolError("a contribution that calls settled what is not here")


def check_cut(cut: Cut, size: int) -> None:
    """The end of a view of so many members: of each member the casts that follow each other."""
    check_numbers(cut.epoch, cut.ends, cut.first_position)
    check_keys(cut.keys, size)
    check_seen(cut.confirmed)
    last: dict[int, int] = {}
    for key in cut.keys:
        if last.get(key.member, key.number - 1) != key.number - 1:
            raise RemoteProtocolError("an end that leaves out a cast, or has one twice")
        last[key.member] = key.number


def check_cut_of_mine(cut: Cut, era: Era, position: int) -> None:
    """The same, of a view that we are in, with so much in our log: what everyone has, we have, and what is visible
    is in the cut at the latest.
    """
    check_keys(cut.keys, len(era.members))
    if not position <= cut.first_position + len(cut.keys):
        raise RemoteProtocolError("an end of a view that is before what is visible")
    if cut.first_position > max(position, era.ordered):
        raise RemoteProtocolError("an end of a view that is beyond what is ordered")
    for place in range(position, cut.first_position):
        if era.places.get(place) not in era.casts:
            raise RemoteProtocolError("an end of a view behind casts that are not here")
