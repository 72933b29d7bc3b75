"""What membership's log comes to, command by command."""

from typing import Any

import pytest

from ordercast.core.errors import InvariantBroken
from ordercast.core.level import UPDATES_LEVEL
from ordercast.membership import settings as limits
from ordercast.membership.names import SERVICES
from ordercast.membership.settings import MembershipSettings
from ordercast.membership.state import Code, State, shape_error
from ordercast.protocols.catalogue import UnknownProtocol, check_domain
from ordercast.protocols.paxos.log_state import LogSettings
from ordercast.protocols.scalatom.settings import InvalidSettings, Settings, from_map
from ordercast.v1.membership_pb2 import (
    GROUP_STATE_ACTIVE,
    GROUP_STATE_DELETED,
    GROUP_STATE_DELETING,
    Command,
    CommandBatch,
    CommandResult,
    Configuration,
    CreateDomain,
    CreateGroup,
    Cursor,
    DeleteCursor,
    DeleteGroup,
    EndIncarnation,
    FoundCluster,
    Group,
    MarkNode,
    MoveCursors,
    Node,
    RaiseLevel,
    ReadCursors,
    RegisterNode,
    RemoveGroup,
    Retention,
    RetireIncarnations,
    UpdateGroup,
)

ALL = ("consensus", "gateway", "sequencer")


class Cluster:
    """A state, and the log that it came from."""

    def __init__(self, founded: bool = True) -> None:
        self.state = State()
        self.log: list[bytes | None] = []
        self.requests = 0
        if founded:
            assert self.do(found=FoundCluster(cluster_id=b"cluster", key=b"key")).code == Code.OK

    def batch(self, *commands: Command) -> list[CommandResult]:
        self.log.append(CommandBatch(commands=commands).SerializeToString())
        return [result for _, result in self.state.apply(len(self.log) - 1, self.log[-1])]

    def do(self, request_id: bytes = b"", **what: Any) -> CommandResult:
        self.requests += 1
        return self.batch(Command(request_id=request_id or b"request %d" % self.requests, **what))[0]

    def register(self, name: str, services: tuple[str, ...] = ALL, **fields: Any) -> CommandResult:
        request_id = fields.pop("request_id", b"")
        values = {"node_id": b"disk of " + name.encode(), "peer_address": f"{name}:1"} | fields
        return self.do(request_id, register=RegisterNode(name=name, services=services, **values))

    def nodes(self, *names: str) -> None:
        for name in names:
            assert self.register(name).code == Code.OK

    def group(self, name: str, **fields: Any) -> CommandResult:
        return self.do(create_group=CreateGroup(name=name, **fields))

    def move(self, group: str, name: str, offset: int) -> CommandResult:
        return self.do(move_cursors=MoveCursors(cursors=[Cursor(group=group, name=name, offset=offset)]))

    def read(self, group: str, name: str = "") -> CommandResult:
        return self.do(read_cursors=ReadCursors(group=group, name=name))

    def raise_level(self, level: int = 1) -> CommandResult:
        """As if every node had said that it understands it."""
        incarnations = {name: node.incarnation for name, node in self.state.nodes.items()}
        return self.do(raise_level=RaiseLevel(level=level, incarnations=incarnations))

    def remove(self, name: str) -> CommandResult:
        group = self.do(delete_group=DeleteGroup(name=name)).group
        return self.do(remove_group=RemoveGroup(id=group.id))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


# ------------------------------------------------------------------------------------------------- founding


def test_a_cluster_is_founded_once_and_has_a_default_domain(cluster):
    assert cluster.state.domains["default"].protocol == "scalatom"
    again = cluster.do(found=FoundCluster(cluster_id=b"other", key=b"k"))
    assert again.code == Code.ALREADY_EXISTS
    assert (cluster.state.cluster_id, cluster.state.key) == (b"cluster", b"key")


def test_a_command_before_the_founding_is_not_remembered_and_counts_afterwards():
    cluster = Cluster(founded=False)
    assert cluster.register("a", request_id=b"r").code == Code.UNAVAILABLE
    cluster.do(found=FoundCluster(cluster_id=b"c", key=b"k"))
    assert cluster.register("a", request_id=b"r").registered.incarnation == 1


