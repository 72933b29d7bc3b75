"""A replica that has started in a configuration: what of that is durable, and passed on, and what follows."""

from typing import Any

import pytest

from ordercast.core.ids import pack_u64
from ordercast.core.machine import Persist, Propose, Send, SetTimer
from ordercast.core.view import OtherConfiguration
from ordercast.protocols.scalatom import records
from ordercast.protocols.scalatom.implied import STAMPS_TIMER
from ordercast.v1.consensus_pb2 import Decide
from ordercast.v1.membership_pb2 import DomainView
from ordercast.v1.scalatom_pb2 import Gossip, HandOver, HandOverAsk, RecTs, StampedRecord, StartedRecord
from tests.unit.driving import (
    delivered,
    edited,
    envelope_of,
    handed,
    key_of,
    next_view,
    place,
    sends,
    sent,
    sent_when_durable,
    talk,
    without_previous,
)
from tests.unit.handover_host import (
    BOTH,
    ONE,
    SECOND,
    TWO,
    entries,
    hand_over,
    newcomer,
    open_,
    stamps,
    start,
    told_by,
)
from tests.unit.scalatom_host import SILENCE_S, VIEW, Host, chunk_of, log_entry

# --------------------------------------------------------------------------------------------- durable before said


def test_all_of_a_start_is_on_disk_before_a_word_of_it_is_said():
    host = newcomer()
    effects = start(host, hand_over(open_(ONE, 3), clock=2000), hand_over(open_(ONE, 8), clock=30))
    at = place(effects, Persist)
    assert effects[at].barrier
    assert not [effect for effect in effects[:at] if isinstance(effect, Send)]
    assert at < place(effects, RecTs) < place(effects, Gossip)
    written = {key for key, value in effects[at].records if value is not None}
    assert written == {
        records.started("a"),
        records.handed("a", ONE.header.id),
        records.stamped(ONE.header.id),
        records.CLOCK,
    }


def test_a_start_that_the_end_of_the_log_brings_is_written_with_it():
    host = newcomer()
    host.receive("n2", hand_over(clock=9, position=1))
    host.receive("n3", hand_over(clock=4))
    effects = host.receive("n2", chunk_of(log_entry(4, ONE), configuration=2))
    assert place(effects, Persist) < place(effects, Gossip)
    keys = {key for key, _ in effects[place(effects, Persist)].records}
    assert {records.started("a"), records.position("a")} <= keys


def test_no_clock_is_said_that_a_restart_would_not_reach():
    host = newcomer(clock_reserved=5)
    start(host, hand_over(clock=400), hand_over(clock=30))
    (gossip, *_) = sent(host.connect("n1"), Gossip)
    host.restart()
    assert host.next_stamp() >= gossip.clock == 400


@pytest.mark.parametrize("received", [0, 1])
def test_a_restart_in_the_middle_begins_to_ask_anew(received):
    host = Host()
    host.take(ONE)
    host.change(SECOND)
    for source in ("n2", "n3")[:received]:
        host.receive(source, hand_over(open_(TWO, 3), clock=20))
    asks = sends(host.restart(), HandOverAsk)
    assert [(to, ask.after) for to, ask in asks] == [([name], b"") for name in ("n1", "n2", "n3", "n6")]
    assert not host.replica().is_active
    start(host, hand_over(clock=2000), hand_over(clock=30))
    assert host.replica().history.entry(ONE.header.id) == 0, "its own entry from before"


def test_after_a_restart_it_is_where_it_had_started():
    host = Host()
    for envelope in (ONE, BOTH):
        host.take(envelope)
    host.change(SECOND)
    effects = start(
        host,
        hand_over(open_(ONE, 3, entry=2), open_(TWO, 5), clock=20),
        hand_over(open_(ONE, 8), clock=30),
    )
    before = {envelope.header.id: stamps(effects, envelope) for envelope in (ONE, TWO, BOTH)}
    assert before[ONE.header.id] == {"a": 8}
    places = {id_: host.replica().history.entry(id_) for id_ in before}
    unresolved = dict(host.replica().unresolved)
    kept = told_by(host, "n6")
    for _ in range(2):
        host.restart()
        assert host.replica().is_active
        effects = host.connect("n2") + host.connect("n4")
        assert {envelope.header.id: stamps(effects, envelope) for envelope in (ONE, TWO, BOTH)} == before
        assert {id_: host.replica().history.entry(id_) for id_ in before} == places
        assert host.replica().unresolved == unresolved
        assert told_by(host, "n6") == kept
    assert host.next_stamp() >= 33


