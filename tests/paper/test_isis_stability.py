"""[BSS91] 5.3, rule by rule: who is known to have a multicast, and what is kept until all have it.

Ours is about disks, where the paper's is about receipts: a row says what its sender has synced, of everybody's
casts and of the order.
"""

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import TimerFired
from ordercast.protocols.isis import records
from ordercast.protocols.isis.protocol import ISIS
from ordercast.protocols.isis.stability import STABILITY_TIMER
from ordercast.v1.isis_pb2 import Cast, Stability, SyncedRow
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse
from tests.unit.isis_host import Company

#: n3 has the token.
ONE = {"a": "n1 n2 n3"}


def rows(company: Company, source: str, to: str) -> list[list[int]]:
    return [list(message.row.counts) for message in company.on_the_way(source, to, Stability)]


def test_5_3_a_cast_is_k_stable_when_it_is_known_to_be_on_k_disks() -> None:
    company = Company(ONE)
    company.slow_disk("n2")
    company.slow_disk("n3")
    company.cast("n1", "a", "m1")
    assert company.live("n2") == company.live("n3") == "m1", "delivered, and not on disk"
    assert company.era("n1").synced_by((0, 1)) == 1
    company.sync("n2")
    assert company.era("n1").synced_by((0, 1)) == 2
    company.sync("n3")
    assert company.era("n1").synced_by((0, 1)) == 3


def test_a_description_of_the_log_says_which_casts_of_the_installed_view_are_in_it() -> None:
    company = Company(ONE)
    company.cast("n1", "a", "m1")
    company.cast("n2", "a", "m2")
    found = DescribeReplicaResponse(position=2)
    company.machine("n3").describe("a", found)
    assert ISIS.causal is not None
    there = ISIS.causal.in_log("a", found.protocol)
    assert there is not None
    assert (there.view, there.counts) == (1, {0: 1, 1: 1})
    assert [(fact.name, fact.value) for fact in found.facts] == [("installed", "1"), ("token", "n3")]
    assert (found.orderer, found.facts_number) == ("n3", 1)
    assert ISIS.causal.in_log("a", b"") is None
    with pytest.raises(RemoteProtocolError):
        ISIS.causal.in_log("a", b"\xff")


def test_5_3_a_process_says_what_it_has_only_when_its_disk_has_it() -> None:
    company = Company(ONE)
    company.hold("n2", "n1")
    company.slow_disk("n2")
    company.cast("n1", "a", "m1")
    company.wait()
    assert rows(company, "n2", "n1") == []
    company.sync("n2")
    assert rows(company, "n2", "n1")[-1] == [1, 0, 0]


def test_5_3_the_caster_and_the_token_holder_hear_at_once() -> None:
    """Receipts wait for those two. Nobody else is in a hurry."""
    company = Company({"a": "n1 n2 n3 n4"})
    assert company.holder("a") == "n2"
    for to in ("n1", "n2", "n4"):
        company.hold("n3", to)
    company.cast("n1", "a", "m1")
    assert rows(company, "n3", "n1")
    assert rows(company, "n3", "n2")
    assert not rows(company, "n3", "n4")


def test_5_3_what_is_stable_travels_with_the_next_cast() -> None:
    """n4 is in no hurry to hear what n3 has on disk, and hears it all the same."""
    company = Company({"a": "n1 n2 n3 n4"})
    company.cast("n1", "a", "m1")
    assert company.era("n4").rows[2].counts == [0, 0, 0, 0]
    company.hold("n3", "n4")
    company.cast("n3", "a", "m2")
    (cast,) = company.on_the_way("n3", "n4", Cast)
    assert (list(cast.row.counts), cast.row.positions) == ([1, 0, 0, 0], 1)
    company.arrive("n3", "n4")
    assert company.era("n4").rows[2].counts == [1, 0, 0, 0]


def test_5_3_who_has_nothing_to_cast_says_it_after_a_while_and_only_if_it_is_news() -> None:
    company = Company({"a": "n1 n2 n3 n4"})
    company.cast("n1", "a", "m1")
    company.hold("n3", "n4")
    company.wait()
    assert rows(company, "n3", "n4") == [[1, 0, 0, 0]]
    company.lose("n3", "n4")
    company.step("n3", TimerFired, STABILITY_TIMER, 0)
    assert rows(company, "n3", "n4") == []


def test_5_3_rows_only_rise_so_a_late_one_does_no_harm() -> None:
    company = Company(ONE)
    company.cast("n1", "a", "m1")
    late = company.era("n1").rows[1].message()
    company.cast("n1", "a", "m2")
    company.slow_disk("n3")
    company.cast("n1", "a", "m3")
    before = company.era("n1").synced_by((0, 3))
    company.say("n2", "n1", Stability(group="a", view=1, row=late))
    assert company.era("n1").synced_by((0, 3)) == before == 2


def test_5_3_buffers_are_freed_when_all_have_it_and_not_before() -> None:
    company = Company(ONE)
    company.slow_disk("n3")
    company.cast("n1", "a", "m1")
    company.wait()
    assert all(company.machine(name).buffers()["casts"] == 1 for name in company.members)
    company.sync("n3")
    company.wait()
    for name, member in company.members.items():
        buffers = company.machine(name).buffers()
        assert (buffers["casts"], buffers["places"]) == (0, 0), name
        assert not [key for key in member.disk if key[:1] in (records.CAST, records.ORDER)], name
        assert company.log(name) == "m1", "the log keeps it"


def test_5_3_a_cast_that_all_have_is_kept_until_all_have_its_place() -> None:
    """Ours: the order is as much a part of the log as the casts."""
    company = Company(ONE)
    company.hold("n3", "n2")
    company.cast("n1", "a", "m1")
    company.wait()
    era = company.era("n1")
    assert era.synced_by((0, 1)) == 3
    assert era.placed_by(0) == 2
    assert (0, 1) in era.casts
    company.release("n3", "n2")
    company.wait()
    assert company.era("n1").casts == {}


def test_5_3_what_is_stable_is_kept_by_whoever_has_not_delivered_it() -> None:
    """m2 has a place and is on every disk. n3 lacks m1, of the other group, which precedes it."""
    company = Company({"a": "n1 n2 n3 n4", "b": "n1 n3 n4"}, k_stability="1")
    assert company.holder("a") == "n2"
    company.hold("n1", "n3")
    company.cast("n1", "b", "m1")
    company.cast("n4", "a", "m2")
    company.wait()
    company.held.pop(("n1", "n3"))
    company.lose("n1", "n3")
    company.cast("n1", "a", "m3")
    company.wait()
    assert company.live("n3") == ""
    assert company.era("n3").is_everywhere(0)
    assert (3, 1) in company.era("n3").casts
    company.reconnect("n1", "n3")
    company.wait()
    assert company.live("n3") == "m1 m2 m3"
    assert company.era("n3").casts == {}


def test_5_3_nobody_is_believed_to_have_what_was_not_sent() -> None:
    """Or it would count as stable as soon as it is cast."""
    company = Company(ONE)
    company.cast("n1", "a", "m1")
    with pytest.raises(RemoteProtocolError):
        company.say("n2", "n1", Stability(group="a", view=1, row=SyncedRow(counts=[2, 0, 0], positions=1)))
    company.hold("n1", "n2", "n3")
    company.cast("n1", "a", "m2")
    assert company.era("n1").synced_by((0, 2)) == 1
