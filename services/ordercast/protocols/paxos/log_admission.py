"""Who may vote in the replicated log: founders, and members that come back with an empty disk.

A member that lost its disk has forgotten what it promised and voted for. {a, c} decide a slot, c comes back
without memory, and {b, c} are a majority that knows nothing of it. So a member without records is *mute*: it
neither promises nor votes, does not campaign, and gives no leader its support. It learns what is decided, like
everyone. There are two ways to a vote.

**Founding**: every other member says that the disk we have is the only one that it ever met under our name. Each
says so for one disk of a name and never for another; and we, too, take each other member's word with one disk
only. All that is durable before it is said. So the first disk to become a founder fixes the disks of all others:
as long as any of those is left, it vouches for no other disk than the one it met. A founder has therefore never
had another disk, and has nothing to have forgotten. One that was itself readmitted, and one from before there was
this rule, has not met everybody's first disk, and vouches for nobody.

    Not "when everyone is empty": a and b are empty, c promises b a high round, loses its disk, and asks again.
    Nobody has voted yet, so all are empty. c would vote for a in a low round, and b, which leads, decide
    something else.

**Readmission**, when membership has registered our new disk: each disk of a member is one *life* of it, with
rising numbers, and the founders' is 0. (The mechanism is known as crash-consistent quorums: Michael, Ports,
Sharma, Szekeres, "Recovering shared objects without stable storage", 2017.)

1. We tell everyone our new life. A member that votes notes it on disk, counts nothing any more that an earlier
   life of ours said, and answers with the highest round it knows and the first slot it has not voted for.
2. Promises, votes and those answers carry all lives that their sender knows of. Whoever counts them throws out
   what a member said in an earlier life than anybody else in the same count knows of. A member that hears of a
   later life of its own is mute from then on.
3. With answers of as many *others* as are a majority of all members, we wait until every slot is decided here
   that one of them had voted for. Then we promise the highest of their rounds, durably, and vote.

*Why it is safe.* Take any majority that our earlier life was counted in. But for us, it has one member less than
a majority, and meets those who answered: in z, say. Either z's part in it came before z's answer. If it was a
promise, we keep to it, for it is not above the round that z told us; if it was a vote, we know that slot to be
decided, and tell every candidate so. Or z's part came after its answer, and carried our new life: then our
earlier one was not counted. So whatever rests on what we have forgotten, we respect it, or it does not count. The
same holds if z loses its disk in its turn: z asks a majority of the others as well, which meets those who
answered us, and takes over the lives they know. If one answered z first and us later, its answer to us tells z's
new life, and z's old answer is thrown out. None of this needs the earlier life to be over, only to have a lower
number.

    It is not enough to have learnt all slots up to the registration. With five members, d leads round 5; b, a
    candidate in round 6, has only e's promise so far; e loses its disk. a, c and d register e's new disk, and a,
    d and e decide x in the next slot, in round 5: e does not know that it promised 6. Now c promises b, which
    counts e's old promise as the third, finds nothing in that slot, and decides y with c and a.
    (`tests/sim/test_paxos_log_disks.py`)

Slots that somebody has voted for, and that nobody proposes again, would keep us waiting: the leader fills them.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ordercast.core.machine import Effect
from ordercast.core.quorums import majority
from ordercast.protocols.paxos.acceptor import round_key, round_message
from ordercast.v1.consensus_pb2 import (
    LOG_STANDING_EMPTY,
    LOG_STANDING_FOUNDER,
    LOG_STANDING_MUTE,
    LOG_STANDING_READMITTED,
    LogAccepted,
    LogFoundAsk,
    LogFoundGrant,
    LogPromise,
    LogRejoin,
    LogRejoined,
    LogStanding,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ordercast.protocols.paxos.log import LogReplica

#: What majorities are counted of.
COUNTED = (LogPromise, LogAccepted, LogRejoined)


@dataclass(slots=True)
class VotingChanged(Effect):
    """For whoever looks on: this member votes from now on, or does not. Told at the start only if it does not."""

    votes: bool
    life: int


class Admission:
    def __init__(self, member: "LogReplica") -> None:
        self.member = member
        #: Who vouched for our disk.
        self.grants: dict[str, None] = {}
        #: The life in which we are to be readmitted, and who noted it.
        self.life = 0
        self.answers: dict[str, LogRejoined] = {}
        #: With enough answers: the slots before this one have to be decided here.
        self.until: int | None = None
        self.asked_at = 0.0

    # ------------------------------------------------------------------------------------------- asking

    def on_start(self) -> None:
        member = self.member
        if member.state.standing == LOG_STANDING_EMPTY:
            # Nobody may hear of a disk that would have another name after a restart.
            member.persist()
        if not member.state.votes:
            member.out.append(VotingChanged(False, 0))
            self._found_if_granted()

    def on_tick(self) -> None:
        if self.member.now - self.asked_at >= self.member.settings.retry_s:
            self.asked_at = self.member.now
            self._ask(self.member.others)

    def on_reset(self, peer: str) -> None:
        self._ask((peer,))

    def on_may_vote(self, life: int) -> None:
        member = self.member
        assert life > 0
        if member.state.votes or life <= self.life:
            return
        # No way back to the founding: it would be life 0, and others know of this one.
        member.state.stand(LOG_STANDING_MUTE)
        member.persist()
        self._expect_life(life)
        self._ask(member.others)

    def _stand(self, standing: LogStanding, life: int = 0) -> None:
        """Durably, before anything that comes of it."""
        self.member.state.stand(standing, life)
        self.member.persist()
        self.member.out.append(VotingChanged(self.member.state.votes, life))

    def _expect_life(self, life: int) -> None:
        self.life, self.answers, self.until = life, {}, None

    def _ask(self, to: "Sequence[str]") -> None:
        member = self.member
        if member.state.votes:
            return
        decided = member.state.decided
        if self.life:
            # With `until` also those who answered: one of them leads, and has to fill the slots that we wait for.
            asked = [name for name in to if self.until is not None or name not in self.answers]
            member.send(asked, LogRejoin(decided=decided, life=self.life, until=self.until or 0))
        elif member.state.standing == LOG_STANDING_EMPTY:
            asked = [name for name in to if name not in self.grants]
            member.send(asked, LogFoundAsk(decided=decided, disk=member.state.disk))

    # ----------------------------------------------------------------------------------------- founding

    def on_found_ask(self, source: str, ask: LogFoundAsk) -> None:
        """Silence is the answer to a disk that cannot be a founder's: it will be registered, or it will not."""
        member, state = self.member, self.member.state
        if not state.may_found or not state.meet(source, ask.disk):
            return
        member.persist()
        grant = LogFoundGrant(decided=state.decided, asked=ask.disk, disk=state.disk)
        member.send((source,), grant)

    def on_found_grant(self, source: str, grant: LogFoundGrant) -> None:
        state = self.member.state
        if state.standing != LOG_STANDING_EMPTY or grant.asked != state.disk:
            return
        if state.meet(source, grant.disk):
            self.grants[source] = None
            self._found_if_granted()

    def _found_if_granted(self) -> None:
        member = self.member
        is_empty = member.state.standing == LOG_STANDING_EMPTY
        if is_empty and all(name in self.grants for name in member.others):
            self._stand(LOG_STANDING_FOUNDER)

    # ------------------------------------------------------------------------------------------- lives

    def is_over(self, source: str, message: Any) -> bool:
        """Whether it is to be counted, and was said in a life of its sender that is known to be over."""
        if not isinstance(message, COUNTED):
            return False
        lives = self.member.state.lives
        told = {one.member: one.life for one in message.lives}
        for name in self.member.members:
            if told.get(name, 0) > lives.get(name, 0):
                self._begin_life(name, told[name])
        return told.get(source, 0) < lives.get(source, 0)

    def _begin_life(self, name: str, life: int) -> None:
        member = self.member
        if name == member.process:
            if member.state.votes and life > member.state.life:
                # Our disk was given up, and its successor was readmitted.
                self._expect_life(0)
                member.follow(None)
                self._stand(LOG_STANDING_MUTE)
            return
        member.state.note_life(name, life)
        if member.candidacy is not None:
            member.candidacy.promises.pop(name, None)
        if member.reign is not None:
            member.reign.discount(name)
        if self.answers.pop(name, None) is not None:
            self.until = None

    # --------------------------------------------------------------------------------------- readmission

    def on_rejoin(self, source: str, rejoin: LogRejoin) -> None:
        """One that is mute itself does not know what it promised and voted for."""
        member, state = self.member, self.member.state
        known = state.lives.get(source, 0)
        if not state.votes or rejoin.life < known:
            return
        if rejoin.life > known:
            self._begin_life(source, rejoin.life)
            member.persist()
        rejoined = LogRejoined(decided=state.decided, life=rejoin.life, unvoted=state.unvoted())
        rejoined.promised.CopyFrom(round_message(member.highest))
        rejoined.lives.extend(state.lives_told())
        member.send((source,), rejoined)
        if member.reign is not None:
            member.reign.fill(rejoin.until)

    def on_rejoined(self, source: str, rejoined: LogRejoined) -> None:
        # Of each the first answer, and none more than needed: what they vote for goes on and on.
        if not self.member.state.votes and rejoined.life == self.life and self.until is None:
            self.answers.setdefault(source, rejoined)

    def proceed(self) -> None:
        """Vote, if nothing is missing any more."""
        member, state = self.member, self.member.state
        if state.votes or not self.life:
            return
        if self.until is None:
            if len(self.answers) < majority(len(member.members)):
                return
            self.until = max(answer.unvoted for answer in self.answers.values())
        if state.decided < self.until:
            return
        promised = max(round_key(answer.promised) for answer in self.answers.values())
        member.raise_highest(promised)
        state.promise(promised)
        state.note_life(member.process, self.life)
        self._stand(LOG_STANDING_READMITTED, self.life)
        self._expect_life(0)
