"""`ordercast group`: the destinations of messages."""

import re
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli import completion
from ordercast.cli.changes import (
    change_document,
    latest_facts,
    replica_document,
    replicas_text,
    stage_of,
    under_way,
    wait_for_change,
)
from ordercast.cli.connection import Connection, connected
from ordercast.cli.domain import pairs, settings_text
from ordercast.cli.exit_codes import ExitCode, fail
from ordercast.cli.output import Json, print_json, print_list, print_table, say
from ordercast.cli.placed import groups_text
from ordercast.cli.views import follow
from ordercast.cli.waiting import NoWait, Patience, WaitDisplay, note
from ordercast.core.ids import group_name
from ordercast.core.members import kind_of

if TYPE_CHECKING:
    from ordercast.client.admin import Change
    from ordercast.v1.gateway_pb2 import DescribeGroupResponse
    from ordercast.v1.membership_pb2 import Group

app = typer.Typer(help="Groups: where messages are sent to, and read from.", no_args_is_help=True)

NUMBER_MAX = (1 << 63) - 1
UNIT_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}

Name = Annotated[str, typer.Argument(help="The group.", autocompletion=completion.groups)]
# Where a group lives.
Ordering = Annotated[
    str,
    typer.Option(
        help="The domain that they are ordered in: default, or that of the group that they live with.",
        autocompletion=completion.domains,
    ),
]
Shared = Annotated[
    bool, typer.Option("--shared", help="In a cell with other groups of the domain, which makes it cheap.")
]
Beside = Annotated[
    str,
    typer.Option(
        "--with",
        metavar="GROUP",
        help="In the same cell as this group, which shares its cell.",
        autocompletion=completion.groups,
    ),
]
OwnCell = Annotated[bool, typer.Option("--own-cell", help="In a cell to itself; so it is by default.")]
NewCell = Annotated[bool, typer.Option("--new-cell", help="In a new cell, which other groups may share.")]
#: What has replicas that change.
Placed = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="The group, or a cell. Of a group that shares its cell, the cell is changed.",
        autocompletion=completion.placed,
    ),
]


@app.command("create")
@connected
def create(
    connection: Connection,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="The groups.")],
    domain: Ordering = "",
    replicas: Annotated[
        int,
        typer.Option(min=0, max=1 << 31, help="Copies of each; 0: one on each node that is there, at most three."),
    ] = 0,
    retention_bytes: Annotated[
        int, typer.Option(min=0, max=NUMBER_MAX, help="Drop the oldest beyond so many bytes; 0: keep all.")
    ] = 0,
    retention_age: Annotated[
        str, typer.Option(metavar="AGE", help="Drop what is older: 45s, 30m, 12h, 7d, 2w; 0: keep all.")
    ] = "0",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A setting in which it differs from its domain; repeatable."
        ),
    ] = None,
    shared: Shared = False,
    with_: Beside = "",
    own_cell: OwnCell = False,
    new_cell: NewCell = False,
    if_missing: Annotated[
        bool, typer.Option("--if-missing", help="A group that is there already stays as it is, and is no error.")
    ] = False,
    json: Json = False,
) -> None:
    """Create groups. They are made one after the other; the first that cannot be made ends it.

    Groups that share a cell have the same replicas, and cost next to nothing each. A message to several groups is
    cheapest where they share one. A group with a cell to itself is held up by no other.

    Examples: `ordercast group create a b c --if-missing` ·
    `ordercast group create orders --replicas 5 --retention-age 7d` ·
    `ordercast group create orders-eu --with orders`
    """
    if sum((shared, bool(with_), own_cell, new_cell)) > 1:
        wishes = "--shared, --with, --own-cell and --new-cell"
        raise typer.BadParameter(f"at most one of {wishes} says where a group lives")
    from ordercast.v1.membership_pb2 import Retention

    retention = Retention(bytes=retention_bytes, age_s=seconds(retention_age))
    settings = pairs(set_ or [], "--set")
    created: list[Group] = []
    try:
        with connection.client() as client:
            for name in names:
                group = client.create_group(
                    name,
                    domain=domain,
                    replicas=replicas,
                    retention=retention,
                    settings=settings,
                    shared=shared,
                    beside=with_,
                    own_cell=own_cell,
                    new_cell=new_cell,
                    exist_ok=if_missing,
                )
                created.append(group)
    finally:
        # Also if a later one fails: these are there.
        if json and created:
            print_json([group_document(group) for group in created])
        for group in () if json else created:
            where = f", cell {group_name(group.cell)}" if group.cell else ""
            say(f"group {group.name} in domain {group.domain}{where}, replicas on {', '.join(group.replicas)}")


