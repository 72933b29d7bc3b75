"""How a view ends: define, flush, complete.

Membership defines a view. From then on nothing of the one that ends is sent or taken; each of its surviving
members tells the others what it has (DagForward, then DagFlush). The cut is the union of that. It decides each
agreed message that is not settled: *void* if no survivor has the body, so that nobody can have shown it.
Whoever has the cut on disk says so to membership, and when a majority of the view and of each group's replicas
has, membership records that the view is complete. Only then does anybody act on it: [DKM93 5.2] whoever has not
voted never will, so what is left gets its place, and the next view begins.

There is no Crash(q) of its own: a view ends for all members at once, and never on suspicion.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import Receive, Send
from ordercast.core.view import FIRST, Processes
from ordercast.protocols.causal.early import VIEWS_AHEAD_MAX, Early
from ordercast.protocols.causal.flush import Attempt, contributors_of, coordinator_of, union
from ordercast.protocols.toto import records
from ordercast.protocols.toto.checking import BODIES_MAX, check_flush, check_message
from ordercast.protocols.toto.era import DOMAIN, Era, begin_of, key_of, message_of, time_of
from ordercast.protocols.toto.speaking import header_of
from ordercast.v1.toto_pb2 import DagCut, DagCutSynced, DagFlush, DagForward, DagMessage

if TYPE_CHECKING:
    from ordercast.protocols.toto.machine import Toto


class Contribution:
    """What one survivor said."""

    behind = False

    def __init__(self, flush: DagFlush) -> None:
        self.flush = flush


class Flushing:
    def __init__(self, machine: "Toto") -> None:
        self.machine = machine
        self.attempt: Attempt[DagMessage, Contribution] | None = None
        #: On the disk, or on its way there; and the view whose cut is on it.
        self.cut: DagCut | None = None
        self.synced = 0
        #: Of views that membership has not told us of.
        self.early = Early()

    def forwarded(self) -> int:
        return len(self.attempt.casts) if self.attempt is not None else 0

    # --------------------------------------------------------------------------------------- membership's word

    def on_view(self) -> None:
        processes = self.machine.view.processes
        if processes is None:
            return
        self._follow_completed(processes)
        self._seal(processes)
        if not processes.previous:
            self.attempt = None
        elif self.attempt is None or self.attempt.view != processes.number:
            self._begin(processes)
        self.contribute()

    def _follow_completed(self, processes: Processes) -> None:
        machine, era, completed = self.machine, self.machine.era, processes.completed
        if era is not None and era.view < completed:
            if self.cut is not None and self.cut.view == completed:
                self._complete(era, processes)
            else:
                machine.end_era()
        if machine.era is None and machine.process in processes.completed_names:
            if completed == FIRST:
                machine.begin_era(begin_of(FIRST, 0, {}), processes.completed_names)
            else:
                machine.entering.begin(completed)

    def _seal(self, processes: Processes) -> None:
        """[flush] Nothing more is said or taken in a view once a later one is defined."""
        era = self.machine.era
        if era is not None and processes.number > era.view:
            era.is_sealed = True

    # -------------------------------------------------------------------------------------------- contributing

    def _begin(self, processes: Processes) -> None:
        """A view is defined. Whatever was tried before it is void."""
        machine, view = self.machine, processes.number
        self._forget_cut(keeping=view)
        self.attempt = None
        events = self.early.take(DOMAIN, view)
        contributors = contributors_of(processes.previous_names, processes.names, ())
        if machine.process not in contributors:
            return
        first = coordinator_of(contributors, processes.names)
        self.attempt = Attempt(view, processes.previous, processes.previous_names, contributors, first)
        for event in events:
            machine.handlers[type(event.message)](event, event.message)

    def _forget_cut(self, *, keeping: int) -> None:
        if self.cut is not None and self.cut.view != keeping:
            self.cut, self.synced = None, 0
            self.machine.changes.append((records.CUT, None))

    def ending(self) -> Era | None:
        """The era that ends in the attempt, if we are in it."""
        era, attempt = self.machine.era, self.attempt
        return era if era is not None and attempt is not None and era.view == attempt.ends else None

    def contribute(self) -> None:
        """As soon as we are in the view that ends, and once."""
        era, attempt, process = self.ending(), self.attempt, self.machine.process
        if era is None or attempt is None or process in attempt.flushes:
            return
        orphans = era.forget_orphans()
        self.machine.changes += [(records.message(era.view, key), None) for key in orphans]
        flush = DagFlush(view=attempt.view, ends=attempt.ends, received=era.received, settled=era.settled)
        bodies = [key for key, message in era.casts.items() if message.HasField("envelope")]
        flush.bodies.extend(message_of(key) for key in sorted(bodies))
        attempt.flushes[process] = Contribution(flush)
        self._tell([name for name in attempt.contributors if name != process])
        self._absorb()
        self.compute()

    def _tell(self, to: Sequence[str]) -> None:
        """What others may lack, then what we have."""
        era, attempt, machine = self.ending(), self.attempt, self.machine
        if era is None or attempt is None or machine.process not in attempt.flushes or not to:
            return
        for message in era.casts.values():
            holders = machine.speaking.holders(message)
            whole = [name for name in to if name in holders]
            rest = [name for name in to if name not in holders]
            if whole:
                machine.out.append(Send(whole, DagForward(view=attempt.view, message=message)))
            if rest:
                machine.out.append(Send(rest, DagForward(view=attempt.view, message=header_of(message))))
        machine.out.append(Send(list(to), attempt.flushes[machine.process].flush))

    def on_connected(self, peer: str) -> None:
        """What was in flight may be lost."""
        if self.attempt is not None and peer in self.attempt.contributors:
            self._tell([peer])

    # ------------------------------------------------------------------------------------------------- hearing

    def _attempt_of(self, event: Receive, view: int) -> Attempt[DagMessage, Contribution] | None:
        processes = self.machine.view.processes
        known = processes.number if processes is not None else 0
        if view > known:
            if view > known + VIEWS_AHEAD_MAX:
                raise RemoteProtocolError("a view that is far from being defined")
            self.early.keep(event, (DOMAIN, view))
            return None
        attempt = self.attempt
        if attempt is None or attempt.view != view:
            self.machine.stale_count += 1
            return None
        if event.source not in attempt.contributors:
            raise RemoteProtocolError(f"{event.source} has nothing to contribute")
        return attempt

    def on_forward(self, event: Receive, forward: DagForward) -> None:
        attempt = self._attempt_of(event, forward.view)
        if attempt is None:
            return
        message = forward.message
        check_message(message, attempt.members)
        if message.view != attempt.ends or len(attempt.casts) >= BODIES_MAX:
            raise RemoteProtocolError("not a message of the view that ends")
        key = key_of(message.key)
        known = attempt.casts.get(key)
        if known is None or (message.HasField("envelope") and not known.HasField("envelope")):
            attempt.casts[key], attempt.times[key] = message, time_of(message)

    def on_flush(self, event: Receive, flush: DagFlush) -> None:
        attempt = self._attempt_of(event, flush.view)
        if attempt is None:
            return
        check_flush(flush, attempt.ends, len(attempt.members))
        attempt.flushes[event.source] = Contribution(flush)
        self._absorb()
        self.compute()

    def _absorb(self) -> None:
        """What was forwarded is as good as received: it is in the cut, or in the next one."""
        era, attempt, machine = self.ending(), self.attempt, self.machine
        if era is None or attempt is None:
            return
        for key in sorted(attempt.casts):
            message, known = attempt.casts[key], era.casts.get(key)
            if key[1] == era.received[key[0]] + 1:
                machine.receiving.keep(era, message)
            elif known is not None and message.HasField("envelope") and not known.HasField("envelope"):
                era.casts[key] = message
                machine.changes.append((records.message(era.view, key), message.SerializeToString()))
        attempt.casts.clear()
        attempt.times.clear()
        era.enter()

    # ------------------------------------------------------------------------------------------------- the cut

    def compute(self) -> None:
        """All have contributed: this is how the view ends."""
        era, attempt, machine = self.ending(), self.attempt, self.machine
        if era is None or attempt is None or self.cut is not None or not attempt.is_heard:
            return
        flushes = [contribution.flush for contribution in attempt.said().values()]
        counts = union(flush.received for flush in flushes)
        if era.delivered != counts:
            return  # It comes again, behind a new connection.
        settled = union(flush.settled for flush in flushes)
        bodies = {key_of(key): None for flush in flushes for key in flush.bodies}
        voids = []
        for key, message in era.casts.items():
            if not message.agreed or key[1] <= settled[key[0]]:
                continue
            if key not in bodies:
                voids.append(key)
            elif not message.HasField("envelope") and machine.process in machine.speaking.holders(message):
                return  # Somebody has the body, and it comes again as well.
        self.cut = DagCut(view=attempt.view, ends=attempt.ends, counts=counts)
        self.cut.voids.extend(message_of(key) for key in sorted(voids))
        machine.changes.append((records.CUT, self.cut.SerializeToString()))
        machine.out.append(Send((machine.process,), DagCutSynced(view=attempt.view)))

    def on_cut_synced(self, event: Receive, message: DagCutSynced) -> None:
        if event.source == self.machine.process and self.cut is not None and self.cut.view == message.view:
            self.synced = message.view

    def _complete(self, era: Era, processes: Processes) -> None:
        """[Close(view, cut)] Membership has recorded it. What is left of the view gets its place."""
        machine, cut = self.machine, self.cut
        assert cut is not None
        era.voids = dict.fromkeys(key_of(key) for key in cut.voids)
        era.end(cut.counts)
        while (ordered := era.next_visible(machine.replicas_of)) is not None:
            machine.show(ordered)
        begin = begin_of(cut.view, era.index, era.positions)
        self._forget_cut(keeping=0)
        machine.end_era()
        if machine.process in processes.completed_names:
            machine.begin_era(begin, processes.completed_names)
