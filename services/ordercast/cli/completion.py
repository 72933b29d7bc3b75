"""Names that a shell completes: the gateway is asked for them, quickly, and without a word if it does not answer.

What is imported is only what asking needs: somebody waits with a finger on the key.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import typer

from ordercast.cli.connection import GATEWAY_DEFAULT, Connection, connection_of

#: Of all that is asked for one completion.
TIMEOUT_S = 0.5
#: More groups than this help nobody to choose.
OFFERED_MAX = 200

Ask = Callable[[Any, float], Iterable[Any]]


def groups(context: typer.Context, incomplete: str) -> list[str]:
    return _beginning_with(incomplete, _names(context, partial(_ask_groups, incomplete)))


def cells(context: typer.Context, incomplete: str) -> list[str]:
    return _beginning_with(incomplete, _names(context, _ask_cells))


def placed(context: typer.Context, incomplete: str) -> list[str]:
    """Groups and cells."""
    return sorted([*groups(context, incomplete), *cells(context, incomplete)])


def group_list(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the last group of a list such as `a,b`. Those before it are not offered again."""
    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    found = _beginning_with(last, _names(context, partial(_ask_groups, last)))
    return [f"{before}{comma}{name}" for name in found if name not in given]


def nodes(context: typer.Context, incomplete: str) -> list[str]:
    return _beginning_with(incomplete, _names(context, _ask_nodes))


def domains(context: typer.Context, incomplete: str) -> list[str]:
    return _beginning_with(incomplete, _names(context, _ask_domains))


def cursors(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the cursors of the group that the command names."""
    # An option without its value, which is what is being completed, keeps arguments from getting their names.
    group = context.params.get("group") or next(iter(context.args), "")

    def ask(stub: Any, timeout_s: float) -> Iterable[Any]:
        from ordercast.v1.gateway_pb2 import ListCursorsRequest

        return stub.ListCursors(ListCursorsRequest(group=group), timeout=timeout_s).cursors

    return _beginning_with(incomplete, _names(context, ask)) if group else []


def _ask_groups(prefix: str, stub: Any, timeout_s: float) -> Iterable[Any]:
    from ordercast.v1.gateway_pb2 import ListGroupsRequest

    return stub.ListGroups(ListGroupsRequest(prefix=prefix, limit=OFFERED_MAX), timeout=timeout_s).groups


def _ask_cells(stub: Any, timeout_s: float) -> Iterable[Any]:
    from ordercast.v1.gateway_pb2 import ListCellsRequest

    return [found.cell for found in stub.ListCells(ListCellsRequest(), timeout=timeout_s).cells]


def _ask_nodes(stub: Any, timeout_s: float) -> Iterable[Any]:
    from ordercast.v1.gateway_pb2 import DescribeClusterRequest

    return stub.DescribeCluster(DescribeClusterRequest(), timeout=timeout_s).nodes


def _ask_domains(stub: Any, timeout_s: float) -> Iterable[Any]:
    from ordercast.v1.gateway_pb2 import ListDomainsRequest

    return stub.ListDomains(ListDomainsRequest(), timeout=timeout_s).domains


def _beginning_with(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


def _names(context: typer.Context, ask: Ask) -> list[str]:
    """None, whatever goes wrong: an error in the middle of a command line helps nobody."""
    # What gRPC itself has to say about a connection would be printed between the words.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    given = {name: context.params.get(name) for name in ("ca", "cert", "cert_key", "server_name")}
    try:
        connection = connection_of(context.params.get("gateway") or GATEWAY_DEFAULT, TIMEOUT_S, **given)
        return [found.name for found in _first_answer(connection, ask)]
    except Exception:
        return []


def _first_answer(connection: Connection, ask: Ask) -> Iterable[Any]:
    """Each gateway has its share of the time that is left."""
    import grpc

    from ordercast.client.transport import sync_channel
    from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub

    ends = time.monotonic() + TIMEOUT_S
    for index, address in enumerate(connection.gateways):
        share_s = (ends - time.monotonic()) / (len(connection.gateways) - index)
        with sync_channel(address, connection.tls) as channel, contextlib.suppress(grpc.RpcError):
            return ask(GatewayServiceStub(channel), share_s)
    return []
