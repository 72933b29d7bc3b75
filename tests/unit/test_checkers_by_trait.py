"""A protocol's traits choose its checkers: what one protocol promises, another one need not keep."""

from typing import Any

import pytest

from ordercast.core.ids import envelope_id, last_key_of
from ordercast.core.machine import Deliver, Watermark
from ordercast.core.protocol import Early, Genuine, Orders, Traits
from ordercast.sim.board import MessageKey, Receipt
from ordercast.sim.checkers.by_trait import Checkers
from ordercast.sim.world import World
from ordercast.v1.common_pb2 import Envelope, Header
from ordercast.v1.sequencer_pb2 import Disseminate, LogChunk, LogEntry
from tests.unit.driving import destinations, view_of
from tests.unit.histories import REPLICAS, History, violates


class Judged(History):
    """A history that the checkers of some traits judge."""

    def __init__(self, **traits: Any) -> None:
        super().__init__()
        world = World("judged")
        for names in REPLICAS.values():
            for name in names.split():
                world.add(name, {})
        chosen = {"key_bytes": 24, "genuine": Genuine.NO, **traits}
        self.checkers = Checkers(world, self.board, Traits(**chosen), view_of(REPLICAS))
        self.logs = self.checkers.logs

    def show(self, process: str, group: str, key: MessageKey) -> None:
        """Before it has a place in the log."""
        entry = LogEntry(envelope=self.entry(group, key, 1).envelope)
        self.checkers.on_deliver(process, Deliver(group, 0, entry, final=False))


# ------------------------------------------------------------------------------------------------- orders


def test_groups_that_disagree_break_one_order_across_groups_and_no_order_within_each():
    for orders in Orders:
        history = Judged(orders=orders)
        one, two = history.send("ab"), history.send("ab", producer=b"q")
        history.order(a=[one, two], b=[two, one])
        if orders is Orders.WITHIN:
            history.checkers.check_end()
        else:
            with violates("order"):
                history.checkers.check_end()


def test_what_precedes_by_way_of_another_group_comes_first_also_where_each_group_has_its_own_order():
    """one was answered by two, elsewhere, and that by three."""
    history = Judged(orders=Orders.WITHIN)
    one = history.send("a")
    two = history.send("b", producer=b"q", after=[one])
    three = history.send("a", producer=b"r", after=[two])
    history.order(a=[three, one], b=[two])
    with violates("causality"):
        history.checkers.check_end()


def test_what_precedes_nothing_may_come_in_any_order_in_each_group():
    history = Judged(orders=Orders.WITHIN)
    one = history.send("a")
    two = history.send("b", producer=b"q", after=[one])
    three = history.send("a", producer=b"r")
    history.order(a=[three, one], b=[two])
    history.checkers.check_end()


@pytest.mark.parametrize("wrong", ["a", "b"])
def test_the_key_of_a_receipt_is_that_of_all_groups_or_of_the_first_one(wrong: str):
    """Here the groups have it under different keys: the receipt's is the one of the group that is not wrong."""
    for orders in Orders:
        history = Judged(orders=orders)
        one = history.send("ab")
        history.everywhere("a", one, 1)
        history.everywhere("b", one, 2)
        right = next(group for group in "ab" if group != wrong)
        key = history.logs.groups[right].order_keys[one]
        history.board.receipts.append(Receipt(one, key, {"a": 0, "b": 0}, duplicate=False))
        if orders is Orders.WITHIN and right == "a":
            history.checkers.check_end()
        else:
            with violates("receipt"):
                history.checkers.check_end()


# -------------------------------------------------------------------------------------------------- early


def test_what_is_shown_before_its_place_is_known_breaks_a_protocol_that_shows_nothing_early():
    history = Judged()
    with violates("early"):
        history.show("n3", "a", history.send("a"))


def answered(history: Judged) -> tuple[MessageKey, MessageKey]:
    """n3 shows something in a and b; then a message is sent to a, and answered in b."""
    history.show("n3", "a", history.send("a", producer=b"x"))
    history.show("n3", "b", history.send("b", producer=b"x"))
    one = history.send("a")
    return one, history.send("b", producer=b"q", after=[one])


def test_an_answer_is_not_shown_without_what_it_answers():
    history = Judged(early=Early.LIVE)
    one, answer = answered(history)
    with violates("causality"):
        history.show("n3", "b", answer)
    history.show("n3", "a", one)
    history.show("n3", "b", answer)


def test_an_answer_may_be_shown_by_who_shows_nothing_of_the_other_group():
    history = Judged(early=Early.LIVE)
    _, answer = answered(history)
    history.show("n4", "b", answer)


@pytest.mark.parametrize("begins", ["interrupted", "restarted"])
def test_what_was_sent_before_a_group_is_shown_from_the_beginning_may_be_missing(begins: str):
    history = Judged(early=Early.LIVE)
    one, answer = answered(history)
    if begins == "interrupted":
        history.checkers.on_interrupted("n3", "a")
    else:
        history.checkers.world.processes["n3"].incarnation += 1
    history.show("n3", "a", history.send("a", producer=b"x"))
    history.show("n3", "b", answer)
    assert one not in history.logs.groups["a"].offsets


def test_what_is_shown_in_a_group_that_it_is_not_for_breaks_integrity():
    history = Judged(early=Early.LIVE)
    one = history.send("b")
    with violates("integrity"):
        history.show("n3", "a", one)


# ------------------------------------------------------------------------------------------ merges, genuine


def test_a_watermark_means_nothing_where_logs_are_not_merged():
    Judged(merges=True).checkers.on_watermark("n1", Watermark("a", last_key_of(1), 0))
    with violates("watermark"):
        Judged().checkers.on_watermark("n1", Watermark("a", last_key_of(1), 0))


ENVELOPE = Envelope(header=Header(id=envelope_id(1, 1), destinations=destinations("a", "b"), gateway="g1"))
CHUNK = LogChunk(group="a", entries=[LogEntry(), LogEntry(envelope=ENVELOPE)])


@pytest.mark.parametrize("message", [Disseminate(envelope=ENVELOPE), CHUNK], ids=["alone", "inside"])
@pytest.mark.parametrize(("source", "to"), [("n1", ["n2", "n6"]), ("n6", ["n1"]), ("g2", ["n1"])])
def test_an_envelope_with_somebody_who_has_no_part_in_it_is_not_genuine(source: str, to: list[str], message: Any):
    Judged().checkers.on_send(source, to, message)
    judged = Judged(genuine=Genuine.YES).checkers
    judged.on_send("g1", ["n1", "n5"], message)
    with violates("participants"):
        judged.on_send(source, to, message)
