"""A cut that is kept with what was made of the messages before it, so that each of them counts exactly once.

A cursor moves after the work is done, so a crash in between brings some messages again. If the results are in a
database, the place belongs there too, in the same transaction: then either both are there or neither is.
"""

import re
import sqlite3

from ordercast.client.errors import InvalidArgument
from ordercast.client.merged_types import Cut, MergedDelivery

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


class Checkpoint:
    """Of one consumer, in an SQLite database, beside its results.

    >>> import sqlite3
    >>> database = sqlite3.connect(":memory:")
    >>> checkpoint = Checkpoint(database, "balances")
    >>> with database:  # one transaction
    ...     checkpoint.keep(Cut(bytes(24), 7))
    >>> checkpoint.cut.index
    7
    """

    def __init__(self, database: sqlite3.Connection, name: str, *, table: str = "ordercast_checkpoints") -> None:
        """Makes the table if it is not there; several consumers may have theirs in one."""
        if not name or not _NAME.fullmatch(table):
            raise InvalidArgument("a checkpoint has a name, and a table whose name is letters, digits and '_'")
        self._database = database
        self._name = name
        self._table = table
        database.execute(f"CREATE TABLE IF NOT EXISTS {table} (name TEXT PRIMARY KEY, cut TEXT NOT NULL)")

    @property
    def cut(self) -> Cut | None:
        """Where to go on: everything before it is in the results. None if there is nothing yet."""
        found = self._database.execute(f"SELECT cut FROM {self._table} WHERE name = ?", (self._name,))
        row = found.fetchone()
        return Cut.parse(row[0]) if row is not None else None

    def keep(self, behind: Cut | MergedDelivery) -> None:
        """In the transaction that is open: this message, or all before this cut, is in the results."""
        cut = behind if isinstance(behind, Cut) else behind.cut
        replace = f"INSERT OR REPLACE INTO {self._table} (name, cut) VALUES (?, ?)"
        self._database.execute(replace, (self._name, str(cut)))
