"""How a replica starts in a configuration: from what a majority of the one before had, or what a fellow has."""

from typing import Any

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, KEY_MIN
from ordercast.core.view import OtherConfiguration
from ordercast.v1.common_pb2 import Envelope, Header
from ordercast.v1.scalatom_pb2 import HandedOver, HandOver, HandOverAsk, HistoryEntry, RecTs
from ordercast.v1.sequencer_pb2 import EnvelopeDelivered, FetchLog
from tests.unit.driving import (
    delivered,
    destinations,
    edited,
    envelope_of,
    sends,
    sent,
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
)
from tests.unit.scalatom_host import SILENCE_S, Host, chunk_of, log_entry, told_in

# ---------------------------------------------------------------------------------------------------------- asking


def test_a_newcomer_asks_the_sealed_and_its_fellows_and_who_was_there_asks_itself_too():
    for name, asked in (("n6", ["n1", "n2", "n3"]), ("n1", ["n1", "n2", "n3", "n6"])):
        host = Host(name)
        assert [(to, ask) for to, ask in sends(host.change(SECOND), HandOverAsk)] == [
            ([other], HandOverAsk(group="a", configuration=2)) for other in asked
        ]


def test_it_asks_again_those_who_have_not_answered():
    host = newcomer()
    host.receive("n2", hand_over(clock=4))
    assert sends(host.tick(SILENCE_S / 2), HandOverAsk) == []
    assert [to for to, _ in sends(host.tick(SILENCE_S), HandOverAsk)] == [["n1"], ["n3"]]


def test_after_the_configuration_before_is_over_it_asks_its_fellows_alone():
    host = Host("n6", view=without_previous(SECOND, "a", "n6"))
    assert [to for to, _ in sends(host.tick(SILENCE_S), HandOverAsk)] == [["n1"], ["n2"]]


def test_the_rest_is_asked_for_as_parts_come():
    host = newcomer()
    effects = host.receive("n2", hand_over(open_(ONE, 3), clock=9, more=True))
    assert sends(effects, HandOverAsk) == [(["n2"], HandOverAsk(group="a", configuration=2, after=ONE.header.id))]
    assert sends(host.receive("n2", hand_over(open_(TWO, 5), clock=9, after=ONE.header.id)), HandOverAsk) == []
    host.receive("n3", hand_over(clock=2))
    assert sorted(host.machine.held) == [ONE.header.id, TWO.header.id]


def test_a_conversation_that_was_interrupted_goes_on_where_it_was():
    host = newcomer()
    host.receive("n2", hand_over(open_(ONE, 3), clock=9, more=True))
    host.connect("n2")
    asks = {to[0]: ask.after for to, ask in sends(host.tick(SILENCE_S), HandOverAsk)}
    assert asks == {"n1": b"", "n2": ONE.header.id, "n3": b""}


def test_a_part_that_does_not_follow_is_asked_for_again():
    host = newcomer()
    host.receive("n2", hand_over(open_(ONE, 3), clock=9, more=True))
    for message in (
        hand_over(open_(ONE, 3), clock=9, more=True),
        hand_over(open_(BOTH, 7), clock=9, after=TWO.header.id),
    ):
        assert [ask.after for ask in sent(host.receive("n2", message), HandOverAsk)] == [ONE.header.id]
    host.receive("n2", hand_over(open_(TWO, 5), clock=9, after=ONE.header.id))
    host.receive("n3", hand_over())
    assert sorted(host.machine.held) == [ONE.header.id, TWO.header.id]


def test_who_is_lost_asks_nobody():
    host = Host()
    host.change(edited(SECOND, "a", lost="n1", starting="n2 n6"))
    assert sent(host.tick(SILENCE_S), HandOverAsk) == []
    with pytest.raises(OtherConfiguration):
        host.take(envelope_of(1, "a", coordinator="n2", configuration=2))


# ---------------------------------------------------------------------------------------------------------- enough