@app.command("list")
@connected
def list_(
    connection: Connection,
    domain: Annotated[
        str, typer.Option(help="Only groups of this domain.", autocompletion=completion.domains)
    ] = "",
    json: Json = False,
) -> None:
    """List the groups.

    Example: `ordercast group list --domain default`
    """
    with connection.client() as client:
        groups = client.groups(domain)
    headings = ("group", "domain", "state", "cell", "replicas", "under way", "retention")
    print_list(groups, group_document, headings, _row, json=json)


def _row(group: "Group") -> tuple[str, ...]:
    where = (group_name(group.cell) or "-", ", ".join(group.replicas))
    return group.name, group.domain, state_of(group), *where, stage_of(group) or "-", retention_text(group)


@app.command("describe")
@connected
def describe(connection: Connection, name: Name, json: Json = False) -> None:
    """Show one group, how far each of its replicas is, and what changes.

    Example: `ordercast group describe a`
    """
    with connection.client() as client:
        answer = client.describe_group(name)
        group = answer.group
        cell = client.describe_cell(group.cell) if group.cell else None
    if json:
        print_json(group_document(group) | {"facts": latest_facts(answer)} | logs_document(answer))
        return
    say(f"group          {group.name} ({group.id})")
    say(f"domain         {group.domain}")
    say(f"state          {state_of(group)}")
    if cell is not None:
        say(f"cell           {cell.cell.cell.name} ({group.cell}): what changes there, changes for all its groups")
        say(f"groups there   {groups_text(cell)}")
    for line in state_lines(answer):
        say(line)
    say(f"retention      {retention_text(group)}")
    print_rest(answer)


def logs_document(answer: "DescribeGroupResponse") -> dict[str, Any]:
    """How far each replica is, and each node that copies the log to become one."""
    logs = [replica_document(replica) for replica in answer.replicas]
    return {"logs": logs, "copies": [replica_document(learner) for learner in answer.learners]}


def state_lines(answer: "DescribeGroupResponse") -> list[str]:
    """Who the members are, in what, and what the protocol has to say."""
    lines = (*kind_of(answer.group).lines(answer.group), *latest_facts(answer).items())
    return [f"{heading:<14} {value}" for heading, value in lines]


def print_rest(answer: "DescribeGroupResponse") -> None:
    """What the description of a group and that of a cell end with."""
    group = answer.group
    if group.settings:
        say(f"settings       {settings_text(group.settings)}")
    say(f"under way      {under_way(answer) or '-'}")
    if group.lost:
        say(f"lost           {', '.join(group.lost)}")
    numbers = ("first offset", "next offset", "bytes")
    found = logs_document(answer)
    rows = [
        (f"{log['node']}{note}", *(_entry(log[key]) for key in ("first_offset", "next_offset", "bytes", "error")))
        for logs, note in ((found["logs"], ""), (found["copies"], " (copies)"))
        for log in logs
    ]
    print_table(("replica", *numbers, "error"), rows, numbers)


