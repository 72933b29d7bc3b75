"""Histories: what a replica stamped, and what it knows of its peers' stamps.

[SCALATOM 4.1] A history is the sequence of (envelope, rec_ts) of one replica. [E1] The entry carries rec_ts
itself, not the clock after it was raised. [E3] A peer's history is complete up to n once the clock that came
with it is above n, for whatever that peer stamps later gets at least that clock.
"""

from bisect import bisect_left
from collections.abc import Callable, Container
from dataclasses import dataclass

from ordercast.core.ids import KEY_MIN


@dataclass(slots=True)
class Statement:
    """'These are all my entries with base <= rec_ts < clock', less forgotten ones, all of them <= forgotten."""

    base: int
    clock: int
    entries: list[tuple[int, bytes]]
    forgotten: bytes


#: Forgotten entries that are known one by one; of older ones only the highest order key is kept.
FORGOTTEN_MAX = 64


class OwnHistory:
    """Entries by rising rec_ts, until they are forgotten; and how far back forgetting reaches (E8's F)."""

    def __init__(self) -> None:
        self._stamps: list[int] = []
        self._ids: list[bytes] = []
        self._entry: dict[bytes, int] = {}
        #: Forgotten entries, by rising rec_ts, and the highest order key from each one to the last.
        self._forgotten: list[tuple[int, bytes]] = []
        self._floor: tuple[int, bytes] = (-1, KEY_MIN)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def is_whole(self) -> bool:
        """Each envelope in it has one stamp."""
        return len(self._ids) == len(self._stamps) == len(self._entry)

    def add(self, id_: bytes, rec_ts: int) -> None:
        """The lowest entry of an envelope is the one that counts: a hand-over brings others' as well."""
        known = self._entry.get(id_)
        if known is not None and known <= rec_ts:
            return
        if known is not None:
            self._remove(id_, known)
        index = bisect_left(self._stamps, rec_ts)
        self._stamps.insert(index, rec_ts)
        self._ids.insert(index, id_)
        self._entry[id_] = rec_ts

    def entry(self, id_: bytes) -> int | None:
        return self._entry.get(id_)

    def _remove(self, id_: bytes, rec_ts: int) -> None:
        # Own stamps differ. Entries that were handed over may be equal, of many members a few.
        index = self._ids.index(id_, bisect_left(self._stamps, rec_ts))
        del self._stamps[index], self._ids[index]

    def forget(self, id_: bytes, key: bytes) -> None:
        rec_ts = self._entry.pop(id_, None)
        if rec_ts is None:
            return
        self._remove(id_, rec_ts)
        self._forgotten.insert(bisect_left(self._forgotten, (rec_ts, key)), (rec_ts, key))
        if len(self._forgotten) > FORGOTTEN_MAX:
            self.prune(self._forgotten[FORGOTTEN_MAX // 2][0])

    def forget_all_below(self, clock: int, key: bytes) -> None:
        """After a restart or a snapshot: any entry below the clock may have been forgotten, up to the key."""
        self._forgotten = []
        self._floor = (clock, max(self._floor[1], key))

    def keep(self, ids: Container[bytes], clock: int, key: bytes) -> None:
        """In a new configuration: only these; the others are delivered, up to the key."""
        kept = [(ts, id_) for ts, id_ in zip(self._stamps, self._ids, strict=True) if id_ in ids]
        self._stamps, self._ids = [ts for ts, _ in kept], [id_ for _, id_ in kept]
        self._entry = {id_: ts for ts, id_ in kept}
        self.forget_all_below(clock, key)

    def prune(self, told: int) -> None:
        """Every peer was told of the entries below this: keep what was forgotten among them as one key."""
        count = bisect_left(self._forgotten, (told, b""))
        if count:
            key = max(k for _, k in self._forgotten[:count])
            self._floor = (max(self._floor[0], self._forgotten[count - 1][0]), max(self._floor[1], key))
            del self._forgotten[:count]

    def statement(self, base: int, clock: int, is_free: Callable[[bytes], bool]) -> Statement:
        """What to tell a peer that was told everything below base.

        [E4] While an entry is withheld from the peer, the clock it is told is at most that entry's rec_ts.
        Otherwise: A1 has m' at 5 and A2 lacks it; A1 gossips clock 11 without the entry; A2 counts {A1, A2}
        as complete for m at 10 and delivers it; then {A1, A3} decide m' at 5.
        """
        entries: list[tuple[int, bytes]] = []
        for index in range(bisect_left(self._stamps, base), len(self._ids)):
            rec_ts, id_ = self._stamps[index], self._ids[index]
            if rec_ts >= clock:
                break
            if not is_free(id_):
                clock = rec_ts
                break
            entries.append((rec_ts, id_))
        while entries and entries[-1][0] >= clock:
            entries.pop()  # at the same place as the one that is withheld: from a hand-over
        return Statement(base, clock, entries, self.forgotten_since(base))

    def forgotten_since(self, base: int) -> bytes:
        key = self._floor[1] if base <= self._floor[0] else KEY_MIN
        for rec_ts, forgotten in self._forgotten:
            if rec_ts >= base and forgotten > key:
                key = forgotten
        return key


@dataclass(slots=True)
class Peer:
    """Another replica of the group, as this one knows it."""

    #: c[k]: its history is known to be complete below this.
    clock: int = 0
    #: Its F: it counts for us once our own delivered prefix has reached this key.
    forgotten: bytes = KEY_MIN
    #: How many envelopes it has delivered.
    position: int = 0
    #: What it was told of ours, and what it should hear as soon as nothing is withheld.
    told: int = 0
    wants: int = -1