def test_one_of_three_is_not_enough_and_two_are():
    host = newcomer()
    host.receive("n2", hand_over(clock=4))
    host.receive("n2", hand_over(clock=4))
    assert not host.replica().is_active
    host.receive("n3", hand_over(clock=2))
    assert host.replica().is_active


def test_a_part_without_its_end_does_not_count():
    host = newcomer()
    host.receive("n2", hand_over(open_(ONE, 3), clock=4, more=True))
    host.receive("n3", hand_over(clock=2))
    assert not host.replica().is_active
    host.receive("n2", hand_over(clock=4, after=ONE.header.id))
    assert host.replica().is_active


def test_who_never_started_there_counts_but_one_who_did_is_needed():
    """n1 and n3 never started in the configuration before: what n2 has is all there is."""
    host = newcomer()
    for idle in ("n1", "n3"):
        host.receive(idle, hand_over(idle=True))
    assert not host.replica().is_active
    effects = host.receive("n2", hand_over(open_(ONE, 3), clock=9))
    assert stamps(effects, ONE) == {"a": 3}, "everyone who was there has stamped it"


def test_what_a_fellow_started_from_is_enough_by_itself():
    host = newcomer()
    effects = host.receive("n1", hand_over(open_(ONE, 6, entry=2), clock=30, whole=True))
    assert host.replica().is_active
    assert stamps(effects, ONE) == {"a": 6}
    assert host.replica().history.entry(ONE.header.id) == 2
    assert host.next_stamp() == 30


def test_a_fellow_that_has_started_since_it_was_asked_begins_again_with_the_whole():
    host = newcomer()
    host.receive("n2", hand_over(open_(ONE, 3), clock=9, more=True))
    effects = host.receive("n2", hand_over(open_(TWO, 5), clock=20, whole=True, after=ONE.header.id))
    assert [ask.after for ask in sent(effects, HandOverAsk)] == [b""], "the second part of another thing"
    host.receive("n2", hand_over(open_(ONE, 4), open_(TWO, 5), clock=20, whole=True))
    assert host.replica().is_active
    assert sorted(host.machine.held) == [ONE.header.id, TWO.header.id]


def test_it_starts_with_a_log_as_long_as_the_longest():
    host = newcomer()
    host.receive("n2", hand_over(clock=9, position=2))
    effects = host.receive("n3", hand_over(clock=4, position=1))
    assert not host.replica().is_active
    assert sends(effects, FetchLog) == [(["n2"], FetchLog(group="a", configuration=2, position=0))]
    host.receive("n3", chunk_of(log_entry(4, ONE), configuration=2))
    assert not host.replica().is_active
    effects = host.receive("n2", chunk_of(log_entry(7, TWO), position=1, configuration=2))
    assert host.replica().is_active
    assert host.next_stamp() == 9


@pytest.mark.parametrize("whole", [False, True])
def test_who_has_a_longer_log_is_not_waited_for_if_the_rest_are_a_majority(whole):
    """n2 is gone before it has sent its log. What it said is left out, its clock too."""
    host = newcomer()
    host.receive("n2", hand_over(clock=900, position=1, whole=whole))
    host.receive("n3", hand_over(open_(ONE, 3), clock=4))
    assert not host.replica().is_active
    effects = host.receive("n1", hand_over(open_(ONE, 5), clock=9))
    assert host.replica().is_active
    assert stamps(effects, ONE) == {"a": 5}
    assert host.next_stamp() == 9


def test_of_what_fellows_started_from_it_takes_one_whose_log_it_has():
    host = newcomer()
    host.receive("n1", hand_over(clock=900, position=1, whole=True))
    assert not host.replica().is_active
    host.receive("n2", hand_over(clock=9, whole=True))
    assert host.replica().is_active
    assert host.next_stamp() == 9


def test_who_never_started_there_and_a_log_that_is_not_reached_are_not_enough():
    """n1 and n3 are a majority, but only n2 had started: it is waited for, with its log."""
    host = newcomer()
    host.receive("n2", hand_over(clock=9, position=1))
    for idle in ("n1", "n3"):
        host.receive(idle, hand_over(idle=True))
    assert not host.replica().is_active
    host.receive("n2", chunk_of(log_entry(4, ONE), configuration=2))
    assert host.replica().is_active


