"""What peers must not send: it is refused and counted, and the machine is as if nothing had arrived."""

from collections.abc import Callable
from typing import Any

import pytest

from ordercast.core import packets
from ordercast.core.errors import InvariantBroken, RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, KEY_MIN, last_key_of, order_key, pack_u64
from ordercast.core.machine import Advance, Propose
from ordercast.protocols.paxos.acceptor import Acceptor
from ordercast.protocols.paxos.proposer import Proposer
from ordercast.protocols.scalatom.machine import Scalatom
from ordercast.sim.process import Process
from ordercast.sim.world import World
from ordercast.v1.common_pb2 import Envelope, Incarnation
from ordercast.v1.consensus_pb2 import Accept, Decide, Prepare, Rejected, Round
from ordercast.v1.gateway_pb2 import PublishRequest
from ordercast.v1.scalatom_pb2 import (
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
from ordercast.v1.sequencer_pb2 import Disseminate, FetchLog, LogChunk, LogEntry, SnapshotAsk, SnapshotPart
from tests.unit.driving import CONFIGURATION, LIVES, Driven, delivered, destinations, envelope_of, key_of, range_of
from tests.unit.scalatom_host import VIEW, Host, chunk_of, log_entry

#: Stamped here, and not decided; and one that nobody knows.
KNOWN, NEW = envelope_of(3, "a"), envelope_of(4, "a", "b")
ID = NEW.header.id
#: More than any clock: it would raise everyone's without end.
TOO_HIGH = CLOCK_MAX + 1


def host_at_work() -> Host:
    """Delivered 0 and 1 in a, of which 0 is finished, and holds KNOWN."""
    host = Host()
    host.order(envelope_of(0, "a"), 5)
    host.order(envelope_of(1, "a", done=1), 9)
    host.take(KNOWN)
    host.stamp("n2", KNOWN, 3)
    return host


def refuses(message: Any, source: str = "n2", *, or_stops: bool = False) -> None:
    """Where the peer contradicts what is known here, the process may stop instead: somebody is wrong."""
    host = host_at_work()
    before, clock, disk = host.machine.buffers(), host.machine.clock, dict(host.disk)
    with pytest.raises((RemoteProtocolError, InvariantBroken) if or_stops else RemoteProtocolError) as raised:
        host.receive(source, message)
    if raised.errisinstance(InvariantBroken):
        return
    assert host.machine.buffers() == before
    assert host.machine.clock == clock
    assert host.disk == disk
    effects = host.order(NEW, 30)
    assert [id_ for group, _, id_ in delivered(effects) if group == "b"] == [ID], "and it goes on"


# ---------------------------------------------------------------------------------------------------- envelopes


def with_header(**fields: Any) -> Envelope:
    envelope = Envelope()
    envelope.CopyFrom(NEW)
    for name, value in fields.items():
        envelope.header.ClearField(name)
        if isinstance(value, list):
            getattr(envelope.header, name).extend(value)
        elif isinstance(value, Incarnation):
            getattr(envelope.header, name).CopyFrom(value)
        else:
            setattr(envelope.header, name, value)
    return envelope


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"destinations": []}, id="no destination"),
        pytest.param({"destinations": destinations("a", "x")}, id="an unknown group"),
        pytest.param({"destinations": destinations("b", "a")}, id="unsorted"),
        pytest.param({"destinations": destinations("a", "a")}, id="a group twice"),
        pytest.param(
            {"destinations": destinations("a", configuration=CONFIGURATION + 1)}, id="a configuration to come"
        ),
        pytest.param({"destinations": destinations("c")}, id="a group that is not here"),
        pytest.param({"id": b""}, id="no id"),
        pytest.param({"id": ID[:15]}, id="a short id"),
        pytest.param({"id": ID + b"\0"}, id="a long id"),
        pytest.param({"ranges": []}, id="no producer"),
        pytest.param({"session": b"1234567"}, id="a short session"),
        pytest.param({"session": b"123456789"}, id="a long session"),
        pytest.param({"session": pack_u64(TOO_HIGH)}, id="a session beyond all clocks"),
        pytest.param({"coordinator": Incarnation()}, id="no coordinator"),
        pytest.param({"coordinator": Incarnation(process="n6", number=6)}, id="a coordinator of another group"),
    ],
)
def test_an_envelope_that_no_gateway_of_ours_would_send_is_refused(wrong):
    refuses(Disseminate(envelope=with_header(**wrong)), "g1")


