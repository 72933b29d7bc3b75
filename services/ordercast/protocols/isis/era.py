"""All that counts within one view of one group: casts, vector time, the order, who has what.

A view ends, and everything in here with it: counts begin at 0 in the next [BSS91 5.5, "Reinitializing VT fields"].
Positions go on, for they are the log's.
"""

import zlib
from dataclasses import dataclass, field

from ordercast.core.quorums import majority
from ordercast.protocols.isis.records import Key
from ordercast.protocols.isis.times import Stamp, Times
from ordercast.v1.isis_pb2 import Cast, CastKey, SyncedRow


@dataclass(slots=True)
class Row:
    """What one member has on disk: of each member's casts how many, and all positions below one."""

    counts: list[int]
    positions: int

    def raise_to(self, counts: list[int], positions: int) -> bool:
        """Rows only rise: late news changes nothing."""
        changed = False
        for member, count in enumerate(counts):
            if count > self.counts[member]:
                self.counts[member] = count
                changed = True
        if positions > self.positions:
            self.positions = positions
            changed = True
        return changed

    def message(self) -> SyncedRow:
        return SyncedRow(counts=self.counts, positions=self.positions)


@dataclass(slots=True)
class Token:
    """[BSS91 5.2] Who orders, from which position on, and how often that changed."""

    holder: int
    turn: int
    since: int
    #: Casts that this holder has ordered, by caster: the token goes where most come from.
    casts_of: dict[int, int] = field(default_factory=dict)
    #: Ordered here, and not told yet.
    untold: list[Key] = field(default_factory=list)
    #: This holder has delivered all that was ordered before its turn.
    is_taken: bool = False


def key_of(message: CastKey) -> Key:
    return (message.member, message.number)


def message_of(key: Key) -> CastKey:
    return CastKey(member=key[0], number=key[1])


