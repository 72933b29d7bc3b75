"""Addresses, views, rumours, delivery and recovery; and that the stripped leaves of the large audience are real
ones.
"""

from itertools import product
from random import Random

import pytest

from ordercast.core.machine import Receive, Send, Start, TimerFired
from ordercast.protocols.apbcast.address import check_address, common_level, component, subgroup
from ordercast.protocols.apbcast.delivery import Exact, Interested, Live
from ordercast.protocols.apbcast.dice import Dice
from ordercast.protocols.apbcast.election import elect
from ordercast.protocols.apbcast.events import Given, Handed
from ordercast.protocols.apbcast.leaf import GOSSIP, Leaf
from ordercast.protocols.apbcast.recovery import RANGE_MAX, Recovery
from ordercast.protocols.apbcast.rumours import Rumours
from ordercast.protocols.apbcast.settings import Leaves, Rounds, Settings
from ordercast.protocols.apbcast.views import Views, union
from ordercast.sim.apbcast.audience import Point, Subdivision, known_of, measure, messages_of, reach_of, rounds_of
from ordercast.sim.apbcast.papers import (
    KINDS,
    broadcasts,
    curve,
    known_by_one,
    known_rows,
    message_rows,
    reach_rows,
    round_rows,
)
from ordercast.v1.apbcast_pb2 import (
    Head,
    Neighbour,
    Numbered,
    PlaceInGroup,
    Publication,
    RumourGossip,
)


def item(mseq, **places):
    found = [PlaceInGroup(group=group, offset=offset) for group, offset in places.items()]
    return Numbered(mseq=mseq, cast=Publication(groups=sorted(places)), places=found)


def told(address, counter, process="q", incarnation=1, **more):
    return Neighbour(process=process, address=address, incarnation=incarnation, counter=counter, **more)


# ------------------------------------------------------------------------------------------------ subdivision


def test_a_subgroup_of_a_level_shares_what_is_before_it():
    address = (4, 2, 7)
    assert [subgroup(address, k) for k in (1, 2, 3)] == [(4, 2), (4,), ()]
    assert [component(address, k) for k in (1, 2, 3)] == [7, 2, 4]
    assert [common_level(address, other) for other in ((4, 2, 7), (4, 2, 1), (4, 1, 7), (1, 2, 7))] == [0, 1, 2, 3]


@pytest.mark.parametrize("address", [(1, 2), (1, 2, 3, 4), (1, 2, -1), (1, 2, 2**20)])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(ValueError, match="address"):
        check_address(address, 3)


def test_elected_are_the_first_of_each_part_and_then_the_second_and_r_of_them():
    parts = {0: [(0, 0, 2), (0, 0, 1)], 1: [(0, 1, 5)], 2: [(0, 2, 3), (0, 2, 4)]}
    assert elect(parts, 3) == [(0, 0, 1), (0, 1, 5), (0, 2, 3)]
    assert elect(parts, 4) == [(0, 0, 1), (0, 0, 2), (0, 1, 5), (0, 2, 3)]
    assert len(elect(parts, 9)) == 5, "it ends with fewer than R candidates, and takes them all"


def test_a_process_knows_its_neighbours_and_r_of_every_other_part():
    for parts in (11, 20):
        point = Point(parts=parts)
        assert known_by_one(point) == known_of(point)
    assert known_of(Point(parts=22)) == 148


def test_a_rank_is_the_highest_level_at_which_a_process_appears():
    everyone = [told(a, 1) for a in product(range(3), repeat=3)]
    ranks = {}
    for address in ((0, 0, 0), (0, 2, 0), (0, 0, 2)):
        views = Views("p", address, 2)
        views.merge(everyone, 0.0)
        ranks[address] = views.rank()
    assert ranks == {(0, 0, 0): 3, (0, 2, 0): 2, (0, 0, 2): 1}


def test_the_later_word_about_a_process_counts_and_a_tombstone_is_not_revived():
    views = Views("p", (0, 0, 0), 3)
    views.merge([told((0, 0, 1), 5)], 1.0)
    views.merge([told((0, 0, 1), 4)], 2.0)
    assert views.members[0, 0, 1].stamp == (1, 5)
    views.monitor(9.0, suspect_s=1.0, tombstone_s=10.0)
    assert (0, 0, 1) not in views.members
    views.merge([told((0, 0, 1), 5)], 9.5)
    assert (0, 0, 1) not in views.members, "somebody who has not noticed yet"
    views.merge([told((0, 0, 1), 6)], 9.6)
    assert (0, 0, 1) in views.members
    views.merge([told((0, 0, 1), 6, gone=True), told((0, 0, 1), 1, incarnation=2)], 9.7)
    assert views.members[0, 0, 1].stamp == (2, 1), "a later life is somebody else"


