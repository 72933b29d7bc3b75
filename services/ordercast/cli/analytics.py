"""`ordercast analytics`: the Spark job that turns telemetry into answers, and its report."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ordercast.analytics.run import KAFKA, SOURCES, SPOOL, TOPIC
from ordercast.cli.analytics_demo import demo
from ordercast.cli.connection import check_tls
from ordercast.cli.exit_codes import ExitCode, fail
from ordercast.cli.output import Json, err, out, print_json

app = typer.Typer(help="Order lag, blockers and the order audit, from telemetry.", no_args_is_help=True)

OUTPUT = Path("ordercast-analytics")
DEFAULT_ADDRESS = {SPOOL: "127.0.0.1:4317", KAFKA: "127.0.0.1:9092"}

Topic = Annotated[str | None, typer.Option(help="With --source kafka: the topic.", show_default=TOPIC)]
Jars = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="With --source kafka: Spark's connector, and what it needs, as files.",
        show_default="fetched from Maven Central",
        exists=True,
        file_okay=False,
    ),
]


def _pem(what: str) -> Any:
    return typer.Option(exists=True, dir_okay=False, metavar="FILE", help=what, show_default=False)


Partitions = Annotated[
    int | None, typer.Option(min=1, help="With --source spool: read it in so many parts.", show_default="2")
]
Ca = Annotated[
    Path | None, _pem("Use TLS, and trust a telemetry service whose certificate this authority signed (PEM).")
]
Cert = Annotated[Path | None, _pem("Our own certificate (PEM).")]
CertKey = Annotated[Path | None, _pem("The key of --cert (PEM).")]
ServerName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="What its certificate says, if it is not the host that is dialled."),
]
Output = Annotated[Path, typer.Option("--output", "-o", help="The folder of the tables.", file_okay=False)]

app.command("demo")(demo)


def _check_source(source: str, options: Mapping[str, Mapping[str, object]]) -> None:
    """`options` are those that only one source has."""
    if source not in SOURCES:
        raise typer.BadParameter("--source takes `spool` or `kafka`")
    for other, named in options.items():
        for name, given in named.items():
            if other != source and given is not None:
                raise typer.BadParameter(f"--{name} is for --source {other}")


def _absolute(path: Path | None) -> Path | None:
    """For Spark's workers, which have folders of their own. Links stay: those who replace files move them."""
    return path.absolute() if path is not None else None


@app.command("run")
def run(
    source: Annotated[str, typer.Option(help="`spool`: the telemetry service. `kafka`: its sink.")] = "spool",
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Of the telemetry service, or of Kafka's brokers, with commas.",
            show_default="127.0.0.1:4317; with --source kafka 127.0.0.1:9092",
        ),
    ] = None,
    output: Output = OUTPUT,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Where streams keep how far they are.", show_default="in --output", file_okay=False),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Everything that is there now, and then end.")] = False,
    master: Annotated[
        str, typer.Option(help="Spark's master.", show_default="as spark-submit says, else local[2]")
    ] = "",
    metrics_listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Serve results to Prometheus here.", show_default=False)
    ] = "",
    topic: Topic = None,
    jars: Jars = None,
    trigger: Annotated[float, typer.Option(min=0.1, help="Seconds between batches.")] = 5.0,
    per_trigger: Annotated[
        int,
        typer.Option(min=1, help="Take at most so many records at once; with --source kafka messages."),
    ] = 250_000,
    partitions: Partitions = None,
    keep_days: Annotated[
        int, typer.Option(min=0, help="Delete days of the tables that are older; 0: keep all.")
    ] = 30,
    ca: Ca = None,
    cert: Cert = None,
    cert_key: CertKey = None,
    server_name: ServerName = None,
) -> None:
    """Run the job: read telemetry, write tables, until it is stopped; with --once until all of it is read.

    Examples: `ordercast analytics run --once` · `ordercast analytics run --metrics-listen 127.0.0.1:9464`
    """
    from ordercast.analytics.certificates import Certificates
    from ordercast.analytics.errors import AnalyticsError
    from ordercast.analytics.run import RunSettings
    from ordercast.analytics.run import run as run_job

    spool = {"partitions": partitions, "ca": ca, "cert": cert, "cert-key": cert_key, "server-name": server_name}
    _check_source(source, {"kafka": {"topic": topic, "jars": jars}, "spool": spool})
    check_tls(ca, cert, cert_key, server_name)
    settings = RunSettings(
        source,
        address or DEFAULT_ADDRESS[source],
        output,
        checkpoint,
        once,
        master,
        metrics_listen,
        topic or TOPIC,
        jars,
        trigger,
        per_trigger,
        partitions or 2,
        keep_days,
        Certificates(ca.absolute(), _absolute(cert), _absolute(cert_key), server_name) if ca else None,
    )
    try:
        run_job(settings)
    except AnalyticsError as error:
        fail(ExitCode.UNAVAILABLE, str(error))


