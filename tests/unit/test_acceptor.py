"""The acceptor: what it promises and votes for binds it, on disk, until the instance is closed for good."""

from typing import Any

import pytest

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import envelope_id
from ordercast.core.machine import Effect, Persist, Retired, ViewChanged
from ordercast.core.view import OtherConfiguration, UnknownGroup
from ordercast.protocols.paxos.acceptor import Acceptor
from ordercast.v1.common_pb2 import Destination
from ordercast.v1.consensus_pb2 import (
    Accept,
    Accepted,
    Close,
    Closed,
    ClosedRecord,
    Prepare,
    Promise,
    Rejected,
    Round,
)
from tests.unit.driving import CONFIGURATION, LIVES, Driven, destinations, kinds, sends, sent, view_of

VIEW = view_of({"a": "n4 n5 n6", "b": "n5 n6 n7"}, acceptors={"a": "n1 n2 n3", "b": "n2 n3 n4"})
GATEWAY = 21
I5 = envelope_id(GATEWAY, 5)


class Host(Driven):
    def __init__(self) -> None:
        super().__init__("n1", lambda: Acceptor("n1"), VIEW)

    def prepare(self, source: str, number: int, instance: bytes = I5, **fields: Any) -> list[Effect]:
        fields = {"round": round_of(source, number), "groups": destinations("a", "b"), **fields}
        return self.receive(source, Prepare(instance=instance, **fields))

    def accept(
        self, source: str, number: int, value: bytes = b"x", instance: bytes = I5, **fields: Any
    ) -> list[Effect]:
        fields = {"round": round_of(source, number), "groups": destinations("a", "b"), **fields}
        return self.receive(source, Accept(instance=instance, value=value, **fields))


def round_of(process: str, number: int) -> Round:
    return Round(number=number, owner=LIVES[process])


def records_of(host: Host) -> list[bytes]:
    """But for the number of the view."""
    return [key for key in host.disk if key != b"v"]


def is_closed(host: Host, counter: int, gateway: int = GATEWAY) -> bool:
    """By what it answers to a round that nobody could outbid."""
    return bool(sent(host.prepare("n7", 1000 + counter, envelope_id(gateway, counter)), Closed))


# --------------------------------------------------------------------------------------------------- phases


def test_a_second_value_in_a_round_is_refused_and_nothing_that_came_with_it_counts():
    """What it says of finished instances would not be written, and would be forgotten in a crash."""
    host = Host()
    host.accept("n2", 0)
    before = dict(host.disk)
    with pytest.raises(RemoteProtocolError, match="two values"):
        host.accept("n2", 0, b"y", done=4)
    assert host.disk == before
    assert not is_closed(host, 3)
    assert sent(host.accept("n2", 0), Accepted)


def test_a_promise_is_on_disk_before_it_leaves():
    effects = Host().prepare("n5", 1)
    assert kinds(effects) == ["Persist", "Promise"]
    assert effects[0].barrier
    assert sends(effects, Promise) == [(["n5"], Promise(instance=I5, round=round_of("n5", 1)))]


def test_a_vote_is_on_disk_before_it_leaves():
    effects = Host().accept("n5", 0)
    assert kinds(effects) == ["Persist", "Accepted"]
    assert effects[0].barrier
    assert sends(effects, Accepted) == [(["n5"], Accepted(instance=I5, round=round_of("n5", 0)))]


def test_a_lower_round_than_the_promised_one_is_rejected_even_after_a_restart():
    host = Host()
    host.prepare("n6", 2)
    for _ in range(2):
        for effects in (host.prepare("n5", 1), host.accept("n5", 1), host.prepare("n5", 2)):
            assert kinds(effects) == ["Rejected"]
            assert sends(effects, Rejected) == [(["n5"], Rejected(instance=I5, promised=round_of("n6", 2)))]
        host.restart()


def test_a_vote_promises_its_round_too():
    host = Host()
    host.accept("n6", 2)
    host.restart()
    assert kinds(host.prepare("n5", 1)) == ["Rejected"]


def test_a_vote_in_a_higher_round_than_the_promised_one_promises_that_round():
    host = Host()
    host.prepare("n5", 1)
    host.accept("n6", 2)
    assert kinds(host.accept("n5", 1)) == ["Rejected"]


def test_whoever_was_promised_a_round_may_repeat_its_question():
    host = Host()
    host.prepare("n5", 1)
    assert kinds(host.prepare("n5", 1)) == ["Persist", "Promise"]
    host.accept("n5", 1)
    assert kinds(host.accept("n5", 1)) == ["Persist", "Accepted"]


def test_a_promise_tells_the_last_vote_even_after_a_restart():
    host = Host()
    host.accept("n5", 0, b"old")
    host.prepare("n6", 1)
    host.accept("n6", 1, b"new")
    host.restart()
    (promise,) = sent(host.prepare("n7", 2), Promise)
    assert (promise.voted_round, promise.voted_value) == (round_of("n6", 1), b"new")