def test_tombstones_are_forgotten_and_told_to_neighbours():
    views = Views("p", (0, 0, 0), 3)
    views.merge([told((0, 0, 1), 5), told((0, 0, 2), 1)], 1.0)
    views.merge([told((0, 0, 1), 5, gone=True)], 1.1)
    assert [tuple(n.address) for n in views.tell((0, 0, 2)) if n.gone] == [(0, 0, 1)]
    views.monitor(30.0, suspect_s=100.0, tombstone_s=10.0)
    assert not views.tombstones


def test_a_representative_wants_what_those_below_it_want():
    assert union([("a",), ("b", "a")]) == ("a", "b")
    assert union([("a",), ()]) == ()
    assert union([tuple(f"g{i}" for i in range(65))]) == ()
    views = Views("p", (0, 0, 0), 3, ["a"])
    views.merge([told((0, 0, 1), 1, interest=["b"]), told((0, 1, 0), 1, interest=["c"])], 0.0)
    (own,) = [n for n in views.tell((1, 0, 0)) if tuple(n.address) == (0, 0, 0)]
    assert list(own.interest) == ["a", "b", "c"]


# ---------------------------------------------------------------------------------------------------- rumours


def rounds_of_one(kind, size=8):
    rumours = Rumours(Settings(rounds=kind, levels=2), lambda k: size)
    rumours.add(item(0), 1, 0)
    said, rounds = [], 0
    while len(rumours):
        told_now, finished = rumours.tell(lambda k, i: [(0, 1)], Dice(1))
        said += [behind for each in told_now for _, behind in each.rumours]
        rounds += 1
    return said, rounds, finished


def test_a_rumour_is_told_for_as_many_rounds_as_the_logarithm_says():
    said, rounds, finished = rounds_of_one(Rounds.BOUNDED)
    assert (said, rounds, len(finished)) == ([1, 2, 3], 4, 1)  # ln 8 = 2.08
    assert rounds_of_one(Rounds.FIGURE)[0] == [0, 1, 2]


def test_a_rumour_goes_down_a_level_when_it_was_told_enough():
    rumours = Rumours(Settings(), lambda k: 2)
    rumours.add(item(0), 2, 5)
    told_now, _ = rumours.tell(lambda k, i: [(0, 0, k)], Dice(1))
    assert [each.level for each in told_now] == [1]


def test_dice_are_the_same_for_the_same_bits():
    assert [Dice(7).below(100) for _ in range(3)] == [Dice(7).below(100)] * 3
    some = Dice(9).some(list(range(50)), 5)
    assert len(set(some)) == 5
    assert Dice(9).some([1, 2], 3) == [1, 2]


# --------------------------------------------------------------------------------------------------- delivery


def test_an_exact_leaf_hands_over_without_a_gap_and_drops_the_highest():
    delivery = Exact(Settings(hold=2))
    for mseq in (3, 2, 1):
        delivery.take(item(mseq))
    assert (delivery.due(()), delivery.held(), delivery.missing(9)) == ([], 2, (0, 1))
    delivery.take(item(0))  # 2 goes: the lowest are needed first
    assert [each.mseq for each in delivery.due(())] == [0, 1]
    assert delivery.has_seen(item(1))
    assert delivery.missing(4) == (2, 2)


def test_a_live_leaf_skips_and_never_goes_back():
    delivery = Live(Settings())
    delivery.take(item(2))
    assert delivery.due([1]) == []
    assert [each.mseq for each in delivery.due([5])] == [2]
    assert delivery.has_seen(item(1))


def test_a_live_leaf_with_patience_waits_some_rounds():
    delivery = Live(Settings(patience_rounds=2))
    delivery.take(item(1))
    assert [len(delivery.due(())) for _ in range(3)] == [0, 0, 1]


def test_an_interest_is_complete_by_offsets_up_to_a_head():
    delivery = Interested(Settings(), ["x", "z"])
    delivery.take(item(100, x=0))
    assert delivery.due(()) == [], "something with a smaller number may still come, for z"
    delivery.learn(Head(mseq=101, offsets=[PlaceInGroup(group="x", offset=1), PlaceInGroup(group="z", offset=1)]))
    assert delivery.missing(0) == (0, 101)
    delivery.take(item(90, y=4, z=0))
    assert delivery.missing(0) is None, "numbers between are other groups'"
    assert [each.mseq for each in delivery.due(())] == [90, 100]


def test_a_message_for_two_groups_has_two_places_and_is_handed_over_once():
    delivery = Interested(Settings(), ["x", "y"])
    both = item(0, x=0, y=0)
    delivery.take(both)
    assert delivery.has_seen(both)
    delivery.learn(Head(mseq=1, offsets=[PlaceInGroup(group="x", offset=1), PlaceInGroup(group="y", offset=1)]))
    assert delivery.due(()) == [both]
    assert delivery.has_seen(both)


