"""Random bytes, and valid packets with something changed: nothing but a refusal comes of them.

A peer can contradict what is known to be decided. That is not its mistake alone: somebody's promise is broken, and
the process stops (InvariantBroken), at once or when it notices. Only messages that tell decisions may do that.
"""

import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ordercast.core import packets
from ordercast.core.errors import InvariantBroken, RemoteProtocolError
from ordercast.core.ids import KEY_MIN, envelope_id, pack_u64
from ordercast.core.machine import Propose
from ordercast.gateway.machine import Gateway
from ordercast.protocols.celllog.pieces import checksum_of
from ordercast.protocols.paxos.acceptor import Acceptor
from ordercast.protocols.paxos.proposer import Proposer
from ordercast.protocols.scalatom.submission import ScalatomSubmission
from ordercast.v1.common_pb2 import Message, RangeOutcome, Span
from ordercast.v1.consensus_pb2 import (
    Accept,
    Accepted,
    AcceptorRecord,
    Close,
    Closed,
    ClosedRecord,
    Decide,
    InstanceVote,
    Prepare,
    Promise,
    Rejected,
    Round,
    Votes,
    VotesAsk,
)
from ordercast.v1.gateway_pb2 import PublishRequest
from ordercast.v1.scalatom_pb2 import (
    EnvelopeDecided,
    EnvelopeDurable,
    Gossip,
    GossipAsk,
    HandOver,
    HandOverAsk,
    Have,
    HaveAsk,
    HistoryEntry,
    Pull,
    RecTs,
)
from ordercast.v1.sequencer_pb2 import (
    DeliveredRecord,
    Disseminate,
    DoneRecord,
    EnvelopeDelivered,
    FetchLog,
    LogChunk,
    ProducerRecord,
    Snapshot,
    SnapshotAsk,
    SnapshotPart,
)
from tests.unit.copying_host import copier, part_of
from tests.unit.driving import CONFIGURATION, LIVES, Driven, destinations, envelope_of, key_of, next_view
from tests.unit.fuzzing import FUZZED_INPUTS, change, change_bytes, with_an_end
from tests.unit.handover_host import hand_over, newcomer, open_
from tests.unit.scalatom_host import VIEW, Host, chunk_of, log_entry

MAY_CONTRADICT = (Decide, LogChunk, SnapshotPart, HandOver, EnvelopeDelivered)
ENVELOPES = [envelope_of(0, "a", "b"), envelope_of(1, "a"), envelope_of(2, "a", "b"), envelope_of(3, "b")]
ID = ENVELOPES[2].header.id
Corpus = list[tuple[str, Any]]
#: Changed messages in one conversation.
THROWN = 8


class Misled(Exception):  # noqa: N818 (it names what happened)
    """The machine stopped, and it was right to."""


# ---------------------------------------------------------------------------------- machines in mid-conversation


def scalatom() -> tuple[Driven, Corpus]:
    """0 is delivered, 1 is decided, 2 is stamped, 3 was only heard of."""
    host = Host()
    zero, one, two, three = ENVELOPES
    host.order(zero, 5)
    host.take(one)
    host.decide(one, 9)
    host.take(two)
    host.stamp("n4", three, 12)
    here = {"group": "a", "configuration": CONFIGURATION}
    return host, [
        ("g1", Disseminate(envelope=envelope_of(4, "a", "b", session=7, done=2, open=[1]))),
        ("g1", Disseminate(envelope=two, again=True)),
        ("n2", RecTs(id=ID, rec_ts=4, groups=destinations("a"), ask=True)),
        ("n4", RecTs(id=ENVELOPES[3].header.id, rec_ts=4, groups=destinations("b"))),
        (
            "n2",
            Gossip(
                base=6, clock=30, entries=[HistoryEntry(id=ID, rec_ts=8)], forgotten=KEY_MIN, advance=3, **here
            ),
        ),
        ("n2", GossipAsk(base=2, **here)),
        ("n2", Pull(id=ID)),
        ("n2", Have(id=ID, groups=destinations("a"))),
        ("n2", HaveAsk(id=zero.header.id)),
        ("n2", FetchLog(position=0, **here)),
        ("n2", chunk_of(log_entry(9, one), position=1)),
        ("n2", SnapshotAsk(**here)),
        ("n2", part_of(state())),
        ("n2", HandOverAsk(**here)),
        ("n2", hand_over(open_(two, 4), configuration=CONFIGURATION)),
        ("n2", Decide(instance=ID, value=pack_u64(20))),
    ]


