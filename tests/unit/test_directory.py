"""The directory against real membership servers: following, never going back, commands and heartbeats."""

import asyncio

import grpc
import pytest

from ordercast.runtime.process import directory as directory_module
from ordercast.runtime.process.directory import Directory
from ordercast.runtime.process.settings import TlsSettings
from ordercast.runtime.transport.server import GrpcServer
from ordercast.runtime.transport.status import Refused
from ordercast.runtime.transport.tls import Credentials
from ordercast.v1.membership_pb2 import (
    DESCRIPTOR,
    GROUP_STATE_ACTIVE,
    GROUP_STATE_DELETED,
    GROUP_STATE_DELETING,
    Command,
    CommandResult,
    CreateGroup,
    Domain,
    ExecuteResponse,
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    Node,
    NotLeader,
    WatchResponse,
)
from ordercast.v1.membership_pb2_grpc import MembershipServiceServicer, add_MembershipServiceServicer_to_server

SERVICE = DESCRIPTOR.services_by_name["MembershipService"]


class Member(MembershipServiceServicer):
    """Says what the test wants it to say: watchers get `says` in order, and then wait for more."""

    def __init__(self):
        self.says = []
        self.more = asyncio.Event()
        self.asked = []
        self.is_asked = asyncio.Event()
        self.commands = []
        self.heartbeats = []
        self.on_execute = lambda: ExecuteResponse(result=CommandResult(revision=1))
        self.on_heartbeat = lambda: HeartbeatResponse(incarnation=1)
        self.server = GrpcServer()
        self.server.add(SERVICE, add_MembershipServiceServicer_to_server, self)

    def say(self, *responses):
        self.says += responses
        self.more.set()

    async def Watch(self, request, context):  # noqa: N802 (a method of the service)
        self.asked.append(request.revision)
        self.is_asked.set()
        while True:
            while self.says:
                response = self.says.pop(0)
                if response is None:
                    raise Refused(grpc.StatusCode.UNAVAILABLE, "over", "OVER")
                yield response
            self.more.clear()
            await self.more.wait()

    async def Execute(self, request, context):  # noqa: N802 (a method of the service)
        self.commands.append(request.command)
        return self.on_execute()

    async def Heartbeat(self, request, context):  # noqa: N802 (a method of the service)
        self.heartbeats.append(request)
        return self.on_heartbeat()


def fails(code, details=()):
    def fail():
        raise Refused(code, "as asked", "AS_ASKED", details=details)

    return fail


def sends_to(leader):
    return fails(grpc.StatusCode.FAILED_PRECONDITION, (NotLeader(leader=leader),))


def run(story, count=1):
    """`story` gets a directory and the members m1, m2, ... that it knows."""

    async def told():
        members = {f"m{number}": Member() for number in range(1, count + 1)}
        addresses = {}
        for name, member in members.items():
            addresses[name] = f"127.0.0.1:{await member.server.start('127.0.0.1:0')}"
        directory = Directory("n", addresses, Credentials(TlsSettings()))
        changes = Changes(directory)
        following = asyncio.create_task(directory.follow())
        try:
            async with asyncio.timeout(20):
                await story(directory, changes, *members.values())
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await directory.stop()
            for member in members.values():
                await member.server.stop(None)

    asyncio.run(told())


class Changes:
    """The revisions that the directory's owner was told of."""

    def __init__(self, directory):
        self.directory = directory
        self.seen = []
        self.news = asyncio.Event()
        directory.on_change = self._on_change

    def _on_change(self):
        self.seen.append(self.directory.revision)
        self.news.set()

    async def until(self, revision):
        """Or later: several changes may be told at once."""
        while not self.seen or self.seen[-1] < revision:
            self.news.clear()
            await self.news.wait()


@pytest.fixture(autouse=True)
def _quick_retries(monkeypatch):
    monkeypatch.setattr(directory_module, "RETRY_S", 0.01)


def state(revision, *, reset=True, cluster=b"c", **what):
    return WatchResponse(revision=revision, reset=reset, cluster_id=cluster, **what)


