"""`ordercast`: the entry point."""

import typer

from ordercast.cli import demo, papers, sim

app = typer.Typer(
    help="Total order for messages sent to any set of groups.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("sim")(sim.sim)
app.command("papers")(papers.papers)


if __name__ == "__main__":
    app()
