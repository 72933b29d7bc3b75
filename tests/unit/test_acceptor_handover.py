"""Acceptors of a group that changes its configuration: what bound those before binds those that follow."""

from typing import Any

import pytest

from ordercast.core.errors import InvariantBroken, RemoteProtocolError
from ordercast.core.ids import envelope_id
from ordercast.core.machine import Effect, Persist, Progress, Retired, SetTimer, TimerFired
from ordercast.core.view import OtherConfiguration, UnknownGroup
from ordercast.protocols.paxos.acceptor import ROUND_MAX, Acceptor
from ordercast.protocols.paxos.handover import TIMER, HandOverSettings
from ordercast.v1.common_pb2 import Destination
from ordercast.v1.consensus_pb2 import (
    Accept,
    Accepted,
    AcceptorRecord,
    Close,
    Closed,
    ClosedRecord,
    InstanceVote,
    Prepare,
    Promise,
    Rejected,
    Round,
    Votes,
    VotesAsk,
)
from ordercast.v1.membership_pb2 import DomainView
from tests.unit.driving import (
    LIVES,
    Driven,
    edited,
    kinds,
    next_view,
    sends,
    sent,
    sent_when_durable,
    talk,
    view_of,
    without_previous,
)

VIEW = view_of({"a": "n4", "b": "n4"}, acceptors={"a": "n1 n2 n3", "b": "n1 n4 n5"})
#: n6 comes for n3.
SECOND = next_view(VIEW, "a", "n4", "n1 n2 n6")
LEAVES = next_view(VIEW, "a", "n4", "n2 n3 n6")
ASK = VotesAsk(group="a", configuration=2)
I1, I2, I3 = (envelope_id(21, counter) for counter in (1, 2, 3))
RETRY_S = HandOverSettings().retry_s


class Host(Driven):
    """Process n1, an acceptor of a and one of b."""

    def __init__(self, name: str = "n1", *, view: DomainView = VIEW, votes: int = 256) -> None:
        super().__init__(name, lambda: Acceptor(name, HandOverSettings(votes=votes)), view)

    def groups(self, *names: str) -> list[Destination]:
        assert self.view is not None
        there = {group.group: group.configuration for group in self.view.groups}
        return [Destination(group=name, configuration=there[name]) for name in names]

    def prepare(self, number: int, instance: bytes = I1, *names: str, **fields: Any) -> list[Effect]:
        fields = {"groups": self.groups(*(names or ("a",))), **fields}
        return self.receive("n7", Prepare(instance=instance, round=round_of(number), **fields))

    def accept(self, number: int, value: bytes, instance: bytes = I1, *names: str, **fields: Any) -> list[Effect]:
        fields = {"groups": self.groups(*(names or ("a",))), **fields}
        return self.receive("n7", Accept(instance=instance, round=round_of(number), value=value, **fields))

    def vote_of(self, instance: bytes = I1) -> tuple[int, int | None, bytes]:
        """What it is bound by: the promised round, the round of its vote, and the value."""
        vote = self.machine.vote_in(instance)
        return (vote.promised[0], None if vote.voted is None else vote.voted[0], vote.value)

    def timer(self) -> list[Effect]:
        self.now += RETRY_S
        return self.step(TimerFired, TIMER, 0)


def round_of(number: int) -> Round:
    return Round(number=number, owner=LIVES["n7"])


def handed_over(host: Host, source: str = "n6", **fields: Any) -> Votes:
    effects = host.receive(source, VotesAsk(**{"group": "a", "configuration": 2, **fields}))
    assert sent(effects, Votes) == [], "only behind everything that is still on its way to the disk"
    ((to, votes),) = sent_when_durable(effects, Votes)
    assert to == [source]
    return votes


def vote(instance: bytes, promised: int, voted: int | None = None, value: bytes = b"") -> InstanceVote:
    record = AcceptorRecord(promised=round_of(promised), voted_value=value, groups=["a"])
    if voted is not None:
        record.voted_round.CopyFrom(round_of(voted))
    return InstanceVote(instance=instance, vote=record)


