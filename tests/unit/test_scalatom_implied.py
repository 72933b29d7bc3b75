"""Numbers that stamps imply: decided without consensus, when nobody could ever propose another."""

import pytest

from ordercast.core.ids import pack_u64
from ordercast.core.machine import Effect, Persist, Propose, Send, SetTimer, TimerFired, ViewChanged
from ordercast.v1.common_pb2 import Envelope
from ordercast.v1.consensus_pb2 import Decide
from ordercast.v1.scalatom_pb2 import EnvelopeDecided, Gossip, GossipAsk, RecTs
from tests.unit.driving import (
    CONFIGURATION,
    LIVES,
    delivered,
    envelope_of,
    handed,
    key_of,
    place,
    sends,
    sent,
    view_of,
)
from tests.unit.scalatom_host import GROUPS, SILENCE_S, Host, told_in

#: A power of two: halves of it add up.
WAIT_S = 1 / 64


class Waiting(Host):
    """Process n1, which waits for the last stamps of what it coordinates."""

    def __init__(self, name: str = "n1") -> None:
        super().__init__(name, stamps_wait_s=WAIT_S)

    def stamped(self, envelope: Envelope, **stamps: int) -> list[Effect]:
        """It takes the envelope, and the others' stamps come in this order; what comes of the last one."""
        effects = self.take(envelope)
        for source, rec_ts in stamps.items():
            effects = self.stamp(source, envelope, rec_ts)
        return effects

    def wait(self, seconds: float = WAIT_S) -> list[Effect]:
        self.now += seconds
        return self.step(TimerFired, "stamps", 0)


def decided(effects: list[Effect]) -> list[int]:
    return [int.from_bytes(decide.value) for decide in sent(effects, Decide)]


def proposed(effects: list[Effect]) -> list[int | None]:
    proposals = handed(effects, Propose)
    return [None if p.value is None else int.from_bytes(p.value) for p in proposals]


def is_waiting(effects: list[Effect]) -> bool:
    return not decided(effects) and not proposed(effects)


# ----------------------------------------------------------------------------------------------------- deciding


def test_when_all_have_stamped_alike_everyone_is_told_and_no_acceptor_is_asked():
    host, envelope = Waiting(), envelope_of(0, "a")
    assert is_waiting(host.stamped(envelope, n2=0))
    effects = host.stamp("n3", envelope, 0)
    assert sends(effects, Decide) == [(["n2", "n3"], Decide(instance=envelope.header.id, value=pack_u64(0)))]
    reported = EnvelopeDecided(id=envelope.header.id, order_key=key_of(0, envelope))
    assert sends(effects, EnvelopeDecided) == [(["g1"], reported)]
    assert proposed(effects) == []
    assert host.machine.clock == 1


def test_two_of_three_at_the_highest_leave_no_quorum_below_it():
    host, envelope = Waiting(), envelope_of(0, "a")
    assert decided(host.stamped(envelope, n2=7, n3=7)) == [7]


@pytest.mark.parametrize("stamps", [{"n2": 7, "n3": 0}, {"n3": 0, "n2": 7}], ids=["first", "last"])
def test_one_of_three_at_the_highest_leaves_a_quorum_below_it(stamps):
    host, envelope = Waiting(), envelope_of(0, "a")
    effects = host.stamped(envelope, **stamps)
    assert (decided(effects), proposed(effects)) == ([], [7])


def test_a_quorum_below_the_highest_is_one_of_every_group():
    host, envelope = Waiting(), envelope_of(0, "a", "b")
    assert decided(host.stamped(envelope, n4=0, n5=0, n2=9, n3=9)) == [9], "below it is a majority of b alone"


def test_with_a_quorum_below_the_highest_the_last_stamp_is_not_waited_for():
    host, envelope = Waiting(), envelope_of(0, "a", "b")
    assert is_waiting(host.stamped(envelope, n2=0, n4=0))
    assert proposed(host.stamp("n3", envelope, 9)) == [9], "n1 counts in both groups, and n5 may say what it will"


def test_the_highest_stamp_of_a_group_of_one_is_in_every_quorum():
    host, envelope = Waiting(), envelope_of(0, "a", "c")
    assert decided(host.stamped(envelope, n2=0, n3=0, n6=9)) == [9]


