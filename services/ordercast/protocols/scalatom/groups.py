"""Groups that come and go, and change their configurations, while others work.

Views change at different times at different processes. A group that our view does not have is either not yet there
or gone, and mostly we cannot tell which: what names it as a receiver of something new is refused, and comes again.
What we took ourselves is another matter: then we knew all its groups, so one that we do not know any more is gone.
README.md in this folder says why a group may go, and what its going must not touch; and what a change of
configuration is (handover.py does it).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ordercast.core.cells import names_group, shares_cell
from ordercast.core.errors import InvariantBroken
from ordercast.core.ids import pack_u64
from ordercast.core.machine import ResetLog, Send, ViewChanged
from ordercast.core.view import Group, View
from ordercast.protocols.scalatom import records
from ordercast.protocols.scalatom.held import Held
from ordercast.protocols.scalatom.replica import Replica
from ordercast.v1.scalatom_pb2 import StartedRecord

if TYPE_CHECKING:
    from ordercast.protocols.scalatom.machine import Scalatom


class Groups:
    def __init__(self, machine: "Scalatom") -> None:
        self.machine = machine

    def on_view(self, event: ViewChanged) -> None:
        machine = self.machine
        view = event.index
        self._check(view)
        before = machine.view.groups if machine.view is not None else {}
        changed = {n for n, g in view.groups.items() if n in before and before[n].configuration != g.configuration}
        machine.view = view
        gone = [name for name in machine.replicas if not self.is_for_us(view.groups.get(name))]
        for name, group in sorted(view.groups.items()):
            if name in machine.replicas:
                machine.replicas[name].follow(group)
            elif self.is_for_us(group):
                self.add(group)
        if view.number > machine.view_number:
            machine.view_number = view.number
            machine.changes.append((records.VIEW, pack_u64(view.number)))
        if machine.saved:
            machine.recovery.recover(machine.saved)
            machine.saved = []
            machine.repair.close_again(machine.process)  # the acceptor here was away as long as we were
        for name in gone:
            self._drop(name)
        for name, replica in list(machine.replicas.items()):
            if self.has_lost(replica.group, replica.started):
                self.lose(name)
        for held in machine.held.values():
            # It is for the others now: they need no word of a group that is gone to agree on its place.
            held.names = view.known(held.names)
        if changed:
            self._begin_again(changed, before)
        machine.hand_over.on_view()
        machine.wake()

    def is_for_us(self, group: Group | None) -> bool:
        """We are to hold its log: as a member, to be one, or until those who follow us have started."""
        process = self.machine.process
        if group is None:
            return False
        return process in (*group.replicas, *group.learners, *group.former_replicas)

    def has_lost(self, group: Group, started: int) -> bool:
        """What it has of the group is from a configuration in which it lost what it had."""
        process, former = self.machine.process, group.former
        if process in group.lost:
            return bool(started)
        return former is not None and process in former.lost and 0 < started <= former.number

    def _check(self, view: View) -> None:
        """Before anything is changed: what follows deletes."""
        machine = self.machine
        if view.number < machine.view_number:
            # Groups that are not in it may be there by now, and their records must not be taken for left over.
            raise InvariantBroken(f"view {view.number} after view {machine.view_number}")
        for name, replica in machine.replicas.items():
            if name in view.groups and view.groups[name].configuration < replica.group.configuration:
                raise InvariantBroken(f"group {name!r} went back to an earlier configuration")

    def add(self, group: Group) -> None:
        """In its first configuration its history is empty, and that is the truth: nothing for a group is stamped
        before the view has it. One that has lost what it had says so on disk: what comes from now on may be
        believed.
        """
        machine = self.machine
        replica = Replica(group, machine.process, machine.settings, machine.retirement)
        replica.clock = machine.restored
        replica.started = group.began_here(machine.process, is_acceptor=False)
        replica.follow(group)
        machine.replicas[group.name] = replica
        if machine.process in group.lost:
            machine.changes.append((records.started(group.name), StartedRecord().SerializeToString()))

    # ------------------------------------------------------------------------------------------ changing

    def _begin_again(self, changed: set[str], before: Mapping[str, Group]) -> None:
        """What was said in a configuration counts there. In the next one everyone has to say it again."""
        machine = self.machine
        assert machine.view is not None
        for held in machine.held.values():
            for name in changed:
                held.stamps.pop(
                    name, None
                )  # also of one whose envelope is still to come, and names its groups then
            names = [name for name in held.names if name in changed]
            if not names:
                continue
            for name in names:
                self._forget_owners(held, machine.view.groups[name], before[name].configuration)
            held.again = held.proposed
            held.tries, held.deadline, held.delay = 0, machine.now, machine.patience_s()
            if held.own and held.sn is None:
                others = machine.others(held.names)
                machine.out += [Send(others, message) for message in machine.stamping.messages(held, ask=True)]
        for replica in machine.replicas.values():
            for delivered in replica.delivered.values():
                for name in changed:
                    delivered.durable.pop(name, None)

    def _forget_owners(self, held: Held, group: Group, before: int) -> None:
        """Who was a member earlier, and is a newcomer now, does not hold what it held then."""
        former = group.former
        if former is None or former.number != before:
            held.owners = {self.machine.process: None} if held.own else {}
            return
        for process in group.replicas:
            if process not in former.replicas or process in former.lost:
                held.owners.pop(process, None)

    def lose(self, name: str) -> None:
        """What the disk had of the group is gone or damaged: here it begins with nothing, as a newcomer would."""
        machine = self.machine
        group = machine.replicas[name].group
        self._drop(name)
        machine.out.append(ResetLog(name, 0))
        self.add(group)

    # ------------------------------------------------------------------------------------------- going

    def mentions(self, group: str) -> bool:
        """Something that names the group is not delivered in every group here, or only its replicas can tell
        whether it is finished.

        What is delivered here, of a gateway that lives, needs the group no more: as long as it is not finished,
        the gateway mentions it itself. To wait until it is forgotten here would be to wait for the gateway's next
        envelope, and there may never be one.
        """
        machine = self.machine
        if shares_cell(group):
            # Its cell stays, with all that is known of envelopes there. So only what may still be delivered to the
            # group counts: an envelope that is not delivered everywhere. One that some replica gets later, from
            # somebody's log, leaves nothing behind but where the group ends, which is looked after (KeepsGroups).
            return any(
                held.undelivered and held.envelope is not None and names_group(held.envelope.header, group)
                for held in machine.held.values()
            )
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
            if other.is_active  # others have it all from a log, and nobody is asked about it
            for id_, delivered in other.delivered.items()
        )

    def _drop(self, name: str) -> None:
        """Its log goes with the view; here go the records that are of this group alone."""
        machine = self.machine
        replica = machine.replicas.pop(name)
        ids = [*replica.delivered]
        machine.changes += [*machine.catch_up.clear(replica), *machine.catch_up.forget(name)]
        machine.hand_over.starting.pop(name, None)
        machine.changes += machine.hand_over.forget(name)
        machine.changes += [(key(name), None) for key in (records.position, records.started)]
        for held in list(machine.held.values()):
            held.own.pop(name, None)
            if name in held.undelivered:
                # A late copy, taken after we said that nothing here names the group; or it is elsewhere now.
                del held.undelivered[name]
                machine.settle(held)
                ids.append(held.id)
        for id_ in ids:
            machine.release(id_)

    def delete_left_over(self, key: bytes) -> None:
        """A record of a group that is gone, or has its replicas elsewhere since we were away."""
        self.machine.changes.append((key, None))
