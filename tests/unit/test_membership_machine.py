"""Membership's machine by hand: batches, answers, and the duties of a leader."""

from typing import Any

import pytest

from ordercast.core.errors import InvariantBroken
from ordercast.core.ids import U64_MAX
from ordercast.core.machine import Effect, Event, Hand, SetTimer, Start, TimerFired
from ordercast.membership import settings as limits
from ordercast.membership.machine import (
    TIMER,
    Execute,
    Executed,
    HeartbeatReceived,
    Membership,
    NotLeading,
    StateChanged,
)
from ordercast.membership.settings import MembershipSettings
from ordercast.membership.state import Code, State
from ordercast.protocols.paxos.log import (
    Append,
    AppendRefused,
    LeaderChanged,
    LogApplied,
    LogSnapshot,
    Truncate,
)
from ordercast.v1.membership_pb2 import (
    Command,
    CommandBatch,
    CreateGroup,
    Cursor,
    DeleteGroup,
    DrainNode,
    EndIncarnation,
    FoundCluster,
    HeartbeatRequest,
    MoveCursors,
    RegisterNode,
)

FOUNDING = FoundCluster(cluster_id=b"cluster", key=b"key")
ALL = ("consensus", "gateway", "sequencer")


class Member:
    """Member m, and a log that holds what it is told to hold."""

    def __init__(self, **settings: Any) -> None:
        self.machine = Membership("m", FOUNDING, MembershipSettings(**settings))
        self.now = 100.0
        self.slots = 0
        self.tags = 0
        self.step(Start, 7, [])

    def step(self, event: type[Event], *fields: Any) -> list[Effect]:
        effects = self.machine.step(event(self.now, 0.0, *fields))
        self.machine.check_invariants()
        return effects

    # --- the log

    def lead(self) -> list[Effect]:
        return self.step(LeaderChanged, "m")

    def follow(self, leader: str | None = "other") -> list[Effect]:
        return self.step(LeaderChanged, leader)

    def apply(self, value: bytes | None, tag: bytes | None) -> list[Effect]:
        self.slots += 1
        return self.step(LogApplied, self.slots - 1, value, tag)

    def settle(self, effects: list[Effect]) -> list[Effect]:
        """The log takes what is appended, and what is appended then, until nothing is."""
        found = list(effects)
        while appended := appends(effects):
            effects = self.apply(appended[0].value, appended[0].tag)
            found += effects
        return found

    # --- others

    def execute(self, request_id: bytes = b"", **what: Any) -> list[Effect]:
        """With the request id, or a number, as the tag."""
        self.tags += 1
        id_ = request_id or b"%d" % self.tags
        return self.step(Execute, Command(request_id=id_, **what), id_)

    def register(self, name: str, services: tuple[str, ...] = ALL, **fields: Any) -> int:
        """Its incarnation."""
        values = {"node_id": name.encode(), "peer_address": "a:1"} | fields
        node = RegisterNode(name=name, services=services, **values)
        executed = answers(self.settle(self.execute(register=node)))
        return int(executed[0].result.registered.incarnation)

    def heartbeat(self, name: str, **fields: Any) -> list[Effect]:
        """Of the current incarnation, up to date, with nothing open, unless said otherwise."""
        state = self.machine.state
        values = {"revision": state.revision, "oldest_open": U64_MAX}
        values["incarnation"] = state.nodes[name].incarnation if name in state.nodes else 1
        return self.step(HeartbeatReceived, HeartbeatRequest(name=name, **{**values, **fields}))

    def tick(self, seconds: float = 0.0) -> list[Effect]:
        self.now += seconds
        return self.step(TimerFired, TIMER, 0)

    def wait(self, seconds: float, *alive: str, **fields: Any) -> list[Command]:
        """Tick after tick, with heartbeats of those who live. Returns the duties that were done."""
        done: list[Command] = []
        while seconds > 0:
            seconds -= 0.5
            for name in alive:
                done += self.done(self.heartbeat(name, **fields))
            done += self.done(self.tick(0.5))
        return done

    def done(self, effects: list[Effect]) -> list[Command]:
        return [command for append in appends(self.settle(effects)) for command in commands_of(append)]


def founded(**settings: Any) -> Member:
    member = Member(**settings)
    member.settle(member.lead())
    return member


