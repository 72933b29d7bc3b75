"""Messages of the causal order, from others: each sender's in their order, and into the DAG behind what they
follow.
"""

from typing import TYPE_CHECKING

from ordercast.core.machine import Receive, Send
from ordercast.protocols.toto import records
from ordercast.protocols.toto.checking import check_message
from ordercast.protocols.toto.era import Era, key_of
from ordercast.v1.toto_pb2 import DagMessage, DagResume, DagSynced

if TYPE_CHECKING:
    from ordercast.protocols.toto.machine import Toto


class Receiving:
    def __init__(self, machine: "Toto") -> None:
        self.machine = machine

    def era_of(self, view: int) -> Era | None:
        """The view that this is about, if we act in it. Who comes to a view later asks for what was said in it."""
        era = self.machine.era
        if era is None or era.view != view or era.is_sealed:
            self.machine.stale_count += 1
            return None
        return era

    def on_message(self, event: Receive, message: DagMessage) -> None:
        era = self.era_of(message.view)
        if era is None:
            return
        check_message(message, era.members, event.source)
        member, number = key_of(message.key)
        if number != era.received[member] + 1:
            return  # It is known; or something before it was lost, and comes again together with it.
        self.keep(era, message)
        era.enter()

    def keep(self, era: Era, message: DagMessage) -> None:
        machine = self.machine
        era.take(message)
        machine.speaking.owe(era, message)
        record = records.message(era.view, key_of(message.key))
        machine.changes.append((record, message.SerializeToString()))

    def on_synced(self, event: Receive, message: DagSynced) -> None:
        """An own message is on the disk: from now on it counts, as it does wherever it is received."""
        era = self.machine.era
        if event.source == self.machine.process and era is not None and era.view == message.view:
            own = era.casts.get((era.me, message.number))
            if own is not None:
                era.say(era.me, own.vector)

    # ------------------------------------------------------------------------------------- new connections

    def on_connected(self, peer: str) -> None:
        era = self.machine.era
        if era is not None and peer in era.others:
            self._resume(era, peer)

    def resume_all(self) -> None:
        """The view is new here. What others have said in it was not kept."""
        era = self.machine.era
        assert era is not None
        for peer in era.others:
            self._resume(era, peer)

    def _resume(self, era: Era, peer: str) -> None:
        received = era.received[era.members.index(peer)]
        self.machine.out.append(Send((peer,), DagResume(view=era.view, received=received)))

    def on_resume(self, event: Receive, message: DagResume) -> None:
        era = self.era_of(message.view)
        if era is None or event.source not in era.others:
            return
        for number in range(max(message.received, era.settled[era.me]) + 1, era.sent + 1):
            self.machine.speaking.send(era, era.casts[(era.me, number)], (event.source,))
