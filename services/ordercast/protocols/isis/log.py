"""From visible to the log, and from everywhere to nowhere.

Visible means that no failure that leaves a majority can take it back: a majority has the cast on disk, a majority
its position, and the same holds for every position before. Then it goes into the log, subscribers may see it, and
its publisher gets a receipt. What every member has is dropped from the buffers and the records [BSS91 5.3].
"""

from typing import TYPE_CHECKING

from ordercast.core.machine import Deliver, Send
from ordercast.protocols.isis import records
from ordercast.protocols.isis.era import Era
from ordercast.protocols.isis.replica import Replica
from ordercast.v1.isis_pb2 import Cast

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis


class VisibleLog:
    def __init__(self, machine: "Isis") -> None:
        self.machine = machine

    def advance(self, replica: Replica, era: Era) -> None:
        """What has become visible, and what has become stable."""
        before = replica.position
        while replica.position < era.ordered and self.may_show(era, replica.position):
            key = era.places[replica.position]
            self.append(replica, era.casts[key], reports=era.token.holder == era.me)
        if replica.position > before:
            self.machine.changes.append(replica.position_record())
        self._settle(replica, era)

    def may_show(self, era: Era, position: int) -> bool:
        return era.is_visible(position)

    def append_to(self, replica: Replica, era: Era, position: int) -> None:
        """Positions that everyone has are visible, whether we had heard of that or not."""
        while replica.position < position:
            key = era.places[replica.position]
            self.append(replica, era.casts[key], reports=True)
        self.machine.changes.append(replica.position_record())

    def append(self, replica: Replica, cast: Cast, *, reports: bool) -> None:
        machine = self.machine
        position = replica.position
        entry = replica.entry_of(cast)
        machine.out.append(Deliver(replica.name, position, entry))
        machine.watching.visible(replica, cast, position)
        machine.changes += replica.judged_changes()
        header = cast.envelope.header
        if reports and header.gateway:
            machine.out.append(Send((header.gateway,), machine.report_of(replica, entry)))

    def _settle(self, replica: Replica, era: Era) -> None:
        """[5.5 step 4] Delivered here and stable: dropped."""
        machine = self.machine
        before = era.settled
        end = min(replica.position, era.pass_over())
        while era.settled < end and era.is_everywhere(era.settled):
            key = era.places[era.settled]
            if not era.is_delivered(key) or machine.parts.holds(era.casts[key].envelope.header.id):
                break
            machine.changes.append((records.order(replica.name, era.settled), None))
            machine.changes.append((records.cast(replica.name, era.view, key), None))
            machine.watching.stable(replica, era.casts[key])
            era.drop(era.settled)
        if era.settled > before:
            machine.changes.append(replica.position_record())