@pytest.mark.parametrize("found", [FoundCluster(key=b"k"), FoundCluster(cluster_id=b"c"), FoundCluster()])
def test_a_cluster_needs_an_id_and_a_key(found):
    assert Cluster(founded=False).do(found=found).code == Code.INVALID_ARGUMENT


# ------------------------------------------------------------------------------------------------- nodes


def test_incarnations_are_unique_over_all_nodes_and_rise(cluster):
    numbers = [cluster.register(name).registered.incarnation for name in ("a", "b", "a", "c", "b")]
    assert numbers == [1, 2, 3, 4, 5]
    assert cluster.state.nodes["a"].incarnation == 3


def test_a_node_that_comes_back_is_neither_ended_nor_suspected_and_has_new_addresses(cluster):
    cluster.nodes("a")
    cluster.do(end_incarnation=EndIncarnation(name="a", incarnation=1))
    result = cluster.register("a", ("gateway",), peer_address="b:2", client_address="b:3", zone="z")
    node = cluster.state.nodes["a"]
    assert (result.registered.cluster_id, result.registered.key) == (b"cluster", b"key")
    assert (node.ended, node.suspected, node.peer_address, node.client_address) == (False, False, "b:2", "b:3")
    assert (list(node.services), node.zone, node.revision) == (["gateway"], "z", cluster.state.revision)


def test_a_name_with_another_disk_is_refused(cluster):
    cluster.nodes("a")
    result = cluster.register("a", node_id=b"new disk")
    assert result.code == Code.FAILED_PRECONDITION
    assert "belongs to a node with another disk; this disk is new" in result.message
    assert cluster.state.incarnation_last == 1


def test_a_disk_of_another_cluster_is_refused(cluster):
    assert cluster.register("a", cluster_id=b"other").code == Code.FAILED_PRECONDITION
    assert cluster.register("a", cluster_id=b"cluster").code == Code.OK


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "A"},
        {"node_id": b""},
        {"node_id": b"x" * 65},
        {"services": ()},
        {"services": ("cook",)},
        {"peer_address": ""},
        {"client_address": "nowhere"},
        {"zone": "z" * 64},
    ],
)
def test_a_node_that_describes_itself_badly_is_refused(cluster, fields):
    assert cluster.register(**{"name": "a", **fields}).code == Code.INVALID_ARGUMENT
    assert not cluster.state.nodes


def test_a_node_with_data_of_a_group_has_to_serve_it(cluster):
    cluster.nodes("a")
    cluster.group("g")
    result = cluster.register("a", ("gateway", "sequencer"))
    assert result.code == Code.FAILED_PRECONDITION
    assert "consensus" in result.message


def test_only_the_current_incarnation_is_marked(cluster):
    cluster.nodes("a", "a")
    old = cluster.do(mark_node=MarkNode(name="a", incarnation=1, suspected=True))
    assert (old.code, cluster.state.nodes["a"].suspected) == (Code.FAILED_PRECONDITION, False)
    cluster.do(mark_node=MarkNode(name="a", incarnation=2, suspected=True, read_only=True))
    node = cluster.state.nodes["a"]
    assert (node.suspected, node.read_only, node.revision) == (True, True, cluster.state.revision)
    assert cluster.do(mark_node=MarkNode(name="b", incarnation=1)).code == Code.NOT_FOUND


def test_a_mark_that_changes_nothing_is_no_change(cluster):
    cluster.nodes("a")
    before = cluster.state.changed
    assert cluster.do(mark_node=MarkNode(name="a", incarnation=1)).code == Code.OK
    assert cluster.state.changed == cluster.state.nodes["a"].revision == before


def test_an_ended_incarnation_stays_ended(cluster):
    cluster.nodes("a")
    assert cluster.do(end_incarnation=EndIncarnation(name="a", incarnation=1)).code == Code.OK
    assert cluster.do(mark_node=MarkNode(name="a", incarnation=1)).code == Code.FAILED_PRECONDITION
    node = cluster.state.nodes["a"]
    assert (node.ended, node.suspected) == (True, True)


