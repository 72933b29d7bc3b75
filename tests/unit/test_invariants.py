"""What machines check of themselves: it holds where there is something to check, and fails when that is not so."""

from collections.abc import Callable
from typing import Any

import pytest

from ordercast.core.errors import InvariantBroken
from ordercast.core.ids import order_key
from ordercast.core.machine import ChecksItself
from ordercast.gateway.machine import Gateway
from ordercast.membership.machine import Membership
from ordercast.protocols.paxos.acceptor import Acceptor
from ordercast.protocols.paxos.log import LogReplica
from ordercast.protocols.paxos.log_leader import Candidacy
from ordercast.protocols.paxos.log_state import Entry
from ordercast.protocols.paxos.proposer import Phase, Proposer
from ordercast.protocols.scalatom.machine import Scalatom
from ordercast.v1.consensus_pb2 import LOG_STANDING_MUTE, ClosedRecord, LogItem
from tests.unit import (
    gateway_host,
    scalatom_host,
    test_acceptor,
    test_membership_machine,
    test_paxos_log,
    test_proposer,
)
from tests.unit.driving import envelope_of


def scalatom() -> Scalatom:
    """It has delivered an envelope in a, and one is decided behind it and waits for its peers' histories."""
    host = scalatom_host.Host()
    host.order(envelope_of(0, "a"), 5)
    envelope = envelope_of(1, "a")
    host.take(envelope)
    host.stamp("n2", envelope, 7)
    host.decide(envelope, 7)
    machine: Scalatom = host.machine
    assert machine.touched
    replica = machine.replicas["a"]
    assert replica.position
    assert replica.queue
    assert any(peer.told for peer in replica.peers.values())
    return machine


def acceptor() -> Acceptor:
    """It has voted in an instance just now."""
    host = test_acceptor.Host()
    host.accept("n7", 3)
    machine: Acceptor = host.machine
    assert list(machine.about) == [test_acceptor.I5]
    return machine


def proposer() -> Proposer:
    """It has a vote for its value in round 1."""
    host = test_proposer.Host()
    host.propose(b"x", owner="n1")
    host.promise(*test_proposer.EVERYONE)
    host.accepted("n1")
    machine: Proposer = host.machine
    (attempt,) = machine.attempts.values()
    assert attempt.votes
    assert attempt.phase is Phase.ACCEPT
    return machine


def log_replica() -> LogReplica:
    """It leads, has one slot decided, and votes in the next."""
    member = test_paxos_log.Member()
    member.lead()
    member.append(b"x")
    member.receive("b", test_paxos_log.accepted(0, 1))
    member.append(b"y")
    machine = member.machine
    assert machine.reign is not None
    assert machine.state.decided == 1
    assert len(machine.state.entries) == 2
    return machine


def gateway() -> Gateway:
    """One envelope is under way."""
    host = gateway_host.Host()
    host.submit("a")
    machine: Gateway = host.machine
    assert machine.open
    return machine


def member() -> Membership:
    """It leads, a batch is under way, and commands wait behind it."""
    found = test_membership_machine.Member()
    found.settle(found.lead())
    for name in ("n1", "n2"):
        found.execute(
            register={"name": name, "node_id": name.encode(), "peer_address": "a:1", "services": ["gateway"]}
        )
    machine = found.machine
    assert machine.flight is not None
    assert machine.next.commands
    return machine


def replica_of(machine: Scalatom) -> Any:
    return machine.replicas["a"]


def vote_of(machine: Acceptor) -> Any:
    return machine.vote_in(test_acceptor.I5)


def attempt_of(machine: Proposer) -> Any:
    return machine.attempts[test_proposer.INSTANCE]


def close(machine: Acceptor) -> None:
    """And keep the vote."""
    vote = vote_of(machine)
    machine.close([], [ClosedRecord(incarnation=test_acceptor.GATEWAY, done=9)])
    machine.votes[test_acceptor.GATEWAY] = {test_acceptor.I5: vote}


