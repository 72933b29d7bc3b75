"""Groups that come and go while others work.

Views change at different times at different processes. A group that our view does not have is either not yet there
or gone, and mostly we cannot tell which: what names it as a receiver of something new is refused, and comes again.
What we took ourselves is another matter: then we knew all its groups, so one that we do not know any more is gone.
README.md in this folder says why a group may go, and what its going must not touch.
"""

from typing import TYPE_CHECKING

from ordercast.core.errors import InvariantBroken
from ordercast.core.ids import pack_u64
from ordercast.core.machine import ViewChanged
from ordercast.core.view import Group, View
from ordercast.protocols.scalatom import records
from ordercast.protocols.scalatom.replica import Replica

if TYPE_CHECKING:
    from ordercast.protocols.scalatom.machine import Scalatom


class Groups:
    def __init__(self, machine: "Scalatom") -> None:
        self.machine = machine

    def on_view(self, event: ViewChanged) -> None:
        machine = self.machine
        view = View(event.view)
        self._check(view)
        gone = [name for name in machine.replicas if name not in view.groups]
        for name in view.hosted_by(machine.process):
            if name not in machine.replicas:
                self.add(view.groups[name])
        machine.view = view
        if view.number > machine.view_number:
            machine.view_number = view.number
            machine.changes.append((records.VIEW, pack_u64(view.number)))
        if machine.saved:
            machine.catch_up.recover(machine.saved)
            machine.saved = []
            machine.repair.close_again(machine.process)  # the acceptor here was away as long as we were
        for name in gone:
            self._drop(name)
        for held in machine.held.values():
            # It is for the others now: they need no word of a group that is gone to agree on its place.
            held.names = view.known(held.names)
        machine.wake()

    def _check(self, view: View) -> None:
        """Before anything is changed: what follows deletes."""
        machine = self.machine
        if view.number < machine.view_number:
            # Groups that are not in it may be there by now, and their records must not be taken for left over.
            raise InvariantBroken(f"view {view.number} after view {machine.view_number}")
        for name, replica in machine.replicas.items():
            if view.groups.get(name, replica.group) != replica.group:
                raise InvariantBroken(f"group {name!r} changed its configuration without a hand-over")

    def add(self, group: Group) -> None:
        """Its history is empty, and that is the truth: nothing for a group is stamped before the view has it."""
        machine = self.machine
        replica = Replica(group, machine.process, machine.settings, machine.retirement)
        replica.clock = machine.restored
        machine.replicas[group.name] = replica

    # ------------------------------------------------------------------------------------------- going

    def mentions(self, group: str) -> bool:
        """Something that names the group is not delivered in every group here, or only its replicas can tell
        whether it is finished.

        What is delivered here, of a gateway that lives, needs the group no more: as long as it is not finished,
        the gateway mentions it itself. To wait until it is forgotten here would be to wait for the gateway's next
        envelope, and there may never be one.
        """
        machine = self.machine
        replica = machine.replicas.get(group)
        if replica is not None and (replica.unresolved or replica.queued):
            return True
        if any(held.undelivered and group in held.names for held in machine.held.values()):
            return True
        return any(
            not delivered.buried
            and any(destination.group == group for destination in delivered.destinations)
            and machine.is_over(id_, delivered.gateway)
            for other in machine.replicas.values()
            for id_, delivered in other.delivered.items()
        )

    def _drop(self, name: str) -> None:
        """Its log goes with the view; here go the records that are of this group alone."""
        machine = self.machine
        replica = machine.replicas.pop(name)
        ids = [*replica.delivered]
        machine.changes += machine.catch_up.clear(replica)
        machine.changes.append((records.position(name), None))
        for held in list(machine.held.values()):
            if name in held.undelivered:
                # A late copy, taken after we said that nothing here names the group.
                del held.undelivered[name]
                machine.settle(held)
                ids.append(held.id)
        for id_ in ids:
            machine.release(id_)

    def delete_left_over(self, key: bytes) -> None:
        """A record of a group that was removed while we were away."""
        machine = self.machine
        assert machine.view is not None
        name = records.group_of(key)
        if name in machine.view.groups:
            raise InvariantBroken(f"group {name!r} has its replicas elsewhere, without a hand-over")
        machine.changes.append((key, None))
