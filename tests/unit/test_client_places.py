"""Where groups live, as a session knows it: what waits for that, and what is numbered by it."""

import pytest

from ordercast.client import lanes as lanes_module
from ordercast.client import places as places_module
from ordercast.client.errors import DeadlineExceeded, NotFound, ResourceExhausted, Unavailable
from ordercast.client.places import Places
from ordercast.client.session import Session
from ordercast.client.types import Receipt, message_id
from ordercast.core.cells import told_as
from ordercast.core.ids import envelope_id, order_key
from ordercast.core.limits import LOCATED_MAX
from ordercast.v1.common_pb2 import Message
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_MOVED,
    PUBLISH_STATUS_NOT_FOUND,
    PUBLISH_STATUS_OK,
    GroupPlace,
    PublishReply,
    PublishRequest,
    PublishStreamResponse,
)

CELL = "cell-1"


def at(**cells: str) -> list[GroupPlace]:
    return [GroupPlace(group=group, cell=cell) for group, cell in cells.items()]


# ------------------------------------------------------------------------------------------------- what is known


def test_a_set_is_known_when_all_its_groups_are_and_is_named_by_their_cells():
    places: Places[int] = Places()
    assert not places.knows(("u", "v"))
    places.told(at(u=CELL))
    assert not places.knows(("u", "v"))
    places.told(at(v=CELL, a=""))
    assert places.knows(("a", "u", "v"))
    assert places.cells_of(("u", "v")) == (CELL,)
    assert places.cells_of(("a", "v")) == ("a", CELL), "a group without a cell of its own name has one to itself"


def test_it_is_asked_once_for_each_group_that_something_waits_for_and_never_for_too_many_at_once():
    places: Places[int] = Places()
    places.told(at(a=""))
    assert places.ask(9) == [], "nothing waits"
    for groups in (("a", "u"), ("u", "v"), ("w",)):
        assert places.wait(groups) is places.wait(groups)
    assert places.ask(2) == ["u", "v"]
    assert places.ask(2) == ["w"]
    assert places.ask(2) == []
    places.asked.clear()  # The stream is lost.
    assert places.ask(9) == ["u", "v", "w"]


def test_what_waits_goes_on_when_the_last_of_its_groups_is_told_and_is_told_once():
    places: Places[int] = Places()
    both, one = places.wait(("u", "v")), places.wait(("u",))
    places.ask(9)
    assert [(lane is one, groups) for lane, groups in places.told(at(u=CELL))] == [(True, ("u",))]
    assert list(places.asked) == ["v"]
    assert [(lane is both, groups) for lane, groups in places.told(at(v=CELL))] == [(True, ("u", "v"))]
    assert places.told(at(v=CELL)) == []


def test_a_group_that_is_forgotten_is_asked_for_anew():
    places: Places[int] = Places()
    places.told(at(u=CELL, v=CELL))
    places.forget(["u", "nobody"])
    assert places.knows(("v",))
    assert not places.knows(("u",))


def test_places_are_bounded(monkeypatch):
    monkeypatch.setattr(places_module, "PLACES_MAX", 2)
    places: Places[int] = Places()
    places.told(at(t=CELL, u=CELL))
    places.told(at(v=CELL))
    assert [places.knows((name,)) for name in "tuv"] == [False, False, True]


def test_cells_are_not_told_where_they_are_simply_the_groups():
    assert told_as(("a", "b"), ("a", "b")) == ()
    assert told_as((CELL,), ("u", "v")) == (CELL,)


# -------------------------------------------------------------------------------------------------- in a session


class Told:
    """A session that has to ask, and what its gateway does, by hand."""

    def __init__(self, *, locates: bool = True, in_flight_max: int = 64, is_named: bool = False) -> None:
        self.session: Session[str] = Session(
            b"\xff" * 16, b"i" * 16, in_flight_max=in_flight_max, is_named=is_named
        )
        self.locates = locates
        self.now = 0.0
        self.outcomes: dict[str, object] = {}

    def publish(self, text: str, *groups: str, deadline: float = 1e9) -> None:
        self.session.publish(
            Message(payload=text.encode()), tuple(sorted(groups)), size=10, handle=text, deadline=deadline
        )

    def dial(self) -> None:
        assert self.session.dial_due(self.now)
        self.session.dialed(self.now)
        self.hear(credits=64, locates=self.locates)

    def hear(self, **fields) -> None:
        self.session.received(self.session.stream, PublishStreamResponse(**fields), self.now, 0.5)
        self.settle()

    def settle(self) -> None:
        for handle, outcome in self.session.take_settled():
            assert handle not in self.outcomes, "told twice"
            self.outcomes[handle] = outcome

    def write(self) -> tuple[list[str], list[PublishRequest]]:
        """Of which groups it asks where they live, and what it publishes."""
        frame = self.session.frame(self.now)
        return ([], []) if frame is None else (list(frame.locate), list(frame.requests))

    def answer(self, request: PublishRequest, status: int = PUBLISH_STATUS_OK) -> None:
        reply = PublishReply(
            producer=request.producer,
            groups=request.groups,
            cells=request.cells,
            first_sequence=request.first_sequence,
            count=len(request.messages),
            open_token=request.open_token,
            status=status,
            order_key=order_key(1, envelope_id(1, 1)) if status == PUBLISH_STATUS_OK else b"",
            epoch=1 if request.open_token else 0,
        )
        for group in request.groups if status == PUBLISH_STATUS_OK else ():
            reply.offsets.add(group=group, first_offset=request.first_sequence)
        self.hear(replies=[reply])

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.session.tick(self.now, 0.5)
        self.settle()


