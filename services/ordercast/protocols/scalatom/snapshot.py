"""The state at a position of a SCALATOM log: beside what every log has, what is finished, and what is buried."""

from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, ID_BYTES, KEY_BYTES, KEY_MIN, sn_of
from ordercast.core.machine import Persist
from ordercast.protocols.celllog import snapshots
from ordercast.protocols.celllog.idempotence import Record
from ordercast.protocols.celllog.snapshots import Offer
from ordercast.protocols.scalatom.replica import Replica
from ordercast.v1.sequencer_pb2 import Snapshot, SnapshotAsk

if TYPE_CHECKING:
    from ordercast.protocols.scalatom.machine import Scalatom


class Snapshots(snapshots.Snapshots[Replica]):
    machine: "Scalatom"

    # --------------------------------------------------------------------------------------------- giving

    def snapshot(self, replica: Replica) -> Snapshot:
        """Everything that follows from the log, for someone to whom the log itself is no longer available."""
        snapshot = Snapshot(
            group=replica.name,
            configuration=replica.group.configuration,
            order_key=replica.last_key,
            done=[replica.done_message(incarnation) for incarnation in replica.done],
            delivered=[replica.delivered_message(id_) for id_ in replica.delivered],
            retired=self.machine.retired,
        )
        replica.present().put_into(snapshot)
        return snapshot

    def offer(self, replica: Replica, ask: SnapshotAsk) -> Offer:
        return Offer(replica.position, is_present=True, make=lambda: self.snapshot(replica))

    # --------------------------------------------------------------------------------------------- taking

    def asks_for(self, replica: Replica) -> int:
        return replica.group.configuration

    def sn_end(self, snapshot: Snapshot) -> int:
        return sn_of(snapshot.order_key) + 1

    def check(self, replica: Replica, snapshot: Snapshot) -> None:
        """Nothing of it is behind its own end, and its end is not behind ours."""
        end = snapshot.order_key
        if len(end) != KEY_BYTES or sn_of(end) > CLOCK_MAX:
            raise RemoteProtocolError("not a snapshot of this group")
        if snapshot.retired > CLOCK_MAX:
            raise RemoteProtocolError("not an incarnation")
        for record in snapshot.delivered:
            if len(record.id) != ID_BYTES or len(record.order_key) != KEY_BYTES:
                raise RemoteProtocolError("a snapshot with a record of no envelope")
            if record.order_key > end or record.position >= snapshot.position:
                raise RemoteProtocolError("a snapshot with a record behind its end")
        if snapshot.position > replica.position and end <= replica.last_key != KEY_MIN:
            raise RemoteProtocolError("a snapshot that is further and behind at once")

    def came(self, replica: Replica, snapshot: Snapshot, source: str) -> None:
        self.machine.catch_up.came(replica, snapshot, source)

    def install(self, replica: Replica, snapshot: Snapshot) -> None:
        """The log is here as far as the state goes."""
        machine = self.machine
        changes = replica.clear_envelopes()
        machine.retire(snapshot.retired)
        changes += replica.take_state(snapshot)
        replica.last_key = snapshot.order_key
        for done in snapshot.done:
            replica.load_done(done)
        for record in snapshot.delivered:
            held = machine.held.get(record.id)
            mine = held.own.get(replica.name) if held is not None and not record.buried else None
            replica.load_delivered(record, mine)
            replica.delivered[record.id].configuration = replica.started  # of our stamp, and not the sender's
        machine.raise_clock(replica, sn_of(replica.last_key) + 1)
        changes += self._records(replica)
        self._settle_delivered(replica)
        machine.out.append(Persist(machine.changes + changes))
        machine.changes = []
        machine.touched[replica.name] = None

    def _records(self, replica: Replica) -> list[Record]:
        changes = [replica.delivered_record(id_) for id_ in replica.delivered]
        changes += [replica.done_record(incarnation) for incarnation in replica.done]
        changes.append(replica.position_record())
        return changes

    def _settle_delivered(self, replica: Replica) -> None:
        """Own entries that the snapshot covers: kept if its table has them, else they count as forgotten."""
        machine = self.machine
        replica.drop_open()
        for held in list(machine.held.values()):
            if not replica.has_delivered(held.id):
                continue
            delivered = replica.delivered.get(held.id)
            held.undelivered.pop(replica.name, None)
            if delivered is not None:
                machine.learn(held, sn_of(delivered.key))
            if held.own and (delivered is None or delivered.buried):
                # Groups here that did stamp it may have forgotten it before, and left it for our old table alone.
                replica.forgotten.append(held.id)
                if replica.name in held.own:
                    replica.history.forget(held.id, replica.last_key)
            machine.settle(held)
        replica.history.forget_all_below(replica.clock, replica.last_key)
        machine.release_forgotten(replica)
