"""A replica whose configuration is over: it stands still, and hands over what it has to those who follow."""

from typing import Any

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import KEY_MIN, last_key_of, pack_u64
from ordercast.core.machine import Advance, Persist, Propose
from ordercast.core.view import OtherConfiguration
from ordercast.protocols.scalatom import records
from ordercast.v1.consensus_pb2 import Decide
from ordercast.v1.scalatom_pb2 import (
    EnvelopeDurable,
    Gossip,
    GossipAsk,
    HandOver,
    HandOverAsk,
    Have,
    HaveAsk,
    RecTs,
)
from ordercast.v1.sequencer_pb2 import FetchLog, LogChunk, SnapshotAsk, SnapshotPart
from tests.unit.driving import (
    delivered,
    destinations,
    edited,
    envelope_of,
    handed,
    next_view,
    sends,
    sent,
    sent_when_durable,
    without_previous,
)
from tests.unit.scalatom_host import GOSSIP_S, SILENCE_S, VIEW, Host, chunk_of, log_entry

#: n6 comes for n3; n6 comes for n1, the process itself.
STAYS = next_view(VIEW, "a", "n1 n2 n6")
LEAVES = next_view(VIEW, "a", "n2 n3 n6")
ASK = HandOverAsk(group="a", configuration=2)


def sealed(view: Any = STAYS, **settings: Any) -> Host:
    """Stamped 1 in a at 0, delivered nothing; and its configuration is over."""
    host = Host(**settings)
    host.take(envelope_of(1, "a", coordinator="n2"))
    host.stamp("n2", envelope_of(1, "a"), 4)
    host.change(view)
    return host


def hand_over(host: Host, source: str = "n6", **fields: Any) -> HandOver:
    """What it tells somebody who asks."""
    ask = HandOverAsk(**{"group": "a", "configuration": host.groups["a"].configuration, **fields})
    effects = host.receive(source, ask)
    assert sent(effects, HandOver) == [], "only behind everything that is still on its way to the disk"
    ((to, told),) = sent_when_durable(effects, HandOver)
    assert to == [source]
    return told


# ---------------------------------------------------------------------------------------------------- stands still


@pytest.mark.parametrize("view", [STAYS, LEAVES], ids=["stays", "leaves"])
def test_a_group_that_changes_its_configuration_stops_nothing_else(view):
    host = sealed(view)
    envelope = envelope_of(2, "b")
    assert [id_ for _, _, id_ in delivered(host.order(envelope, 9))] == [envelope.header.id]


def test_nothing_is_stamped_in_a_configuration_that_is_over():
    host = sealed()
    effects = host.take(envelope_of(2, "a"))
    assert sent(effects, RecTs) == []
    assert not [key for e in effects if isinstance(e, Persist) for key, _ in e.records], "nothing to remember"
    assert host.machine.buffers()["held"] == 2, "but it is kept for the next one"


def test_other_groups_of_the_envelope_stamp_it_without_the_one_that_is_sealed():
    ((_, stamp),) = sends(sealed().take(envelope_of(2, "a", "b", coordinator="n2")), RecTs)[:1]
    assert [d.group for d in stamp.groups] == ["b"]


def test_an_envelope_is_refused_where_the_process_is_a_member_no_more():
    host = sealed(LEAVES)
    with pytest.raises(OtherConfiguration):
        host.take(envelope_of(2, "a", coordinator="n2"))
    assert host.machine.buffers()["held"] == 1


def test_its_clock_stands_still():
    host = sealed()
    before = hand_over(host).clock
    host.receive("n2", Decide(instance=envelope_of(1, "a").header.id, value=pack_u64(70)))
    host.take(envelope_of(2, "a", "b", session=90))
    host.step(Advance, "a", last_key_of(99))
    assert hand_over(host).clock == before == 1


def test_a_log_that_it_catches_up_with_does_not_raise_its_clock():
    host = sealed()
    effects = host.receive("n2", chunk_of(log_entry(40, envelope_of(0, "a")), configuration=2))
    assert delivered(effects) == [("a", 0, envelope_of(0).header.id)]
    assert (hand_over(host).clock, hand_over(host).position) == (1, 1)


def test_it_gossips_no_more():
    host = sealed()
    effects = host.connect("n2") + host.connect("n3") + host.tick(GOSSIP_S) + host.tick(GOSSIP_S)
    assert {gossip.group for gossip in sent(effects, Gossip)} == {"b"}


