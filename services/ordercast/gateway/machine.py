"""The gateway: many clients' messages in, envelopes out, receipts back.

A request is judged (intake.py), waits until it may leave, goes with others into an envelope (batching.py), and the
protocol's submission sees to it that the envelope gets to its groups (core/submission.py). What is in an envelope
never changes, whoever dies meanwhile: a resend is the same envelope, the coordinator included. A gateway keeps
nothing on disk. If it dies, clients repeat elsewhere, and delivery tells what is a duplicate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ordercast.core.errors import InvariantBroken
from ordercast.core.held_up import HeldUp
from ordercast.core.machine import (
    ChannelReset,
    Effect,
    Ended,
    Event,
    GroupsClosed,
    Hand,
    NodesJudged,
    Observe,
    Receive,
    Send,
    SetTimer,
    Start,
    Stopping,
    TimerFired,
    ViewChanged,
)
from ordercast.core.submission import MakeSubmission, Submission, Submitted
from ordercast.core.view import OtherConfiguration, UnknownGroup, View
from ordercast.gateway import invariants
from ordercast.gateway.batching import Batching
from ordercast.gateway.finish_times import FinishTimes
from ordercast.gateway.held_up import held_up
from ordercast.gateway.intake import Intake
from ordercast.gateway.opened import Open
from ordercast.gateway.pressure import Pressure
from ordercast.gateway.producer import Producer
from ordercast.gateway.receipts import Answers
from ordercast.gateway.settings import GatewaySettings
from ordercast.gateway.turns import client_of
from ordercast.v1.gateway_pb2 import PublishRequest
from ordercast.v1.membership_pb2 import DomainView
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered

#: Of the machine, in its process.
ROLE = "gateway"
TICK = "gateway"


@dataclass(slots=True)
class Fill(Event):
    """The machine tells itself to fill envelopes, behind all that came together: so that leaves together, too."""


class Gateway:
    def __init__(
        self,
        process: str,
        submission: MakeSubmission,
        settings: GatewaySettings | None = None,
        *,
        observe: bool = False,
    ) -> None:
        self.process = process
        self.settings = settings or GatewaySettings()
        self.observe = observe
        self.incarnation = 0
        self.view = View(DomainView())
        #: By rising counter.
        self.open: dict[bytes, Open] = {}
        #: Groups that are being deleted: nothing new for them.
        self.closed: dict[str, None] = {}
        #: Incarnations of the processes we are connected to, and when each was last heard of.
        self.connected: dict[str, int] = {}
        self.heard: dict[str, float] = {}
        #: Until when each silent process is believed to be down.
        self.suspected: dict[str, float] = {}
        self.pressure = Pressure(self.settings)
        self.finish_times = FinishTimes()
        self.submission: Submission = submission(self)
        self.intake = Intake(self)
        self.batching = Batching(self)
        self.is_ticking = False
        #: It has told itself to fill envelopes.
        self.is_fill_due = False
        self.out: list[Effect] = []
        self.now = self.wall = 0.0
        self._on_message: dict[type, Callable[[Receive], None]] = {
            PublishRequest: self.intake.on_publish,
            EnvelopeDelivered: self._on_delivered,
            **dict.fromkeys(self.submission.handles, self._on_report),
        }
        self.handles = tuple(self._on_message)

    def step(self, event: Event) -> list[Effect]:
        self.now, self.wall, self.out = event.now, event.wall, []
        self.pressure.measure(event.now)
        match event:
            case Receive():
                self._on_message[type(event.message)](event)
            case TimerFired():
                self.is_ticking = False
                self.batching.may_fill = True
                self.submission.on_tick()
            case ChannelReset():
                self._on_channel_reset(event)
            case Ended():
                if self.connected.get(event.process, 0) <= event.incarnation:
                    self.connected.pop(event.process, None)
                    self.intake.on_new_stream(event.process)
            case ViewChanged():
                self._on_view(event.index)
            case GroupsClosed():
                self.closed = dict.fromkeys(event.groups)
                self.intake.refuse_waiting(event.groups)
            case NodesJudged():
                self.intake.on_nodes(event)
            case Stopping():
                self.intake.is_stopping = True
            case Fill():
                self.is_fill_due = False
                self.batching.fill()
            case Start():
                # A replica in our own process needs no channel.
                self.incarnation = self.connected[self.process] = event.incarnation
            case _:
                pass
        if self.batching.is_due and not self.is_fill_due:
            self.is_fill_due = True
            self.out.append(Hand(ROLE, Fill(self.now, self.wall)))
        if (self.open or self.batching.waiting) and not self.is_ticking:
            self.is_ticking = True
            self.out.append(SetTimer(TICK, self.settings.tick_s))
        return self.out

    def check_invariants(self) -> None:
        """See core.machine.ChecksItself."""
        invariants.check(self)

    def buffers(self) -> dict[str, int]:
        return {
            "waiting": sum(len(producer.waiting) for producer in self.intake.producers.values()),
            "unanswered": sum(1 for opened in self.open.values() if not opened.answered),
            "open": len(self.open),
        }

    def held_up(self, count_max: int) -> list[HeldUp]:
        """See core.held_up.TellsHeldUp."""
        return held_up(self, count_max)

    def credits(self, source: str = "", id_: bytes = b"") -> int:
        """What a producer may have here without an answer; one that has nothing here, unless it is named."""
        return self.pressure.credits(client_of(source), id_)

    # --------------------------------------------------------------------------- groups that come and go

    def mentions(self, group: str) -> bool:
        """Whether something for the group or cell waits here or is not finished: see core.machine.NamesGroups."""
        waiting = (item for producer in self.batching.waiting.values() for item in producer.waiting)
        return any(item.is_for((group,)) for item in waiting) or any(
            opened.is_for(group) for opened in self.open.values()
        )

    def _on_view(self, view: View) -> None:
        gone = [name for name in self.view.groups if name not in view.groups]
        for name in gone:
            if any(name in opened.groups for opened in self.open.values()):
                raise InvariantBroken(f"group {name!r} was removed, but an envelope to it is not finished")
            self.batching.forget(name)
            self.closed.pop(name, None)
        before, self.view = self.view, view
        self.intake.on_view()
        self.intake.refuse_waiting(gone)
        self.submission.on_view(before)

    # -------------------------------------------------------------------------------- for the submission

    def send(self, to: Sequence[str], message: Any) -> None:
        self.out.append(Send(to, message))

    @property
    def resend_s(self) -> float:
        settings = self.settings
        return max(settings.resend_s, min(self.finish_times.usual_s_max, settings.resend_s_max))

    def suspect(self, process: str) -> None:
        """For a while: then something is sent to it again, which is how one finds out."""
        self.suspected[process] = self.now + self.settings.suspicion_s

    def is_suspected(self, process: str) -> bool:
        return self.now < self.suspected.get(process, -1.0)

    def may_follow(self, submitted: Submitted) -> list[Producer]:
        submitted.is_followed = self.batching.may_fill = True
        header = submitted.envelope.header
        producers = [self.intake.producers[range_.producer] for range_ in header.ranges]
        for producer in producers:
            producer.envelope_decided(header.id, self.now)
        return producers

    # ------------------------------------------------------------------------------------------- answers

    def _opened(self, event: Receive) -> Open | None:
        """The envelope that a replica reports about; nobody else may."""
        opened = self.open.get(event.message.id)
        group = getattr(event.message, "group", "")
        if group and group not in self.view.groups:
            raise UnknownGroup(group)
        if opened is None and not group and event.source not in self.view.hosts:
            return None  # Old news of a process whose groups are gone.
        names = (group,) if group else opened.groups if opened else tuple(self.view.groups)
        if event.source not in self.view.replicas_of(names):
            raise OtherConfiguration(names[0], f"{event.source} is no replica of {list(names)}")
        return opened

    def _hear(self, source: str) -> None:
        """It said something that is no mistake."""
        self.heard[source] = self.now
        self.suspected.pop(source, None)

    def _on_report(self, event: Receive) -> None:
        opened = self._opened(event)
        if opened is not None:
            self.submission.on_report(opened, event)
            if opened.answered:
                self._finish(opened)
        self._hear(event.source)

    def _on_delivered(self, event: Receive) -> None:
        delivered: EnvelopeDelivered = event.message
        opened = self._opened(event)
        if opened is not None:
            opened.check(delivered)
            self.submission.on_delivered(opened, event.source, delivered)
        self._hear(event.source)
        if opened is None:
            return
        opened.delivered.setdefault(delivered.group, delivered)
        if len(opened.delivered) == len(opened.groups) and not opened.answered:
            self._answer(opened)
            if self.observe:
                refused = any(o.refusal for d in opened.delivered.values() for o in d.outcomes)
                detail = "refused" if refused else ",".join(opened.groups)
                self.out.append(Observe("answered", delivered.id, detail))
        if opened.answered:
            self._finish(opened)

    def _answer(self, opened: Open) -> None:
        """One replica of each destination group has delivered; payload and decision are durable already."""
        opened.answered = True
        self.batching.answered(opened)
        self.pressure.delivered(self.now - opened.sent)
        producers = [self.intake.producers[range_.producer] for range_ in opened.envelope.header.ranges]
        self.submission.on_answered(opened, producers)
        answers = Answers(opened, self.submission)
        for index, producer in enumerate(producers):
            # Who repeated a part of the range from elsewhere hears of all of it.
            clients = list(dict.fromkeys(item.client for item in opened.requests[index]))
            for item in opened.requests[index]:
                producer.outstanding -= item.cost
                del producer.requests[item.key]
                self.pressure.gave(item.taken, self.now)
            session = self.submission.session_of((producer.seen,))
            credit = self.credits(producer.client, producer.id)
            for reply in answers.replies(index, session, credit):
                self.out.append(Send(clients, reply))

    def _finish(self, opened: Open) -> None:
        if self.submission.is_finished(opened):
            self.finish_times.took(self.now - opened.sent)
            del self.open[opened.envelope.header.id]
            self.batching.finished(opened)
            self.submission.on_finished(opened)

    # --------------------------------------------------------------------------------------- connections

    def note_client(self, source: str) -> None:
        """Who publishes and has no replica is a client, and none of those whose coming and going is followed."""
        if source != self.process and source not in self.view.hosts:
            self.connected.pop(source, None)
            self.heard.pop(source, None)

    def _on_channel_reset(self, event: ChannelReset) -> None:
        peer = event.peer
        self.intake.on_new_stream(peer)
        self.connected[peer] = event.incarnation
        self.batching.may_fill = True
        self.heard[peer] = self.now
        self.suspected.pop(peer, None)
        self.submission.on_connected(peer)
