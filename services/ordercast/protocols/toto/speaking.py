"""What this process says: envelopes of gateways as agreed messages, and empty ones that only vote."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import ID_BYTES, counter_of
from ordercast.core.machine import Observe, Receive, Send
from ordercast.core.view import names_of
from ordercast.protocols.toto import records
from ordercast.protocols.toto.era import Era, key_of, message_of
from ordercast.v1.common_pb2 import Envelope, Header
from ordercast.v1.sequencer_pb2 import Disseminate
from ordercast.v1.toto_pb2 import DagMessage, DagReportAgain, DagSynced, DagUnfinished

if TYPE_CHECKING:
    from ordercast.protocols.toto.machine import Toto

IDLE_TIMER = "idle"
#: Envelopes that are not cast yet, and envelopes that may be asked for again. Beyond that their gateways repeat
#: them.
WAITING_MAX = 10_000


@dataclass(slots=True)
class Shown:
    """An envelope that was cast here and is visible, until its gateway has heard so."""

    header: Header
    index: int
    places: Mapping[str, int]


class Speaking:
    def __init__(self, machine: "Toto") -> None:
        self.machine = machine
        self.waiting: dict[bytes, Envelope] = {}
        self.shown: dict[bytes, Shown] = {}
        self._is_timed = False

    # ----------------------------------------------------------------------------------------- from gateways

    def on_envelope(self, event: Receive, message: Disseminate) -> None:
        machine, header = self.machine, message.envelope.header
        if len(header.id) != ID_BYTES:
            raise RemoteProtocolError("an envelope without an id")
        machine.view.checked_names(header.destinations)
        if machine.is_over(header) or header.id in self.waiting:
            return
        shown = self.shown.get(header.id)
        if shown is not None:
            self._report_again(shown)
        elif (machine.era is None or header.id not in machine.era.ids) and len(self.waiting) < WAITING_MAX:
            # What was visible long ago, or in another view, is cast again: the logs tell that it is a repetition.
            self.waiting[header.id] = message.envelope

    def advance(self) -> bool:
        """Cast what waits for a view. What its client has seen has its place already, so this comes behind it."""
        era = self.machine.era
        if era is None or era.is_sealed or not self.waiting:
            return False
        waiting, self.waiting = self.waiting, {}
        for envelope in waiting.values():
            self.cast(era, envelope)
        return True

    # -------------------------------------------------------------------------------------------------- voting

    def owe(self, era: Era, message: DagMessage) -> None:
        """Its receipt needs a message of every replica that follows it, of a majority at least."""
        if message.agreed and any(group in self.machine.replicas for group in message.groups):
            member, number = key_of(message.key)
            era.owed[member] = max(era.owed[member], number)

    def owe_all(self) -> None:
        """Of what came before we knew which groups are ours."""
        era = self.machine.era
        if era is not None:
            for message in era.casts.values():
                self.owe(era, message)

    def is_idle_due(self) -> bool:
        era = self.machine.era
        if self._is_timed or era is None or era.is_sealed or not era.owes_vote():
            return False
        self._is_timed = True
        return True

    def on_idle(self) -> None:
        self._is_timed = False
        era = self.machine.era
        if era is not None and not era.is_sealed and era.owes_vote():
            self.cast(era, None)

    # ------------------------------------------------------------------------------------------------- casting

    def cast(self, era: Era, envelope: Envelope | None) -> None:
        machine, vector = self.machine, era.speak()
        key = (era.me, era.sent)
        message = DagMessage(view=era.view, key=message_of(key), vector=vector)
        if envelope is not None:
            header = envelope.header
            message.agreed, message.id = True, header.id
            message.groups.extend(names_of(header.destinations))
            message.envelope.CopyFrom(envelope)
            if machine.observe:
                machine.out.append(Observe("cast", header.id))
        era.take(message)
        era.enter()
        machine.changes.append((records.message(era.view, key), message.SerializeToString()))
        self.send(era, message, era.others)
        machine.out.append(Send((machine.process,), DagSynced(view=era.view, number=era.sent)))

    def send(self, era: Era, message: DagMessage, to: Sequence[str]) -> None:
        """[headers to all, bodies to Dst(m)]"""
        holders = self.holders(message)
        with_body = [name for name in to if name in holders]
        without = [name for name in to if name not in holders]
        if with_body:
            self.machine.out.append(Send(with_body, message))
        if without:
            self.machine.out.append(Send(without, header_of(message)))

    def holders(self, message: DagMessage) -> dict[str, None]:
        """Processes with a replica of one of its groups."""
        groups = self.machine.view.groups
        return {name: None for group in message.groups if group in groups for name in groups[group].replicas}

    # ------------------------------------------------------------------------------------------------- answers

    def shown_at(self, message: DagMessage, index: int, places: Mapping[str, int]) -> None:
        if places and len(self.shown) < WAITING_MAX and message.HasField("envelope"):
            self.shown[message.id] = Shown(message.envelope.header, index, places)

    def _report_again(self, shown: Shown) -> None:
        machine = self.machine
        for group, position in shown.places.items():
            found = machine.view.groups.get(group)
            others = [name for name in found.replicas if name != machine.process] if found is not None else []
            if others:
                machine.out.append(Send(others, DagReportAgain(group=group, position=position)))
            self._report(group, position)

    def on_report_again(self, event: Receive, message: DagReportAgain) -> None:
        self._report(message.group, message.position)

    def _report(self, group: str, position: int) -> None:
        log = self.machine.replicas.get(group)
        if log is not None and position < log.position:
            self.machine.report_again(log, position)

    def on_unfinished(self, event: Receive, message: DagUnfinished) -> None:
        """Nobody asks for its other envelopes again."""
        counters = dict.fromkeys(message.counters)
        self.shown = {
            id_: shown
            for id_, shown in self.shown.items()
            if shown.header.gateway != event.source or counter_of(id_) in counters
        }

    @property
    def asked_from(self) -> int:
        """Below this index nobody asks through us for a report."""
        era = self.machine.era
        indices = [shown.index for shown in self.shown.values()]
        return min(indices, default=era.index - len(era.queue) if era is not None else 0)

    def forget(self) -> None:
        is_over = self.machine.is_over
        self.waiting = {id_: e for id_, e in self.waiting.items() if not is_over(e.header)}
        self.shown = {id_: shown for id_, shown in self.shown.items() if not is_over(shown.header)}

    def era_over(self) -> None:
        """Gateways send what is open to somebody in the next view."""
        self.shown.clear()


def header_of(message: DagMessage) -> DagMessage:
    header = DagMessage()
    header.CopyFrom(message)
    header.ClearField("envelope")
    return header