def state() -> Snapshot:
    """Of five envelopes in a."""
    last = envelope_of(4, "a")
    record = DeliveredRecord(
        id=last.header.id,
        order_key=key_of(14, last),
        rec_ts=4,
        destinations=destinations("a"),
        gateway="g1",
        position=4,
    )
    return Snapshot(
        group="a",
        configuration=CONFIGURATION,
        position=5,
        offset=5,
        order_key=key_of(14, last),
        producers=[ProducerRecord(producer=b"p", groups=["a"], last_sequence=1, last_sn=5)],
        done=[DoneRecord(incarnation=21, done=2, open=[1])],
        delivered=[record],
        retired=3,
    )


def copying() -> tuple[Driven, Corpus]:
    """A learner that has what is left of the log, and has asked for the state."""
    giver, host = copier()
    later = giver.logs["a"].entries[-1]
    return host, [
        ("n2", part_of(state())),
        ("n2", part_of(state())),
        ("n2", part_of(state(), parts=2)),
        ("n2", part_of(state(), part=1, parts=2)),
        ("n2", chunk_of(later, position=4)),
        ("n2", chunk_of(log_entry(20, envelope_of(5, "a")), log_entry(21, envelope_of(6, "a")), position=5)),
        ("n3", chunk_of(position=5, begins=3)),
        ("n3", chunk_of(log_entry(30, envelope_of(9, "a")), position=9, begins=8)),
        ("n1", FetchLog(group="a", configuration=CONFIGURATION, position=1)),
        ("n1", SnapshotAsk(group="a", configuration=CONFIGURATION)),
    ]


def starting() -> tuple[Driven, Corpus]:
    """A newcomer that one of the sealed has told what it had."""
    host = newcomer()
    one, two = (envelope_of(counter, "a") for counter in (1, 2))
    three = envelope_of(3, "a", "b")
    host.receive("n2", hand_over(open_(one, 3), open_(two, 5, entry=4, sn=12), clock=20, position=1))
    return host, [
        ("n3", hand_over(open_(one, 4), open_(three, 6), clock=30)),
        ("n3", hand_over(open_(one, 4), clock=30, more=True)),
        ("n3", hand_over(open_(three, 6), clock=30, after=one.header.id)),
        ("n1", hand_over(open_(one, 4), open_(three, 6, entry=2), clock=30, whole=True)),
        ("n1", hand_over(idle=True)),
        ("n2", HandOverAsk(group="a", configuration=2, after=one.header.id)),
        ("n1", chunk_of(log_entry(2, envelope_of(0, "a")), configuration=2)),
        ("n2", RecTs(id=one.header.id, rec_ts=4, groups=destinations("a", configuration=2), ask=True)),
        ("g1", Disseminate(envelope=one)),
        ("n2", Decide(instance=two.header.id, value=pack_u64(12))),
    ]


def started() -> tuple[Driven, Corpus]:
    """As before, and it has started, and passes that on; then comes the next configuration."""
    host, corpus = starting()
    host.receive("n1", chunk_of(log_entry(2, envelope_of(0, "a")), configuration=2))
    host.receive(*corpus[0])
    here = {"group": "a", "configuration": 2}
    gossip = Gossip(clock=40, entries=[HistoryEntry(id=ID, rec_ts=8)], forgotten=KEY_MIN, **here)
    return host, [*corpus, ("n2", gossip), ("n2", GossipAsk(**here)), ("n2", SnapshotAsk(**here))]


