"""A machine for protocols that give envelopes numbers: one order over all groups, and in each group a position.

The base does all that follows once an envelope has its number: it keeps the logs of the groups that have a replica
here, judges repeats, reports deliveries to gateways, once more if somebody asks, and begins again with what was on
the disk. A protocol's own machine says how envelopes get their numbers, and calls `deliver` in the order of a
group's positions.

**What a step changes is on the disk before anything leaves that it says.** Handlers append to `changes` and to
`out`, in any order: the one barrier is in front of everything that a step sends. This costs a protocol some time,
and saves it the question of who may hear what already.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ordercast.core.ids import incarnation_of, pack_u64
from ordercast.core.machine import (
    ChannelReset,
    Deliver,
    Effect,
    Ended,
    Event,
    GroupsRemoved,
    LogRead,
    Observe,
    Persist,
    ReadLog,
    Receive,
    Retired,
    Send,
    SetTimer,
    Start,
    TimerFired,
    ViewChanged,
)
from ordercast.core.view import Group, View, names_of
from ordercast.protocols.celllog.group_log import GroupLog
from ordercast.protocols.celllog.idempotence import Record
from ordercast.protocols.celllog.numbered_records import NUMBERED_RECORDS, POSITION, position
from ordercast.protocols.celllog.records import group_of
from ordercast.protocols.celllog.saved_logs import SavedLogs
from ordercast.protocols.celllog.settings import LogSettings
from ordercast.protocols.celllog.stepping import LogMachine
from ordercast.v1.common_pb2 import Envelope, Header
from ordercast.v1.membership_pb2 import DomainView
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered, LogEntry, PositionRecord

TICK = "tick"


class NumberedLog(GroupLog):
    """A group's log, in which numbers rise with positions."""

    def __init__(self, group: Group, process: str, settings: LogSettings) -> None:
        super().__init__(group, process, settings)
        #: Number and position of the entries that gateways may still ask about, all from `settled` on.
        self.open: deque[tuple[int, int]] = deque()
        self.settled = 0

    def append(self, envelope: Envelope, number: int) -> tuple[LogEntry, list[Record]]:
        """The next entry, with its verdicts, and what it changes on the disk."""
        key = pack_u64(number)
        header = envelope.header
        entry = LogEntry(order_key=key, envelope=envelope, first_offset=self.offset, bases=self.bases(header))
        self.complete(entry, names_of(header.destinations), number)
        self.open.append((number, self.position))
        self.position += 1
        record = PositionRecord(position=self.position, offset=self.offset, order_key=key)
        return entry, [(position(self.name), record.SerializeToString()), *self.judged_changes()]

    def let_go(self, below: int) -> None:
        """No gateway asks any more what became of envelopes with lower numbers."""
        while self.open and self.open[0][0] < below:
            self.settled = self.open.popleft()[1] + 1

    def retained_from(self) -> int:
        """Retention may drop what is before this position."""
        return self.settled

    def slowest(self, wanted: int) -> int:
        """How far the slowest other replica is, if it needs this log to go on. What it lacks it gets elsewhere."""
        return wanted