def test_a_vote_in_round_zero_is_told_as_a_vote():
    host = Host()
    host.accept("n5", 0, b"x")
    (promise,) = sent(host.prepare("n6", 1), Promise)
    assert promise.HasField("voted_round")
    assert promise.voted_round == round_of("n5", 0)


def test_a_promise_alone_is_no_vote_even_after_a_restart():
    host = Host()
    host.prepare("n5", 1)
    host.restart()
    (promise,) = sent(host.prepare("n6", 2), Promise)
    assert not promise.HasField("voted_round")


def test_a_new_promise_keeps_the_vote_on_disk():
    host = Host()
    host.accept("n5", 0, b"x")
    host.prepare("n6", 1)
    host.restart()
    (promise,) = sent(host.prepare("n7", 2), Promise)
    assert promise.voted_value == b"x"


def test_instances_do_not_bind_each_other():
    host = Host()
    host.prepare("n6", 5)
    assert kinds(host.accept("n5", 0, instance=envelope_id(GATEWAY, 6))) == ["Persist", "Accepted"]


# -------------------------------------------------------------------------------------------------- refusals


def test_the_round_of_another_incarnation_is_refused():
    """Otherwise two processes could both skip phase 1 in one round 0."""
    host = Host()
    for round_ in (round_of("n6", 0), Round(number=1, owner=LIVES["n5"] + 100)):
        for ask in (host.prepare, host.accept):
            with pytest.raises(RemoteProtocolError):
                ask("n5", 0, round=round_)
    assert host.machine.buffers() == {"instances": 0, "done": 0, "buried": 0}


@pytest.mark.parametrize(
    "groups",
    [
        pytest.param([], id="none"),
        pytest.param(destinations("b"), id="a group whose acceptor it is not"),
        pytest.param(destinations("d"), id="an unknown group"),
        pytest.param(destinations("a", configuration=CONFIGURATION + 1), id="another configuration"),
        pytest.param([Destination(group="a"), *destinations("b")], id="no configuration"),
    ],
)
def test_an_instance_that_is_not_for_this_acceptor_is_refused(groups):
    host = Host()
    before = dict(host.disk)
    for ask in (host.prepare, host.accept):
        with pytest.raises(RemoteProtocolError):
            ask("n5", 0, groups=groups)
    assert host.machine.buffers() == {"instances": 0, "done": 0, "buried": 0}
    assert host.disk == before


@pytest.mark.parametrize("configuration", [CONFIGURATION - 1, CONFIGURATION + 1])
def test_an_acceptor_checks_the_configuration_of_every_group_it_knows(configuration):
    """Whoever proposes may count it as an acceptor of a group that it has left."""
    groups = [*destinations("a"), Destination(group="b", configuration=configuration)]
    with pytest.raises(OtherConfiguration):
        Host().accept("n5", 0, groups=groups)


@pytest.mark.parametrize("instance", [b"", I5[:15], I5 + b"\0"])
def test_an_instance_id_of_another_length_is_refused(instance):
    host = Host()
    for call in (host.prepare, host.accept):
        with pytest.raises(RemoteProtocolError):
            call("n5", 0, instance=instance)
    with pytest.raises(RemoteProtocolError):
        host.receive("n5", Close(instances=[instance]))
    assert host.machine.buffers() == {"instances": 0, "done": 0, "buried": 0}


# -------------------------------------------------------------------------------------------------- forgetting


def test_done_closes_what_is_below_it_but_not_what_is_open():
    host = Host()
    for counter in range(6):
        host.accept("n5", 0, instance=envelope_id(GATEWAY, counter))
    host.accept("n5", 0, instance=envelope_id(GATEWAY, 9), done=5, open=[1, 3])
    assert host.machine.buffers()["instances"] == 4
    for _ in range(2):
        assert [counter for counter in range(10) if is_closed(host, counter)] == [0, 2, 4]
        host.restart()


def test_a_promise_brings_word_of_what_is_finished_too():
    """Or where nobody asks for votes, promises pile up."""
    host = Host()
    for counter in range(20):
        host.prepare("n5", 1, envelope_id(GATEWAY, counter), done=counter)
        assert host.machine.buffers()["instances"] == 1
    assert len(records_of(host)) == 2, "the open instance and the counter"


def test_closing_is_on_disk_before_anybody_hears_of_it():
    for effects in (Host().accept("n5", 0, done=6), Host().prepare("n5", 1, done=6)):
        assert kinds(effects) == ["Persist", "Closed"]
    assert kinds(Host().accept("n5", 0, done=4)) == ["Persist", "Accepted"]
    assert kinds(Host().prepare("n5", 1, done=4)) == ["Persist", "Promise"]


def test_a_closed_instance_is_never_reopened_by_a_late_accept():
    host = Host()
    host.accept("n5", 0)
    host.accept("n5", 0, instance=envelope_id(GATEWAY, 9), done=9)
    for _ in range(2):
        effects = host.accept("n6", 7, b"other")
        assert sends(effects, Closed) == [(["n6"], Closed(instance=I5))]
        assert host.machine.buffers()["instances"] == 1
        host.restart()


