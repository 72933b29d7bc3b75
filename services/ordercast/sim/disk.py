"""A process's disk: keyed records per machine, and delivery logs per group.

Transactions are written one after the other; all that piled up while one was written go into the next (group
commit). A crash loses what was not synced. The transaction that was being written may be torn: some prefix of its
bytes is there, and whoever reads the disk again must tell by its checksum that it is not whole.
"""

import pickle
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ordercast.core.dropping import without
from ordercast.core.projection import ends_after
from ordercast.v1.sequencer_pb2 import LogEntry


@dataclass(slots=True)
class Transaction:
    number: int = 0
    records: list[tuple[str, bytes, bytes | None]] = field(default_factory=list)
    #: (group, position, entry), or (group, position, None) where a snapshot replaced the log before it.
    log: list[tuple[str, int, LogEntry | None]] = field(default_factory=list)
    #: Somebody waits until it is durable, even if there is nothing in it.
    is_awaited: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.records or self.log or self.is_awaited)

    def encode(self) -> bytes:
        log = [(group, position, e and e.SerializeToString()) for group, position, e in self.log]
        body = pickle.dumps((self.records, log))
        return zlib.crc32(body).to_bytes(4, "big") + body


@dataclass(slots=True)
class Log:
    begins: int = 0
    entries: list[LogEntry] = field(default_factory=list)

    @property
    def ends(self) -> int:
        return self.begins + len(self.entries)

    def write(self, position: int, entry: LogEntry | None) -> None:
        if entry is None:
            self.begins, self.entries = position, []
        else:
            assert position == self.ends, f"entry {position} behind {self.ends}"
            self.entries.append(entry)

    def truncate(self, position: int) -> None:
        if self.begins < position <= self.ends:
            del self.entries[: position - self.begins]
            self.begins = position

    def before(self, position: int) -> list[LogEntry]:
        return self.entries[: max(0, position - self.begins)]

    def drop(self, cell: str, position: int, group: str) -> None:
        for index, entry in enumerate(self.before(position)):
            if group in ends_after(cell, entry):
                self.entries[index] = without(cell, entry, [group])


class Disk:
    def __init__(self) -> None:
        self.records: dict[str, dict[bytes, bytes]] = {}
        self.logs: dict[str, Log] = {}
        self.open = Transaction(1)
        self.sealed: deque[Transaction] = deque()
        self.writing: Transaction | None = None
        #: Something may be waiting to be written.
        self.is_dirty = False
        #: Told what became durable in the logs: it counts as delivered, even if nobody lived to see it.
        self.on_apply: Callable[[list[tuple[str, int, LogEntry | None]]], None] = lambda log: None

    def add(
        self,
        role: str,
        records: Sequence[tuple[bytes, bytes | None]],
        log: Sequence[tuple[str, int, LogEntry | None]],
    ) -> Transaction:
        self.is_dirty = True
        transaction = self.open
        transaction.records.extend([(role, key, value) for key, value in records])
        transaction.log.extend(log)
        return transaction

    def seal(self) -> None:
        """What was added so far is one transaction, and what comes is another."""
        if not self.open.is_empty:
            self.sealed.append(self.open)
            self.open = Transaction(self.open.number + 1)

    def begin(self) -> bool:
        """Start writing what piled up; false if the disk is busy or there is nothing to write."""
        if self.writing is not None:
            return False
        if not self.sealed:
            self.seal()
        if not self.sealed:
            self.is_dirty = False
            return False
        self.writing = self.sealed.popleft()
        return True

    def synced(self) -> None:
        transaction = self.writing
        assert transaction is not None
        self.writing = None
        self._apply(transaction)

    def _apply(self, transaction: Transaction) -> None:
        for role, key, value in transaction.records:
            records = self.records.setdefault(role, {})
            if value is None:
                records.pop(key, None)
            else:
                records[key] = value
        self.on_apply(transaction.log)
        for group, position, entry in transaction.log:
            self.logs.setdefault(group, Log()).write(position, entry)

    def crash(self, torn: float | None) -> None:
        """Lose what was not synced. `torn` is the part of the transaction being written that got through."""
        writing, number = self.writing, self.open.number
        if writing is not None and torn is not None:
            data = writing.encode()
            data = data[: int(len(data) * torn)]
            if len(data) > 4 and zlib.crc32(data[4:]).to_bytes(4, "big") == data[:4]:
                self._apply(writing)
        self.writing = None
        self.sealed.clear()
        self.open = Transaction(number + 1)

    def truncate(self, group: str, position: int) -> None:
        """Retention: drop the log before the position."""
        if group in self.logs:
            self.logs[group].truncate(position)