def votes(*listed: InstanceVote, **fields: Any) -> Votes:
    return Votes(**{"group": "a", "configuration": 2, "votes": listed, **fields})


def newcomer(**settings: Any) -> Host:
    return Host("n6", view=SECOND, **settings)


# ---------------------------------------------------------------------------------------------------------- sealed


@pytest.mark.parametrize("view", [SECOND, LEAVES], ids=["stays", "leaves"])
def test_a_sealed_acceptor_neither_promises_nor_votes(view):
    host = Host()
    host.accept(1, b"x")
    host.change(view)
    before, disk = host.machine.buffers(), dict(host.disk)
    for configuration in (1, 2):
        groups = [Destination(group="a", configuration=configuration)]
        with pytest.raises(RemoteProtocolError):
            host.prepare(9, groups=groups)
        with pytest.raises(RemoteProtocolError):
            host.accept(9, b"y", groups=groups)
    assert (host.machine.buffers(), host.disk) == (before, disk)
    assert host.vote_of() == (1, 1, b"x")


def test_it_is_sealed_also_after_a_restart():
    host = Host()
    host.change(SECOND)
    host.restart()
    with pytest.raises(OtherConfiguration):
        host.accept(0, b"x")


def test_other_groups_go_on():
    host = Host()
    host.change(SECOND)
    assert sent(host.accept(0, b"x", I1, "b"), Accepted)


def test_an_instance_of_several_groups_waits_for_the_one_that_has_not_started():
    host = Host()
    host.change(SECOND)
    with pytest.raises(OtherConfiguration):
        host.accept(0, b"x", I1, "a", "b")
    assert host.machine.buffers()["instances"] == 0


def test_what_is_not_of_the_present_configuration_is_nobodys_mistake():
    host = Host()
    for configuration in (0, 2):
        with pytest.raises(OtherConfiguration):
            host.prepare(1, groups=[Destination(group="a", configuration=configuration)])
    host.change(without_previous(LEAVES, "a"))
    with pytest.raises(OtherConfiguration):
        host.prepare(1, groups=[Destination(group="a", configuration=1)])


def test_the_number_of_the_view_is_durable_and_an_older_one_stops_the_process():
    host = Host()
    host.change(SECOND)
    host.view = VIEW
    with pytest.raises(InvariantBroken):
        host.restart()


# ------------------------------------------------------------------------------------------------------ hands over


def test_it_hands_over_what_binds_it_in_the_group():
    host = Host()
    host.prepare(4, I2)
    host.accept(2, b"x", I1, "a", "b")
    host.accept(0, b"y", I3, "b")
    host.accept(0, b"z", envelope_id(22, 9), done=8, open=[5])
    host.receive("n4", Close(instances=[envelope_id(23, 1)]))
    host.step(Retired, 7)
    host.change(SECOND)
    told = handed_over(host)
    assert [(v.instance, v.vote.promised.number, v.vote.voted_value) for v in told.votes] == [
        (I1, 2, b"x"),
        (I2, 4, b""),
        (envelope_id(22, 9), 0, b"z"),
    ]
    assert [v.vote.HasField("voted_round") for v in told.votes] == [True, False, True]
    assert list(told.closed) == [ClosedRecord(incarnation=22, done=8, open=[5])]
    assert (list(told.buried), told.retired) == ([envelope_id(23, 1)], 7)
    assert (told.whole, told.idle, told.more) == (False, False, False)


def test_much_is_handed_over_in_parts_by_rising_instance_and_each_says_what_is_closed():
    host = Host(votes=2)
    for counter in (5, 1, 4, 2, 3):
        host.accept(0, b"x", envelope_id(21, counter))
    host.accept(0, b"x", envelope_id(22, 9), done=8)
    host.receive("n4", Close(instances=[envelope_id(22, 9)]))
    host.change(SECOND)
    parts = [handed_over(host)]
    while parts[-1].more:
        parts.append(handed_over(host, after=parts[-1].votes[-1].instance))
    assert [[v.instance[-1] for v in part.votes] for part in parts] == [[1, 2], [3, 4], [5]]
    assert [part.after[-1:] for part in parts] == [b"", b"\2", b"\4"]
    assert all(part.closed and part.buried for part in parts)