@pytest.mark.parametrize("whole", [False, True])
def test_a_fellows_log_counts_too(whole):
    host = newcomer()
    host.receive("n1", hand_over(clock=9, position=1, whole=whole))
    host.receive("n2", hand_over(clock=9))
    assert not host.replica().is_active
    host.receive("n1", chunk_of(log_entry(4, ONE), configuration=2))
    assert host.replica().is_active


def test_a_hand_over_after_it_has_started_changes_nothing():
    host = newcomer()
    start(host, hand_over(open_(ONE, 3), clock=9), hand_over(clock=4))
    before = host.machine.buffers()
    assert host.receive("n1", hand_over(open_(TWO, 6), clock=900)) == []
    assert host.machine.buffers() == before
    assert host.next_stamp() < 900


# ------------------------------------------------------------------------------------------------------- the start


def test_it_begins_above_the_highest_sealed_clock():
    host = newcomer()
    start(host, hand_over(clock=40), hand_over(clock=90))
    assert host.next_stamp() == 90


def test_it_begins_above_every_number_that_is_handed_over_or_in_its_log():
    for is_in_log in (False, True):
        host = newcomer()
        if is_in_log:
            host.receive("n1", chunk_of(log_entry(200, TWO), configuration=2))
        first = open_(ONE, 3) if is_in_log else open_(ONE, 3, sn=200)
        start(host, hand_over(first, clock=9), hand_over(clock=4))
        assert host.next_stamp() > 200


def test_it_begins_above_every_number_of_what_it_holds():
    host = Host()
    host.take(ONE)
    host.change(SECOND)
    host.told("n2", ONE, 200)
    start(host, hand_over(open_(ONE, 3), clock=9), hand_over(clock=4))
    assert host.next_stamp() > 200


def test_it_begins_above_a_number_that_it_heard_of_before_the_envelope_was_handed_over():
    host = newcomer()
    host.told("n1", ONE, 200)
    start(host, hand_over(open_(ONE, 3), clock=9), hand_over(clock=4))
    assert host.next_stamp() > 200


def test_an_envelope_that_all_sealed_had_stamped_keeps_the_highest_stamp():
    host = newcomer()
    effects = start(host, hand_over(open_(ONE, 3), clock=20), hand_over(open_(ONE, 8), clock=30))
    assert stamps(effects, ONE) == {"a": 8}
    assert host.next_stamp() == 30


def test_an_envelope_that_not_all_had_stamped_gets_a_fresh_stamp():
    """n3 may have told a clock of 29 without it, and somebody delivered by that."""
    host = newcomer()
    effects = start(host, hand_over(open_(ONE, 3), clock=20), hand_over(clock=30))
    assert stamps(effects, ONE) == {"a": 30}
    assert host.next_stamp() == 31


def test_fresh_stamps_are_above_what_the_session_has_seen():
    host, envelope = newcomer(), envelope_of(4, "a", session=70)
    effects = start(host, hand_over(open_(envelope, 3), clock=20), hand_over(clock=30))
    assert stamps(effects, envelope) == {"a": 71}


def test_the_lowest_entry_that_anyone_gave_is_kept():
    """Where it was decided, by whomever, it was at or above that."""
    for first, second in ((open_(ONE, 5, entry=2), open_(ONE, 8)), (open_(ONE, 8), open_(ONE, 5, entry=2))):
        host = newcomer()
        start(host, hand_over(first, clock=20), hand_over(second, clock=30))
        assert host.replica().history.entry(ONE.header.id) == 2
        assert host.replica().unresolved == {ONE.header.id: 2}
        effects = host.receive("n1", RecTs(id=ONE.header.id, rec_ts=8, groups=destinations("a", configuration=2)))
        assert entries(effects, "n1") == [(2, ONE.header.id)]