def acceptor_starting() -> tuple[Driven, Corpus]:
    """One of the sealed has told what bound it."""
    view = next_view(VIEW, "b", "n1 n4 n6")
    host = Driven("n6", lambda: Acceptor("n6"), view)
    here = {"group": "b", "configuration": 2}

    def vote(counter: int, number: int) -> InstanceVote:
        round_ = Round(number=number, owner=LIVES["n2"])
        record = AcceptorRecord(promised=round_, voted_round=round_, voted_value=pack_u64(5), groups=["b"])
        return InstanceVote(instance=envelope_id(21, counter), vote=record)

    closed = [ClosedRecord(incarnation=21, done=2, open=[0])]
    host.receive("n4", Votes(votes=[vote(0, 1), vote(3, 2)], closed=closed, retired=3, **here))
    return host, [
        ("n5", Votes(votes=[vote(3, 4), vote(5, 1)], closed=closed, buried=[envelope_id(20, 1)], **here)),
        ("n5", Votes(votes=[vote(3, 4)], more=True, **here)),
        ("n5", Votes(votes=[vote(5, 1)], after=envelope_id(21, 3), **here)),
        ("n1", Votes(votes=[vote(3, 4)], whole=True, **here)),
        ("n1", Votes(idle=True, **here)),
        ("n4", VotesAsk(after=envelope_id(21, 3), **here)),
        ("n2", Close(instances=[envelope_id(21, 3)])),
    ]


def acceptor() -> tuple[Driven, Corpus]:
    host = Driven("n1", lambda: Acceptor("n1"), VIEW)
    accept = Accept(
        instance=ID,
        round=Round(number=1, owner=LIVES["n2"]),
        value=pack_u64(5),
        groups=destinations("a", "b"),
        done=2,
        open=[1],
    )
    host.receive("n2", accept)
    close = Close(instances=[envelope_id(21, 1)], finished=[ClosedRecord(incarnation=21, done=2, open=[0])])
    prepare = Prepare(instance=ID, round=Round(number=2, owner=LIVES["n2"]), groups=destinations("a"))
    return host, [("n2", accept), ("n2", prepare), ("n2", close)]


def proposer() -> tuple[Driven, Corpus]:
    """0 is in phase 2, 1 in phase 1, 2 waits for a value."""
    host = Driven("n1", lambda: Proposer("n1", "scalatom"), VIEW)
    corpus: Corpus = []
    for counter, value in enumerate((pack_u64(5), pack_u64(6), None)):
        instance = envelope_id(21, counter)
        owner = LIVES["n1"] if counter == 0 else LIVES["n2"]
        host.step(Propose, instance, ("a", "b"), (CONFIGURATION, CONFIGURATION), value, owner, 0)
        round_ = Round(number=min(counter, 1), owner=LIVES["n1"])
        other = Round(number=3, owner=LIVES["n2"])
        corpus += [
            ("n2", Promise(instance=instance, round=round_, voted_round=other, voted_value=pack_u64(7))),
            ("n3", Promise(instance=instance, round=round_)),
            ("n4", Promise(instance=instance, round=round_)),
            ("n2", Accepted(instance=instance, round=round_)),
            ("n4", Accepted(instance=instance, round=round_)),
            ("n3", Rejected(instance=instance, promised=other)),
            ("n3", Closed(instance=instance)),
        ]
    return host, corpus


def gateway() -> tuple[Driven, Corpus]:
    host = Driven("g1", lambda: Gateway("g1", ScalatomSubmission), VIEW)
    for peer in ("n1", "n2", "n3", "n4", "n5", "c1"):
        host.connect(peer)

    def request(first: int, **fields: Any) -> PublishRequest:
        defaults = {"producer": b"p", "groups": ["a", "b"], "first_sequence": first, "messages": [Message()] * 2}
        return PublishRequest(**{**defaults, "session": pack_u64(7), **fields})

    host.receive("c1", request(1))
    host.receive("c1", request(3))
    id_ = envelope_id(LIVES["g1"], 0)
    key = pack_u64(9) + id_
    outcome = RangeOutcome(spans=[Span(first_sequence=1, count=2, order_key=key)], last_sequence=2)
    return host, [
        ("c1", request(5, trace=bytes(25))),
        ("c1", request(0, messages=[], open_token=b"token", producer=b"q")),
        ("n1", EnvelopeDecided(id=id_, order_key=key)),
        ("n1", EnvelopeDelivered(id=id_, group="a", order_key=key, outcomes=[outcome])),
        ("n4", EnvelopeDelivered(id=id_, group="b", order_key=key, outcomes=[outcome])),
        ("n1", EnvelopeDurable(id=id_, group="a", configuration=CONFIGURATION)),
        ("n4", EnvelopeDurable(id=id_, group="b")),
    ]


