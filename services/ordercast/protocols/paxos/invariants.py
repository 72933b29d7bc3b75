"""What is always so between two steps of Paxos' machines, and what the README argues with.

Of proposers and acceptors those instances are looked at that the step was about; of a log a few numbers. So it
costs the same, however much is open: the simulator looks after every step.
"""

from typing import TYPE_CHECKING

from ordercast.core.errors import InvariantBroken
from ordercast.core.ids import short

if TYPE_CHECKING:
    from ordercast.protocols.paxos.acceptor import Acceptor
    from ordercast.protocols.paxos.log import LogReplica
    from ordercast.protocols.paxos.proposer import Attempt, Proposer


def check_acceptor(acceptor: "Acceptor") -> None:
    for instance in acceptor.about:
        vote = acceptor.vote_in(instance)
        if vote is None:
            continue
        # "An acceptor never forgets a promise or a vote": nothing is voted for above what is promised.
        if vote.voted is not None and vote.voted > vote.promised:
            raise InvariantBroken(f"{short(instance)}: a vote in {vote.voted}, and a promise of {vote.promised}")
        # "A forgotten instance must never look like a new one."
        if acceptor.is_closed(instance):
            raise InvariantBroken(f"{short(instance)} is closed, and there is a vote in it")


def check_proposer(proposer: "Proposer") -> None:
    for instance in proposer.about:
        attempt = proposer.attempts.get(instance)
        if attempt is not None:
            what = _wrong_with(attempt, proposer.incarnation)
            if what:
                raise InvariantBroken(f"{short(instance)}: {what}")


def _wrong_with(attempt: "Attempt", incarnation: int) -> str:
    number, owner = attempt.round
    # "A round belongs to one incarnation of a process."
    if owner != incarnation:
        return f"a round of incarnation {owner} in {incarnation}"
    if number > attempt.number_max:
        return f"round {number} above {attempt.number_max}, the highest that was heard of"
    # "That process proposes at once. Everyone else starts with phase 1 in a higher round."
    if not number and attempt.proposal.owner != incarnation:
        return f"the round 0 of incarnation {attempt.proposal.owner} in {incarnation}"
    # "An attempt is kept after its instance was decided or closed", with what came of it, and until then there is
    # nothing to tell.
    if attempt.is_over != (attempt.outcome is not None):
        return "it is over without an outcome, or has one before it is over"
    # "The owner proposes a value": votes are for one.
    if attempt.votes and attempt.value is None:
        return "votes, and no value"
    return ""


def check_log(member: "LogReplica") -> None:
    state, settings = member.state, member.settings
    # "The slots 0 to decided - 1 are decided", and all that retention left of them is here.
    known = state.decided - state.begins
    if known < 0 or len(state.entries) < known:
        raise InvariantBroken(f"{len(state.entries)} slots are here of {state.begins} to {state.decided}")
    # "A promise never holds more than the window, however long the log is."
    if len(state.entries) - known > settings.window_count_max:
        raise InvariantBroken(f"{len(state.entries) - known} slots are voted for beyond what is decided")
    if state.promised > member.highest or member.highest[0] > member.number_max:
        what = f"{state.promised} is promised, {member.highest} the highest round, {member.number_max} its number"
        raise InvariantBroken(what)
    if (member.leader == member.process) != (member.reign is not None):
        raise InvariantBroken(f"{member.leader} is believed to lead, and it is not so here")
    trying = member.reign or member.candidacy
    if trying is None:
        return
    if member.reign is not None and member.candidacy is not None:
        raise InvariantBroken("it leads, and is a candidate")
    # "Without a majority that votes, nobody leads", and whoever heard of a higher round has given up.
    if trying.round != member.highest or not state.votes:
        raise InvariantBroken(f"it leads or tries to in {trying.round}, and {member.highest} is the highest round")