def appends(effects: list[Effect]) -> list[Append]:
    return [e.event for e in effects if isinstance(e, Hand) and isinstance(e.event, Append)]


def commands_of(append: Append) -> list[Command]:
    return list(CommandBatch.FromString(append.value).commands)


def answers(effects: list[Effect]) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, Executed | NotLeading)]


def kinds(commands: list[Command]) -> list[str | None]:
    return [command.WhichOneof("what") for command in commands]


DELETE = DeleteGroup(name="g")


# ------------------------------------------------------------------------------------------------- commands


def test_a_member_that_does_not_lead_names_the_leader():
    member = Member()
    assert answers(member.execute(delete_group=DELETE)) == [NotLeading(b"1", None)]
    member.follow("other")
    assert answers(member.execute(delete_group=DELETE)) == [NotLeading(b"2", "other")]


def test_commands_pile_up_while_a_batch_is_under_way():
    member = founded()
    first = appends(member.execute(delete_group=DELETE))[0]
    assert member.execute(delete_group=DELETE) == []
    assert member.execute(delete_group=DELETE) == []
    effects = member.apply(first.value, first.tag)
    assert [answer.tag for answer in answers(effects)] == [b"1"]
    second = appends(effects)[0]
    assert [command.request_id for command in commands_of(second)] == [b"2", b"3"]
    results = answers(member.apply(second.value, second.tag))
    assert [(one.tag, one.result.code) for one in results] == [(b"2", Code.NOT_FOUND), (b"3", Code.NOT_FOUND)]


def test_a_command_is_answered_only_when_it_is_applied():
    member = founded()
    effects = member.execute(delete_group=DELETE)
    assert answers(effects) == []
    assert answers(member.apply(None, None)) == []
    assert answers(member.settle(effects)) != []


def test_a_malformed_command_never_reaches_the_log():
    member = founded()
    for command in (Command(delete_group=DELETE), Command(request_id=b"r")):
        effects = member.step(Execute, command, b"t")
        assert [(one.tag, one.result.code) for one in answers(effects)] == [(b"t", Code.INVALID_ARGUMENT)]
        assert not appends(effects)


def test_beyond_the_count_of_a_batch_commands_are_refused():
    member = founded(batch_count_max=2)
    member.execute(delete_group=DELETE)
    for _ in range(2):
        assert member.execute(delete_group=DELETE) == []
    assert answers(member.execute(delete_group=DELETE))[0].result.code == Code.RESOURCE_EXHAUSTED


def test_beyond_the_bytes_of_a_slot_commands_are_refused():
    member = founded()
    member.execute(delete_group=DELETE)
    large = DeleteGroup(name="g" * (limits.COMMAND_BYTES_MAX - 100))
    assert member.execute(delete_group=large) == []
    assert answers(member.execute(delete_group=large))[0].result.code == Code.RESOURCE_EXHAUSTED
    assert member.machine.buffers()["next_bytes"] <= member.machine.settings.log.value_bytes_max


def test_a_batch_is_never_larger_than_a_slot():
    member = founded()
    member.execute(delete_group=DELETE)
    while not answers(member.execute(delete_group=DeleteGroup(name="g" * 126))):
        pass
    batch = member.apply(None, None) + member.step(AppendRefused, member.machine.flight[0], "m")
    assert len(appends(batch)[0].value) <= member.machine.settings.log.value_bytes_max


def test_a_repeated_command_is_answered_at_once_by_any_member():
    member = founded()
    first = answers(member.settle(member.execute(b"r", delete_group=DELETE)))
    assert answers(member.execute(b"r", delete_group=DELETE)) == first
    member.follow()
    assert answers(member.execute(b"r", delete_group=DELETE)) == first


# ------------------------------------------------------------------------------------------------- the log


def test_a_refused_batch_sends_everyone_on():
    member = founded()
    append = appends(member.execute(delete_group=DELETE))[0]
    assert answers(member.step(AppendRefused, append.tag, "other")) == [NotLeading(b"1", "other")]


def test_a_log_without_room_is_no_reason_to_look_for_another_leader():
    member = founded()
    append = appends(member.execute(delete_group=DELETE))[0]
    answer = answers(member.step(AppendRefused, append.tag, "m"))[0]
    assert answer.result.code == Code.RESOURCE_EXHAUSTED