MACHINES: dict[str, Callable[[], tuple[Driven, Corpus]]] = {
    "scalatom": scalatom,
    "copying": copying,
    "starting": starting,
    "started": started,
    "acceptor": acceptor,
    "acceptor starting": acceptor_starting,
    "proposer": proposer,
    "gateway": gateway,
}


# ------------------------------------------------------------------------------------------------------- changing


def changed(message: Any, random: Random) -> bytes:
    if random.random() < 0.2:
        return change_bytes(packets.encode(message), random)
    copy = type(message)()
    copy.CopyFrom(message)
    for _ in range(random.choice([0, 1, 1, 1, 2, 3])):
        change(copy, random)
    if isinstance(copy, LogChunk) or random.random() < 0.8:
        seal(copy, random)
    return packets.encode(copy)


def seal(message: Any, random: Random) -> None:
    """A checksum that is right, so that what was changed is looked at."""
    if isinstance(message, LogChunk):
        message.begins = min(
            message.begins, 2**62
        )  # more is a finding: test_a_log_begins_at_its_end_at_the_latest
        message.checksum = checksum_of(message.entries)
    elif isinstance(message, SnapshotPart) and message.parts == 1:
        snapshot = state()
        change(snapshot, random)
        message.data = snapshot.SerializeToString()
        message.checksum = zlib.crc32(message.data)


def throw(host: Driven, source: str, data: bytes) -> bool:
    """Whether the machine was told of a decision; any exception but a refusal is a finding."""
    try:
        message = packets.decode(data)
    except DecodeError:
        return False
    if type(message) not in host.machine.handles:
        return False
    before = host.machine.buffers()
    try:
        host.receive(source, message)
    except RemoteProtocolError:
        assert host.machine.buffers() == before, f"refused, but not without a trace: {message}"
        return False
    except InvariantBroken:
        if isinstance(message, MAY_CONTRADICT):
            raise Misled from None
        raise
    return isinstance(message, MAY_CONTRADICT)


def throw_at(host: Driven, corpus: Corpus, random: Random) -> None:
    misled = False
    try:
        for _ in range(THROWN):
            source, message = random.choice(corpus)
            if random.random() < 0.2:
                source = random.choice(sorted(LIVES))
            misled = throw(host, source, changed(message, random)) or misled
        host.tick(10.0)
        host.tick(10.0)
        if host.disk:
            host.restart()
    except InvariantBroken:
        if misled:
            raise Misled from None
        raise


@pytest.mark.parametrize("name", MACHINES)
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32))
def test_a_machine_survives_whatever_peers_send(name, seed):
    with suppress(Misled):
        throw_at(*MACHINES[name](), Random(seed))


@pytest.mark.long
@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_survives_a_great_many_of_them(name):
    for seed in range(FUZZED_INPUTS // THROWN):
        with with_an_end(), suppress(Misled):
            throw_at(*MACHINES[name](), Random(f"long {seed}"))


@pytest.mark.parametrize("name", MACHINES)
def test_what_is_changed_for_these_tests_is_valid_before(name):
    for index in range(len(MACHINES[name]()[1])):
        host, corpus = MACHINES[name]()
        host.receive(*corpus[index])


def test_every_type_that_a_machine_handles_is_fuzzed():
    """Who adds a message adds one to a conversation above."""
    fuzzed: dict[type, dict[type, None]] = {}
    handled: dict[type, Sequence[type]] = {}
    for make in MACHINES.values():
        host, corpus = make()
        fuzzed.setdefault(type(host.machine), {}).update({type(message): None for _, message in corpus})
        handled[type(host.machine)] = host.machine.handles
    for machine, kinds in fuzzed.items():
        missing = [kind.__name__ for kind in handled[machine] if kind not in kinds]
        assert not missing, f"{machine.__name__} is never sent {missing}"
