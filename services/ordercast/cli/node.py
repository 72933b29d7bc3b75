"""`ordercast node`: the processes that hold the groups; how to empty one, and how to do without one."""

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli import completion
from ordercast.cli.connection import Connection, connected
from ordercast.cli.exit_codes import ExitCode, fail
from ordercast.cli.output import Json, print_json, print_list, say
from ordercast.cli.placed import placed_in
from ordercast.cli.waiting import NoWait, Patience, WaitDisplay, note

if TYPE_CHECKING:
    from ordercast.client.sync import SyncConnection
    from ordercast.v1.gateway_pb2 import DescribeClusterResponse
    from ordercast.v1.membership_pb2 import Group, Node

app = typer.Typer(help="Nodes: who is there, and what they hold.", no_args_is_help=True)

#: A node that is suspected for a moment comes back: only then is it sure that nothing can be moved.
STUCK_S = 5.0
NAMES_SHOWN_MAX = 20

Name = Annotated[str, typer.Argument(metavar="NODE", help="The node.", autocompletion=completion.nodes)]


@app.command("list")
@connected
def list_(connection: Connection, json: Json = False) -> None:
    """List the nodes, and in how many groups and cells each has a part.

    Example: `ordercast node list`
    """
    with connection.client() as client:
        cluster = client.cluster()

    def document(node: "Node") -> dict[str, Any]:
        return node_document(node) | {"groups": held_by(node.name, cluster)}

    def row(node: "Node") -> tuple[str, ...]:
        counted = (node.level, len(held_by(node.name, cluster)), node.incarnation)
        return node.name, state_text(node), services_text(node), node.zone or "-", *map(str, counted)

    numbers = ("level", "groups", "incarnation")
    print_list(
        cluster.nodes, document, ("node", "state", "services", "zone", *numbers), row, numbers=numbers, json=json
    )


@app.command("drain")
@connected
def drain(
    connection: Connection, name: Name, no_wait: NoWait = False, timeout: Patience = None, json: Json = False
) -> None:
    """Move all that a node holds to other nodes, and give it nothing new.

    It stays a node, and may be stopped and removed when nothing is left on it.

    Examples: `ordercast node drain n2` · `ordercast node drain n2 --no-wait`
    """
    with connection.client() as client:
        node = client.drain_node(name)
        left: list[str] = []
        if no_wait:
            cluster = client.cluster()
            left = held_by(name, cluster)
        else:
            with WaitDisplay(timeout, f"`ordercast node list` shows what is left on {name}") as waiting:
                node = _wait_until_empty(client, node, waiting)
    if json:
        print_json(node_document(node) | {"groups": left})
    elif left:
        say(f"node {name} is being emptied: it has a part in {count_of(left, cluster)}")
    else:
        say(f"node {name} is empty")


@app.command("undrain")
@connected
def undrain(connection: Connection, name: Name, json: Json = False) -> None:
    """Use a node again that was being emptied. What was moved away stays where it is.

    Example: `ordercast node undrain n2`
    """
    with connection.client() as client:
        node = client.drain_node(name, draining=False)
    if json:
        print_json(node_document(node))
    else:
        say(f"node {node.name} takes something new again")


@app.command("remove")
@connected
def remove(connection: Connection, name: Name, json: Json = False) -> None:
    """Forget a node that holds nothing: drain it first, or replace what it held. Its name is free then.

    Example: `ordercast node remove n2`
    """
    with connection.client() as client:
        node = client.remove_node(name)
    if json:
        print_json(node_document(node) | {"removed": True})
    else:
        say(f"node {name} is removed")


