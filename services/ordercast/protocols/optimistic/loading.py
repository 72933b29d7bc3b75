"""What was on the disk, put together again once the first view says which groups are here."""

from typing import TYPE_CHECKING

from ordercast.core.ids import ID_BYTES, unpack_u64
from ordercast.protocols.celllog.records import group_of
from ordercast.protocols.celllog.saved_logs import SavedLogs
from ordercast.protocols.optimistic import records
from ordercast.protocols.optimistic.payloads import as_destination, as_source
from ordercast.protocols.optimistic.replica import Following, Pending, Replica, Stamped
from ordercast.protocols.optimistic.state import State
from ordercast.protocols.paxos.parallel import acceptor
from ordercast.protocols.paxos.parallel.learner import LogLearner
from ordercast.v1.optimistic_pb2 import FollowedRecord, SourceState, StampedKey
from ordercast.v1.sequencer_pb2 import PositionRecord

if TYPE_CHECKING:
    from ordercast.protocols.optimistic.machine import Optimistic


class Loading:
    def __init__(self, machine: "Optimistic") -> None:
        self.machine = machine
        #: Until the first view.
        self.saved: list[tuple[bytes, bytes]] = []

    def load(self) -> None:
        saved, self.saved = self.saved, []
        if not saved:
            return
        machine, logs = self.machine, SavedLogs()
        for key, value in saved:
            if key[:1] == records.PAYLOAD:
                machine.payloads.load(value)
                continue
            replica = machine.replicas.get(group_of(key))
            if replica is None:
                machine.changes.append((key, None))
            elif not logs.add(key, value):
                self._load(replica, key, value)
        for replica in machine.replicas.values():
            logs.restore(replica)
            self._restore(replica)
        machine.payloads.drop_unneeded()

    def _load(self, replica: Replica, key: bytes, value: bytes) -> None:
        match key[:1]:
            case records.POSITION:
                record = PositionRecord.FromString(value)
                replica.position, replica.offset = record.position, record.offset
                replica.last_key = record.order_key
            case acceptor.ACCEPTOR | acceptor.VOTE:
                replica.acceptor.load(key, value)
            case records.DECIDED:
                replica.values[records.instance_in(key)] = value
            case records.FOLLOWED:
                self._followed(replica, records.what_of(key).decode(), FollowedRecord.FromString(value))
            case records.STAMPED:
                stamped = StampedKey.FromString(value)
                order_key = records.what_of(key)
                replica.stamp(order_key, Stamped(order_key[-ID_BYTES:], stamped.source, stamped.instance))
            case records.PLACED:
                replica.placed[records.what_of(key)] = unpack_u64(value)
            case records.BASE:
                state = State.of_message(replica.name, SourceState.FromString(value))
                replica.openings[records.what_of(key).decode()] = state
            case records.HELD:
                ids = [value[at : at + ID_BYTES] for at in range(0, len(value), ID_BYTES)]
                replica.held[records.instance_in(key)] = tuple(ids)

    def _followed(self, replica: Replica, source: str, record: FollowedRecord) -> None:
        following = Following(record.begins)
        if record.HasField("state"):
            following.state = State.of_message(source, record.state)
            following.learner = LogLearner(following.state.next)
        if source == replica.name:
            assert following.state is not None
            replica.log_state, replica.own = following.state, following
        replica.following[source] = following

    def _restore(self, replica: Replica) -> None:
        """What follows from several records together."""
        machine, payloads = self.machine, self.machine.payloads
        for instance, vote in replica.acceptor.votes.items():
            if instance < replica.log_state.next:
                replica.values.setdefault(instance, vote.value)
        for ids in replica.held.values():
            for id_ in ids:
                payloads.need(id_, as_source(replica.name), replica.name)
        for stamped in replica.stamped.values():
            payloads.need(stamped.id, as_destination(replica.name), stamped.source)
        for id_, cast in payloads.held.items():
            header = cast.envelope.header
            is_applied = replica.log_state.has_applied(header.gateway, id_, cast.counter)
            if cast.source == replica.name and not is_applied:
                names = tuple(destination.group for destination in header.destinations)
                pending = Pending(cast.timestamp, header.gateway, cast.counter, names, machine.now)
                replica.pending[id_] = pending
                payloads.need(id_, as_source(replica.name), replica.name)
