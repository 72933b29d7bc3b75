"""`ordercast serve SERVICE...`: run services in this process."""

import typer


def serve(context: typer.Context) -> None:
    """Run any set of membership, consensus, sequencer and gateway in this process; or telemetry. Settings follow.

    `ordercast serve membership consensus sequencer gateway --name n1 --data ./n1`

    `ordercast serve telemetry --data ./telemetry`

    `ordercast serve --help` explains services and settings; `--print-config` shows what they come to.
    """
    from ordercast.cli.services import run

    run(context.args)
