"""Rows that are being made: a list for each column, filled block by block.

A block is a run of rows of one kind and one sender. Its columns are set as a whole, or cell by cell; what nobody
sets is null. A list is shorter than the rest until something is put into it, which most of a block never see.

What cannot be understood becomes a row of the kind `poison`, so that it is not lost without a word, and loses none
of its neighbours. Those who read it put it aside.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from ordercast.telemetry.flatten.values import Sorted
from ordercast.telemetry.schema import names
from ordercast.telemetry.tables import SCHEMA

SPAN = "span"
DELIVERY = "delivery"
POINT = "point"
EVENT = "event"
POISON = "poison"

#: Why a row is poison.
REASON_VERSION = "schema_version"
REASON_ATTRIBUTE = "attribute_type"
REASON_DELIVERIES = "malformed_deliveries"
REASON_RANGE = "out_of_range"
REASON_UNREADABLE = "unreadable"
REASON_OVERSIZE = "oversize"

#: Kept as numbers of 64 bits with a sign; senders may say larger ones.
NUMBERS = [f for f in SCHEMA if pa.types.is_int64(f.type) or f.name == names.COLUMN_BUCKETS]


class Rows:
    def __init__(self) -> None:
        self.size = 0
        #: Where the block begins that is being filled.
        self.base = 0
        self.lists: dict[str, list[Any]] = {field.name: [] for field in SCHEMA}
        #: Attributes without a column, by row.
        self._others: dict[int, dict[str, str]] = {}
        #: The same for every row of a block: (begin, end, attributes).
        self._shared: list[tuple[int, int, dict[str, str]]] = []

    # --- Blocks

    def begin(self, kind: str, count: int, received_ns: int, resource: Sorted) -> None:
        """A block of so many rows. What its sender says of itself is in all of them."""
        self.base = self.size
        self.size += count
        self.repeat(names.COLUMN_KIND, kind)
        self.repeat(names.COLUMN_RECEIVED_NS, received_ns)
        for column, value in resource.columns.items():
            self.repeat(column, value)
        # Deliveries are many, and all that is asked of them has a column.
        if resource.others and kind != DELIVERY:
            self._shared.append((self.base, self.size, resource.others))

    def end(self, resource: Sorted) -> None:
        """The block is filled. If its sender could not be understood, neither can the block."""
        version = resource.columns.get(names.COLUMN_SCHEMA_VERSION, names.VERSION)
        wrong = ""
        if not 0 < version <= names.VERSION:
            reason, wrong = REASON_VERSION, f"version {version} of the schema, and {names.VERSION} is known"
        elif resource.wrong:
            reason, wrong = REASON_ATTRIBUTE, resource.wrong
        if wrong:
            for row in range(self.base, self.size):
                self.poison(row, reason, wrong)

    def cut(self, size: int) -> None:
        """Take back all rows from this one on."""
        self.size = size
        for cells in self.lists.values():
            del cells[size:]
        self._others = {row: others for row, others in self._others.items() if row < size}
        self._shared = [block for block in self._shared if block[0] < size]

    def fill(self, column: str, values: Sequence[Any]) -> None:
        """One value for each row of the block, over what was there."""
        cells = self.lists[column]
        if len(cells) <= self.base:
            cells += [None] * (self.base - len(cells))
            cells += values
        else:
            cells[self.base : self.size] = values

    def repeat(self, column: str, value: Any) -> None:
        self.fill(column, [value] * (self.size - self.base))

    # --- Cells

    def put(self, column: str, row: int, value: Any) -> None:
        cells = self.lists[column]
        if len(cells) <= row:
            cells += [None] * (self.size - len(cells))
        cells[row] = value

    def note(self, row: int, name: str, value: str) -> None:
        """An attribute without a column."""
        others = self._others.get(row)
        if others is None:
            self._others[row] = {name: value}
        else:
            others[name] = value

    def attributes(self, row: int, attributes: Iterable[tuple[str, str | None, Any, str]]) -> None:
        """Each as `values.decode` says it."""
        lists = self.lists
        wrong = ""
        for name, column, value, fault in attributes:
            if column is not None:
                try:
                    lists[column][row] = value
                except IndexError:
                    self.put(column, row, value)
            elif value is not None:
                self.note(row, name, value)
                wrong = fault or wrong
        # At the end: another attribute might yet set the column of the reason.
        if wrong:
            self.poison(row, REASON_ATTRIBUTE, wrong)

    def poison(self, row: int, reason: str, detail: str) -> None:
        """The first reason stays."""
        kinds = self.lists[names.COLUMN_KIND]
        if kinds[row] == POISON:
            return
        self.note(row, names.ATTRIBUTE_POISON_KIND, kinds[row])
        self.note(row, names.ATTRIBUTE_POISON_DETAIL, detail)
        kinds[row] = POISON
        reasons = self.lists[names.COLUMN_REASON]
        if row < len(reasons) and reasons[row] is not None:
            self.note(row, names.ATTRIBUTE_REASON, reasons[row])
        self.put(names.COLUMN_REASON, row, reason)

    # --- What they come to

    def finished(self) -> pa.RecordBatch:
        # A number that does not fit makes its row poison, which changes other columns: so numbers come first.
        numbers = {field.name: self._fitting(field) for field in NUMBERS}
        arrays = [numbers[field.name] if field.name in numbers else self._array(field) for field in SCHEMA]
        return pa.record_batch(arrays, schema=SCHEMA)

    def _fitting(self, field: pa.Field) -> pa.Array:
        try:
            return self._array(field)
        except (OverflowError, pa.ArrowInvalid):
            cells = self.lists[field.name]
            for row, value in enumerate(cells):
                try:
                    pa.array([value], field.type)
                except (OverflowError, pa.ArrowInvalid):
                    cells[row] = None
                    self.note(row, field.name, str(value))
                    self.poison(row, REASON_RANGE, f"{field.name} is too large")
            return self._array(field)

    def _array(self, field: pa.Field) -> pa.Array:
        if field.name == names.COLUMN_ATTRIBUTES:
            return self._map()
        cells = self.lists[field.name]
        if not cells:
            return pa.nulls(self.size, field.type)
        if len(cells) < self.size:
            cells += [None] * (self.size - len(cells))
        return pa.array(cells, field.type)

    def _map(self) -> pa.Array:
        keys: list[str] = []
        items: list[str] = []
        #: Where each row's begin; null for a row without any.
        begins: list[int | None] = []
        none: dict[str, str] = {}
        shared = iter(self._shared)
        begin, end, same = next(shared, (self.size, self.size, none))
        for row in range(self.size):
            if row >= end:
                begin, end, same = next(shared, (self.size, self.size, none))
            found = self._others.get(row, none)
            if row >= begin:
                found = same | found if found else same
            begins.append(len(keys) if found else None)
            keys += found
            items += found.values()
        offsets = pa.array([*begins, len(keys)], pa.int32())
        return pa.MapArray.from_arrays(offsets, pa.array(keys, pa.string()), pa.array(items, pa.string()))
