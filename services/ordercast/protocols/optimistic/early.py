"""[4.2] Optimistic delivery: a message is shown once its window is over, in the order of initial timestamps.

What is shown is a guess at the final order, made one delay after the message left its sender. It is followed by
the message's place in the log, or by a Revoked. Revoked is what can never be final anywhere: so it follows from
the source's log, when the sender's life is over there, and from nobody's belief.

What is shown is forgotten with the process: a subscriber that comes back goes on with what is final.
"""

from typing import TYPE_CHECKING

from ordercast.core.machine import Deliver, Revoked
from ordercast.protocols.optimistic import keys
from ordercast.protocols.optimistic.payloads import as_destination
from ordercast.protocols.optimistic.replica import Candidate, Replica
from ordercast.protocols.optimistic.window import EXACT_S
from ordercast.v1.optimistic_pb2 import Multicast
from ordercast.v1.sequencer_pb2 import LogEntry

if TYPE_CHECKING:
    from ordercast.protocols.optimistic.machine import Optimistic


class Early:
    def __init__(self, machine: "Optimistic") -> None:
        self.machine = machine

    def came(self, replica: Replica, cast: Multicast, due: float) -> None:
        """A message for this group, whose place may not be known."""
        header = cast.envelope.header
        id_ = header.id
        is_known = id_ in replica.candidates or id_ in replica.shown
        if is_known or id_ in replica.placed:
            return
        is_resolved = replica.is_resolved(cast.source, header.gateway, id_, cast.counter)
        if is_resolved and id_ not in replica.stamped_ids:
            return
        self.machine.payloads.need(id_, as_destination(replica.name), cast.source)
        key = keys.key_of(cast.timestamp, id_)
        replica.candidates[id_] = Candidate(key, cast.source, header.gateway, cast.counter, due)

    def show(self, replica: Replica) -> None:
        """All whose time has come."""
        now = self.machine.now + EXACT_S
        due = [(one.key, id_) for id_, one in replica.candidates.items() if one.due <= now]
        for key, id_ in sorted(due):
            replica.shown[id_] = replica.candidates.pop(id_)
            cast = self.machine.payloads.held[id_]
            entry = LogEntry(order_key=key, envelope=cast.envelope)
            self.machine.out.append(Deliver(replica.name, 0, entry, final=False))

    def placed(self, replica: Replica, id_: bytes) -> None:
        """It is final here: whoever saw it early sees now whether the guess was right."""
        replica.candidates.pop(id_, None)
        if id_ not in replica.shown:
            return
        machine = self.machine
        machine.confirmed += 1
        machine.mistakes += next(iter(replica.shown)) != id_
        del replica.shown[id_]

    def settle(self, replica: Replica, source: str) -> None:
        """The life of some gateway is over in this source's log: what is not stamped by now never will be."""
        following = replica.following.get(source)
        if following is None or following.state is None:
            return
        for ids in (replica.candidates, replica.shown):
            for id_, one in list(ids.items()):
                is_over = one.source == source and following.state.has_applied(one.gateway, id_, one.counter)
                if not is_over or id_ in replica.stamped_ids:
                    continue
                del ids[id_]
                if ids is replica.shown:
                    self.machine.out.append(Revoked(replica.name, id_))
                self.machine.payloads.done(id_, as_destination(replica.name))
