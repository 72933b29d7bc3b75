"""`ordercast`: the entry point."""

import typer

from ordercast.cli import (
    abuse,
    analytics,
    bench,
    chaos,
    cursor,
    demo,
    domain,
    exit_codes,
    group,
    kube,
    node,
    papers,
    publish,
    rebalance,
    serve,
    sim,
    status,
    subscribe,
    up,
    verify,
)

app = typer.Typer(
    help="Total order for messages sent to any set of groups.",
    epilog=exit_codes.SUMMARY,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.command("up")(up.up)
app.command("status")(status.status)
app.add_typer(domain.app, name="domain")
app.add_typer(group.app, name="group")
app.add_typer(cursor.app, name="cursor")
app.add_typer(node.app, name="node")
app.add_typer(kube.app, name="kube")
app.command("rebalance")(rebalance.rebalance)
app.command("publish")(publish.publish)
app.command("subscribe")(subscribe.subscribe)
app.command("verify")(verify.verify)
app.command(
    "serve",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)(serve.serve)
app.add_typer(analytics.app, name="analytics")
app.command("demo")(demo.demo)
app.command("bench")(bench.bench)
app.command("chaos")(chaos.chaos)
app.command("abuse")(abuse.abuse)
app.command("sim")(sim.sim)
app.command("papers")(papers.papers)


if __name__ == "__main__":
    app()