def test_what_is_on_disk_says_which_groups_have_stamped_it_and_how():
    host = Host()
    host.take(BOTH)
    host.change(SECOND)
    start(host, hand_over(open_(BOTH, 9, entry=4), clock=20), hand_over(open_(BOTH, 7), clock=30))
    record = StampedRecord.FromString(host.disk[records.stamped(BOTH.header.id)])
    assert [(s.group, s.rec_ts, s.entry) for s in sorted(record.stamps, key=lambda s: s.group)] == [
        ("a", 9, 0),
        ("b", 0, 0),
    ]
    started = StartedRecord.FromString(host.disk[records.started("a")])
    assert (started.configuration, started.clock, started.is_kept) == (2, 30, True)


def test_one_that_is_delivered_in_the_group_that_begins_anew_is_not_stamped_there_again():
    host = Host()
    host.take(BOTH)
    host.change(SECOND)
    host.receive("n2", chunk_of(log_entry(12, BOTH), configuration=2))
    effects = start(host, hand_over(clock=20, position=1), hand_over(open_(BOTH, 3), clock=30))
    assert stamps(effects, BOTH) == {"b": 0}
    host.restart()
    assert stamps(host.connect("n4"), BOTH) == {"b": 0}
    assert host.machine.held[BOTH.header.id].own == {"b": 0}


# ------------------------------------------------------------------------------------------------------ passing on


def test_whoever_has_started_passes_on_what_it_started_from():
    host = newcomer()
    start(host, hand_over(open_(ONE, 3, entry=2), clock=20), hand_over(open_(ONE, 8), open_(TWO, 5), clock=30))
    host.take(envelope_of(9, "a", coordinator="n1"))
    told = told_by(host, "n1")
    assert (told.whole, told.clock, told.position) == (True, 30, 0)
    one, two = told.envelopes
    assert (one.envelope, one.rec_ts, one.entry) == (ONE, 8, 2)
    assert (two.envelope, two.HasField("rec_ts"), two.entry) == (TWO, False, 5)


def test_it_is_passed_on_in_parts_too():
    host = newcomer(hand_over=1)
    start(host, hand_over(open_(ONE, 3), clock=20), hand_over(open_(TWO, 5), clock=30))
    told = told_by(host, "n1")
    assert (told.whole, told.more, [h.envelope for h in told.envelopes]) == (True, True, [ONE])
    other = Host()
    other.change(SECOND)
    talk({"n1": other, "n6": host}, "n1", other.tick(SILENCE_S))
    assert other.replica().is_active
    assert sorted(other.machine.held) == [ONE.header.id, TWO.header.id]


def test_what_is_passed_on_covers_what_its_sender_had_delivered():
    """ONE was stamped by n2 and n3, and n2 has delivered it. n2 hears from n1, which never heard of it, and from
    n3 before its own answer is on disk, and starts. n1 and n6 start from what n2 passes on: if that is as if there
    had never been such an envelope, they put another in its place."""
    host = Host("n2")
    host.order(ONE, 5)
    host.change(SECOND)
    host.receive("n1", hand_over(clock=6))
    host.receive("n3", hand_over(open_(ONE, 3), clock=6))
    assert host.replica().is_active
    for other in (Host(), newcomer()):
        if other.view != SECOND:
            other.change(SECOND)
        other.receive("n2", told_by(host, other.name))
        assert not other.replica().is_active or ONE.header.id in other.replica().unresolved


def test_it_is_kept_until_everyone_has_started():
    host = newcomer()
    start(host, hand_over(open_(ONE, 3), clock=20), hand_over(clock=30))
    for starting in ("n1 n2", "n2"):
        host.change(without_previous(SECOND, "a", starting))
        assert told_by(host, "n2").whole
        assert records.handed("a", ONE.header.id) in host.disk
        host.restart()
    host.change(without_previous(SECOND, "a"))
    for _ in range(2):
        assert host.receive("n2", HandOverAsk(group="a", configuration=2)) == []
        assert records.handed("a", ONE.header.id) not in host.disk
        started = StartedRecord.FromString(host.disk[records.started("a")])
        assert (started.configuration, started.is_kept) == (2, False)
        assert host.replica().is_active
        host.restart()


def test_in_the_configuration_after_it_is_dropped_and_what_is_there_by_then_handed_over():
    host = newcomer()
    start(host, hand_over(open_(ONE, 3), clock=20), hand_over(clock=30))
    later = envelope_of(9, "a", coordinator="n1", configuration=2)
    host.take(later)
    host.change(next_view(without_previous(SECOND, "a", "n2"), "a", "n1 n2 n7"))
    assert not [key for key in host.disk if key[:1] == records.HANDED]
    for _ in range(2):
        effects = host.receive("n7", HandOverAsk(group="a", configuration=3))
        ((_, told),) = sent_when_durable(effects, HandOver)
        assert not told.whole
        assert told.clock >= 32
        assert [(h.envelope, h.rec_ts, h.entry) for h in told.envelopes] == [(ONE, 30, 3), (later, 31, 31)]
        host.restart()