def test_only_acceptors_of_the_next_configuration_are_told():
    host = Host()
    host.change(SECOND)
    for name in ("n1", "n2", "n6"):
        assert not handed_over(host, name).whole
    for stranger in ("n3", "n4", "g1"):
        with pytest.raises(RemoteProtocolError):
            host.receive(stranger, ASK)


def test_who_has_no_part_in_the_configuration_before_has_nothing_to_hand_over():
    assert newcomer().receive("n2", ASK) == []
    assert Host("n4", view=SECOND).receive("n2", ASK) == []


def test_who_never_started_in_the_configuration_before_says_so():
    third = next_view(without_previous(SECOND, "a", "n1"), "a", "n4", "n1 n2 n7")
    host = Host()
    host.accept(0, b"x")
    host.change(third)
    assert handed_over(host, "n7", configuration=3).idle


@pytest.mark.parametrize("is_wiped", [False, True])
def test_who_lost_its_disk_hands_nothing_over_and_takes_no_part(is_wiped):
    lost = edited(VIEW, "a", lost="n1")
    host = Host()
    host.accept(0, b"x")
    host.change(lost)
    with pytest.raises(OtherConfiguration):
        host.accept(3, b"y")
    host.change(next_view(lost, "a", "n4", "n1 n2 n6"))
    if is_wiped:
        host.disk.clear()
    for _ in range(2):
        assert host.receive("n6", ASK) == []
        host.restart()


@pytest.mark.parametrize("view", [SECOND, LEAVES], ids=["stays", "leaves"])
@pytest.mark.parametrize("is_wiped", [False, True])
def test_who_loses_its_disk_after_it_was_sealed_hands_nothing_over(view, is_wiped):
    is_member = "n1" in view.groups[0].acceptors
    lost = edited(view, "a", lost="n1" if is_member else "", starting="n2 n6")
    lost.groups[0].previous.lost.append("n1")
    host = Host()
    host.accept(0, b"x")
    host.change(view)
    if is_wiped:
        host.disk.clear()
    host.change(lost)
    for _ in range(2):
        assert host.receive("n6", ASK) == []
        host.restart()


def test_who_lost_its_disk_is_told_in_the_next_configuration_and_starts_there():
    lost = edited(VIEW, "a", lost="n1")
    host = Host()
    host.change(lost)
    host.restart()
    effects = host.change(next_view(lost, "a", "n4", "n1 n2 n3"))
    assert [to for to, _ in sends(effects, VotesAsk)] == [["n2"], ["n3"]]
    host.receive("n2", votes(vote(I1, 3, 3, b"x")))
    host.receive("n3", votes())
    assert host.vote_of() == (3, 3, b"x")
    assert sent(host.prepare(4), Promise)


@pytest.mark.parametrize("knows_before", [True, False])
def test_what_somebody_hands_over_who_lost_its_disk_does_not_count(knows_before):
    """It may not know that its vote is gone."""
    lost = edited(SECOND, "a", lost="n2")
    lost.groups[0].previous.lost.append("n2")
    host = newcomer()
    if knows_before:
        host.change(lost)
        with pytest.raises(OtherConfiguration):
            host.receive("n2", votes())
    else:
        host.receive("n2", votes())
        host.change(lost)
    host.receive("n1", votes())
    assert sends(host.timer(), VotesAsk) == [(["n3"], ASK)], "nor is it asked"
    host.receive("n3", votes(vote(I1, 3, 3, b"x")))
    assert host.vote_of() == (3, 3, b"x")


# ---------------------------------------------------------------------------------------------------------- asking


def test_it_asks_the_sealed_itself_included_and_its_fellows_and_again_those_who_have_not_answered():
    host = Host()
    effects = host.change(SECOND)
    assert sends(effects, VotesAsk) == [([name], ASK) for name in ("n1", "n2", "n3", "n6")]
    assert [e.delay for e in effects if isinstance(e, SetTimer)] == [RETRY_S]
    host.receive("n2", votes())
    effects = host.timer()
    assert [to for to, _ in sends(effects, VotesAsk)] == [["n1"], ["n3"], ["n6"]]
    assert [e.delay for e in effects if isinstance(e, SetTimer)] == [RETRY_S]
    host.receive("n3", votes())
    assert host.timer() == [], "it has started"


