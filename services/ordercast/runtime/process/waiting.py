"""What waits in this process now, in all of its machines: for whoever asks why messages do not get on."""

from heapq import nsmallest
from typing import TYPE_CHECKING

from ordercast.core.held_up import HELD_UP_MAX, TellsHeldUp, for_people
from ordercast.core.ids import group_name
from ordercast.v1.sequencer_pb2 import WaitingEnvelope

if TYPE_CHECKING:
    from ordercast.runtime.process.node import Node

#: Of one process, over all of its machines.
WAITING_MAX = 1000


def waiting_here(node: "Node", domain: str = "") -> list[WaitingEnvelope]:
    """The oldest first; of all domains, if none is named."""
    now = node.clock.now()
    found = [
        WaitingEnvelope(
            id=held.id,
            domain=name,
            groups=[group_name(group) for group in held.groups],
            stage=held.stage,
            waited_ms=max(int((now - held.since) * 1000), 0),
            blocked_on=[for_people(text) for text in held.blocked_on],
        )
        for (name, _), slot in sorted(node.host.slots.items())
        if domain in ("", name) and isinstance(slot.machine, TellsHeldUp)
        for held in slot.machine.held_up(HELD_UP_MAX)
    ]
    return nsmallest(WAITING_MAX, found, key=lambda each: -each.waited_ms)
