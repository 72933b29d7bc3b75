"""The commands that change who holds a group, and which nodes there are.

Each takes the agreed state and is refused before it has changed anything. They came with level 1, those about
views with level 2: members whose software is older would not know what to make of them, so they are refused until
no node has such software.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ordercast.core.errors import InvariantBroken
from ordercast.core.level import CELLS_LEVEL, INSTALLED_LEVEL, MERGED_LEVEL, UPDATES_LEVEL
from ordercast.core.limits import CREATED_MAX
from ordercast.membership import settings as limits
from ordercast.membership.cells import lives_apart
from ordercast.membership.changes import begin, check_begins, everyone_of, lose, prepared, record_started
from ordercast.membership.changing_views import complete, define
from ordercast.membership.installed import checked_protocols
from ordercast.membership.kinds import kind_of
from ordercast.membership.kinds.members import Cluster, called
from ordercast.membership.names import check_name
from ordercast.membership.refusals import Code, Refused, bad_argument, precondition
from ordercast.protocols.catalogue import level_of
from ordercast.v1.membership_pb2 import (
    GROUP_STATE_ACTIVE,
    GROUP_STATE_DELETING,
    BeginConfiguration,
    CancelChange,
    ChangeReplicas,
    Command,
    CommandResult,
    CompleteView,
    CreateGroup,
    CreateGroups,
    DefineView,
    DrainNode,
    GiveUpDisk,
    Group,
    Node,
    NoteProtocols,
    RaiseLevel,
    RecordLost,
    RecordStarted,
    RemoveNode,
    UpdateGroup,
)

if TYPE_CHECKING:
    from ordercast.membership.state import State

#: From this level on there are the commands below; and from this one on those about views.
CHANGES_LEVEL = 1
VIEWS_LEVEL = 2
ABOUT_VIEWS = ("define_view", "complete_view")


def too_early(kind: str, level: int) -> str | None:
    """Why a command cannot be executed in a cluster of this level, if it cannot."""
    if kind in ABOUT_VIEWS and level < VIEWS_LEVEL:
        return (
            f"not all nodes run software that knows views: the cluster has level {level}, and that takes level "
            f"{VIEWS_LEVEL}; it rises by itself when every registered node runs newer software"
        )
    if kind == "update_group" and level < UPDATES_LEVEL:
        return (
            f"not all nodes run software that can change a group's retention: the cluster has level {level}, and "
            f"that takes level {UPDATES_LEVEL}; it rises by itself when every registered node runs newer software"
        )
    if kind == "note_protocols" and level < INSTALLED_LEVEL:
        return f"not all nodes run software that knows protocols of packages: that takes level {INSTALLED_LEVEL}"
    if kind in COMMANDS and kind != "raise_level" and level < CHANGES_LEVEL:
        return (
            "not all nodes run software that can change replicas, drain and remove nodes, or give up disks: the "
            f"cluster has level {level}, and that takes level {CHANGES_LEVEL}; it rises by itself when every "
            "registered node runs newer software"
        )
    return None


def not_understood(command: Command, level: int) -> str | None:
    """Why a command must not reach the log of a cluster of this level, if it must not.

    A domain whose protocol older software does not know is refused by all members, in the words of that software.
    Whoever asked for it had better hear why.
    """
    kind = command.WhichOneof("what") or ""
    protocol = command.create_domain.protocol if kind == "create_domain" else ""
    create = command.create_group
    is_shared = kind == "create_groups" or create.shared or create.beside or create.new_cell
    if is_shared and level < CELLS_LEVEL:
        return (
            f"not all nodes run software in which groups share cells: the cluster has level {level}, and that "
            f"takes level {CELLS_LEVEL}; it rises by itself when every registered node runs newer software"
        )
    if kind == "move_cursors" and level < MERGED_LEVEL and any(c.domain for c in command.move_cursors.cursors):
        return (
            f"not all nodes run software that has cursors over several groups: the cluster has level {level}, and "
            f"that takes level {MERGED_LEVEL}; it rises by itself when every registered node runs newer software"
        )
    if level < level_of(protocol):
        return (
            f"not all nodes run software that has the protocol {protocol}: the cluster has level {level}, and "
            f"that takes level {level_of(protocol)}; it rises by itself when every registered node runs newer "
            "software"
        )
    return too_early(kind, level)


# --------------------------------------------------------------------------------------------- configurations


def _create_groups(state: "State", create: CreateGroups, result: CommandResult) -> None:
    if not 0 < len(create.names) <= CREATED_MAX:
        raise bad_argument(f"1 to {CREATED_MAX} groups are made at a time, not {len(create.names)}")
    if create.like.new_cell or lives_apart(create.like, state.level):
        raise bad_argument("groups that are made together share cells: none of them has one to itself")
    names = []
    for name in dict.fromkeys(create.names):
        known = state.groups.get(name)
        if not (create.exist_ok and known is not None and _is_as_wanted(known, create.like)):
            check_name("group", name)
            state.check_is_free(name)
            names.append(name)
    if len(state.groups) + len(names) > limits.GROUPS_MAX:
        raise Refused(
            Code.RESOURCE_EXHAUSTED, f"there are {len(state.groups)} groups: {len(names)} more do not fit"
        )
    for name in names:
        # The first one is refused before anything has changed, or none is.
        one = CreateGroup()
        one.CopyFrom(create.like)
        one.name = name
        state.create_group(one, result)
    result.created = len(names)


def _is_as_wanted(known: Group, like: CreateGroup) -> bool:
    is_anywhere = bool(like.beside) and not like.domain
    is_there = is_anywhere or known.domain == (like.domain or limits.DOMAIN_DEFAULT)
    return is_there and known.state == GROUP_STATE_ACTIVE


def _change_replicas(state: "State", change: ChangeReplicas, result: CommandResult) -> None:
    group = state.placed_called(change.group)
    group.next.CopyFrom(prepared(group, change, Cluster(state.nodes, state.placed())))
    if not kind_of(group).newcomers(group):
        begin(group, state.incarnation_last)
    state.stamp(group)
    result.group.CopyFrom(group)


def _cancel_change(state: "State", cancel: CancelChange, result: CommandResult) -> None:
    group = state.placed_called(cancel.group)
    if kind_of(group).has_begun(group):
        raise precondition(
            f"configuration {group.configuration} of {called(group)} has begun: it is too late to cancel it"
        )
    if not group.HasField("next"):
        raise precondition(f"no change of {called(group)} is under way")
    group.ClearField("next")
    state.stamp(group)
    result.group.CopyFrom(group)


def _begin_configuration(state: "State", command: BeginConfiguration, result: CommandResult) -> None:
    group = state.placed_called(command.group)
    check_begins(group, command.configuration)
    begin(group, state.incarnation_last)
    state.stamp(group)
    result.group.CopyFrom(group)


def _record_started(state: "State", record: RecordStarted, result: CommandResult) -> None:
    group = state.placed_called(record.group)
    if record_started(group, record.configuration, record.members):
        state.stamp(group)
    result.group.CopyFrom(group)


def _define_view(state: "State", view: DefineView, result: CommandResult) -> None:
    group = state.placed_called(view.group)
    define(group, view, state.nodes)
    state.stamp(group)
    result.group.CopyFrom(group)


def _complete_view(state: "State", view: CompleteView, result: CommandResult) -> None:
    group = state.placed_called(view.group)
    complete(group, view.number, view.epoch)
    state.stamp(group)
    result.group.CopyFrom(group)


def _record_lost(state: "State", record: RecordLost, result: CommandResult) -> None:
    """Groups that are gone, or that the node is not in any more, are no mistake: it may not have heard of that."""
    if not 0 < len(record.groups) <= limits.LOST_PER_COMMAND_MAX:
        raise bad_argument(f"1 to {limits.LOST_PER_COMMAND_MAX} groups at a time, not {len(record.groups)}")
    node = state.node_in(record.node, record.incarnation)
    lost = frozenset(record.groups)
    for group in state.placed():
        if group.id in lost and lose(group, node.name, record.incarnation):
            state.stamp(group)


# ------------------------------------------------------------------------------------------------------ nodes


def _give_up_disk(state: "State", command: GiveUpDisk, result: CommandResult) -> None:
    node = state.node_called(command.node)
    if not (node.ended or node.suspected):
        raise precondition(f"{node.name} is alive: stop it before its disk is given up")
    if not node.disk_lost:
        node.disk_lost = node.ended = node.suspected = True
        state.stamp(node)
        for group in state.placed():
            if lose(group, node.name, None):
                state.stamp(group)
    result.node.CopyFrom(node)


def _note_protocols(state: "State", command: NoteProtocols, result: CommandResult) -> None:
    node = state.node_in(command.node, command.incarnation)
    protocols = checked_protocols(command.protocols, state.level)
    if list(node.protocols) != protocols:
        node.protocols[:] = protocols
        state.stamp(node)


def _drain_node(state: "State", drain: DrainNode, result: CommandResult) -> None:
    node = state.node_called(drain.node)
    if node.draining != drain.draining:
        node.draining = drain.draining
        state.stamp(node)
    result.node.CopyFrom(node)


def _remove_node(state: "State", remove: RemoveNode, result: CommandResult) -> None:
    node = state.node_called(remove.node)
    if "membership" in node.services:
        raise precondition(f"{node.name} is one of the membership nodes, which are the same for good")
    held = [called(group) for group in state.placed() if node.name in everyone_of(group)]
    if held:
        more = f" and {len(held) - 1} more" if len(held) > 1 else ""
        raise precondition(f"{node.name} is a member of {held[0]}{more}: drain it first")
    if not (node.draining or node.suspected or node.ended):
        raise precondition(f"{node.name} is alive and may be given something at any time: drain it first")
    state.make_room_for_removed()
    # Whoever knew the node has to hear that its life is over, as if that had ended by itself.
    tombstone = Node(
        name=node.name,
        node_id=node.node_id,
        services=node.services,
        incarnation=node.incarnation,
        suspected=True,
        ended=True,
        removed=True,
    )
    del state.nodes[node.name]
    state.removed[node.name] = tombstone
    state.stamp(tombstone)
    result.node.CopyFrom(tombstone)


def _raise_level(state: "State", command: RaiseLevel, result: CommandResult) -> None:
    """Rests on incarnations and not on `Node.level`: members noted that only with software that knows it.

    Three members get new software, one after the other, and register again. The last one applied the others'
    registrations with its old software, so its state says nothing of their levels. If that decided, it would
    refuse what the others accept.
    """
    if command.level <= state.level:
        return
    present = {name: node.incarnation for name, node in state.nodes.items()}
    if dict(command.incarnations) != present:
        raise precondition(f"not every node is known to run software of level {command.level}")
    check_level(command.level)
    state.level = command.level
    state.changed = state.revision
    for name in sorted(state.nodes):
        node = state.nodes[name]
        node.level = max(node.level, command.level)
        # All of them: who watched a member with older software has heard of no level so far.
        state.stamp(node)


def check_level(level: int) -> None:
    """To go on without understanding what the others agree on would end in another state than theirs."""
    if level > limits.LEVEL:
        raise InvariantBroken(
            f"this cluster has level {level}, and this software understands {limits.LEVEL}: install what the "
            "other nodes run"
        )


def check_understands(name: str, level: int, cluster_level: int) -> None:
    if level < cluster_level:
        raise Refused(
            Code.FAILED_PRECONDITION,
            f"the software of {name} is too old for this cluster: it has level {level}, and all nodes need level "
            f"{cluster_level}; install what the other nodes run",
        )


Handler = Callable[["State", Any, CommandResult], None]


def _update_group(state: "State", update: UpdateGroup, result: CommandResult) -> None:
    """Replicas keep to the new retention as soon as they hear of it; what is gone does not come back."""
    group = state.group_called(update.name)
    if group.state == GROUP_STATE_DELETING:
        raise precondition(f"the group {group.name} is being deleted: nothing of it can be changed")
    if not update.HasField("retention"):
        raise bad_argument("an update says what is to change: give a retention")
    if group.retention != update.retention:
        group.retention.CopyFrom(update.retention)
        state.stamp(group)
    result.group.CopyFrom(group)


COMMANDS: dict[str, Handler] = {
    "create_groups": _create_groups,
    "change_replicas": _change_replicas,
    "cancel_change": _cancel_change,
    "begin_configuration": _begin_configuration,
    "record_started": _record_started,
    "define_view": _define_view,
    "complete_view": _complete_view,
    "record_lost": _record_lost,
    "give_up_disk": _give_up_disk,
    "drain_node": _drain_node,
    "remove_node": _remove_node,
    "raise_level": _raise_level,
    "note_protocols": _note_protocols,
    "update_group": _update_group,
}