def requeue(machine: Scalatom, sn: int) -> None:
    """The envelope that waits has another number."""
    replica = replica_of(machine)
    ((id_, _),) = replica.queued.items()
    replica.queued[id_] = replica.queue[0] = order_key(sn, id_)


def vote_far_ahead(machine: LogReplica) -> None:
    for slot in range(2, 3 + machine.settings.window_count_max):
        machine.state.entries[slot] = Entry(machine.highest, LogItem())


def lead_and_stand(machine: LogReplica) -> None:
    machine.candidacy = Candidacy(machine, machine.highest)


def change(path: str, value: Any) -> Callable[[Any], None]:
    """Sets an attribute of an attribute."""

    def changed(found: Any) -> None:
        *ways, last = path.split(".")
        for way in ways:
            found = getattr(found, way)
        setattr(found, last, value(getattr(found, last)) if callable(value) else value)

    return changed


Case = tuple[Callable[[], ChecksItself], Callable[[Any], Any]]

BREAKS: dict[str, Case] = {
    "is reserved": (scalatom, change("reserved", -1)),
    "its clock is": (scalatom, lambda m: change("clock", m.clock + 1)(replica_of(m))),
    "was told": (scalatom, lambda m: change("told", m.clock + 1)(replica_of(m).peers["n2"])),
    "has no stamp, or two": (scalatom, lambda m: replica_of(m).history._stamps.append(99)),
    "2 places in the queue": (scalatom, lambda m: replica_of(m).queue.append(replica_of(m).queue[0])),
    "what comes behind it is": (scalatom, lambda m: requeue(m, 4)),
    "is not held so": (scalatom, lambda m: requeue(m, 8)),
    "and a promise of": (acceptor, lambda m: change("voted", (4, 7))(vote_of(m))),
    "is closed, and": (acceptor, close),
    "a round of incarnation": (proposer, lambda m: change("round", (1, 1))(attempt_of(m))),
    "the highest that was heard of": (proposer, lambda m: change("number_max", 0)(attempt_of(m))),
    "the round 0 of": (proposer, lambda m: change("round", lambda round_: (0, round_[1]))(attempt_of(m))),
    "without an outcome": (proposer, lambda m: change("phase", Phase.OVER)(attempt_of(m))),
    "votes, and no value": (proposer, lambda m: change("value", None)(attempt_of(m))),
    "slots are here of": (log_replica, lambda m: m.state.entries.clear()),
    "voted for beyond": (log_replica, vote_far_ahead),
    "is promised": (log_replica, change("number_max", 0)),
    "is believed to lead": (log_replica, change("leader", "b")),
    "and is a candidate": (log_replica, lead_and_stand),
    "it leads or tries to": (log_replica, change("state.standing", LOG_STANDING_MUTE)),
    "envelopes are open$": (gateway, lambda m: m.open.update(dict.fromkeys(range(99_999)))),
    "is not looked at": (gateway, change("batching.may_fill", True)),
    "bytes wait": (gateway, change("batching.waiting_bytes", 1)),
    "and the next is": (gateway, change("batching.counter", 0)),
    "nobody looks after": (gateway, change("is_ticking", False)),
    "wait for answers": (gateway, change("batching.unanswered", {("a",): 1, ("b",): 1})),
    "does not lead": (member, change("leader", "other")),
    "nothing is under way": (member, change("flight", None)),
    "than a slot takes": (member, change("next.size", 10**9)),
    "duties are under way": (member, lambda m: m.duties.update(dict.fromkeys("abc"))),
    "a snapshot before": (member, change("snapshot_at", 99)),
}


@pytest.mark.parametrize("make", list(dict.fromkeys(make for make, _ in BREAKS.values())))
def test_they_hold_where_there_is_something_to_check(make: Callable[[], ChecksItself]):
    machine = make()
    assert isinstance(machine, ChecksItself)
    machine.check_invariants()


@pytest.mark.parametrize("what", BREAKS)
def test_whatever_is_broken_is_noticed(what: str):
    make, break_ = BREAKS[what]
    machine = make()
    break_(machine)
    with pytest.raises(InvariantBroken, match=what):
        machine.check_invariants()