def test_an_entry_of_somebody_who_stamped_it_alone_is_kept_beside_the_fresh_stamp():
    host = newcomer()
    effects = start(host, hand_over(open_(ONE, 3), clock=20), hand_over(clock=30))
    assert stamps(effects, ONE) == {"a": 30}
    assert host.replica().history.entry(ONE.header.id) == 3


def test_nothing_is_delivered_past_what_was_handed_over_undecided():
    host = newcomer()
    start(host, hand_over(open_(ONE, 3), clock=20), hand_over(clock=30))
    later = envelope_of(9, "a", coordinator="n1", configuration=2)
    host.take(later)
    host.told("n1", later, 50)
    assert delivered(host.gossip("n1", 60, base=0)) == []
    assert [id_ for _, _, id_ in delivered(host.told("n1", ONE, 40))] == [ONE.header.id, later.header.id]


def test_what_is_decided_is_handed_over_as_such():
    host = newcomer()
    start(host, hand_over(open_(ONE, 3, sn=12), clock=20), hand_over(open_(ONE, 5), clock=30))
    effects = host.gossip("n1", 31, base=0)
    assert delivered(effects) == [("a", 0, ONE.header.id)]
    assert [to for to, _ in sends(effects, EnvelopeDelivered)] == [["g1"]]


def test_what_only_this_replica_had_stamped_keeps_its_entry_and_gets_a_fresh_stamp():
    """Not in the majority's hand-over: it is not decided there, but this replica said that it has an entry."""
    host = Host()
    host.take(ONE)
    host.change(SECOND)
    effects = start(host, hand_over(clock=20), hand_over(clock=30))
    assert stamps(effects, ONE) == {"a": 30}
    assert host.replica().history.entry(ONE.header.id) == 0
    assert host.replica().unresolved == {ONE.header.id: 0}


def test_what_came_while_it_was_sealed_is_stamped_when_it_starts():
    host = Host()
    host.change(SECOND)
    assert sent(host.take(ONE), RecTs) == []
    assert stamps(start(host, hand_over(clock=20), hand_over(clock=30)), ONE) == {"a": 30}


def test_what_is_in_the_log_by_now_is_not_taken_over():
    host = newcomer()
    host.receive("n1", chunk_of(log_entry(12, ONE), configuration=2))
    effects = start(host, hand_over(open_(ONE, 3), clock=20), hand_over(open_(ONE, 3), clock=30))
    assert stamps(effects, ONE) == {}
    assert host.machine.buffers()["undelivered"] == host.machine.buffers()["unresolved"] == 0


def test_groups_that_stamped_at_different_times_say_so_in_two_messages():
    host = Host()
    host.take(BOTH)
    host.take(envelope_of(4, "b"))
    host.change(SECOND)
    effects = start(host, hand_over(clock=20), hand_over(clock=30))
    told = [message for message in sent(effects, RecTs) if message.id == BOTH.header.id]
    assert [(m.rec_ts, list(m.groups)) for m in told] == [
        (30, destinations("a", configuration=2)),
        (0, destinations("b")),
    ]
    to = {tuple(to) for to, message in sends(effects, RecTs) if message.id == BOTH.header.id}
    assert to == {("n2", "n4", "n5", "n6")}


def test_what_comes_by_the_hand_over_of_one_group_is_stamped_in_the_others_here_too():
    """n1 had not received it when its group a began anew; of b it is a replica that works."""
    host = Host()
    host.change(SECOND)
    effects = start(host, hand_over(open_(BOTH, 3), clock=20), hand_over(open_(BOTH, 5), clock=30))
    effects += host.take(BOTH)
    effects += host.take(BOTH, "n4", again=True)
    assert set(stamps(effects, BOTH)) == {"a", "b"}


# ------------------------------------------------------------------------------------------------------- bad input