def test_stamps_that_come_before_the_envelope_count():
    host, envelope = Waiting(), envelope_of(0, "a")
    host.stamp("n2", envelope, 3)
    host.stamp("n3", envelope, 3)
    effects = host.take(envelope)
    assert decided(effects) == [3]
    assert place(effects, Persist) < place(effects, Decide), "our own stamp is one of them"


def test_a_group_of_one_needs_nobody():
    host, envelope = Waiting("n6"), envelope_of(0, "c", coordinator="n6")
    effects = host.take(envelope)
    assert delivered(effects) == [("c", 0, envelope.header.id)]
    assert sent(effects, Decide) == proposed(effects) == []
    assert effects[0].barrier
    assert place(effects, Persist) == 0, "nothing leaves before the stamp is durable"


@pytest.mark.parametrize(("groups", "is_urgent"), [(("a",), False), (("a", "c"), True)])
def test_a_decision_is_urgent_if_a_group_without_a_replica_here_waits_for_it(groups, is_urgent):
    host, envelope = Waiting(), envelope_of(0, *groups)
    stamps = {"n2": 0, "n3": 0, "n6": 0} if "c" in groups else {"n2": 0, "n3": 0}
    effects = host.stamped(envelope, **stamps)
    assert [e.urgent for e in effects if isinstance(e, Send) and isinstance(e.message, Decide)] == [is_urgent]


# ------------------------------------------------------------------------------------------------------ waiting


def test_it_waits_for_the_last_stamp_and_proposes_without_it_in_the_end():
    host, envelope = Waiting(), envelope_of(0, "a")
    effects = host.stamped(envelope, n2=5)
    assert is_waiting(effects)
    assert SetTimer("stamps", WAIT_S) in effects
    assert proposed(host.wait()) == [5]
    assert is_waiting(host.stamp("n3", envelope, 5)), "one proposal is enough, and it is under way"


def test_a_timer_for_one_envelope_does_not_cut_the_wait_for_another_short():
    host, first, second = Waiting(), envelope_of(0, "a"), envelope_of(1, "a")
    host.stamped(first, n2=5)
    host.now += WAIT_S / 2
    assert not any(isinstance(effect, SetTimer) for effect in host.stamped(second, n2=6)), "one timer serves both"
    effects = host.wait(WAIT_S / 2)
    assert [proposal.instance for proposal in handed(effects, Propose)] == [first.header.id]
    (timer,) = [effect for effect in effects if isinstance(effect, SetTimer)]
    assert timer.delay == pytest.approx(WAIT_S / 2)
    assert [p.instance for p in handed(host.wait(timer.delay), Propose)] == [second.header.id]


def test_a_decision_from_elsewhere_ends_the_wait():
    host, envelope = Waiting(), envelope_of(0, "a")
    host.stamped(envelope, n2=5)
    host.told("n3", envelope, 5)
    assert is_waiting(host.wait())
    assert is_waiting(host.stamp("n3", envelope, 5))


def test_who_does_not_coordinate_it_neither_decides_nor_waits():
    host, envelope = Waiting(), envelope_of(0, "a", coordinator="n2")
    effects = host.stamped(envelope, n2=5, n3=5)
    assert is_waiting(effects)
    assert not any(isinstance(effect, SetTimer) for effect in effects)


def test_a_late_replica_is_not_waited_for():
    host = Waiting()
    host.stamped(envelope_of(0, "a"), n2=5)
    host.wait()
    assert proposed(host.stamped(envelope_of(1, "a"), n2=6)) == [6]
    assert is_waiting(host.stamped(envelope_of(2, "a"), n3=7)), "n2 was in time"


@pytest.mark.parametrize("seconds", [0.0, WAIT_S / 2])
def test_a_late_replica_is_waited_for_again_when_it_stamps_as_soon_as_one_would_wait(seconds):
    host, envelope = Waiting(), envelope_of(1, "a")
    host.stamped(envelope_of(0, "a"), n2=5)
    host.wait()
    host.stamped(envelope, n2=6)
    host.now += seconds
    host.stamp("n3", envelope, 6)
    assert is_waiting(host.stamped(envelope_of(2, "a"), n2=7))


