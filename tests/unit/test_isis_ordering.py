"""The token holder's order: when it places, when it tells, and how the token moves."""

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.protocols.isis import past
from ordercast.v1.isis_pb2 import Cast, CastKey, SetsOrder
from tests.unit.isis_host import Company

#: n3 has the token.
ONE = {"a": "n1 n2 n3"}


def orders(company: Company, source: str, to: str) -> list[tuple[int, list[tuple[int, int]]]]:
    """(first position, keys) of what is on its way."""
    found = company.on_the_way(source, to, SetsOrder)
    return [(one.first_position, [(key.member, key.number) for key in one.keys]) for one in found]


def order(first: int, *keys: tuple[int, int], **fields: int) -> SetsOrder:
    listed = [CastKey(member=member, number=number) for member, number in keys]
    return SetsOrder(group="a", view=1, first_position=first, keys=listed, **{"holder": 2, **fields})


def test_the_holder_places_what_it_delivers_in_that_order_cbcasts_too():
    company = Company(ONE)
    company.hold("n3", "n1")
    company.hold("n1", "n2", "n3")
    company.cast("n1", "a", "m1")
    company.cast("n2", "a", "m2", total=True)
    company.release("n1", "n3")
    assert orders(company, "n3", "n1") == [(0, [(1, 1)]), (1, [(0, 1)])]


def test_nobody_else_places_anything():
    company = Company(ONE)
    company.hold("n1", "n3")
    company.hold("n2", "n3")
    company.cast("n1", "a", "m1")
    company.cast("n2", "a", "m2")
    assert company.live("n1") == company.live("n2") == "m1 m2"
    assert company.era("n1").places == company.era("n2").places == {}


def test_one_message_tells_as_many_places_as_the_batch_has():
    company = Company(ONE, order_batch=3)
    company.hold("n3", "n1")
    for label in ("m1", "m2"):
        company.cast("n1", "a", label)
    assert orders(company, "n3", "n1") == []
    company.cast("n1", "a", "m3")
    assert orders(company, "n3", "n1") == [(0, [(0, 1), (0, 2), (0, 3)])]


def test_a_batch_that_is_not_full_is_told_after_a_while():
    company = Company(ONE, order_batch=3)
    company.hold("n3", "n1")
    company.cast("n1", "a", "m1")
    company.wait()
    assert orders(company, "n3", "n1") == [(0, [(0, 1)])]


def test_a_batch_is_told_before_the_holder_casts():
    """5.2 step 3: nobody may hear of what follows an order before the order."""
    company = Company(ONE, order_batch=3)
    company.hold("n3", "n1")
    company.cast("n1", "a", "m1")
    company.cast("n3", "a", "m2")
    said = [type(one).__name__ for one in company.on_the_way("n3", "n1") if isinstance(one, SetsOrder | Cast)]
    assert said == ["SetsOrder", "Cast"]


def test_the_holders_own_cast_carries_its_place_and_needs_no_order():
    company = Company(ONE)
    company.hold("n3", "n1")
    company.cast("n3", "a", "m1", total=True)
    (cast,) = company.on_the_way("n3", "n1", Cast)
    assert (cast.HasField("position"), cast.position) == (True, 0)
    assert orders(company, "n3", "n1") == []


def test_the_holders_own_cast_carries_no_place_that_it_cannot_deliver_at():
    """n3 lacks what its client has read elsewhere: its cast has a place when it is delivered, and no sooner."""
    company = Company({"a": "n1 n2 n3", "b": "n3 n4 n5"})
    company.hold("n4", "n3")
    company.cast("n4", "b", "m1")
    company.wait()
    company.cast("n3", "a", "m2", seen=past.seen_from(company.machine("n4").known, 0))
    assert (company.era("n3").sent, company.era("n3").ordered) == (1, 0)
    company.release("n4", "n3")
    assert company.era("n3").ordered == 1


def test_a_place_that_contradicts_what_is_known_is_refused():
    company = Company(ONE)
    company.cast("n1", "a", "m1")
    company.hold("n1", "n3")
    company.hold("n2", "n3")
    company.cast("n1", "a", "m2")
    for wrong in (order(0, (0, 2)), order(1, (0, 1)), order(1, (0, 2), (0, 2)), order(1, (0, 2), holder=3)):
        with pytest.raises(RemoteProtocolError):
            company.say("n3", "n2", wrong)
    assert company.era("n2").places.get(1) is None


