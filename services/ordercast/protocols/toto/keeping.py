"""What is kept, and until when: messages of the view, and entries of the logs."""

from typing import TYPE_CHECKING

from ordercast.core.machine import Receive, Send
from ordercast.core.view import Group
from ordercast.protocols.celllog.numbered import NumberedLog
from ordercast.protocols.celllog.settings import LogSettings
from ordercast.protocols.toto import records
from ordercast.protocols.toto.era import Era
from ordercast.v1.toto_pb2 import DagHave

if TYPE_CHECKING:
    from ordercast.protocols.toto.machine import Toto


class DomainLog(NumberedLog):
    def __init__(self, group: Group, process: str, settings: LogSettings) -> None:
        super().__init__(group, process, settings)
        #: Every replica of the group has what is before this position.
        self.everywhere = 0

    def retained_from(self) -> int:
        return min(self.settled, self.everywhere)


class Keeping:
    def __init__(self, machine: "Toto") -> None:
        self.machine = machine
        #: How far the logs of others are, by group and process; and from where each may have something repeated.
        self.have: dict[tuple[str, str], int] = {}
        self.asked: dict[str, int] = {}

    def settle(self, era: Era) -> None:
        """Drop what nobody needs, in batches: it is one record for all of them."""
        machine = self.machine
        if era.is_sealed or sum(era.received) - sum(era.settled) < machine.settings.settle_batch:
            return
        limits = era.droppable()
        if sum(limits) - sum(era.settled) < machine.settings.settle_batch:
            return
        machine.changes += [(records.message(era.view, key), None) for key in era.drop(limits)]
        machine.changes.append((records.VIEW, era.record().SerializeToString()))

    def on_tick(self) -> None:
        machine, processes = self.machine, self.machine.view.processes
        if processes is None:
            return
        names = dict.fromkeys([*processes.names, *sorted(machine.view.hosts)])
        have = DagHave(asked_from=machine.speaking.asked_from)
        for name in sorted(machine.replicas):
            have.groups.append(name)
            have.positions.append(machine.replicas[name].position)
        machine.out.append(Send([name for name in names if name != machine.process], have))
        self._look()

    def on_have(self, event: Receive, message: DagHave) -> None:
        for group, position in zip(message.groups, message.positions, strict=False):
            if group in self.machine.view.groups:
                self.have[(group, event.source)] = position
        self.asked[event.source] = message.asked_from

    def _look(self) -> None:
        machine, processes = self.machine, self.machine.view.processes
        assert processes is not None
        others = [name for name in processes.names if name != machine.process]
        asked = min([machine.speaking.asked_from, *(self.asked.get(name, 0) for name in others)])
        for name, log in machine.replicas.items():
            replicas = [replica for replica in log.group.replicas if replica != machine.process]
            assert isinstance(log, DomainLog)
            log.everywhere = min([log.position, *(self.have.get((name, replica), 0) for replica in replicas)])
            log.let_go(asked)
        self.have = {key: position for key, position in self.have.items() if key[0] in machine.view.groups}
