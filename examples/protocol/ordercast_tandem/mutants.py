"""The protocol, broken on purpose: each mutant must be caught by `ordercast sim tandem --mutants`."""

from typing import Any

from ordercast.sim.mutant import Mutant, register
from ordercast_tandem.machine import Tandem
from ordercast_tandem.tandem_pb2 import Ordered

MUTANTS: list[Mutant] = []

load, keep_from, on_ordered = Tandem.load, Tandem._keep_from, Tandem._on_ordered


@register(MUTANTS, "numbers_twice", "after a restart numbers are given again that were given", (Tandem, "load"))
def numbers_twice(self: Tandem, records: Any) -> None:
    load(self, records)
    self.next = self.floor


@register(MUTANTS, "early", "replicas hear of a number that the stand-by does not have", (Tandem, "_keep_from"))
def early(self: Tandem, number: int) -> None:
    keep_from(self, number)
    before, self.kept = self.kept, self.next
    self._send_from(before)


@register(
    MUTANTS, "skips_a_gap", "a replica delivers though something before it is missing", (Tandem, "_on_ordered")
)
def skips_a_gap(self: Tandem, event: Any, message: Ordered) -> None:
    for place in message.numbered.places:
        if place.group in self.replicas and place.position > self.replicas[place.group].position:
            self.replicas[place.group].position = place.position
    on_ordered(self, event, message)


@register(MUTANTS, "forgets_counters", "positions begin again after a restart", (Tandem, "load"))
def forgets_counters(self: Tandem, records: Any) -> None:
    load(self, records)
    self.counters = {}


@register(MUTANTS, "forgets_early", "the sequencer forgets what a replica lacks", (Tandem, "_lacking"))
def forgets_early(self: Tandem, number: int) -> Any:
    return ()