@app.command("give-up-disk")
@connected
def give_up_disk(
    connection: Connection,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Say that the disk of a node is gone for good, and with it all that the node had stored.

    A process that is started with this name and an empty disk becomes a new member, and copies what it holds from
    the others. The old disk is refused from then on: do not use this for a node that only is away.

    Examples: `ordercast node give-up-disk n2` · `ordercast node give-up-disk n2 --yes`
    """
    if not yes and (json or not sys.stdin.isatty()):
        raise typer.BadParameter("nobody can be asked here: give --yes if the disk is gone for good")
    with connection.client() as client:
        if not yes:
            _confirm(client, name)
        node = client.give_up_disk(name)
    if json:
        print_json(node_document(node))
    else:
        say(f"the disk of {node.name} is given up: start it with an empty one, or replace what it held")


def _confirm(client: "SyncConnection", name: str) -> None:
    """First whether it is there: nobody likes to confirm for nothing."""
    cluster = client.cluster()
    if all(node.name != name for node in cluster.nodes):
        fail(ExitCode.NOT_FOUND, f"there is no node {name!r}")
    groups = held_by(name, cluster)
    note(
        f"What {name} had stored counts as lost, for good, in {count_of(groups, cluster)}: {some(groups) or '-'}."
    )
    note("A process with this name and an empty disk becomes a new member; the old disk is refused.")
    if not typer.confirm(f"Give up the disk of {name}?", err=True):
        fail(ExitCode.NO, "nothing was given up")


# ---------------------------------------------------------------------------------------------------- emptying


def _wait_until_empty(client: "SyncConnection", begun: "Node", waiting: WaitDisplay) -> "Node":
    stuck_since: float | None = None
    while True:
        cluster = client.cluster()
        node = next((node for node in cluster.nodes if node.name == begun.name), None)
        if node is None:
            fail(ExitCode.NOT_FOUND, f"the node {begun.name} was removed meanwhile")
        # A gateway that has not heard of it yet says nothing of worth.
        if node.revision >= begun.revision:
            if not node.draining:
                fail(ExitCode.NO, f"{node.name} is not being emptied any more")
            left = held_by(node.name, cluster)
            if not left:
                return node
            if not is_stuck(node.name, cluster):
                stuck_since = None
            elif stuck_since is None:
                stuck_since = time.monotonic()
            elif time.monotonic() - stuck_since >= STUCK_S:
                _fail_stuck(node.name, left)
            moving = [group.name for group in placed_in(cluster) if group.name in left and is_changing(group)]
            stage = f"{node.name} has a part in {count_of(left, cluster)}"
            waiting.tell(stage, f"moving {some(moving)}" if moving else "")
        waiting.pause()


def _fail_stuck(name: str, left: list[str]) -> None:
    fail(
        ExitCode.NO,
        f"no other node can take what {name} holds of {some(left)}. It gets nothing new, and what is left is "
        f"moved when a node comes that can; or `ordercast node undrain {name}`",
    )


def held_by(name: str, cluster: "DescribeClusterResponse") -> list[str]:
    """Groups that have a cell to themselves, and cells, of which it is a member in any configuration."""
    return [group.name for group in placed_in(cluster) if name in members(group)]


def members(group: "Group") -> set[str]:
    """The members of the present, the former (until it is left) and the next configuration, and the placement."""
    configured = {
        name
        for configuration in (group, group.previous, group.next)
        for name in (*configuration.replicas, *configuration.acceptors)
    }
    return {*configured, *group.placement, *group.leaving}


def is_changing(group: "Group") -> bool:
    return group.HasField("next") or group.HasField("previous")


def is_stuck(name: str, cluster: "DescribeClusterResponse") -> bool:
    """Nothing moves, and nothing can: nobody can take any of what is left. Deleted groups go by themselves."""
    from ordercast.v1.membership_pb2 import GROUP_STATE_ACTIVE

    left = [group for group in placed_in(cluster) if name in members(group)]
    return all(
        group.state == GROUP_STATE_ACTIVE and not is_changing(group) and not has_place(name, group, cluster.nodes)
        for group in left
    )


def has_place(name: str, group: "Group", nodes: "Sequence[Node]") -> bool:
    """For each part that the node has in the group, somebody who can play it and does not yet."""
    parts = (("sequencer", group.replicas), ("consensus", group.acceptors))
    return all(
        any(service in node.services and is_usable(node) and node.name not in holders for node in nodes)
        for service, holders in parts
        if name in holders
    )


def is_usable(node: "Node") -> bool:
    return is_up(node) and not (node.read_only or node.draining)


# --------------------------------------------------------------------------------------------------- documents


def is_up(node: "Node") -> bool:
    return not (node.suspected or node.ended)


def state_of(node: "Node") -> str:
    if node.ended:
        return "ended"
    if node.suspected:
        return "suspected"
    return "read only" if node.read_only else "up"


def state_text(node: "Node") -> str:
    """
    >>> from ordercast.v1.membership_pb2 import Node
    >>> state_text(Node(draining=True)), state_text(Node(ended=True, disk_lost=True))
    ('up, draining', 'ended, disk given up')
    """
    notes = (("draining", node.draining), ("disk given up", node.disk_lost))
    return ", ".join([state_of(node), *(text for text, is_so in notes if is_so)])


def services_text(node: "Node") -> str:
    return "all" if len(node.services) == 4 else ", ".join(node.services)


def node_document(node: "Node") -> dict[str, Any]:
    return {
        "name": node.name,
        "state": state_of(node),
        "services": list(node.services),
        "peer_address": node.peer_address,
        "client_address": node.client_address or None,
        "zone": node.zone or None,
        "level": node.level,
        "incarnation": node.incarnation,
        "suspected": node.suspected,
        "read_only": node.read_only,
        "ended": node.ended,
        "draining": node.draining,
        "disk_lost": node.disk_lost,
    }


def count_of(held: list[str], cluster: "DescribeClusterResponse") -> str:
    """Say in words how many groups and cells a node holds."""
    shared = {one.cell.name for one in cluster.cells}
    cells = sum(name in shared for name in held)
    counts = ((len(held) - cells, "group"), (cells, "cell"))
    texts = [f"{count} {what}" if count == 1 else f"{count} {what}s" for count, what in counts if count]
    return " and ".join(texts) or "0 groups"


def some(names: list[str]) -> str:
    """
    >>> some(["a", "b"]), some([str(n) for n in range(100)])[-16:]
    ('a, b', ', 19 and 80 more')
    """
    more = len(names) - NAMES_SHOWN_MAX
    return ", ".join(names[:NAMES_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
