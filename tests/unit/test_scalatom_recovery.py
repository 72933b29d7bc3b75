"""What a process under SCALATOM knows again after a crash, catches up with, and forgets."""

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import Effect, Ended, InstanceClosed, Retired, SetTimer
from ordercast.protocols.scalatom.machine import Scalatom
from ordercast.protocols.scalatom.settings import Settings
from ordercast.v1.consensus_pb2 import Close
from ordercast.v1.scalatom_pb2 import EnvelopeDurable, Gossip, Have, HaveAsk, RecTs
from ordercast.v1.sequencer_pb2 import FetchLog, LogChunk, Snapshot
from tests.unit.driving import (
    CONFIGURATION,
    Driven,
    delivered,
    destinations,
    envelope_of,
    key_of,
    range_of,
    sends,
    sent,
    sent_when_durable,
)
from tests.unit.fuzzing import state_of
from tests.unit.scalatom_host import GOSSIP_S, Host, chunk_of, log_entry, snapshot_of, told_in

# ------------------------------------------------------------------------------------------------------ recovery


def test_the_clock_restarts_from_its_reservation():
    """[E7] Whatever clock was gossiped, no later stamp is below it."""
    host = Host(clock_reserved=10)
    host.take(envelope_of(0, "a"))
    host.restart()
    assert sent(host.take(envelope_of(1, "a")), RecTs)[0].rec_ts == 11
    host.restart()
    assert host.next_stamp() >= 12


@pytest.mark.parametrize("reserved", [0, 1, 5])
def test_no_stamp_is_ever_below_a_clock_that_was_told(reserved):
    host = Host(clock_reserved=reserved)
    told = -1
    for counter in range(12):
        effects = host.take(envelope_of(counter, "a"))
        (stamp,) = sent(effects, RecTs)
        assert stamp.rec_ts >= told
        for peer in ("n2", "n3"):
            effects += host.stamp(peer, envelope_of(counter, "a"), counter)
        effects += host.decide(envelope_of(counter, "a"), 3 * counter)
        told = max([told, *(gossip.clock for gossip in sent(effects, Gossip))])
        if counter % 3 == 0:
            host.restart()


def test_recovery_gives_back_what_was_stamped_delivered_and_forgotten():
    host = Host()
    host.order(envelope_of(0, "a", ranges=[range_of(b"p", 1, 3)]), 5)
    host.order(envelope_of(1, "a", "b", ranges=[range_of(b"q", 1, 2)]), 8)
    host.order(envelope_of(2, "b", done=2, open=[1]), 11)
    host.take(envelope_of(3, "a"))
    host.take(envelope_of(4, "a", "b"))
    before, snapshots = host.machine.buffers(), snapshots_of(host)
    host.restart()
    assert host.machine.buffers() == before
    assert snapshots_of(host) == snapshots, "position, offset, producers, done and delivered ids"


def snapshots_of(host: Host) -> list[Snapshot]:
    """What a peer would be given to whom the logs are no longer available."""
    found = []
    for group, peer in (("a", "n2"), ("b", "n4")):
        snapshot = snapshot_of(host, group, peer)
        statements = [done for done in snapshot.done if done.done]
        del snapshot.done[:]
        snapshot.done.extend(statements)
        found.append(snapshot)
    return found


def test_a_recovered_replica_behaves_as_before():
    host = Host()
    host.order(envelope_of(0, "a", ranges=[range_of(b"p", 1, 3)]), 5)
    host.take(envelope_of(1, "a", coordinator="n2"))
    host.restart()
    assert [stamp.rec_ts for stamp in sent(host.connect("n2"), RecTs)] == [6], "its old stamp, again"
    assert host.take(envelope_of(0, "a")) == [], "delivered: no new stamp"
    assert host.take(envelope_of(1, "a", coordinator="n2")) == [], "stamped: no new stamp"
    host.told("n2", envelope_of(1, "a"), 6)
    host.gossip("n2", 7, base=0)
    host.order(envelope_of(2, "a", ranges=[range_of(b"p", 2, 3)]), 2000)
    assert [entry.first_offset for entry in host.logs["a"].entries] == [0, 3, 4]
    assert [s.duplicate for s in host.logs["a"].entries[2].outcomes[0].spans] == [True, False]


def test_a_recovered_replica_lists_its_old_entries_and_covers_what_it_forgot():
    host = Host()
    for counter in range(3):
        host.order(envelope_of(counter, "a", done=counter), 5 + 5 * counter)
    host.take(envelope_of(3, "a"))
    host.stamp("n2", envelope_of(3, "a"), 0)
    host.restart()
    host.connect("n2")
    effects = host.stamp("n2", envelope_of(2, "a"), 0)
    effects += host.stamp("n2", envelope_of(3, "a"), 0)
    effects += host.tick(GOSSIP_S)
    listed = [entry.id for gossip in told_in(effects, "n2") for entry in gossip.entries]
    assert listed == [envelope_of(2).header.id, envelope_of(3).header.id]
    assert told_in(effects, "n2")[0].forgotten >= key_of(10, envelope_of(1))


