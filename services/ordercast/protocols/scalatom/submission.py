"""How gateways send in SCALATOM: to all replicas of all groups, with a coordinator that proposes the number.

[E6] The protocol promises no order between two envelopes in flight. So a producer's next envelope that shares a
group follows when the one before it is decided, and says in its session that it comes above that number.

[E8] An envelope is finished when it is durable at a majority of each of its groups. Until then it is sent again to
those that owe an answer: the same envelope, with the same coordinator, whoever died meanwhile.

What is for a group that was just created is sent again sooner (core/new_groups.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ordercast.core.clock_submission import ClockSubmission
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, KEY_BYTES, sn_of
from ordercast.core.machine import Receive
from ordercast.core.new_groups import NewGroups
from ordercast.core.quorums import has_majority
from ordercast.core.submission import Groups, Seeing, Sender, Submitted
from ordercast.core.view import View
from ordercast.v1.common_pb2 import Incarnation
from ordercast.v1.scalatom_pb2 import EnvelopeDecided, EnvelopeDurable
from ordercast.v1.sequencer_pb2 import Disseminate, EnvelopeDelivered


@dataclass(slots=True)
class Unfinished:
    """An envelope that is repeated until a majority of each group has it on disk."""

    submitted: Submitted
    deadline: float
    delay: float
    #: Who has said nothing by then is taken for down.
    suspicious_at: float
    #: By group: the replicas that have it on disk, in the group's present configuration.
    durable: dict[str, dict[str, None]] = field(default_factory=dict)


class ScalatomSubmission(ClockSubmission):
    """What a producer has seen is the highest number of what was acknowledged, read, or decided here."""

    handles = (EnvelopeDecided, EnvelopeDurable)

    def __init__(self, gateway: Sender) -> None:
        self.gateway = gateway
        #: In the order in which they left.
        self.unfinished: dict[bytes, Unfinished] = {}
        self.new_groups = NewGroups()

    # ------------------------------------------------------------------------------------------------ sending

    def choose(self, groups: Groups) -> Incarnation | None:
        """A replica that is believed to be up, of as many of the groups as possible; our own first."""
        gateway = self.gateway
        view, connected = gateway.view, gateway.connected
        members = [view.groups[group].working for group in groups]
        replicas = [process for process in view.replicas_of(groups) if any(process in m for m in members)]
        known = [process for process in replicas if process in connected]
        up = [process for process in known if not gateway.is_suspected(process)] or known
        if not up:
            return None

        def rank(process: str) -> tuple[int, bool, str]:
            return (sum(process in replicas for replicas in members), process == gateway.process, process)

        best = max(up, key=rank)
        return Incarnation(process=best, number=connected[best])

    def send(self, submitted: Submitted) -> None:
        now, usual = self.gateway.now, self.gateway.resend_s
        self.new_groups.expire(now)
        is_new = any(group in self.new_groups for group in submitted.groups)
        delay = self.gateway.settings.tick_s if is_new else usual
        self.unfinished[submitted.envelope.header.id] = Unfinished(submitted, now + delay, delay, now + usual)
        replicas = self.gateway.view.replicas_of(submitted.groups)
        self.gateway.send(replicas, Disseminate(envelope=submitted.envelope))

    # ------------------------------------------------------------------------------------------------ answers

    def on_report(self, submitted: Submitted, event: Receive) -> None:
        message = event.message
        if isinstance(message, EnvelopeDecided):
            self._decided(submitted, message.order_key)
        else:
            self._on_durable(submitted, event.source, message)

    def on_delivered(self, submitted: Submitted, source: str, delivered: EnvelopeDelivered) -> None:
        """Who delivered it knows its number: the word that it is decided may come later, or never."""
        self._decided(submitted, delivered.order_key)

    def _decided(self, submitted: Submitted, order_key: bytes) -> None:
        """[E6] Before delivery: the producers' next envelopes may leave, above this sn."""
        if submitted.is_followed:
            return
        sn = sn_of(order_key)
        if len(order_key) != KEY_BYTES or sn > CLOCK_MAX:
            raise RemoteProtocolError("not an order key")
        for producer in self.gateway.may_follow(submitted):
            producer.seen = max(producer.seen, sn)

    def _on_durable(self, submitted: Submitted, source: str, message: EnvelopeDurable) -> None:
        group = message.group
        if group not in submitted.groups:
            raise RemoteProtocolError("not a delivery of this envelope")
        if message.configuration:  # an early version, which has none, knows only first configurations
            self.gateway.view.groups[group].check(message.configuration)
        self.unfinished[message.id].durable.setdefault(group, {})[source] = None

    def on_answered(self, submitted: Submitted, producers: Sequence[Seeing]) -> None:
        """They have seen its number since it was decided."""

    def is_finished(self, submitted: Submitted) -> bool:
        """[E8] Durable at a majority of each group. A receipt comes earlier, and finishes nothing."""
        groups = self.gateway.view.groups
        durable = self.unfinished[submitted.envelope.header.id].durable
        return all(has_majority(groups[name].replicas, durable.get(name, {})) for name in submitted.groups)

    def on_finished(self, submitted: Submitted) -> None:
        del self.unfinished[submitted.envelope.header.id]

    # ------------------------------------------------------------------------------------------------ silence

    def on_tick(self) -> None:
        gateway = self.gateway
        for one in self.unfinished.values():
            if gateway.now < one.deadline:
                continue
            one.deadline = gateway.now + one.delay
            one.delay = min(one.delay * 2, gateway.settings.resend_s_max)
            replicas = gateway.view.replicas_of(one.submitted.groups)
            silent = [process for process in replicas if self._owes(one, process)]
            for process in silent if gateway.now >= one.suspicious_at else ():
                if gateway.heard.get(process, -1.0) < one.submitted.sent:
                    gateway.suspect(process)
            if silent:
                gateway.send(silent, self.repetition(one.submitted))

    def on_connected(self, peer: str) -> None:
        for one in self.unfinished.values():
            if self._owes(one, peer):
                self.gateway.send((peer,), self.repetition(one.submitted))

    def on_view(self, before: View) -> None:
        """Majorities are counted within one configuration: whoever is in the new one says again what it has."""
        self.new_groups.on_view(before, self.gateway.view, self.gateway.now, self.gateway.resend_s)
        changed = [
            name
            for name, group in self.gateway.view.groups.items()
            if name in before.groups and group.configuration != before.groups[name].configuration
        ]
        for one in self.unfinished.values():
            names = [name for name in one.submitted.groups if name in changed]
            if names:
                for name in names:
                    one.durable.pop(name, None)
                settings = self.gateway.settings
                one.deadline, one.delay = self.gateway.now + settings.tick_s, self.gateway.resend_s

    def repetition(self, submitted: Submitted) -> Disseminate:
        """The same envelope: two coordinators of one instance would both skip phase 1."""
        return Disseminate(envelope=submitted.envelope, again=True)

    def _owes(self, one: Unfinished, process: str) -> bool:
        groups = self.gateway.view.groups
        return any(
            process in groups[name].replicas
            and (process not in one.durable.get(name, {}) or name not in one.submitted.delivered)
            for name in one.submitted.groups
        )
