"""What is said of a group whose configurations are views, and how to follow them."""

import time
from typing import TYPE_CHECKING, Any

from ordercast.cli.exit_codes import ExitCode, fail
from ordercast.cli.output import print_json_line, say
from ordercast.core.members import kind_of
from ordercast.core.members.views import members_text, progress_of

if TYPE_CHECKING:
    from ordercast.client.sync import SyncConnection
    from ordercast.v1.membership_pb2 import Group

LOOK_S = 0.2


# ------------------------------------------------------------------------------------------------------ texts


def view_document(group: "Group") -> dict[str, Any]:
    """The part of a group's document that is about its views; empty lists if it has none."""
    return {
        "placement": list(group.placement),
        "incarnations": list(group.incarnations),
        "leaving": list(group.leaving),
    }


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
        if not kind_of(group).follows_processes:
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