@app.command("watch")
@connected
def watch(
    connection: Connection,
    name: Name,
    count: Annotated[int, typer.Option(min=0, help="End after so many lines; 0: go on until stopped.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Follow the views of a virtually synchronous group: a line for each, and for how far it is.

    A view is defined, then complete, then installed by all its members. One that is soon followed by another may
    be left out.

    Examples: `ordercast group watch a` · `ordercast group watch a --json --count 3`
    """
    with connection.client() as client:
        follow(client, name, count, json=json)


@app.command("update")
@connected
def update(
    connection: Connection,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME", help="The groups.", autocompletion=completion.groups)
    ],
    retention_bytes: Annotated[
        int | None, typer.Option(min=0, max=NUMBER_MAX, help="Drop the oldest beyond so many bytes; 0: keep all.")
    ] = None,
    retention_age: Annotated[
        str | None, typer.Option(metavar="AGE", help="Drop what is older: 45s, 30m, 12h, 7d, 2w; 0: keep all.")
    ] = None,
    json: Json = False,
) -> None:
    """Give groups another retention. What is not given stays as it is, and what is dropped does not come back.

    Replicas keep to it within seconds. The first group that cannot be changed ends it.

    Examples: `ordercast group update orders --retention-age 7d` · `ordercast group update a b --retention-bytes 0`
    """
    if retention_bytes is None and retention_age is None:
        raise typer.BadParameter("nothing is to change: give --retention-bytes or --retention-age")
    from ordercast.v1.membership_pb2 import Retention

    age_s = None if retention_age is None else seconds(retention_age)
    updated: list[Group] = []
    try:
        with connection.client() as client:
            for name in names:
                kept = client.describe_group(name).group.retention
                retention = Retention(
                    bytes=kept.bytes if retention_bytes is None else retention_bytes,
                    age_s=kept.age_s if age_s is None else age_s,
                )
                updated.append(client.update_group(name, retention=retention))
    finally:
        if json and updated:
            print_json([group_document(group) for group in updated])
        for group in () if json else updated:
            say(f"group {group.name} keeps {retention_text(group)}")


@app.command("delete")
@connected
def delete(
    connection: Connection,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Delete a group, with all its messages and cursors. It takes nothing new, finishes what it took, and goes.

    Examples: `ordercast group delete a` · `ordercast group delete a --yes`
    """
    if not yes and (json or not sys.stdin.isatty()):
        raise typer.BadParameter("nobody can be asked here: give --yes to delete it")
    with connection.client() as client:
        if not yes:
            # First whether it is there: nobody likes to confirm for nothing.
            client.describe_group(name)
            typer.echo(f"All messages of {name} will be gone.", err=True)
            if not typer.confirm(f"Delete the group {name}?", err=True):
                fail(ExitCode.NO, "nothing was deleted")
        group = client.delete_group(name)
    if json:
        print_json(group_document(group))
    else:
        say(f"group {group.name} is being deleted")


# ---------------------------------------------------------------------------------------------------- replicas


@app.command("add-replica")
@connected
def add_replica(
    connection: Connection,
    name: Placed,
    node: Annotated[
        str,
        typer.Option(
            help="Where it comes; where there is the most room, if not given.", autocompletion=completion.nodes
        ),
    ] = "",
    no_wait: NoWait = False,
    timeout: Patience = None,
    json: Json = False,
) -> None:
    """Add a replica. It copies the log first, which disturbs nobody, and counts when it has caught up.

    Examples: `ordercast group add-replica a` · `ordercast group add-replica a --node n4 --no-wait`
    """
    _change(connection, name, "add", to=node, wait=not no_wait, timeout=timeout, json=json)


@app.command("remove-replica")
@connected
def remove_replica(
    connection: Connection,
    name: Placed,
    node: Annotated[
        str,
        typer.Option(
            help="Which one; the one that is missed least, if not given.", autocompletion=completion.nodes
        ),
    ] = "",
    no_wait: NoWait = False,
    timeout: Patience = None,
    json: Json = False,
) -> None:
    """Remove a replica, and its copy of the log. The last one stays.

    Examples: `ordercast group remove-replica a` · `ordercast group remove-replica a --node n2`
    """
    _change(connection, name, "remove", node=node, wait=not no_wait, timeout=timeout, json=json)


@app.command("replace")
@connected
def replace(
    connection: Connection,
    name: Placed,
    node: Annotated[
        str,
        typer.Option(
            help="Which one goes; the one that is missed least, if not given.", autocompletion=completion.nodes
        ),
    ] = "",
    with_: Annotated[
        str,
        typer.Option(
            "--with",
            help="Where the new one comes; where there is the most room, if not given.",
            autocompletion=completion.nodes,
        ),
    ] = "",
    no_wait: NoWait = False,
    timeout: Patience = None,
    json: Json = False,
) -> None:
    """Replace a replica by one on another node. One that lost its disk may be replaced by itself.

    Examples: `ordercast group replace a` · `ordercast group replace a --node n2 --with n5`
    """
    _change(connection, name, "replace", node=node, to=with_, wait=not no_wait, timeout=timeout, json=json)


def _change(
    connection: Connection,
    name: str,
    change: "Change",
    *,
    node: str = "",
    to: str = "",
    wait: bool,
    timeout: float | None,
    json: bool,
) -> None:
    with connection.client() as client:
        group = client.change_replicas(name, change, node=node, to=to)
        what = _what_changes(name, group)
        if wait:
            with WaitDisplay(timeout, f"`ordercast {what} describe {group.name}` shows how far it is") as waiting:
                group = wait_for_change(client, group, waiting)
    if json:
        print_json(group_document(group))
    else:
        say(f"{what} {group.name}: {replicas_text(group) if wait else stage_of(group)}")


def _what_changes(name: str, changed: "Group") -> str:
    """A group or a cell. Who named a group is told that it is about others, too."""
    if not changed.is_cell:
        return "group"
    if name not in (changed.name, changed.id):
        note(f"{name} shares the cell {changed.name}, which is changed for all its groups")
    return "cell"


@app.command("cancel-change")
@connected
def cancel_change(connection: Connection, name: Placed, json: Json = False) -> None:
    """Give up a change whose newcomer still copies the log. Once its configuration has begun it is too late.

    Example: `ordercast group cancel-change a`
    """
    with connection.client() as client:
        group = client.cancel_change(name)
        what = _what_changes(name, group)
    if json:
        print_json(group_document(group))
    else:
        say(f"{what} {group.name}: {replicas_text(group)}; the change is cancelled")


# --------------------------------------------------------------------------------------------------- documents


def group_document(group: "Group") -> dict[str, Any]:
    return {
        "name": group.name,
        "id": group.id,
        "domain": group.domain,
        "cell": group.cell or None,
        "state": state_of(group),
        "configuration": group.configuration,
        "replicas": list(group.replicas),
        "acceptors": list(group.acceptors),
        "retention": {"bytes": group.retention.bytes, "age_s": group.retention.age_s},
        "settings": dict(sorted(group.settings.items())),
        "revision": group.revision,
    } | change_document(group)


def state_of(group: "Group") -> str:
    from ordercast.v1.membership_pb2 import GroupState

    return GroupState.Name(group.state).removeprefix("GROUP_STATE_").lower()


def retention_text(group: "Group") -> str:
    kept = []
    if group.retention.bytes:
        kept.append(f"{group.retention.bytes} bytes")
    if group.retention.age_s:
        kept.append(f"{group.retention.age_s} s")
    return " and ".join(kept) or "everything"


def _entry(value: Any) -> str:
    return "-" if value is None else str(value)


def seconds(age: str) -> int:
    """
    >>> seconds("7d"), seconds("90"), seconds("2m")
    (604800, 90, 120)
    """
    found = re.fullmatch(r"([0-9]{1,12})([smhdw]?)", age)
    if found is None:
        raise typer.BadParameter(f"--retention-age: {age!r} is not an age such as 45s, 30m, 12h, 7d or 2w")
    return int(found[1]) * UNIT_S[found[2]]
