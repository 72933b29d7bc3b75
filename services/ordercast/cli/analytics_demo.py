"""`ordercast analytics demo`: a slow disk and a killed node, and what the Spark job says about them afterwards."""

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ordercast.cli.exit_codes import ExitCode, fail
from ordercast.cli.output import err, out, progress_bar

if TYPE_CHECKING:
    from ordercast.analytics.report.summary import Summary
    from ordercast.local.cluster import LocalCluster

GROUPS = ("orders", "payments", "stock")
NODES = 3
PRODUCERS = 4
PAUSE_S = 0.02
#: Every write to its disk takes this much longer.
SLOW, SLOW_DISK_S = "node-2", 0.08
VICTIM = "node-3"
#: When things happen, in parts of the load's time.
SLOW_AT, KILL_AT, BACK_AT = 0.15, 0.3, 0.75
#: Services send what they have at least this often.
LAST_RECORDS_S = 3.0


def demo(
    seconds: Annotated[float, typer.Option(min=10, max=600, help="How long there is load.")] = 40,
    html: Annotated[Path, typer.Option(metavar="FILE", help="Where the report goes.", dir_okay=False)] = Path(
        "ordercast-report.html"
    ),
) -> None:
    """A slow disk and a killed node under load: the Spark job names the culprit, and audits the order.

    Ends with 1 if it names another one first, or if the audit is not clean.
    """
    from ordercast.analytics import needs
    from ordercast.analytics.errors import AnalyticsError

    try:
        needs.check()
        with tempfile.TemporaryDirectory(prefix="ordercast-analytics-demo-") as directory:
            found = _run(Path(directory), seconds, html)
    except AnalyticsError as error:
        fail(ExitCode.UNAVAILABLE, str(error))
    planted = f"replica:{SLOW}"
    named = found.blockers[0].name if found.blockers else "nothing"
    out.print(f"planted: a slow disk at {SLOW}; most was waited for: {named}", highlight=False)
    out.print(f"the report, to look at: {html.resolve()}", highlight=False, soft_wrap=True)
    if named != planted or found.audit.violations or not found.audit.deliveries:
        raise typer.Exit(ExitCode.NO)


def _run(directory: Path, seconds: float, html: Path) -> "Summary":
    from ordercast.analytics.report.page import page
    from ordercast.analytics.report.summary import Span, summary
    from ordercast.analytics.report.terminal import show
    from ordercast.analytics.tables import Tables
    from ordercast.local.telemetry import LocalTelemetry

    begun = time.monotonic()
    with LocalTelemetry(directory / "telemetry") as telemetry:
        _produce_telemetry(directory / "cluster", telemetry.address, seconds)
        _run_job(telemetry.address, directory / "tables")
    found = summary(Tables(directory / "tables"), Span())
    html.write_text(page(found), encoding="utf-8")
    show(found, out)
    out.print(f"{time.monotonic() - begun:.0f} s in all", highlight=False)
    return found


def _run_job(address: str, tables: Path) -> None:
    """In a process of its own: Spark forks, which a process that has used gRPC had better not do."""
    options = ["analytics", "run", "--once", "--address", address, "--output", str(tables)]
    err.print(f"$ ordercast {' '.join(options)}", highlight=False, soft_wrap=True)
    done = subprocess.run([sys.executable, "-m", "ordercast.cli.main", *options], check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)


def _produce_telemetry(directory: Path, endpoint: str, seconds: float) -> None:
    from ordercast.local.cluster import LocalCluster
    from ordercast.local.setup import create_groups

    # Every trace is kept: there is little time, and it shall be enough to tell who waited for whom.
    options = [f"--telemetry.endpoint={endpoint}", "--telemetry.sampling=1"]
    with LocalCluster(directory, nodes=NODES, options=options, fault_injection=True) as cluster:
        err.print(f"Starting {NODES} nodes and the telemetry service in {directory.parent} ...")
        cluster.start()
        cluster.wait_healthy()
        create_groups(cluster.gateways, GROUPS)
        err.print(f"{PRODUCERS} producers publish to random sets of {', '.join(GROUPS)} for {seconds:.0f} s.")
        asyncio.run(_load(cluster, seconds))
        # What stops says its last words.
        cluster.stop()
        time.sleep(LAST_RECORDS_S)


async def _load(cluster: "LocalCluster", seconds: float) -> None:
    from ordercast.local.load import Load

    load = Load(cluster.gateways, GROUPS)
    producers = [asyncio.create_task(load.produce(f"producer-{n}", pause_s=PAUSE_S)) for n in range(PRODUCERS)]
    with progress_bar() as bar:
        task = bar.add_task("seconds", total=round(seconds), note="")
        striking = asyncio.create_task(_strike(cluster, seconds))
        begun = time.monotonic()
        while (now := time.monotonic() - begun) < seconds:
            bar.update(task, completed=round(now), note=f"{len(load.evidence.receipts):,} receipts")
            await asyncio.sleep(0.25)
        await striking
    load.is_stopping = True
    await asyncio.gather(*producers)
    err.print(f"{len(load.evidence.receipts):,} receipts; the longest wait for one: {load.outage_s_max:.1f} s.")


async def _strike(cluster: "LocalCluster", seconds: float) -> None:
    from ordercast.v1.faults_pb2 import InjectRequest

    await asyncio.sleep(seconds * SLOW_AT)
    err.print(f"The disk of {SLOW} becomes slow: {SLOW_DISK_S * 1000:.0f} ms more for each write.")
    await asyncio.to_thread(cluster.inject, SLOW, InjectRequest(disk_delay_s=SLOW_DISK_S))
    await asyncio.sleep(seconds * (KILL_AT - SLOW_AT))
    err.print(f"SIGKILL to {VICTIM}: every group needs {SLOW} now.")
    cluster.kill(VICTIM)
    await asyncio.sleep(seconds * (BACK_AT - KILL_AT))
    err.print(f"{VICTIM} comes back, and catches up.")
    cluster.start([VICTIM])
    await asyncio.to_thread(cluster.wait_healthy, [VICTIM])
