"""What envelopes wait for now, for somebody who asks: what waits.py tells afterwards, of those that still wait."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ordercast.core.held_up import BLOCKERS_MAX, HeldUp, oldest
from ordercast.core.ids import sn_of
from ordercast.core.quorums import has_majority
from ordercast.protocols.scalatom.held import Held
from ordercast.protocols.scalatom.replica import Replica

if TYPE_CHECKING:
    from ordercast.protocols.scalatom.machine import Scalatom


def held_up(machine: "Scalatom", count_max: int) -> list[HeldUp]:
    """See core.held_up.TellsHeldUp."""
    return oldest((each for held in machine.held.values() for each in _waits_of(machine, held)), count_max)


def _waits_of(machine: "Scalatom", held: Held) -> Iterator[HeldUp]:
    if not held.undelivered:
        return
    if held.sn is None:
        stage, blocked_on = _number(machine, held)
        yield HeldUp(held.id, held.names, stage, held.since, blocked_on[:BLOCKERS_MAX])
        return
    for name in held.undelivered:
        replica = machine.replicas.get(name)
        if replica is not None:
            stage, blocked_on = _place(replica, held)
            yield HeldUp(held.id, (name,), stage, held.since, blocked_on[:BLOCKERS_MAX])


def _number(machine: "Scalatom", held: Held) -> tuple[str, tuple[str, ...]]:
    """It has none: stamps of a majority of some group are missing, or its coordinator's word is."""
    if not held.own:
        return "timestamp", (f"replica:{machine.process}",)
    groups = machine.view.groups if machine.view is not None else {}
    missing: dict[str, None] = {}
    lacking: dict[str, None] = {}
    for name in held.names:
        group = groups.get(name)
        if group is None:
            continue
        stamped = list(held.stamped(name))
        without = [process for process in group.replicas if process not in stamped]
        missing.update(dict.fromkeys(without))
        if not has_majority(group.replicas, stamped):
            lacking.update(dict.fromkeys(without))
    if lacking:
        return "decide", tuple(f"replica:{process}" for process in lacking)
    # All groups have stamped it: it is for its coordinator to say what that comes to, or for those who vote.
    if held.coordinator and held.coordinator != machine.process:
        return "decide", (f"replica:{held.coordinator}",)
    return "decide", tuple(f"replica:{process}" for process in missing)


def _place(replica: Replica, held: Held) -> tuple[str, tuple[str, ...]]:
    """Its number is known: something may come before it in this group, or stands before it."""
    if not replica.is_active or replica.copied is not None:
        return "deliver", (f"view:{replica.name}/{replica.group.configuration}",)
    if not replica.queue or held.id not in replica.queued:
        return "deliver", ()
    head = replica.queue[0]
    if replica.queued[held.id] != head:
        return "deliver", (f"message:{head[8:].hex()}",)
    sn = sn_of(head)
    blocker = replica.blocker(sn)
    if blocker is not None:
        return "predecessors", (f"message:{blocker.hex()}",)
    silent = [name for name, peer in replica.peers.items() if not replica.counts(peer, sn)]
    return "predecessors", tuple(f"replica:{name}" for name in silent)