def group(name, number=1, stage=GROUP_STATE_ACTIVE, domain="d"):
    made = Group(name=name, id=f"{name}#{number}", domain=domain, configuration=1, state=stage)
    made.replicas.extend(["s2", "s1"])
    made.acceptors.extend(["c2", "c1"])
    return made


# --------------------------------------------------------------------------------------------------- following


def test_changes_add_up_to_what_there_is():
    async def story(directory, changes, member):
        member.say(
            state(3, nodes=[Node(name="s1", incarnation=1)], domains=[Domain(name="d")], groups=[group("a")]),
            state(5, reset=False, nodes=[Node(name="s1", incarnation=4)], groups=[group("b", 2)], retired=2),
            state(7, reset=False, groups=[group("a", stage=GROUP_STATE_DELETING)]),
        )
        await changes.until(7)
        assert changes.seen == sorted(set(changes.seen))
        assert directory.nodes["s1"].incarnation == 4
        assert sorted(directory.groups) == ["a#1", "b#2"]
        assert directory.group_by_name["a"].state == GROUP_STATE_DELETING
        assert (directory.retired, directory.cluster_id) == (2, b"c")
        member.say(state(9, reset=False, groups=[group("a", stage=GROUP_STATE_DELETED)]))
        await changes.until(9)
        assert list(directory.groups) == ["b#2"]
        assert list(directory.group_by_name) == ["b"]

    run(story)


def test_nobody_is_told_of_a_change_before_all_have_heard_of_the_one_before():
    async def story(directory, changes, member):
        is_settling, may_settle = asyncio.Event(), asyncio.Event()

        async def settled():
            is_settling.set()
            await may_settle.wait()

        directory.settled = settled
        member.say(state(3), state(5, reset=False))
        await is_settling.wait()
        await directory.execute(Command(), timeout_s=5)
        assert changes.seen == [3]
        may_settle.set()
        await changes.until(5)

    run(story)


class Reads:
    """A call that has answers at once, and then is over."""

    def __init__(self, *answers):
        self.answers = [*answers, grpc.aio.EOF]

    async def read(self):
        return self.answers.pop(0)


def test_what_comes_while_the_directory_rests_is_told_as_one_change():
    async def heaps():
        directory = Directory("n", {}, Credentials(TlsSettings()))
        directory._rest_until = asyncio.get_running_loop().time() + 3600
        said = [state(5), state(7, reset=False), state(9, reset=False)]
        return [[change.revision for change in heap] async for heap in directory._heaps(Reads(*said))]

    assert asyncio.run(heaps()) == [[5, 7, 9]]


def test_who_has_rested_hears_of_each_change_at_once():
    async def heaps():
        directory = Directory("n", {}, Credentials(TlsSettings()))
        said = [state(5), state(7, reset=False)]
        return [[change.revision for change in heap] async for heap in directory._heaps(Reads(*said))]

    assert asyncio.run(heaps()) == [[5], [7]]


def test_a_view_has_the_groups_of_its_domain_in_order():
    async def story(directory, changes, member):
        groups = [group("b", 2), group("a", 1), group("x", 3, domain="e")]
        member.say(state(3, groups=groups))
        await changes.until(3)
        view = directory.view("d")
        assert (view.domain, view.number) == ("d", 3)
        assert [g.group for g in view.groups] == ["a#1", "b#2"]
        assert list(view.groups[0].replicas) == ["s1", "s2"]
        assert list(view.groups[0].acceptors) == ["c1", "c2"]

    run(story)


def test_a_view_says_when_its_groups_last_changed_however_much_was_heard_at_once():
    """Processes name that to each other: it must be the same for all who know the same groups."""

    def changed(*responses):
        directory = Directory("n1", {"m1": "m1:1"}, Credentials(TlsSettings()))
        for response in responses:
            directory._apply(response)
        view = directory.view("d")
        return view.number, view.changed

    def at(revision, stage=GROUP_STATE_ACTIVE, domain="d"):
        one = group("a", stage=stage, domain=domain)
        one.revision = revision
        return one

    news = state(8, reset=False, nodes=[Node(name="n1", revision=8)])
    assert changed(state(7, groups=[at(7)])) == (7, 7)
    assert changed(state(7, groups=[at(7)]), news) == (8, 7)
    assert changed(state(8, groups=[at(7)])) == (8, 7)
    assert changed(state(8, groups=[at(7), at(8, domain="e")])) == (8, 7)
    assert changed(state(7, groups=[at(7)]), state(9, reset=False, groups=[at(9, GROUP_STATE_DELETED)])) == (9, 9)
    # Who starts afresh has not heard of that, and waits for nobody who has: it has heard as much.
    assert changed(state(9, groups=[])) == (9, 0)


