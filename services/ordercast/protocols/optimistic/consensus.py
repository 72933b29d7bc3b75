"""[4.4] The log of a source group: its leader proposes, its members vote, and everyone whom it may concern learns.

An acceptor tells its vote to the members of its own group and to the replicas of all groups that this one may send
to. So a receiver knows a decision one delay after the votes, and nobody has to pass it on. A value holds ids and
timestamps; payloads travel beside it. An acceptor votes for an id only with its payload on the disk, so a decision
means that a majority has the payload, and will have it after any crash.

**Who leads.** Members take over in the order of their names, the first at once and the others after a silence that
grows with the rank. Two who believe that they lead cost time, and nothing else.
"""

from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import Receive, Send
from ordercast.core.view import OtherConfiguration
from ordercast.protocols.optimistic.replica import Replica
from ordercast.protocols.optimistic.state import State, check_entries, entries_of
from ordercast.protocols.paxos.parallel.ballots import Ballot, ballot_of, to_message
from ordercast.protocols.paxos.parallel.leader import Phase
from ordercast.v1.optimistic_pb2 import PlacedEntry
from ordercast.v1.parallel_pb2 import (
    CellAccept,
    CellLead,
    CellPrepare,
    CellPromise,
    CellRejected,
    CellVote,
    CellVoted,
)

if TYPE_CHECKING:
    from ordercast.protocols.optimistic.machine import Optimistic


