"""Tokens say in which groups messages to several groups are open, and who speaks for such a token asks first."""

import pytest

from ordercast.core.machine import Effect, Receive, Send, Start, TimerFired, ViewChanged
from ordercast.gateway.subscribing import seen_in
from ordercast.protocols.isis import past
from ordercast.protocols.isis.confirmed import settle
from ordercast.protocols.isis.machine import TICK, Isis
from ordercast.protocols.isis.protocol import ISIS
from ordercast.protocols.isis.seen import covers
from ordercast.v1.isis_pb2 import Cast, CastKey, CastStamp, GroupTime, PartsCast, Seen, Submit
from ordercast.v1.membership_pb2 import DomainView, Group, GroupView
from ordercast.v1.sequencer_pb2 import LogEntry
from tests.unit.driving import LIVES, envelope_of


def seen(view: int, count: int = 0, mark: str = "") -> Seen:
    """Of group a."""
    made = Seen(times=[GroupTime(group="a", view=view, members=[0], counts=[count])])
    if not count:
        made.times[0].ClearField("members")
        made.times[0].ClearField("counts")
    return Seen(times=made.times, **({mark: ["a"]} if mark else {}))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (seen(1, 5, "open"), seen(1, 7), "open"),  # A time says nothing of what precedes it elsewhere.
        (seen(1, 5, "open"), seen(1, 4), "open"),
        (seen(1, 5, "open"), seen(1, 7, "open"), "open"),
        (seen(1, 5, "open"), seen(2, 1), "open"),  # Somebody may know that the view is complete, and nothing else.
        (seen(1, 5, "open"), seen(2), "open"),
        (seen(1, 5, "open"), seen(2, 1, "confirmed"), "confirmed"),
        (seen(1, 5, "open"), seen(1, 4, "confirmed"), "open"),
        (seen(1, 5, "confirmed"), seen(1, 4), "confirmed"),
        (seen(1, 5, "confirmed"), seen(1, 7), ""),
        (seen(1, 5, "confirmed"), seen(1, 7, "confirmed"), "confirmed"),
    ],
)
def test_of_two_tokens_the_open_one_counts_unless_the_other_confirms_as_much(
    one: Seen, other: Seen, expected: str
):
    for pair in ([one, other], [other, one]):
        merged = past.merged(pair)
        assert list(merged.open) == (["a"] if expected == "open" else [])
        assert list(merged.confirmed) == (["a"] if expected == "confirmed" else [])


def test_a_token_without_a_key_keeps_what_is_open():
    assert not covers(seen(2, 1), seen(1, 5, "open"))
    assert not covers(seen(1, 5), seen(1, 5, "open"))
    assert covers(seen(2, 1, "confirmed"), seen(1, 5, "open"))
    assert covers(seen(2, 1, "open"), seen(1, 5, "open"))


def test_what_was_open_when_a_message_was_published_is_confirmed_with_its_receipt():
    presented = past.stamp_from(seen(1, 5, "open"))
    for groups, now, is_open in (
        (("b",), seen(1, 5, "open"), False),
        (("a", "b"), seen(1, 5, "open"), False),
        (("a",), seen(1, 5, "open"), True),  # Nobody had to ask.
        (("b",), seen(1, 6, "open"), True),  # Read since.
    ):
        stamp = past.stamp_from(now)
        settle(stamp, presented, groups)
        assert list(stamp.open) == (["a"] if is_open else [])


def test_what_the_log_says_besides_is_in_the_readers_token():
    entry = LogEntry(protocol=CastStamp(view=1, key=CastKey(member=0, number=5)).SerializeToString())
    elsewhere = GroupTime(group="b", view=1, members=[2], counts=[3])
    read = Seen(times=[elsewhere], open=["a"])
    token = Seen.FromString(
        seen_in([entry.SerializeToString()], Group(name="a", id="a"), ISIS, read.SerializeToString())
    )
    assert list(token.open) == ["a"]
    assert elsewhere in token.times
    entry.besides = read.SerializeToString()
    assert Seen.FromString(seen_in([entry.SerializeToString()], Group(name="a", id="a"), ISIS)) == token


# ----------------------------------------------------------------------------------------------------- asking


@pytest.fixture
def machine() -> Isis:
    """n1 is alone in b, and not in a."""
    made = Isis("n1")
    groups = [
        GroupView(group="a", configuration=1, replicas=["n2", "n3"], incarnations=[2, 3]),
        GroupView(group="b", configuration=1, replicas=["n1"], incarnations=[LIVES["n1"]]),
    ]
    made.step(Start(0.0, 0.0, LIVES["n1"], []))
    made.step(ViewChanged(0.0, 0.0, DomainView(domain="d", number=1, groups=groups)))
    return made


def speak(machine: Isis, token: Seen) -> list[Effect]:
    envelope = envelope_of(0, "b")
    envelope.header.session = token.SerializeToString()
    return machine.step(Receive(1.0, 0.0, "g1", 1, Submit(group="b", envelope=envelope, stream=1, index=1)))


def questions(effects: list[Effect]) -> list[tuple[str, GroupTime]]:
    sent = [(effect.to[0], effect.message) for effect in effects if isinstance(effect, Send)]
    return [(to, message.until) for to, message in sent if isinstance(message, PartsCast)]


def cast(machine: Isis) -> list[Cast]:
    return [found for replica in machine.replicas.values() for era in replica.eras for found in era.casts.values()]


def test_it_asks_one_member_after_the_other_and_casts_when_one_has_answered(machine: Isis):
    until = seen(1, 5).times[0]
    assert questions(speak(machine, seen(1, 5, "open"))) == [("n2", until)]
    assert not cast(machine)
    assert questions(machine.step(TimerFired(9.0, 0.0, TICK, 0))) == [("n3", until)], "n2 may be gone"
    confirmed = Seen(times=[GroupTime(group="c", view=1, members=[1], counts=[4])])
    early = PartsCast(group="a", until=seen(1, 4).times[0], confirmed=confirmed)
    machine.step(Receive(9.0, 0.0, "n2", 2, early))
    assert not cast(machine), "an answer to what somebody else had read"
    answer = PartsCast(group="a", until=until, confirmed=confirmed)
    machine.step(Receive(9.0, 0.0, "n3", 3, answer))
    assert machine.known.times["c"].counts == {1: 4}
    assert machine.buffers()["questions"] == 0


@pytest.mark.parametrize("mark", ["", "confirmed"])
def test_it_asks_nobody_where_nothing_is_open(machine: Isis, mark: str):
    assert questions(speak(machine, seen(1, 5, mark))) == []
    assert machine.buffers()["waiting"] == 0


def test_what_was_open_in_a_group_goes_with_it(machine: Isis):
    speak(machine, seen(1, 5, "open"))
    assert machine.buffers()["waiting"] == 1
    left = GroupView(group="b", configuration=1, replicas=["n1"], incarnations=[LIVES["n1"]])
    machine.step(ViewChanged(2.0, 0.0, DomainView(domain="d", number=2, groups=[left])))
    assert machine.buffers()["waiting"] == machine.buffers()["questions"] == 0
