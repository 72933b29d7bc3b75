"""The machine of a process that holds replicas in an optimistic domain: see README.md for the whole.

Here is only who does what with what comes. A step hands an event to one of the parts, and then lets every group
that it touched go on: vote for what was missing payloads, apply what is decided, deliver, propose, show.

**What has to be on the disk before somebody hears of it** is sent behind the one commit of a step: promises,
votes, reports, states. All else leaves at once: a restart repeats deliveries with the same offsets, since they
follow from logs.
"""

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.finished import Finished
from ordercast.core.ids import CLOCK_MAX, ID_BYTES, U64_MAX, counter_of, incarnation_of
from ordercast.core.machine import (
    Advance,
    ChannelReset,
    Effect,
    Ended,
    Event,
    GroupsRemoved,
    LogRead,
    Receive,
    Retired,
    SetTimer,
    Start,
    TimerFired,
    ViewChanged,
)
from ordercast.core.view import UnknownGroup, View, names_of
from ordercast.protocols.celllog.stepping import LogMachine
from ordercast.protocols.optimistic import keys, records
from ordercast.protocols.optimistic.asking import Asking
from ordercast.protocols.optimistic.clock import Clock
from ordercast.protocols.optimistic.consensus import Consensus
from ordercast.protocols.optimistic.delivery import Delivery
from ordercast.protocols.optimistic.early import Early
from ordercast.protocols.optimistic.following import FollowingLogs
from ordercast.protocols.optimistic.forgetting import Forgetting
from ordercast.protocols.optimistic.loading import Loading
from ordercast.protocols.optimistic.payloads import Payloads, as_source
from ordercast.protocols.optimistic.proposing import Proposing
from ordercast.protocols.optimistic.replica import Following, Pending, Replica
from ordercast.protocols.optimistic.settings import REQUESTED, Settings
from ordercast.protocols.optimistic.window import EXACT_S, Window
from ordercast.protocols.paxos.parallel.ballots import ballot_of
from ordercast.v1.common_pb2 import Header
from ordercast.v1.membership_pb2 import DomainView
from ordercast.v1.optimistic_pb2 import BarrierAsk, FollowFrom, LogPositions, Multicast, MulticastPull
from ordercast.v1.parallel_pb2 import (
    CellAccept,
    CellLead,
    CellPrepare,
    CellPromise,
    CellRejected,
    CellTell,
    CellVote,
)

TICK, DUE = "tick", "due"