def test_a_leader_that_is_overtaken_sends_everyone_on_and_answers_nobody_twice():
    member = founded()
    append = appends(member.execute(delete_group=DELETE))[0]
    member.execute(delete_group=DELETE)
    assert answers(member.follow()) == [NotLeading(b"1", "other"), NotLeading(b"2", "other")]
    assert answers(member.apply(append.value, append.tag)) == []
    assert answers(member.step(AppendRefused, append.tag, "other")) == []
    assert member.machine.buffers()["flight"] == member.machine.buffers()["next"] == 0


def test_a_leader_that_leads_again_does_not_take_an_old_answer_for_a_new_one():
    member = founded()
    old = appends(member.execute(delete_group=DELETE))[0]
    member.follow(None)
    member.lead()
    new = appends(member.execute(b"new", delete_group=DELETE))[0]
    assert answers(member.step(AppendRefused, old.tag, "m")) == []
    assert [one.tag for one in answers(member.apply(new.value, new.tag))] == [b"new"]


def test_an_outcome_hidden_by_a_snapshot_is_looked_up_there():
    """Three commands in one batch: the snapshot remembers one of them, and not what may be repeated."""
    member = founded()
    first = appends(member.execute(b"0", delete_group=DELETE))[0]
    member.execute(b"known", delete_group=DELETE)
    member.execute(b"move", move_cursors=MoveCursors(cursors=[Cursor(group="g", name="c")]))
    batch = appends(member.apply(first.value, first.tag))[0]
    elsewhere = State.from_bytes(member.machine.state.to_bytes())
    elsewhere.apply(member.slots, batch.value)
    snapshot = elsewhere.to_bytes()
    effects = member.step(LogSnapshot, elsewhere.revision, snapshot, (batch.tag,))
    executed, sent_on = answers(effects)
    assert (executed.tag, executed.result.code) == (b"known", Code.NOT_FOUND)
    assert sent_on == NotLeading(b"move", "m")
    assert member.machine.state.to_bytes() == snapshot


def test_a_snapshot_of_other_slots_stops_the_member():
    member = Member()
    with pytest.raises(InvariantBroken, match="slots"):
        member.step(LogSnapshot, 5, State().to_bytes(), ())


def test_the_log_is_truncated_every_so_many_slots():
    member = founded(snapshot_every=3)
    truncated = [e.event for _ in range(8) for e in member.apply(None, None) if isinstance(e, Hand)]
    assert [event.slot for event in truncated if isinstance(event, Truncate)] == [3, 6, 9]
    assert State.from_bytes(truncated[-1].snapshot).revision == 9


def test_watchers_are_woken_only_by_what_they_can_see():
    member = founded()
    member.register("n")
    group = CreateGroup(name="g")
    assert StateChanged(member.slots + 1) in member.settle(member.execute(create_group=group))
    move = MoveCursors(cursors=[Cursor(group="g", name="c")])
    effects = member.settle(member.execute(move_cursors=move))
    assert not [effect for effect in effects if isinstance(effect, StateChanged)]


def test_a_group_does_not_get_fewer_replicas_for_good_because_a_node_is_silent_for_a_moment():
    member = founded(suspect_s=1.0)
    for name in "abc":
        member.register(name)
    member.wait(2, "a", "b")
    assert member.machine.state.nodes["c"].suspected
    (refused,) = answers(member.settle(member.execute(create_group=CreateGroup(name="g"))))
    assert refused.result.code == Code.FAILED_PRECONDITION
    assert "say that fewer replicas than 3 will do" in refused.result.message
    for name, replicas in (("two", 2), ("g", 0)):
        (made,) = answers(member.settle(member.execute(create_group=CreateGroup(name=name, replicas=replicas))))
        assert len(made.result.group.replicas) == (replicas or 3)
        member.wait(1, "a", "b", "c")


# ------------------------------------------------------------------------------------------------- duties


def test_whoever_leads_first_founds_the_cluster():
    member = Member()
    effects = member.lead()
    assert commands_of(appends(effects)[0])[0].found == FOUNDING
    assert appends(member.tick(0.5)) == []
    member.settle(effects)
    assert member.machine.state.cluster_id == b"cluster"
    assert member.wait(2) == []


