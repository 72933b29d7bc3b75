"""Options that commands of `ordercast bench` share, and what is checked of them.

A command that measures a cluster of our own is declared with `@on_cluster`, and takes a `Plan`: its command line
gets the options that say what the cluster is like.
"""

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli.option_groups import put_in_place_of
from ordercast.cli.protocol_choice import (
    ORDERING,
    checked_ordering,
    checked_protocol,
    ordering_help,
    protocol_names,
)
from ordercast.core import protocol as core
from ordercast.core.level import LEVEL
from ordercast.protocols.catalogue import DEFAULT

if TYPE_CHECKING:
    from ordercast.bench.plan import BenchPlan

#: Groups that each message goes to, where a message can go to several.
GROUPS = 2

_PANEL = "The cluster"
_OPTIONS: dict[str, tuple[Any, Any]] = {
    "groups": (
        Annotated[
            int | None,
            typer.Option(
                min=1,
                help="Groups that each message goes to.",
                show_default=f"{GROUPS}; with --ordering total 1",
                rich_help_panel=_PANEL,
            ),
        ],
        None,
    ),
    "replicas": (
        Annotated[int, typer.Option(min=1, help="Replicas of each group.", rich_help_panel=_PANEL)],
        3,
    ),
    "nodes": (Annotated[int, typer.Option(min=1, help="Nodes of the cluster.", rich_help_panel=_PANEL)], 3),
    "size": (Annotated[int, typer.Option(min=0, help="Bytes of a payload.", rich_help_panel=_PANEL)], 256),
    "protocol": (
        Annotated[
            str,
            typer.Option(help=f"Of the groups' domain: {protocol_names()}.", rich_help_panel=_PANEL),
        ],
        DEFAULT.name,
    ),
    "shared": (
        Annotated[
            bool,
            typer.Option(
                "--shared/--own-cells",
                help="Whether the groups share cells, or each has one to itself.",
                rich_help_panel=_PANEL,
            ),
        ],
        False,
    ),
    "ordering": (
        Annotated[
            str | None,
            typer.Option(
                help=f"What the domain orders, {ordering_help()}.",
                show_default="the protocol's",
                rich_help_panel=_PANEL,
            ),
        ],
        None,
    ),
}


def on_cluster(command: Callable[..., None]) -> Callable[..., None]:
    """The command line gets the options of the cluster in place of the parameter `plan`."""

    @functools.wraps(command)
    def run(**given: Any) -> None:
        plan = _plan_of(**{name: given.pop(name) for name in _OPTIONS})
        command(plan=plan, **given)

    put_in_place_of("plan", _OPTIONS, command, run)
    return run


def _plan_of(
    groups: int | None,
    replicas: int,
    nodes: int,
    size: int,
    protocol: str,
    shared: bool,
    ordering: str | None,
) -> "BenchPlan":
    from ordercast.bench.plan import BenchPlan

    chosen = checked_protocol(protocol)
    chosen_ordering = checked_ordering(chosen, ordering)
    if replicas > nodes:
        raise typer.BadParameter(f"{nodes} nodes cannot hold {replicas} replicas")
    groups = _checked_groups(groups, chosen, chosen_ordering)
    return BenchPlan(nodes, groups, replicas, size, protocol=protocol, ordering=chosen_ordering, shared=shared)


def _checked_groups(groups: int | None, protocol: core.Protocol, ordering: str) -> int:
    is_alone = not protocol.parse({ORDERING: ordering} if ordering else {}, LEVEL).spans_groups
    if is_alone and (groups or 1) > 1:
        raise typer.BadParameter(f"with --ordering {ordering} a message goes to one group: leave --groups out")
    if groups is None:
        return 1 if is_alone else GROUPS
    return groups


# ------------------------------------------------------------------------------------------------ other options

InFlight = Annotated[str, typer.Option(help="Messages without a receipt; several numbers, with commas.")]
Seconds = Annotated[float, typer.Option(min=0.1, help="How long each row is measured.")]
Messages = Annotated[
    int | None,
    typer.Option(min=1, help="So many messages in each row, however long that takes.", show_default=False),
]
Repetitions = Annotated[int, typer.Option(min=1, help="How often; rows are medians.")]
Save = Annotated[
    Path | None,
    typer.Option(help="Also write the figures to this directory.", file_okay=False, show_default=False),
]
SaveWithPicture = Annotated[
    Path | None,
    typer.Option(
        help="Also write the figures, and a picture, to this directory.", file_okay=False, show_default=False
    ),
]


def checked_depths(text: str) -> tuple[int, ...]:
    depths = text.split(",")
    if not all(depth.isdecimal() and int(depth) for depth in depths):
        raise typer.BadParameter("--in-flight takes numbers above 0")
    return tuple(sorted({int(depth) for depth in depths}))


def lasting(plan: "BenchPlan", seconds: float, messages: int | None = None) -> "BenchPlan":
    return replace(plan, seconds=seconds, messages=messages)