def with_(**fields: Any) -> Envelope:
    envelope = Envelope()
    envelope.CopyFrom(TWO)
    header = Header()
    header.CopyFrom(TWO.header)
    for name, value in fields.items():
        header.ClearField(name)
        if isinstance(value, list):
            getattr(header, name).extend(value)
        else:
            setattr(header, name, value)
    envelope.header.CopyFrom(header)
    return envelope


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(hand_over(clock=CLOCK_MAX + 1), id="a clock beyond all clocks"),
        pytest.param(hand_over(after=b"short"), id="no id to continue"),
        pytest.param(hand_over(open_(envelope_of(2, "b"), 3)), id="an envelope for another group"),
        pytest.param(hand_over(open_(with_(id=b"short"), 3)), id="no envelope id"),
        pytest.param(hand_over(open_(with_(ranges=[]), 3)), id="no producer"),
        pytest.param(hand_over(open_(with_(destinations=[]), 3)), id="no destination"),
        pytest.param(
            hand_over(open_(with_(destinations=destinations("b", "a")), 3)), id="destinations that are not sorted"
        ),
        pytest.param(hand_over(open_(with_(done=9), 3)), id="one that calls later ones finished"),
        pytest.param(hand_over(HandedOver(rec_ts=3, entry=3)), id="no envelope"),
        pytest.param(hand_over(open_(TWO, 3), open_(ONE, 4)), id="falling ids"),
        pytest.param(hand_over(open_(TWO, 3), open_(TWO, 4)), id="an envelope twice"),
        pytest.param(hand_over(open_(ONE, 3), after=ONE.header.id), id="one that it had told before"),
        pytest.param(hand_over(open_(ONE, CLOCK_MAX + 1)), id="a stamp beyond all clocks"),
        pytest.param(hand_over(open_(ONE, 3, entry=CLOCK_MAX + 1)), id="an entry beyond all clocks"),
        pytest.param(hand_over(open_(ONE, 3, sn=CLOCK_MAX + 1)), id="a number beyond all clocks"),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_a_hand_over_that_cannot_be_one_is_refused(wrong, whole):
    host = newcomer()
    host.receive("n1", hand_over(clock=20))
    before, disk = host.machine.buffers(), dict(host.disk)
    message = HandOver()
    message.CopyFrom(wrong)
    message.whole = whole
    with pytest.raises(RemoteProtocolError):
        host.receive("n2", message)
    assert (host.machine.buffers(), host.disk) == (before, disk)
    assert not host.replica().is_active
    host.receive("n2", hand_over(clock=30))
    assert host.replica().is_active


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        pytest.param("n6", {}, id="of a newcomer"),
        pytest.param("n4", {}, id="of a stranger"),
        pytest.param("g1", {}, id="of a gateway"),
        pytest.param("n3", {"whole": True}, id="a whole one of somebody who left"),
        pytest.param("n4", {"whole": True}, id="a whole one of a stranger"),
    ],
)
def test_a_hand_over_of_somebody_who_has_none_is_refused(source, fields):
    host = newcomer()
    host.receive("n1", hand_over(clock=20))
    with pytest.raises(OtherConfiguration):
        host.receive(source, hand_over(clock=30, **fields))
    assert not host.replica().is_active


def test_a_sealed_one_hands_over_only_what_it_has_stamped():
    host = newcomer()
    with pytest.raises(RemoteProtocolError):
        host.receive("n2", hand_over(HandedOver(envelope=ONE, entry=3), clock=20))


def test_a_history_entry_that_is_handed_over_is_told_to_nobody_who_may_not_hold_it():
    """[E4] As any other."""
    host = newcomer()
    effects = start(host, hand_over(open_(ONE, 3), clock=20), hand_over(clock=30))
    for peer in ("n1", "n2"):
        assert [(g.clock, list(g.entries)) for g in told_in(effects, peer)] == [(3, [])]
    stamp = RecTs(id=ONE.header.id, rec_ts=30, groups=destinations("a", configuration=2))
    (gossip, *_) = told_in(host.receive("n1", stamp), "n1")
    assert list(gossip.entries) == [HistoryEntry(id=ONE.header.id, rec_ts=3)]
    assert gossip.forgotten == KEY_MIN
