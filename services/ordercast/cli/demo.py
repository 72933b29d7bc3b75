"""`ordercast demo`: a small simulated cluster with a crash in the middle, and what every replica saw."""

import time
from random import Random
from typing import Annotated

import typer
from rich.table import Table

from ordercast.cli.output import Json, out, print_json
from ordercast.core.machine import Deliver
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.stage import Stage
from ordercast.v1.common_pb2 import Batch

GROUPS: dict[str, tuple[str, ...]] = {"a": ("n1", "n2", "n3"), "b": ("n2", "n3", "n4"), "c": ("n1", "n3", "n4")}
COLOURS = {"c1": "cyan", "c2": "magenta", "c3": "green"}


class Show:
    """Prints what happens as it happens, and keeps what each replica delivered."""

    def __init__(self, stage: Stage, *, quiet: bool, pace: float) -> None:
        self.stage = stage
        self.quiet = quiet
        self.pace = pace
        #: By group and replica: what is at each offset.
        self.logs: dict[tuple[str, str], dict[int, str]] = {}
        self.last = 0.0
        self._deliver = stage.world.on_deliver
        stage.world.on_deliver = self.on_deliver

    def on_deliver(self, process: str, effect: Deliver) -> None:
        self._deliver(process, effect)
        header = effect.entry.envelope.header
        bodies = Batch.FromString(effect.entry.envelope.body).messages
        index = 0
        for range_, outcome in zip(header.ranges, effect.entry.outcomes, strict=True):
            for span in outcome.spans:
                if not span.duplicate:
                    first = index + span.first_sequence - range_.first_sequence
                    for number in range(span.count):
                        text = bodies[first + number].payload.decode()
                        self._message(process, effect.group, span.first_offset + number, text)
            index += range_.count

    def _message(self, process: str, group: str, offset: int, text: str) -> None:
        log = self.logs.setdefault((group, process), {})
        if log.get(offset) != text:  # a restarted replica may deliver again what it had not yet written down
            log[offset] = text
            self.say(f"[{COLOURS[text.split()[0]]}]{process} delivers in {group}: {text}[/]")

    def say(self, text: str) -> None:
        if not self.quiet:
            now = self.stage.world.now
            if self.pace:
                time.sleep(min((now - self.last) * self.pace, 1.0))
            self.last = now
            out.print(f"[dim]{now * 1000:7.1f} ms[/]  {text}", highlight=False)


def demo(
    seed: Annotated[int, typer.Option(help="Who publishes what, and when.")] = 1,
    pace: Annotated[float, typer.Option(min=0.0, help="Slow down: this many times simulated time.")] = 0.0,
    json: Json = False,
) -> None:
    """Run four simulated nodes with three groups, crash one node in the middle, and compare what replicas saw.

    Example: `ordercast demo --pace 20`
    """
    stage = Stage(GROUPS, acceptors=None, clients=3)
    show = Show(stage, quiet=json, pace=pace)
    violation = None
    try:
        _play(stage, show, Random(seed))
        stage.finish()
    except Violation as found:
        violation = found
    if json:
        logs = [
            {"group": group, "replica": replica, "delivered": [log[offset] for offset in sorted(log)]}
            for (group, replica), log in sorted(show.logs.items())
        ]
        print_json({"deliveries": logs, "violation": str(violation) if violation else None})
    else:
        _print_side_by_side(show)
        _print_verdict(violation, stage)
    raise typer.Exit(1 if violation else 0)


def _play(stage: Stage, show: Show, random: Random) -> None:
    sets = [("a",), ("b",), ("c",), ("a", "b"), ("b", "c"), ("a", "c"), ("a", "b", "c")]
    for number in range(24):
        stage.publish(f"c{random.randint(1, 3)}", *random.choice(sets))
        stage.run(random.choice([0.0005, 0.002, 0.005]))
        if number == 9:
            stage.crash("n3")
            show.say("[bold red]n3 crashes[/]: it holds replicas of all three groups")
        if number == 17:
            stage.restart("n3")
            show.say("[bold yellow]n3 is back[/]: it reads its disk and asks for what it missed")


def _print_side_by_side(show: Show) -> None:
    for group in GROUPS:
        table = Table(title=f"group {group}", title_justify="left")
        columns = [show.logs.get((group, replica), {}) for replica in GROUPS[group]]
        table.add_column("offset", justify="right", style="dim")
        for replica in GROUPS[group]:
            table.add_column(replica)
        for offset in range(max((max(column, default=-1) for column in columns), default=-1) + 1):
            cells = [column.get(offset, "") for column in columns]
            table.add_row(str(offset), *(f"[{COLOURS[c.split()[0]]}]{c}[/]" if c else "-" for c in cells))
        out.print(table)


def _print_verdict(violation: Violation | None, stage: Stage) -> None:
    if violation is not None:
        out.print(f"[bold red]violation[/] {violation}", highlight=False)
        return
    messages = len(stage.cluster.board.sent)
    out.print(
        f"[bold green]All checkers are content:[/] {messages} messages, "
        f"{stage.cluster.logs.delivered} deliveries, one order everywhere.",
        highlight=False,
    )