def test_a_follower_has_no_duties():
    member = Member()
    member.follow()
    effects = member.tick(1000)
    assert effects == [SetTimer(TIMER, 0.5)]


def test_a_silent_node_is_suspected_and_forgiven_when_it_is_heard_again():
    member = founded()
    member.register("n")
    assert member.wait(2.5) == []
    marks = member.wait(1)
    assert kinds(marks) == ["mark_node"]
    assert member.machine.state.nodes["n"].suspected
    assert member.wait(5) == []
    assert kinds(member.wait(0.5, "n"))[0] == "mark_node"
    assert not member.machine.state.nodes["n"].suspected


def test_a_new_leader_waits_before_it_suspects_anybody():
    member = founded()
    member.register("n")
    member.heartbeat("n")
    member.follow()
    for _ in range(20):
        member.tick(0.5)
    member.settle(member.lead())
    assert member.wait(2.5) == []
    assert kinds(member.wait(1)) == ["mark_node"]


def test_a_leader_that_slept_suspects_nobody():
    member = founded()
    member.register("n")
    assert member.done(member.tick(1000)) == []
    assert member.wait(2.5) == []
    assert not member.machine.state.nodes["n"].ended


def test_a_full_disk_and_a_farewell_are_believed_at_once():
    member = founded()
    member.register("n", ("consensus",))
    member.wait(0.5, "n", read_only=True)
    node = member.machine.state.nodes["n"]
    assert (node.read_only, node.suspected) == (True, False)
    assert kinds(member.done(member.heartbeat("n", leaving=True))) == ["mark_node"]
    assert node.suspected


def test_an_incarnation_that_is_silent_for_long_is_ended():
    member = founded(end_after_s=10.0)
    incarnation = member.register("n")
    ends = [one for one in member.wait(15) if one.WhichOneof("what") == "end_incarnation"]
    assert [(one.end_incarnation.name, one.end_incarnation.incarnation) for one in ends] == [("n", incarnation)]
    answer = member.machine.heartbeat_answer(HeartbeatRequest(name="n", incarnation=incarnation))
    assert (answer.incarnation, answer.ended) == (incarnation, True)


def test_a_heartbeat_of_another_incarnation_changes_nothing():
    member = founded()
    old = member.register("n")
    new = member.register("n")
    for fields in ({"incarnation": old}, {"incarnation": new + 1}):
        kinds_done = kinds(member.wait(4, "n", **fields))
        assert "mark_node" in kinds_done or member.machine.state.nodes["n"].suspected
    assert member.heartbeat("stranger") == []
    assert member.machine.heartbeat_answer(HeartbeatRequest(name="stranger")).incarnation == 0
    assert member.machine.heartbeat_answer(HeartbeatRequest(name="n", incarnation=old)).incarnation == new


def silent(member: Member) -> list[Effect]:
    """Until those who say nothing are suspected. The log takes nothing."""
    for _ in range(6):
        member.tick(0.5)
    return member.tick(0.5)


def test_a_duty_that_is_under_way_is_not_begun_again():
    member = founded()
    member.register("n")
    effects = silent(member)
    assert kinds(commands_of(appends(effects)[0])) == ["mark_node"]
    assert appends(member.tick(0.5)) == []
    assert member.machine.buffers()["next"] == 0
    assert member.machine.buffers()["duties"] == 1


def test_a_duty_that_was_lost_with_the_reign_is_begun_again():
    member = founded()
    member.register("n")
    silent(member)
    assert member.machine.buffers()["duties"] == 1
    member.follow(None)
    assert member.machine.buffers()["duties"] == 0
    member.lead()
    assert kinds(member.wait(3.5)) == ["mark_node"]


# ---------------------------------------------------------------------------------- gateways that are over


def with_gateways(*names: str, **settings: Any) -> Member:
    """Beside a node n; all run software that removes nodes."""
    member = founded(end_after_s=5.0, **settings)
    for name in ("n", *names):
        member.register(name, ALL if name == "n" else ("gateway",), level=1)
    member.wait(0.5, "n", *names, level=1)
    return member


