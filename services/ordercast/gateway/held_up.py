"""What waits at a gateway now, for somebody who asks: envelopes without receipts, and what is in none yet."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ordercast.core.held_up import BLOCKERS_MAX, HeldUp, oldest

if TYPE_CHECKING:
    from ordercast.gateway.machine import Gateway


def held_up(machine: "Gateway", count_max: int) -> list[HeldUp]:
    """See core.held_up.TellsHeldUp."""
    return oldest((*_open(machine), *_waiting(machine)), count_max)


def _open(machine: "Gateway") -> Iterator[HeldUp]:
    for id_, opened in machine.open.items():
        if not opened.answered:
            silent = tuple(f"group:{name}" for name in opened.groups if name not in opened.delivered)
            yield HeldUp(id_, opened.groups, "publish", opened.sent, silent[:BLOCKERS_MAX])


def _waiting(machine: "Gateway") -> Iterator[HeldUp]:
    """The first request of each producer: what is behind it waits for it."""
    under_way = {
        name: id_ for id_, opened in machine.open.items() if not opened.answered for name in opened.groups
    }
    for producer in machine.batching.waiting.values():
        if producer.waiting:
            first = next(iter(producer.waiting))
            before = dict.fromkeys(under_way[cell] for cell in first.cells if cell in under_way)
            blocked_on = tuple(f"message:{id_.hex()}" for id_ in before)
            yield HeldUp(b"", first.groups, "submit", first.taken.at, blocked_on[:BLOCKERS_MAX])