def test_nothing_is_retired_that_may_still_publish(cluster):
    cluster.nodes("a", "b", "a")  # a has 3, b has 2
    assert cluster.do(retire=RetireIncarnations(below=3)).code == Code.FAILED_PRECONDITION
    assert cluster.do(retire=RetireIncarnations(below=2)).code == Code.OK
    assert cluster.state.retired == 2
    cluster.do(end_incarnation=EndIncarnation(name="b", incarnation=2))
    cluster.do(end_incarnation=EndIncarnation(name="a", incarnation=3))
    assert cluster.do(retire=RetireIncarnations(below=5)).code == Code.FAILED_PRECONDITION
    assert cluster.do(retire=RetireIncarnations(below=4)).code == Code.OK
    cluster.do(retire=RetireIncarnations(below=1))
    assert cluster.state.retired == 4


# ------------------------------------------------------------------------------------------------- domains


def test_an_equal_domain_is_there_already_and_another_is_refused(cluster):
    create = CreateDomain(name="d", protocol="scalatom", settings={"tick_s": "0.2", "log_chunk": "8"})
    first, second = cluster.do(create_domain=create), cluster.do(create_domain=create)
    assert first.code == second.code == Code.OK
    assert first.domain == second.domain == cluster.state.domains["d"]
    create.settings["tick_s"] = "0.3"
    assert cluster.do(create_domain=create).code == Code.ALREADY_EXISTS


@pytest.mark.parametrize(
    ("create", "names"),
    [
        (CreateDomain(name="d", protocol="telepathy"), "telepathy"),
        (CreateDomain(name="d", protocol="scalatom", settings={"colour": "red"}), "colour"),
        (CreateDomain(name="d", protocol="scalatom", settings={"tick_s": "soon"}), "tick_s"),
        (CreateDomain(name="d", protocol="scalatom", settings={"tick_s": "1" * 2000}), "settings of"),
        (CreateDomain(name="D", protocol="scalatom"), "'D'"),
    ],
)
def test_a_domain_that_cannot_be_is_refused_with_what_is_wrong(cluster, create, names):
    result = cluster.do(create_domain=create)
    assert result.code == Code.INVALID_ARGUMENT
    assert names in result.message


def test_settings_are_parsed_with_their_types_and_the_rest_keeps_its_default():
    assert from_map({}) == Settings()
    found = from_map({"silence_s": "0.5", "idempotence_window": "5000"})
    assert (found.silence_s, found.idempotence_window, found.tick_s) == (0.5, 5000, Settings().tick_s)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tick_s", "0"),
        ("tick_s", "nan"),
        ("tick_s", "-1"),
        ("tick_s", "1e-1"),
        ("tick_s", " 1"),
        ("tick_s", "11"),
        ("log_chunk", "0"),
        ("log_chunk", "1.5"),
        ("log_chunk", "1_0"),
        ("log_chunk", ""),
        ("idempotence_distance", "9" * 30),
        ("relay_eagerly", "true"),
        ("silence_s", "5"),
    ],
)
def test_a_setting_out_of_its_range_is_named(name, value):
    with pytest.raises(InvalidSettings, match=name):
        from_map({name: value})


def test_an_unknown_protocol_is_a_typed_error():
    with pytest.raises(UnknownProtocol, match="there are isis, scalatom"):
        check_domain("", {})


# ------------------------------------------------------------------------------------------------- groups


def test_a_group_gets_an_id_of_its_own_and_a_place(cluster):
    cluster.nodes("a", "b", "c", "d")
    group = cluster.group("g").group
    assert (group.id, group.domain, group.configuration) == ("g#1", "default", 1)
    assert (group.state, group.revision) == (GROUP_STATE_ACTIVE, cluster.state.revision)
    assert list(group.replicas) == list(group.acceptors) == ["a", "b", "c"]
    assert cluster.group("h", replicas=1).group.id == "h#2"


@pytest.mark.parametrize(
    ("create", "code"),
    [
        (CreateGroup(name="G"), Code.INVALID_ARGUMENT),
        (CreateGroup(name="g", domain="nowhere"), Code.NOT_FOUND),
        (CreateGroup(name="there"), Code.ALREADY_EXISTS),
        (CreateGroup(name="g", replicas=8), Code.INVALID_ARGUMENT),
        (CreateGroup(name="g", replicas=3), Code.FAILED_PRECONDITION),
    ],
)
def test_a_group_that_cannot_be_is_refused(cluster, create, code):
    cluster.nodes("a", "b")
    cluster.group("there")
    assert cluster.do(create_group=create).code == code
    assert cluster.state.group_last == 1


