"""Multicast epochs [BSS91 6.7]: causality where groups may lie in a cycle, without everyone's times.

Casts carry the times of the sender's own groups; that is enough where the groups' overlaps form no cycle. A
process that passes from one group to another through a group that may lie in one raises its epoch. A cast of epoch
e waits until nobody here can still send one of a lower epoch, and all of those that came are delivered.
"""

from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import Receive, Send
from ordercast.protocols.isis.checking import AHEAD_MAX, check_numbers
from ordercast.protocols.isis.era import Era
from ordercast.protocols.isis.replica import Replica
from ordercast.protocols.isis.settings import Causality
from ordercast.v1.isis_pb2 import Cast, EpochFlush

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis


class Epochs:
    def __init__(self, machine: "Isis") -> None:
        self.machine = machine
        self.is_on = machine.settings.causality == Causality.EPOCHS
        self.epoch = 0
        #: Groups in which something was sent or delivered since the epoch last rose.
        self.spoken: dict[str, None] = {}
        #: Groups that may lie in a cycle: the paper's cautious guess is that they have two neighbours or more.
        self.excluded: dict[str, None] = {}
        self._member_of: dict[str, None] = {}

    # ---------------------------------------------------------------------------------------------- rising

    def about_to_speak(self, group: str) -> None:
        """A process that is not safe in the group raises its epoch first."""
        if self.is_on and not self.is_safe(group):
            self.rise(self.epoch + 1)

    def is_safe(self, group: str) -> bool:
        return not any(
            other != group and (group in self.excluded or other in self.excluded) for other in self.spoken
        )

    def rise(self, epoch: int) -> None:
        """Stamp with it at once, and say in all groups that nothing lower comes."""
        if not self.is_on or epoch <= self.epoch:
            return
        self.epoch, self.spoken = epoch, {}
        for replica in self.machine.replicas.values():
            self.entered(replica)

    def _tell(self, replica: Replica, era: Era) -> None:
        era.epochs[era.me] = self.epoch
        if era.others:
            message = EpochFlush(group=replica.name, view=era.view, epoch=self.epoch, sent=era.sent)
            self.machine.out.append(Send(era.others, message))

    def entered(self, replica: Replica) -> None:
        """Also before it is installed: what is not sent yet is not sent of a lower epoch."""
        era = replica.current
        if self.epoch and era is not None:
            self._tell(replica, era)

    def tell_again(self, replica: Replica, era: Era, peer: str) -> None:
        if self.epoch:
            message = EpochFlush(group=replica.name, view=era.view, epoch=self.epoch, sent=era.sent)
            self.machine.out.append(Send((peer,), message))

    def sent(self, group: str) -> None:
        self.spoken[group] = None

    def delivered(self, group: str, cast: Cast) -> None:
        if self.is_on:
            self.spoken[group] = None
            self.rise(cast.epoch)

    def on_view(self) -> None:
        """Who leaves a group takes what it saw there along, though no overlap shows it. And a group that was in no
        cycle may be in one now.
        """
        machine = self.machine
        if not self.is_on or machine.view is None:
            return
        members = {
            name: {*group.replicas, *group.former_replicas, *group.leaving}
            for name, group in machine.view.groups.items()
        }
        excluded: dict[str, None] = {}
        for name, mine in members.items():
            neighbours = sum(1 for other, theirs in members.items() if other != name and mine & theirs)
            if neighbours > 1:
                excluded[name] = None
        # Times shrink to views that are complete, as if all that was cast before those had been delivered here. If
        # that were of a higher epoch than what comes behind it, each would wait for the other.
        self.rise(max((group.epoch for group in machine.view.groups.values()), default=0))
        member_of = {name: None for name, replica in machine.replicas.items() if replica.is_member}
        if any(name not in member_of for name in self._member_of) or any(
            name not in self.excluded for name in excluded
        ):
            self.rise(self.epoch + 1)
        self.excluded, self._member_of = excluded, member_of

    # --------------------------------------------------------------------------------------------- hearing

    def on_flush(self, event: Receive) -> None:
        message: EpochFlush = event.message
        machine = self.machine
        replica = machine.listening(event, message.group, message.view)
        if replica is None:
            return
        era = replica.current
        assert era is not None
        member = era.index_of(event.source, event.incarnation)
        if member is None:
            machine.stale(event)
            return
        check_numbers(message.epoch)
        if message.sent > era.received[member] + AHEAD_MAX:
            raise RemoteProtocolError("a promise behind what is far from being cast")
        era.promise(member, message.sent, message.epoch)
        self.rise(message.epoch)
        machine.touched[replica.name] = None

    def heard(self, cast: Cast) -> None:
        """Whoever hears of a higher epoch takes it over at once: others wait for its word."""
        if self.is_on:
            self.rise(cast.epoch)

    def is_open(self, replica: Replica, cast: Cast) -> bool:
        """Nobody here sends of a lower epoch any more, and all that came of one is delivered."""
        if not self.is_on or not cast.epoch:
            return True
        for other in self.machine.replicas.values():
            if not other.eras:
                if other.is_member:
                    return False  # it is about to enter: what is still to come there is not known
                continue
            era = other.eras[0]
            if not era.is_closed and any(epoch < cast.epoch for epoch in era.epochs):
                return False
            if any(kept.epoch < cast.epoch and not era.is_delivered(k) for k, kept in era.casts.items()):
                return False
        return True
