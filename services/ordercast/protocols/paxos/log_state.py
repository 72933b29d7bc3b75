"""What a member of the replicated log remembers, what it may not exceed, and which peer messages it believes.

The records, under a machine's own keys:

    p          Round               the highest round promised: no vote and no promise below it
    d          u64                 decided: slots 0 to decided - 1 are decided
    e<slot>    LogEntryRecord      a vote, or below `decided` the decided item
    s          LogSnapshotRecord   what the client made of the slots before `begins`
    v          LogStandingRecord   whether this member votes (log_admission.py); the first record of every new disk
    l<member>  u64                 the latest life of that member that we heard of
    m<member>  bytes               the disk of that member that we met while we were all founded

`decided` is written with whatever is written next, never by itself. So after a crash a member may have
forgotten that some slots were decided, but its votes for them are there: it then learns it once more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ordercast.core.errors import InvariantBroken, RemoteProtocolError
from ordercast.core.ids import pack_u64, unpack_u64
from ordercast.protocols.paxos.acceptor import RoundKey, round_key, round_message
from ordercast.v1.consensus_pb2 import (
    LOG_STANDING_EMPTY,
    LOG_STANDING_FOUNDER,
    LOG_STANDING_MUTE,
    LOG_STANDING_UNSPECIFIED,
    LogAccept,
    LogAccepted,
    LogDecided,
    LogEntryRecord,
    LogFoundAsk,
    LogFoundGrant,
    LogHeartbeat,
    LogInstall,
    LogItem,
    LogLife,
    LogPrepare,
    LogPromise,
    LogRejected,
    LogRejoin,
    LogRejoined,
    LogSnapshotRecord,
    LogStanding,
    LogStandingRecord,
    LogTail,
    Round,
)

Record = tuple[bytes, bytes | None]

_PROMISED, _DECIDED, _ENTRY, _SNAPSHOT = b"p", b"d", b"e", b"s"
_STANDING, _LIFE, _MET = b"v", b"l", b"m"

#: Rounds and slots stay far below what 64 bits hold: nobody can send us to where counting ends.
NUMBER_MAX = 2**62

#: Below every round that anybody starts.
ROUND_MIN: RoundKey = (0, 0)

#: More than a log has members.
LIVES_COUNT_MAX = 64
DISK_BYTES_MAX = 64


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Times bound how long a fault is felt; none of them is a safety argument.

    Members hold what others send to their own limits: all have to be set alike.
    """

    #: How often a leader shows that it lives, and everyone looks for what is overdue.
    heartbeat_s: float = 0.1
    #: Silence of the leader after which a member starts a round; drawn anew between once and twice this.
    suspect_s: float = 0.5
    #: No answer for so long: ask again, or ask somebody else.
    retry_s: float = 0.3
    #: Slots from the first undecided one that may be voted for.
    window_count_max: int = 32
    #: Proposed batches that wait for votes; what is appended meanwhile becomes the next batch.
    batches_open_max: int = 4
    value_bytes_max: int = 64 * 1024
    #: Values in one Accept or Tail; one value is always let through.
    batch_bytes_max: int = 1024 * 1024
    fetch_count_max: int = 256
    #: Values that wait at the leader for a place in the window.
    queue_count_max: int = 256
    #: Slots since the last Truncate, beyond which the leader refuses to append.
    log_count_max: int = 100_000
    snapshot_bytes_max: int = 3 * 1024 * 1024


@dataclass(slots=True)
class Entry:
    """A slot with a vote, or a decided one."""

    #: None if the item was fetched as decided: in which round it was, is not known here.
    voted: RoundKey | None
    item: LogItem

    def record(self) -> bytes:
        record = LogEntryRecord(item=self.item)
        if self.voted is not None:
            record.voted.CopyFrom(round_message(self.voted))
        return record.SerializeToString()

    @classmethod
    def from_record(cls, data: bytes) -> "Entry":
        record = LogEntryRecord.FromString(data)
        return cls(round_key(record.voted) if record.HasField("voted") else None, record.item)