def test_after_the_configuration_before_is_over_it_asks_its_fellows_alone():
    effects = Host("n6").change(without_previous(SECOND, "a", "n6"))
    assert [to for to, _ in sends(effects, VotesAsk)] == [["n1"], ["n2"]]


def test_another_view_of_the_same_configuration_does_not_begin_again():
    host = newcomer()
    host.receive("n2", votes())
    assert sends(host.change(edited(SECOND, "a", starting="n6")), VotesAsk) == []
    host.receive("n3", votes())
    assert sent(host.prepare(1), Promise)


def test_the_rest_is_asked_for_as_parts_come_and_a_conversation_goes_on_where_it_was():
    host = newcomer()
    effects = host.receive("n2", votes(vote(I1, 1), more=True))
    rest = VotesAsk(group="a", configuration=2, after=I1)
    assert sends(effects, VotesAsk) == [(["n2"], rest)]
    assert (["n2"], rest) in sends(host.timer(), VotesAsk)
    assert sends(host.receive("n2", votes(vote(I1, 1), more=True)), VotesAsk) == [(["n2"], rest)], "twice"
    host.receive("n3", votes())
    with pytest.raises(OtherConfiguration):
        host.prepare(5)
    host.receive("n2", votes(vote(I2, 2), after=I1))
    assert (host.vote_of(I1)[0], host.vote_of(I2)[0]) == (1, 2)


# -------------------------------------------------------------------------------------------------------- starting


def test_one_of_three_is_not_enough_and_two_are():
    host = newcomer()
    for _ in range(2):
        host.receive("n2", votes())
    with pytest.raises(OtherConfiguration):
        host.prepare(1)
    host.receive("n3", votes())
    assert sent(host.prepare(1), Promise)


def test_the_highest_promise_and_the_vote_of_the_highest_round_bind_those_who_follow():
    for first, second in (
        (vote(I1, 9, 1, b"old"), vote(I1, 4, 3, b"new")),
        (vote(I1, 4, 3, b"new"), vote(I1, 9, 1, b"old")),
    ):
        host = newcomer()
        host.receive("n2", votes(first, vote(I2, 2)))
        host.receive("n3", votes(second, vote(I3, 0, 0, b"zero")))
        for _ in range(2):
            assert host.vote_of(I1) == (9, 3, b"new")
            assert host.vote_of(I2) == (2, None, b"")
            assert host.vote_of(I3) == (0, 0, b"zero")
            assert kinds(host.accept(8, b"late")) == ["Rejected"]
            host.restart()
        (promise,) = sent(host.prepare(10), Promise)
        assert (promise.voted_round, promise.voted_value) == (round_of(3), b"new")


def test_its_own_votes_from_before_bind_it_though_others_answered_first():
    host = Host()
    host.accept(5, b"mine")
    host.change(SECOND)
    host.receive("n2", votes(vote(I1, 1, 1, b"theirs")))
    host.receive("n3", votes())
    assert host.vote_of() == (5, 5, b"mine")


def test_all_of_it_is_on_disk_before_the_first_promise():
    host = newcomer()
    host.receive("n2", votes(vote(I1, 3, 3, b"x"), retired=5, buried=[I3]))
    (persist,) = host.receive("n3", votes())
    assert isinstance(persist, Persist)
    assert persist.barrier
    assert [key[:1] for key, _ in persist.records] == [b"i", b"b", b"r", b"g"]


def test_what_one_of_them_has_closed_is_closed_whatever_others_have_voted():
    for first, second in (("n2", "n3"), ("n3", "n2")):
        host = newcomer()
        host.receive(first, votes(vote(I1, 3, 3, b"x"), vote(I2, 3, 3, b"x"), vote(I3, 3, 3, b"x")))
        host.receive(second, votes(closed=[ClosedRecord(incarnation=21, done=3, open=[1])], buried=[I3]))
        for _ in range(2):
            assert host.vote_of(I1) == (3, 3, b"x")
            for instance in (I2, I3):
                assert sent(host.prepare(9, instance), Closed)
            host.restart()