def test_its_stamps_are_said_no_more():
    host = sealed()
    effects = host.connect("n2") + host.tick(SILENCE_S) + host.tick(10.0)
    effects += host.receive("n2", RecTs(id=envelope_of(1).header.id, rec_ts=9, groups=two("a"), ask=True))
    assert sent(effects, RecTs) == []


def test_it_delivers_no_more_of_itself():
    """A majority in the next configuration may know of something that comes first."""
    host, envelope = Host(), envelope_of(1, "a")
    host.take(envelope)
    host.change(STAYS)
    assert delivered(host.decide(envelope, 9)) == []
    with pytest.raises(OtherConfiguration):
        host.receive("n2", Gossip(group="a", configuration=1, clock=20, forgotten=KEY_MIN))
    assert delivered(host.tick(GOSSIP_S)) == []


def test_nor_does_it_when_the_log_brings_what_its_queue_waited_for():
    host, envelope, before = Host(), envelope_of(1, "a"), envelope_of(0, "a")
    host.take(envelope)
    host.gossip("n2", 20, (3, before))
    assert delivered(host.decide(envelope, 9)) == []
    host.change(STAYS)
    effects = host.receive("n2", chunk_of(log_entry(5, before), configuration=2))
    assert delivered(effects) == [("a", 0, before.header.id)]


def two(*groups: str) -> Any:
    return destinations(*groups, configuration=2)


@pytest.mark.parametrize(
    "message",
    [
        Gossip(group="a", configuration=1, clock=20, forgotten=KEY_MIN),
        GossipAsk(group="a", configuration=1),
        RecTs(id=envelope_of(1).header.id, rec_ts=3, groups=destinations("a")),
        FetchLog(group="a", configuration=1),
        LogChunk(group="a", configuration=1),
        SnapshotAsk(group="a", configuration=1),
        SnapshotPart(group="a", configuration=1, parts=1),
        HandOverAsk(group="a", configuration=1),
        HandOver(group="a", configuration=1),
        HandOverAsk(group="a", configuration=3),
        HandOver(group="a", configuration=3),
        Gossip(group="a", configuration=2, clock=20, forgotten=KEY_MIN),
        GossipAsk(group="a", configuration=2),
    ],
    ids=lambda message: f"{type(message).__name__} {getattr(message, 'configuration', 1)}",
)
def test_what_another_configuration_says_is_not_understood_and_nobodys_mistake(message):
    """Nor what the new one says about histories, before this replica has started in it."""
    host = sealed()
    before, disk = host.machine.buffers(), dict(host.disk)
    with pytest.raises(OtherConfiguration) as refused:
        host.receive("n2", message)
    assert refused.value.group == "a"
    assert (host.machine.buffers(), host.disk) == (before, disk)


def test_what_the_next_configuration_says_is_not_understood_before_the_view_has_it():
    host = Host()
    for message in (
        Gossip(group="a", configuration=2, clock=20, forgotten=KEY_MIN),
        RecTs(id=envelope_of(1).header.id, rec_ts=3, groups=two("a")),
        HandOverAsk(group="a", configuration=2),
    ):
        with pytest.raises(OtherConfiguration):
            host.receive("n2", message)


def test_of_a_stamp_for_several_groups_those_count_that_are_in_our_configuration():
    view = next_view(VIEW, "b", "n1 n2 n5")
    host, envelope = Host(view=next_view(view, "a", "n1 n2 n3")), envelope_of(1, "a", "b", coordinator="n2")
    stamp = RecTs(id=envelope.header.id, rec_ts=3, groups=[*destinations("a"), *two("b")])
    host.receive("n2", stamp)
    assert {name: dict(stamps) for name, stamps in host.machine.held[envelope.header.id].stamps.items()} == {
        "b": {"n2": 3}
    }


def test_stamps_from_before_count_no_more():
    host, envelope = Host(), envelope_of(1, "a", "b")
    host.take(envelope)
    for peer in ("n2", "n4"):
        host.stamp(peer, envelope, 5)
    host.change(STAYS)
    assert handed(host.stamp("n5", envelope, 6), Propose) == [], "a majority of b, and nobody of a"
    held = host.machine.held[envelope.header.id]
    assert {name: sorted(stamps) for name, stamps in held.stamps.items()} == {"b": ["n1", "n4", "n5"]}


