"""What casts wait for now, for somebody who asks: as watching.py tells it afterwards, of those that still wait."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ordercast.core.held_up import BLOCKERS_MAX, HeldUp, oldest
from ordercast.protocols.isis.era import Era
from ordercast.protocols.isis.records import Key
from ordercast.protocols.isis.replica import Replica

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis


def held_up(machine: "Isis", count_max: int) -> list[HeldUp]:
    """See core.held_up.TellsHeldUp."""
    return oldest((*_casts(machine), *_uncast(machine)), count_max)


def _casts(machine: "Isis") -> Iterator[HeldUp]:
    """Those that are here and not visible in the log."""
    for (name, view, key), since in machine.watching.look().items():
        replica = machine.replicas[name]
        era = next((era for era in replica.eras if era.view == view and key in era.casts), None)
        if era is not None:
            stage, blocked_on = _reason(replica, era, key)
            id_ = era.casts[key].envelope.header.id
            yield HeldUp(id_, (name,), stage, since, blocked_on[:BLOCKERS_MAX])


def _reason(replica: Replica, era: Era, key: Key) -> tuple[str, tuple[str, ...]]:
    if era.is_sealed:
        # What is open is settled by the change of view, whatever it waited for before.
        return "order", (f"view:{replica.name}/{replica.group.configuration}",)
    if not era.is_delivered(key):
        return "causal", _predecessors(era, key)
    if key not in era.place_of:
        return "order", (f"token:{era.members[era.token.holder]}",)
    before = era.places.get(replica.position)
    if before is None or before not in era.casts or before == key:
        return "deliver", ()
    return "deliver", (f"message:{era.casts[before].envelope.header.id.hex()}",)


def _predecessors(era: Era, key: Key) -> tuple[str, ...]:
    """Of its past in this group: casts that are here and not delivered, and members whose casts are not here."""
    time = era.times[key].get(era.group)
    counts = time.counts if time is not None and time.view == era.view else {}
    wanted = {**counts, key[0]: key[1] - 1}
    found = []
    for member, count in sorted(wanted.items()):
        if member >= len(era.members) or era.delivered[member] >= count:
            continue
        first = (member, era.delivered[member] + 1)
        if first in era.casts:
            found.append(f"message:{era.casts[first].envelope.header.id.hex()}")
        else:
            found.append(f"replica:{era.members[member]}")
    return tuple(found)


def _uncast(machine: "Isis") -> Iterator[HeldUp]:
    """What was submitted here and may not be cast yet."""
    speaking = machine.speaking
    for queue in (*speaking.queues.values(), *speaking.handed_on.values()):
        for waiting in queue:
            blocked_on = (waiting.blocked_on,) if waiting.blocked_on else ()
            yield HeldUp(waiting.envelope.header.id, (waiting.group,), "cast", machine.now, blocked_on)