def test_a_gateway_that_is_over_is_forgotten_and_hears_so_when_it_wakes_up():
    member = with_gateways("g")
    state = member.machine.state
    old = state.nodes["g"].incarnation
    assert "remove_node" not in kinds(member.wait(4.5, "n")), "it is only suspected"
    assert "remove_node" in kinds(member.wait(3, "n"))
    assert (list(state.nodes), list(state.removed)) == (["n"], ["g"])
    beat = HeartbeatRequest(name="g", incarnation=old, revision=2)
    assert member.machine.heartbeat_answer(beat).ended
    # Another one later its tombstone is gone, too.
    state.removed.clear()
    assert member.machine.heartbeat_answer(beat).ended
    beat.revision = state.revision + 1
    assert not member.machine.heartbeat_answer(beat).ended, "it has seen more than this member"
    assert member.register("g", ("gateway",), node_id=b"another disk", level=1) > old


def test_a_gateway_that_says_that_it_is_over_is_forgotten_at_once():
    member = with_gateways("g")
    end = EndIncarnation(name="g", incarnation=member.machine.state.nodes["g"].incarnation)
    member.settle(member.execute(end_incarnation=end))
    assert kinds(member.done(member.tick())) == ["remove_node"]


def test_a_leader_that_has_not_heard_of_the_next_life_of_a_process_does_not_end_it():
    """A new leader may still have to hear what the one before it has decided and answered."""
    member = with_gateways("g")
    old = member.machine.state.nodes["g"].incarnation
    member.settle(member.execute(end_incarnation=EndIncarnation(name="g", incarnation=old)))
    for where in ("nodes", "removed"):
        assert "g" in getattr(member.machine.state, where)
        beat = HeartbeatRequest(name="g", incarnation=old + 1, revision=member.machine.state.revision + 1)
        assert not member.machine.heartbeat_answer(beat).ended
        member.done(member.tick())


def test_a_gateway_that_comes_back_just_then_stays():
    member = with_gateways("g")
    end = EndIncarnation(name="g", incarnation=member.machine.state.nodes["g"].incarnation)
    member.settle(member.execute(end_incarnation=end))
    node = RegisterNode(name="g", node_id=b"g", peer_address="a:1", services=("gateway",), level=1)
    register = member.execute(register=node)
    removing = member.tick()
    assert "remove_node" in kinds(member.done([*register, *removing]))
    assert not member.machine.state.nodes["g"].ended


def test_what_runs_more_than_a_gateway_or_is_drained_is_not_forgotten():
    member = with_gateways("g", "h")
    member.settle(member.execute(drain_node=DrainNode(node="g", draining=True)))
    member.wait(10)
    nodes = member.machine.state.nodes
    assert {name: node.ended for name, node in nodes.items()} == {"g": True, "n": True}


def test_gateways_are_not_forgotten_before_all_software_knows_how():
    member = founded(end_after_s=5.0)
    member.register("n", level=0)
    member.register("g", ("gateway",), level=0)
    member.wait(10, "n", level=0)
    assert member.machine.state.nodes["g"].ended


def test_gateways_wait_until_there_is_room_for_what_is_removed(monkeypatch):
    monkeypatch.setattr(limits, "TOMBSTONES_MAX", 1)
    member = with_gateways("g", "h")
    done = kinds(member.wait(10, "n", oldest_open=0))
    assert list(member.machine.state.nodes) == ["n", "h"]
    assert done.count("remove_node") == 2, "both in one slot, and the one that is refused not again and again"
    # A later life of the only other gateway: then all before it can be retired.
    member.register("n", level=1)
    member.wait(3, "n")
    assert list(member.machine.state.nodes) == ["n"]


# ------------------------------------------------------------------------------------------------- retiring


def retired(member: Member) -> int:
    return member.machine.state.retired


def test_what_nobody_holds_open_is_retired_up_to_the_oldest_living_gateway():
    member = founded()
    member.register("g", ("gateway",))
    member.register("s", ("sequencer",))
    living = member.register("g", ("gateway",))
    member.wait(3, "g", "s")
    assert retired(member) == living


def test_nothing_that_is_open_somewhere_is_retired():
    member = founded()
    member.register("g", ("gateway",))
    member.register("s", ("sequencer",))
    member.register("g", ("gateway",))
    for _ in range(6):
        member.heartbeat("g")
        member.heartbeat("s", oldest_open=2)
        member.settle(member.tick(0.5))
    assert retired(member) == 2


