"""Groups of a domain whose messages have no order across groups: what must hold between their logs all the same.

A message to several groups is in all of them, or in none. And what an entry comes after, by its stamp, is in the
log of its group: nobody answers to what can still be lost. Each group's log by itself is looked at in casts.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ordercast.core.causal import CausalCodec
from ordercast.local.casts import Caster, CastLog, Named, named_by, place_in, position_of
from ordercast.v1.membership_pb2 import Group
from ordercast.v1.sequencer_pb2 import LogEntry

#: (producer, destination set)
SetKey = tuple[bytes, tuple[str, ...]]


@dataclass(slots=True)
class Run:
    """Sequences of a producer to one set, as one group has them: without a gap, for a gap is refused."""

    first: int
    last: int


@dataclass(slots=True)
class Lack:
    """What a group's log does not show, though it should; it may be on its way."""

    group: str
    text: str


class CastDomain:
    def __init__(self, groups: Mapping[str, Group], codec: CausalCodec) -> None:
        self.groups = groups
        self.codec = codec
        self.logs = {id_: CastLog(id_, codec) for id_ in groups}
        #: Groups of which something could be read.
        self.read: dict[str, None] = {}
        #: By group: where the log ends, and not only what is shown of it.
        self.ends: dict[str, int] = {}
        self.runs: dict[SetKey, dict[str, Run]] = {}
        #: By group and caster: the highest number that something in another group comes after, and what that is.
        self.wanted: dict[tuple[str, Caster], tuple[int, str]] = {}

    def begin(self, group: str, *, is_whole: bool) -> None:
        self.read[group] = None
        self.logs[group].is_whole = is_whole

    def take(self, group: str, entry: LogEntry) -> list[str]:
        """The next entry of that group's log; what is wrong with it."""
        problems = self.logs[group].take(entry)
        if not problems:
            self._want(group, entry)
        groups = tuple(destination.group for destination in entry.envelope.header.destinations)
        if group not in groups:
            problems.append(f"the message at offset {entry.first_offset} is not for it")
        elif len(groups) > 1:
            self._take_messages(group, groups, entry)
        return problems

    def _want(self, group: str, entry: LogEntry) -> None:
        for named in named_by(place_in(entry, self.codec)):
            key = (named.group, (named.view, named.member))
            if named.group != group and named.number > self.wanted.get(key, (0, ""))[0]:
                self.wanted[key] = (named.number, f"{group} at position {position_of(entry)}")

    def _take_messages(self, group: str, groups: tuple[str, ...], entry: LogEntry) -> None:
        for range_, outcome in zip(entry.envelope.header.ranges, entry.outcomes, strict=True):
            for span in outcome.spans:
                if not span.duplicate:
                    last = span.first_sequence + span.count - 1
                    runs = self.runs.setdefault((range_.producer, groups), {})
                    runs.setdefault(group, Run(span.first_sequence, last)).last = last

    # --------------------------------------------------------------------------------- between the groups

    def lacks(self) -> list[Lack]:
        """What is not where it should be, as far as everything has been read."""
        return [*self._lacking_casts(), *self._lacking_messages()]

    def _lacking_casts(self) -> Iterator[Lack]:
        for (group, (view, member)), (number, where) in self.wanted.items():
            named = Named(group, view, member, number)
            if group in self.read and self.logs[group].lacks(named, self.ends.get(group, 0)):
                yield Lack(group, f"{where} comes after {named}, which is not in its log")

    def _lacking_messages(self) -> Iterator[Lack]:
        for (producer, groups), runs in self.runs.items():
            first, earliest = min((run.first, group) for group, run in runs.items())
            last, furthest = max((run.last, group) for group, run in runs.items())
            for group in groups:
                run = runs.get(group)
                is_whole = group in self.read and self.logs[group].is_whole
                if group not in self.read or (run is None and not is_whole):
                    continue  # Where retention was, nothing may be left of a set.
                if run is None or (is_whole and run.first > first):
                    missing, where = first, earliest
                elif run.last < last:
                    missing, where = run.last + 1, furthest
                else:
                    continue
                who = f"message {missing} of producer {producer.hex()} to {', '.join(groups)}"
                yield Lack(group, f"{where} has {who}, and {group} does not")