@pytest.mark.parametrize("wrong", [{"done": 5}, {"done": 2**63}], ids=["itself", "all to come"])
def test_an_envelope_that_calls_itself_or_later_ones_finished_is_refused(wrong):
    """Its delivery would make every later envelope of that gateway count as delivered: they would be lost."""
    refuses(Disseminate(envelope=with_header(**wrong)), "g1")


# ------------------------------------------------------------------------------------------- stamps and decisions


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        pytest.param("n6", {}, id="from a process that is no replica of the group"),
        pytest.param("g1", {}, id="from a gateway"),
        pytest.param("n2", {"groups": destinations("a", "b")}, id="for a group that is not the sender's"),
        pytest.param("n2", {"groups": []}, id="for no group"),
        pytest.param("n2", {"groups": destinations("x")}, id="for an unknown group"),
        pytest.param("n2", {"groups": destinations("a", configuration=5)}, id="in another configuration"),
        pytest.param(
            "n4",
            {"id": KNOWN.header.id, "groups": destinations("b")},
            id="on an envelope that is not for the sender",
        ),
    ],
)
def test_a_stamp_by_somebody_who_may_not_give_it_is_refused(source, fields):
    refuses(RecTs(**{"id": ID, "rec_ts": 3, "groups": destinations("a"), **fields}), source)


@pytest.mark.parametrize("id_", [b"", ID[:15], ID + b"\0"])
def test_a_stamp_on_something_that_is_no_envelope_id_is_refused(id_):
    refuses(RecTs(id=id_, rec_ts=3, groups=destinations("a")))


@pytest.mark.parametrize("rec_ts", [TOO_HIGH, 2**64 - 1])
def test_a_stamp_beyond_all_clocks_is_refused(rec_ts):
    refuses(RecTs(id=ID, rec_ts=rec_ts, groups=destinations("a")))


@pytest.mark.parametrize(
    "wrong",
    [{"instance": b""}, {"instance": ID + b"\0"}, {"value": b""}, {"value": b"1234567"}, {"value": b"123456789"}],
)
def test_a_decision_that_is_none_is_refused(wrong):
    refuses(Decide(**{"instance": ID, "value": pack_u64(12), **wrong}))


@pytest.mark.parametrize("sn", [TOO_HIGH, 2**64 - 1])
def test_a_decision_beyond_all_clocks_is_refused(sn):
    refuses(Decide(instance=ID, value=pack_u64(sn)))


def test_a_decision_that_contradicts_a_known_one_stops_the_process():
    host = host_at_work()
    host.told("n2", KNOWN, 12)
    with pytest.raises(InvariantBroken):
        host.told("n3", KNOWN, 13)


# ------------------------------------------------------------------------------------------------------- gossip


def gossip(**fields: Any) -> Gossip:
    defaults = {"group": "a", "configuration": CONFIGURATION, "base": 10, "clock": 20, "forgotten": KEY_MIN}
    return Gossip(**{**defaults, **fields})


def entry(rec_ts: int, id_: bytes = ID) -> list[HistoryEntry]:
    return [HistoryEntry(id=id_, rec_ts=rec_ts)]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"base": 21}, id="a clock below its base"),
        pytest.param({"entries": entry(9)}, id="an entry below its base"),
        pytest.param({"entries": entry(20)}, id="an entry at its clock"),
        pytest.param({"entries": [*entry(12), *entry(40)]}, id="an entry above its clock"),
    ],
)
def test_a_statement_about_other_entries_than_it_names_is_refused(wrong):
    refuses(gossip(**wrong))


@pytest.mark.parametrize("id_", [b"", ID[:15], ID + b"\0"])
def test_a_statement_about_something_that_is_no_envelope_id_is_refused(id_):
    refuses(gossip(entries=[*entry(12), *entry(13, id_)]))


@pytest.mark.parametrize("key", [b"\xff", last_key_of(3) + b"\0", order_key(TOO_HIGH, ID)])
def test_a_statement_whose_forgotten_key_is_none_is_refused(key):
    refuses(gossip(forgotten=key))


@pytest.mark.parametrize("advance", [TOO_HIGH, 2**64 - 1])
def test_a_statement_that_asks_for_an_advance_beyond_all_clocks_is_refused(advance):
    refuses(gossip(advance=advance))