class LogState:
    """The durable part of a member. Changes are made here and collected; the machine persists them."""

    def __init__(self) -> None:
        self.promised = ROUND_MIN
        self.begins = 0
        self.decided = 0
        self.snapshot = b""
        #: From `begins` to `decided` without a gap; above it only slots that were voted for.
        self.entries: dict[int, Entry] = {}
        #: Unspecified on a disk from before there was this record: it votes.
        self.standing: LogStanding = LOG_STANDING_EMPTY
        self.life = 0
        self.disk = b""
        #: Those that are not 0.
        self.lives: dict[str, int] = {}
        self.met: dict[str, bytes] = {}
        self._changes: list[Record] = []

    def recover(self, records: Sequence[tuple[bytes, bytes]], disk: bytes) -> None:
        """`disk` names a disk without records; one that has them has its name too."""
        self.disk = disk
        if records:
            self.standing = LOG_STANDING_UNSPECIFIED
        else:
            self.stand(LOG_STANDING_EMPTY)
        for key, value in records:
            kind = key[:1]
            if kind == _ENTRY:
                self.entries[unpack_u64(key[1:])] = Entry.from_record(value)
            elif kind == _PROMISED:
                self.promised = round_key(Round.FromString(value))
            elif kind == _DECIDED:
                self.decided = unpack_u64(value)
            elif kind == _SNAPSHOT:
                snapshot = LogSnapshotRecord.FromString(value)
                self.begins, self.snapshot = snapshot.slot, snapshot.snapshot
            elif kind == _STANDING:
                standing = LogStandingRecord.FromString(value)
                self.standing, self.life, self.disk = standing.standing, standing.life, standing.disk
            elif kind == _LIFE:
                self.lives[key[1:].decode()] = unpack_u64(value)
            elif kind == _MET:
                self.met[key[1:].decode()] = value
        missing = [slot for slot in range(self.begins, self.decided) if slot not in self.entries]
        if missing or self.begins > self.decided:
            raise InvariantBroken(f"the log on disk has gaps: {missing[:5]}")

    def take_changes(self) -> list[Record]:
        """What has to be written since the last time, always with the number of decided slots."""
        changes, self._changes = self._changes, []
        changes.append((_DECIDED, pack_u64(self.decided)))
        return changes

    # ------------------------------------------------------------------------------------------- changes

    def promise(self, round_: RoundKey) -> None:
        if round_ > self.promised:
            self.promised = round_
            self._changes.append((_PROMISED, round_message(round_).SerializeToString()))

    def vote(self, slot: int, round_: RoundKey, item: LogItem) -> None:
        self.promise(round_)
        self._put(slot, Entry(round_, item))

    def learn(self, item: LogItem) -> None:
        """The next undecided slot is decided elsewhere, whatever we had voted for in it."""
        self._put(self.decided, Entry(None, item))

    def truncate(self, slot: int, snapshot: bytes) -> None:
        """Forget the slots before this one, and our votes in them: the snapshot has what they came to."""
        for old in [old for old in self.entries if old < slot]:
            del self.entries[old]
            self._changes.append((_ENTRY + pack_u64(old), None))
        self.begins, self.snapshot = slot, snapshot
        self.decided = max(self.decided, slot)
        record = LogSnapshotRecord(slot=slot, snapshot=snapshot)
        self._changes.append((_SNAPSHOT, record.SerializeToString()))

    def stand(self, standing: LogStanding, life: int = 0) -> None:
        self.standing, self.life = standing, life
        record = LogStandingRecord(standing=standing, life=life, disk=self.disk)
        self._changes.append((_STANDING, record.SerializeToString()))

    def note_life(self, member: str, life: int) -> None:
        self.lives[member] = life
        self._changes.append((_LIFE + member.encode(), pack_u64(life)))

    def meet(self, member: str, disk: bytes) -> bool:
        """Whether this is the first disk of that member that we meet, or the same one again."""
        if member not in self.met:
            self.met[member] = disk
            self._changes.append((_MET + member.encode(), disk))
        return self.met[member] == disk

    def _put(self, slot: int, entry: Entry) -> None:
        self.entries[slot] = entry
        self._changes.append((_ENTRY + pack_u64(slot), entry.record()))

    # ------------------------------------------------------------------------------------------- queries

    @property
    def votes(self) -> bool:
        return self.standing not in (LOG_STANDING_EMPTY, LOG_STANDING_MUTE)

    @property
    def may_found(self) -> bool:
        """With what may be its first disk. Only such a member can have met the first disks of the others."""
        return self.standing in (LOG_STANDING_EMPTY, LOG_STANDING_FOUNDER)

    def unvoted(self) -> int:
        """From this slot on, there is no vote of ours, and nothing that we know to be decided."""
        return max(self.decided, max(self.entries, default=-1) + 1)

    def lives_told(self) -> list[LogLife]:
        return [LogLife(member=member, life=self.lives[member]) for member in sorted(self.lives)]

    def open_votes(self, first: int, window: int) -> dict[int, Entry]:
        """Our votes for slots from `first` on that are not known to be decided; they lie within the window."""
        slots = range(max(first, self.decided), self.decided + window)
        return {slot: self.entries[slot] for slot in slots if slot in self.entries}

    def holds_decided(self, round_: RoundKey) -> bool:
        """Whether we hold the item of the first undecided slot, if the leader of the round calls it decided.

        In its own round it proposes what is decided, or nothing. What we voted for in an earlier one may have
        lost: we and the leader of round 1 voted for x; the others, who had not, decide y in round 2. We fetch it.
        """
        entry = self.entries.get(self.decided)
        return entry is not None and entry.voted == round_

    def check_agrees(self, slot: int, item: LogItem) -> None:
        """For an item that somebody calls decided. Below `begins` there is nothing left to compare."""
        entry = self.entries.get(slot)
        if slot < self.decided and entry is not None and entry.item != item:
            raise InvariantBroken(f"slot {slot} was decided twice: {entry.item!r} and {item!r}")

    def check_proposal(self, slot: int, round_: RoundKey, item: LogItem) -> None:
        """For an item that somebody proposes in a slot which is decided here.

        If our own vote in some round was part of that knowledge, no later round can propose anything else. (For
        a fetched item we cannot tell: a leader that was overtaken long ago may still propose what it likes, and
        nobody will vote for it.)
        """
        entry = self.entries.get(slot)
        if entry is not None and entry.voted is not None and round_ >= entry.voted and entry.item != item:
            raise InvariantBroken(f"slot {slot} is decided, but round {round_} proposes {item!r}")