def test_who_lacks_something_asks_a_neighbour_then_somebody_above_then_a_root():
    views = Views("p", (0, 0, 0), 3)
    views.merge([told((0, 0, 1), 1, "near"), told((0, 1, 0), 1, "above"), told((1, 0, 0), 1, "far")], 0.0)
    recovery, asked, now = Recovery(Settings(missed_s=1.0)), [], 0.0
    assert recovery.look((5, 500), now, Dice(1)) is None, "it may be under way"
    for _ in range(4):
        now += 2.0
        question = recovery.look((5, 500), now, Dice(1))
        asked.append(recovery.whom(views, ["root"], Dice(1)))
        assert question == (5, RANGE_MAX)
    assert asked == ["near", "above", "root", "root"]
    assert recovery.look(None, now, Dice(1)) is None


# ------------------------------------------------------------------------------------- the large audience


class Whole:
    """A small subdivision of whole leaves, in the rounds of `Subdivision.broadcast`."""

    def __init__(self, point, bits):
        settings = Settings(representatives=point.representatives, fanout=point.fanout, rounds=point.rounds)
        live = {f: getattr(settings, f) for f in Settings.__dataclass_fields__} | {"leaves": Leaves.LIVE}
        self.bits, self.messages, self.round = bits, 0, 0
        self.addresses = list(product(range(point.parts), repeat=3))
        everyone = [told(a, 1, self.name(a)) for a in self.addresses]
        self.leaves = {a: Leaf(self.name(a), a, Settings(**live), (), from_start=True) for a in self.addresses}
        self.handed = []
        for leaf in self.leaves.values():
            leaf.step(Start(0.0, 0.0, 1, ()))
            leaf.views.merge(everyone, 0.0)
            leaf.connected = {self.name(a): 1 for a in self.addresses}

    @staticmethod
    def name(address):
        return "-".join(map(str, address))

    def broadcast(self, roots, number):
        for root in roots:
            self.leaves[root].step(Given(0.0, 0.0, (number,), 0))
        while any(len(leaf.rumours) for leaf in self.leaves.values()):
            self.round += 1
            sent = []
            for address, leaf in self.leaves.items():
                if len(leaf.rumours):
                    sent += self._tick(address, leaf)
            for to, gossip in sent:
                self.leaves[tuple(map(int, to.split("-")))].step(Receive(0.0, 0.0, "x", 1, gossip))

    def _tick(self, address, leaf):
        effects = leaf.step(TimerFired(0.0, 0.0, GOSSIP, self.bits(address, self.round)))
        self.handed += [address for effect in effects if isinstance(effect, Handed)]
        gossip = [e for e in effects if isinstance(e, Send) and isinstance(e.message, RumourGossip)]
        self.messages += sum(len(each.message.rumours) for each in gossip)
        return [(each.to[0], each.message) for each in gossip]


@pytest.mark.parametrize("kind", list(Rounds))
@pytest.mark.parametrize("seed", range(3))
def test_a_stripped_leaf_does_what_a_whole_one_does(kind, seed):
    point = Point(parts=4, representatives=2, fanout=2, rounds=kind, crashes=0.0, losses=0.0)

    def bits(address, number):
        return Random(f"{seed}/{address}/{number}").getrandbits(64)

    subdivision, whole = Subdivision(point), Whole(point, bits)
    stripped = subdivision.broadcast(Random(0), bits)
    whole.broadcast(subdivision.roots, item(0, g=0))
    assert (whole.messages, whole.round) == (stripped.messages, stripped.rounds)
    assert len(whole.handed) == round(stripped.reached * point.processes)


def test_the_analysis_is_the_papers():
    point = Point()
    assert round(reach_of(point), 3) == 0.986
    assert round(messages_of(point)) == 86637
    assert round(rounds_of(point), 2) == 7.09


def test_rounds_that_count_send_fewer_and_reach_fewer():
    figure, bounded = (measure(Point(parts=11, rounds=kind), 2) for kind in (Rounds.FIGURE, Rounds.BOUNDED))
    assert bounded.messages < figure.messages
    assert bounded.reached < figure.reached
    assert bounded.rounds <= rounds_of(bounded.point) + 3


def test_figures_stand_beside_the_analysis():
    told = []
    found = curve([(2, 2, 4), (3, 2, 4)], 2, lambda: told.append(None))
    assert len(told) == 2 * 2 * len(KINDS)
    for rows in (reach_rows("R", found), message_rows(found), round_rows(found)):
        assert len(rows) == 2 * len(KINDS)
        assert all(row.published and row.measured for row in rows)
    assert known_rows([4])[0].published == known_rows([4])[0].measured
    assert broadcasts(1) == 2 * (5 + 6 + 5)
