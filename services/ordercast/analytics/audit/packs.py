"""Deliveries of one replica in one range, packed into one value: what is shuffled and looked at is ranges, not
rows.

A delivery goes into three packs: of its range of positions, of its envelope's range, and of runs of positions. The
last position of a range is also in the pack of the next one, where it is only what the first position follows.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.core.ids import KEY_BYTES

RANGE = 1024
POSITIONS, ENVELOPES, RUNS = SCOPES = ("positions", "envelopes", "runs")

#: Bytes that are not numbers are `V`: `S` would drop zeros at the end.
ENTRY = np.dtype(
    [
        ("offset", "<i8"),
        ("position", "<i8"),
        ("envelope", "V16"),
        ("key", "<u8"),
        ("first_offset", "<i8"),
        ("messages", "<i8"),
        ("time_ns", "<i8"),
        ("trace", "V16"),
    ]
)
#: Positions from `first` to `last`, with nothing between them left out.
RUN = np.dtype(
    [
        ("first", "<i8"),
        ("last", "<i8"),
        ("begins", "?"),
        ("first_trace", "V16"),
        ("last_trace", "V16"),
        ("first_time_ns", "<i8"),
    ]
)

#: What is the same for all deliveries in a pack.
OWNER = ("group_id", "group", "domain", "protocol", "node", "incarnation")
COLUMNS = (*OWNER, "position", "envelope", "order_key", "first_offset", "messages", "time_ns", "trace_id")
PACK_SCHEMA = (
    "scope string, scope_key string, range long, offset long, received_time timestamp, group_id string, "
    "`group` string, domain string, protocol string, node string, incarnation long, payload binary"
)
_ARROW = pa.schema(
    [
        ("scope", pa.string()),
        ("scope_key", pa.string()),
        ("range", pa.int64()),
        ("offset", pa.int64()),
        ("received_time", pa.timestamp("us", "UTC")),
        ("group_id", pa.string()),
        ("group", pa.string()),
        ("domain", pa.string()),
        ("protocol", pa.string()),
        ("node", pa.string()),
        ("incarnation", pa.int64()),
        ("payload", pa.binary()),
    ]
)


def packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: packs of deliveries."""
    for batch in batches:
        if batch.num_rows:
            yield pa.RecordBatch.from_pylist(list(_packs(batch)), schema=_ARROW)


def _packs(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    order = pc.sort_indices(batch, sort_keys=[("offset", "ascending")])
    batch = batch.take(order)
    entries = _entries(batch)
    offsets = batch.column("offset").to_numpy()
    received = batch.column("received_ns").to_numpy() // 1000
    begins = batch.column("begins").to_numpy(zero_copy_only=False)
    gateways = np.frombuffer(entries["envelope"].tobytes(), ">u8").reshape(-1, 2).astype(np.int64)
    owner, owners = _owners(batch)
    for at in range(len(owners)):
        rows = np.flatnonzero(owner == at)
        own = owners[at]

        def pack(scope: str, key: str, number: int, chosen: np.ndarray, payload: np.ndarray) -> dict[str, Any]:
            where = {"scope": scope, "scope_key": key, "range": number, "offset": int(offsets[chosen[0]])}
            return own | where | {"received_time": int(received[chosen].max()), "payload": payload.tobytes()}  # noqa: B023

        positions = entries["position"][rows]
        for number, chosen in _by(rows, positions // RANGE):
            yield pack(POSITIONS, own["group_id"], number, chosen, entries[chosen])
        last = rows[positions % RANGE == RANGE - 1]
        for number, chosen in _by(last, entries["position"][last] // RANGE + 1):
            yield pack(POSITIONS, own["group_id"], number, chosen, entries[chosen])
        for incarnation, of_gateway in _by(rows, gateways[rows, 0]):
            key = f"{own['domain']}/{incarnation}"
            for number, chosen in _by(of_gateway, gateways[of_gateway, 1] // RANGE):
                yield pack(ENVELOPES, key, number, chosen, entries[chosen])
        yield pack(RUNS, own["group_id"], 0, rows, runs(entries[rows], begins[rows]))


def runs(entries: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """Deliveries in their order as runs, in which each follows on the one before."""
    cuts = np.flatnonzero((np.diff(entries["position"]) != 1) | begins[1:]) + 1
    firsts, lasts = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(entries)]]) - 1
    made = np.empty(len(firsts), RUN)
    made["first"], made["last"] = entries["position"][firsts], entries["position"][lasts]
    made["first_trace"], made["last_trace"] = entries["trace"][firsts], entries["trace"][lasts]
    made["begins"], made["first_time_ns"] = begins[firsts], entries["time_ns"][firsts]
    return made


def _owners(batch: pa.RecordBatch) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """Which replica of which group each row is of, as a number, and what the numbers stand for."""
    codes = np.zeros(batch.num_rows, dtype=np.int64)
    for name in OWNER:
        values = pc.dictionary_encode(batch.column(name))
        codes = codes * max(len(values.dictionary), 1) + values.indices.to_numpy()
    _, firsts, owner = np.unique(codes, return_index=True, return_inverse=True)
    return owner, batch.select(list(OWNER)).take(pa.array(firsts)).to_pylist()


def _by(rows: np.ndarray, numbers: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Rows with the same number together, in their order."""
    order = np.argsort(numbers, kind="stable")
    cuts = np.flatnonzero(np.diff(numbers[order])) + 1
    for part in np.split(order, cuts):
        if len(part):
            yield int(numbers[part[0]]), rows[part]


def _entries(batch: pa.RecordBatch) -> np.ndarray:
    made = np.empty(batch.num_rows, ENTRY)
    for name in ("offset", "position", "first_offset", "messages", "time_ns"):
        made[name] = batch.column(name).to_numpy()
    made["envelope"] = np.frombuffer(b"".join(batch.column("envelope").to_pylist()), "V16")
    made["trace"] = np.frombuffer(b"".join(batch.column("trace_id").to_pylist()), "V16")
    made["key"] = _keys(batch.column("order_key").to_pylist(), made["envelope"])
    return made


def _keys(keys: list[bytes], envelopes: np.ndarray) -> np.ndarray:
    """A key as a number. If it is a number and the envelope's id, which is known, the number is enough.

    Other keys, which need only be equal or different, are hashed.
    """
    joined = b"".join(keys)
    if len(joined) == KEY_BYTES * len(keys) and all(len(key) == KEY_BYTES for key in keys):
        parts = np.frombuffer(joined, np.dtype([("number", ">u8"), ("id", "V16")]))
        if np.array_equal(parts["id"], envelopes):
            return parts["number"].astype("<u8")
    return np.array([_key(key, bytes(id_)) for key, id_ in zip(keys, envelopes, strict=True)], "<u8")


def _key(key: bytes, envelope: bytes) -> int:
    is_plain = len(key) == KEY_BYTES and key[8:] == envelope
    return int.from_bytes(key[:8] if is_plain else blake2b(key, digest_size=8).digest(), "big")
