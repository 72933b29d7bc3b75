"""`ordercast waiting`: what waits now, and for whom."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli import completion
from ordercast.cli.connection import Connection, connected
from ordercast.cli.output import Json, print_json, print_json_line, say
from ordercast.cli.who_waits import Waits

if TYPE_CHECKING:
    from ordercast.client.sync import SyncConnection
    from ordercast.v1.gateway_pb2 import DescribeWaitingResponse

LOOK_S = 1.0
#: To the corner, and away with what is there.
CLEAR = "\x1b[H\x1b[J"


@connected
def waiting(
    connection: Connection,
    domain: Annotated[
        str, typer.Option("--domain", help="Only of this domain.", autocompletion=completion.domains)
    ] = "",
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Look again each second, until stopped.")] = False,
    count: Annotated[
        int, typer.Option(min=0, help="With --watch: end after so many looks; 0: go on until stopped.")
    ] = 0,
    json: Json = False,
) -> None:
    """Show what waits at gateways and sequencers now: a tree of what holds it up, with what waits for it below.

    `replica:` somebody waits for what this node says. `message:` what comes before it in the order. `group:` the
    group has not delivered it, and no replica says more. `view:` the group changes. `token:` who orders its
    messages. Nodes that do not answer are named first. Under load something always waits, for milliseconds.

    Examples: `ordercast waiting` · `ordercast waiting --watch` · `ordercast waiting --domain payments --json`
    """
    with connection.client() as client:
        if not watch:
            _show(client.waiting(domain), json=json)
            return
        _watch(client, domain, count, json=json)


def _watch(client: "SyncConnection", domain: str, count: int, *, json: bool) -> None:
    looks = 0
    while True:
        found = client.waiting(domain)
        if json:
            print_json_line(document_of(found))
        else:
            say(_heading())
            _show(found, json=False)
        looks += 1
        if looks == count:
            return
        time.sleep(LOOK_S)


def _heading() -> str:
    from ordercast.cli.consoles import out

    return (CLEAR if out.is_terminal else "") + time.strftime("%H:%M:%S")


def _show(found: "DescribeWaitingResponse", *, json: bool) -> None:
    if json:
        print_json(document_of(found))
        return
    for line in Waits(found).lines():
        say(line)


def document_of(found: "DescribeWaitingResponse") -> dict[str, Any]:
    return {
        "nodes": [
            {
                "node": node.node,
                "error": node.error or None,
                "suspected": node.suspected,
                "waiting": [
                    {
                        "id": each.id.hex() or None,
                        "domain": each.domain,
                        "groups": list(each.groups),
                        "stage": each.stage,
                        "waited_s": each.waited_ms / 1e3,
                        "blocked_on": list(each.blocked_on),
                    }
                    for each in node.waiting
                ],
            }
            for node in found.nodes
        ],
        "blockers": [
            {
                "blocker": blocker.name,
                "domain": blocker.domain or None,
                "envelopes": blocker.count,
                "oldest_s": blocker.oldest_s,
            }
            for blocker in Waits(found).blockers()
        ],
    }