def batch_of(items: Sequence[LogItem], bytes_max: int, count_max: int) -> list[LogItem]:
    """The longest beginning that fits into one message. One item always fits."""
    size = 0
    for count, item in enumerate(items):
        size += len(item.value)
        if count and (size > bytes_max or count >= count_max):
            return list(items[:count])
    return list(items)


# ------------------------------------------------------------------------------------------ peers' messages


def check_message(message: Any, incarnation: int, settings: LogSettings) -> None:
    """Refuse what no correct peer sends, before anything of it is stored."""
    if message.decided > NUMBER_MAX:
        raise RemoteProtocolError("more slots than there can be")
    match message:
        case LogPrepare() | LogDecided() | LogHeartbeat():
            _check_round(message.round, incarnation)
        case LogAccept():
            _check_round(message.round, incarnation)
            _check_items(message.first, message.items, settings.window_count_max, settings)
        case LogAccepted():
            if message.count > settings.window_count_max:
                raise RemoteProtocolError("votes for more slots than the window has")
            _check_lives(message.lives)
        case LogRejected():
            if message.promised.number > NUMBER_MAX:
                raise RemoteProtocolError("a round number that nobody reaches")
        case LogPromise():
            _check_promise(message, settings)
        case LogTail():
            _check_tail(message, settings)
        case LogInstall():
            if message.slot > message.decided or len(message.snapshot) > settings.snapshot_bytes_max:
                raise RemoteProtocolError("a snapshot of undecided slots, or one too large")
        case LogFoundAsk():
            _check_disks(message.disk)
        case LogFoundGrant():
            _check_disks(message.disk, message.asked)
        case LogRejoin():
            if not 0 < message.life <= NUMBER_MAX or message.until > NUMBER_MAX:
                raise RemoteProtocolError("a life, or a slot, that nobody reaches")
        case LogRejoined():
            if message.promised.number > NUMBER_MAX or message.unvoted > NUMBER_MAX:
                raise RemoteProtocolError("a round, or a slot, that nobody reaches")
            _check_lives(message.lives)


def _check_disks(*disks: bytes) -> None:
    if not all(0 < len(disk) <= DISK_BYTES_MAX for disk in disks):
        raise RemoteProtocolError(f"the name of a disk has 1 to {DISK_BYTES_MAX} bytes")


def _check_lives(lives: Sequence[LogLife]) -> None:
    if len(lives) > LIVES_COUNT_MAX or not all(0 < one.life <= NUMBER_MAX for one in lives):
        raise RemoteProtocolError("more lives than there are members, or more than anyone has")


def _check_round(round_: Round, incarnation: int) -> None:
    """A round is used by its owner alone, so whatever is proposed in it comes from one memory."""
    if round_.owner != incarnation:
        raise RemoteProtocolError(f"round of incarnation {round_.owner} used by {incarnation}")
    if not 0 < round_.number <= NUMBER_MAX:
        raise RemoteProtocolError(f"round number {round_.number}")


def _check_items(first: int, items: Sequence[LogItem], count_max: int, settings: LogSettings) -> None:
    if first > NUMBER_MAX or not 0 < len(items) <= count_max:
        raise RemoteProtocolError(f"{len(items)} items from slot {first} on")
    for item in items:
        _check_item(item, settings)


def _check_item(item: LogItem, settings: LogSettings) -> None:
    if not item.HasField("origin") or len(item.value) > settings.value_bytes_max:
        raise RemoteProtocolError("an item without origin, or one too large")


def _check_promise(promise: LogPromise, settings: LogSettings) -> None:
    """Votes lie within the window of whoever cast them: a new leader has never more to propose again."""
    _check_lives(promise.lives)
    slots = range(promise.decided, promise.decided + settings.window_count_max)
    before = -1
    for vote in promise.votes:
        if vote.slot not in slots or vote.slot <= before or not vote.HasField("round"):
            raise RemoteProtocolError(f"a vote for slot {vote.slot} behind {before}, outside {slots}")
        if round_key(vote.round) > round_key(promise.round):
            raise RemoteProtocolError("a vote in a higher round than the promised one")
        _check_item(vote.item, settings)
        before = vote.slot


def _check_tail(tail: LogTail, settings: LogSettings) -> None:
    """Empty only if its sender has no more than we asked for."""
    if not tail.items and tail.first >= tail.decided:
        return
    _check_items(tail.first, tail.items, settings.fetch_count_max, settings)
    if tail.first + len(tail.items) > tail.decided:
        raise RemoteProtocolError("a tail with undecided slots")