@app.command("report")
def report(
    output: Output = OUTPUT,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it as one HTML file instead.", dir_okay=False)
    ] = None,
    since: Annotated[str, typer.Option("--from", metavar="TIME", help="Like 2026-01-31T12:00, UTC.")] = "",
    until: Annotated[str, typer.Option("--to", metavar="TIME", help="Like 2026-01-31T13:00, UTC.")] = "",
    json: Json = False,
) -> None:
    """Show what the tables say: lag, stages, blockers, replicas, unavailability, and the audit's verdict.

    Ends with 1 if the audit found a violation.

    Examples: `ordercast analytics report` · `ordercast analytics report --html report.html --from 2026-01-31`
    """
    from ordercast.analytics import needs
    from ordercast.analytics.errors import AnalyticsError

    try:
        needs.check_packages(("pandas", "pyarrow", "pyspark"))
        from ordercast.analytics.report.page import page
        from ordercast.analytics.report.summary import Span, summary, time_from
        from ordercast.analytics.report.terminal import show
        from ordercast.analytics.tables import Tables

        span = Span(time_from(since) if since else None, time_from(until) if until else None)
        found = summary(Tables(output), span)
    except AnalyticsError as error:
        fail(ExitCode.NOT_FOUND, str(error))
    if html is not None:
        html.write_text(page(found), encoding="utf-8")
        err.print(f"{html}", highlight=False, soft_wrap=True)
    if json:
        print_json(document(asdict(found)))
    elif html is None:
        show(found, out)
    if found.audit.violations:
        raise typer.Exit(ExitCode.NO)


def document(value: object) -> object:
    """As JSON can say it: times as text, and what is not there as null."""
    if isinstance(value, dict):
        return {name: document(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [document(inner) for inner in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return None if value != value else value
    if hasattr(value, "item"):
        return document(value.item())
    return str(value)


@app.command("bench")
def bench(
    records: Annotated[int, typer.Option(min=10_000, help="Records in the spool.")] = 1_000_000,
    partitions: Annotated[str, typer.Option(help="Numbers of partitions, with commas.")] = "1,2",
    json: Json = False,
) -> None:
    """Measure the job on this machine, from a spool in memory: records per second through each stream.

    Example: `ordercast analytics bench --json`
    """
    from ordercast.analytics.bench import run as run_bench
    from ordercast.analytics.errors import AnalyticsError

    numbers = partitions.split(",")
    if not all(number.isdecimal() and int(number) for number in numbers):
        raise typer.BadParameter("--partitions takes numbers above 0, with commas")
    try:
        result = run_bench(
            records, [int(number) for number in numbers], lambda text: err.print(text, highlight=False)
        )
    except AnalyticsError as error:
        fail(ExitCode.UNAVAILABLE, str(error))
    if json:
        print_json(result.document())
    else:
        for table in result.tables():
            out.print(table, highlight=False)
