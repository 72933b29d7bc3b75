"""What happens on silence: relay, pull, ask, take over, bury.

[SCALATOM 3.4] assumes a reliable multicast; relaying each envelope eagerly costs (d-1)^2 messages. Here the
gateway sends to everyone, and replicas step in when someone has not been heard of for a while: they relay what
they hold, pull what they only heard of, repeat their stamps, and take over a consensus that makes no progress.
"""

from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import ID_BYTES, incarnation_of, pack_u64, short, sn_of
from ordercast.core.machine import Observe, Receive, Send
from ordercast.core.quorums import has_majority
from ordercast.protocols.scalatom.held import Held
from ordercast.protocols.scalatom.replica import Delivered, Replica
from ordercast.v1.common_pb2 import Destination, Header
from ordercast.v1.consensus_pb2 import Close, ClosedRecord, Decide
from ordercast.v1.scalatom_pb2 import Have, HaveAsk, Pull
from ordercast.v1.sequencer_pb2 import Disseminate

if TYPE_CHECKING:
    from ordercast.protocols.scalatom.machine import Scalatom

#: An envelope that was only heard of is pulled so many times.
PULLS_MAX = 8


class Repair:
    def __init__(self, machine: "Scalatom") -> None:
        self.machine = machine
        self.gossip_due = 0.0

    # ------------------------------------------------------------------------------------------ each tick

    def on_tick(self) -> None:
        machine = self.machine
        for held in list(machine.held.values()):
            if machine.now >= held.deadline:
                self._look_after(held)
                held.deadline = machine.now + held.delay
                held.delay = min(held.delay * 2, max(machine.settings.silence_s_max, machine.patience_s()))
        gossip = machine.now >= self.gossip_due
        if gossip:
            self.gossip_due = machine.now + machine.settings.gossip_s
        machine.catch_up.snapshots.on_tick()
        for replica in machine.replicas.values():
            machine.catch_up.on_tick(replica)
            if not replica.is_active:
                machine.hand_over.on_tick(replica)
                continue
            if gossip:
                machine.gossiper.tell_all(replica)
                self._bury_over(replica)
            elif replica.owes_gossip:
                machine.gossiper.tell_owed(replica)
            if machine.observe:
                self._observe_blocked(replica)

    def is_busy(self) -> bool:
        """Whether the next tick has more to do than gossip."""
        machine = self.machine
        if machine.view is None:
            return False
        for held in machine.held.values():
            if held.undelivered or not held.own:
                return True
            if len(held.owners) < len(machine.view.replicas_of(held.names)):
                return True
        for replica in machine.replicas.values():
            if not replica.is_active or replica.copied is not None:
                return True
            if any(
                p.position > replica.position or not replica.reached(p.forgotten) for p in replica.peers.values()
            ):
                return True
            if replica.owes_gossip:
                return True
        return False

    def _look_after(self, held: Held) -> None:
        machine = self.machine
        if held.envelope is not None and not held.own:
            return  # Its groups here have not started. When they have, they stamp it.
        if not held.own:
            # Only heard of: whoever stamped it holds it.
            held.tries += 1
            if held.tries > PULLS_MAX and not any(held.id in r.unresolved for r in machine.replicas.values()):
                # Its only holder is gone, and nothing waits for it. If it ever comes back, we hear of it again.
                del machine.held[held.id]
                return
            holders = [process for process in held.owners if process != machine.process]
            if holders:
                machine.out.append(Send(holders, Pull(id=held.id)))
            return
        silent = [process for process in self.relay_targets(held) if process not in held.owners]
        if silent and held.envelope is not None and held.is_whole():
            machine.out.append(Send(silent, Disseminate(envelope=held.envelope, again=True)))
        elif silent:
            machine.out += [Send(silent, message) for message in machine.stamping.messages(held, ask=True)]
        if held.sn is None and held.envelope is not None:
            self._press_for_decision(held)
        elif held.sn is None:
            machine.release(held.id)  # what it was for here is elsewhere, or delivered and forgotten

    def relay_targets(self, held: Held) -> list[str]:
        """Before the decision, everyone it is for; after it, the own groups, where entries are withheld."""
        machine = self.machine
        if held.sn is None:
            return machine.others(held.names)
        return machine.others(tuple(name for name in held.names if name in machine.replicas))

    def _press_for_decision(self, held: Held) -> None:
        """Ask those who hold it; later, as our rank among the learners has it, try to decide it ourselves."""
        machine = self.machine
        others = [process for process in machine.others(held.names) if process in held.owners]
        if others:
            machine.out += [Send(others, message) for message in machine.stamping.messages(held, ask=True)]
        held.tries += 1
        assert machine.view is not None
        learners = machine.view.replicas_of(held.names)
        if machine.process in learners and held.tries > min(learners.index(machine.process), 3):
            # Without a quorum of stamps we may still find out what was decided, but not propose.
            quorum = held.is_whole() and machine.stamping.has_quorum(held)
            machine.propose(held, held.highest() if quorum else None)

    def _observe_blocked(self, replica: Replica) -> None:
        machine = self.machine
        if not replica.queue:
            return
        key = replica.queue[0]
        sn = sn_of(key)
        blocker = replica.blocker(sn)
        if blocker is not None:
            detail = f"{replica.name}: predecessor {short(blocker)} is undecided"
        else:
            slow = [name for name, peer in replica.peers.items() if not replica.counts(peer, sn)]
            detail = f"{replica.name}: histories up to {sn} are missing from {', '.join(slow)}"
        machine.out.append(Observe("blocked", key[8:], detail))

    # ------------------------------------------------------------------------------------------- answers

    def owns(self, held: Held, process: str) -> None:
        """It holds the envelope durably: entries about it may be gossiped to it (E4)."""
        if process in held.owners:
            return
        held.owners[process] = None
        machine = self.machine
        for name in held.names:
            replica = machine.replicas.get(name)
            if replica is not None:
                machine.gossiper.tell_freed(replica, process, held.coordinator)

    def answer(self, source: str, id_: bytes) -> None:
        """Everything we know about it, to somebody who misses something."""
        machine = self.machine
        held = machine.held.get(id_)
        if held is not None:
            machine.out += [Send((source,), message) for message in machine.stamping.messages(held)]
        sn = machine.known_sn(id_)
        if sn is not None:
            machine.out.append(Send((source,), Decide(instance=id_, value=pack_u64(sn))))
        self._say_have(source, id_, even_if_not=False)

    def _say_have(self, source: str, id_: bytes, *, even_if_not: bool) -> None:
        machine = self.machine
        assert machine.view is not None
        groups = [
            name for name, replica in machine.replicas.items() if replica.is_active and replica.has_delivered(id_)
        ]
        if groups or even_if_not:
            have = Have(id=id_, groups=machine.view.destinations(groups))
            have.groups.extend(self._finished_elsewhere(id_))
            # Behind the deliveries that are still on their way to the disk.
            machine.then.append(Send((source,), have))

    def _finished_elsewhere(self, id_: bytes) -> list[Destination]:
        """What is buried is finished in all its groups, also in those that whoever asks does not know.

        A replica that has it from the log cannot tell whether a group it never heard of is gone or still to come.
        """
        replicas = self.machine.replicas
        rows = (replica.delivered.get(id_) for replica in replicas.values())
        buried = next((row for row in rows if row is not None and row.buried), None)
        return [] if buried is None else [d for d in buried.destinations if d.group not in replicas]

    def on_pull(self, event: Receive) -> None:
        id_ = self._checked_id(event.message.id)
        held = self.machine.held.get(id_)
        if held is not None and held.envelope is not None:
            self.machine.out.append(Send((event.source,), Disseminate(envelope=held.envelope)))
        else:
            self._say_have(event.source, id_, even_if_not=False)

    def on_have_ask(self, event: Receive) -> None:
        self._say_have(event.source, self._checked_id(event.message.id), even_if_not=True)

    def _checked_id(self, id_: bytes) -> bytes:
        if len(id_) != ID_BYTES:
            raise RemoteProtocolError("an envelope id has 16 bytes")
        return id_

    def on_have(self, event: Receive) -> None:
        """Delivered there. Where that is our group too and we have not: its log has what we lack."""
        have: Have = event.message
        machine, id_ = self.machine, self._checked_id(event.message.id)
        held = machine.held.get(id_)
        if held is not None and have.groups:
            self.owns(held, event.source)
        for destination in have.groups:
            replica = machine.replicas.get(destination.group)
            if held is None or replica is None or replica.has_delivered(id_):
                continue
            # A process that was paused asks about thousands of envelopes at once, and one fetch brings them all: a
            # fetch for each answer would have its peers read the same piece of their logs thousands of times.
            if event.source in replica.peers and machine.now >= replica.fetch_due:
                machine.catch_up.fetching.fetch(replica, event.source)
        for replica in machine.replicas.values():
            delivered = replica.delivered.get(id_)
            if delivered is not None and not delivered.buried:
                names = [d.group for d in delivered.destinations]
                for destination in have.groups:
                    if destination.group in names and self._is_present(destination):
                        delivered.durable.setdefault(destination.group, {})[event.source] = None
                self._bury_if_finished(replica, id_, delivered)

    def _is_present(self, destination: Destination) -> bool:
        """Majorities are counted within one configuration. Of a group that is gone nobody counts them."""
        assert self.machine.view is not None
        group = self.machine.view.groups.get(destination.group)
        return group is None or group.configuration == destination.configuration

    # ------------------------------------------------------------------------------------------- burying

    def _bury_over(self, replica: Replica) -> None:
        """[E8] Its gateway incarnation is over and will not say that it is finished: find out ourselves."""
        machine = self.machine
        if any(incarnation_of(id_) < machine.retired for id_ in replica.delivered):
            # It came by the log, after nothing of it was open anywhere: there is nothing to ask.
            machine.changes += replica.retire()
            machine.release_forgotten(replica)
        for id_, delivered in list(replica.delivered.items()):
            if delivered.buried or machine.now < delivered.ask_at or not machine.is_over(id_, delivered.gateway):
                continue
            delivered.ask_at = machine.now + delivered.ask_delay
            delivered.ask_delay = min(delivered.ask_delay * 2, machine.settings.silence_s_max)
            names = tuple(d.group for d in delivered.destinations)
            # We ask ourselves too: the answer comes behind the sync of our own delivery, which may be under way.
            machine.out.append(Send([*machine.others(names), machine.process], HaveAsk(id=id_)))

    def _bury_if_finished(self, replica: Replica, id_: bytes, delivered: Delivered) -> None:
        machine = self.machine
        assert machine.view is not None
        if not machine.is_over(id_, delivered.gateway):
            return
        names = tuple(d.group for d in delivered.destinations)
        if not all(self.is_finished_in(name, delivered) for name in names):
            return
        machine.changes.append(replica.bury(id_))
        machine.release_forgotten(replica)
        close = Close(instances=[id_])
        if incarnation_of(id_) in replica.done:
            # The last statement of its incarnation may have travelled with an Accept that some acceptor missed.
            close.finished.append(self._finished(replica, incarnation_of(id_)))
        machine.then.append(Send(machine.view.acceptors_of(names), close))

    def is_finished_in(self, name: str, delivered: Delivered) -> bool:
        assert self.machine.view is not None
        group = self.machine.view.groups.get(name)
        if group is not None:
            return has_majority(group.replicas, delivered.durable.get(name, {}))
        # Of what came by the log somebody must know: a group that our view does not have yet may still lack it.
        return self.was_there(delivered) or name in delivered.durable

    def was_there(self, delivered: Delivered) -> bool:
        """Whether all groups of the envelope have been in a view not later than ours: one that is missing is gone.

        What we stamped ourselves, we took with such a view. So did its gateway, and one of the groups has changed
        since it was addressed, as our view shows: then ours is later than the gateway's. That is for members that
        came after everybody who had stamped it left.
        """
        assert self.machine.view is not None
        if delivered.rec_ts is not None:
            return True
        groups = self.machine.view.groups
        return any(
            d.group in groups and groups[d.group].configuration > d.configuration for d in delivered.destinations
        )

    def to_close(self, header: Header) -> tuple[int, tuple[int, ...]]:
        """What acceptors may forget: as this envelope says, or an earlier one that was delivered here."""
        if header.done:
            return header.done, tuple(header.open)
        machine, incarnation = self.machine, incarnation_of(header.id)
        known = (replica.done.get(incarnation) for replica in machine.replicas_for(machine.held.get(header.id)))
        return next(((finished.done, finished.open) for finished in known if finished is not None), (0, ()))

    def close_again(self, peer: str) -> None:
        """An acceptor that was away may have missed that instances are finished, and would keep them for ever."""
        machine = self.machine
        assert machine.view is not None
        close = Close()
        for replica in machine.replicas.values():
            if not replica.is_active or peer not in replica.group.acceptors:
                continue
            close.finished.extend(self._finished(replica, incarnation) for incarnation in replica.done)
            close.instances.extend(id_ for id_, delivered in replica.delivered.items() if delivered.buried)
        if close.finished or close.instances:
            machine.then.append(Send((peer,), close))

    def _finished(self, replica: Replica, incarnation: int) -> ClosedRecord:
        finished = replica.done[incarnation]
        return ClosedRecord(done=finished.done, open=finished.open, incarnation=incarnation)