def test_without_nodes_there_is_no_group(cluster):
    assert cluster.group("g").code == Code.FAILED_PRECONDITION


def test_a_name_can_be_used_again_for_a_new_group_once_the_old_one_is_gone(cluster):
    cluster.nodes("a")
    cluster.group("g")
    cluster.move("g", "c", 5)
    assert cluster.do(remove_group=RemoveGroup(id="g#1")).code == Code.FAILED_PRECONDITION
    assert cluster.do(delete_group=DeleteGroup(name="g")).group.state == GROUP_STATE_DELETING
    assert cluster.do(delete_group=DeleteGroup(name="g")).code == Code.OK
    assert cluster.group("g").code == Code.ALREADY_EXISTS
    assert cluster.do(remove_group=RemoveGroup(id="g#1")).group.state == GROUP_STATE_DELETED
    assert cluster.group("g").group.id == "g#2"
    assert cluster.do(remove_group=RemoveGroup(id="g#1")).code == Code.NOT_FOUND
    assert list(cluster.read("g").cursors) == []
    assert cluster.do(delete_group=DeleteGroup(name="nothing")).code == Code.NOT_FOUND


# ------------------------------------------------------------------------------------------------- cursors


def test_cursors_move_in_both_directions_and_are_read_in_order(cluster):
    cluster.nodes("a")
    cluster.group("g")
    for name, offset in (("b", 9), ("a", 7), ("b", 3)):
        assert cluster.move("g", name, offset).code == Code.OK
    assert [(cursor.name, cursor.offset) for cursor in cluster.read("g").cursors] == [("a", 7), ("b", 3)]
    assert [cursor.offset for cursor in cluster.read("g", "b").cursors] == [3]
    assert cluster.do(delete_cursor=DeleteCursor(group="g", name="b")).code == Code.OK
    assert cluster.do(delete_cursor=DeleteCursor(group="g", name="b")).code == Code.NOT_FOUND
    assert cluster.read("g", "b").code == Code.NOT_FOUND
    assert cluster.read("nothing").code == Code.NOT_FOUND


def test_cursors_of_one_command_move_together_or_not_at_all(cluster):
    cluster.nodes("a")
    cluster.group("g")
    for wrong, code in (
        (Cursor(group="nothing", name="c"), Code.NOT_FOUND),
        (Cursor(group="g", name="C"), Code.INVALID_ARGUMENT),
    ):
        move = MoveCursors(cursors=[Cursor(group="g", name="c", offset=1), wrong])
        assert cluster.do(move_cursors=move).code == code
    assert cluster.do(move_cursors=MoveCursors()).code == Code.INVALID_ARGUMENT
    many = MoveCursors(cursors=[Cursor(group="g", name="c")] * (limits.CURSORS_PER_COMMAND_MAX + 1))
    assert cluster.do(move_cursors=many).code == Code.INVALID_ARGUMENT
    assert not cluster.state.cursors


def test_a_cursor_of_a_group_that_is_being_deleted_does_not_move(cluster):
    cluster.nodes("a")
    cluster.group("g")
    cluster.do(delete_group=DeleteGroup(name="g"))
    assert cluster.move("g", "c", 1).code == Code.FAILED_PRECONDITION


def test_the_number_of_cursors_is_bounded_but_those_there_still_move(cluster, monkeypatch):
    monkeypatch.setattr(limits, "CURSORS_MAX", 1)
    cluster.nodes("a")
    cluster.group("g")
    assert cluster.move("g", "a", 1).code == Code.OK
    assert cluster.move("g", "b", 1).code == Code.RESOURCE_EXHAUSTED
    assert cluster.move("g", "a", 2).code == Code.OK


# ------------------------------------------------------------------------------------------------- repetition


def test_a_repeated_command_is_answered_as_the_first_time(cluster):
    first = cluster.register("a", request_id=b"r")
    assert cluster.register("a", request_id=b"r") == first
    assert cluster.state.incarnation_last == 1
    refused = cluster.do(b"s", delete_group=DeleteGroup(name="g"))
    cluster.group("g")
    assert cluster.do(b"s", delete_group=DeleteGroup(name="g")) == refused