class Optimistic(LogMachine[Replica]):
    settings: Settings
    view: View

    def __init__(self, process: str, settings: Settings, *, observe: bool = False) -> None:
        super().__init__(process, settings, observe=observe)
        self.view = View(DomainView())
        self.clock = Clock()
        self.window = Window(settings.window_us, settings.window_quantile, int(settings.window_cap_s * 1_000_000))
        self.payloads = Payloads()
        self.loading = Loading(self)
        self.consensus = Consensus(self)
        self.proposing = Proposing(self)
        self.following = FollowingLogs(self)
        self.delivery = Delivery(self)
        self.early = Early(self)
        self.asking = Asking(self)
        self.forgetting = Forgetting(self)
        #: The lives of processes that are over, which may have been gateways.
        self.ended: dict[str, int] = {}
        self.retired_below = 0
        self.finished: dict[int, Finished] = {}
        #: Early deliveries whose place is known, and how many of them were in the wrong order.
        self.confirmed = self.mistakes = 0
        self._due_at: float | None = None
        self._on_message: Mapping[type, Callable[[Receive], None]] = {
            Multicast: self._on_multicast,
            MulticastPull: self.asking.on_pull,
            BarrierAsk: self.asking.on_barrier_ask,
            LogPositions: self.asking.on_positions,
            FollowFrom: self.asking.on_base,
            CellPrepare: self.consensus.on_prepare,
            CellPromise: self.consensus.on_promise,
            CellRejected: self.consensus.on_rejected,
            CellAccept: self.consensus.on_accept,
            CellLead: self.consensus.on_lead,
            CellVote: self._on_vote,
            CellTell: self.asking.on_tell,
        }

    @property
    def handles(self) -> Sequence[type]:
        return tuple(self._on_message)

    # -------------------------------------------------------------------------------------------------- stepping

    def step(self, event: Event) -> list[Effect]:
        self.begin_step(event)
        match event:
            case Receive():
                self._on_message[type(event.message)](event)
            case TimerFired():
                self._on_timer(event)
            case LogRead():
                for entry in event.entries:
                    self.delivery.report(event.group, entry)
            case ChannelReset():
                self.asking.tell_positions(event.peer)
            case ViewChanged():
                self._on_view(event.index)
            case Advance():
                self._on_advance(event)
            case Ended():
                self._on_ended(event)
            case Retired():
                self.retired_below = max(event.below, self.retired_below)
                self.finished = {i: f for i, f in self.finished.items() if i >= self.retired_below}
                self._forget_placed(lambda id_: incarnation_of(id_) < self.retired_below)
            case GroupsRemoved():
                self.forget_groups(event)
            case Start():
                self.incarnation = event.incarnation
                self.loading.saved = list(event.records)
                self.out.append(SetTimer(TICK, self.settings.tick_s))
        return self.end_step()

    def end_step(self) -> list[Effect]:
        while self.touched:
            touched, self.touched = self.touched, {}
            for name in touched:
                if name in self.replicas:
                    self._go_on(self.replicas[name])
        for replica in self.replicas.values():
            self.following.record_dirty(replica)
            self.changes += replica.acceptor.take_changes()
        self.changes += self.payloads.take_changes()
        self._set_due_timer()
        return super().end_step()

    def _go_on(self, replica: Replica) -> None:
        while self.following.advance(replica):
            pass
        self.delivery.deliver(replica)
        self.consensus.vote_again(replica)
        while replica.nulls and replica.nulls[0][0] <= self.now + EXACT_S:
            replica.null_due = max(replica.null_due, heappop(replica.nulls)[1])
        self.proposing.propose(replica)
        self.early.show(replica)

    def _touch_all(self) -> None:
        self.touched.update(dict.fromkeys(self.replicas))

    def _on_timer(self, event: TimerFired) -> None:
        if event.name == DUE:
            self._due_at = None
        else:
            for replica in self.replicas.values():
                self.consensus.on_tick(replica)
            self.asking.on_tick()
            self.out.append(SetTimer(TICK, self.settings.tick_s))
        self._touch_all()

    def _set_due_timer(self) -> None:
        """For the next message whose window is over, to be shown or proposed."""
        due = [
            when
            for replica in self.replicas.values()
            for when in (
                *(one.due for one in replica.candidates.values()),
                *(one.due for one in replica.pending.values() if replica.leader.is_leading),
                *(when for when, _ in replica.nulls[:1]),
            )
            if when > self.now + EXACT_S
        ]
        first = min(due, default=None)
        if first is not None and (self._due_at is None or first < self._due_at):
            self._due_at = first
            self.out.append(SetTimer(DUE, first - self.now))

    # -------------------------------------------------------------------------------------------------- messages

    def _on_multicast(self, event: Receive) -> None:
        cast: Multicast = event.message
        header = cast.envelope.header
        self._check(cast)
        if self._is_over(header):
            self._take_payload(cast)
            return
        self.clock.saw(cast.timestamp, self.wall)
        clock = self.clock.read(self.wall)
        if event.source == header.gateway and not cast.again:
            self.window.sample(header.gateway, clock - cast.timestamp)
        due = self.now + self.window.wait_s(cast.timestamp, clock)
        names = names_of(header.destinations)
        for name, replica in self.replicas.items():
            if not cast.bare:
                if name == cast.source:
                    self._as_source(replica, cast, names, due)
                if name in names:
                    self.early.came(replica, cast, due)
                    if cast.again and not cast.pulled:
                        self.delivery.report_again(replica, header.id)
            self._let_pass(replica, cast, names, due)
            self.touched[name] = None
        self._take_payload(cast)

    def _check(self, cast: Multicast) -> None:
        header = cast.envelope.header
        if len(header.id) != ID_BYTES or not cast.counter or max(cast.timestamp, cast.counter) > CLOCK_MAX:
            raise RemoteProtocolError("not a multicast")
        for name in (cast.source, *names_of(header.destinations)):
            if name not in self.view.groups:
                raise UnknownGroup(name)

    def _is_over(self, header: Header) -> bool:
        return incarnation_of(header.id) < self.retired_below

    def _as_source(self, replica: Replica, cast: Multicast, names: tuple[str, ...], due: float) -> None:
        header = cast.envelope.header
        if header.id in replica.pending or replica.log_state.has_applied(header.gateway, header.id, cast.counter):
            return
        replica.pending[header.id] = Pending(cast.timestamp, header.gateway, cast.counter, names, due)
        self.payloads.need(header.id, as_source(replica.name), replica.name)

    def _let_pass(self, replica: Replica, cast: Multicast, names: tuple[str, ...], due: float) -> None:
        """[Algorithm 3 l.15-20] A group that may send to a destination must pass the message's timestamp first."""
        if self.settings.liveness != REQUESTED or replica.name == cast.source or cast.pulled:
            return
        if any(name == replica.name or name in replica.log_state.receivers for name in names):
            key = keys.null_for(keys.key_of(cast.timestamp, cast.envelope.header.id))
            self.asking.want_null(replica, key, due)

    def _take_payload(self, cast: Multicast) -> None:
        """If somebody here needs it. [10] What came behind its decision goes to the disk."""
        if cast.bare or not self.payloads.came(cast):
            return
        id_ = cast.envelope.header.id
        for name, replica in self.replicas.items():
            if id_ in replica.stamped_ids:
                self.payloads.keep(id_)
            self.touched[name] = None

    def _on_vote(self, event: Receive) -> None:
        message: CellVote = event.message
        ballot = ballot_of(message.ballot)
        for name, replica in self.replicas.items():
            following = replica.following.get(message.group)
            if following is not None:
                following.learner.vote(
                    event.source, message.configuration, ballot, message.instance, message.value
                )
                self.touched[name] = None

    def _on_advance(self, event: Advance) -> None:
        replica = self.replicas.get(event.group)
        if replica is None:
            return
        keys.check(event.key)
        replica.advance = max(replica.advance, event.key)
        for source in replica.following:
            self.asking.ask_barrier(replica, source, event.key)
        self.touched[replica.name] = None

    # -------------------------------------------------------------------------------------------------- who is it

    def source(self, name: str) -> Replica:
        """Our replica of a group to whose log something is said."""
        if name not in self.view.groups:
            raise UnknownGroup(name)
        return self._here(name)

    def source_of(self, replica: Replica) -> str:
        return as_source(replica.name)

    def members_of(self, following: Following, source: str) -> tuple[str, ...]:
        """Those whom a follower asks."""
        if following.state is not None:
            return following.state.members
        group = self.view.groups.get(source)
        return group.replicas if group is not None else ()

    def learners_of(self, replica: Replica) -> tuple[str, ...]:
        """[4.4] The members, and the replicas of all groups that it may send to."""
        return self.view.replicas_of(tuple(sorted([replica.name, *replica.log_state.receivers])))

    def senders_to(self, group: str) -> list[str]:
        """Every group may send to every group."""
        return list(self.view.groups)

    # ------------------------------------------------------------------------------------------- groups and lives

    def _on_view(self, view: View) -> None:
        self.view = view
        for name in [name for name in self.replicas if name not in view.groups]:
            del self.replicas[name]
        for name, group in sorted(view.groups.items()):
            if name in self.replicas:
                self.replicas[name].group = group
            elif self.process in group.working:
                self.replicas[name] = Replica(group, self.process, self.settings)
        self.loading.load()
        self._touch_all()

    def _on_ended(self, event: Ended) -> None:
        self.ended[event.process] = max(event.incarnation, self.ended.get(event.process, 0))
        self.window.forget(event.process)
        self._forget_placed(lambda id_: incarnation_of(id_) == event.incarnation)
        self._touch_all()

    def note_finished(self, replica: Replica, header: Header) -> None:
        """What its gateway says in a message that is delivered: it asks no more about these."""
        incarnation = incarnation_of(header.id)
        if self.finished.setdefault(incarnation, Finished()).merge(header.done, tuple(header.open)):
            finished = self.finished[incarnation]
            self._forget_placed(lambda id_: incarnation_of(id_) == incarnation and counter_of(id_) in finished)

    def _forget_placed(self, is_finished: Callable[[bytes], bool]) -> None:
        for replica in self.replicas.values():
            for id_ in [id_ for id_ in replica.placed if is_finished(id_)]:
                del replica.placed[id_]
                self.changes.append((records.placed(replica.name, id_), None))

    def oldest_open(self) -> int:
        """See core.machine.KeepsIncarnations."""
        open_ = (i for replica in self.replicas.values() for i in replica.open_incarnations())
        return min(open_, default=U64_MAX)

    def buffers(self) -> dict[str, int]:
        replicas = self.replicas.values()
        return {
            "pending": sum(len(replica.pending) for replica in replicas),
            "stamped": sum(len(replica.stamped) for replica in replicas),
            "shown": sum(len(replica.shown) + len(replica.candidates) for replica in replicas),
            "proposals": sum(len(replica.leader.proposals) for replica in replicas),
            "waiting_accepts": sum(len(replica.waiting_accepts) for replica in replicas),
            "values": sum(len(replica.values) for replica in replicas),
            "votes": sum(len(replica.acceptor.votes) for replica in replicas),
            "payloads": len(self.payloads.held),
            "missing": len(self.payloads.missing),
            "placed": sum(len(replica.placed) for replica in replicas),
        }

    def undelivered(self) -> tuple[int, float]:
        """See core.machine.HoldsUp."""
        waits = [replica.waits[1] for replica in self.replicas.values() if replica.heap]
        return sum(len(replica.stamped) for replica in self.replicas.values()), min(waits, default=self.now)