def test_who_is_overtaken_while_it_starts_begins_again_with_the_next_one():
    host = newcomer()
    host.receive("n2", hand_over(open_(ONE, 3), clock=20))
    third = next_view(without_previous(SECOND, "a", "n6"), "a", "n1 n6 n7")
    assert [to for to, _ in sends(host.change(third), HandOverAsk)] == [["n1"], ["n2"], ["n6"], ["n7"]]
    with pytest.raises(OtherConfiguration):
        host.receive("n3", hand_over(clock=30))
    effects = host.receive("n6", HandOverAsk(group="a", configuration=3))
    ((_, own),) = sent_when_durable(effects, HandOver)
    assert own.idle
    host.receive("n6", own)
    assert not host.replica().is_active
    host.receive("n1", HandOver(group="a", configuration=3, clock=50))
    assert host.replica().started == 3
    assert host.next_stamp() == 50


# ------------------------------------------------------------------------------------------------------ afterwards


def started(**settings: Any) -> Host:
    """n1, in the second configuration, from empty ones."""
    host = Host(**settings)
    host.change(SECOND)
    start(host, hand_over(clock=20), hand_over(clock=30))
    return host


def test_in_the_new_configuration_everything_goes_on():
    host, envelope = started(), envelope_of(9, "a", configuration=2)
    assert delivered(host.order(envelope, 40)) == [("a", 0, envelope.header.id)]


def test_an_envelope_that_names_the_configuration_before_is_taken():
    assert stamps(started().take(ONE), ONE) == {"a": 30}


def test_fellows_hear_of_the_history_from_its_beginning():
    host = Host()
    host.take(ONE)
    host.stamp("n2", ONE, 0)
    host.gossip("n2", 5)
    host.change(SECOND)
    effects = start(host, hand_over(open_(ONE, 3), clock=20), hand_over(open_(ONE, 4), clock=30))
    assert {gossip.base for gossip in sent(effects, Gossip) if gossip.group == "a"} == {0}
    assert host.replica().peers["n2"].clock == 0, "and nothing that it said before counts"
    assert sorted(host.replica().peers) == ["n2", "n6"]


@pytest.mark.parametrize("lost", ["", "n2"])
def test_who_held_it_before_holds_it_still_unless_it_lost_its_disk(lost):
    """[E4] Its entry need not be withheld from a member that stays; it is from one that comes, or comes anew."""
    host = Host()
    host.take(ONE)
    host.stamp("n2", ONE, 0)
    if lost:
        host.change(edited(VIEW, "a", lost=lost))
    host.change(next_view(host.view, "a", "n1 n2 n6"))
    host.receive("n1", hand_over(open_(ONE, 0), clock=20))
    effects = host.receive("n3", hand_over(clock=30))
    assert entries(effects, "n2") == ([] if lost else [(0, ONE.header.id)])
    assert entries(effects, "n6") == []


def test_what_is_in_the_log_from_before_is_covered_by_what_it_tells_of_its_history():
    """[E8] A fellow whose log is shorter must not count this one before it has got there."""
    host = newcomer()
    host.receive("n1", chunk_of(log_entry(12, ONE), configuration=2))
    effects = start(host, hand_over(clock=20), hand_over(clock=30))
    assert {gossip.forgotten for gossip in sent(effects, Gossip)} == {key_of(12, ONE)}


def test_what_was_only_heard_of_before_holds_nothing_up_if_no_majority_had_it():
    """Its only holder has left. If it comes back, it is stamped above everything that was delivered meanwhile."""
    host = Host()
    host.gossip("n3", 9, (4, TWO))
    host.change(SECOND)
    start(host, hand_over(clock=20), hand_over(clock=30))
    envelope = envelope_of(9, "a", configuration=2)
    assert delivered(host.order(envelope, 40)) == [("a", 0, envelope.header.id)]


def test_stamps_that_fellows_gave_before_it_started_count_when_it_has():
    host = Host()
    host.take(ONE)
    host.change(SECOND)
    host.stamp("n6", ONE, 35)
    (proposal,) = handed(start(host, hand_over(clock=20), hand_over(clock=30)), Propose)
    assert (proposal.configurations, proposal.value) == ((2,), pack_u64(35))


def test_round_zero_is_for_envelopes_that_name_the_present_configurations():
    for configuration, is_owned in ((1, False), (2, True)):
        host, envelope = started(), envelope_of(9, "a", configuration=configuration)
        host.take(envelope)
        (proposal,) = handed(host.stamp("n6", envelope, 33), Propose)
        assert proposal.configurations == (2,)
        assert (proposal.owner == host.incarnation) == is_owned
        assert proposal.value == pack_u64(33)


