"""`ordercast status`: whether a cluster is as it should be, for people and for scripts."""

import typer

from ordercast.cli.cluster_health import document_of, print_health, read
from ordercast.cli.connection import Connection, connected
from ordercast.cli.exit_codes import ExitCode
from ordercast.cli.output import Json, print_json, print_verdict


@connected
def status(connection: Connection, json: Json = False) -> None:
    """Show the nodes and groups of a cluster, and how far each replica is.

    Exit code 1 if a node is suspected or has ended, if a group lacks a majority of its replicas or acceptors, or
    if a member of a group lost what it had stored. A change that is under way is no trouble. A process that is
    only a gateway leaves the list when it is over.

    Examples: `ordercast status` · `ordercast status --json -g 10.0.0.1:7400,10.0.0.2:7400`
    """
    with connection.client() as client:
        found = read(client)
    if json:
        print_json(document_of(found))
    else:
        print_health(found)
        print_verdict(found.troubles)
    raise typer.Exit(ExitCode.NO if found.troubles else ExitCode.OK)