GROUP_MESSAGES: list[Callable[..., Any]] = [
    gossip,
    lambda **fields: GossipAsk(**{"group": "a", "configuration": CONFIGURATION, **fields}),
    lambda **fields: FetchLog(**{"group": "a", "configuration": CONFIGURATION, **fields}),
    lambda **fields: LogChunk(**{"group": "a", "configuration": CONFIGURATION, **fields}),
    lambda **fields: SnapshotAsk(**{"group": "a", "configuration": CONFIGURATION, **fields}),
    lambda **fields: SnapshotPart(
        **{"group": "a", "configuration": CONFIGURATION, "token": 1, "parts": 1, **fields}
    ),
]


@pytest.mark.parametrize(
    "make",
    GROUP_MESSAGES,
    ids=["gossip", "gossip ask", "fetch", "chunk", "snapshot ask", "snapshot part"],
)
@pytest.mark.parametrize(
    ("source", "fields"),
    [
        pytest.param("n2", {"group": "x"}, id="of an unknown group"),
        pytest.param("n6", {"group": "c"}, id="of a group that is not here"),
        pytest.param("n2", {"configuration": CONFIGURATION - 1}, id="in another configuration"),
        pytest.param("n4", {}, id="from a replica of another group"),
        pytest.param("g1", {}, id="from a gateway"),
    ],
)
def test_what_only_replicas_of_a_group_say_to_each_other_is_refused_from_others(make, source, fields):
    refuses(make(**fields), source)


@pytest.mark.parametrize("make", GROUP_MESSAGES[:2], ids=["gossip", "gossip ask"])
def test_what_a_replica_says_to_its_peers_is_refused_from_itself(make):
    refuses(make(), "n1")


# ------------------------------------------------------------------------------------------------------- hand-over


@pytest.mark.parametrize("make", [HandOverAsk, HandOver])
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"group": "x"}, id="of an unknown group"),
        pytest.param({"configuration": CONFIGURATION + 1}, id="in a configuration to come"),
        pytest.param({"configuration": 0}, id="in no configuration"),
    ],
)
def test_a_hand_over_that_our_view_knows_nothing_of_is_refused(make, fields):
    refuses(make(**{"group": "a", "configuration": CONFIGURATION, **fields}))


@pytest.mark.parametrize("source", ["n4", "g1"])
def test_who_is_no_replica_of_the_group_is_handed_nothing(source):
    refuses(HandOverAsk(group="a", configuration=CONFIGURATION), source)


# ------------------------------------------------------------------------------------------------------------ logs


def late_entry(counter: int, sn: int, *groups: str, **fields: Any) -> LogEntry:
    return log_entry(sn, envelope_of(counter, *(groups or ("a",)), ranges=[range_of(b"late")]), **fields)


def chunk(*entries: LogEntry, **fields: Any) -> LogChunk:
    """What follows on the two envelopes that the host has delivered."""
    return chunk_of(*entries, position=2, **fields)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(late_entry(7, 12, "b"), id="an envelope for another group"),
        pytest.param(late_entry(7, 12, "x"), id="an envelope for an unknown group"),
        pytest.param(late_entry(7, 12, "b", "a"), id="unsorted groups"),
        pytest.param(late_entry(7, 12, order_key=b"short"), id="no order key"),
        pytest.param(LogEntry(order_key=key_of(12, NEW)), id="no envelope"),
    ],
)
def test_an_entry_that_cannot_be_in_the_log_is_refused(wrong):
    refuses(chunk(wrong))


def test_a_chunk_with_one_bad_entry_delivers_none():
    """The effects of a step that raises are lost: the log would have a hole where memory has an envelope."""
    refuses(chunk(late_entry(6, 12), late_entry(7, 13, order_key=b"short")))


def test_an_entry_whose_key_is_that_of_another_envelope_is_refused():
    refuses(chunk(late_entry(6, 12, order_key=key_of(12, envelope_of(7)))))


def test_an_entry_beyond_all_clocks_is_refused():
    refuses(chunk(late_entry(6, TOO_HIGH)))


def test_an_entry_that_was_delivered_before_is_refused():
    """0 is finished, so that only its counter is known."""
    refuses(chunk(late_entry(0, 12)), or_stops=True)


@pytest.mark.parametrize("checksum", [0, 1, 2**32 - 1])
def test_a_piece_of_a_log_that_was_damaged_on_the_way_is_refused(checksum):
    refuses(chunk(late_entry(6, 12), checksum=checksum))


def test_a_snapshot_has_no_more_parts_than_it_has():
    refuses(SnapshotAsk(group="a", configuration=CONFIGURATION, token=(LIVES["n1"] << 24) + 1, part=1))