def test_what_is_retired_somewhere_is_retired():
    host = newcomer()
    host.receive("n2", votes(vote(I1, 3, 3, b"x")))
    host.receive("n3", votes(retired=22))
    assert host.machine.buffers()["instances"] == 0
    assert sent(host.prepare(9), Closed)


def test_who_never_started_there_counts_but_one_who_did_is_needed():
    host = newcomer()
    for idle in ("n1", "n3"):
        host.receive(idle, votes(idle=True))
    with pytest.raises(OtherConfiguration):
        host.prepare(1)
    host.receive("n2", votes(vote(I1, 3, 3, b"x")))
    assert host.vote_of() == (3, 3, b"x")


def test_what_an_idle_one_has_from_before_does_not_count():
    host = newcomer()
    host.receive("n1", votes(vote(I2, 8), idle=True))
    host.receive("n2", votes(vote(I1, 3, 3, b"x")))
    assert host.machine.vote_in(I2) is None


def test_a_fellow_that_has_started_is_enough_by_itself_and_tells_what_it_has_by_now():
    fellow = newcomer()
    fellow.receive("n2", votes(vote(I1, 3, 3, b"x")))
    fellow.receive("n3", votes())
    fellow.accept(0, b"new", I2)
    told = handed_over(fellow, "n1")
    assert told.whole
    assert [v.instance for v in told.votes] == [I1, I2]
    host = Host()
    host.change(SECOND)
    host.receive("n6", told)
    assert host.vote_of(I1) == (3, 3, b"x")
    assert sent(host.prepare(9, I2), Promise)[0].voted_value == b"new"


def test_a_fellow_that_has_started_since_it_was_asked_begins_again():
    host = newcomer()
    host.receive("n2", votes(vote(I1, 1), more=True))
    effects = host.receive("n2", votes(vote(I3, 1), after=I2, whole=True))
    assert [ask.after for ask in sent(effects, VotesAsk)] == [b""]
    host.receive("n2", votes(vote(I1, 1), vote(I2, 5), vote(I3, 1), whole=True))
    assert host.vote_of(I2)[0] == 5


def test_votes_after_it_has_started_change_nothing():
    host = newcomer()
    host.receive("n2", votes())
    host.receive("n3", votes())
    disk = dict(host.disk)
    assert host.receive("n1", votes(vote(I1, 9))) == []
    assert host.disk == disk


def test_a_restart_in_the_middle_begins_anew_and_one_after_the_start_does_not():
    host = newcomer()
    host.receive("n2", votes(vote(I1, 3, 3, b"x")))
    assert [(to, ask.after) for to, ask in sends(host.restart(), VotesAsk)] == [
        ([name], b"") for name in ("n1", "n2", "n3")
    ]
    for source in ("n2", "n3"):
        host.receive(source, votes(vote(I1, 3, 3, b"x")))
    assert sends(host.restart(), VotesAsk) == []
    assert sent(host.prepare(9), Promise)[0].voted_value == b"x"


def test_who_is_overtaken_while_it_starts_begins_again_with_the_next_one():
    host = newcomer()
    host.receive("n2", votes(vote(I1, 3)))
    third = next_view(without_previous(SECOND, "a", "n6"), "a", "n4", "n1 n6 n7")
    assert [to for to, _ in sends(host.change(third), VotesAsk)] == [["n1"], ["n2"], ["n6"], ["n7"]]
    with pytest.raises(OtherConfiguration):
        host.receive("n3", votes())
    host.receive("n6", handed_over(host, "n6", configuration=3))
    host.receive("n1", Votes(group="a", configuration=3, votes=[vote(I2, 7)]))
    assert host.vote_of(I2)[0] == 7
    assert sent(host.prepare(8, I2), Promise)


def test_progress_tells_membership_how_far_it_is():
    host = newcomer()
    assert host.machine.progress() == {"a": Progress(2, started=False)}
    host.receive("n2", votes())
    host.receive("n3", votes())
    assert host.machine.progress() == {"a": Progress(2, started=True)}
    host.change(without_previous(SECOND, "a"))
    assert host.machine.progress() == {}