# -------------------------------------------------------------------------------------------- groups in cells


def cell(number, revision=0, domain="d"):
    made = group(f"cell-{number}", number, domain=domain)
    made.revision = revision
    return made


def light(name, number, of, stage=GROUP_STATE_ACTIVE, domain="d", revision=0):
    return Group(name=name, id=f"{name}#{number}", domain=domain, state=stage, cell=of.id, revision=revision)


def heard(*responses):
    directory = Directory("n1", {"m1": "m1:1"}, Credentials(TlsSettings()))
    for response in responses:
        directory._apply(response)
    return directory


def test_a_group_that_shares_its_cell_is_found_by_its_address_and_described_like_any_other():
    c = cell(1, revision=3)
    c.settings["order"] = "yes"
    c.is_cell = True
    directory = heard(state(9, cells=[c], groups=[light("a", 2, c, revision=4), group("own", 3)], group_last=3))
    a, own = directory.group_by_name["a"], directory.group_by_name["own"]
    assert (directory.address_of(a), directory.address_of(own)) == ("cell-1#1/a#2", "own#3")
    assert directory.group_at("cell-1#1/a#2") == a
    assert directory.group_at("own#3") is own
    for wrong in ("a#2", "cell-2#9/a#2", "cell-1#1/own#3", "cell-1#1", ""):
        assert directory.group_at(wrong) is None
    assert sorted(directory.cells) == ["cell-1#1", "own#3"]
    assert sorted(directory.groups) == ["a#2", "own#3"]
    assert directory.cell_of(a) == c
    assert directory.cell_of(own) is own
    assert directory.described(own) is own
    described = directory.described(a)
    assert (described.name, described.id, described.cell, described.revision) == ("a", "a#2", "cell-1#1", 4)
    assert (described.configuration, list(described.replicas)) == (1, ["s2", "s1"])
    assert dict(described.settings) == {"order": "yes"}
    assert not described.is_cell
    assert not a.replicas


def test_views_are_of_cells_and_groups_that_come_and_go_in_them_are_no_change():
    c = cell(1, revision=3)
    directory = heard(state(3, cells=[c]))
    before = directory.view("d")
    assert [one.group for one in before.groups] == ["cell-1#1"]
    for number in range(2, 9):
        directory._apply(
            state(number + 3, reset=False, groups=[light(f"g{number}", number, c, revision=number + 3)])
        )
    going = light("g2", 2, c, GROUP_STATE_DELETING, revision=20)
    gone = light("g3", 3, c, GROUP_STATE_DELETED, revision=20)
    directory._apply(state(20, reset=False, groups=[going, gone]))
    after = directory.view("d")
    assert (after.changed, list(after.groups)) == (before.changed, list(before.groups))
    assert directory.groups_in == {"cell-1#1": 6}
    assert list(directory.deleting) == ["g2#2"]
    directory._apply(state(21, reset=False, cells=[cell(1, revision=21)]))
    assert directory.view("d").changed == 21


def test_a_name_that_is_used_again_is_the_later_group_in_whatever_order_that_is_heard():
    c = cell(1)
    first, second = light("a", 9, c), light("a", 10, c)
    over = light("a", 9, c, GROUP_STATE_DELETED)
    directory = heard(state(3, cells=[c], groups=[first]), state(5, reset=False, groups=[second, over]))
    assert directory.group_by_name["a"].id == "a#10"
    assert list(directory.groups) == ["a#10"]
    assert directory.groups_in == {"cell-1#1": 1}


