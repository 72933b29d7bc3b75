"""Coming to a view without its past: a newcomer, or somebody who missed how the view before ended.

It needs to know how the view begins, and its logs up to there. Then it is a member like the others, who has heard
nothing yet: what was said in the view so far it is told on asking.
"""

from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import unpack_u64
from ordercast.core.machine import Deliver, LogRead, ReadLog, Receive, Send
from ordercast.core.session_token import CLOCK_BYTES
from ordercast.protocols.celllog.numbered import NumberedLog
from ordercast.protocols.toto.checking import check_begin
from ordercast.v1.toto_pb2 import DagBegin, DagBeginAsk, DagLog, DagLogAsk

if TYPE_CHECKING:
    from ordercast.protocols.toto.machine import Toto


class Entering:
    def __init__(self, machine: "Toto") -> None:
        self.machine = machine
        #: The view to enter, 0 if there is none; and how it begins, once somebody has said so.
        self.view = 0
        self.how: DagBegin | None = None
        self._turn = 0

    def begin(self, view: int) -> None:
        if self.view != view:
            self.view, self.how = view, None
            self.on_tick()

    def on_tick(self) -> None:
        """Ask for what is missing, of one after the other."""
        machine, processes = self.machine, self.machine.view.processes
        if not self.view or processes is None:
            return
        if processes.completed != self.view or machine.process not in processes.completed_names:
            self.view, self.how = 0, None
            return
        self._turn += 1
        if self.how is None:
            others = [name for name in processes.completed_names if name != machine.process]
            machine.out.append(Send(others, DagBeginAsk(view=self.view)))
            return
        for log in self._lacking(self.how):
            self._ask(log)

    def _ask(self, log: NumberedLog) -> None:
        others = [name for name in log.group.replicas if name != self.machine.process]
        if others:
            to = others[self._turn % len(others)]
            self.machine.out.append(Send((to,), DagLogAsk(group=log.name, position=log.position)))

    def _lacking(self, how: DagBegin) -> list[NumberedLog]:
        ends = dict(zip(how.groups, how.positions, strict=True))
        return [log for name, log in self.machine.replicas.items() if log.position < ends.get(name, 0)]

    # ------------------------------------------------------------------------------------------- the beginning

    def on_begin_ask(self, event: Receive, message: DagBeginAsk) -> None:
        era = self.machine.era
        if era is not None and era.view == message.view:
            self.machine.out.append(Send((event.source,), era.begin))

    def on_begin(self, event: Receive, message: DagBegin) -> None:
        check_begin(message)
        if message.view == self.view and self.how is None:
            self.how = message
            if not self._enter():
                self.on_tick()

    def _enter(self) -> bool:
        machine, how, processes = self.machine, self.how, self.machine.view.processes
        if how is None or processes is None or processes.completed != how.view or self._lacking(how):
            return False
        self.view, self.how = 0, None
        machine.begin_era(how, processes.completed_names)
        machine.flushing.on_view()
        return True

    # ------------------------------------------------------------------------------------------------ the logs

    def on_log_ask(self, event: Receive, message: DagLogAsk) -> None:
        log = self.machine.replicas.get(message.group)
        if log is not None and message.position < log.position:
            count = min(self.machine.settings.log_chunk, log.position - message.position)
            self.machine.out.append(ReadLog(message.group, message.position, count, tag=event.source))

    def give(self, event: LogRead) -> None:
        if event.entries and event.position >= event.begins:
            answer = DagLog(group=event.group, position=event.position, entries=event.entries)
            self.machine.out.append(Send((event.tag,), answer))

    def on_log(self, event: Receive, message: DagLog) -> None:
        machine, log = self.machine, self.machine.replicas.get(message.group)
        if self.how is None or log is None or message.position != log.position:
            return
        if any(len(entry.order_key) != CLOCK_BYTES for entry in message.entries):
            raise RemoteProtocolError("not an entry of this domain")
        for entry in message.entries:
            copied, changes = log.append(entry.envelope, unpack_u64(entry.order_key))
            machine.delivered.append(Deliver(log.name, log.position - 1, copied))
            machine.changes += changes
        if not self._enter() and log in self._lacking(self.how):
            self._ask(log)