@pytest.mark.parametrize(
    "restarts",
    [
        False,
        True,
    ],
)
def test_who_leaves_keeps_its_votes_until_a_majority_has_started_and_then_those_of_other_groups(restarts):
    host = Host()
    host.accept(0, b"x")
    host.accept(0, b"y", I2, "a", "b")
    host.accept(0, b"z", I3, "b")
    host.change(LEAVES)
    assert len(handed_over(host).votes) == 2
    over = without_previous(LEAVES, "a", "n6")
    if restarts:
        host.view = over
        host.restart()
    else:
        host.change(over)
    assert host.machine.buffers()["instances"] == 2
    assert [key for key in host.disk if key[:1] == b"i"] == [b"i" + I2, b"i" + I3]
    assert host.receive("n6", ASK) == []


# ----------------------------------------------------------------------------------------------------- all of them


@pytest.mark.parametrize("silent", ["n1", "n2", "n3"])
@pytest.mark.parametrize("voted", [("n1", "n2"), ("n2", "n3"), ("n1", "n3")])
def test_what_a_majority_had_voted_for_is_known_to_every_majority_that_follows(voted, silent):
    hosts = {name: Host(name) for name in ("n1", "n2", "n3", "n6")}
    for name in voted:
        hosts[name].accept(0, b"chosen")
    del hosts[silent]
    for name, host in hosts.items():
        talk(hosts, name, host.change(SECOND))
    for _ in range(3):
        for name, host in hosts.items():
            talk(hosts, name, host.timer())
    for name in ("n1", "n2", "n6"):
        if name != silent:
            (promise,) = sent(hosts[name].prepare(5), Promise)
            assert promise.voted_value == b"chosen"


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("message", [ASK, votes()], ids=["ask", "votes"])
@pytest.mark.parametrize(
    "fields", [{"group": "x"}, {"configuration": 1}, {"configuration": 3}, {"configuration": 0}]
)
def test_what_is_not_of_the_configuration_that_begins_is_refused(message, fields):
    host = newcomer()
    wrong = type(message)()
    wrong.CopyFrom(message)
    for name, value in fields.items():
        setattr(wrong, name, value)
    with pytest.raises(UnknownGroup if "group" in fields else OtherConfiguration):
        host.receive("n2", wrong)


@pytest.mark.parametrize(
    ("source", "whole"), [("n4", False), ("n6", False), ("g1", False), ("n3", True), ("n4", True), ("g1", True)]
)
def test_votes_of_somebody_who_has_none_are_refused(source, whole):
    host = newcomer()
    host.receive("n2", votes())
    with pytest.raises(OtherConfiguration):
        host.receive(source, votes(vote(I1, 3, 3, b"x"), whole=whole))
    with pytest.raises(OtherConfiguration):
        host.prepare(1)


def refuses(wrong: Votes) -> None:
    """And it goes on."""
    host = newcomer()
    host.receive("n2", votes())
    before, disk = host.machine.buffers(), dict(host.disk)
    with pytest.raises(RemoteProtocolError):
        host.receive("n3", wrong)
    assert (host.machine.buffers(), host.disk) == (before, disk)
    host.receive("n3", votes(vote(I1, 3, 3, b"x")))
    assert kinds(host.prepare(1)) == [Rejected.__name__]
    assert sent(host.prepare(4), Promise)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(votes(vote(b"short", 1)), id="no instance"),
        pytest.param(votes(vote(I1, 1), vote(I2 + b"\0", 1)), id="a long id"),
        pytest.param(votes(buried=[I1, b""]), id="something buried that is no instance"),
    ],
)
def test_votes_that_cannot_be_some_are_refused(wrong):
    refuses(wrong)


@pytest.mark.parametrize("promised", [True, False])
def test_a_round_that_nobody_could_outbid_is_refused(promised):
    refuses(votes(vote(I1, ROUND_MAX + 1) if promised else vote(I1, 3, ROUND_MAX + 1, b"x")))


def test_a_retirement_of_all_incarnations_to_come_is_refused():
    refuses(votes(retired=2**64 - 1))