def test_a_decision_is_not_remembered_but_asked_for_again():
    host, envelope = Host(), envelope_of(0, "a", coordinator="n2")
    host.take(envelope)
    host.told("n2", envelope, 9)
    host.restart()
    assert host.machine.buffers()["queued"] == 0
    assert [stamp.ask for stamp in sent(host.connect("n2"), RecTs)] == [True]


def test_an_envelope_delivered_in_one_of_two_groups_is_recovered_as_such():
    host, envelope = Host(), envelope_of(0, "a", "b")
    host.take(envelope)
    host.decide(envelope, 9)
    host.gossip("n2", 10)
    host.restart()
    assert host.machine.buffers()["undelivered"] == 1
    assert delivered(host.gossip("n4", 10, base=0)) == [("b", 0, envelope.header.id)]


def test_a_process_waits_for_its_first_view_however_long_that_takes():
    host = Driven("n1", lambda: Scalatom("n1"), None)
    assert [effect.name for effect in host.tick(10.0) if isinstance(effect, SetTimer)] == ["tick"]


# ----------------------------------------------------------------------------------------------------- catching up


def given_log(host: Host, taker: Host) -> list[Effect]:
    """The taker fetches a's log from the host, as a peer would."""
    fetch = FetchLog(group="a", configuration=CONFIGURATION, position=taker.machine.replicas["a"].position)
    answers = host.answer_reads(host.receive(taker.name, fetch))
    return [effect for chunk in sent(answers, LogChunk) for effect in taker.receive(host.name, chunk)]


def test_a_replica_that_was_away_delivers_from_the_log_of_another():
    host, taker = Host("n2"), Host("n1")
    for counter in range(3):
        host.order(envelope_of(counter, "a", ranges=[range_of(b"p", 1 + counter, 1)]), 10 + counter)
    effects = given_log(host, taker)
    assert [position for _, position, _ in delivered(effects)] == [0, 1, 2]
    assert taker.logs["a"].entries == host.logs["a"].entries
    assert taker.next_stamp() > 12


def test_a_long_log_is_fetched_piece_by_piece():
    host, taker = Host("n2", log_chunk=2), Host("n1")
    for counter in range(3):
        host.order(envelope_of(counter, "a"), 10 + counter)
    effects = given_log(host, taker)
    assert len(delivered(effects)) == 2
    assert [fetch.position for fetch in sent(effects, FetchLog)] == [2]


def test_a_log_that_repeats_an_entry_is_refused_and_changes_nothing():
    """Also not when the group asks next: whoever lies does not keep it from asking somebody else."""
    host = Host("n1")
    entries = [log_entry(10 + counter, envelope_of(counter, "a")) for counter in range(2)]
    host.receive("n2", chunk_of(*entries))
    before = state_of(host.machine)
    again = log_entry(15, envelope_of(1, "a"))
    with pytest.raises(RemoteProtocolError, match="delivered before"):
        host.receive("n2", chunk_of(again, position=2, head=9))
    assert state_of(host.machine) == before


@pytest.mark.parametrize(("bytes_max", "count"), [(1, 1), (320, 2), (1 << 20, 5)])
def test_a_chunk_of_the_log_has_few_bytes_but_one_entry_at_least(bytes_max, count):
    host, taker = Host("n2", log_chunk_bytes=bytes_max), Host("n1")
    for counter in range(5):
        host.order(envelope_of(counter, "a"), 10 + counter)
    assert 100 < host.logs["a"].entries[0].ByteSize() < 160
    effects = given_log(host, taker)
    assert len(delivered(effects)) == count
    assert [fetch.position for fetch in sent(effects, FetchLog)] == ([] if count == 5 else [count])


def test_many_envelopes_that_others_have_delivered_are_fetched_together():
    """Paused for long, a replica hears of thousands of them at once, and asks about each."""
    host, missed = Host(), [envelope_of(counter, "a") for counter in range(20)]
    host.gossip("n2", 100, *((10 + index, envelope) for index, envelope in enumerate(missed)))
    haves = [Have(id=envelope.header.id, groups=destinations("a")) for envelope in missed]
    answered = [host.receive(peer, have) for have in haves for peer in ("n2", "n3")]
    assert len(sent([effect for effects in answered for effect in effects], FetchLog)) == 1
    host.tick(Settings().patience_s_max)
    assert len(sent(host.receive("n3", haves[0]), FetchLog)) == 1, "whoever was asked did not answer"


