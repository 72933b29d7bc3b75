"""`ordercast`: the entry point. A command's module is loaded when that command is used, and no other.

The help of `ordercast` itself is plain text: rich, and what it needs for Markdown, would take longer to load than
all the rest.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ordercast.cli import exit_codes
from ordercast.cli.metavars import in_words


@dataclass(frozen=True, slots=True)
class Source:
    """Where a command is: `name` in the module `ordercast.cli.<module>`, a function or an app of its own."""

    module: str
    name: str
    #: One line, for the list of commands: it is not cut off in a terminal of 80 columns.
    help: str


COMMANDS: dict[str, Source] = {
    "up": Source("up", "up", "Run a cluster of real processes on this machine."),
    "status": Source("status", "status", "Show nodes and groups, and how far each replica is."),
    "waiting": Source("waits", "waiting", "Show what waits now, in which stage, and for whom."),
    "publish": Source("publish", "publish", "Send messages to any set of groups."),
    "subscribe": Source("subscribe", "subscribe", "Read the messages of a group in their order."),
    "cut": Source("merged", "cut", "Print a place in the order: a cut through several groups."),
    "verify": Source("verify", "verify", "Read all replicas of all groups, and compare them."),
    "group": Source("group", "app", "Groups: where messages are sent to, and read from."),
    "cell": Source("cell", "app", "Cells: the sets of replicas that groups share."),
    "domain": Source("domain", "app", "Domains: what can be ordered together, and how."),
    "cursor": Source("cursor", "app", "Cursors: where named consumers go on reading."),
    "node": Source("node", "app", "Nodes: who is there, and what they hold."),
    "rebalance": Source("rebalance", "rebalance", "Move replicas until nodes hold about the same."),
    "serve": Source("serve", "serve", "Run services in this process, with their settings."),
    "kube": Source("kube.commands", "app", "An installation in Kubernetes, without YAML."),
    "analytics": Source("analytics", "app", "Order lag, blockers, the order audit, from telemetry."),
    "demo": Source("demo", "demo", "Kill a node under load, and check the order everywhere."),
    "bench": Source("bench.commands", "app", "Measure a cluster of real processes on this machine."),
    "chaos": Source("chaos", "chaos", "Kill, pause and cut off processes, then check all."),
    "abuse": Source("abuse", "abuse", "Play a hostile client, and see what others notice."),
    "sim": Source("sim", "sim", "Simulate a protocol under faults, every checker on."),
    "papers": Source("papers", "papers", "Put a paper's figures beside what our machines do."),
}

#: What follows the services' names are settings, and `--help` among them is the services' to answer.
CONTEXT_SETTINGS: dict[str, dict[str, Any]] = {
    "serve": {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
}


class LoadedWhenUsed(TyperCommand):
    """Stands in the list of commands for one whose module is not loaded; whoever calls that gets the real one."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        assert self.name is not None
        return load(self.name).make_context(info_name, args, parent=parent, **extra)


def load(name: str) -> Any:
    """The command with its options, or the group with its commands."""
    source = COMMANDS[name]
    found = getattr(import_module(f"ordercast.cli.{source.module}"), source.name)
    one = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
    if isinstance(found, typer.Typer):
        # Together with a command of its own an app stays a group below this one.
        one.add_typer(found, name=name)
        command = typer.main.get_group(one).commands[name]
    else:
        one.command(name, context_settings=CONTEXT_SETTINGS.get(name))(found)
        command = typer.main.get_command(one)
    in_words(command)
    return command


app = typer.Typer(
    help="Total order for messages sent to any set of groups.",
    epilog=exit_codes.SUMMARY,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        import ordercast

        print(f"ordercast {ordercast.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass


def _not_loaded() -> None:
    raise AssertionError("the loaded command runs instead")


for _name, _source in COMMANDS.items():
    app.command(_name, cls=LoadedWhenUsed, help=_source.help)(_not_loaded)


if __name__ == "__main__":
    app()
