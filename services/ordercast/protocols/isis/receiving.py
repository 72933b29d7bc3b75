"""What comes from other members: in which view it counts, and what is missing after a new connection.

A message names its view. Of an older one it is dropped; of a newer one it is kept until that view is here. Who
sent it must be the life that the view means: an earlier one said what it said to another view.
"""

import math
from collections.abc import Container
from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import Receive, Send
from ordercast.core.view import Group
from ordercast.protocols.causal import times
from ordercast.protocols.causal.early import EARLY_MAX, VIEWS_AHEAD_MAX, Early
from ordercast.protocols.isis import records
from ordercast.protocols.isis.checking import check_cast, check_order
from ordercast.protocols.isis.era import Era, key_of
from ordercast.protocols.isis.past import Stamp
from ordercast.protocols.isis.replica import Replica
from ordercast.v1.isis_pb2 import Cast, Resume, Stability

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis

#: Of all groups together. Beyond that they are dropped, and asked for again when the DomainView is here.
AHEAD_MAX = 4096


class Receiving:
    def __init__(self, machine: "Isis") -> None:
        self.machine = machine
        self.early = Early()
        #: Casts from somebody who knows a later DomainView than we do.
        self.ahead: list[Receive] = []
        self.is_ahead_dropped = False

    def early_count(self) -> int:
        return len(self.ahead) + self.early.kept

    def on_view(self) -> None:
        """Some of them may count now; what is for views that we are not in never will."""
        view = self.machine.view
        assert view is not None
        for place in self.early.places():
            if self._is_void(view.groups.get(place[0]), *place):
                self.early.forget(place)
        ahead, self.ahead = self.ahead, []
        is_dropped, self.is_ahead_dropped = self.is_ahead_dropped, False
        for event in ahead:
            self.machine.receive_again(event)
        if is_dropped:
            # Nobody would send it again by himself: the connection is the same.
            for replica in self.machine.replicas.values():
                self._resume_all(replica)

    # ---------------------------------------------------------------------------------------------- views

    def listening(self, event: Receive, group: str, view: int) -> Replica | None:
        """The replica, if that view is the one that it listens in."""
        replica = self.machine.replicas.get(group)
        if replica is not None and replica.current is not None and replica.view == view:
            return replica
        self.keep_early(event, group, view, at_most=EARLY_MAX)
        return None

    def keep_early(self, event: Receive, group: str, view: int, at_most: float = math.inf) -> None:
        """What a change of view consists of is said once, and has an end. The rest may be too much, and a Resume
        brings it again.
        """
        replica = self.machine.replicas.get(group)
        known = self.machine.view.groups.get(group) if self.machine.view is not None else None
        is_over = replica is not None and view <= replica.view
        is_void = replica is not None and replica.attempt is not None and view < replica.attempt.view
        if is_over or is_void or (known is not None and self._is_void(known, group, view)):
            self.machine.stale(event)
            return
        if known is not None and view > known.configuration + VIEWS_AHEAD_MAX:
            raise RemoteProtocolError("a view that is far from being defined")
        self.early.keep(event, (group, view), at_most)

    def replay_early(self, group: str, view: int) -> None:
        """We have heard of the view. What is for another stage of it is kept again."""
        events = self.early.take(group, view)
        for event in events:
            self.machine.receive_again(event)

    def _is_void(self, group: Group | None, name: str, view: int) -> bool:
        """We shall never act in that view."""
        if group is None:
            return True
        if view < group.configuration:
            replica = self.machine.replicas.get(name)
            return replica is None or view < replica.completed
        return view == group.configuration and self.machine.process not in (*group.replicas, *group.leaving)

    # ---------------------------------------------------------------------------------------------- casts

    def on_cast(self, event: Receive) -> None:
        cast: Cast = event.message
        machine = self.machine
        replica = self.listening(event, cast.group, cast.view)
        if replica is None:
            return
        era = replica.current
        assert era is not None
        member = era.index_of(event.source, event.incarnation)
        if member is None:
            machine.stale(event)
            return
        stamp, key = check_cast(cast, len(era.members)), key_of(cast.key)
        if key[0] != member:
            raise RemoteProtocolError("a cast of somebody else")
        order = check_order(era, cast.position, [cast.key]) if cast.HasField("position") else []
        if cast.HasField("row"):
            machine.stability.check(era, cast.row)
            machine.stability.heard(replica, era, member, cast.row)
        if cast.domain_view > machine.view_number:
            # It may come behind what is for us, in a group that we do not know we are in; and what is acknowledged
            # counts as delivered as soon as what precedes it is.
            if len(self.ahead) < AHEAD_MAX:
                self.ahead.append(event)
            else:
                self.is_ahead_dropped = True
            return
        if key[1] == era.received[member] + 1:
            self._take(replica, era, cast, stamp)
        elif key[1] > era.received[member] + 1:
            return  # The connection is new, or something was dropped: what is missing comes, and this again.
        if cast.HasField("position"):
            machine.ordering.hear(replica, era, order)
            machine.touched[replica.name] = None

    def _take(self, replica: Replica, era: Era, cast: Cast, stamp: Stamp) -> None:
        """[5.4] The stamp in full: what it leaves out is as in the caster's cast before."""
        machine, key = self.machine, key_of(cast.key)
        if not cast.whole:
            before = era.stamps[key[0]].copy()
            before.merge(stamp)
            stamp = before
        kept = Cast()
        kept.CopyFrom(cast)
        for name in ("row", "position", "times", "carried"):
            kept.ClearField(name)
        kept.whole = True
        kept.times.extend(times.encode(stamp.times))
        kept.carried.extend(times.encode(stamp.carried))
        era.take(key, kept, stamp)
        machine.watching.received(replica, kept)
        machine.epochs.heard(cast)
        machine.parts.took(replica, era, key)
        machine.changes.append((records.cast(replica.name, era.view, key), kept.SerializeToString()))
        machine.stability.took(replica, key[0])
        machine.touched[replica.name] = None

    # ------------------------------------------------------------------------------------ new connections

    def tell_again(self, replica: Replica, peer: str, incarnation: int) -> None:
        """What was in flight may be lost: say how far the peer has come with us."""
        era = replica.current
        member = era.index_of(peer, incarnation) if era is not None else None
        if era is not None and member is not None:
            self._resume(replica, era, member)
        elif replica.reset is not None:
            replica.reset[peer] = None

    def entered(self, replica: Replica) -> None:
        """A view is here: what came of it before is kept, but for what a new connection lost or was too much."""
        era = replica.current
        if era is not None:
            key = (replica.name, era.view)
            self._resume_all(replica, None if key in self.early.dropped else replica.reset)
            self.early.dropped.pop(key, None)
            replica.reset = {}

    def _resume_all(self, replica: Replica, among: Container[str] | None = None) -> None:
        """Ask all other members of its view; or only some, by name."""
        era = replica.current
        if era is not None:
            for member, name in enumerate(era.members):
                if member != era.me and (among is None or name in among):
                    self._resume(replica, era, member)

    def _resume(self, replica: Replica, era: Era, member: int) -> None:
        resume = Resume(group=replica.name, view=era.view, received=era.received[member], positions=era.ordered)
        self.machine.out.append(Send((era.members[member],), resume))

    def on_resume(self, event: Receive) -> None:
        message: Resume = event.message
        machine = self.machine
        replica = self.listening(event, message.group, message.view)
        if replica is None:
            return
        era = replica.current
        assert era is not None
        if era.index_of(event.source, event.incarnation) is None:
            machine.stale(event)
            return
        peer = event.source
        if replica.installed is era:
            if not era.settled_counts[era.me] <= message.received <= era.sent:
                raise RemoteProtocolError("it has less than everyone has, or more than there is")
            for number in range(message.received + 1, era.sent + 1):
                machine.out.append(Send((peer,), era.casts[(era.me, number)]))
            machine.ordering.tell_again(replica, era, peer, message.positions)
            row = era.rows[era.me]
            if any(row.counts) or row.positions > era.start:
                stability = Stability(group=replica.name, view=era.view, row=row.message())
                machine.out.append(Send((peer,), stability))
        machine.epochs.tell_again(replica, era, peer)