def shown(requests: list[PublishRequest]) -> list[tuple[str, str, int, list[str]]]:
    return [
        (
            " ".join(request.groups),
            " ".join(request.cells),
            request.first_sequence,
            [message.payload.decode() for message in request.messages],
        )
        for request in requests
    ]


def test_messages_to_unknown_groups_wait_and_go_on_in_the_order_of_the_calls():
    told = Told()
    for text, *groups in (("1", "u"), ("2", "v"), ("3", "u", "v"), ("4", "u"), ("5", "u")):
        told.publish(text, *groups)
    told.dial()
    assert told.write() == (["u", "v"], [])
    assert told.write() == ([], []), "it has asked"
    told.hear(places=at(u=CELL))
    assert shown(told.write()[1]) == [("u", CELL, 1, ["1"])], "what comes behind a message that waits, waits too"
    told.hear(places=at(v=CELL))
    assert shown(told.write()[1]) == [
        ("v", CELL, 2, ["2"]),
        ("u v", CELL, 3, ["3"]),
        ("u", CELL, 4, ["4", "5"]),
    ]
    told.publish("6", "v")
    assert shown(told.write()[1]) == [("v", CELL, 6, ["6"])], "now it is known"


def test_groups_of_a_cell_share_one_sequence_and_its_name_is_in_message_ids():
    told = Told()
    for text, *groups in (("1", "u"), ("2", "a"), ("3", "a", "u"), ("4", "v"), ("5", "a", "v")):
        told.publish(text, *groups)
    told.dial()
    told.write()
    told.hear(places=at(a="", u=CELL, v=CELL))
    requests = told.write()[1]
    assert shown(requests) == [
        ("u", CELL, 1, ["1"]),
        ("a", "", 1, ["2"]),
        ("a u", f"a {CELL}", 1, ["3"]),
        ("v", CELL, 2, ["4"]),
        ("a v", f"a {CELL}", 2, ["5"]),
    ]
    for request in requests:
        told.answer(request)
    receipts = {text: outcome for text, outcome in told.outcomes.items() if isinstance(outcome, Receipt)}
    assert sorted(receipts) == ["1", "2", "3", "4", "5"]
    assert receipts["4"].message_id == message_id(told.session.producer, (CELL,), 2)
    assert receipts["5"].message_id == message_id(told.session.producer, ("a", CELL), 2)
    assert receipts["5"].offsets == {"a": 2, "v": 2}


def test_a_gateway_of_an_early_version_is_not_asked_and_has_groups_with_cells_of_their_own():
    told = Told(locates=False)
    told.publish("1", "u")
    told.publish("2", "u", "v")
    told.dial()
    asked, requests = told.write()
    assert asked == []
    assert shown(requests) == [("u", "", 1, ["1"]), ("u v", "", 1, ["2"])]


def test_who_is_told_that_a_group_is_not_there_asks_anew_for_the_next_message():
    told = Told()
    told.publish("1", "u")
    told.dial()
    told.write()
    told.hear(places=at(u=CELL))
    (request,) = told.write()[1]
    told.answer(request, PUBLISH_STATUS_NOT_FOUND)
    assert isinstance(told.outcomes["1"], NotFound)
    told.publish("2", "u")
    assert told.write() == (["u"], [])
    told.hear(places=at(u="cell-2"))
    assert shown(told.write()[1]) == [("u", "cell-2", 1, ["2"])]


def test_an_opening_that_is_refused_so_makes_it_ask_anew_too():
    told = Told(is_named=True)
    told.publish("1", "u")
    told.dial()
    told.write()
    told.hear(places=at(u=CELL))
    (opening,) = told.write()[1]
    assert opening.open_token
    assert list(opening.cells) == [CELL]
    told.answer(opening, PUBLISH_STATUS_NOT_FOUND)
    assert isinstance(told.outcomes["1"], NotFound)
    told.publish("2", "u")
    assert told.write() == (["u"], [])


