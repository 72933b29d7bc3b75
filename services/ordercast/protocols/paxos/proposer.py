"""The proposers of one process: many instances at once.

[Paxos] with qualified majorities as quorums: the acceptors of every group of an instance must reach a
majority, and two such quorums meet in every group. Its clients need uniform agreement and termination.

Round 0 belongs to one incarnation that the instance names, so it may skip phase 1. Everyone else, and that
process after a restart, starts with phase 1 in a higher round: otherwise L could have 5 chosen by {a1, a2}
in round 0, restart without memory, and have 7 chosen by {a2, a3} in round 0 again.

A round has one value. So an attempt is kept after its instance was decided or closed, until the client says that
it knows: otherwise a proposal that crossed the decision would start round 0 again, with another value. (The client
proposes 5; votes come in; it proposes 7, with more stamps, behind a sync; 5 is decided; now 7 arrives.)

Suspicion may be wrong at any time without harm: whoever proposes too early only raises the round.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import (
    Decided,
    Effect,
    Event,
    Hand,
    InstanceClosed,
    Propose,
    Receive,
    Send,
    SetTimer,
    Start,
    TimerFired,
    ViewChanged,
)
from ordercast.core.quorums import qualified_majority
from ordercast.core.view import OtherConfiguration, View
from ordercast.protocols.paxos import invariants
from ordercast.protocols.paxos.acceptor import RoundKey, round_key, round_message
from ordercast.protocols.paxos.handover import ROUND_MAX
from ordercast.v1.consensus_pb2 import Accept, Accepted, Closed, Decide, Prepare, Promise, Rejected

TIMER = "proposer"


@dataclass(frozen=True, slots=True)
class ProposerSettings:
    #: How long to wait for answers before asking again; doubled up to the maximum.
    retry_s: float = 0.2
    retry_s_max: float = 2.0
    #: How long to stay away after losing to a higher round, at most: above any round trip, or duels never end.
    backoff_s_max: float = 30.0


class Phase(Enum):
    #: Lost to a higher round: waits before it tries again, so that duels end.
    BACKOFF = "backoff"
    PREPARE = "prepare"
    #: Promised by a quorum, without a vote and without a value of our own.
    WANTS_VALUE = "wants value"
    ACCEPT = "accept"
    #: Decided or closed, and the client has not said yet that it knows.
    OVER = "over"


@dataclass(slots=True)
class Attempt:
    """One instance, as this process tries to get it decided."""

    proposal: Propose
    #: Those of the proposal that are still there, and the configurations that it is in by now.
    groups: tuple[str, ...]
    configurations: dict[str, int]
    round: RoundKey
    phase: Phase
    value: bytes | None
    deadline: float
    delay: float
    backoff: float
    number_max: int = 0
    #: What the client was told when it was over.
    outcome: Event | None = None
    promises: dict[str, tuple[RoundKey, bytes] | None] = field(default_factory=dict)
    votes: dict[str, None] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        return self.phase is Phase.OVER


class Proposer:
    handles = (Promise, Accepted, Rejected, Closed)

    def __init__(self, process: str, client: str, settings: ProposerSettings | None = None) -> None:
        """`client` is the role of the sibling machine that hears of decisions."""
        self.process = process
        self.client = client
        self.settings = settings or ProposerSettings()
        self.incarnation = 0
        self.view: View | None = None
        self.attempts: dict[bytes, Attempt] = {}
        #: Instances that the latest step was about.
        self.about: Iterable[bytes] = ()
        self._timer_set = False
        self._on_message: dict[type, Callable[[Attempt, Receive], list[Effect]]] = {
            Promise: self._on_promise,
            Accepted: self._on_accepted,
            Rejected: self._on_rejected,
            Closed: self._on_closed,
        }

    def step(self, event: Event) -> list[Effect]:
        self.about = self.attempts
        match event:
            case Receive():
                self.about = (event.message.instance,)
                attempt = self.attempts.get(event.message.instance)
                effects = self._on_answer(attempt, event) if attempt else []
            case Propose():
                self.about = (event.instance,)
                effects = self._on_propose(event)
            case Decided():
                self.about = ()
                self.attempts.pop(event.instance, None)
                effects = []
            case TimerFired():
                self._timer_set = False
                effects = self._on_timer(event.now)
            case ViewChanged():
                effects = self._on_view(event.index, event.now)
            case Start():
                self.incarnation = event.incarnation
                effects = []
            case _:
                effects = []
        if not self._timer_set and any(attempt.phase is not Phase.OVER for attempt in self.attempts.values()):
            self._timer_set = True
            effects.append(SetTimer(TIMER, self.settings.retry_s))
        return effects

    def check_invariants(self) -> None:
        """See core.machine.ChecksItself."""
        invariants.check_proposer(self)

    def buffers(self) -> dict[str, int]:
        return {"attempts": len(self.attempts)}

    def _on_view(self, view: View, now: float) -> list[Effect]:
        """A group that is gone has no say any more.

        What was or will be decided without it is decided by majorities of the groups that are left, and those are
        part of every quorum that anybody else, with an older view, may still count.

        Where a group has changed its configuration, its acceptors have to be asked anew, in a round of its own:
        votes are counted within one. And our value rested on stamps that do not count there.
        """
        self.view = view
        effects: list[Effect] = []
        for instance, attempt in list(self.attempts.items()):
            attempt.groups = view.known(attempt.groups)
            if not attempt.groups:
                del self.attempts[instance]
                continue
            configurations = attempt.configurations
            has_changed = any(view.groups[name].configuration != configurations[name] for name in attempt.groups)
            if has_changed and attempt.phase is not Phase.OVER:
                effects += self.begin_again(attempt, now)
        return effects

    def begin_again(self, attempt: Attempt, now: float) -> list[Effect]:
        assert self.view is not None
        attempt.configurations = {name: self.view.groups[name].configuration for name in attempt.groups}
        attempt.value = None
        return self._start_round(attempt, now)

    # ------------------------------------------------------------------------------------------- starting

    def owns_round_zero(self, proposal: Propose) -> bool:
        return proposal.owner == self.incarnation

    def _on_propose(self, proposal: Propose) -> list[Effect]:
        attempt = self.attempts.get(proposal.instance)
        assert self.view is not None
        is_late = self.view.configurations(proposal.groups) != proposal.configurations
        if attempt is None and is_late:
            return []  # Our view is not the client's: it proposes again when nothing comes of this.
        if attempt is not None and attempt.outcome is not None:
            return [Hand(self.client, attempt.outcome)]
        if attempt is not None:
            if attempt.value is None and not is_late:
                attempt.value = proposal.value
                if attempt.phase is Phase.WANTS_VALUE and attempt.value is not None:
                    return self._send_accepts(attempt, proposal.now)
            return []
        retry_s = self.settings.retry_s
        attempt = Attempt(
            proposal,
            proposal.groups,
            dict(zip(proposal.groups, proposal.configurations, strict=True)),
            (0, self.incarnation),
            Phase.ACCEPT,
            proposal.value,
            proposal.now,
            retry_s,
            retry_s,
        )
        self.attempts[proposal.instance] = attempt
        if proposal.value is not None and self.owns_round_zero(proposal):
            return self._send_accepts(attempt, proposal.now)
        return self._start_round(attempt, proposal.now)

    def _start_round(self, attempt: Attempt, now: float) -> list[Effect]:
        """[Paxos phase 1a] in a round above every round we heard of."""
        attempt.number_max += 1
        attempt.round = (attempt.number_max, self.incarnation)
        attempt.phase = Phase.PREPARE
        attempt.promises = {}
        attempt.votes = {}
        self._put_off(attempt, now)
        return [Send(self._acceptors(attempt), self._prepare(attempt))]

    def _send_accepts(self, attempt: Attempt, now: float) -> list[Effect]:
        """[Paxos phase 2a]"""
        attempt.phase = Phase.ACCEPT
        self._put_off(attempt, now)
        return [Send(self._acceptors(attempt), self._accept(attempt))]

    # ------------------------------------------------------------------------------------------- answers

    def _on_answer(self, attempt: Attempt, event: Receive) -> list[Effect]:
        if event.source not in self._acceptors(attempt):
            raise OtherConfiguration(attempt.groups[0], f"{event.source} is no acceptor of this instance")
        return self._on_message[type(event.message)](attempt, event)

    def _on_promise(self, attempt: Attempt, event: Receive) -> list[Effect]:
        promise: Promise = event.message
        if attempt.phase is not Phase.PREPARE or round_key(promise.round) != attempt.round:
            return []
        voted = None
        if promise.HasField("voted_round"):
            voted = (round_key(promise.voted_round), promise.voted_value)
        attempt.promises[event.source] = voted
        if not self._quorum(attempt, attempt.promises):
            return []
        votes = [vote for vote in attempt.promises.values() if vote is not None]
        if votes:
            attempt.value = self.to_take_over(votes)
        if attempt.value is None:
            attempt.phase = Phase.WANTS_VALUE
            return []
        return self._send_accepts(attempt, event.now)

    def to_take_over(self, votes: list[tuple[RoundKey, bytes]]) -> bytes:
        """[Paxos P2c] That of the highest round: the only value that an earlier round can have decided."""
        return max(votes)[1]

    def _on_accepted(self, attempt: Attempt, event: Receive) -> list[Effect]:
        if attempt.phase is not Phase.ACCEPT or round_key(event.message.round) != attempt.round:
            return []
        attempt.votes[event.source] = None
        if not self._quorum(attempt, attempt.votes):
            return []
        proposal, value = attempt.proposal, attempt.value
        assert value is not None
        assert self.view is not None
        others = [process for process in self.view.replicas_of(attempt.groups) if process != self.process]
        decided = Decided(event.now, event.wall, proposal.instance, value, event.source)
        attempt.phase, attempt.outcome = Phase.OVER, decided
        effects: list[Effect] = [Hand(self.client, decided)]
        if others:
            urgent = self.view.is_awaited_elsewhere(proposal.groups, self.process)
            effects.insert(0, Send(others, Decide(instance=proposal.instance, value=value), urgent))
        return effects

    def _on_rejected(self, attempt: Attempt, event: Receive) -> list[Effect]:
        if attempt.phase is Phase.OVER:
            return []
        promised = round_key(event.message.promised)
        if promised[0] > ROUND_MAX:
            raise RemoteProtocolError("a round that nobody could outbid")
        attempt.number_max = max(attempt.number_max, promised[0])
        if promised > attempt.round and attempt.phase is not Phase.BACKOFF:
            attempt.phase = Phase.BACKOFF
            # Ranks differ and the wait doubles, so of two proposers that keep outbidding each other one is
            # soon alone for longer than a round takes, however slow the network is.
            assert self.view is not None
            learners = self.view.replicas_of(attempt.groups)
            rank = learners.index(self.process) if self.process in learners else len(learners)
            attempt.deadline = event.now + attempt.backoff * (1 + rank)
            attempt.backoff = min(attempt.backoff * 2, self.settings.backoff_s_max)
        return []

    def _on_closed(self, attempt: Attempt, event: Receive) -> list[Effect]:
        if attempt.phase is Phase.OVER:
            return []
        closed = InstanceClosed(event.now, event.wall, attempt.proposal.instance)
        attempt.phase, attempt.outcome = Phase.OVER, closed
        return [Hand(self.client, closed)]

    def _on_timer(self, now: float) -> list[Effect]:
        effects: list[Effect] = []
        for attempt in self.attempts.values():
            if now < attempt.deadline or attempt.phase in (Phase.WANTS_VALUE, Phase.OVER):
                continue
            if attempt.phase is Phase.BACKOFF:
                effects += self._start_round(attempt, now)
                continue
            self._put_off(attempt, now)
            answered = attempt.promises if attempt.phase is Phase.PREPARE else attempt.votes
            silent = [acceptor for acceptor in self._acceptors(attempt) if acceptor not in answered]
            message = self._prepare(attempt) if attempt.phase is Phase.PREPARE else self._accept(attempt)
            effects.append(Send(silent, message))
        return effects

    # ------------------------------------------------------------------------------------------- parts

    def _put_off(self, attempt: Attempt, now: float) -> None:
        attempt.deadline = now + attempt.delay
        attempt.delay = min(attempt.delay * 2, self.settings.retry_s_max)

    def _acceptors(self, attempt: Attempt) -> tuple[str, ...]:
        assert self.view is not None
        return self.view.acceptors_of(attempt.groups)

    def _quorum(self, attempt: Attempt, voters: Mapping[str, object]) -> bool:
        assert self.view is not None
        groups = self.view.groups
        return qualified_majority((groups[name].acceptors for name in attempt.groups), voters)

    def _prepare(self, attempt: Attempt) -> Prepare:
        assert self.view is not None
        return Prepare(
            instance=attempt.proposal.instance,
            round=round_message(attempt.round),
            groups=self.view.destinations(attempt.groups),
            done=attempt.proposal.done,
            open=attempt.proposal.open,
        )

    def _accept(self, attempt: Attempt) -> Accept:
        assert self.view is not None and attempt.value is not None
        return Accept(
            instance=attempt.proposal.instance,
            round=round_message(attempt.round),
            value=attempt.value,
            groups=self.view.destinations(attempt.groups),
            done=attempt.proposal.done,
            open=attempt.proposal.open,
        )
