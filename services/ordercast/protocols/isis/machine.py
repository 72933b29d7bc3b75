"""ISIS: CBCAST and ABCAST in virtually synchronous groups.

[BSS91] Birman, Schiper, Stephenson, "Lightweight Causal and Atomic Group Multicast", ACM TOCS 9(3), 1991.
README.md in this folder tells the protocol, and where it departs from the paper.

One machine serves all groups that a process is a member of: what a process has seen in one group counts in all.
Each subject has a file of its own; all of them append to the effects of the current step.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

from ordercast.core.cells import cell_of, names_group, shares_cell
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.held_up import HeldUp
from ordercast.core.machine import (
    Advance,
    ChannelReset,
    Effect,
    Ended,
    Event,
    GroupsClosed,
    GroupsRemoved,
    LogRead,
    Observe,
    Progress,
    ReadLog,
    Receive,
    Retired,
    Send,
    SetTimer,
    Start,
    TimerFired,
    ViewChanged,
)
from ordercast.core.view import OtherConfiguration, UnknownGroup
from ordercast.protocols.celllog.copying import MESSAGES
from ordercast.protocols.celllog.fetching import COPY_TIMER
from ordercast.protocols.celllog.stepping import LogMachine
from ordercast.protocols.isis import invariants, times
from ordercast.protocols.isis.asking import Asking
from ordercast.protocols.isis.checking import check_envelope, check_seen, session_of
from ordercast.protocols.isis.confirmed import Confirmed
from ordercast.protocols.isis.copying import Copying
from ordercast.protocols.isis.delivery import Delivering
from ordercast.protocols.isis.epochs import Epochs
from ordercast.protocols.isis.flush import Flushing
from ordercast.protocols.isis.held_up import held_up
from ordercast.protocols.isis.log import VisibleLog
from ordercast.protocols.isis.ordering import ORDER_TIMER, Ordering
from ordercast.protocols.isis.parts import Parts
from ordercast.protocols.isis.receiving import Receiving
from ordercast.protocols.isis.records import Key
from ordercast.protocols.isis.replica import Replica, report_of
from ordercast.protocols.isis.settings import Settings
from ordercast.protocols.isis.speaking import Speaking
from ordercast.protocols.isis.stability import STABILITY_TIMER, Stabilising
from ordercast.protocols.isis.stamps import bytes_of
from ordercast.protocols.isis.telling import Telling, TellOne
from ordercast.protocols.isis.times import Stamp, Times
from ordercast.protocols.isis.views import Views
from ordercast.protocols.isis.watching import Watching
from ordercast.v1.common_pb2 import Envelope
from ordercast.v1.isis_pb2 import (
    Cast,
    Cut,
    CutSynced,
    EpochFlush,
    Flush,
    Forward,
    LogInView,
    PartCast,
    PartsCast,
    Resume,
    SetsOrder,
    Stability,
    Submit,
    Tell,
    TellAck,
)
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse, EnvelopeDelivered, LogEntry

TICK = "tick"
REPORT = "report "
#: Messages that change nothing about views: most are.
_WITHIN_A_VIEW = (Submit, Cast, Stability, SetsOrder, EpochFlush)


class Isis(LogMachine[Replica]):
    settings: Settings
    asks_view = False
    handles = (
        Submit,
        Cast,
        Stability,
        SetsOrder,
        Resume,
        EpochFlush,
        Forward,
        Flush,
        Cut,
        CutSynced,
        PartCast,
        PartsCast,
        Tell,
        TellAck,
        *MESSAGES,
    )

    def __init__(self, process: str, settings: Settings | None = None, *, observe: bool = False) -> None:
        super().__init__(process, settings or Settings(), observe=observe)
        #: Everything that was sent or delivered here, or preceded it: a time for each group that is not over.
        self.known = Stamp()
        #: Messages of old lives and views that were dropped.
        self.stale_count = 0
        self._is_ticking = False
        self.log = VisibleLog(self)
        self.stability = Stabilising(self)
        self.ordering = Ordering(self)
        self.delivering = Delivering(self)
        self.epochs = Epochs(self)
        self.parts = Parts(self)
        self.confirmed = Confirmed(self)
        self.asking = Asking(self)
        self.speaking = Speaking(self)
        self.telling = Telling(self)
        self.flushing = Flushing(self)
        self.copying = Copying(self)
        self.receiving = Receiving(self)
        self.views = Views(self)
        self.watching = Watching(self)
        self._on_event: dict[type, Callable[[Any], None]] = {
            Receive: lambda event: self._on_message[type(event.message)](event),
            TimerFired: self._on_timer,
            ChannelReset: self._on_channel_reset,
            Ended: self._on_ended,
            Retired: lambda event: None,
            LogRead: self._on_log_read,
            Advance: lambda event: None,
            ViewChanged: lambda event: self.views.on_view(event.index),
            GroupsClosed: lambda event: None,  # gateways take nothing new; what is here is ordered as ever
            GroupsRemoved: self.forget_groups,
            Start: self._on_start,
            TellOne: self.telling.tell,
        }
        self._on_message: dict[type, Callable[[Receive], None]] = {
            **self.copying.handlers(),
            Submit: self._on_submit,
            Cast: self.receiving.on_cast,
            Resume: self.receiving.on_resume,
            Stability: self.stability.on_stability,
            SetsOrder: self.ordering.on_sets_order,
            EpochFlush: self.epochs.on_flush,
            Forward: self.flushing.on_forward,
            Flush: self.flushing.on_flush,
            Cut: self.flushing.on_cut,
            CutSynced: self.flushing.on_synced,
            PartCast: self.parts.on_part,
            PartsCast: self.parts.on_parts,
            Tell: self.telling.on_tell,
            TellAck: self.telling.on_ack,
        }

    def step(self, event: Event) -> list[Effect]:
        self.begin_step(event)
        self.watching.begin(event)
        self._on_event[type(event)](event)
        if not (type(event) is Receive and type(event.message) in _WITHIN_A_VIEW):
            self.views.is_due = True
        self._settle()
        self.stability.flush()
        return self.end_step()

    def _settle(self) -> None:
        """Until nothing moves: deliver, order, show, speak."""
        moved = True
        while moved:
            if self.views.is_due:
                self.views.advance()
            self.delivering.drain()
            touched, self.touched = self.touched, {}
            for name in touched:
                replica = self.replicas.get(name)
                era = replica.current if replica is not None else None
                if replica is not None and era is not None and replica.installed is era:
                    self.ordering.take_over(replica, era)
                if replica is not None and era is not None:
                    self.log.advance(replica, era)
            self.parts.advance()
            self.asking.advance()
            moved = self.speaking.advance()
            moved = self.telling.advance() or moved
            moved = moved or bool(self.touched)
        self.ordering.tell_all(at_once=False)

    def check_invariants(self) -> None:
        """See core.machine.ChecksItself."""
        invariants.check(self)

    @property
    def view_number(self) -> int:
        return self.view.number if self.view is not None else 0

    def buffers(self) -> dict[str, int]:
        eras = [era for replica in self.replicas.values() for era in replica.eras]
        return {
            "casts": sum(len(era.casts) for era in eras),
            "places": sum(len(era.places) for era in eras),
            "waiting": len(self.speaking),
            "parts": len(self.parts.spreads),
            "told": len(self.telling),
            "questions": len(self.asking.questions) + len(self.asking.asked),
            "early": self.receiving.early_count(),
            "times": len(self.known.times),
        }

    def undelivered(self) -> tuple[int, float]:
        """See core.machine.HoldsUp: casts that are not visible, and what waits to be cast."""
        under_way = self.watching.look()
        return len(under_way) + len(self.speaking), min(under_way.values(), default=self.now)

    def held_up(self, count_max: int) -> list[HeldUp]:
        """See core.held_up.TellsHeldUp."""
        return held_up(self, count_max)

    # ---------------------------------------------------------------------------------- from the driver

    def _on_start(self, event: Start) -> None:
        self.incarnation = self.current[self.process] = event.incarnation
        self.views.saved = list(event.records)
        self.wake()

    def wake(self) -> None:
        if not self._is_ticking:
            self._is_ticking = True
            self.out.append(SetTimer(TICK, self.settings.tick_s))

    def wake_for_copy(self) -> None:
        self.wake()

    def _on_timer(self, event: TimerFired) -> None:
        if event.name == STABILITY_TIMER:
            self.stability.on_timer()
        elif event.name == ORDER_TIMER:
            self.ordering.on_timer()
        elif event.name == COPY_TIMER:
            self.copying.fetching.on_timer()
        else:
            self._is_ticking = False
            self.parts.on_tick()
            self.asking.on_tick()
            self.views.on_tick()
            if self.parts.spreads or self.asking.questions or self.views.is_busy():
                self.wake()

    def _on_ended(self, event: Ended) -> None:
        """Nobody is there any more: gateways come and go under ever new names, and are not remembered."""
        if self.current.get(event.process, math.inf) <= event.incarnation:
            del self.current[event.process]
        self.speaking.ended(event.process, event.incarnation)
        self.telling.ended(event.process, event.incarnation)
        self.asking.ended(event.process)

    def _on_channel_reset(self, event: ChannelReset) -> None:
        self.current[event.peer] = event.incarnation
        self.telling.on_channel_reset(event)
        for replica in self.replicas.values():
            self.receiving.tell_again(replica, event.peer, event.incarnation)
            self.flushing.tell_again(replica, event.peer)

    def _on_log_read(self, event: LogRead) -> None:
        if not event.tag.startswith(REPORT):
            self.copying.giving.on_read(event)
        elif event.entries:
            entry, replica = event.entries[0], self.replicas.get(event.group)
            if replica is not None:
                self.then.append(Send((entry.envelope.header.gateway,), self.report_of(replica, entry)))

    # ------------------------------------------------------------------------------------- from gateways

    def _on_submit(self, event: Receive) -> None:
        submit: Submit = event.message
        header = submit.envelope.header
        destinations = check_envelope(submit.envelope, submit.group)
        seen = session_of(header)
        check_seen(submit.origin)
        if submit.total and len(destinations) > 1:
            raise RemoteProtocolError("no total order over several groups")
        replica = self.replicas.get(submit.group)
        if replica is None or not replica.is_member:
            if self.view is not None and submit.group not in self.view.groups:
                raise UnknownGroup(submit.group)
            raise OtherConfiguration(submit.group, f"no member of {submit.group!r} here")
        self.parts.check_group(header.id, submit.group)
        if submit.HasField("origin"):
            self.parts.hand_on(event)
            return
        if not self.speaking.follows(event):
            return
        if submit.again and len(destinations) > 1 and not self.parts.holds(header.id):
            self.parts.ask_again(submit)
        if self.is_here(replica, header.id) or self.parts.submitted(submit.group, header.id):
            return
        if self.observe:
            self.out.append(Observe("submitted", header.id, submit.group))
        self.epochs.rise(seen.epoch)
        self.speaking.submit(submit.group, submit.envelope, total=submit.total, seen=times.stamp_from(seen))

    def is_here(self, replica: Replica, id_: bytes) -> bool:
        """Submitted before: it is reported when it becomes visible, and again if it is."""
        if (replica.name, id_) in self.speaking.ids:
            return True
        era = replica.current
        key = era.ids.get(id_) if era is not None else None
        if era is None or key is None:
            return False
        # Somebody else cast it. What the same gateway submits next comes behind it, though it is not delivered
        # yet.
        times.merge_one(self.known.times, replica.name, era.view, {key[0]: key[1]})
        self.epochs.rise(era.casts[key].epoch)
        self.parts.counts_as_delivered(replica.name, id_)
        place = era.place_of.get(key)
        if place is not None and place < replica.position:
            self.out.append(ReadLog(replica.name, place, 1, tag=REPORT))
        return True

    def describe(self, group: str, found: DescribeReplicaResponse) -> None:
        """See core.machine.TellsReaders. Who holds the token is known to the members, and not to membership."""
        replica = self.replicas.get(group)
        era = replica.installed if replica is not None else None
        # The machine may be ahead of its disk: the view is told only with a log that has all from before it.
        if era is not None and found.position >= era.start:
            log = LogInView(view=era.view, counts=era.counts_below(found.position))
            found.protocol = log.SerializeToString()
            found.orderer = era.members[era.token.holder]
            found.facts.add(name="installed", value=str(era.view))
            found.facts.add(name="token", value=found.orderer)
            found.facts_number = era.view

    def read_besides(self, group: str) -> bytes:
        """What a reader of the group's log has seen besides the entries, if anything: see confirmed.py."""
        replica = self.replicas.get(group)
        return bytes_of(self.confirmed.read(replica)) if replica is not None else b""

    def report_of(self, replica: Replica, entry: LogEntry) -> EnvelopeDelivered:
        read = self.confirmed.read(replica, besides=entry.envelope.header.id)
        return report_of(replica.name, entry, read)

    # --------------------------------------------------------------------------------- for the subjects

    def listening(self, event: Receive, group: str, view: int) -> Replica | None:
        return self.receiving.listening(event, group, view)

    def stale(self, event: Receive) -> None:
        self.stale_count += 1

    def keep_early(self, event: Receive, group: str, view: int) -> None:
        self.receiving.keep_early(event, group, view)

    def left_out_of(self, group: str) -> None:
        """A view went on without us: what we sent and delivered there last may be lost."""
        self.speaking.left_out_of(group)
        self.telling.left_out_of(group)
        self.parts.left_out_of(group)

    def know(self, seen: Times, carried: Times) -> None:
        times.merge(self.known.times, seen)
        times.merge(self.known.carried, carried)

    def knows_cast(self, group: str, view: int, key: Key, carried: Times) -> None:
        """Sent or delivered here; what waits for something carried along is carried along itself."""
        times.merge_one(self.known.times, group, view, {key[0]: key[1]})
        if carried:
            times.merge_one(self.known.carried, group, view, {key[0]: key[1]})

    def receive_again(self, event: Receive) -> None:
        """What came before its view; what is wrong with it is its sender's mistake still."""
        try:
            self._on_message[type(event.message)](event)
        except RemoteProtocolError:
            self.stale(event)

    def replay_early(self, group: str, view: int) -> None:
        self.receiving.replay_early(group, view)

    def progress(self) -> dict[str, Progress]:
        """See core.machine.ChangesConfigurations: `started` is to have the cut, `caught_up` to have installed."""
        return self.views.progress()

    def mentions(self, group: str) -> bool:
        """See core.machine.NamesGroups.

        A group that shares its cell is needed by casts that name it, and by nothing else that the cell has.
        """
        if shares_cell(group):
            return any(names_group(envelope.header, group) for envelope in self._kept_in(cell_of(group)))
        if self.speaking.queues.get(group):
            return True
        if any(group in spread.groups for spread in self.parts.spreads.values()):
            return True
        replica = self.replicas.get(group)
        return replica is not None and any(era.casts for era in replica.eras)

    def _kept_in(self, cell: str) -> Iterator[Envelope]:
        """All that is not known to be everywhere."""
        for queues in (self.speaking.queues, self.speaking.handed_on):
            yield from (waiting.envelope for waiting in queues.get(cell, ()))
        yield from (spread.envelope for spread in self.parts.spreads.values() if cell in spread.groups)
        replica = self.replicas.get(cell)
        for era in replica.eras if replica is not None else ():
            yield from (cast.envelope for cast in era.casts.values())