def test_closed_instances_leave_the_disk():
    host = Host()
    for counter in range(20):
        host.accept("n5", 0, instance=envelope_id(GATEWAY, counter), done=counter)
    assert len(records_of(host)) == 2, "the open instance and the counter"


def test_done_speaks_for_its_own_incarnation_alone():
    host = Host()
    host.accept("n5", 0, instance=envelope_id(GATEWAY + 1, 5))
    host.accept("n5", 0, instance=envelope_id(GATEWAY, 9), done=9)
    assert not is_closed(host, 5, GATEWAY + 1)


def test_a_rejected_accept_still_closes_what_its_gateway_calls_finished():
    host = Host()
    host.accept("n5", 0, instance=envelope_id(GATEWAY, 3))
    host.prepare("n6", 4)
    assert kinds(host.accept("n5", 0, done=5)) == ["Persist", "Rejected"]
    assert is_closed(host, 3)


def test_a_rejected_prepare_does_so_too():
    host = Host()
    host.accept("n5", 0, instance=envelope_id(GATEWAY, 3))
    host.prepare("n6", 4)
    assert kinds(host.prepare("n5", 1, done=5)) == ["Persist", "Rejected"]
    assert is_closed(host, 3)


def test_a_buried_instance_stays_closed_after_a_restart():
    host = Host()
    host.accept("n5", 0)
    (effect,) = host.receive("n5", Close(instances=[I5]))
    assert isinstance(effect, Persist)
    assert host.machine.buffers() == {"instances": 0, "done": 0, "buried": 1}
    for _ in range(2):
        assert is_closed(host, 5)
        assert not is_closed(host, 6)
        host.restart()


def test_an_instance_may_be_buried_before_it_was_heard_of():
    host = Host()
    host.receive("n5", Close(instances=[I5]))
    assert kinds(host.accept("n5", 0)) == ["Closed"]


def test_burying_again_or_below_done_writes_nothing():
    host = Host()
    host.receive("n5", Close(instances=[I5]))
    host.accept("n5", 0, instance=envelope_id(GATEWAY, 9), done=5)
    assert host.receive("n6", Close(instances=[I5, envelope_id(GATEWAY, 3)])) == []


def test_an_acceptor_that_was_away_learns_what_is_finished():
    host = Host()
    for counter in (3, 4, 5):
        host.accept("n5", 0, instance=envelope_id(GATEWAY, counter))
    host.receive("n5", Close(finished=[ClosedRecord(incarnation=GATEWAY, done=6, open=[4])]))
    host.restart()
    assert [counter for counter in (3, 4, 5, 6) if is_closed(host, counter)] == [3, 5]


def test_whatever_is_left_of_a_retired_incarnation_is_one_number():
    host = Host()
    host.accept("n5", 0, instance=envelope_id(GATEWAY, 9), done=9)
    host.receive("n5", Close(instances=[envelope_id(GATEWAY, 9)]))
    host.accept("n5", 0, instance=envelope_id(GATEWAY + 1, 0), done=0)
    host.step(Retired, GATEWAY + 1)
    for _ in range(2):
        assert host.machine.buffers()["buried"] == 0
        assert is_closed(host, 0)
        assert is_closed(host, 10_000), "late news of a gateway that is over"
        assert not is_closed(host, 0, GATEWAY + 1)
        host.restart()
    assert host.step(Retired, GATEWAY) == [], "retiring less than before changes nothing"


def test_a_vote_that_nobody_closed_goes_with_its_incarnation():
    host = Host()
    host.accept("n5", 0)
    host.step(Retired, GATEWAY + 1)
    assert host.machine.buffers()["instances"] == 0
    assert len(records_of(host)) == 1, "the number alone"


def test_a_refused_close_has_closed_nothing():
    """Otherwise the acceptor says Closed, forgets that in a restart, and reopens the instance."""
    for close in (
        Close(instances=[I5, b"short"]),
        Close(instances=[b"short"], finished=[ClosedRecord(incarnation=GATEWAY, done=6)]),
    ):
        host = Host()
        host.accept("n5", 0)
        with pytest.raises(RemoteProtocolError):
            host.receive("n5", close)
        assert not is_closed(host, 5)


# ----------------------------------------------------------------------------------------- groups that come and go


def test_an_instance_of_a_group_that_the_view_lacks_is_refused_until_the_view_has_it():
    host = Host()
    with pytest.raises(UnknownGroup):
        host.accept("n5", 0, groups=destinations("c"))
    host.step(ViewChanged, view_of({"c": "n5"}, acceptors={"c": "n1"}))
    assert len(sent(host.accept("n5", 0, groups=destinations("c")), Accepted)) == 1


def test_an_instance_of_a_known_group_is_voted_on_whatever_other_groups_it_is_for():
    assert len(sent(Host().accept("n5", 0, groups=destinations("a", "c")), Accepted)) == 1
