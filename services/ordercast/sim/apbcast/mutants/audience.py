"""Mutants of views, rumours and leaves."""

from collections.abc import Iterable, Mapping, Sequence

from ordercast.protocols.apbcast import views
from ordercast.protocols.apbcast.address import Address
from ordercast.protocols.apbcast.delivery import Exact, Interested, Live
from ordercast.protocols.apbcast.election import elect
from ordercast.protocols.apbcast.rumours import Rumours
from ordercast.protocols.apbcast.views import Views
from ordercast.sim.mutant import Mutant, register
from ordercast.v1.apbcast_pb2 import Numbered

AUDIENCE: list[Mutant] = []


@register(AUDIENCE, "one_elected_more", "ELECT takes R + 1", (views, "elect"))
def _one_elected_more(parts: Mapping[int, Sequence[Address]], representatives: int) -> list[Address]:
    return elect(parts, representatives + 1)


@register(AUDIENCE, "tombstone_revived", "gossip revives who is gone", (Views, "_buried"), seed=2)
def _tombstone_revived(self: Views, address: Address) -> tuple[int, int]:
    return 0, 0


@register(AUDIENCE, "rounds_uncounted", "rounds are not counted", (Rumours, "rounds_at"))
def _rounds_uncounted(self: Rumours, level: int) -> float:
    return 1e9


@register(AUDIENCE, "skipped_later", "a leaf hands over later what it skipped", (Exact, "has_seen"), (Live, "due"))
def _skipped_later(self: Exact, arg: object) -> object:
    if isinstance(arg, Numbered):
        return arg.mseq in self.waiting
    items = [self.waiting.pop(mseq) for mseq in sorted(self.waiting)]
    self.next = max([self.next, *(item.mseq + 1 for item in items)])
    return items


@register(AUDIENCE, "exact_with_a_gap", "an exact leaf hands over what it has", (Exact, "due"))
def _exact_with_a_gap(self: Exact, rumoured: Iterable[int]) -> list[Numbered]:
    items = [self.waiting.pop(mseq) for mseq in sorted(self.waiting)]
    self.next = max([self.next, *(item.mseq + 1 for item in items)])
    return items


@register(
    AUDIENCE,
    "missed_by_number",
    "a leaf with an interest looks for gaps among numbers",
    (Interested, "missing"),
    (Interested, "complete"),
    seed=19,
)
def _missed_by_number(self: Interested, head: int, through: int = 0) -> tuple[int, int] | None:
    gap = next((n for n in range(self.next, self.head.mseq) if n not in self.waiting), None)
    return None if gap is None else (gap, self.head.mseq - gap)


@register(
    AUDIENCE, "ahead_of_the_head", "a leaf with an interest does not wait for a head", (Interested, "take"), seed=3
)
def _ahead_of_the_head(self: Interested, item: Numbered) -> None:
    _take(self, item)
    self._go_on_to(item.mseq + 1)


_take = Interested.take


@register(AUDIENCE, "hold_drops_lowest", "a full buffer drops what is needed first", (Exact, "take"), seed=6)
def _hold_drops_lowest(self: Exact, item: Numbered) -> None:
    self.waiting[item.mseq] = item
    if len(self.waiting) > self.settings.hold:
        del self.waiting[min(self.waiting)]