@pytest.mark.parametrize("fields", [{"revision": 1}, {"incarnation": 99}])
def test_nothing_is_retired_while_somebody_is_behind_or_silent(fields):
    member = founded()
    member.register("g", ("gateway",))
    member.register("s", ("sequencer",))
    for _ in range(8):
        member.heartbeat("g")
        member.heartbeat("s", **fields)
        member.settle(member.tick(0.5))
    assert retired(member) == 0


def test_nothing_is_retired_before_everyone_has_said_so_twice():
    member = founded()
    member.register("g", ("gateway",))
    member.register("s", ("sequencer",))
    member.register("g", ("gateway",))
    member.heartbeat("g")
    member.heartbeat("s")
    member.settle(member.tick(0.5))
    member.heartbeat("g")
    member.settle(member.tick(0.5))
    assert retired(member) == 0
    member.heartbeat("s", oldest_open=1)
    member.heartbeat("s")
    member.settle(member.tick(0.5))
    assert retired(member) == 0
    member.wait(1, "g", "s")
    assert retired(member) == 3


def test_nothing_is_retired_while_a_sequencer_may_come_back_with_open_envelopes():
    member = founded(end_after_s=5.0)
    member.register("g", ("gateway",))
    member.register("s", ("sequencer",))
    living = member.register("g", ("gateway",))
    member.machine.heard = {}
    for _ in range(30):
        member.heartbeat("g", oldest_open=0 if not member.machine.state.nodes["s"].ended else U64_MAX)
        member.settle(member.tick(0.5))
    assert (member.machine.state.nodes["s"].ended, retired(member)) == (True, 0)
    member.register("s", ("sequencer",))
    member.wait(3, "g", "s")
    assert retired(member) == living


# ------------------------------------------------------------------------------------------------- removing


def deleting() -> Member:
    member = founded(end_after_s=5.0)
    for name, services in (("n", ALL), ("s", ("sequencer",)), ("g", ("gateway",))):
        member.register(name, services)
    member.settle(member.execute(create_group=CreateGroup(name="x", replicas=1)))
    member.settle(member.execute(delete_group=DeleteGroup(name="x")))
    return member


def test_a_deleted_group_goes_when_everyone_is_clear_of_it():
    member = deleting()
    for name in ("n", "s"):
        member.heartbeat(name, clear_of=["x#1"])
    member.heartbeat("g")
    member.settle(member.tick())
    assert "x" in member.machine.state.groups
    member.heartbeat("g", clear_of=["x#1"])
    assert "remove_group" not in kinds(member.done(member.tick()))
    for name in "nsg":
        member.heartbeat(name, clear_of=["x#1"])
    assert "remove_group" not in kinds(member.done(member.tick())), "those may have been under way"
    for name in "nsg":
        member.heartbeat(name, clear_of=["x#1"])
    assert "remove_group" in kinds(member.done(member.tick()))
    assert "x#1" in member.machine.state.deleted


def test_who_finds_something_of_the_group_after_all_starts_the_asking_anew():
    member = deleting()
    for name in "nsg":
        member.heartbeat(name, clear_of=["x#1"])
    member.settle(member.tick())
    member.heartbeat("n")
    for name in "nsg":
        member.heartbeat(name, clear_of=["x#1"])
    member.settle(member.tick())
    assert "x" in member.machine.state.groups


def test_a_report_from_before_the_deletion_does_not_count():
    member = deleting()
    before = member.machine.state.groups["x"].revision - 1
    for name in "nsg":
        member.heartbeat(name, clear_of=["x#1"], revision=before)
    member.settle(member.tick())
    assert "x" in member.machine.state.groups


def test_a_gateway_that_is_over_is_clear_but_a_sequencer_may_come_back():
    member = deleting()
    for _ in range(15):
        member.heartbeat("n", clear_of=["x#1"])
        member.settle(member.tick(0.5))
    nodes = member.machine.state.nodes
    assert (nodes["s"].ended, nodes["g"].ended) == (True, True)
    assert "x" in member.machine.state.groups
    member.register("s", ("sequencer",))
    for _ in range(3):
        member.heartbeat("s", clear_of=["x#1"])
        member.heartbeat("n", clear_of=["x#1"])
        member.settle(member.tick(0.5))
    assert "x" not in member.machine.state.groups
