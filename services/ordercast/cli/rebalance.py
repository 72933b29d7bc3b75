"""`ordercast rebalance`: replicas move until nodes and zones hold about the same."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli.changes import wait_for_change
from ordercast.cli.connection import Connection, connected
from ordercast.cli.output import Json, print_json, print_table, say
from ordercast.cli.waiting import Patience, WaitDisplay, note

if TYPE_CHECKING:
    from ordercast.client.sync import SyncConnection
    from ordercast.v1.gateway_pb2 import ReplicaMove

HINT = "a move that has begun is finished; `ordercast rebalance` plans the rest anew"


@connected
def rebalance(
    connection: Connection,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be moved.")] = False,
    timeout: Patience = None,
    json: Json = False,
) -> None:
    """Move replicas until nodes and zones hold about the same: one group after the other, as few as possible.

    Draining, suspected and full nodes get nothing. It may be stopped at any time, and called again.

    Examples: `ordercast rebalance --dry-run` · `ordercast rebalance`
    """
    with connection.client() as client:
        moves = client.plan_rebalance()
        if dry_run or not moves:
            _show(moves, json)
            return
        done: list[dict[str, Any]] = []
        try:
            _execute(client, moves, timeout, done)
        finally:
            # Also if a later one fails: these are done.
            if json:
                print_json(done)
    if not json:
        say(f"{len(done)} of {len(moves)} replicas were moved")


def _show(moves: "list[ReplicaMove]", json: bool) -> None:
    if json:
        print_json([move_document(move) for move in moves])
    elif moves:
        print_table(("group", "from", "to", "why"), [(m.group, m.node, m.to, m.why) for m in moves])
    else:
        say("everything is where it should be")


def _execute(
    client: "SyncConnection", moves: "list[ReplicaMove]", timeout: float | None, done: list[dict[str, Any]]
) -> None:
    """One change at a time, in the order of the plan. What is done is added to `done`."""
    from ordercast.client.errors import NotFound

    with WaitDisplay(timeout, HINT) as waiting:
        for number, move in enumerate(moves, 1):
            note(f"{number} of {len(moves)}: {move.group} from {move.node} to {move.to}; {move.why}")
            try:
                begun = client.change_replicas(move.group, "replace", node=move.node, to=move.to)
            except NotFound as error:
                # The group went meanwhile, and the reason for the move with it.
                note(f"left out: {error.message}")
                continue
            group = wait_for_change(client, begun, waiting)
            done.append(move_document(move) | {"configuration": group.configuration})


def move_document(move: "ReplicaMove") -> dict[str, Any]:
    return {"group": move.group, "from": move.node, "to": move.to, "why": move.why}
