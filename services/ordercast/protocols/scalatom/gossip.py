"""Gossip of histories inside a group.

[SCALATOM Fig.5 step 4] with a base, so that it carries only what is new [footnote 4] and a receiver that lost
some of it notices. Clock and entries for one peer are one statement (history.py); an entry is withheld from a
peer until that peer is known to hold the envelope (E4: if p gossiped an entry and died as the only holder,
everyone who counts it as a predecessor would wait for ever).
"""

from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, ID_BYTES, KEY_BYTES, incarnation_of, sn_of
from ordercast.core.machine import Receive, Send
from ordercast.core.view import OtherConfiguration
from ordercast.protocols.scalatom.held import Held
from ordercast.protocols.scalatom.history import Peer
from ordercast.protocols.scalatom.replica import Replica
from ordercast.v1.scalatom_pb2 import Gossip, GossipAsk

if TYPE_CHECKING:
    from ordercast.protocols.scalatom.machine import Scalatom


class Gossiper:
    def __init__(self, machine: "Scalatom") -> None:
        self.machine = machine

    # ------------------------------------------------------------------------------------------- telling

    def tell(self, replica: Replica, name: str, *, even_if_empty: bool = False, urgent: bool = True) -> None:
        machine, peer = self.machine, replica.peers[name]
        statement = replica.history.statement(
            peer.told, max(replica.clock, peer.told), lambda id_: self.is_free(id_, name)
        )
        if statement.clock == peer.told and not even_if_empty:
            return
        peer.told = statement.clock
        gossip = Gossip(
            group=replica.name,
            configuration=replica.group.configuration,
            base=statement.base,
            clock=statement.clock,
            forgotten=statement.forgotten,
            position=replica.position,
            advance=replica.advance_to + 1 if replica.passed < replica.advance_to else 0,
        )
        for rec_ts, id_ in statement.entries:
            gossip.entries.add(id=id_, rec_ts=rec_ts)
        machine.out.append(Send((name,), gossip, urgent))

    def is_free(self, id_: bytes, name: str) -> bool:
        """[E4] The peer is known to hold it: we saw its stamp, or it said so, or it is the gateway that sent it.

        That one has it in memory, with the replica beside it, for as long as it remembers what we gossip.
        """
        held = self.machine.held.get(id_)
        return held is None or held.is_held_by(name) or self._is_from(held, name)

    def _is_from(self, held: Held, name: str) -> bool:
        gateway = held.envelope.header.gateway if held.envelope is not None else ""
        return gateway == name and self.machine.current.get(name) == incarnation_of(held.id)

    def tell_news(self, replica: Replica) -> None:
        """Rides on a stamp to the same peers: then the decision need not wait for gossip of its own."""
        if replica.is_active:
            for name in replica.peers:
                self.tell(replica, name, urgent=False)

    def tell_up_to(self, replica: Replica, sn: int, coordinator: str) -> None:
        """Decided at sn: whoever was not yet told a clock above it waits for one."""
        for name, peer in replica.peers.items():
            peer.wants = max(peer.wants, sn)
            if peer.told <= sn and not self._may_owe(replica, name, coordinator):
                self.tell(replica, name)

    def tell_freed(self, replica: Replica, name: str, coordinator: str) -> None:
        """An entry that was withheld became free.

        If the peer waits for it, it is told at once. Otherwise it is told before it has to wait: on the way back
        to the coordinator this travels with our stamp, and a delivery need not wait for gossip of its own.
        """
        peer = replica.peers.get(name) if replica.is_active else None
        if peer is None or self._may_owe(replica, name, coordinator):
            return
        is_awaited = peer.told <= peer.wants
        if is_awaited or self.machine.settings.gossip_early:
            self.tell(replica, name, urgent=is_awaited)

    def _may_owe(self, replica: Replica, name: str, coordinator: str) -> bool:
        """Whether the peer is served by the coordinator: with its own history, that one's makes a majority.

        Then ours may wait for the next tick, and is one statement for many decisions. If the coordinator dies, the
        tick is how long the peer waits.
        """
        members = (self.machine.process, *replica.peers)
        is_served = coordinator in members and coordinator not in (self.machine.process, name)
        if self.machine.settings.gossip_early and is_served and replica.majority() <= 2:
            replica.owes_gossip = True
            return True
        return False

    def tell_owed(self, replica: Replica) -> None:
        replica.owes_gossip = False
        for name in replica.peers:
            self.tell(replica, name, urgent=False)

    def tell_all(self, replica: Replica) -> None:
        """Also if there is nothing new: a peer that lost the last statement sees it by the base."""
        for name in replica.peers:
            self.tell(replica, name, even_if_empty=True)

    def tell_again(self, name: str) -> None:
        for replica in self.machine.replicas.values():
            if replica.is_active and name in replica.peers:
                self.tell(replica, name, even_if_empty=True)

    # ------------------------------------------------------------------------------------------- hearing

    def on_gossip(self, event: Receive) -> None:
        gossip: Gossip = event.message
        replica, peer = self.checked(gossip.group, gossip.configuration, event.source)
        self._check(gossip)
        machine = self.machine
        peer.position = max(peer.position, gossip.position)
        if peer.position > replica.position:
            machine.wake()
        if not self.continues(peer, gossip):
            ask = GossipAsk(group=replica.name, configuration=gossip.configuration, base=peer.clock)
            machine.out.append(Send((event.source,), ask))
            return
        for entry in gossip.entries:
            if not replica.has_delivered(entry.id):
                machine.hear_of(entry.id)
                replica.note_entry(entry.id, entry.rec_ts)
        peer.clock = max(peer.clock, gossip.clock)
        peer.forgotten = max(peer.forgotten, gossip.forgotten)
        machine.touched[replica.name] = None
        if gossip.advance:
            machine.raise_clock(replica, gossip.advance)
            peer.wants = max(peer.wants, gossip.advance - 1)
            self.tell_freed(replica, event.source, "")

    def _check(self, gossip: Gossip) -> None:
        base, clock = gossip.base, gossip.clock
        for entry in gossip.entries:
            if not base <= entry.rec_ts < clock or len(entry.id) != ID_BYTES:
                raise RemoteProtocolError("a statement about other entries than it names")
        if not base <= clock <= CLOCK_MAX or gossip.advance > CLOCK_MAX:
            raise RemoteProtocolError("a clock that would raise everyone's without end")
        forgotten = gossip.forgotten
        if len(forgotten) != KEY_BYTES or sn_of(forgotten) > CLOCK_MAX:
            raise RemoteProtocolError("not an order key")

    def continues(self, peer: Peer, gossip: Gossip) -> bool:
        """A statement says nothing about what is below its base: we must know that already."""
        return peer.clock >= gossip.base

    def on_ask(self, event: Receive) -> None:
        ask: GossipAsk = event.message
        replica, peer = self.checked(ask.group, ask.configuration, event.source)
        peer.told = min(peer.told, ask.base)
        self.tell(replica, event.source, even_if_empty=True)

    def checked(self, group: str, configuration: int, source: str) -> tuple[Replica, Peer]:
        """Statements have a base and questions are asked again: nothing is lost by not understanding one yet."""
        assert self.machine.view is not None
        known = self.machine.view.present(group, configuration)
        replica = self.machine.replicas.get(group)
        if replica is None:
            raise RemoteProtocolError(f"no replica of {group!r} here")
        if source not in known.replicas or source == self.machine.process:
            raise RemoteProtocolError(f"{source} is no other replica of {group!r}")
        if not replica.is_active:
            raise OtherConfiguration(group, f"the replica of {group!r} here has not started")
        return replica, replica.peers[source]
