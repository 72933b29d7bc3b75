"""`ordercast sim`: run a protocol in the simulator under faults, with every checker on."""

from typing import Annotated, Any

import typer

from ordercast.cli.output import Json, err, out, print_json, progress_bar
from ordercast.sim.campaign import Campaign, run_many, run_one
from ordercast.sim.explain import around
from ordercast.sim.hunt import Catch, catch_all
from ordercast.sim.trial import RunResult
from ordercast.sim.trials import names, trial_of


def sim(
    protocol: Annotated[str, typer.Argument(help=f"The protocol to run: {', '.join(names())}.")],
    seed: Annotated[int | None, typer.Option(min=0, help="Run this one seed, whatever --seeds says.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to run.")] = 100,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Processes to spread the runs over.")] = 1,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Break the protocol on purpose; all must be caught.")
    ] = False,
    mutant: Annotated[str | None, typer.Option(help="Only this mutant.")] = None,
    reconfigure: Annotated[
        bool, typer.Option("--reconfigure", help="Replicas come and go, and disks are lost, in every run.")
    ] = False,
    trace: Annotated[bool, typer.Option("--trace", help="With --seed: print the conversation.")] = False,
    json: Json = False,
) -> None:
    """Run a protocol in the simulator, under faults, with every checker on.

    Exit code 1 if a property was violated, or with --mutants if a mutant was not caught.

    Examples, for a protocol P: `ordercast sim P --seeds 2000 --jobs 2` · `ordercast sim P --seed 7 --trace` ·
    `ordercast sim P --reconfigure --seeds 2000` · `ordercast sim P --mutants`
    """
    if protocol not in names():
        raise typer.BadParameter(f"no protocol is called {protocol!r}: there are {', '.join(names())}")
    if trace and (seed is None or json):
        raise typer.BadParameter("--trace prints the conversation of one run: give --seed, and not --json")
    if (mutants or mutant is not None) and (seed is not None or trace):
        raise typer.BadParameter("mutants choose their own seeds: leave --seed and --trace out")
    if (mutants or mutant is not None) and reconfigure:
        raise typer.BadParameter("mutants choose their own runs: leave --reconfigure out")
    trial = trial_of(protocol)
    if reconfigure and trial.counted_reconfiguring is None:
        raise typer.BadParameter(f"members come and go in every run of {protocol}: leave --reconfigure out")
    if mutants or mutant is not None:
        _mutants(protocol, mutant, jobs, json)
        return
    if trace and seed is not None:
        _trace(protocol, seed, reconfigure)
        return
    chosen = range(seed, seed + 1) if seed is not None else range(first_seed, first_seed + seeds)
    campaign = _campaign(protocol, chosen, jobs, reconfigure)
    summary = {
        "protocol": protocol,
        "runs": campaign.runs,
        "violations": len(campaign.violations),
        "delivered": campaign.delivered,
        "messages": campaign.messages,
        "messages_per_second": round(campaign.messages_per_second),
        "digest": campaign.digest,
    }
    counted = {**trial.counted, **(trial.counted_reconfiguring or {} if reconfigure else {})}
    summary |= {name: campaign.strikes.get(kind, 0) for name, kind in counted.items()}
    for result in campaign.violations:
        explain(result, protocol, reconfigure)
    if json:
        print_json(summary)
    else:
        _table(summary, campaign)
    raise typer.Exit(1 if campaign.violations else 0)


def _campaign(name: str, seeds: range, jobs: int, reconfigure: bool) -> Campaign:
    with progress_bar() as bar:
        task = bar.add_task(name, total=len(seeds), note="")

        def show(campaign: Campaign) -> None:
            bar.update(task, completed=campaign.runs, note=f"{len(campaign.violations)} violations")

        return run_many(seeds, jobs, show, protocol=name, reconfigure=reconfigure)


def explain(result: RunResult, protocol: str, reconfigure: bool = False) -> None:
    """The seed, the property, the explanation, and the command that replays it."""
    violation = result.violation
    assert violation is not None
    err.print(f"[bold red]seed {result.seed}[/]: {violation.property} violated", highlight=False)
    err.print(f"  {violation.explanation}", markup=False, highlight=False)
    option = " --reconfigure" if reconfigure else ""
    replay = f"ordercast sim {protocol}{option} --seed {result.seed} --trace"
    err.print(f"  replay: {replay}", markup=False, highlight=False)


def _trace(protocol: str, seed: int, reconfigure: bool) -> None:
    result = run_one(seed, protocol=protocol, reconfigure=reconfigure, tracing=True)
    for line in around(result):
        out.print(line, markup=False, highlight=False, soft_wrap=True)
    if result.violation is not None:
        explain(result, protocol, reconfigure)
        raise typer.Exit(1)
    out.print(f"seed {seed}: no violation, {result.delivered} deliveries, digest {result.digest}")


def _table(summary: dict[str, Any], campaign: Campaign) -> None:
    for key, value in summary.items():
        out.print(f"{key:>20}  {value}", highlight=False)
    strikes = ", ".join(f"{count} {kind}" for kind, count in sorted(campaign.strikes.items()))
    out.print(f"{'faults':>20}  {strikes}", highlight=False, soft_wrap=True)


def _mutants(protocol: str, only: str | None, jobs: int, json: bool) -> None:
    with progress_bar() as bar:
        task = bar.add_task("mutants", total=None, note="")

        def show(done: int, total: int, last: Catch) -> None:
            bar.update(task, completed=done, total=total, note=last.mutant)

        catches = catch_all(only, jobs, show, protocol)
    if not catches:
        raise typer.BadParameter(f"no mutant is called {only!r}")
    rows = [{"mutant": c.mutant, "caught": c.caught, "seed": c.seed, "property": c.property} for c in catches]
    if json:
        print_json(rows)
    else:
        for row in rows:
            mark = "caught" if row["caught"] else "MISSED"
            where = f"schedule {row['seed']}" if isinstance(row["seed"], str) else f"seed {row['seed']}"
            out.print(
                f"{mark}  {row['mutant']:<48} {row['property'] or '':<14} {where}", highlight=False, soft_wrap=True
            )
    raise typer.Exit(0 if all(c.caught for c in catches) else 1)