def test_a_command_twice_in_one_batch_is_executed_once(cluster):
    node = RegisterNode(name="a", node_id=b"d", services=["gateway"], peer_address="a:1")
    first, second = cluster.batch(*[Command(request_id=b"r", register=node)] * 2)
    assert first == second
    assert cluster.state.incarnation_last == 1


def test_what_is_harmless_to_repeat_is_not_remembered(cluster):
    cluster.nodes("a")
    cluster.group("g")
    before = list(cluster.state.executed)
    cluster.move("g", "c", 1)
    cluster.read("g")
    cluster.do(mark_node=MarkNode(name="a", incarnation=1, suspected=True))
    cluster.do(retire=RetireIncarnations(below=1))
    assert list(cluster.state.executed) == before


def test_only_the_latest_results_are_remembered(cluster, monkeypatch):
    monkeypatch.setattr(limits, "EXECUTED_COUNT_MAX", 3)
    for name in "abcde":
        cluster.register(name, request_id=name.encode())
    assert list(cluster.state.executed) == [b"c", b"d", b"e"]
    monkeypatch.setattr(limits, "EXECUTED_BYTES_MAX", cluster.state.executed_bytes - 1)
    cluster.register("f", request_id=b"f")
    assert list(cluster.state.executed) == [b"e", b"f"]
    assert State.from_bytes(cluster.state.to_bytes()).executed_bytes == cluster.state.executed_bytes


# ------------------------------------------------------------------------------------------------- watching


def names(items: Any) -> list[str]:
    return [item.name for item in items]


def test_a_new_watcher_hears_everything_that_is_there(cluster):
    cluster.nodes("b", "a")
    cluster.group("g")
    cluster.remove("g")
    cluster.group("h")
    changes = cluster.state.changes_since(0)
    assert (changes.reset, changes.revision, changes.cluster_id) == (True, cluster.state.revision, b"cluster")
    assert (names(changes.nodes), names(changes.domains), names(changes.groups)) == (
        ["a", "b"],
        ["default"],
        ["h"],
    )


def test_a_watcher_hears_only_what_changed_and_what_is_gone(cluster):
    cluster.nodes("a", "b")
    cluster.group("g")
    cluster.group("h")
    seen = cluster.state.revision
    cluster.do(mark_node=MarkNode(name="b", incarnation=2, suspected=True))
    cluster.remove("g")
    cluster.group("g")
    changes = cluster.state.changes_since(seen)
    assert not changes.reset
    assert (names(changes.nodes), names(changes.domains)) == (["b"], [])
    assert [(group.id, group.state) for group in changes.groups] == [
        ("g#1", GROUP_STATE_DELETED),
        ("g#3", GROUP_STATE_ACTIVE),
    ]
    later = cluster.state.changes_since(cluster.state.revision)
    assert (later.reset, list(later.nodes), list(later.groups)) == (False, [], [])


def test_a_watcher_that_missed_a_forgotten_group_starts_afresh(cluster, monkeypatch):
    monkeypatch.setattr(limits, "GROUP_TOMBSTONES_MAX", 1)
    cluster.nodes("a")
    for name in "gh":
        cluster.group(name)
    seen = cluster.state.revision
    gone = cluster.remove("g").revision
    cluster.remove("h")
    assert cluster.state.changes_since(seen).reset
    assert cluster.state.changes_since(gone - 1).reset
    assert not cluster.state.changes_since(gone).reset


def test_a_watcher_ahead_of_a_member_is_not_set_back(cluster):
    changes = cluster.state.changes_since(1000)
    assert (changes.reset, changes.revision, list(changes.domains)) == (False, 1000, [])


# ------------------------------------------------------------------------------------------------- the log


def test_a_snapshot_says_the_same_as_the_log(cluster):
    cluster.nodes("b", "a")
    for name in "gh":
        cluster.group(name, replicas=1)
        cluster.move(name, "c", 4)
    cluster.do(create_domain=CreateDomain(name="d", protocol="scalatom", settings={"tick_s": "1"}))
    cluster.remove("g")
    loaded = State.from_bytes(cluster.state.to_bytes())
    replayed = State()
    for slot, batch in enumerate(cluster.log):
        replayed.apply(slot, batch)
    assert loaded.to_bytes() == replayed.to_bytes() == cluster.state.to_bytes()
    assert loaded.changed == cluster.state.changed
    assert loaded.changes_since(3) == cluster.state.changes_since(3)


