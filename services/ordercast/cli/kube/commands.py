"""`ordercast kube`: an installation in Kubernetes, for people who would rather not read YAML."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli.cluster_health import ClusterHealth, document_of, print_health, read
from ordercast.cli.connection import Connection, connected
from ordercast.cli.exit_codes import ExitCode, fail
from ordercast.cli.kube.api import ApiPlace, KubeError, Object, Objects, find_place, list_objects
from ordercast.cli.kube.belongings import Belongings, judge_belongings
from ordercast.cli.kube.forward import Tunnel
from ordercast.cli.kube.metrics import WaitingEnvelopes, judge_leader, read_pages, waiting_document, waiting_row
from ordercast.cli.kube.pods import (
    Workloads,
    component_document,
    component_row,
    judge_workloads,
    pod_document,
    pod_row,
)
from ordercast.cli.kube.release import (
    chart_of,
    choose_release,
    client_host,
    name_of,
    of_release,
    port_of,
    short_lived_gateways,
    uses_tls,
)
from ordercast.cli.output import Json, print_columns, print_json, print_verdict, say

if TYPE_CHECKING:
    from ordercast.v1.membership_pb2 import Node

app = typer.Typer(help="An installation in Kubernetes, without YAML.", no_args_is_help=True)

#: If the first does not answer, another one may.
GATEWAYS_TRIED_MAX = 3

_PANEL = "Kubernetes"
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", "-n", help="Where it is installed.", show_default="the context's", rich_help_panel=_PANEL
    ),
]
Release = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Which one.", show_default="the only one", rich_help_panel=_PANEL),
]
Context = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Of the kubeconfig.", show_default="the current one", rich_help_panel=_PANEL
    ),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="How Kubernetes is reached.",
        show_default="as kubectl does; in a pod, its account",
        rich_help_panel=_PANEL,
    ),
]
Gateway = Annotated[
    str | None,
    typer.Option(
        "--gateway",
        "-g",
        metavar="HOST:PORT[,...]",
        help="Ask these gateways.",
        show_default="those that are ready, through the API server",
        rich_help_panel="Connection",
    ),
]


@dataclass(slots=True)
class Installation:
    """All that is known of one, and what is to be said about it."""

    place: ApiPlace
    release: str
    objects: Objects
    workloads: Workloads
    belongings: Belongings
    cluster: ClusterHealth | None = None
    leader: str | None = None
    waiting: list[WaitingEnvelopes] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@app.callback()
def kube() -> None:
    """One command at present, which has a name of its own all the same."""


@app.command("status")
@connected
def status(
    connection: Connection,
    namespace: Namespace = None,
    release: Release = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    gateway: Gateway = None,
    json: Json = False,
) -> None:
    """Show the pods of an installation, and the cluster that they make: nodes, groups, leader, lag.

    Nothing is changed. Who asks needs to be allowed to list what is shown, and `pods/portforward` to look inside.

    Exit code 1 if a pod is not ready, a volume claim is not bound or a Job failed; if the cluster cannot be asked;
    and in all cases in which `ordercast status` has it.

    Examples: `ordercast kube status` · `ordercast kube status -n orders --release oc --json`
    """
    try:
        found = _look(find_place(kubeconfig, context, namespace), release, connection.timeout_s)
    except KubeError as error:
        fail(error.code, str(error))
    _look_inside(found, connection, is_direct=gateway is not None)
    if json:
        print_json(_document(found))
    else:
        _print(found)
    raise typer.Exit(ExitCode.NO if found.troubles else ExitCode.OK)


# ------------------------------------------------------------------------------------------------------ looking


def _look(place: ApiPlace, wanted: str | None, timeout_s: float) -> Installation:
    """What Kubernetes knows."""
    everything = list_objects(place, timeout_s)
    release = choose_release(everything, wanted, place.namespace)
    objects = of_release(everything, release)
    found = Installation(
        place, release, objects, judge_workloads(objects, datetime.now(UTC)), judge_belongings(objects)
    )
    found.troubles += [*found.workloads.troubles, *found.belongings.troubles]
    found.notes += [*found.workloads.notes, *found.belongings.notes]
    if objects.forbidden:
        found.notes.append(f"not looked at, for you may not list them: {', '.join(objects.forbidden)}")
    return found


def _look_inside(found: Installation, connection: Connection, *, is_direct: bool) -> None:
    """What the cluster knows. If it cannot be asked, that is a trouble, and the pods are shown all the same."""
    ready = _ready_pods(found)
    gateways = [pod for pod in ready if port_of(pod, "clients") is not None]
    said = read_pages(found.place, ready, connection.timeout_s)
    if not gateways and not is_direct:
        found.troubles.append("no gateway is ready: the cluster cannot be asked")
    elif any(map(uses_tls, gateways)) and connection.tls is None:
        found.troubles.append("the cluster cannot be asked: its gateways use TLS, and --ca says whom to trust")
    elif is_direct:
        _ask(found, connection)
    else:
        with _tunnels(found, gateways, connection) as tunnels:
            through = _through(found, connection, tunnels)
            _ask(found, through, tunnels)
    found.waiting = said.waiting
    if said.unread:
        pod, why = next(iter(said.unread.items()))
        found.notes.append(f"metrics of {len(said.unread)} pods could not be read; of {pod}: {why}")
    found.leader, troubles, notes = judge_leader(said)
    found.troubles += troubles
    found.notes += notes


def _ready_pods(found: Installation) -> list[Object]:
    ready = [pod.name for pod in found.workloads.pods if pod.is_ready and pod.state != "Terminating"]
    return [pod for pod in found.objects.of("pods") if name_of(pod) in ready]


@contextlib.contextmanager
def _tunnels(found: Installation, gateways: list[Object], connection: Connection) -> Iterator[list[Tunnel]]:
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                Tunnel(found.place, name_of(pod), port_of(pod, "clients") or 0, connection.timeout_s)
            )
            for pod in gateways[:GATEWAYS_TRIED_MAX]
        ]


def _through(found: Installation, connection: Connection, tunnels: list[Tunnel]) -> Connection:
    """Certificates name the host that clients dial in Kubernetes, and not our end of a tunnel."""
    tls = connection.tls
    if tls is not None and tls.server_name is None:
        tls = replace(tls, server_name=client_host(found.objects, found.place.namespace))
    return replace(connection, gateways=tuple(tunnel.address for tunnel in tunnels), tls=tls, is_patient=True)


def _ask(found: Installation, connection: Connection, tunnels: list[Tunnel] | None = None) -> None:
    from ordercast.client.errors import OrdercastError

    try:
        with connection.client() as client:
            found.cluster = read(client, lambda node: _is_over(found, node))
    except OrdercastError as error:
        # What a tunnel met is nearer to the cause.
        met = [tunnel.error for tunnel in tunnels or [] if tunnel.error]
        found.troubles.append(f"the cluster does not answer: {met[0] if met else error.message}")
    else:
        found.troubles += found.cluster.troubles


def _is_over(found: Installation, node: "Node") -> bool:
    """A pod of a Deployment never comes back: its node stays in the list for a while, and nobody misses it."""
    is_short_lived = any(node.name.startswith(f"{name}-") for name in short_lived_gateways(found.objects))
    return is_short_lived and node.name not in map(name_of, found.objects.of("pods"))


# ------------------------------------------------------------------------------------------------------ showing


def _document(found: Installation) -> dict[str, Any]:
    return {
        "healthy": not found.troubles,
        "troubles": found.troubles,
        "notes": found.notes,
        "namespace": found.place.namespace,
        "release": found.release,
        "chart": chart_of(found.objects),
        "components": [component_document(component) for component in found.workloads.components],
        "pods": [pod_document(pod) for pod in found.workloads.pods],
        "volume_claims": found.belongings.claims,
        "jobs": found.belongings.jobs,
        "disruption_budgets": found.belongings.budgets,
        "membership_leader": found.leader,
        "waiting": [waiting_document(waiting) for waiting in found.waiting],
        "cluster": document_of(found.cluster) if found.cluster else None,
    }


def _print(found: Installation) -> None:
    say(f"release {found.release} in namespace {found.place.namespace}, {chart_of(found.objects) or 'no chart'}")
    print_columns([component_row(component) for component in found.workloads.components], ("ready",))
    print_columns([pod_row(pod) for pod in found.workloads.pods], ("age",))
    if found.cluster is not None:
        print_health(found.cluster)
    if found.leader is not None:
        say(f"membership is led by {found.leader}")
    print_columns([waiting_row(waiting) for waiting in found.waiting], ("waiting", "oldest"))
    for note in found.notes:
        say(f"note: {note}")
    print_verdict(found.troubles)