class NumberedMachine(LogMachine[NumberedLog], ABC):
    view: View

    def __init__(
        self,
        process: str,
        settings: LogSettings,
        handlers: Mapping[type, Callable[[Receive, Any], None]],
        *,
        observe: bool = False,
    ) -> None:
        """`handlers`: what is done with each of the protocol's messages."""
        super().__init__(process, settings, observe=observe)
        self.view = View(DomainView())
        self.handlers = handlers
        self.delivered: list[Deliver] = []
        #: Records of logs, until the first view says which groups are here.
        self._saved: list[tuple[bytes, bytes]] = []
        self._ended: dict[str, int] = {}
        self._retired_below = 0

    @property
    def handles(self) -> Sequence[type]:
        return tuple(self.handlers)

    # ------------------------------------------------------------------------------------ what a protocol gives

    @abstractmethod
    def load(self, records: Sequence[tuple[bytes, bytes]]) -> None:
        """What the protocol itself had on the disk."""

    def on_view(self, before: View) -> None:
        """`view` is another one, and so may be `replicas`."""

    def make_log(self, group: Group) -> NumberedLog:
        return NumberedLog(group, self.process, self.settings)

    def on_connected(self, peer: str) -> None:
        """What was sent to this process may be lost."""

    def on_tick(self) -> None:
        """Every `tick_s`: repeat what may have been lost."""

    def on_timer(self, name: str) -> None:
        """A protocol that sets timers of its own says what to do when they fire."""
        self.on_tick()
        self.out.append(SetTimer(TICK, self.settings.tick_s))

    def on_read(self, event: LogRead) -> None:
        """A protocol that reads logs for something else than `report_again` says what for."""
        for entry in event.entries:
            self._report(event.group, entry)

    def forget(self) -> None:
        """A gateway is gone, so that something may be forgotten: see `is_over`."""

    # ---------------------------------------------------------------------------------------------- what it gets

    def deliver(self, log: NumberedLog, envelope: Envelope, number: int) -> None:
        """At the log's next position. Its gateway hears of it when it is on the disk."""
        entry, changes = log.append(envelope, number)
        self.delivered.append(Deliver(log.name, log.position - 1, entry))
        self.changes += changes
        self._report(log.name, entry)
        if self.observe:
            self.out.append(Observe("delivered", envelope.header.id, group=log.name))

    def report_again(self, log: NumberedLog, position: int) -> None:
        """The gateway of this entry has not heard that it was delivered."""
        self.out.append(ReadLog(log.name, position, 1, ""))

    def is_over(self, header: Header) -> bool:
        """The gateway that sent it is gone, and repeats nothing."""
        incarnation = incarnation_of(header.id)
        return incarnation < self._retired_below or incarnation <= self._ended.get(header.gateway, -1)

    # -------------------------------------------------------------------------------------------------- stepping

    def step(self, event: Event) -> list[Effect]:
        self.begin_step(event)
        match event:
            case Receive():
                self.handlers[type(event.message)](event, event.message)
            case LogRead():
                self.on_read(event)
            case TimerFired(name=name):
                self.on_timer(name)
            case ChannelReset():
                self.on_connected(event.peer)
            case ViewChanged():
                self._follow(event.index)
            case Ended():
                self._ended[event.process] = max(event.incarnation, self._ended.get(event.process, 0))
                self.forget()
            case GroupsRemoved():
                self.forget_groups(event)
            case Retired():
                self._retired_below = max(event.below, self._retired_below)
                self.forget()
            case Start():
                self._start(event)
        return self.end_step()

    def begin_step(self, event: Event) -> None:
        super().begin_step(event)
        self.delivered = []

    def end_step(self) -> list[Effect]:
        if not self.changes:
            return self.out
        return [*self.delivered, Persist(self.changes), *self.out]

    def _report(self, group: str, entry: LogEntry) -> None:
        header, key = entry.envelope.header, entry.order_key
        report = EnvelopeDelivered(id=header.id, group=group, order_key=key, outcomes=entry.outcomes)
        report.bases.extend(entry.bases)
        self.out.append(Send((header.gateway,), report))

    def _start(self, event: Start) -> None:
        self.incarnation = event.incarnation
        self._saved = [row for row in event.records if NUMBERED_RECORDS.group_of(row[0]) is not None]
        self.load([row for row in event.records if NUMBERED_RECORDS.group_of(row[0]) is None])
        self.out.append(SetTimer(TICK, self.settings.tick_s))

    def _follow(self, view: View) -> None:
        before, self.view = self.view, view
        for name in list(self.replicas):
            if name not in view.groups or self.process not in view.groups[name].working:
                self.changes += self._leave(name)
        for name, group in sorted(view.groups.items()):
            if name in self.replicas:
                self.replicas[name].group = group
            elif self.process in group.working:
                self.replicas[name] = self.make_log(group)
        self._load_logs()
        self.on_view(before)

    def _leave(self, name: str) -> list[Record]:
        """All that is on the disk about the log of a group that is gone, or has no replica here any more."""
        return [(position(name), None), *self.replicas.pop(name).clear()]

    def _load_logs(self) -> None:
        saved, self._saved = self._saved, []
        logs, positions = SavedLogs(), dict[str, PositionRecord]()
        for key, value in saved:
            group = group_of(key)
            if group not in self.replicas:
                self.changes.append((key, None))
            elif key[:1] == POSITION:
                positions[group] = PositionRecord.FromString(value)
            else:
                logs.add(key, value)
        for group, record in positions.items():
            log = self.replicas[group]
            log.position, log.offset = record.position, record.offset
            logs.restore(log)
