"""A replicated log: Paxos for a sequence of slots, with one phase 1 for all of them.

[Paxos] Lamport, "The part-time parliament" 1998, and "Paxos made simple" 2001, section 3: a leader prepares all
slots at once and then needs one round trip per slot. Every member is proposer, acceptor and learner; quorums are
majorities of the members given at construction.

Deviations. A promise does not tell the votes for slots that its sender knows to be decided, only how many there
are: a new leader fetches those before it leads, so a promise never outgrows the window. Items carry the round they
were first proposed in, so that whoever appended one can tell its own from equal bytes. A leader that a majority
does not answer steps down, so that its clients are refused instead of kept waiting.

A member whose disk is empty does not vote before that is safe, and log_admission.py says when it is.

Incarnations are unique among all members, and a round belongs to one incarnation: nobody can propose two things in
one slot and round, not even by restarting. Suspicion may be wrong at any time without harm.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ordercast.core.errors import InvariantBroken, RemoteProtocolError
from ordercast.core.ids import pack_u64
from ordercast.core.machine import (
    ChannelReset,
    Effect,
    Event,
    Hand,
    Persist,
    Receive,
    Send,
    SetTimer,
    Start,
    TimerFired,
)
from ordercast.protocols.paxos import invariants
from ordercast.protocols.paxos.acceptor import RoundKey, round_key, round_message
from ordercast.protocols.paxos.log_admission import Admission
from ordercast.protocols.paxos.log_catchup import CatchUp
from ordercast.protocols.paxos.log_leader import Candidacy, Reign
from ordercast.protocols.paxos.log_state import ROUND_MIN, LogSettings, LogState, check_message
from ordercast.v1.consensus_pb2 import (
    LogAccept,
    LogAccepted,
    LogDecided,
    LogEcho,
    LogFetch,
    LogFoundAsk,
    LogFoundGrant,
    LogHeartbeat,
    LogInstall,
    LogPrepare,
    LogPromise,
    LogRejected,
    LogRejoin,
    LogRejoined,
    LogTail,
    LogVote,
)

TIMER = "log"

# ------------------------------------------------------------------------------------------ from the client


@dataclass(slots=True)
class Append(Event):
    """Put a value into the log. Answered once, with this tag, by LogApplied or AppendRefused.

    If the leader is overtaken, the answer comes with the decision on the slot that it had chosen: before that
    nobody can know. A client that cannot wait has to look for the value in the log.
    """

    value: bytes
    tag: bytes


@dataclass(slots=True)
class Truncate(Event):
    """The client has applied all slots before this one, and the snapshot says what they came to."""

    slot: int
    snapshot: bytes


@dataclass(slots=True)
class MayVote(Event):
    """This member's present disk is the one that its name belongs to now: it may be readmitted.

    `life` is higher than with any earlier disk of this member, and not 0. A member that votes ignores it.
    """

    life: int


# -------------------------------------------------------------------------------------------- to the client


@dataclass(slots=True)
class LogApplied(Event):
    """The next slot: in each incarnation every slot once, in order, from 0 or from the snapshot handed before."""

    slot: int
    #: None if a new leader had to fill the slot with nothing.
    value: bytes | None
    #: Of the Append to this incarnation that put the value there.
    tag: bytes | None


@dataclass(slots=True)
class LogSnapshot(Event):
    """Forget everything applied so far: this is the state before `slot`."""

    slot: int
    snapshot: bytes
    #: Appends whose slots lie before `slot`: whether they are in the log, only the snapshot can tell.
    unknown: tuple[bytes, ...]


@dataclass(slots=True)
class AppendRefused(Event):
    """The value is not in the log and will not be. If the leader is this process, it has no room now."""

    tag: bytes
    leader: str | None


@dataclass(slots=True)
class LeaderChanged(Event):
    """A belief and no more: others may believe otherwise at the same time."""

    leader: str | None


# ---------------------------------------------------------------------------------------------- the machine


class LogReplica:
    handles = (
        LogPrepare,
        LogPromise,
        LogAccept,
        LogAccepted,
        LogRejected,
        LogDecided,
        LogHeartbeat,
        LogEcho,
        LogFetch,
        LogTail,
        LogInstall,
        LogFoundAsk,
        LogFoundGrant,
        LogRejoin,
        LogRejoined,
    )

    def __init__(
        self,
        process: str,
        members: tuple[str, ...],
        client: str,
        settings: LogSettings | None = None,
        disk: bytes = b"",
    ) -> None:
        """`client` is the role of the sibling machine that appends and applies.

        `disk` is drawn when a disk is made, and no two disks have the same. A driver whose incarnations never
        repeat, whatever becomes of a disk, need not give one: the first incarnation does as well.
        """
        assert process in members and list(members) == sorted(set(members))
        self.process = process
        self.members = members
        self.others = tuple(member for member in members if member != process)
        self.client = client
        self.settings = settings or LogSettings()
        self.disk = disk
        self.incarnation = 0
        self.state = LogState()
        self.leader: str | None = None
        #: At most one of the two; a follower has neither.
        self.candidacy: Candidacy | None = None
        self.reign: Reign | None = None
        #: The highest round that we promised, started, or saw somebody lead. What is below it is refused.
        self.highest = ROUND_MIN
        #: The highest round number that we heard of at all.
        self.number_max = 0
        #: Slot -> (round, tag) of what was appended here and is not known to be decided.
        self.mine: dict[int, tuple[RoundKey, bytes]] = {}
        self.catch_up = CatchUp(self)
        self.admission = Admission(self)
        self.heard_at = 0.0
        #: How long to wait for the leader; drawn at the next tick, where chance is at hand.
        self.patience_s: float | None = None
        self.now = self.wall = 0.0
        self.out: list[Effect] = []
        self._on_message: dict[type, Callable[[str, Any], None]] = {
            LogPrepare: self._on_prepare,
            LogPromise: self._on_promise,
            LogAccept: self._on_accept,
            LogAccepted: self._on_answer,
            LogRejected: self._on_rejected,
            LogDecided: self._on_decided,
            LogHeartbeat: self._on_heartbeat,
            LogEcho: self._on_answer,
            LogFetch: self.catch_up.on_fetch,
            LogTail: self.catch_up.on_tail,
            LogInstall: self.catch_up.on_install,
            LogFoundAsk: self.admission.on_found_ask,
            LogFoundGrant: self.admission.on_found_grant,
            LogRejoin: self.admission.on_rejoin,
            LogRejoined: self.admission.on_rejoined,
        }

    def step(self, event: Event) -> list[Effect]:
        self.out = []
        self.now, self.wall = event.now, event.wall
        match event:
            case Receive():
                self._on_receive(event)
            case Append():
                self._on_append(event)
            case TimerFired(name=name, chance=chance) if name == TIMER:
                self._on_tick(chance)
            case ChannelReset(peer=peer) if peer in self.others:
                self._on_reset(peer)
            case Truncate(slot=slot, snapshot=snapshot):
                self.catch_up.truncate(slot, snapshot)
            case MayVote(life=life):
                self.admission.on_may_vote(life)
            case Start():
                self._on_start(event)
        return self.out

    def check_invariants(self) -> None:
        """See core.machine.ChecksItself."""
        invariants.check_log(self)

    def buffers(self) -> dict[str, int]:
        promises = self.candidacy.promises.values() if self.candidacy else ()
        return {
            "entries": len(self.state.entries),
            "promised_votes": sum(len(promise.votes) for promise in promises),
            "flights": len(self.reign.flights) if self.reign else 0,
            "queue": len(self.reign.queue) if self.reign else 0,
            "mine": len(self.mine),
        }

    # ------------------------------------------------------------------------------------------- events

    def _on_start(self, event: Start) -> None:
        self.incarnation = event.incarnation
        state = self.state
        state.recover(event.records, self.disk or pack_u64(event.incarnation))
        self.highest, self.number_max = state.promised, state.promised[0]
        self.heard_at = self.now
        if state.begins:
            self.hand_snapshot(())
        for slot in range(state.begins, state.decided):
            self._hand_applied(slot, None)
        self.out.append(SetTimer(TIMER, self.settings.heartbeat_s))
        self.admission.on_start()

    def _on_receive(self, event: Receive) -> None:
        source, message = event.source, event.message
        if source not in self.others:
            raise RemoteProtocolError(f"{source!r} is no other member of this log")
        check_message(message, event.incarnation, self.settings)
        self.catch_up.peers_decided[source] = message.decided
        if not self.admission.is_over(source, message):
            self._on_message[type(message)](source, message)
        # A promise, or a fetched slot, may have been all that a candidate still lacked.
        self._lead_if_ready()
        if self.reign is not None:
            self.reign.pump()
        self.catch_up.fetch_if_behind(source)
        self.admission.proceed()

    def _on_append(self, append: Append) -> None:
        if len(append.value) > self.settings.value_bytes_max:
            raise InvariantBroken(f"a value of {len(append.value)} bytes")
        if self.reign is None or not self.reign.has_room():
            self._hand(AppendRefused(self.now, self.wall, append.tag, self.leader))
            return
        self.reign.queue.append((append.value, append.tag))
        self.reign.pump()

    def _on_tick(self, chance: int) -> None:
        self.out.append(SetTimer(TIMER, self.settings.heartbeat_s))
        if self.patience_s is None:
            self.patience_s = self.settings.suspect_s * (1 + chance / 2**64)
        self.catch_up.on_tick()
        if not self.state.votes:
            self.admission.on_tick()
            if self.now - self.heard_at >= self.patience_s:
                self.follow(None)
        elif self.reign is not None:
            if self.reign.is_answered():
                self.reign.remind()
            else:
                self.follow(None)
        elif self.candidacy is not None and not self.candidacy.is_promised():
            # In the same round: one that is cut off and tries ever higher ones would gain nothing by it.
            self.candidacy.prepare_again()
        elif self.now - self.heard_at >= self.patience_s:
            # Also a candidate that cannot fetch what a promise said was decided: a hears that slot 0 is decided,
            # promises us, and restarts before that was on its disk, and nobody else had heard. A promise in
            # a new round tells us a's vote instead.
            self._campaign()

    def _on_reset(self, peer: str) -> None:
        """What was in flight may be lost, in either direction."""
        if self.candidacy is not None and peer not in self.candidacy.promises:
            self.candidacy.prepare((peer,))
        if self.reign is not None:
            self.reign.show((peer,))
            self.reign.resend(peer)
        self.catch_up.on_reset(peer)
        self.admission.on_reset(peer)

    # ------------------------------------------------------------------------------------------- phase 1

    def _campaign(self) -> None:
        """Start a round above every one that we heard of."""
        self.follow(None)
        self.number_max += 1
        self.highest = (self.number_max, self.incarnation)
        self._hear()
        self.candidacy = Candidacy(self, self.highest)
        self.candidacy.prepare(self.others)
        # Behind the question, and before anything that our own promise leads to.
        self.state.promise(self.highest)
        self.persist()
        self._lead_if_ready()

    def _on_prepare(self, source: str, prepare: LogPrepare) -> None:
        """[Paxos phase 1b] Promise to ignore lower rounds, in all slots, and tell the votes in open ones."""
        round_ = round_key(prepare.round)
        if not self.state.votes:
            return
        if round_ < self.highest:
            self._reject(source)
            return
        if round_ > self.highest:
            self.raise_highest(round_)
            self.follow(None)
        self._hear()
        if round_ > self.state.promised:
            self.state.promise(round_)
            self.persist()
        lives = self.state.lives_told()
        promise = LogPromise(round=prepare.round, decided=self.state.decided, lives=lives)
        for slot, entry in self.state.open_votes(prepare.decided, self.settings.window_count_max).items():
            assert entry.voted is not None
            promise.votes.append(LogVote(slot=slot, round=round_message(entry.voted), item=entry.item))
        self.send((source,), promise)

    def _on_promise(self, source: str, promise: LogPromise) -> None:
        if self.candidacy is not None:
            self.candidacy.on_promise(source, promise)

    def _lead_if_ready(self) -> None:
        candidacy = self.candidacy
        if candidacy is None or not (candidacy.is_promised() and candidacy.has_caught_up()):
            return
        self.candidacy = None
        self.reign = Reign(self, candidacy.round)
        self._believe(self.process)
        self.reign.begin(candidacy.found_items())

    # ------------------------------------------------------------------------------------------- phase 2

    def _on_accept(self, source: str, accept: LogAccept) -> None:
        """[Paxos phase 2b] Vote, unless a higher round was promised.

        Slots decided here get no vote, for a leader that was overtaken may propose in them what was not decided:
        we are in round 1; b and c decide y in round 2; we fetch y from c; then the Accept of x in round 1 arrives.
        A leader that needs those slots sees from our `decided` that it can fetch them. Slots beyond the window
        get no vote either, or our promises would outgrow it; they come again when we have fetched what we lack.
        """
        if not self._heed_leader(source, accept) or not self.state.votes:
            return
        state, round_ = self.state, round_key(accept.round)
        first = max(accept.first, state.decided)
        ends = min(accept.first + len(accept.items), state.decided + self.settings.window_count_max)
        for slot, item in enumerate(accept.items, accept.first):
            if slot < first:
                state.check_proposal(slot, round_, item)
            elif slot < ends:
                state.vote(slot, round_, item)
        count = max(ends - first, 0)
        if count:
            self.persist()
        accepted = LogAccepted(round=accept.round, decided=state.decided, first=first, count=count)
        accepted.lives.extend(state.lives_told())
        self.send((source,), accepted)

    def _on_answer(self, source: str, answer: LogAccepted | LogEcho) -> None:
        if self.reign is None or round_key(answer.round) != self.reign.round:
            return
        self.reign.answered_at[source] = self.now
        if isinstance(answer, LogAccepted):
            self.reign.on_accepted(source, answer)

    def _on_rejected(self, source: str, rejected: LogRejected) -> None:
        """A higher round was started. Its owner may be gone, so that we have to outbid it, but not at once."""
        promised = round_key(rejected.promised)
        self.number_max = max(self.number_max, promised[0])
        if promised > self.highest and (self.candidacy is not None or self.reign is not None):
            self.follow(None)

    # ------------------------------------------------------------------------------------------- leaders

    def _heed_leader(self, source: str, message: LogAccept | LogDecided | LogHeartbeat) -> bool:
        """Whether it comes from the highest leader we know. If so, what it calls decided is."""
        round_ = round_key(message.round)
        if round_ < self.highest:
            self._reject(source)
            return False
        self.raise_highest(round_)
        self.follow(source)
        self._hear()
        while self.state.decided < message.decided and self.state.holds_decided(round_):
            self.apply_next()
        return True

    def _on_decided(self, source: str, decided: LogDecided) -> None:
        self._heed_leader(source, decided)

    def _on_heartbeat(self, source: str, heartbeat: LogHeartbeat) -> None:
        # One that does not vote supports nobody either: without a majority that votes, nobody leads.
        if self._heed_leader(source, heartbeat) and self.state.votes:
            self.send((source,), LogEcho(round=heartbeat.round, decided=self.state.decided))

    def follow(self, leader: str | None) -> None:
        """Neither candidate nor leader any more; what was not proposed yet is refused."""
        self._believe(leader)
        queue = self.reign.queue if self.reign is not None else ()
        if self.candidacy is not None or self.reign is not None:
            self.candidacy = self.reign = None
            self._hear()
        for _, tag in queue:
            self._hand(AppendRefused(self.now, self.wall, tag, leader))

    def _believe(self, leader: str | None) -> None:
        if leader != self.leader:
            self.leader = leader
            self._hand(LeaderChanged(self.now, self.wall, leader))

    def _hear(self) -> None:
        """Somebody leads or tries to: no suspicion for a while, and then after another while than last time."""
        self.heard_at = self.now
        self.patience_s = None

    def raise_highest(self, round_: RoundKey) -> None:
        self.highest = max(self.highest, round_)
        self.number_max = max(self.number_max, round_[0])

    def _reject(self, source: str) -> None:
        if not self.state.votes:
            return
        promised = round_message(self.highest)
        self.send((source,), LogRejected(promised=promised, decided=self.state.decided))

    # ------------------------------------------------------------------------------------------- parts

    def apply_next(self) -> None:
        """The first undecided slot is decided, with the item that is in it."""
        slot = self.state.decided
        self.state.decided += 1
        round_, tag = self.mine.pop(slot, (None, None))
        if tag is not None and round_ != round_key(self.state.entries[slot].item.origin):
            # We proposed in this slot and in no other, were overtaken, and the next leader had not seen it.
            self._hand(AppendRefused(self.now, self.wall, tag, self.leader))
            tag = None
        self._hand_applied(slot, tag)

    def _hand_applied(self, slot: int, tag: bytes | None) -> None:
        item = self.state.entries[slot].item
        value = item.value if item.HasField("value") else None
        self._hand(LogApplied(self.now, self.wall, slot, value, tag))

    def hand_snapshot(self, unknown: tuple[bytes, ...]) -> None:
        state = self.state
        self._hand(LogSnapshot(self.now, self.wall, state.begins, state.snapshot, unknown))

    def _hand(self, event: Event) -> None:
        self.out.append(Hand(self.client, event))

    def persist(self, barrier: bool = True) -> None:
        self.out.append(Persist(self.state.take_changes(), barrier))

    def send(self, to: Sequence[str], message: Any) -> None:
        if to:
            self.out.append(Send(to, message))
