"""Groups that come and go while a replica works: views that grow and shrink, and what names a group they lack."""

import pytest

from ordercast.core.errors import InvariantBroken, RemoteProtocolError
from ordercast.core.ids import KEY_MIN, pack_u64
from ordercast.core.machine import Decided, Ended, GroupsClosed, LogRead, Propose, Retired, ViewChanged
from ordercast.core.view import UnknownGroup
from ordercast.protocols.scalatom import records
from ordercast.v1.scalatom_pb2 import Gossip, GossipAsk, HandOver, HandOverAsk, Have, HaveAsk, Pull, RecTs
from ordercast.v1.sequencer_pb2 import Disseminate, FetchLog, SnapshotAsk, SnapshotPart
from tests.unit.driving import (
    CONFIGURATION,
    LIVES,
    delivered,
    destinations,
    edited,
    envelope_of,
    handed,
    next_view,
    sends,
    sent,
    sent_when_durable,
    view_of,
    without_previous,
)
from tests.unit.scalatom_host import (
    GOSSIP_S,
    GROUPS,
    SILENCE_S,
    VIEW,
    Host,
    chunk_of,
    log_entry,
    snapshot_of,
)

WITH_D = view_of({**GROUPS, "d": "n1 n2 n6"})
WITHOUT_B = view_of({name: replicas for name, replicas in GROUPS.items() if name != "b"})


def of_group(host: Host, name: str) -> list[bytes]:
    return [key for key in host.disk if key[:1] in records.OF_GROUPS and records.group_of(key) == name]


# ------------------------------------------------------------------------------------------------------ coming


@pytest.mark.parametrize(
    "message",
    [
        Disseminate(envelope=envelope_of(1, "a", "d")),
        RecTs(id=envelope_of(1, "d").header.id, rec_ts=3, groups=destinations("a", "d")),
        Gossip(group="d", configuration=CONFIGURATION, clock=4, forgotten=KEY_MIN),
        GossipAsk(group="d", configuration=CONFIGURATION),
        FetchLog(group="d", configuration=CONFIGURATION),
        chunk_of(log_entry(4, envelope_of(1, "d")), group="d"),
        SnapshotAsk(group="d", configuration=CONFIGURATION),
        SnapshotPart(group="d", configuration=CONFIGURATION, token=1, parts=1),
        HandOverAsk(group="d", configuration=CONFIGURATION),
        HandOver(group="d", configuration=CONFIGURATION),
    ],
    ids=lambda message: type(message).__name__,
)
def test_what_is_for_a_group_that_the_view_lacks_is_refused_by_its_name(message):
    host = Host()
    with pytest.raises(UnknownGroup) as refused:
        host.receive("n2", message)
    assert refused.value.group == "d"
    assert host.machine.buffers()["held"] == 0


def test_a_group_that_is_in_the_view_but_not_here_is_a_mistake():
    with pytest.raises(RemoteProtocolError) as refused:
        Host().receive("n6", Gossip(group="c", configuration=CONFIGURATION, clock=4, forgotten=KEY_MIN))
    assert not isinstance(refused.value, UnknownGroup)


def test_a_group_that_a_later_view_brings_is_ordered_from_then_on():
    host = Host()
    host.order(envelope_of(0, "a"), 5)
    host.change(WITH_D)
    envelope = envelope_of(1, "d")
    host.take(envelope)
    host.stamp("n2", envelope_of(0, "a"), 6)
    host.decide(envelope, 9)
    effects = host.receive("n2", Gossip(group="d", configuration=CONFIGURATION, clock=10, forgotten=KEY_MIN))
    assert delivered(effects) == [("d", 0, envelope.header.id)]


def test_gossip_that_came_before_the_view_is_asked_for_again():
    host = Host()
    gossip = Gossip(group="d", configuration=CONFIGURATION, base=7, clock=9, forgotten=KEY_MIN)
    with pytest.raises(UnknownGroup):
        host.receive("n2", gossip)
    host.change(WITH_D)
    (ask,) = sent(host.receive("n2", gossip), GossipAsk)
    assert (ask.group, ask.base) == ("d", 0)


def test_a_replica_of_a_new_group_knows_what_is_retired():
    host = Host()
    host.step(Retired, LIVES["g1"] + 1)
    host.change(WITH_D)
    assert sent(host.take(envelope_of(1, "d")), RecTs) == []
    assert host.machine.buffers()["held"] == 0
    assert snapshot_of(host, "d", "n2").retired == LIVES["g1"] + 1


def test_a_group_that_goes_back_to_an_earlier_configuration_stops_the_process():
    host = Host()
    later = next_view(VIEW, "a", "n1 n2 n6")
    host.change(later)
    earlier = edited(VIEW, "b", learners="")
    earlier.number = later.number + 1
    with pytest.raises(InvariantBroken):
        host.step(ViewChanged, earlier)