# ----------------------------------------------------------------------------------------------- ids in questions


@pytest.mark.parametrize("make", [Pull, Have, HaveAsk])
@pytest.mark.parametrize("id_", [b"", ID[:15], ID + b"\0"])
def test_a_question_about_something_that_is_no_envelope_id_is_refused(make, id_):
    refuses(make(id=id_))


@pytest.mark.parametrize("group", ["c", "x"])
def test_an_advance_of_a_group_that_is_not_here_changes_nothing(group):
    host = Host()
    assert host.step(Advance, group, last_key_of(5)) == []
    assert host.next_stamp() == 0


@pytest.mark.parametrize("key", [b"", b"\x01", b"\x01" * 25, last_key_of(TOO_HIGH)])
def test_an_advance_to_something_that_is_no_order_key_is_a_bug_of_ours(key):
    host = Host()
    with pytest.raises(InvariantBroken):
        host.step(Advance, "a", key)
    assert host.next_stamp() == 0


# ------------------------------------------------------------------------------------------------------- rounds


@pytest.mark.parametrize("make", [Prepare, Accept])
def test_a_round_that_nobody_could_outbid_is_refused(make):
    acceptor = Driven("n1", lambda: Acceptor("n1"), VIEW)
    last = Round(number=2**64 - 1, owner=LIVES["n2"])
    with pytest.raises(RemoteProtocolError):
        acceptor.receive("n2", make(instance=ID, round=last, groups=destinations("a")))
    assert acceptor.machine.buffers() == {"instances": 0, "done": 0, "buried": 0}


def test_a_rejection_by_a_round_that_nobody_could_outbid_is_refused():
    proposer = Driven("n1", lambda: Proposer("n1", "scalatom"), VIEW)
    proposer.step(Propose, ID, ("a",), (CONFIGURATION,), pack_u64(5), LIVES["n1"], 0)
    with pytest.raises(RemoteProtocolError):
        proposer.receive("n2", Rejected(instance=ID, promised=Round(number=2**64 - 1, owner=LIVES["n2"])))
    proposer.tick(10.0)


# --------------------------------------------------------------------------------------------- through the process


def process_at_work() -> tuple[World, Process]:
    world = World(1)
    world.view = VIEW
    process = world.add(
        "n1",
        {
            "scalatom": lambda: Scalatom("n1"),
            "proposer": lambda: Proposer("n1", "scalatom"),
            "acceptor": lambda: Acceptor("n1"),
        },
    )
    process.start()
    process.channel_reset("n2", LIVES["n2"])
    process.arrived("n2", packets.frame("sim", [packets.encode(Disseminate(envelope=KNOWN))]))
    assert world.refusals == []
    return world, process


GOOD = packets.encode(Disseminate(envelope=NEW))


@pytest.mark.parametrize(
    "packet",
    [
        pytest.param(b"\xff\xff\xff", id="no packet"),
        pytest.param(GOOD[:-1], id="cut off"),
        pytest.param(b"", id="empty"),
        pytest.param(b"\xfa\x3f\x01x", id="of a kind that is not known here"),
        pytest.param(packets.encode(PublishRequest(producer=b"p")), id="for a machine that is not here"),
        pytest.param(packets.encode(Disseminate()), id="an empty envelope"),
        pytest.param(packets.encode(Rejected(instance=ID)) + b"\x08", id="with a field cut off"),
        pytest.param(GOOD.replace(b"n1", b"\xff\xfe"), id="with a name that is no text"),
    ],
)
def test_a_bad_packet_is_counted_and_what_comes_with_it_is_taken(packet):
    world, process = process_at_work()
    before = {role: slot.machine.buffers() for role, slot in process.slots.items()}
    process.arrived("n2", packets.frame("sim", [packet]))
    assert len(world.refusals) == 1
    assert {role: slot.machine.buffers() for role, slot in process.slots.items()} == before
    process.arrived("n2", packets.frame("sim", [packet, GOOD]))
    assert len(world.refusals) == 2
    assert process.slots["scalatom"].machine.buffers()["held"] == before["scalatom"]["held"] + 1


def test_what_comes_over_no_channel_is_not_looked_at():
    world, process = process_at_work()
    before = process.slots["scalatom"].machine.buffers()
    process.arrived("n3", packets.frame("sim", [GOOD]))
    assert process.slots["scalatom"].machine.buffers() == before
    assert world.refusals == []