def test_it_is_sealed_for_good_also_after_a_restart():
    host = sealed()
    host.restart()
    assert sent(host.take(envelope_of(2, "a")), RecTs) == []
    assert {gossip.group for gossip in sent(host.connect("n2") + host.tick(GOSSIP_S), Gossip)} <= {"b"}
    (told,) = hand_over(host).envelopes
    assert (told.envelope.header.id, told.rec_ts, told.entry) == (envelope_of(1).header.id, 0, 0)
    assert hand_over(host).clock >= 1, "from its reservation"


def test_majorities_that_have_a_delivery_on_disk_are_counted_within_one_configuration():
    host, envelope = Host(), envelope_of(1, "a")
    host.connect("g1", 21)
    host.order(envelope, 9)
    host.connect("g1", 121)
    host.receive("n2", Have(id=envelope.header.id, groups=destinations("a")))
    host.change(next_view(VIEW, "a", "n1 n2 n3"))
    host.receive("n3", Have(id=envelope.header.id, groups=two("a")))
    host.receive("n1", Have(id=envelope.header.id, groups=destinations("a")))
    assert host.machine.buffers()["buried"] == 0, "n2 and n1 said so of the one before"
    host.receive("n2", Have(id=envelope.header.id, groups=two("a")))
    assert host.machine.buffers()["buried"] == 1


def test_who_has_not_started_does_not_say_that_a_delivery_is_durable_in_that_configuration():
    """Finished by {n2, n1}, of which n1 never starts. In the third, {n1, n6} are sealed: n6 has it open, n1 says
    that it was idle, acceptors that it is closed, and n2 is down. Nobody can say where it belongs."""
    host, envelope = sealed(), envelope_of(0, "a")
    effects = host.receive("n2", chunk_of(log_entry(4, envelope), configuration=2))
    said = [durable for _, durable in sent_when_durable(effects, EnvelopeDurable)]
    effects = host.receive("n2", HaveAsk(id=envelope.header.id))
    said += [d for _, have in sent_when_durable(effects, Have) for d in have.groups]
    assert [one.configuration for one in said if one.configuration == 2] == []


# ------------------------------------------------------------------------------------------------------ hands over


def test_what_it_hands_over_is_its_clock_its_log_and_what_is_open():
    host = Host()
    host.order(envelope_of(0, "a"), 5)
    open_, decided, elsewhere = envelope_of(1, "a"), envelope_of(2, "a", "b"), envelope_of(3, "b")
    for envelope in (open_, decided, elsewhere):
        host.take(envelope)
    host.told("n2", decided, 30)
    host.gossip("n2", 9, (7, envelope_of(4, "a")))
    host.change(STAYS)
    told = hand_over(host)
    assert (told.clock, told.position, told.after, told.more) == (31, 1, b"", False)
    assert (told.whole, told.idle) == (False, False)
    one, two_ = told.envelopes
    assert (one.envelope, one.rec_ts, one.entry, one.HasField("sn")) == (open_, 6, 6, False)
    assert (two_.envelope, two_.rec_ts, two_.entry, two_.sn) == (decided, 7, 7, 30)


@pytest.mark.parametrize("view", [STAYS, LEAVES], ids=["stays", "leaves"])
def test_every_member_of_the_next_configuration_is_told_and_nobody_else(view):
    host = sealed(view)
    for name in host.groups["a"].replicas:
        assert hand_over(host, name).clock == 1
    for name in {"n1", "n3", "n4", "g1"} - set(host.groups["a"].replicas):
        with pytest.raises(RemoteProtocolError):
            host.receive(name, ASK)


def test_who_was_never_in_the_configuration_before_has_nothing_to_hand_over():
    for host in (Host("n6", view=STAYS), Host("n4", view=STAYS)):
        assert host.receive("n2", ASK) == []


def test_much_is_handed_over_in_parts_by_rising_id():
    host = Host(hand_over=2)
    for counter in (5, 1, 4, 2, 3):
        host.take(envelope_of(counter, "a"))
    host.change(STAYS)
    parts = [hand_over(host)]
    while parts[-1].more:
        parts.append(hand_over(host, after=parts[-1].envelopes[-1].envelope.header.id))
    ids = [[handed_.envelope.header.id[-1] for handed_ in part.envelopes] for part in parts]
    assert ids == [[1, 2], [3, 4], [5]]
    assert [part.after[-1:] for part in parts] == [b"", b"\2", b"\4"]
    assert {(part.clock, part.position) for part in parts} == {(5, 0)}