def test_slots_are_applied_in_order_and_an_empty_one_counts(cluster):
    revision = cluster.state.revision
    assert cluster.state.apply(revision, None) == []
    assert (cluster.state.revision, cluster.state.changed) == (revision + 1, revision)
    with pytest.raises(InvariantBroken, match="slot"):
        cluster.state.apply(revision, None)


def test_a_slot_or_snapshot_that_is_none_stops_the_member(cluster):
    with pytest.raises(InvariantBroken, match="no commands"):
        cluster.state.apply(cluster.state.revision, b"\xff")
    with pytest.raises(InvariantBroken, match="snapshot"):
        State.from_bytes(b"\xff")


def test_a_command_without_content_is_refused_and_nothing_else(cluster):
    assert cluster.batch(Command(request_id=b"r"))[0].code == Code.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (Command(delete_group=DeleteGroup(name="g")), "request_id"),
        (Command(request_id=b"x" * 65, delete_group=DeleteGroup(name="g")), "request_id"),
        (Command(request_id=b"r"), "what to do"),
        (Command(request_id=b"r", delete_group=DeleteGroup(name="g" * 50_000)), "bytes"),
    ],
)
def test_the_shape_of_a_command_is_checked(command, says):
    assert says in (shape_error(command) or "")


def test_a_well_formed_command_has_no_error():
    assert shape_error(Command(request_id=b"r", read_cursors=ReadCursors())) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"suspect_s": 0.1},
        {"end_after_s": 1.0},
        {"tick_s": 0.0},
        {"snapshot_every": 0},
        {"snapshot_every": 100_000},
        {"batch_count_max": 0},
        {"moves_at_once": 0},
        {"replace_after_s": -1.0},
        {"cancel_after_s": 0.0},
        {"log": LogSettings(value_bytes_max=1000)},
    ],
)
def test_settings_that_do_not_go_together_are_refused(fields):
    with pytest.raises(ValueError, match=r"has to|have to"):
        MembershipSettings(**fields)


def register_longest(cluster: Cluster, numbers: range) -> None:
    host = "h" * (limits.ADDRESS_CHARACTERS_MAX - 6) + ":65535"
    zone, node_id = "z" * limits.ZONE_CHARACTERS_MAX, b"i" * limits.NODE_ID_BYTES_MAX
    for number in numbers:
        fields = {"peer_address": host, "client_address": host, "node_id": node_id, "zone": zone}
        assert cluster.register(longest(number), **fields).code == Code.OK


def fill_configurations(state: State) -> None:
    """All groups are changing, with as many members as there can be, nobody in common; and nodes were removed."""
    names = sorted(state.nodes)
    members = [names[first : first + limits.REPLICAS_MAX] for first in range(0, 7 * 4, limits.REPLICAS_MAX)]
    for group in state.groups.values():
        group.replicas[:], group.acceptors[:] = members[0], members[1]
        lost = [*members[2], *members[3]]
        group.previous.CopyFrom(Configuration(number=2**63, replicas=members[2], acceptors=members[3], lost=lost))
        group.starting[:] = [*members[0], *members[1]]
        group.incarnation_before = group.configuration = 2**63
    for number in range(limits.TOMBSTONES_MAX):
        node = Node(node_id=b"i" * limits.NODE_ID_BYTES_MAX, services=SERVICES, incarnation=2**63, revision=2**63)
        node.name, node.removed, node.ended, node.suspected = longest(number), True, True, True
        state.removed[node.name] = node


def longest(number: int) -> str:
    return f"{'x' * 57}-{number:05}"


def longest_that_shares() -> Group:
    """What one more group is that shares its cell."""
    return Group(
        name=longest(0),
        id=f"{longest(0)}#{2**63}",
        domain=longest(0),
        state=GROUP_STATE_DELETING,
        retention=Retention(bytes=2**63, age_s=2**63),
        cell=f"cell-{limits.PLACED_MAX}#{2**63}",
        revision=2**63,
    )


