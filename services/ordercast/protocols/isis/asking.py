"""What is open in a group that a client has read, asked of a member of that group before we speak for the client.

m is for a and b. A client reads it in a, gets a token that says that a is open (confirmed.py), and answers in b
through a process that has not got m there. That process asks a member of a whether all messages to several groups
that precede the token's time in a are cast in all of their groups. The member answers once it has delivered that
time itself, and has heard of all such messages that it held then that all their parts are cast. The answer says
where the parts are. It joins the stamp of the client's message, which is cast then.

One question per group is under way, about the latest time that is wanted. On silence another member is asked. An
answer is a fact about a time, and right whoever asked for it and when. A member remembers one question of each
process and group. A process that is a member itself asks itself first.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import Receive, Send
from ordercast.core.view import View
from ordercast.protocols.causal import times
from ordercast.protocols.causal.times import Time, Times
from ordercast.protocols.isis.checking import check_seen
from ordercast.protocols.isis.past import Stamp
from ordercast.protocols.isis.replica import Replica
from ordercast.v1.isis_pb2 import PartsCast, Seen

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis
    from ordercast.protocols.isis.speaking import WaitingCast


@dataclass(slots=True)
class Question:
    """Of ours, under way."""

    time: Time
    due: float = 0.0
    tries: int = 0


@dataclass(slots=True)
class Asked:
    """By somebody."""

    time: Time
    #: Messages that were open when we had delivered that time, and still are; None until then.
    open: dict[bytes, None] | None = None


class Asking:
    def __init__(self, machine: "Isis") -> None:
        self.machine = machine
        #: What is not cast before it is answered.
        self.waiting: list[WaitingCast] = []
        self.questions: dict[str, Question] = {}
        #: By group and asker.
        self.asked: dict[tuple[str, str], Asked] = {}

    # --------------------------------------------------------------------------------------------- asking

    def about(self, seen: Stamp, group: str) -> dict[str, Time]:
        """What to ask before a client that has seen this speaks in the group; in several, without a name."""
        view = self.machine.view
        assert view is not None
        return {name: seen.times.get(name, Time()) for name in seen.open if name != group and name in view.groups}

    def wait(self, waiting: "WaitingCast") -> None:
        if waiting.asks:
            self.waiting.append(waiting)
            self.machine.wake()

    def forget(self, waiting: "WaitingCast") -> None:
        """Somebody else speaks for that client."""
        self.waiting = [one for one in self.waiting if one is not waiting]

    def _wanted(self) -> Times:
        wanted: Times = {}
        for waiting in self.waiting:
            times.merge(wanted, waiting.asks)
        return wanted

    def _ask(self) -> None:
        """What is not asked yet."""
        wanted = self._wanted()
        self.questions = {group: asked for group, asked in self.questions.items() if group in wanted}
        for group, time in wanted.items():
            question = self.questions.get(group)
            if question is None:
                self.questions[group] = question = Question(time)
                self._send(group, question)

    def _send(self, group: str, question: Question) -> None:
        """To ourselves, if we are in a view of the group; else, and on silence, to one member after the other."""
        machine = self.machine
        assert machine.view is not None
        question.due = machine.now + machine.settings.silence_s
        members = [name for name in machine.view.groups[group].working if name != machine.process]
        replica = machine.replicas.get(group)
        if replica is not None and replica.eras and not question.tries % 2:
            self._hear(group, machine.process, question.time)
        elif members:
            to = members[question.tries % len(members)]
            until = times.encode({group: question.time})[0]
            machine.out.append(Send((to,), PartsCast(group=group, until=until)))
        question.tries += 1

    def on_tick(self) -> None:
        for group, question in self.questions.items():
            if self.machine.now >= question.due:
                self._send(group, question)

    def on_view(self, view: View) -> None:
        """What was for a group that is gone goes with it."""
        for group in dict.fromkeys(name for waiting in self.waiting for name in waiting.asks):
            if group not in view.groups:
                self._answered(group, self._wanted()[group], {})
        self.asked = {key: asked for key, asked in self.asked.items() if key[0] in view.groups}

    def on_answer(self, group: str, until: Time, confirmed: Seen) -> None:
        self.machine.epochs.rise(confirmed.epoch)
        self._answered(group, until, times.decode(confirmed.times))

    def _answered(self, group: str, until: Time, stamp: Times) -> None:
        """What waited for no more than that comes behind all of it."""
        for waiting in self.waiting:
            time = waiting.asks.get(group)
            if time is not None and until.covers(time):
                del waiting.asks[group]
                self.machine.speaking.carry(waiting.stamp, stamp)
        self.waiting = [waiting for waiting in self.waiting if waiting.asks]
        question = self.questions.get(group)
        if question is not None and until.covers(question.time):
            del self.questions[group]

    # ------------------------------------------------------------------------------------------ answering

    def on_message(self, event: Receive) -> None:
        message: PartsCast = event.message
        group = message.group
        if message.until.group != group:
            raise RemoteProtocolError("a question about another group")
        until = times.decode([message.until])[group]
        if message.HasField("confirmed"):
            check_seen(message.confirmed)
            self.on_answer(group, until, message.confirmed)
        elif group in self.machine.replicas:
            self._hear(group, event.source, until)

    def _hear(self, group: str, source: str, time: Time) -> None:
        asked = self.asked.get((group, source))
        if asked is None or not asked.time.covers(time):
            self.asked[(group, source)] = Asked(time)

    def ended(self, process: str) -> None:
        for key in [key for key in self.asked if key[1] == process]:
            del self.asked[key]

    def advance(self) -> None:
        """Ask what is to be asked; answer what can be answered."""
        if self.waiting or self.questions:
            self._ask()
        for (group, source), asked in list(self.asked.items()):
            replica = self.machine.replicas.get(group)
            if replica is None:
                del self.asked[(group, source)]
            elif self._is_answered(replica, asked):
                del self.asked[(group, source)]
                self._answer(group, source, asked.time)

    def _is_answered(self, replica: Replica, asked: Asked) -> bool:
        parts = self.machine.parts
        # Who has delivered it holds, or knows to be cast, whatever precedes it.
        if asked.open is None and replica.has_delivered(asked.time):
            asked.open = dict.fromkeys(parts.open_in(replica.name))
        if asked.open is None:
            return False
        asked.open = {id_: None for id_ in asked.open if parts.holds(id_)}
        return not asked.open

    def _answer(self, group: str, source: str, time: Time) -> None:
        confirmed = self.machine.confirmed.of(group)
        if source == self.machine.process:
            self.on_answer(group, time, confirmed)
        else:
            until = times.encode({group: time})[0]
            answer = PartsCast(group=group, until=until, confirmed=confirmed)
            self.machine.out.append(Send((source,), answer))
