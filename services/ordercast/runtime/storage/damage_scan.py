"""Reads a disk through once, at the start of a process, and tells what is damaged on it: see damage.py.

Records are all read: machines start from all of them anyhow. Of logs only the beginnings and ends are looked at,
which is where the other records can be compared with them; what lies between is mended when it is read.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import lmdb

from ordercast.core.protocol import RecordScope
from ordercast.runtime.storage.damage import ANY, Scan, damaged_record
from ordercast.runtime.storage.damage_advice import DISK
from ordercast.runtime.storage.layout import (
    RECORDS,
    CorruptRecord,
    StorageError,
    log_prefix,
    unseal,
)

if TYPE_CHECKING:
    from ordercast.runtime.storage.store import Reading, Storage


def scan(storage: "Storage", scopes: Mapping[str, RecordScope]) -> Scan:
    found = Scan()
    try:
        with storage.reading() as txn:
            positions = _scan_records(storage, txn, scopes, found)
            for group, error in storage.damaged_begins(txn):
                found.logs.append((ANY, group, str(error)))
            for (domain, group), position in positions.items():
                _scan_log(storage, txn, domain, group, position, found)
    except lmdb.Error as error:
        raise StorageError(f"{storage.directory}: pages of the database are damaged: {error}. {DISK}") from error
    return found


def _scan_records(
    storage: "Storage", txn: "Reading", scopes: Mapping[str, RecordScope], found: Scan
) -> dict[tuple[str, str], int]:
    """Where logs must at least end, by domain and group."""
    positions: dict[tuple[str, str], int] = {}
    known = b""
    with txn.cursor(db=storage.record_values) as cursor:
        for view, value in cursor.iternext():
            stored_key = bytes(view)
            try:
                content = unseal(RECORDS, stored_key, value)
            except CorruptRecord as error:
                found.damaged.append(damaged_record(stored_key, bytes(value), error))
                continue
            domain, role, key = stored_key.split(b"\0", 2)
            if domain != known:
                known = domain
                found.domains[domain.decode()] = None
            scope = scopes.get(role.decode())
            place = scope.position_in(key, bytes(content)) if scope is not None else None
            if place is not None:
                positions[domain.decode(), place[0]] = place[1]
    return positions


def _scan_log(storage: "Storage", txn: "Reading", domain: str, group: str, position: int, found: Scan) -> None:
    """The machine knows how far its log goes. It is never behind: both are written in one transaction.

    A log that goes further is one that is being copied from others. But a damaged entry there is no end of a log:
    its key may be what is damaged.
    """
    prefix = log_prefix(group)
    try:
        begin = storage.begin_in(txn, prefix)
    except CorruptRecord:
        return  # It is among the beginnings.
    ends = 0 if begin is None else storage.ends_in(txn, prefix, begin)
    if ends < position:
        found.logs.append((domain, group, f"its log ends at {ends}, and {position} entries were delivered"))
        return
    try:
        storage.extent_in(txn, prefix)
    except CorruptRecord as damaged:
        if ends > position:
            found.logs.append((domain, group, f"its log ends at {position}, but for {damaged}"))
        else:
            found.ends.append(damaged.with_traceback(None))
