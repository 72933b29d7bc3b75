"""Groups of a domain whose messages have no order across cells: what must hold between their logs all the same.

A message to several groups is in all of them, or in none. And what an entry comes after, by its stamp, is in the
log of its cell: nobody answers to what can still be lost. Each cell's log by itself is looked at in casts.py; one
that groups share has what any of them shows.
"""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ordercast.core.causal import CausalCodec
from ordercast.core.cells import Names, cell_of, shares_cell
from ordercast.local.casts import Caster, CastLog, Named, named_by, place_in, position_of
from ordercast.local.messages import new_messages
from ordercast.v1.membership_pb2 import Group
from ordercast.v1.sequencer_pb2 import LogEntry

#: (producer, the groups of its messages)
SetKey = tuple[bytes, Names]
SUM_MAX = 1 << 64


@dataclass(slots=True)
class ProducerRun:
    """Messages of a producer to one set, as one group has them."""

    first: int
    last: int
    count: int = 0
    #: Over their numbers and payloads.
    checksum: int = 0

    def add(self, sequence: int, payload: bytes) -> None:
        self.last = sequence
        self.count += 1
        self.checksum = (self.checksum + zlib.crc32(payload, sequence & 0xFFFFFFFF)) % SUM_MAX


@dataclass(slots=True)
class Lack:
    """What is not shown, though it should be, by some of these groups; it may be on its way."""

    groups: Names
    text: str


class CastDomain:
    def __init__(self, groups: Mapping[str, Group], codec: CausalCodec) -> None:
        """The groups are named by their addresses."""
        self.groups = groups
        self.codec = codec
        #: By cell.
        self.logs = {cell: CastLog(cell, codec, is_whole=True) for cell in map(cell_of, groups)}
        #: Groups of which something could be read, and whether it was read from its beginning on.
        self.read: dict[str, bool] = {}
        #: By cell: where the log ends, and not only what is shown of it.
        self.ends: dict[str, int] = {}
        self.runs: dict[SetKey, dict[str, ProducerRun]] = {}
        #: By cell and caster: the highest number that something in another cell comes after, and what that is.
        self.wanted: dict[tuple[str, Caster], tuple[int, str]] = {}
        #: By cell: the last entry that was taken.
        self._last: dict[str, LogEntry] = {}

    def begin(self, group: str, *, is_whole: bool) -> None:
        self.read[group] = is_whole
        self.logs[cell_of(group)].is_whole &= is_whole

    def take(self, group: str, entry: LogEntry) -> list[str]:
        """The next entry of that group's log, and of its cell's; what is wrong with it."""
        problems = [] if self._is_known(group, entry) else self._take_cast(cell_of(group), entry)
        for told in new_messages(entry):
            if group not in told.groups:
                problems.append(f"the message at offset {told.offset} is not for it")
            elif len(told.groups) > 1:
                runs = self.runs.setdefault((told.producer, told.groups), {})
                runs.setdefault(group, ProducerRun(told.sequence, told.sequence)).add(told.sequence, told.payload)
        return problems

    def _is_known(self, group: str, entry: LogEntry) -> bool:
        """Of a cell that groups share: another one showed its part of the entry already.

        What comes after another group of the cell was read further counts as an entry that is not shown.
        """
        last = self._last.get(cell_of(group))
        return shares_cell(group) and last is not None and entry.order_key <= last.order_key

    def _take_cast(self, cell: str, entry: LogEntry) -> list[str]:
        self._last[cell] = entry
        problems = self.logs[cell].take(entry)
        if not problems:
            self._want(cell, entry)
        return problems

    def _want(self, cell: str, entry: LogEntry) -> None:
        for named in named_by(place_in(entry, self.codec)):
            key = (named.group, (named.view, named.member))
            if named.group != cell and named.number > self.wanted.get(key, (0, ""))[0]:
                self.wanted[key] = (named.number, f"{cell} at position {position_of(entry)}")

    # --------------------------------------------------------------------------------- between the groups

    def lacks(self) -> list[Lack]:
        """What is not where it should be, as far as everything has been read."""
        return [*self._lacking_casts(), *self._lacking_messages()]

    def _lacking_casts(self) -> Iterator[Lack]:
        for (cell, (view, member)), (number, where) in self.wanted.items():
            named = Named(cell, view, member, number)
            living = tuple(group for group in self.groups if cell_of(group) == cell)
            is_read = living and all(group in self.read for group in living)
            if is_read and self.logs[cell].lacks(named, self.ends.get(cell, 0)):
                yield Lack(living, f"{where} comes after {named}, which is not in its log")

    def _lacking_messages(self) -> Iterator[Lack]:
        for (producer, groups), runs in self.runs.items():
            first, earliest = min((run.first, group) for group, run in runs.items())
            last, furthest = max((run.last, group) for group, run in runs.items())
            to = f"producer {producer.hex()} to {', '.join(groups)}"
            for group in groups:
                run = runs.get(group)
                is_whole = self.read.get(group, False)
                if group not in self.read or (run is None and not is_whole):
                    continue  # Where retention was, nothing may be left of a set.
                if run is None or (is_whole and run.first > first):
                    missing, where = f"message {first}", earliest
                elif run.last < last:
                    missing, where = f"message {last}", furthest
                else:
                    continue
                yield Lack((group,), f"{where} has {missing} of {to}, and {group} does not")
            yield from self._differing(to, runs)

    def _differing(self, to: str, runs: Mapping[str, ProducerRun]) -> Iterator[Lack]:
        """Those that have been read from beginning to end, as far as can be seen."""
        extents: dict[tuple[int, int], str] = {}
        for group, run in runs.items():
            other = extents.setdefault((run.first, run.last), group)
            if self.read[group] and self.read[other] and run != runs[other]:
                yield Lack((group, other), f"{other} and {group} have different messages of {to}")
