"""What is said of a group whose configurations are views, and how to follow them."""

import time
from typing import TYPE_CHECKING, Any

from ordercast.cli.exit_codes import ExitCode, fail
from ordercast.cli.output import print_json_line, say
from ordercast.core.members import completed_of, has_views, learners_of

if TYPE_CHECKING:
    from ordercast.client.sync import SyncConnection
    from ordercast.v1.gateway_pb2 import DescribeGroupResponse
    from ordercast.v1.membership_pb2 import Group, Node

LOOK_S = 0.2


# ------------------------------------------------------------------------------------------------------ texts


def members_text(group: "Group") -> str:
    """
    >>> from ordercast.v1.membership_pb2 import Group
    >>> members_text(Group(replicas=["n1", "n2"], incarnations=[4, 9]))
    'n1 (life 4), n2 (life 9)'
    """
    lives = zip(group.replicas, group.incarnations, strict=True)
    return ", ".join(f"{name} (life {incarnation})" for name, incarnation in lives)


def progress_of(group: "Group") -> str:
    """How far the latest view is: one of three words."""
    if group.HasField("previous"):
        return "defined"
    return "complete" if group.starting else "installed"


def stage_of_views(group: "Group") -> str:
    """What is under way, in a few words; empty if nothing is."""
    number = group.configuration
    parts = []
    newcomers = [name for name in group.next.replicas if name not in group.placement]
    if newcomers:
        copy = "copies the log" if len(newcomers) == 1 else "copy the log"
        parts.append(f"{', '.join(newcomers)} {copy} for a later view")
    elif group.HasField("next"):
        parts.append("other places are about to count")
    if group.HasField("previous"):
        parts.append(f"view {number} is defined, and {group.previous.number} is the last complete one")
    elif group.starting:
        parts.append(f"view {number} not yet installed on {', '.join(group.starting)}")
    left_out = [name for name in learners_of(group) if name in group.placement]
    if left_out:
        parts.append(f"left out: {', '.join(left_out)}")
    return "; ".join(parts)


def token_holder(answer: "DescribeGroupResponse") -> str:
    """As those say who are furthest; empty if nobody does."""
    told = [replica.log for replica in answer.replicas if not replica.error and replica.log.token_holder]
    return max(told, key=lambda log: log.view).token_holder if told else ""


def view_lines(answer: "DescribeGroupResponse") -> list[tuple[str, str]]:
    """What there is to see of a group's views, with a heading each."""
    group = answer.group
    lines = [("view", f"{group.configuration}, {progress_of(group)}"), ("members", members_text(group))]
    if group.HasField("previous"):
        previous = completed_of(group)
        lines.append(("last complete", f"{group.previous.number}: {', '.join(previous.replicas)}"))
    elif group.starting:
        lines.append(("not installed", ", ".join(group.starting)))
    if group.leaving:
        lines.append(("leaving", ", ".join(group.leaving)))
    if list(group.placement) != list(group.replicas):
        lines.append(("placement", ", ".join(group.placement)))
    lines.append(("token", token_holder(answer) or "-"))
    return lines


def view_document(group: "Group") -> dict[str, Any]:
    """The part of a group's document that is about its views; empty lists if it has none."""
    return {
        "placement": list(group.placement),
        "incarnations": list(group.incarnations),
        "leaving": list(group.leaving),
    }


# -------------------------------------------------------------------------------------------------- waiting


def is_in_place(group: "Group", wanted: list[str], nodes: "list[Node]") -> bool:
    """The view consists of those of the wanted places that are there."""
    up = [node.name for node in nodes if not (node.suspected or node.ended)]
    is_changing = group.HasField("next") or group.HasField("previous")
    return not is_changing and list(group.replicas) == [name for name in wanted if name in up]


# ------------------------------------------------------------------------------------------------- following


def follow(client: "SyncConnection", name: str, count: int, *, json: bool) -> None:
    """A line whenever there is another view, or it has got further; so many, or for ever."""
    known: tuple[object, ...] | None = None
    id_ = ""
    told = 0
    while not count or told < count:
        group = next((one for one in client.groups() if one.name == name), None)
        if group is None or (id_ and group.id != id_):
            fail(ExitCode.NOT_FOUND, f"there is no group {name}" if not id_ else f"the group {name} is gone")
        if not has_views(group):
            fail(ExitCode.REFUSED, f"the group {name} has no views: its domain's protocol works without them")
        id_ = group.id
        now = (group.configuration, progress_of(group))
        if now != known:
            known = now
            told += 1
            _tell(group, json=json)
        else:
            time.sleep(LOOK_S)


def _tell(group: "Group", *, json: bool) -> None:
    if json:
        previous = group.previous.number if group.HasField("previous") else None
        members = {"members": list(group.replicas), "starting": list(group.starting)}
        document = {"group": group.name, "view": group.configuration, "progress": progress_of(group)}
        print_json_line(document | members | view_document(group) | {"previous": previous})
        return
    leaving = f"; leaving: {', '.join(group.leaving)}" if group.leaving else ""
    say(f"view {group.configuration} {progress_of(group)}: {members_text(group)}{leaving}")
