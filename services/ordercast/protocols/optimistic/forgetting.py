"""[10, 11] What all who need it have on their disks is forgotten.

That it is forgotten is written with what is dropped: an acceptor that answered a Prepare as if it had never voted
would let a leader decide the same instance once more.
"""

from typing import TYPE_CHECKING

from ordercast.protocols.optimistic import records
from ordercast.protocols.optimistic.payloads import as_source
from ordercast.protocols.optimistic.replica import Replica

if TYPE_CHECKING:
    from ordercast.protocols.optimistic.machine import Optimistic


class Forgetting:
    def __init__(self, machine: "Optimistic") -> None:
        self.machine = machine

    def forget(self, replica: Replica) -> None:
        below = self._floor(replica)
        if below <= replica.acceptor.forgotten:
            return
        machine = self.machine
        replica.acceptor.forget(below)
        for instance in [instance for instance in replica.values if instance < below]:
            del replica.values[instance]
            machine.changes.append((records.decided(replica.name, instance), None))
        for instance in [instance for instance in replica.held if instance < below]:
            for id_ in replica.held.pop(instance):
                machine.payloads.done(id_, as_source(replica.name))
            machine.changes.append((records.held(replica.name, instance), None))
        for receiver, state in list(replica.openings.items()):
            if state.next <= below:
                del replica.openings[receiver]
                machine.changes.append((records.base(replica.name, receiver), None))

    def _floor(self, replica: Replica) -> int:
        """The lowest position that a replica of a receiver has reported, and never above the own prefix."""
        groups = self.machine.view.groups
        floor = replica.log_state.next
        for receiver in (replica.name, *replica.log_state.receivers):
            group = groups.get(receiver)
            if group is None:
                return 0  # Our view is behind our log, which has a receiver that we have not heard of.
            reported = replica.reported.get(receiver, {})
            for process in group.working:
                floor = min(floor, reported.get(process, 0))
        return floor