class Era:
    def __init__(
        self, group: str, view: int, members: tuple[str, ...], incarnations: tuple[int, ...], me: int, start: int
    ) -> None:
        self.group = group
        self.view = view
        self.members = members
        self.incarnations = incarnations
        self.me = me
        #: Where in the log it begins.
        self.start = start
        size = len(members)
        #: By member: casts received and delivered, without a gap, and the stamp of the last one received.
        self.received = [0] * size
        self.delivered = [0] * size
        self.stamps = [Stamp() for _ in range(size)]
        self.sent = 0
        #: Kept until everyone has them, and their places: whole, with their stamps.
        self.casts: dict[Key, Cast] = {}
        self.times: dict[Key, Times] = {}
        self.carried: dict[Key, Times] = {}
        self.places: dict[int, Key] = {}
        self.place_of: dict[Key, int] = {}
        #: All positions below are known; all ABCASTs at positions below are delivered; all below are everywhere.
        self.ordered = start
        self.passed = start
        self.settled = start
        self.settled_counts = [0] * size
        self.rows = [Row([0] * size, start) for _ in range(size)]
        #: Delivered here and not ordered yet, in this order.
        self.unplaced: dict[Key, None] = {}
        # Any rule will do that all members share; this one spreads groups over them.
        self.token = Token(zlib.crc32(f"{group} {view}".encode()) % size, 0, start)
        #: [6.7] By member: it sends nothing of a lower epoch any more.
        self.epochs = [0] * size
        #: What it promised behind casts of its own that are not here yet: how many, and the epoch.
        self.promises: list[list[tuple[int, int]]] = [[] for _ in range(size)]
        #: The view ended and all of it is here: what is not delivered yet is only waiting for other groups.
        self.is_closed = False
        #: A later view is defined: nothing more is ordered here, for what is ordered now is in no contribution.
        self.is_sealed = False
        #: What everyone knows of our row.
        self.told_row = Row([0] * size, start)
        #: By envelope id, what is kept.
        self.ids: dict[bytes, Key] = {}
        #: The last ABCAST of our own; and the position behind the last one that was delivered here.
        self.total_sent = 0
        self.total_end = start

    @property
    def others(self) -> list[str]:
        return [name for index, name in enumerate(self.members) if index != self.me]

    @property
    def is_holder(self) -> bool:
        """And has taken over: it delivered everything that was ordered before its turn."""
        token = self.token
        if self.is_sealed:
            return False
        if token.holder != self.me or token.is_taken:
            return token.holder == self.me
        if self.ordered >= token.since:
            before = (key for position, key in self.places.items() if position < token.since)
            token.is_taken = all(self.is_delivered(key) for key in before)
        return token.is_taken

    def index_of(self, process: str, incarnation: int) -> int | None:
        """Which member that life of a process is."""
        for index, name in enumerate(self.members):
            if name == process:
                return index if self.incarnations[index] == incarnation else None
        return None

    @property
    def is_waiting(self) -> bool:
        """Something is not delivered yet, or the era is about to end."""
        return self.is_closed or self.delivered != self.received

    def is_delivered(self, key: Key) -> bool:
        return self.delivered[key[0]] >= key[1]

    # ------------------------------------------------------------------------------------------ taking

    def take(self, key: Key, cast: Cast, stamp: Stamp) -> None:
        """The next cast of its caster."""
        assert key[1] == self.received[key[0]] + 1
        self.received[key[0]] = key[1]
        self.stamps[key[0]] = stamp
        self.keep(key, cast, stamp)
        if self.promises[key[0]]:
            self._hold_to_promises(key[0])

    def promise(self, member: int, sent: int, epoch: int) -> None:
        # Of two of them, one that says less and counts later says nothing.
        kept = [promise for promise in self.promises[member] if promise[0] < sent or promise[1] > epoch]
        if not any(before <= sent and higher >= epoch for before, higher in kept):
            kept.append((sent, epoch))
        self.promises[member] = kept
        self._hold_to_promises(member)

    def _hold_to_promises(self, member: int) -> None:
        due = [epoch for sent, epoch in self.promises[member] if sent <= self.received[member]]
        self.epochs[member] = max([self.epochs[member], *due])
        self.promises[member] = [
            promise for promise in self.promises[member] if promise[0] > self.received[member]
        ]

    def keep(self, key: Key, cast: Cast, stamp: Stamp) -> None:
        self.casts[key] = cast
        self.times[key] = stamp.all()
        self.carried[key] = stamp.carried
        self.ids[cast.envelope.header.id] = key

    def lose(self, key: Key) -> None:
        id_ = self.casts[key].envelope.header.id
        if self.ids.get(id_) == key:
            del self.ids[id_]
        del self.casts[key], self.times[key], self.carried[key]

    def place(self, position: int, key: Key) -> None:
        self.places[position] = key
        self.place_of[key] = position
        self.unplaced.pop(key, None)
        while self.ordered in self.places:
            self.ordered += 1

    # ------------------------------------------------------------------------------------------ delivery

    def precedes_is_delivered(self, key: Key) -> bool:
        """[5.1 step 2; 6.1 rules 2.1', 2.2'] It is its caster's next, and its past in this group is delivered."""
        if key[1] != self.delivered[key[0]] + 1:
            return False
        time = self.times[key].get(self.group)
        return time is None or time.is_covered(self.view, self.delivered)

    def is_in_turn(self, key: Key) -> bool:
        """[5.2 step 5] An ABCAST that is ordered, and every ABCAST ordered before it is delivered."""
        place = self.place_of.get(key)
        return place is not None and place == self.pass_over()

    def pass_over(self) -> int:
        """The first position whose cast is an ABCAST that is not delivered, or is not known."""
        while True:
            key = self.places.get(self.passed)
            if key is None:
                return self.passed
            if not self.is_delivered(key):
                cast = self.casts.get(key)
                if cast is None or cast.total:
                    return self.passed
            self.passed += 1

    def candidates(self) -> list[Key]:
        """Of each member the first that is not delivered."""
        return [
            (member, count + 1) for member, count in enumerate(self.delivered) if count < self.received[member]
        ]

    # ----------------------------------------------------------------------------------------- stability

    def synced_by(self, key: Key) -> int:
        return sum(1 for row in self.rows if row.counts[key[0]] >= key[1])

    def placed_by(self, position: int) -> int:
        return sum(1 for row in self.rows if row.positions > position)

    def is_visible(self, position: int) -> bool:
        """A majority has the cast on disk, and a majority its position; they need not be the same."""
        key = self.places.get(position)
        needed = majority(len(self.members))
        return (
            key is not None
            and key in self.casts
            and self.placed_by(position) >= needed
            and self.synced_by(key) >= needed
        )

    def is_everywhere(self, position: int) -> bool:
        size = len(self.members)
        return self.placed_by(position) == size and self.synced_by(self.places[position]) == size

    def counts_below(self, position: int) -> list[int]:
        """By member: its casts at positions below this one. Nothing if some of those are not known any more."""
        if position < self.settled:
            return []
        counts = list(self.settled_counts)
        for place, key in self.places.items():
            if place < position:
                counts[key[0]] = max(counts[key[0]], key[1])
        return counts

    def drop(self, position: int) -> Key:
        """[5.3] Everyone has it: the buffers shrink."""
        key = self.places.pop(position)
        del self.place_of[key]
        self.lose(key)
        self.settled = position + 1
        self.settled_counts[key[0]] = key[1]
        return key