@pytest.mark.parametrize("configuration", [1, 2])
def test_stamps_imply_a_number_only_in_the_configurations_that_the_envelope_names(configuration):
    """In a later one there may be votes from before."""
    host, envelope = started(stamps_wait_s=0.01), envelope_of(9, "a", configuration=configuration)
    effects = host.take(envelope)
    for peer in ("n2", "n6"):
        effects += host.stamp(peer, envelope, 30)
    assert bool(sent(effects, Decide)) == (configuration == 2)
    assert bool(handed(effects, Propose)) == (configuration == 1)
    waits = [effect for effect in effects if isinstance(effect, SetTimer) and effect.name == STAMPS_TIMER]
    assert bool(waits) == (configuration == 2)


def test_an_envelope_is_proposed_again_with_the_stamps_of_the_new_configuration():
    host = Host()
    host.take(ONE)
    (proposal,) = handed(host.stamp("n2", ONE, 7), Propose)
    assert (proposal.configurations, proposal.value, proposal.owner) == ((1,), pack_u64(7), host.incarnation)
    host.change(SECOND)
    effects = start(host, hand_over(open_(ONE, 7), clock=20), hand_over(clock=30))
    assert handed(effects, Propose) == [], "no quorum has stamped it there"
    (proposal,) = handed(host.stamp("n6", ONE, 35), Propose)
    assert (proposal.configurations, proposal.value, proposal.owner) == ((2,), pack_u64(35), 0)


def test_a_number_that_all_stamps_implied_is_what_the_new_configuration_proposes():
    """n1, n2 and n3 had stamped it at 7, and somebody decided by that and died. No vote tells of it."""
    for sealed in (("n2", "n3"), ("n1", "n3")):
        host = newcomer()
        for source in sealed:
            host.receive(source, hand_over(open_(ONE, 7), clock=20))
        effects = host.stamp("n2", ONE, 7)
        for _ in range(5):
            effects += host.tick(3.0)
        values = {proposal.value for proposal in handed(effects, Propose)}
        assert values == {pack_u64(7)}


def test_progress_tells_membership_how_far_it_is():
    host = Host()
    assert host.machine.progress() == {}
    host.change(SECOND)
    assert [(p.configuration, p.started) for p in host.machine.progress().values()] == [(2, False)]
    start(host, hand_over(clock=20), hand_over(clock=30))
    assert list(host.machine.progress()) == ["a"]
    assert host.machine.progress()["a"].started
    host.change(without_previous(SECOND, "a", "n6"))
    assert host.machine.progress() == {}, "membership knows"


# ----------------------------------------------------------------------------------------------------- all of them


def four() -> dict[str, Host]:
    """n1, n2 and n3 with a log, something decided and something open; n6 is to come."""
    hosts = {name: Host(name) for name in ("n1", "n2", "n3")}
    for name, host in hosts.items():
        host.order(envelope_of(0, "a"), 5)
        host.take(ONE)
        if name != "n3":
            host.take(TWO)
    hosts["n1"].told("n2", TWO, 40)
    hosts["n6"] = Host("n6", view=edited(VIEW, "a", learners="n6"))
    return hosts


def change(hosts: dict[str, Host], view: DomainView) -> None:
    """One after the other hears of it, and what was refused meanwhile is asked for again."""
    for name, host in hosts.items():
        talk(hosts, name, host.change(view))
    for _ in range(3):
        for name, host in hosts.items():
            talk(hosts, name, host.tick(SILENCE_S))


@pytest.mark.parametrize("silent", ["", "n1", "n2", "n3"])
def test_a_change_goes_through_without_any_one_of_the_old_members(silent):
    hosts = {name: host for name, host in four().items() if name != silent}
    change(hosts, SECOND)
    members = [hosts[name] for name in ("n1", "n2", "n6") if name in hosts]
    assert all(host.replica().is_active for host in members)
    for host in members:
        assert [entry.envelope for entry in host.logs["a"].entries] == [envelope_of(0, "a")]
        # Whatever majority it started from, it does not lack what may have been decided there.
        assert {ONE.header.id, TWO.header.id} <= {*host.replica().unresolved, *host.replica().queued}


def test_a_fellow_that_slept_through_it_starts_from_what_the_others_did():
    hosts = four()
    slept = hosts.pop("n2")
    change(hosts, SECOND)
    majority = without_previous(SECOND, "a", "n2")
    change(hosts, majority)
    assert "a" not in hosts["n3"].machine.replicas, "it has left, and has nothing to hand over any more"
    hosts["n2"] = slept
    change(hosts, majority)
    assert slept.replica().is_active
    passed_on = told_by(hosts["n6"], "n2")
    assert slept.replica().clock >= passed_on.clock
    assert set(slept.replica().unresolved) | set(slept.replica().queued) == {ONE.header.id, TWO.header.id}
