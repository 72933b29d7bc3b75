"""Receipt and stamps: steps 1 to 3 of the paper, up to the quorum.

[SCALATOM Fig.5 steps 1-3] An envelope comes, from a gateway or relayed; each of its groups here stamps it; the
stamp is durable before anybody hears of it. A process gives one stamp for all of its groups that take the envelope
at the same time. A group that is between two configurations stamps later, when it has started (handover.py).
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ordercast.core.cells import check_targets
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, ID_BYTES, counter_of, incarnation_of, unpack_u64
from ordercast.core.machine import Observe, Persist, Receive, Send
from ordercast.core.quorums import has_majority
from ordercast.core.view import OtherConfiguration, UnknownGroup
from ordercast.protocols.celllog.idempotence import Record
from ordercast.protocols.scalatom import records
from ordercast.protocols.scalatom.held import Held
from ordercast.protocols.scalatom.replica import Replica
from ordercast.v1.common_pb2 import Destination, Envelope, Header
from ordercast.v1.scalatom_pb2 import RecTs, StampedRecord
from ordercast.v1.sequencer_pb2 import Disseminate

if TYPE_CHECKING:
    from ordercast.protocols.scalatom.machine import Scalatom


class Stamping:
    def __init__(self, machine: "Scalatom") -> None:
        self.machine = machine

    # ------------------------------------------------------------------------------------------- receipt

    def on_disseminate(self, event: Receive) -> None:
        machine = self.machine
        envelope: Envelope = event.message.envelope
        header = envelope.header
        names = self.checked_header(header)
        local = [name for name in names if name in machine.replicas and machine.replicas[name].is_member]
        if not local:
            # Whoever sent it has another view; or we are to be a replica, or are one that lost its disk.
            raise OtherConfiguration(names[0], f"no replica of {list(names)} at {machine.process}")
        id_ = header.id
        held = machine.held.get(id_)
        undelivered = [name for name in local if not machine.replicas[name].has_delivered(id_)]
        is_from_that_life = event.source == header.gateway and event.incarnation == incarnation_of(id_)
        if is_from_that_life and event.incarnation <= machine.ended.get(event.source, 0):
            return  # given up by membership; a later life of the process passes on what its replica holds
        if (held is not None and (held.own or held.envelope is not None)) or not undelivered:
            if event.message.again:
                self._answer_again(event.source, header, local)
            return
        self.take(envelope, names, undelivered)
        if machine.settings.relay_eagerly and event.source != machine.process:
            machine.out.append(Send(machine.others(names), Disseminate(envelope=envelope)))

    def _answer_again(self, source: str, header: Header, local: list[str]) -> None:
        """Whoever sends it again misses something: a gateway our reports, a replica what we know.

        A process may be both, and does not say as which it asks. n2 is gateway and replica, n3 has decided by the
        stamps of all, and its stamp for n2 was lost without a reset. Told only that the envelope is delivered, the
        gateway at n2 is content, and the replica there waits for n3's stamp for ever.
        """
        machine = self.machine
        assert machine.view is not None
        names = tuple(destination.group for destination in header.destinations)
        if source == header.gateway:
            machine.report_again(header, local)
        if source != machine.process and (source != header.gateway or source in machine.view.replicas_of(names)):
            machine.repair.answer(source, header.id)

    def checked_header(self, header: Header) -> tuple[str, ...]:
        """Refuse what no gateway of ours sends, before anything is stored."""
        view = self.machine.view
        assert view is not None
        self.check_form(header)
        names = view.checked_names(header.destinations)
        is_present = view.is_as_addressed(header.destinations)
        if is_present and header.coordinator.process not in view.replicas_of(names):
            raise RemoteProtocolError("the coordinator is no replica of a destination")
        return names

    def check_form(self, header: Header) -> None:
        """What can be said of an envelope without knowing its groups."""
        if len(header.id) != ID_BYTES:
            raise RemoteProtocolError("an envelope id has 16 bytes")
        if not header.ranges:
            raise RemoteProtocolError("an envelope without producers")
        if header.done > counter_of(header.id) or any(counter >= header.done for counter in header.open):
            raise RemoteProtocolError("an envelope that calls itself or later ones finished")
        if header.session and (len(header.session) != 8 or unpack_u64(header.session) > CLOCK_MAX):
            raise RemoteProtocolError("not a session clock")
        check_targets(header)

    # ------------------------------------------------------------------------------------------ stamping

    def take(self, envelope: Envelope, names: tuple[str, ...], undelivered: list[str]) -> None:
        """[Fig.5 step 2] Stamp it; envelope and stamp are durable before anybody hears of them."""
        machine = self.machine
        assert machine.view is not None
        groups = machine.view.groups
        held = machine.hear_of(envelope.header.id)
        held.names, held.envelope = names, envelope
        held.undelivered = dict.fromkeys(undelivered)
        # They came before the envelope, and whether they may is seen only now.
        held.stamps = {
            name: {process: ts for process, ts in stamps.items() if process in groups[name].replicas}
            for name, stamps in held.stamps.items()
            if name in names
        }
        # One that has delivered it already may be a newcomer, whose stamp would not be what others know of it.
        here = [machine.replicas[name] for name in undelivered if machine.replicas[name].is_active]
        if here:
            self.stamp(held, here)
        sn = machine.known_sn(held.id)
        if sn is not None:
            # Heard before the envelope came, or delivered from the log of another group here.
            held.sn = sn
            machine.resolve(held)
        else:
            machine.propose_if_coordinator(held)

    def stamp(self, held: Held, here: list[Replica]) -> None:
        """In these groups, which can, and have not."""
        machine = self.machine
        assert held.envelope is not None
        self.follow_session(held.envelope.header)
        rec_ts = max(replica.clock for replica in here)
        held.owners[machine.process] = None
        for replica in here:
            replica.clock = rec_ts + 1
            held.stamp(replica.name, machine.process, rec_ts)
            replica.stamp(held.id, rec_ts)
        machine.clock = max(machine.clock, rec_ts + 1)
        self.persist_and_tell(held)
        if machine.observe:
            machine.out.append(Observe("timestamped", held.id, f"rec_ts {rec_ts}", since=machine.now))

    def follow_session(self, header: Header) -> None:
        """[E6] Above everything its producers have seen, so it is ordered behind that."""
        if header.session:
            clock = unpack_u64(header.session) + 1
            for destination in header.destinations:
                replica = self.machine.replicas.get(destination.group)
                if replica is not None and replica.is_active:
                    replica.clock = max(replica.clock, clock)

    def persist_and_tell(self, held: Held) -> None:
        """[Fig.5 step 2, E5] Persist, then send. With the stamp rides what the peers have not heard yet."""
        machine = self.machine
        assert held.envelope is not None
        machine.out.append(Persist([self.record(held), *machine.reservation()]))
        header = held.envelope.header
        coordinator = header.coordinator.process
        # The coordinator waits for it, and the others for the coordinator's, before they gossip (E4), unless it is
        # the gateway. They need each other's later, for their deliveries.
        is_awaited = machine.process == coordinator != header.gateway
        for stamp in self.messages(held):
            for is_coordinator in (True, False):
                to = [p for p in machine.others(held.names) if (p == coordinator) is is_coordinator]
                if to:
                    machine.out.append(Send(to, stamp, urgent=is_coordinator or is_awaited))
        for name in held.undelivered:
            replica = machine.replicas[name]
            if not machine.settings.gossip_early:
                machine.gossiper.tell_news(replica)
            else:
                machine.gossiper.tell_freed(replica, header.gateway, header.gateway)

    def record(self, held: Held) -> Record:
        """Mostly one stamp for all groups here. If not, it says which of them have stamped it, and how."""
        assert held.envelope is not None
        own = held.own
        if not own:
            return (records.stamped(held.id), None)
        common = next(iter(own.values()))
        record = StampedRecord(envelope=held.envelope, rec_ts=common)
        here = self.machine.replicas_for(held)
        entries = {replica.name: replica.history.entry(held.id) for replica in here}
        if any(own.get(name) != common or entry not in (None, common) for name, entry in entries.items()):
            for name, rec_ts in own.items():
                entry = entries.get(name)
                record.stamps.add(group=name, rec_ts=rec_ts, entry=rec_ts if entry is None else entry)
        return (records.stamped(held.id), record.SerializeToString())

    def messages(self, held: Held, *, ask: bool = False) -> list[RecTs]:
        """What our groups that work have stamped it with. One message, unless they did so at different times."""
        machine = self.machine
        assert machine.view is not None
        by_stamp: dict[int, list[str]] = {}
        for name in held.names:
            rec_ts = held.own.get(name)
            if rec_ts is not None:
                replica = machine.replicas.get(name)
                if replica is not None and replica.is_active:
                    by_stamp.setdefault(rec_ts, []).append(name)
        return [
            RecTs(id=held.id, rec_ts=rec_ts, groups=machine.view.destinations(names), ask=ask)
            for rec_ts, names in by_stamp.items()
        ]

    # ------------------------------------------------------------------------------------ others' stamps

    def on_rec_ts(self, event: Receive) -> None:
        machine = self.machine
        rec_ts: RecTs = event.message
        id_, source = rec_ts.id, event.source
        if len(id_) != ID_BYTES or rec_ts.rec_ts > CLOCK_MAX:
            raise RemoteProtocolError("not a stamp")
        groups = self._present(source, rec_ts.groups)
        held = machine.held.get(id_)
        if held is None:
            if machine.is_settled(id_):
                if rec_ts.ask:
                    machine.repair.answer(source, id_)
                return
            held = machine.hear_of(id_)
        assert machine.view is not None
        if held.names and not any(name in held.names for name in groups):
            raise RemoteProtocolError(f"{source} stamped an envelope that is not for it")
        for name in groups:
            held.note_stamp(name, source, rec_ts.rec_ts)
        if rec_ts.ask:
            machine.repair.answer(source, id_)
        machine.repair.owns(held, source)
        if held.sn is None:
            machine.implied.heard(held, source)
            machine.propose_if_coordinator(held)

    def _present(self, source: str, destinations: Iterable[Destination]) -> list[str]:
        """The groups of a stamp for which it counts: in the configuration that our view has."""
        view = self.machine.view
        assert view is not None
        names: list[str] = []
        other = ""
        last = ""
        for destination in destinations:
            name = destination.group
            if name <= last:
                raise RemoteProtocolError("destinations must be sorted, each group once")
            last = name
            group = view.groups.get(name)
            if group is None:
                raise UnknownGroup(name)
            if group.configuration != destination.configuration:
                other = name
            elif source not in group.replicas:
                raise RemoteProtocolError(f"{source} is no replica of {name!r}")
            else:
                names.append(name)
        if not names and other:
            raise OtherConfiguration(other, f"a stamp of another configuration of {other!r}")
        if not names:
            raise RemoteProtocolError("the destination set is empty")
        return names

    def has_quorum(self, held: Held) -> bool:
        """[SCALATOM 3.5] A majority of each group, each within one configuration: the present one."""
        assert self.machine.view is not None
        groups = self.machine.view.groups
        return all(has_majority(groups[name].replicas, held.stamps.get(name, ())) for name in held.names)