def test_a_view_older_than_the_last_one_stops_the_process_also_after_a_restart():
    """Otherwise a process that restarts at a membership node which is behind would delete what others count on."""
    newer = view_of({**GROUPS, "d": "n1 n2 n6"})
    newer.number = 7
    host = Host()
    host.change(newer)
    with pytest.raises(InvariantBroken):
        host.step(ViewChanged, VIEW)
    host.view = VIEW
    with pytest.raises(InvariantBroken):
        host.restart()


# ------------------------------------------------------------------------------------------- logs that name others


def test_a_log_entry_may_name_groups_that_the_view_lacks():
    host = Host()
    envelope = envelope_of(1, "a", "x", coordinator="n7")
    assert delivered(host.receive("n2", chunk_of(log_entry(12, envelope)))) == [("a", 0, envelope.header.id)]
    later = envelope_of(2, "a")
    assert [id_ for _, _, id_ in delivered(host.order(later, 20))] == [later.header.id]


def test_what_came_by_the_log_is_delivered_in_a_group_that_the_view_brings_later():
    host, envelope = Host(), envelope_of(1, "a", "d")
    host.receive("n2", chunk_of(log_entry(12, envelope)))
    host.change(WITH_D)
    host.take(envelope)
    effects = host.receive("n2", Gossip(group="d", configuration=CONFIGURATION, clock=30, forgotten=KEY_MIN))
    assert delivered(effects) == [("d", 0, envelope.header.id)]


# ------------------------------------------------------------------------------------------------------- burying


def over_and_from_the_log(host: Host) -> bytes:
    """Delivered in a from the log; it names x, which the view lacks, and its gateway is over."""
    envelope = envelope_of(1, "a", "x")
    host.receive("n2", chunk_of(log_entry(12, envelope)))
    host.step(Ended, "g1", LIVES["g1"])
    for source in ("n1", "n2", "n3"):
        host.receive(source, Have(id=envelope.header.id, groups=destinations("a")))
    return envelope.header.id


def test_what_names_a_group_that_may_still_come_is_not_buried():
    host = Host()
    over_and_from_the_log(host)
    assert (host.machine.buffers()["delivered"], host.machine.buffers()["buried"]) == (1, 0)


def test_it_is_buried_when_somebody_who_knew_the_group_says_that_it_is_finished():
    host = Host()
    id_ = over_and_from_the_log(host)
    host.receive("n3", Have(id=id_, groups=destinations("a", "x")))
    assert (host.machine.buffers()["delivered"], host.machine.buffers()["buried"]) == (0, 1)


def test_who_has_buried_it_says_that_it_is_finished_in_all_its_groups():
    host, envelope = Host(), envelope_of(1, "a", "b", "c")
    host.order(envelope, 12)
    host.step(Ended, "g1", LIVES["g1"])
    for source in ("n2", "n3", "n4", "n5", "n6", "n1"):
        here = [name for name in "abc" if source in GROUPS[name].split()]
        host.receive(source, Have(id=envelope.header.id, groups=destinations(*here)))
    ((_, have),) = sent_when_durable(host.receive("n2", HaveAsk(id=envelope.header.id)), Have)
    assert [d.group for d in have.groups] == ["a", "b", "c"]


def test_what_we_stamped_ourselves_is_buried_without_the_groups_that_are_gone():
    host, envelope = Host(), envelope_of(1, "a", "c")
    host.order(envelope, 12)
    host.change(view_of({name: GROUPS[name] for name in "ab"}))
    host.step(Ended, "g1", LIVES["g1"])
    assert [to for to, _ in sends(host.tick(GOSSIP_S), HaveAsk)] == [["n2", "n3", "n1"]]
    for source in ("n1", "n2"):
        host.receive(source, Have(id=envelope.header.id, groups=destinations("a")))
    assert host.machine.buffers()["buried"] == 1


def test_what_the_log_brings_of_a_retired_incarnation_is_not_kept():
    host = Host()
    host.step(Retired, LIVES["g1"] + 1)
    host.receive("n2", chunk_of(log_entry(12, envelope_of(1, "a", "x"))))
    host.tick(GOSSIP_S)
    buffers = host.machine.buffers()
    assert (buffers["delivered"], buffers["buried"], buffers["held"]) == (0, 0, 0)
    assert not [key for key in host.disk if key[:1] == records.DELIVERED]


# --------------------------------------------------------------------------------------------------------- going


def test_a_group_is_mentioned_until_what_names_it_is_delivered_in_every_group_here():
    host, envelope = Host(), envelope_of(1, "a", "c")
    host.step(GroupsClosed, ("c",))
    assert not host.machine.mentions("c")
    host.take(envelope)
    assert (host.machine.mentions("a"), host.machine.mentions("b"), host.machine.mentions("c")) == (
        True,
        False,
        True,
    )
    for peer in ("n2", "n3", "n6"):
        host.stamp(peer, envelope, 12)
    host.decide(envelope, 12)
    assert host.machine.mentions("c")
    host.gossip("n2", 13)
    assert not host.machine.mentions("c")