def test_it_is_told_once_which_groups_of_shared_cells_are_gone_also_after_a_reset():
    c = cell(1)
    there = [light(name, number, c) for number, name in enumerate("abc", start=2)]
    directory = heard(state(3, cells=[c], groups=[*there, group("own", 5)], group_last=5))
    assert directory.take_gone() == {}
    directory._apply(state(4, reset=False, groups=[light("a", 2, c, GROUP_STATE_DELETED)]))
    directory._apply(state(400, cells=[c], groups=[there[1]], group_last=6))
    assert directory.take_gone() == {"d": ["cell-1#1/a#2", "cell-1#1/c#4"]}
    assert directory.take_gone() == {}


def test_an_id_is_gone_if_its_number_was_given_and_it_is_not_there():
    c = cell(1)
    directory = heard(state(3, cells=[c], groups=[light("a", 3, c)], group_last=4))
    assert directory.is_gone("cell-1#1/b#2")
    assert directory.is_gone("cell-1#1/b#4")
    assert not directory.is_gone("cell-1#1/a#3")
    assert not directory.is_gone("cell-1#1/b#5"), "it may be there by now"


def test_what_is_over_is_an_ended_incarnation_or_every_one_before_the_present():
    async def story(directory, changes, member):
        nodes = [Node(name="gone", incarnation=4, ended=True), Node(name="here", incarnation=7)]
        member.say(state(1, nodes=nodes))
        await changes.until(1)
        assert directory.ended() == {"gone": 4, "here": 6}

    run(story)


def test_a_reset_replaces_everything():
    async def story(directory, changes, member):
        member.say(state(3, nodes=[Node(name="s1")], groups=[group("a")]))
        member.say(state(300, nodes=[Node(name="s2")], groups=[group("b", 2)]))
        await changes.until(300)
        assert list(directory.nodes) == ["s2"]
        assert list(directory.group_by_name) == ["b"]

    run(story)


def test_the_next_member_is_asked_for_what_came_since():
    async def story(directory, changes, first, second):
        first.say(state(3, groups=[group("a")]), None)
        await changes.until(3)
        second.say(state(4, reset=False, groups=[group("b", 2)]), None)
        await changes.until(4)
        assert sorted(directory.groups) == ["a#1", "b#2"]
        assert first.asked[0] == 0
        assert second.asked[0] == 3

    run(story, 2)


def test_the_directory_never_goes_back_when_the_watch_moves():
    async def story(directory, changes, first, second):
        first.say(state(9, groups=[group("a")]), None)
        await changes.until(9)
        second.say(state(5), state(9, reset=False, groups=[group("b", 2)]), state(10, reset=False))
        await changes.until(10)
        assert changes.seen == [9, 10]
        assert list(directory.groups) == ["a#1"]

    run(story, 2)


def test_a_member_that_is_behind_our_registration_is_not_begun_with():
    """It has not heard of a group whose log is here: with its word, that log would be dropped."""

    async def story(directory, changes, first, second):
        directory.revision_min = 8
        first.say(state(5))
        second.say(state(8, groups=[group("a")]))
        await changes.until(8)
        assert changes.seen == [8]
        assert list(directory.groups) == ["a#1"]

    run(story, 2)


def test_a_member_of_another_cluster_is_not_believed():
    async def story(directory, changes, first, second):
        first.say(state(3, groups=[group("a")]), None)
        await changes.until(3)
        second.say(state(50, cluster=b"another", groups=[group("b", 2)]))
        first.say(state(4, reset=False))
        await changes.until(4)
        assert changes.seen == [3, 4]
        assert list(directory.groups) == ["a#1"]

    run(story, 2)


def test_nothing_is_heard_of_members_that_are_cut_off():
    async def story(directory, changes, first, second):
        first.say(state(3), None)
        await changes.until(3)
        directory.cut_off = frozenset({"m2"})
        second.say(state(4, reset=False))
        first.say(state(5, reset=False))
        await changes.until(5)
        assert changes.seen == [3, 5]

    run(story, 2)


# ------------------------------------------------------------------------------------------- commands, heartbeats


def command():
    return Command(create_group=CreateGroup(name="a"))


def test_a_command_is_repeated_with_the_same_id_until_it_is_answered():
    async def story(directory, changes, first, second):
        answers = [fails(grpc.StatusCode.UNAVAILABLE), fails(grpc.StatusCode.INTERNAL), sends_to("")]

        def answer():
            if answers:
                answers.pop(0)()
            return ExecuteResponse(result=CommandResult(revision=17))

        first.on_execute = second.on_execute = answer
        assert (await directory.execute(command(), 10.0)).revision == 17
        sent = first.commands + second.commands
        assert len(sent) == 4
        assert len({bytes(one.request_id) for one in sent}) == 1
        assert sent[0].request_id

    run(story, 2)