def test_messages_of_a_group_that_lives_elsewhere_by_now_go_there_in_their_order():
    told = Told()
    for text, groups in (("1", "u"), ("2", "v"), ("3", "u")):
        told.publish(text, groups)
    told.dial()
    told.write()
    told.hear(places=at(u=CELL, v=CELL))
    requests = told.write()[1]
    assert shown(requests) == [("u", CELL, 1, ["1"]), ("v", CELL, 2, ["2"]), ("u", CELL, 3, ["3"])]
    for request in requests:
        if request.groups == ["u"]:
            told.answer(request, PUBLISH_STATUS_MOVED)
    told.publish("4", "u")
    locate, (opening,) = told.write()
    assert locate == ["u"]
    assert opening.open_token, "what is behind a refused one in the old cell may have been refused, or not"
    told.hear(places=at(u="cell-2"))
    (request,) = told.write()[1]
    assert shown([request]) == [("u", "cell-2", 1, ["1", "3", "4"])]
    told.answer(request)
    for text in ("1", "3", "4"):
        assert isinstance(told.outcomes[text], Receipt)


def test_an_opening_in_the_name_of_a_group_that_lives_elsewhere_goes_on_for_the_others():
    told = Told(is_named=True)
    told.publish("1", "u")
    told.publish("2", "v")
    told.dial()
    told.write()
    told.hear(places=at(u=CELL, v=CELL))
    (opening,) = told.write()[1]
    assert list(opening.groups) == ["u"]
    told.answer(opening, PUBLISH_STATUS_MOVED)
    locate, (again,) = told.write()
    assert locate == ["u"]
    assert (list(again.groups), again.open_token) == (["v"], opening.open_token)
    told.hear(places=at(u="cell-2"))
    (elsewhere,) = told.write()[1]
    assert (list(elsewhere.groups), list(elsewhere.cells)) == (["u"], ["cell-2"])
    assert not told.outcomes


def test_a_lost_stream_that_owed_places_is_asked_again_on_the_next():
    told = Told()
    told.publish("1", "u")
    told.dial()
    assert told.write()[0] == ["u"]
    told.session.lost(told.session.stream, Unavailable("lost"), told.now, 0.5)
    told.wait(1.0)
    told.dial()
    assert told.write()[0] == ["u"]


def test_what_a_lost_stream_says_of_places_is_not_heard():
    told = Told()
    told.publish("1", "u")
    told.dial()
    told.write()
    old = told.session.stream
    told.session.lost(old, Unavailable("lost"), told.now, 0.5)
    told.session.told(old, at(u="cell-9"))
    assert not told.session.places.knows(("u",))


def test_a_gateway_that_does_not_say_where_groups_live_is_given_up():
    told = Told()
    told.publish("1", "u")
    told.dial()
    told.write()
    stream, at_ = told.session.stream, told.session.wake_at()
    assert at_ is not None
    told.wait(at_ - told.now)
    assert told.session.stream != stream
    assert isinstance(told.session.trouble, Unavailable)


def test_what_waits_for_a_place_beyond_its_deadline_is_given_up_and_holds_up_nothing():
    told = Told()
    told.publish("1", "u", deadline=1.0)
    told.publish("2", "v")
    told.dial()
    told.write()
    told.wait(1.0)
    assert isinstance(told.outcomes["1"], DeadlineExceeded)
    told.hear(places=at(u=CELL, v=CELL))
    assert shown(told.write()[1]) == [("v", CELL, 1, ["2"])]


def test_messages_that_turn_out_to_be_to_one_set_of_cells_too_many_are_given_up(monkeypatch):
    monkeypatch.setattr(lanes_module, "LANES_MAX", 1)
    told = Told()
    told.publish("1", "u")
    told.publish("2", "a")
    told.publish("3", "a")
    told.publish("4", "v")
    told.dial()
    told.write()
    told.hear(places=at(u=CELL, v=CELL, a=""))
    assert sorted(told.outcomes) == ["2", "3"]
    assert all(isinstance(outcome, ResourceExhausted) for outcome in told.outcomes.values())
    assert shown(told.write()[1]) == [("u", CELL, 1, ["1"]), ("v", CELL, 2, ["4"])]
    assert told.session.pending == 2


def test_many_groups_are_asked_for_in_several_frames():
    told = Told(in_flight_max=2 * LOCATED_MAX)
    for number in range(LOCATED_MAX + 1):
        told.publish(str(number), f"g{number:05}")
    told.dial()
    assert [len(told.write()[0]) for _ in range(3)] == [LOCATED_MAX, 1, 0]


@pytest.mark.parametrize("is_named", [False, True])
def test_closing_tells_everybody_whose_message_waits_for_a_place(is_named):
    told = Told(is_named=is_named)
    told.publish("1", "u")
    told.dial()
    told.write()
    told.session.close()
    told.settle()
    assert isinstance(told.outcomes["1"], Unavailable)
    assert told.session.pending == 0
