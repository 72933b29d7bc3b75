"""What replicas ask each other for: barriers, payloads, decisions that they missed, and where to begin.

[E12] Whoever waits asks. A message asks for its barriers itself when it leaves, with its initial timestamp. If the
timestamp was raised, or the wait is long, the waiting group asks the sources that are behind, with the final key.

[10] Replicas report how far they have each source's log on the disk, with the payloads that are for them. By that
a source learns who is behind, and what it may forget.
"""

from heapq import heappush
from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX
from ordercast.core.machine import Receive, Send
from ordercast.protocols.optimistic import keys
from ordercast.protocols.optimistic.replica import Following, Replica
from ordercast.protocols.optimistic.state import State, check_entries
from ordercast.protocols.optimistic.window import EXACT_S
from ordercast.v1.optimistic_pb2 import (
    BarrierAsk,
    FollowFrom,
    LogPosition,
    LogPositions,
    Multicast,
    MulticastPull,
)
from ordercast.v1.parallel_pb2 import CellTell

if TYPE_CHECKING:
    from ordercast.protocols.optimistic.machine import Optimistic

#: Decided values in one message.
TOLD_MAX = 64
#: Payloads that are pulled at once from one process.
PULLED_MAX = 64


class Asking:
    def __init__(self, machine: "Optimistic") -> None:
        self.machine = machine

    # -------------------------------------------------------------------------------------------------- barriers

    def want_null(self, replica: Replica, key: bytes, due: float) -> None:
        """Somebody waits for this source to pass the key. [E11] Not before its time, if that is a first guess."""
        if due > self.machine.now + EXACT_S:
            heappush(replica.nulls, (due, key))
        elif key > replica.null_due:
            replica.null_due = key

    def raised(self, replica: Replica, source: str, key: bytes) -> None:
        """The sender asked for barriers up to another key."""
        for name in replica.following:
            if name != source:
                self.ask_barrier(replica, name, key)

    def ask_barrier(self, replica: Replica, source: str, key: bytes, *, again: bool = False) -> None:
        following = replica.following[source]
        if key <= following.barrier or (key <= following.asked and not again):
            return
        following.asked = max(key, following.asked)
        following.ask_due = self.machine.now + self.machine.settings.silence_s
        self._to_source(following, source, BarrierAsk(group=source, key=keys.null_for(key)))

    def _to_source(self, following: Following, source: str, message: object) -> None:
        members = self.machine.members_of(following, source)
        if members:
            self.machine.out.append(Send(members, message))

    def on_barrier_ask(self, event: Receive) -> None:
        message: BarrierAsk = event.message
        replica = self.machine.source(message.group)
        keys.check(message.key)
        self.want_null(replica, message.key, self.machine.now)
        self.machine.touched[replica.name] = None

    def _repeat_barriers(self, replica: Replica) -> None:
        """[E12] The head waits for too long, or somebody wants to merge this log with others."""
        machine = self.machine
        head, since = replica.waits
        wanted = replica.advance
        if head != keys.LOWEST and machine.now - since >= machine.settings.silence_s:
            wanted = max(wanted, head)
        for source, following in replica.following.items():
            if wanted > following.barrier and machine.now >= following.ask_due:
                self.ask_barrier(replica, source, wanted, again=True)

    # -------------------------------------------------------------------------------------------------- payloads

    def pull_missing(self) -> None:
        machine = self.machine
        by_source: dict[str, list[bytes]] = {}
        for id_, source in machine.payloads.missing.items():
            by_source.setdefault(source, []).append(id_)
        for source, ids in by_source.items():
            others = [name for name in machine.view.replicas_of((source,)) if name != machine.process]
            others += [name for name in self._fellows(ids) if name not in others]
            machine.out.append(Send(others, MulticastPull(source=source, ids=ids[:PULLED_MAX])))

    def _fellows(self, ids: list[bytes]) -> list[str]:
        """Who may have it as a destination, like us."""
        machine = self.machine
        groups = [name for name, replica in machine.replicas.items() if any(i in replica.stamped_ids for i in ids)]
        return [name for name in machine.view.replicas_of(tuple(groups)) if name != machine.process]

    def on_pull(self, event: Receive) -> None:
        message: MulticastPull = event.message
        for id_ in message.ids:
            held = self.machine.payloads.held.get(id_)
            if held is not None:
                answer = Multicast()
                answer.CopyFrom(held)
                answer.again = answer.pulled = True
                self.machine.out.append(Send((event.source,), answer))

    # ------------------------------------------------------------------------------------------------- positions

    def on_tick(self) -> None:
        machine = self.machine
        for replica in machine.replicas.values():
            self._repeat_barriers(replica)
        self.pull_missing()
        self.tell_positions()

    def tell_positions(self, to: str = "") -> None:
        """To the members of each source that a group here follows: behind the states on their way to the disk."""
        machine = self.machine
        by_process: dict[str, list[LogPosition]] = {}
        for replica in machine.replicas.values():
            for source, following in replica.following.items():
                position = self._position(replica, source, following)
                for process in machine.members_of(following, source):
                    if process != machine.process and to in ("", process):
                        by_process.setdefault(process, []).append(position)
                if not to and machine.process in machine.members_of(following, source):
                    self._heard(machine.process, position)
        for process, positions in by_process.items():
            machine.then.append(Send((process,), LogPositions(positions=positions)))

    def _position(self, replica: Replica, source: str, following: Following) -> LogPosition:
        position = LogPosition(receiver=replica.name, configuration=replica.log_state.configuration, source=source)
        if following.state is None:
            position.begins = following.begins
            return position
        # [10] The payloads of all that is stamped below are on the disk, or in the log.
        lacking = [
            stamped.instance
            for stamped in replica.stamped.values()
            if stamped.source == source and stamped.id not in self.machine.payloads.on_disk
        ]
        position.position = min([following.state.next, *lacking])
        return position

    def on_positions(self, event: Receive) -> None:
        message: LogPositions = event.message
        for position in message.positions:
            if position.position > CLOCK_MAX:
                raise RemoteProtocolError("a log that is too long")
            if position.begins:
                keys.check(position.begins)
        for position in message.positions:
            self._heard(event.source, position)

    def _heard(self, process: str, position: LogPosition) -> None:
        machine = self.machine
        replica = machine.replicas.get(position.source)
        if replica is None or position.receiver not in machine.view.groups:
            return
        if process not in machine.view.groups[position.receiver].replicas:
            return
        if position.begins:
            if position.receiver in replica.openings:
                self.give_base(replica, position.receiver, process)
            elif position.receiver not in replica.log_state.receivers:
                replica.asks_open[position.receiver] = position.begins
                machine.touched[replica.name] = None
            return
        reported = replica.reported.setdefault(position.receiver, {})
        is_stalled = reported.get(process) == position.position
        reported[process] = position.position
        if is_stalled and position.position < replica.log_state.next:
            self._tell(replica, process, position.position)
        machine.forgetting.forget(replica)

    def _tell(self, replica: Replica, process: str, first: int) -> None:
        """[3] What is applied here: a decision above a gap may be void."""
        values = []
        for instance in range(first, min(first + TOLD_MAX, replica.log_state.next)):
            value = replica.values.get(instance)
            if value is None:
                return  # It is forgotten: its own group has what it lacks.
            values.append(value)
        self.machine.out.append(Send((process,), CellTell(group=replica.name, first=first, values=values)))

    def on_tell(self, event: Receive) -> None:
        message: CellTell = event.message
        for value in message.values:
            check_entries(value)
        for replica in self.machine.replicas.values():
            following = replica.following.get(message.group)
            if following is None or event.source not in self.machine.members_of(following, message.group):
                continue
            for instance, value in enumerate(message.values, message.first):
                following.learner.tell(instance, value)
            self.machine.touched[replica.name] = None

    # ------------------------------------------------------------------------------------------- where to begin

    def give_base(self, replica: Replica, receiver: str, process: str = "") -> None:
        """Behind the state itself, which is on its way to the disk."""
        machine = self.machine
        group = machine.view.groups.get(receiver)
        if group is None:
            return
        base = FollowFrom(source=replica.name, receiver=receiver, state=replica.openings[receiver].to_message())
        machine.then.append(Send((process,) if process else group.replicas, base))

    def on_base(self, event: Receive) -> None:
        message: FollowFrom = event.message
        state = State.of_message(message.source, message.state)
        replica = self.machine.replicas.get(message.receiver)
        if replica is None or event.source not in self.machine.view.replicas_of((message.source,)):
            return
        self.machine.following.begin(replica, message.source, state)