def test_a_late_replica_that_stamps_later_than_one_would_wait_stays_late():
    """Though before the decision: or every envelope would wait for nothing."""
    host, envelope = Waiting(), envelope_of(1, "a")
    host.stamped(envelope_of(0, "a"), n2=5)
    host.wait()
    host.stamped(envelope, n2=6)
    host.wait()
    host.stamp("n3", envelope, 6)
    assert proposed(host.stamped(envelope_of(2, "a"), n2=7)) == [7]


def test_a_late_replica_that_was_among_the_first_is_waited_for_again():
    host = Waiting()
    host.stamped(envelope_of(0, "a"), n2=5)
    host.wait()
    host.stamped(envelope_of(1, "a"), n3=6, n2=6)
    assert is_waiting(host.stamped(envelope_of(2, "a"), n2=7))


# ------------------------------------------------------------------------------------- whoever has to find out


def test_a_takeover_gets_to_the_same_number_from_any_quorum():
    for source in ("n2", "n3"):
        host, envelope = Waiting(), envelope_of(0, "a", coordinator="n3")
        host.stamped(envelope, **{source: 7})  # all stamps: 0 of n1, 7 of n2 and n3
        assert proposed(host.tick(SILENCE_S)) == [7]


def test_in_its_next_life_the_coordinator_asks_the_acceptors_for_the_same_number():
    host, envelope = Waiting(), envelope_of(0, "a")
    assert decided(host.stamped(envelope, n2=7, n3=7)) == [7]
    host.restart()
    assert is_waiting(host.stamp("n2", envelope, 7))
    assert is_waiting(host.stamp("n3", envelope, 7))
    assert proposed(host.tick(SILENCE_S)) == [7]


def test_nothing_is_proposed_for_an_envelope_one_of_whose_groups_is_gone():
    """That group's stamps may be what implied the number; others know it."""
    host, envelope = Waiting(), envelope_of(0, "a", "c")
    host.stamped(envelope, n2=0, n6=9)
    host.step(ViewChanged, view_of({name: replicas for name, replicas in GROUPS.items() if name != "c"}))
    assert is_waiting(host.wait())
    assert is_waiting(host.stamp("n3", envelope, 0))
    effects = host.tick(SILENCE_S)
    assert proposed(effects) == [None], "only to find out what was decided"
    assert any(stamp.ask for stamp in sent(effects, RecTs))


# ------------------------------------------------------------------------------- the replica beside the gateway


def test_the_replica_beside_the_gateway_is_told_the_entry_at_once_behind_the_sync():
    host, envelope = Waiting(), envelope_of(0, "a", coordinator="n2", gateway="n2")
    host.connect("n2")
    effects = host.take(envelope, "n2")
    (gossip,) = told_in(effects, "n2")
    assert [(entry.id, entry.rec_ts) for entry in gossip.entries] == [(envelope.header.id, 0)]
    assert place(effects, Persist) < place(effects, Gossip)
    assert told_in(effects, "n3") == [], "it is not known to hold it"


def test_another_life_of_the_gateways_process_is_not_told_the_entry():
    host, envelope = Waiting(), envelope_of(0, "a", coordinator="n2", gateway="n2")
    host.connect("n2")
    host.take(envelope, "n2")
    host.connect("n2", LIVES["n2"] + 100)  # it may have lost the envelope, and what it was told
    ask = GossipAsk(group="a", configuration=CONFIGURATION)
    (gossip,) = told_in(host.receive("n2", ask), "n2")
    assert (gossip.clock, list(gossip.entries)) == (0, [])
    (gossip,) = told_in(host.stamp("n2", envelope, 0), "n2")
    assert [entry.id for entry in gossip.entries] == [envelope.header.id], "now it holds it durably"


def test_a_stamp_is_urgent_for_the_coordinator_and_the_coordinators_own_for_all_who_gossip_by_it():
    def urgent_for(coordinator: str, gateway: str) -> list[str]:
        host = Waiting()
        effects = host.take(envelope_of(0, "a", coordinator=coordinator, gateway=gateway), gateway)
        stamps = [e for e in effects if isinstance(e, Send) and isinstance(e.message, RecTs)]
        return [to for send in stamps if send.urgent for to in send.to]

    assert urgent_for("n2", "g1") == ["n2"]
    assert urgent_for("n1", "g1") == ["n2", "n3"]
    assert urgent_for("n1", "n1") == [], "who hears from it by the envelope itself gossips without it"