def test_many_envelopes_that_are_closed_elsewhere_are_fetched_together():
    host, missed = Host(), [envelope_of(counter, "a") for counter in range(20)]
    for envelope in missed:
        host.take(envelope)
    closed = [effect for envelope in missed for effect in host.step(InstanceClosed, envelope.header.id)]
    assert [to for to, _ in sends(closed, FetchLog)] == [["n2"], ["n3"]]
    host.tick(Settings().patience_s_max)
    again = host.step(InstanceClosed, missed[0].header.id)
    assert [to for to, _ in sends(again, FetchLog)] == [["n2"], ["n3"]]


def test_what_waits_in_the_queue_is_not_delivered_again_after_it_came_by_the_log():
    host, taker, envelope = Host("n2"), Host("n1"), envelope_of(0, "a")
    host.order(envelope, 9)
    taker.take(envelope)
    taker.told("n2", envelope, 9)
    assert len(delivered(given_log(host, taker))) == 1
    assert delivered(taker.gossip("n2", 20) + taker.gossip("n3", 20)) == []
    assert taker.machine.buffers()["queued"] == taker.machine.buffers()["undelivered"] == 0


# ----------------------------------------------------------------------------------------------------- forgetting


def test_what_is_finished_is_forgotten_when_its_carrier_is_delivered_and_not_before():
    host, one, two = Host(), envelope_of(0, "a"), envelope_of(1, "a", done=1)
    host.order(one, 5)
    host.take(two)
    assert host.machine.buffers()["delivered"] == 1
    host.decide(two, 9)
    assert host.machine.buffers()["delivered"] == 1
    host.gossip("n2", 10)
    assert host.machine.buffers() == {
        "held": 1,
        "undelivered": 0,
        "queued": 0,
        "unresolved": 0,
        "history": 1,
        "delivered": 1,
        "buried": 0,
    }


def test_a_late_copy_of_a_finished_envelope_is_not_taken_again():
    host, one = Host(), envelope_of(0, "a")
    host.order(one, 5)
    host.order(envelope_of(1, "a", done=1), 9)
    for _ in range(2):
        assert sent(host.take(one), RecTs) == []
        host.gossip("n2", 20, (15, one))
        assert host.machine.buffers()["unresolved"] == 0, "nobody waits for it"
        effects = host.take(one, again=True)
        assert [message.group for _, message in sent_when_durable(effects, EnvelopeDurable)] == ["a"]
        host.restart()


def test_envelopes_of_a_gateway_that_is_over_are_buried_when_a_majority_has_them():
    host, envelope = Host(), envelope_of(0, "a")
    host.connect("g1", 21)
    host.order(envelope, 9)
    assert sends(host.tick(GOSSIP_S), HaveAsk) == []
    host.connect("g1", 121)
    ask = HaveAsk(id=envelope.header.id)
    assert sends(host.tick(GOSSIP_S), HaveAsk) == [(["n2", "n3", "n1"], ask)]
    ((to, have),) = sent_when_durable(host.receive("n1", ask), Have)
    assert to == ["n1"], "it asks itself, and answers behind the sync of its own delivery"
    host.receive("n1", have)
    host.receive("n2", Have(id=envelope.header.id))
    assert host.machine.buffers()["buried"] == 0, "not yet, it says"
    effects = host.receive("n2", Have(id=envelope.header.id, groups=destinations("a")))
    ((to, close),) = sent_when_durable(effects, Close)
    assert (to, list(close.instances)) == (["n1", "n2", "n3"], [envelope.header.id])
    for _ in range(2):
        assert host.machine.buffers()["buried"] == 1
        assert host.machine.buffers()["held"] == host.machine.buffers()["history"] == 0
        assert sent(host.take(envelope), RecTs) == []
        host.restart()


def test_an_incarnation_that_membership_declared_over_is_over_without_a_new_channel():
    host, envelope = Host(), envelope_of(0, "a")
    host.connect("g1", 21)
    host.order(envelope, 9)
    host.step(Ended, "g1", 21)
    assert sends(host.tick(GOSSIP_S), HaveAsk)


def test_of_retired_incarnations_one_number_is_left():
    host, envelope = Host(), envelope_of(0, "a")
    host.connect("g1", 21)
    host.order(envelope, 9)
    host.connect("g1", 121)
    host.tick()
    host.receive("n2", Have(id=envelope.header.id, groups=destinations("a")))
    host.step(Retired, 22)
    for _ in range(2):
        assert host.machine.buffers()["buried"] == 0
        assert sent(host.take(envelope), RecTs) == [], "still known to be old"
        assert sent(host.take(envelope_of(5, "a")), RecTs) == []
        host.restart()


def test_an_acceptor_that_was_away_is_told_what_is_finished():
    host = Host()
    host.order(envelope_of(0, "a"), 5)
    host.order(envelope_of(2, "a", done=2, open=[1]), 9)
    ((to, close),) = sent_when_durable(host.connect("n3"), Close)
    assert to == ["n3"]
    assert [(c.incarnation, c.done, list(c.open)) for c in close.finished] == [(21, 2, [1])]
    assert sent_when_durable(host.connect("n4"), Close) == [], "no acceptor of a"
