"""What must hold in every run, whatever happens: one numbering, and who may be told what of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ordercast.core.machine import Deliver, ResetLog
from ordercast.protocols.apbcast.events import LOG, Handed, Receipted, Skipped
from ordercast.protocols.apbcast.settings import Leaves
from ordercast.sim.apbcast.scenario import AudienceScenario, LeafPlan
from ordercast.sim.checkers.violation import Violation
from ordercast.v1.apbcast_pb2 import Numbered, Publication

Message = tuple[bytes, int]


@dataclass(slots=True)
class Reader:
    """One life of a leaf."""

    plan: LeafPlan
    incarnation: int
    #: Where it began, and what it expects next: a number, and by group an offset.
    first: int | None = None
    next: int = 0
    offsets: dict[str, int] = field(default_factory=dict)
    skipped: int = 0


class Checker:
    def __init__(self, scenario: AudienceScenario) -> None:
        self.scenario = scenario
        #: The one numbering, and where each message is in it.
        self.order: list[Numbered] = []
        self.place: dict[Message, int] = {}
        self.offsets: dict[str, int] = {}
        self.sequences: dict[bytes, int] = {}
        #: What was published, and the numbers that have to be lower than its own.
        self.published: dict[Message, Publication] = {}
        self.after: dict[Message, int] = {}
        #: By root, its next number.
        self.roots: dict[str, int] = {}
        self.readers: dict[str, Reader] = {}
        self.receipts: dict[Message, int] = {}
        #: Every root that was a member of a started configuration, by group.
        self.homes: dict[str, set[str]] = {}
        self.handed = 0

    # -------------------------------------------------------------------------------------------------- roots

    def on_published(self, cast: Publication, reads_at: str) -> None:
        message = (cast.producer, cast.sequence)
        self.published[message] = cast
        reader = self.readers.get(reads_at)
        read = reader.next if reader is not None and not reader.plan.interest else 0
        own = [number + 1 for (producer, _), number in self.receipts.items() if producer == cast.producer]
        self.after[message] = max([read, *own])

    def on_deliver(self, process: str, effect: Deliver) -> None:
        if effect.group != LOG:
            return
        item = Numbered.FromString(effect.entry.protocol)
        if item.mseq != effect.position:
            raise Violation("agreement", f"{process} has {item.mseq} at {effect.position}")
        if item.mseq == len(self.order):
            self._check_new(process, item)
            self.order.append(item)
        elif item.mseq > len(self.order):
            raise Violation("order", f"{process} gives {item.mseq}, and {len(self.order)} is the next number")
        elif self.order[item.mseq] != item:
            other = self.order[item.mseq].cast
            raise Violation(
                "order", f"{process}: {item.mseq} is {name_of(item.cast)}, and elsewhere {name_of(other)}"
            )
        self.roots[process] = item.mseq + 1

    def on_log_reset(self, process: str, effect: ResetLog) -> None:
        self.roots[process] = effect.position

    def _check_new(self, process: str, item: Numbered) -> None:
        cast, message = item.cast, (item.cast.producer, item.cast.sequence)
        if self.published.get(message) != cast:
            raise Violation("integrity", f"{process} numbers {name_of(cast)}, which nobody has published")
        if message in self.place:
            raise Violation("exactly-once", f"{name_of(cast)} is {self.place[message]} and {item.mseq}")
        if cast.sequence <= self.sequences.get(cast.producer, 0):
            raise Violation("fifo", f"{name_of(cast)} comes behind a later one of its producer")
        if item.mseq < self.after[message]:
            raise Violation(
                "causality", f"{name_of(cast)} is {item.mseq}; who said it had read {self.after[message]}"
            )
        expected = {group: self.offsets.get(group, 0) for group in cast.groups}
        if {place.group: place.offset for place in item.places} != expected:
            raise Violation("agreement", f"{name_of(cast)} has other places than {expected}")
        self.offsets.update({group: offset + 1 for group, offset in expected.items()})
        self.sequences[cast.producer] = cast.sequence
        self.place[message] = item.mseq

    # ------------------------------------------------------------------------------------------------ receipts

    def on_receipt(self, process: str, effect: Receipted) -> None:
        message = (effect.cast.producer, effect.cast.sequence)
        if effect.source not in self.homes.get(effect.home, set()):
            raise Violation("receipt", f"{process}: {effect.source} is no root of {effect.home}")
        number = self.place.get(message)
        if number is None:
            raise Violation("receipt", f"{process}: {name_of(effect.cast)} has a receipt and no number")
        self.receipts[message] = number
        if effect.duplicate:
            return
        places = tuple((place.group, place.offset) for place in self.order[number].places)
        if (effect.mseq, effect.places) != (number, places):
            raise Violation(
                "receipt", f"{process}: {name_of(effect.cast)} is {number}, and its receipt says {effect.mseq}"
            )

    # -------------------------------------------------------------------------------------------------- leaves

    def on_begun(self, process: str, plan: LeafPlan, incarnation: int) -> None:
        self.readers[process] = Reader(plan, incarnation)

    def on_handed(self, process: str, effect: Handed) -> None:
        reader = self.readers.get(process)
        for item in effect.items:
            if item.mseq >= len(self.order) or self.order[item.mseq] != item:
                raise Violation(
                    "order", f"{process} is handed {name_of(item.cast)} as {item.mseq}, which it is not"
                )
            self.handed += 1
            if reader is not None:
                self._check_handed(process, reader, item)

    def _check_handed(self, process: str, reader: Reader, item: Numbered) -> None:
        if reader.first is None:
            reader.first = reader.next = item.mseq
        if item.mseq < reader.next:
            raise Violation("order", f"{process} is handed {item.mseq} when it had {reader.next - 1}")
        if reader.plan.interest:
            self._check_interest(process, reader, item)
        elif reader.plan.leaves is Leaves.EXACT and item.mseq > max(reader.next, reader.skipped):
            raise Violation("gap", f"{process} is handed {item.mseq} and lacks {reader.next}")
        reader.next = item.mseq + 1

    def _check_interest(self, process: str, reader: Reader, item: Numbered) -> None:
        places = {p.group: p.offset for p in item.places if p.group in reader.plan.interest}
        if not places:
            raise Violation("interest", f"{process} is handed {item.mseq}, which it does not want")
        for group, offset in places.items():
            expected = reader.offsets.get(group, offset)
            if offset != expected and not reader.skipped:
                raise Violation("gap", f"{process} is handed offset {offset} of {group}, and lacks {expected}")
            reader.offsets[group] = offset + 1

    def on_skipped(self, process: str, effect: Skipped, floor: int) -> None:
        reader = self.readers.get(process)
        if effect.place > floor:
            raise Violation("gap", f"{process} skips to {effect.place}, and retention is at {floor}")
        if reader is not None:
            reader.skipped = effect.place

    # ---------------------------------------------------------------------------------------------------- end

    def check_end(self, roots: Sequence[str], leaves: Sequence[str]) -> None:
        for message in self.published:
            if message not in self.place:
                raise Violation("termination", f"{message} was published and has no number")
        for name in roots:
            if self.roots.get(name, 0) != len(self.order):
                raise Violation(
                    "termination", f"{name} has {self.roots.get(name, 0)} of {len(self.order)} messages"
                )
        for name in leaves:
            self._check_all_there(name, self.readers[name])

    def _check_all_there(self, name: str, reader: Reader) -> None:
        """Of what came after its first. An exact leaf has them all; one with an interest, all of its groups."""
        if reader.first is None or (reader.plan.leaves is Leaves.LIVE and not reader.plan.interest):
            return
        if not reader.plan.interest and max(reader.next, reader.skipped) != len(self.order):
            raise Violation("termination", f"{name} has {reader.next} of {len(self.order)} messages")
        for group, offset in reader.offsets.items():
            if offset != self.offsets[group] and not reader.skipped:
                raise Violation("termination", f"{name} has {offset} of {self.offsets[group]} messages of {group}")


def name_of(cast: Publication) -> str:
    return f"{cast.producer.decode()}:{cast.sequence}"
