"""What is always so between two steps, and what the README argues with.

Each is a few comparisons for a group that the step touched, however much is open in it: the simulator looks after
every step.
"""

from typing import TYPE_CHECKING

from ordercast.core.errors import InvariantBroken
from ordercast.core.ids import short, sn_of
from ordercast.protocols.scalatom.replica import Replica

if TYPE_CHECKING:
    from ordercast.protocols.scalatom.machine import Scalatom


def check(machine: "Scalatom") -> None:
    # E7: "The clock is reserved ahead on disk, and restarts from the reservation."
    if machine.clock > machine.reserved:
        raise InvariantBroken(f"the clock is {machine.clock}, and only {machine.reserved} is reserved")
    for name in machine.touched:
        replica = machine.replicas[name]
        _check_clock(replica, machine.clock)
        if replica.queue:
            _check_queue(machine, replica)


def _check_clock(replica: Replica, highest: int) -> None:
    # "These are all the stamps I gave below clock c": nobody is told of a clock that is not reached, so what is
    # stamped later is above it; and what is reserved covers the clock of every group.
    clock = replica.clock
    if clock > highest:
        raise InvariantBroken(f"{replica.name}: its clock is {clock}, and the highest here {highest}")
    for name, peer in replica.peers.items():
        if peer.told > clock:
            raise InvariantBroken(f"{replica.name}: {name} was told {peer.told}, and the clock is {clock}")
    if not replica.history.is_whole:
        raise InvariantBroken(f"{replica.name}: an entry of the history has no stamp, or two")


def _check_queue(machine: "Scalatom", replica: Replica) -> None:
    # "An envelope that is decided goes to the queue at once", once, with its number. "Deliver in the order of the
    # numbers": what is delivered is before all that waits.
    if len(replica.queue) != len(replica.queued):
        what = f"{len(replica.queued)} envelopes have {len(replica.queue)} places in the queue"
        raise InvariantBroken(f"{replica.name}: {what}")
    key = replica.queue[0]
    sn, id_ = sn_of(key), key[8:]
    if key <= replica.last_key:
        what = f"{sn}/{short(id_)} is not delivered, and what comes behind it is"
        raise InvariantBroken(f"{replica.name}: {what}")
    held = machine.held.get(id_)
    if held is None or held.envelope is None or held.sn != sn or id_ in replica.unresolved:
        raise InvariantBroken(f"{replica.name}: {short(id_)} waits as decided at {sn}, and is not held so")
