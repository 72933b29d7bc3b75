"""The state at a position of the log, for whoever copies a log whose beginning is gone.

It is what every log has (protocols/celllog/snapshots.py). But not any state will do. A view begins, for all of its
members, where the cut before it ends: who enters it with a longer log would take positions of that view for those
before it. So a copier may go up to that end and no further, while a giver that is in the view has moved on. It
could not go back, and therefore remembers the state with which its view began. The question names a view (in
`configuration`); the answer is the latest state at hand that has nothing of that view in it, nor of a later one:

* of a giver that is not in that view, its present state;
* of one that is, what it remembers, until membership says that all members have installed the view.

So whoever has to be in a view gets what it needs. Until the view is complete, those that have the log are sealed
in the one before. None of them is beyond the cut's end, for all that was visible is in the cut; and once it has
the cut, none is before its first position. Whatever lies between the two will do. When the view is complete, those
that have adopted it remember its beginning as long as one member has not installed it, which the copier has not. A
giver that restarts forgets; but that ends its part in the view, so membership defines another one, of which all
this is true again. A learner may take what is of views that it knows to be complete: it hears of all of them in
the end, and until then nobody waits for it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ordercast.protocols.celllog import snapshots
from ordercast.protocols.celllog.group_log import CellState
from ordercast.protocols.celllog.snapshots import Offer
from ordercast.protocols.isis.replica import Replica
from ordercast.v1.sequencer_pb2 import Snapshot, SnapshotAsk

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis


@dataclass(slots=True)
class Beginning:
    """The state with which a view began, and the view that ended there."""

    view: int
    ends: int
    state: CellState


class Snapshots(snapshots.Snapshots[Replica]):
    machine: "Isis"

    def __init__(self, machine: "Isis") -> None:
        super().__init__(machine)
        #: By group.
        self.beginnings: dict[str, Beginning] = {}

    # -------------------------------------------------------------------------------------------- remembering

    def began(self, replica: Replica) -> None:
        """A view was adopted just now, and nothing of it is in the log."""
        cut = replica.last_cut
        if cut is None or cut.view != replica.view or replica.ending is None:
            return  # The first one, which began with nothing; or we are not in it.
        assert replica.position == replica.ending.start
        if replica.position != cut.first_position + len(cut.keys):
            # A peer sent a log that goes on behind the cut, so where the view began is not known here. Newcomers
            # that need the beginning get it from another member.
            return
        self.beginnings[replica.name] = Beginning(cut.view, cut.ends, replica.state())
        self.machine.wake()

    def tidy(self, replica: Replica) -> None:
        """Drop a beginning that nobody needs any more."""
        name, group = replica.name, replica.group
        beginning = self.beginnings.get(name)
        if beginning is not None:
            is_installed = group.configuration == beginning.view and not group.starting
            if is_installed or replica.completed > beginning.view:
                del self.beginnings[name]

    def forget(self, name: str) -> None:
        super().forget(name)
        self.beginnings.pop(name, None)

    # ------------------------------------------------------------------------------------- giving and taking

    def offer(self, replica: Replica, ask: SnapshotAsk) -> Offer | None:
        """The latest at hand that has nothing of that view in it, nor of a later one."""
        if replica.view < ask.configuration:
            present = replica.present()
            return Offer(present.position, is_present=True, make=lambda: self._snapshot(replica, present))
        beginning = self.beginnings.get(replica.name)
        if beginning is None or beginning.ends >= ask.configuration:
            return None
        state = beginning.state
        return Offer(state.position, is_present=False, make=lambda: self._snapshot(replica, state))

    def _snapshot(self, replica: Replica, state: CellState) -> Snapshot:
        snapshot = Snapshot(group=replica.name, configuration=replica.view)
        state.put_into(snapshot)
        return snapshot

    def asks_for(self, replica: Replica) -> int:
        """The latest state there that has nothing in it which is not for us yet."""
        return self.machine.copying.last_view(replica) + 1

    def sn_end(self, snapshot: Snapshot) -> int:
        return snapshot.position

    def came(self, replica: Replica, snapshot: Snapshot, source: str) -> None:
        self.machine.copying.came(replica, snapshot, source)