def test_two_commands_have_two_ids():
    async def story(directory, changes, member):
        await directory.execute(command(), 10.0)
        await directory.execute(command(), 10.0)
        assert len({bytes(one.request_id) for one in member.commands}) == 2

    run(story)


def test_who_is_not_the_leader_says_who_is_and_that_is_remembered():
    async def story(directory, changes, first, second, third):
        first.on_execute = third.on_execute = sends_to("m2")
        for _ in range(3):
            await directory.execute(command(), 10.0)
        assert len(second.commands) == 3
        assert len(first.commands) + len(third.commands) <= 1
        second.on_heartbeat = lambda: HeartbeatResponse(incarnation=5)
        assert (await directory.heartbeat(HeartbeatRequest(name="n"))).incarnation == 5

    run(story, 3)


def test_two_members_that_believe_in_each_other_end_with_a_refusal():
    async def story(directory, changes, first, second):
        first.on_execute, second.on_execute = sends_to("m2"), sends_to("m1")
        with pytest.raises(Refused) as refused:
            await directory.execute(command(), 0.1)
        assert refused.value.code == grpc.StatusCode.UNAVAILABLE

    run(story, 2)


def test_a_leader_that_nobody_knows_is_not_dialled():
    async def story(directory, changes, member):
        answers = [sends_to("stranger"), sends_to("m1")]

        def answer():
            if answers:
                answers.pop(0)()
            return ExecuteResponse(result=CommandResult(revision=1))

        member.on_execute = answer
        assert (await directory.execute(command(), 10.0)).revision == 1

    run(story)


@pytest.mark.parametrize("code", [grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.INVALID_ARGUMENT])
def test_what_repeating_does_not_change_is_not_repeated(code):
    async def story(directory, changes, member):
        member.on_execute = fails(code)
        with pytest.raises(Refused) as refused:
            await directory.execute(command(), 10.0)
        assert (refused.value.code, refused.value.reason) == (code, "AS_ASKED")
        assert len(member.commands) == 1

    run(story)


def test_a_leader_that_is_cut_off_is_not_asked_again():
    async def story(directory, changes, first, second):
        await directory.execute(command(), 10.0)
        leader, other = (first, second) if first.commands else (second, first)
        directory.cut_off = frozenset({"m1" if leader is first else "m2"})
        await directory.execute(command(), 10.0)
        assert (len(leader.commands), len(other.commands)) == (1, 1)

    run(story, 2)


def test_a_heartbeat_that_fails_at_one_member_goes_to_the_next():
    async def story(directory, changes, first, second):
        for failing, other in ((first, second), (second, first)):
            failing.on_heartbeat = fails(grpc.StatusCode.UNAVAILABLE)
            other.on_heartbeat = lambda: HeartbeatResponse(incarnation=3)
            answer = await directory.heartbeat(HeartbeatRequest(name="n"))
            assert answer.incarnation == 3

    run(story, 2)


def test_a_heartbeat_that_fails_everywhere_is_no_error():
    async def story(directory, changes, first, second):
        first.on_heartbeat = second.on_heartbeat = fails(grpc.StatusCode.UNAVAILABLE)
        assert await directory.heartbeat(HeartbeatRequest(name="n")) is None
        assert min(len(first.heartbeats), len(second.heartbeats)) > 0
        first.on_heartbeat = second.on_heartbeat = lambda: HeartbeatResponse(incarnation=3, ended=True)
        answer = await directory.heartbeat(HeartbeatRequest(name="n", incarnation=2))
        assert (answer.incarnation, answer.ended) == (3, True)
        heard = len(first.heartbeats) + len(second.heartbeats)
        directory.cut_off = frozenset({"m1", "m2"})
        assert await directory.heartbeat(HeartbeatRequest(name="n")) is None
        assert len(first.heartbeats) + len(second.heartbeats) == heard

    run(story, 2)