@pytest.mark.parametrize(("bytes_max", "count"), [(1, 1), (100, 2), (1 << 20, 4)])
def test_a_part_has_few_bytes_but_one_envelope_at_least(bytes_max, count):
    host = Host(log_chunk_bytes=bytes_max)
    for counter in range(4):
        host.take(envelope_of(counter, "a"))
    host.change(STAYS)
    told = hand_over(host)
    assert len(told.envelopes) == count
    assert told.more == (count < 4)


def test_a_part_from_behind_the_end_is_empty_and_the_last():
    told = hand_over(sealed(), after=b"\xff" * 16)
    assert (list(told.envelopes), told.more) == ([], False)


def test_what_it_delivers_by_the_log_meanwhile_is_in_its_position_instead():
    host = sealed()
    host.receive("n2", chunk_of(log_entry(4, envelope_of(1, "a")), configuration=2))
    told = hand_over(host)
    assert (list(told.envelopes), told.position) == ([], 1)


def test_who_never_started_in_the_configuration_before_says_so():
    """n2 slept through the second one, of which it was a member."""
    second = without_previous(next_view(VIEW, "a", "n1 n2 n6"), "a", "n2")
    host = Host("n2")
    host.take(envelope_of(1, "a"))
    host.change(next_view(second, "a", "n1 n2 n7"))
    told = hand_over(host, "n7", configuration=3)
    assert (told.idle, told.clock, list(told.envelopes)) == (True, 0, [])


LOST = edited(VIEW, "a", lost="n1")


@pytest.mark.parametrize("is_wiped", [False, True])
def test_who_lost_its_disk_hands_nothing_over(is_wiped):
    """What it had stamped and said is forgotten: it must not count as having stamped nothing."""
    host = Host()
    host.take(envelope_of(1, "a"))
    host.change(LOST)
    assert sent(host.take(envelope_of(2, "b")), RecTs), "only the group is lost"
    host.change(next_view(LOST, "a", "n1 n2 n6"))
    if is_wiped:
        host.disk.clear()
        host.restart()
    assert host.receive("n6", ASK) == []


def test_who_loses_its_disk_after_it_was_sealed_hands_nothing_over():
    lost = edited(STAYS, "a", lost="n1", starting="n2 n6")
    lost.groups[0].previous.lost.append("n1")
    host = sealed()
    host.change(lost)
    assert host.receive("n6", ASK) == []
    host.disk.clear()
    host.restart()
    assert host.receive("n6", ASK) == []


def test_who_leaves_and_lost_its_disk_since_hands_nothing_over():
    lost = edited(LEAVES, "a")
    lost.groups[0].previous.lost.append("n1")
    for restarts in (False, True):
        host = sealed(LEAVES)
        host.change(lost)
        if restarts:
            host.restart()
        assert host.receive("n6", ASK) == []


# ------------------------------------------------------------------------------------------------------- is gone


def of_group(host: Host, name: str) -> list[bytes]:
    return [key for key in host.disk if key[:1] in records.OF_GROUPS and records.group_of(key) == name]


@pytest.mark.parametrize("restarts", [False, True])
def test_who_leaves_keeps_what_it_has_until_a_majority_has_started_and_then_nothing(restarts):
    host = Host()
    host.order(envelope_of(0, "a"), 5)
    host.take(envelope_of(1, "a"))
    both = envelope_of(2, "a", "b")
    host.take(both)
    host.change(LEAVES)
    assert of_group(host, "a")
    assert len(hand_over(host).envelopes) == 2
    if restarts:
        host.view = without_previous(LEAVES, "a", "n6")
        host.restart()
    else:
        host.change(without_previous(LEAVES, "a", "n6"))
    assert of_group(host, "a") == []
    assert list(host.machine.replicas) == ["b"]
    assert [key for key in host.disk if key[:1] == records.STAMPED] == [records.stamped(both.header.id)]
    assert host.receive("n6", ASK) == []
    with pytest.raises(OtherConfiguration):
        host.receive("n6", FetchLog(group="a", configuration=2))


def test_an_envelope_for_another_group_too_is_ordered_there_after_the_process_left():
    host, envelope = Host(), envelope_of(2, "a", "b", coordinator="n2")
    host.take(envelope)
    host.change(LEAVES)
    host.change(without_previous(LEAVES, "a"))
    assert delivered(host.told("n4", envelope, 9) + host.gossip("n4", 10)) == [("b", 0, envelope.header.id)]
