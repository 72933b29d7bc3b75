"""What is shown early and may turn out otherwise: what the checker lets through, and what it finds."""

import pytest

from ordercast.core.machine import Deliver, Revoked
from ordercast.core.protocol import Early
from ordercast.sim.board import MessageKey
from ordercast.sim.checkers.by_trait import Checkers
from ordercast.sim.checkers.early import EarlyChecker
from ordercast.v1.sequencer_pb2 import LogEntry
from tests.unit.histories import violates
from tests.unit.test_checkers_by_trait import Judged


class Shown(Judged):
    """Envelopes by numbers, which are those of their places in the log of a."""

    def __init__(self) -> None:
        super().__init__(early=Early.OPTIMISTIC)
        self.entries: dict[int, LogEntry] = {}

    def sent(self, number: int, group: str = "a") -> LogEntry:
        if number not in self.entries:
            key: MessageKey = self.send(group)
            self.entries[number] = self.entry(group, key, number)
        return self.entries[number]

    def early(self, number: int, process: str = "n1", group: str = "a") -> None:
        self.checkers.on_deliver(process, Deliver(group, 0, self.sent(number), final=False))

    def final(self, number: int, position: int, process: str = "n1") -> None:
        entry = self.sent(number)
        entry.first_offset = entry.outcomes[0].spans[0].first_offset = position
        self.checkers.on_deliver(process, Deliver("a", position, entry))

    def revoke(self, number: int, process: str = "n1") -> None:
        self.checkers.on_revoked(process, Revoked("a", self.sent(number).envelope.header.id))

    @property
    def found(self) -> EarlyChecker:
        assert self.checkers.early is not None
        return self.checkers.early


def ended(checkers: Checkers) -> None:
    assert checkers.early is not None
    checkers.early.check_end({("n1", checkers.world.processes["n1"].incarnation): ["a"]})


def test_what_is_confirmed_in_the_order_shown_is_no_mistake():
    history = Shown()
    for number in (1, 2):
        history.early(number)
    for number in (1, 2):
        history.final(number, number - 1)
    ended(history.checkers)
    assert (history.found.confirmed, history.found.mistakes) == (2, 0)


def test_a_place_that_overtakes_what_was_shown_before_is_a_mistake():
    history = Shown()
    for number in (3, 1, 2):
        history.early(number)
    for position, number in enumerate((1, 2, 3)):
        history.final(number, position)
    assert history.found.mistakes == 2


@pytest.mark.parametrize("wrong", ["twice", "late", "elsewhere"])
def test_nothing_is_shown_twice_or_behind_its_place_or_where_it_is_not_for(wrong: str):
    history = Shown()
    history.early(1)
    if wrong == "late":
        history.final(1, 0)
    with violates("early"):
        history.early(1, group="b" if wrong == "elsewhere" else "a")


def test_what_was_shown_and_is_neither_placed_nor_revoked_is_found_at_the_end():
    history = Shown()
    history.early(1)
    with violates("early"):
        ended(history.checkers)
    history.revoke(1)
    ended(history.checkers)


def test_what_was_not_shown_cannot_be_revoked():
    history = Shown()
    with violates("early"):
        history.revoke(1)


def test_what_one_replica_has_in_its_log_no_other_one_revokes():
    history = Shown()
    history.early(1)
    history.final(1, 0, "n2")
    with violates("early"):
        history.revoke(1)


def test_what_one_replica_revoked_no_other_one_has_in_its_log():
    history = Shown()
    history.early(1)
    history.revoke(1)
    with violates("early"):
        history.final(1, 0, "n2")


def test_a_protocol_that_shows_nothing_revokes_nothing():
    with violates("early"):
        Judged().checkers.on_revoked("n1", Revoked("a", b"x"))
