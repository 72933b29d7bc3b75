"""Causal point-to-point messages [BSS91 7.2].

A message to one process carries what its sender has seen and counts for nothing in vector time. Instead its sender
casts nothing until the receiver has it: so nothing that the sender says later can overtake it.
"""

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ordercast.core.machine import ChannelReset, Effect, Event, Receive, Send
from ordercast.protocols.causal import times
from ordercast.protocols.causal.times import Times
from ordercast.protocols.isis import past
from ordercast.protocols.isis.checking import check_seen
from ordercast.protocols.isis.speaking import Need
from ordercast.v1.isis_pb2 import Tell, TellAck

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis


@dataclass(slots=True)
class TellOne(Event):
    """To the machine: tell this process."""

    to: str
    payload: bytes


@dataclass(slots=True)
class Told(Effect):
    """From the machine: a process was told this, and all that its sender had seen is delivered here."""

    source: str
    payload: bytes


@dataclass(slots=True)
class Outgoing:
    to: str
    incarnation: int
    message: Tell
    needs: list[Need]
    parts: dict[bytes, None]
    is_sent: bool = False


class Telling:
    def __init__(self, machine: "Isis") -> None:
        self.machine = machine
        self.outgoing: deque[Outgoing] = deque()
        #: Heard, and waiting for what its sender had seen; and how many of each sender's life were delivered.
        self.incoming: list[tuple[str, int, Tell, Times]] = []
        self.last: dict[tuple[str, int], int] = {}
        self.count = 0

    @property
    def is_inhibited(self) -> bool:
        return bool(self.outgoing)

    def __len__(self) -> int:
        return len(self.outgoing) + len(self.incoming)

    # --------------------------------------------------------------------------------------------- sending

    def tell(self, event: TellOne) -> None:
        machine = self.machine
        self.count += 1
        seen = past.seen_from(machine.known, machine.epochs.epoch)
        message = Tell(number=self.count, seen=seen, payload=event.payload)
        incarnation = machine.current.get(event.to, 0)
        if not incarnation:
            return  # nobody there: as lost as if it had died with the message
        needs, parts = machine.speaking.needs(""), machine.parts.unconfirmed("")
        self.outgoing.append(Outgoing(event.to, incarnation, message, needs, parts))

    def confirmed(self, id_: bytes, stamp: Times) -> None:
        for one in self.outgoing:
            if id_ in one.parts:
                del one.parts[id_]
                seen = past.stamp_from(one.message.seen)
                self.machine.speaking.carry(seen, stamp)
                one.message.seen.CopyFrom(past.seen_from(seen, one.message.seen.epoch))

    def left_out_of(self, group: str) -> None:
        """See Speaking.left_out_of. What is sent was safe."""
        self.outgoing = deque(
            one for one in self.outgoing if one.is_sent or not any(need.group == group for need in one.needs)
        )

    def advance(self) -> bool:
        """One at a time, once what it speaks of is safe; deliver what has come, once its past is."""
        moved = False
        if self.outgoing and not self.outgoing[0].is_sent:
            first = self.outgoing[0]
            if not first.parts and all(self.machine.speaking.is_safe(need) for need in first.needs):
                first.is_sent = moved = True
                self.machine.out.append(Send((first.to,), first.message))
        for item in list(self.incoming):
            source, incarnation, message, stamp = item
            if self.machine.delivering.has_delivered(stamp):
                self.incoming.remove(item)
                self.last[(source, incarnation)] = message.number
                self.machine.know(stamp, times.decode(message.seen.carried))
                self.machine.epochs.rise(message.seen.epoch)
                self.machine.out.append(Told(source, message.payload))
                self.machine.out.append(Send((source,), TellAck(number=message.number)))
                moved = True
        return moved

    # --------------------------------------------------------------------------------------------- hearing

    def on_tell(self, event: Receive) -> None:
        message: Tell = event.message
        stamp = check_seen(message.seen)
        who = (event.source, event.incarnation)
        if message.number <= self.last.get(who, 0):
            self.machine.out.append(Send((event.source,), TellAck(number=message.number)))
        elif not any(s == who[0] and i == who[1] for s, i, _, _ in self.incoming):
            self.incoming.append((*who, message, stamp.all()))

    def on_ack(self, event: Receive) -> None:
        first = self.outgoing[0] if self.outgoing else None
        if first is not None and (first.to, first.message.number) == (event.source, event.message.number):
            self.outgoing.popleft()

    def on_channel_reset(self, event: ChannelReset) -> None:
        """To the same life again; to another one there is nothing to say, and nobody to wait for."""
        self.outgoing = deque(o for o in self.outgoing if o.to != event.peer or o.incarnation == event.incarnation)
        for first in list(self.outgoing)[:1]:
            if first.to == event.peer and first.is_sent:
                self.machine.out.append(Send((first.to,), first.message))
        self.incoming = [item for item in self.incoming if item[0] != event.peer or item[1] == event.incarnation]
        self.last = {
            who: number for who, number in self.last.items() if who[0] != event.peer or who[1] == event.incarnation
        }

    def ended(self, process: str, incarnation: int) -> None:
        self.outgoing = deque(o for o in self.outgoing if o.to != process or o.incarnation > incarnation)
