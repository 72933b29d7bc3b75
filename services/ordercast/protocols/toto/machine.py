"""ToTo: total order over a whole domain, read off the causal DAG of its messages.

[DKM93] Danny Dolev, Shlomo Kramer, Dalia Malki, "Early Delivery Totally Ordered Multicast in Asynchronous
Environments", FTCS-23, 1993. README.md in this folder tells the protocol, and where it departs from the paper.

Each subject has a file of its own; all of them append to the changes and effects of the current step. What a step
changes is on the disk before anything leaves that it says (celllog/numbered.py): that is the rule by which whoever
speaks of a message has it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ordercast.core.cells import cell_of
from ordercast.core.errors import InvariantBroken
from ordercast.core.ids import U64_MAX, incarnation_of
from ordercast.core.machine import Effect, LogRead, Receive, SetTimer
from ordercast.core.view import Group, View
from ordercast.protocols.celllog.numbered import NumberedLog, NumberedMachine
from ordercast.protocols.toto import records
from ordercast.protocols.toto.entering import Entering
from ordercast.protocols.toto.era import Era, Ordered, key_of
from ordercast.protocols.toto.flush import Flushing
from ordercast.protocols.toto.keeping import DomainLog, Keeping
from ordercast.protocols.toto.receiving import Receiving
from ordercast.protocols.toto.settings import Settings
from ordercast.protocols.toto.speaking import IDLE_TIMER, Speaking
from ordercast.v1.common_pb2 import Header
from ordercast.v1.sequencer_pb2 import Disseminate
from ordercast.v1.toto_pb2 import (
    DagBegin,
    DagBeginAsk,
    DagCut,
    DagCutSynced,
    DagFlush,
    DagForward,
    DagHave,
    DagLog,
    DagLogAsk,
    DagMessage,
    DagRecord,
    DagReportAgain,
    DagResume,
    DagSynced,
    DagUnfinished,
)


class Toto(NumberedMachine):
    settings: Settings

    def __init__(self, process: str, settings: Settings | None = None, *, observe: bool = False) -> None:
        #: The view that it acts in, or contributes to the end of.
        self.era: Era | None = None
        #: Of views that are over for us.
        self.stale_count = 0
        self.speaking = Speaking(self)
        self.receiving = Receiving(self)
        self.flushing = Flushing(self)
        self.entering = Entering(self)
        self.keeping = Keeping(self)
        handlers: dict[type, Callable[[Receive, Any], None]] = {
            Disseminate: self.speaking.on_envelope,
            DagUnfinished: self.speaking.on_unfinished,
            DagReportAgain: self.speaking.on_report_again,
            DagMessage: self.receiving.on_message,
            DagSynced: self.receiving.on_synced,
            DagResume: self.receiving.on_resume,
            DagForward: self.flushing.on_forward,
            DagFlush: self.flushing.on_flush,
            DagCutSynced: self.flushing.on_cut_synced,
            DagBeginAsk: self.entering.on_begin_ask,
            DagBegin: self.entering.on_begin,
            DagLogAsk: self.entering.on_log_ask,
            DagLog: self.entering.on_log,
            DagHave: self.keeping.on_have,
        }
        super().__init__(process, settings or Settings(), handlers, observe=observe)

    def make_log(self, group: Group) -> NumberedLog:
        return DomainLog(group, self.process, self.settings)

    # ------------------------------------------------------------------------------------------ from the disk

    def load(self, saved: Sequence[tuple[bytes, bytes]]) -> None:
        """[restart] The DAG as it was synced. This is a slow process, not one that crashed: it goes on
        counting.
        """
        record, messages = None, []
        for key, value in saved:
            if key == records.VIEW:
                record = DagRecord.FromString(value)
            elif key == records.CUT:
                self.flushing.cut = DagCut.FromString(value)
                self.flushing.synced = self.flushing.cut.view
            else:
                messages.append(DagMessage.FromString(value))
        if record is None:
            return
        members = tuple(record.members)
        self.era = self._make_era(record.begin, members)
        self.era.resume(record)
        mine = [message for message in messages if message.view == record.view]
        self.era.take_again(sorted(mine, key=lambda message: key_of(message.key)))

    def _make_era(self, begin: DagBegin, members: tuple[str, ...]) -> Era:
        return Era(begin, members, members.index(self.process), self.settings.phi_of(len(members)))

    # -------------------------------------------------------------------------------------------------- views

    def begin_era(self, begin: DagBegin, members: tuple[str, ...]) -> None:
        """Everything from before is in our logs."""
        self.era = self._make_era(begin, members)
        self.changes.append((records.VIEW, self.era.record().SerializeToString()))
        self.receiving.resume_all()

    def end_era(self) -> None:
        """Nothing of the view is needed any more."""
        era = self.era
        assert era is not None
        self.changes += [(records.message(era.view, key), None) for key in era.casts]
        self.changes.append((records.VIEW, None))
        self.era = None
        self.speaking.era_over()

    def on_view(self, before: View) -> None:
        if self.era is not None:
            for group in [name for name in before.groups if name not in self.view.groups]:
                self.era.positions.pop(group, None)
        self.flushing.on_view()
        self.speaking.owe_all()

    def on_connected(self, peer: str) -> None:
        self.receiving.on_connected(peer)
        self.flushing.on_connected(peer)
        self.entering.on_tick()

    def on_timer(self, name: str) -> None:
        if name == IDLE_TIMER:
            self.speaking.on_idle()
        else:
            super().on_timer(name)

    def on_tick(self) -> None:
        self.entering.on_tick()
        self.keeping.on_tick()

    def on_read(self, event: LogRead) -> None:
        if event.tag:
            self.entering.give(event)
        else:
            super().on_read(event)

    def forget(self) -> None:
        self.speaking.forget()

    # ----------------------------------------------------------------------------------------------- stepping

    def end_step(self) -> list[Effect]:
        self._settle()
        return super().end_step()

    def _settle(self) -> None:
        """Until nothing moves: order, show, speak."""
        moved = True
        while moved and self.era is not None:
            self.era.advance()
            while (ordered := self.era.next_visible(self.replicas_of)) is not None:
                self.show(ordered)
            moved = self.speaking.advance()
        if self.era is not None:
            self.keeping.settle(self.era)
            if self.speaking.is_idle_due():
                self.out.append(SetTimer(IDLE_TIMER, self.settings.idle_delay_s))

    def replicas_of(self, name: str) -> tuple[str, ...]:
        group = self.view.groups.get(name)
        return group.replicas if group is not None else ()

    def show(self, ordered: Ordered) -> None:
        """It is visible: at its place in the logs that are here."""
        era = self.era
        assert era is not None
        message, places = era.casts[ordered.key], era.show()
        for group, position in places.items():
            log = self.replicas.get(group)
            if log is None or position < log.position:
                continue
            if position > log.position or not message.HasField("envelope"):
                raise InvariantBroken(f"{group} goes on at {position}, but its log here ends at {log.position}")
            self.deliver(log, message.envelope, ordered.index)
        if ordered.key[0] == era.me:
            self.speaking.shown_at(message, ordered.index, places)

    # --------------------------------------------------------------------------------------- for everybody else

    @property
    def started(self) -> int:
        """The latest view of which the whole past is on the disk here."""
        return max(self.flushing.synced, self.era.view if self.era is not None else 0)

    def buffers(self) -> dict[str, int]:
        era = self.era
        return {
            "messages": len(era.casts) if era is not None else 0,
            "hidden": len(era.hidden()) if era is not None else 0,
            "waiting": len(self.speaking.waiting),
            "shown": len(self.speaking.shown),
            "forwarded": self.flushing.forwarded(),
            "early": self.flushing.early.kept,
        }

    def _open(self) -> list[Header]:
        """Of envelopes that are here and not visible."""
        hidden = self.era.hidden() if self.era is not None else []
        waiting = [envelope.header for envelope in self.speaking.waiting.values()]
        return [*waiting, *(Header(id=message.id) for message in hidden)]

    def oldest_open(self) -> int:
        """See core.machine.KeepsIncarnations."""
        return min((incarnation_of(header.id) for header in self._open()), default=U64_MAX)

    def mentions(self, group: str) -> bool:
        """See core.machine.NamesGroups."""
        cell = cell_of(group)
        waiting = self.speaking.waiting.values()
        if any(cell == to.group for envelope in waiting for to in envelope.header.destinations):
            return True
        return self.era is not None and any(cell in message.groups for message in self.era.hidden())