def test_a_group_is_mentioned_while_only_its_replicas_can_tell_what_is_finished():
    host, envelope = Host(), envelope_of(1, "a", "c")
    host.order(envelope, 12)
    assert not host.machine.mentions("c"), "the gateway has it open as long as it is not finished"
    host.step(Ended, "g1", LIVES["g1"])
    assert host.machine.mentions("c")
    for source in ("n1", "n2", "n6"):
        here = [name for name in "ac" if source in GROUPS[name].split()]
        host.receive(source, Have(id=envelope.header.id, groups=destinations(*here)))
    assert not host.machine.mentions("c")


def test_a_group_is_mentioned_while_a_replica_of_it_waits_for_something_it_only_heard_of():
    host = Host()
    host.gossip("n4", 9, (4, envelope_of(1, "b")))
    assert host.machine.mentions("b")


def working() -> Host:
    """Has delivered, finished and open envelopes in both groups."""
    host = Host()
    for counter, groups in enumerate((("a",), ("b",), ("a", "b"))):
        host.order(envelope_of(counter, *groups), 10 * (counter + 1))
    host.order(envelope_of(3, "a", "b", done=2), 40)
    return host


def test_a_group_that_is_gone_leaves_no_record_and_the_others_go_on():
    host = working()
    assert of_group(host, "b")
    effects = host.change(WITHOUT_B)
    assert of_group(host, "b") == []
    assert len([effect for effect in effects if type(effect).__name__ == "Persist"]) == 1
    assert list(host.machine.replicas) == ["a"]
    later = envelope_of(9, "a", done=4)
    assert [id_ for _, _, id_ in delivered(host.order(later, 60))] == [later.header.id]
    assert host.machine.buffers()["held"] == 1


def test_everything_is_as_before_after_a_restart_without_a_group_that_is_gone():
    host = working()
    host.view = WITHOUT_B
    host.restart()
    assert of_group(host, "b") == []
    later = envelope_of(9, "a", done=4)
    assert [id_ for _, _, id_ in delivered(host.order(later, 5000))] == [later.header.id]
    host.restart()
    assert host.machine.replicas["a"].position == 4


def test_records_of_a_group_that_has_its_replicas_elsewhere_are_deleted():
    host = working()
    host.view = without_previous(next_view(VIEW, "b", "n4 n5 n6"), "b")
    host.restart()
    assert of_group(host, "b") == []
    assert of_group(host, "a")
    assert list(host.machine.replicas) == ["a"]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_late_copy_for_a_group_that_is_gone_is_dropped(restarts):
    host = Host()
    host.take(envelope_of(1, "b"))
    if restarts:
        host.view = WITHOUT_B
        host.restart()
    else:
        host.change(WITHOUT_B)
    assert host.machine.buffers()["held"] == 0
    assert [key for key in host.disk if key[:1] == records.STAMPED] == []


@pytest.mark.parametrize("restarts", [False, True])
def test_a_late_copy_for_another_group_too_is_ordered_without_the_one_that_is_gone(restarts):
    host, envelope = Host(), envelope_of(1, "a", "b")
    host.take(envelope)
    if restarts:
        host.view = WITHOUT_B
        host.restart()
    else:
        host.change(WITHOUT_B)
    effects = host.tick(SILENCE_S)
    assert sent(effects, Disseminate) == [], "nobody takes it any more who does not know b"
    assert [to for to, stamp in sends(effects, RecTs) if stamp.ask] == [["n2", "n3"]]
    host.stamp("n2", envelope, 7)
    for _ in range(4):
        effects += host.tick(3.0)
    assert handed(effects, Propose)[-1].groups == ("a",)
    host.decide(envelope, 2000)
    assert delivered(host.gossip("n2", 2001)) == [("a", 0, envelope.header.id)]


def test_a_late_copy_is_taken_from_the_log_of_who_delivered_it():
    host, envelope = Host(), envelope_of(1, "a", "b")
    host.take(envelope)
    host.change(WITHOUT_B)
    (fetch,) = sent(host.receive("n3", Have(id=envelope.header.id, groups=destinations("a"))), FetchLog)
    assert (fetch.group, fetch.position) == ("a", 0)
    assert delivered(host.receive("n3", chunk_of(log_entry(12, envelope)))) == [("a", 0, envelope.header.id)]


def test_a_proposal_for_a_group_that_is_gone_is_released():
    host, envelope = Host(), envelope_of(1, "b")
    host.take(envelope)
    host.stamp("n4", envelope, 3)
    assert [decided.instance for decided in handed(host.change(WITHOUT_B), Decided)] == [envelope.header.id]


def test_a_log_that_was_read_for_a_group_that_is_gone_is_not_sent():
    host = working()
    host.change(WITHOUT_B)
    assert host.step(LogRead, "b", 0, host.logs["b"].entries, 0, "n4") == []


def test_a_decision_about_something_of_a_group_that_is_gone_does_not_stay():
    host = working()
    host.change(WITHOUT_B)
    host.told("n4", envelope_of(50, "b"), 70)
    assert host.machine.buffers()["undelivered"] == 1
    for _ in range(20):
        assert sent(host.tick(3.0), Pull) == []
    assert host.machine.buffers()["undelivered"] == 0


def test_the_number_of_the_view_is_durable():
    assert Host().disk[records.VIEW] == pack_u64(VIEW.number)