def test_an_order_may_come_before_its_casts_and_with_a_gap():
    company = Company(ONE)
    company.hold("n1", "n2")
    company.cast("n1", "a", "m1")
    assert company.era("n2").ordered == 1
    company.say("n3", "n2", order(2, (2, 1)))
    assert company.era("n2").ordered == 1, "what is at 1 is not known"


def test_an_order_that_is_told_again_changes_nothing():
    company = Company(ONE)
    company.cast("n1", "a", "m1")
    before = dict(company.era("n2").places)
    company.say("n3", "n2", order(0, (0, 1)))
    assert company.era("n2").places == before


# ---------------------------------------------------------------------------------------------- the token


def test_the_token_goes_to_whoever_casts_most():
    company = Company(ONE, order_batch=4, token_window=4)
    for label in ("m1", "m2", "m3"):
        company.cast("n1", "a", label)
    company.cast("n2", "a", "m4")
    tokens = [company.era(name).token for name in company.members]
    assert [(token.holder, token.turn, token.since) for token in tokens] == [(0, 1, 4)] * 3


def test_the_token_stays_where_nobody_casts_most():
    company = Company(ONE, order_batch=4, token_window=4)
    for number, name in enumerate(("n1", "n2", "n1", "n2")):
        company.cast(name, "a", f"m{number}")
    assert company.era("n3").token.turn == 0


def test_a_new_holder_places_its_queue_when_all_before_its_turn_is_delivered():
    """n1 has the token from 1 on, has delivered m2 and m3, and lacks m1, which is at 0."""
    company = Company(ONE)
    company.hold("n2", "n1")
    company.cast("n2", "a", "m1")
    company.hold("n1", "n3")
    company.say("n3", "n1", order(0, (1, 1), holder=0, turn=1, since=1))
    company.cast("n1", "a", "m2")
    company.cast("n1", "a", "m3")
    assert company.live("n1") == "m2 m3"
    assert not company.era("n1").is_holder
    assert company.era("n1").places == {0: (1, 1)}
    company.release("n2", "n1")
    assert company.era("n1").is_holder
    assert company.era("n1").place_of == {(1, 1): 0, (0, 1): 1, (0, 2): 2}


def test_a_token_of_an_earlier_turn_is_nobodys():
    company = Company(ONE)
    company.say("n3", "n1", order(0, holder=0, turn=2, since=0))
    company.say("n3", "n1", order(0, holder=1, turn=1, since=0))
    assert company.era("n1").token.holder == 0


def test_whoever_has_given_the_token_away_places_nothing_more():
    company = Company(ONE, token_window=1)
    company.cast("n1", "a", "m1")
    assert company.era("n3").token.holder == 0
    company.hold("n1", "n2", "n3")
    company.hold("n2", "n1")
    company.cast("n2", "a", "m2")
    assert company.live("n3") == "m1 m2"
    assert company.era("n3").ordered == 1


# ---------------------------------------------------------------------------------- connections and views


def test_a_new_connection_brings_places_that_were_lost_whoever_made_them():
    company = Company(ONE)
    company.hold("n3", "n2")
    company.cast("n1", "a", "m1", total=True)
    company.reconnect("n1", "n2")
    assert company.live("n2") == "m1", "n1 has heard it from n3"


def test_a_holder_that_has_heard_of_a_later_view_places_nothing_more():
    """What it placed now would be in no contribution."""
    company = Company(ONE)
    company.define("a", "n1 n2 n3", told="n3")
    company.cast("n1", "a", "m1", total=True)
    era = company.replica("n3").ending
    assert era is not None
    assert (era.is_holder, era.places) == (False, {})


def test_in_the_next_view_places_go_on_and_the_token_is_elsewhere():
    company = Company(ONE)
    company.cast("n1", "a", "m1")
    company.change("a", "n1 n2 n3")
    assert {company.era(name).ordered for name in company.members} == {1}
    assert company.holder("a") == "n1"
    company.cast("n2", "a", "m2", total=True)
    company.wait()
    assert [company.log(name) for name in company.members] == ["m1 m2"] * 3


def test_receipts_come_from_the_holder_and_name_the_place():
    company = Company(ONE)
    company.cast("n1", "a", "m1")
    assert company.receipts == [("a", "m1")]
    assert [one[:2] for one in company.history if one[0] == "receipt"] == [("receipt", "n3")]