class Consensus:
    def __init__(self, machine: "Optimistic") -> None:
        self.machine = machine

    # ------------------------------------------------------------------------------------------------- who speaks

    def _member(self, event: Receive) -> Replica:
        """Our replica of the group, of whose log a member speaks that is in our configuration."""
        message = event.message
        replica = self.machine.source(message.group)
        state = replica.log_state
        if message.configuration != state.configuration or event.source not in state.members:
            raise OtherConfiguration(replica.name, f"{event.source} is no member of {replica.name!r} here")
        return replica

    def _note_ballot(self, replica: Replica, ballot: Ballot) -> None:
        """Somebody else has a higher one: who leads with a lower one leads no more."""
        leader = replica.leader
        if leader.phase is not Phase.FOLLOWING and ballot > leader.ballot:
            leader.give_up()
            replica.ahead = None
            replica.heard_at = self.machine.now

    # -------------------------------------------------------------------------------------------- taking the lead

    def on_tick(self, replica: Replica) -> None:
        machine, leader = self.machine, replica.leader
        if machine.process not in replica.log_state.members:
            return
        if leader.is_leading:
            self._repeat(replica)
        elif leader.phase is Phase.PREPARING:
            if machine.now >= leader.due:
                self._prepare(replica)
        elif self._may_take_over(replica):
            self._prepare(replica)

    def _may_take_over(self, replica: Replica) -> bool:
        machine = self.machine
        rank = replica.log_state.members.index(machine.process)
        if replica.heard_at is None:
            if not rank:
                return True
            replica.heard_at = machine.now
        return machine.now - replica.heard_at >= machine.settings.silence_s * (1 + rank)

    def _prepare(self, replica: Replica) -> None:
        machine, leader = self.machine, replica.leader
        round_ = max(replica.acceptor.promised[0], leader.ballot[0]) + 1
        leader.prepare(
            (round_, machine.incarnation), replica.log_state.next, machine.now + 2 * machine.settings.silence_s
        )
        message = CellPrepare(
            group=replica.name,
            configuration=replica.log_state.configuration,
            ballot=to_message(leader.ballot),
            first=leader.first,
        )
        machine.out.append(Send(replica.log_state.members, message))

    def on_prepare(self, event: Receive) -> None:
        message: CellPrepare = event.message
        replica, ballot = self._member(event), ballot_of(message.ballot)
        votes = replica.acceptor.prepare(ballot, message.first)
        if votes is None:
            if message.first >= replica.acceptor.forgotten:
                self._reject(replica, event.source)
            return
        self._note_ballot(replica, ballot)
        replica.heard_at = self.machine.now
        promise = CellPromise(
            group=replica.name,
            configuration=message.configuration,
            ballot=message.ballot,
            first=message.first,
            votes=[
                CellVoted(instance=instance, ballot=to_message(vote.ballot), value=vote.value)
                for instance, vote in votes
            ],
        )
        self.machine.then.append(Send((event.source,), promise))

    def _reject(self, replica: Replica, to: str) -> None:
        rejected = CellRejected(
            group=replica.name,
            configuration=replica.log_state.configuration,
            promised=to_message(replica.acceptor.promised),
        )
        self.machine.then.append(Send((to,), rejected))

    def on_rejected(self, event: Receive) -> None:
        message: CellRejected = event.message
        replica, promised = self._member(event), ballot_of(message.promised)
        if promised > replica.leader.ballot:
            self._note_ballot(replica, promised)
            replica.leader.ballot = (promised[0], 0)  # the next attempt is above it

    def on_promise(self, event: Receive) -> None:
        message: CellPromise = event.message
        replica = self._member(event)
        machine, leader = self.machine, replica.leader
        votes = [(vote.instance, ballot_of(vote.ballot), vote.value) for vote in message.votes]
        for instance, _, value in votes:
            if instance < message.first:
                raise RemoteProtocolError("a promise with votes that nobody asked for")
            check_entries(value)
        is_mine = ballot_of(message.ballot) == leader.ballot and message.first == leader.first
        if not is_mine or not leader.promised(event.source, votes, replica.log_state.members):
            return
        leader.begin(machine.now + machine.settings.silence_s)
        leader.applied(replica.log_state.next)
        replica.leads = machine.process
        replica.ahead = State.of_message(replica.name, replica.log_state.to_message())
        for instance, proposal in sorted(leader.proposals.items()):
            replica.ahead.apply(proposal.value)
            self.send_accept(replica, instance, proposal.value)
        machine.touched[replica.name] = None

    # ------------------------------------------------------------------------------------------------- proposing

    def send_accept(self, replica: Replica, instance: int, value: bytes) -> None:
        message = CellAccept(
            group=replica.name,
            configuration=replica.log_state.configuration,
            ballot=to_message(replica.leader.ballot),
            instance=instance,
            value=value,
        )
        self.machine.out.append(Send(replica.log_state.members, message))

    def _repeat(self, replica: Replica) -> None:
        """That the leader is there, and what has no decision for too long."""
        machine, leader = self.machine, replica.leader
        for instance, proposal in sorted(leader.proposals.items()):
            if machine.now >= proposal.due:
                proposal.due = machine.now + machine.settings.silence_s
                self.send_accept(replica, instance, proposal.value)
        lead = CellLead(
            group=replica.name,
            configuration=replica.log_state.configuration,
            ballot=to_message(leader.ballot),
            next=replica.log_state.next,
        )
        others = [name for name in replica.log_state.members if name != machine.process]
        machine.out.append(Send(others, lead, urgent=False))

    def on_lead(self, event: Receive) -> None:
        message: CellLead = event.message
        replica, ballot = self._member(event), ballot_of(message.ballot)
        self._note_ballot(replica, ballot)
        if ballot < replica.acceptor.promised:
            self._reject(replica, event.source)
            return
        replica.leads, replica.heard_at = event.source, self.machine.now

    # ---------------------------------------------------------------------------------------------------- voting

    def on_accept(self, event: Receive) -> None:
        message: CellAccept = event.message
        replica, ballot = self._member(event), ballot_of(message.ballot)
        check_entries(message.value)
        self._note_ballot(replica, ballot)
        if ballot < replica.acceptor.promised:
            self._reject(replica, event.source)
            return
        replica.leads, replica.heard_at = event.source, self.machine.now
        replica.waiting_accepts[message.instance] = message
        self.vote_for(replica, message.instance)

    def vote_again(self, replica: Replica) -> None:
        """Payloads came, or instances were applied, so that fewer payloads are needed."""
        for instance in sorted(replica.waiting_accepts):
            self.vote_for(replica, instance)

    def vote_for(self, replica: Replica, instance: int) -> None:
        """With the payloads on the disk, or not yet."""
        machine, message = self.machine, replica.waiting_accepts[instance]
        placed = [entry.placed for entry in entries_of(message.value).entries if entry.HasField("placed")]
        if self._lacks_some(replica, placed):
            return
        del replica.waiting_accepts[instance]
        ballot = ballot_of(message.ballot)
        if not replica.acceptor.accept(ballot, instance, message.value):
            return
        for entry in placed:
            machine.payloads.keep(entry.id)
        vote = CellVote(
            group=replica.name,
            configuration=message.configuration,
            ballot=message.ballot,
            instance=instance,
            value=message.value,
        )
        machine.then.append(Send(machine.learners_of(replica), vote))

    def _lacks_some(self, replica: Replica, placed: list[PlacedEntry]) -> bool:
        """All that are lacking are asked for."""
        lacking = [entry for entry in placed if not self._holds(replica, entry)]
        return bool(lacking)

    def _holds(self, replica: Replica, entry: PlacedEntry) -> bool:
        """The payload, or the certainty that none is needed: what has its place is here as long as it must be."""
        machine = self.machine
        if replica.log_state.has_applied(entry.gateway, entry.id, entry.counter):
            return True
        cast = machine.payloads.held.get(entry.id)
        if cast is None:
            machine.payloads.need(entry.id, machine.source_of(replica), replica.name)
            return False
        header = cast.envelope.header
        named = [destination.group for destination in header.destinations]
        told = (header.gateway, cast.counter, cast.timestamp, named)
        if told != (entry.gateway, entry.counter, entry.timestamp, list(entry.destinations)):
            raise RemoteProtocolError("an entry that says other things of a message than its sender")
        return True
