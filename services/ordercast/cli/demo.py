"""`ordercast demo`: the main job in a minute, on a cluster of real processes that loses one on the way."""

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ordercast.cli.output import Json, err, out, print_json, progress_bar

GROUPS = ("orders", "payments", "stock")
PRODUCERS = 4
NODES = 3
VICTIM = "node-2"


def demo(
    messages: Annotated[int, typer.Option(min=8, help="How many messages, from four producers.")] = 2000,
    json: Json = False,
) -> None:
    """Publish to random sets of groups while a node is killed and comes back; then check the order everywhere."""
    from ordercast.local.cluster import LocalCluster
    from ordercast.local.setup import create_groups

    with tempfile.TemporaryDirectory(prefix="ordercast-demo-") as directory:
        cluster = LocalCluster(Path(directory), nodes=NODES)
        with cluster:
            err.print(f"Starting {NODES} nodes in {directory} ...")
            cluster.start()
            cluster.wait_healthy()
            create_groups(cluster.gateways, GROUPS)
            err.print(f"Groups {', '.join(GROUPS)}: {PRODUCERS} producers, {messages:,} messages to random sets.")
            document = asyncio.run(_run(cluster, messages))
            cluster.stop()
    if json:
        print_json(document)
    else:
        _show(document)
    if not document["ok"]:
        raise typer.Exit(1)


async def _run(cluster, messages: int) -> dict:  # type: ignore[no-untyped-def, type-arg]
    import grpc

    from ordercast.local.audit import audit
    from ordercast.local.load import Load, collect_logs, wait_for_equal_logs
    from ordercast.local.verify import Verifier

    load = Load(cluster.gateways, GROUPS)
    subscribers = [asyncio.create_task(load.subscribe("subscriber", group)) for group in GROUPS]
    begun = time.monotonic()
    with progress_bar() as bar:
        task = bar.add_task("receipts", total=messages, note="")
        load.on_receipt = lambda: bar.update(task, completed=len(load.evidence.receipts))
        producers = [
            asyncio.create_task(load.produce(f"producer-{n}", count=messages // PRODUCERS, pause_s=0.004))
            for n in range(PRODUCERS)
        ]
        await _strike(cluster, load, messages)
        await asyncio.gather(*producers)
    seconds = time.monotonic() - begun
    await load.caught_up(30)
    await asyncio.to_thread(wait_for_equal_logs, cluster.gateways[0], 30)
    for subscriber in subscribers:
        subscriber.cancel()
    await asyncio.gather(*subscribers, return_exceptions=True)
    await asyncio.to_thread(collect_logs, cluster.gateways[0], load.evidence)
    verdict = audit(load.evidence)
    with grpc.insecure_channel(cluster.gateways[0]) as channel:
        report = await asyncio.to_thread(Verifier(channel).run)
    return {
        "ok": verdict.is_clean and report.is_ok and report.is_complete,
        "seconds": round(seconds, 1),
        "acknowledged": verdict.acknowledged,
        "lost": verdict.lost,
        "duplicated": verdict.duplicated,
        "order_violations": verdict.order_violations,
        "longest_wait_s": round(load.outage_s_max, 2),
        "groups": [
            {
                "group": group.group,
                "messages": group.messages,
                "seen_by_subscriber": len(load.evidence.seen["subscriber", group.group]),
                "replicas": group.replicas,
            }
            for group in report.groups
        ],
        "problems": [*verdict.findings, *report.problems],
    }


async def _strike(cluster, load, messages: int) -> None:  # type: ignore[no-untyped-def]
    """Kill a node when a third of the messages is through, and bring it back at two thirds."""
    for part, what in ((1 / 3, "kill"), (2 / 3, "start")):
        while len(load.evidence.receipts) < messages * part:
            await asyncio.sleep(0.02)
        if what == "kill":
            err.print(f"SIGKILL to {VICTIM}, which holds a replica of every group.")
            cluster.kill(VICTIM)
        else:
            err.print(f"{VICTIM} comes back, and catches up.")
            cluster.start([VICTIM])
    await asyncio.to_thread(cluster.wait_healthy, [VICTIM])


def _show(document: dict) -> None:  # type: ignore[type-arg]
    table = Table(title=f"{document['acknowledged']:,} messages in {document['seconds']} s")
    for column in ("group", "messages", "seen by its subscriber", "replicas that agree"):
        table.add_column(column, justify="left" if column == "group" else "right")
    for group in document["groups"]:
        table.add_row(
            group["group"],
            f"{group['messages']:,}",
            f"{group['seen_by_subscriber']:,}",
            str(len(group["replicas"])),
        )
    out.print(table)
    out.print(
        f"{document['lost']} lost, {document['duplicated']} duplicated, "
        f"{document['order_violations']} out of order; longest wait {document['longest_wait_s']} s"
    )
    for problem in document["problems"]:
        out.print(f"  {problem}", markup=False)
    out.print("[green]verify: one order, everywhere[/]" if document["ok"] else "[red]verify: NOT one order[/]")