def test_the_fullest_state_there_can_be_fits_into_a_snapshot(cluster):
    cluster.do(create_domain=CreateDomain(name=longest(0), protocol="scalatom"))
    register_longest(cluster, range(limits.REPLICAS_MAX))
    for number in range(limits.GROUP_TOMBSTONES_MAX):
        cluster.group(longest(number), domain=longest(0))
        cluster.remove(longest(number))
    for number in range(limits.PLACED_MAX):
        create = CreateGroup(name=longest(number), domain=longest(0), replicas=limits.REPLICAS_MAX)
        assert cluster.do(b"%064d" % number, create_group=create).code == Code.OK
    assert cluster.group("one-more").code == Code.RESOURCE_EXHAUSTED
    largest = cluster.state.executed_bytes
    for number in range(limits.CURSORS_MAX):
        assert cluster.move(longest(0), longest(number), 2**63).code == Code.OK
    register_longest(cluster, range(limits.REPLICAS_MAX, limits.NODES_MAX))
    assert cluster.register("one-more").code == Code.RESOURCE_EXHAUSTED
    for number in range(limits.DOMAINS_MAX):
        result = cluster.do(create_domain=CreateDomain(name=f"d{number}", protocol="scalatom"))
    assert result.code == Code.RESOURCE_EXHAUSTED
    fill_configurations(cluster.state)
    # Smaller answers have pushed larger ones out, and these domains set nothing.
    assert largest <= limits.EXECUTED_BYTES_MAX
    bytes_max = len(cluster.state.to_bytes()) - cluster.state.executed_bytes + limits.EXECUTED_BYTES_MAX
    bytes_max += limits.DOMAINS_MAX * (limits.SETTINGS_BYTES_MAX + 200)
    # What a group sets is one of a few words.
    bytes_max += limits.PLACED_MAX * 64
    bytes_max += (limits.GROUPS_MAX - limits.PLACED_MAX) * (len(longest_that_shares().SerializeToString()) + 8)
    # What frames each answer.
    bytes_max += limits.EXECUTED_COUNT_MAX * 8
    assert bytes_max < MembershipSettings().log.snapshot_bytes_max


# ------------------------------------------------------------------------------------- what groups may change


def update(name: str, **fields: Any) -> UpdateGroup:
    return UpdateGroup(name=name, **fields)


def test_a_group_gets_another_retention_and_watchers_hear_of_it_once(cluster):
    cluster.nodes("a")
    assert cluster.raise_level(UPDATES_LEVEL).code == Code.OK
    cluster.group("g")
    result = cluster.do(update_group=update("g", retention=Retention(bytes=5, age_s=7)))
    assert result.code == Code.OK
    assert (result.group.retention.bytes, result.group.retention.age_s) == (5, 7)
    (told,) = cluster.state.changes_since(result.group.revision - 1).groups
    assert told.retention == Retention(bytes=5, age_s=7)
    again = cluster.do(update_group=update("g", retention=Retention(bytes=5, age_s=7)))
    assert again.group.revision == result.group.revision, "nothing changed, so nobody hears of it"
    assert cluster.do(update_group=update("g", retention=Retention())).group.retention == Retention()


def test_an_update_that_makes_no_sense_is_refused_and_changes_nothing(cluster):
    cluster.nodes("a")
    assert cluster.raise_level(UPDATES_LEVEL).code == Code.OK
    cluster.group("g")
    assert cluster.do(update_group=update("nobody", retention=Retention())).code == Code.NOT_FOUND
    assert cluster.do(update_group=update("g")).code == Code.INVALID_ARGUMENT
    cluster.do(delete_group=DeleteGroup(name="g"))
    refused = cluster.do(update_group=update("g", retention=Retention(bytes=5)))
    assert refused.code == Code.FAILED_PRECONDITION
    assert not cluster.state.groups["g"].retention.bytes


def test_no_group_is_updated_as_long_as_a_node_would_not_understand_it(cluster):
    cluster.nodes("a")
    cluster.group("g")
    cluster.state.level = UPDATES_LEVEL - 1
    refused = cluster.do(update_group=update("g", retention=Retention(bytes=5)))
    assert refused.code != Code.OK
    assert f"takes level {UPDATES_LEVEL}" in refused.message
