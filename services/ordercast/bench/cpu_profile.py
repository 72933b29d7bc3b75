"""Where the servers' processor time goes, by the stage of an envelope's way."""

import json
from pathlib import Path
from typing import Any

from ordercast.bench import own
from ordercast.bench.client import in_process_of_its_own, measure
from ordercast.bench.plan import BenchPlan, pattern_named
from ordercast.bench.systems import OWN
from ordercast.bench.trial import Say, empty_directory

#: Which stage of an envelope's way a step of a machine belongs to.
STAGES = {
    "PublishRequest": "gateway",
    "Disseminate": "dissemination",
    "RecTs": "timestamps",
    "Propose": "consensus",
    "Prepare": "consensus",
    "Promise": "consensus",
    "Accept": "consensus",
    "Accepted": "consensus",
    "Rejected": "consensus",
    "Close": "consensus",
    "Closed": "consensus",
    "Decided": "delivery",
    "Decide": "delivery",
    "Gossip": "predecessors",
    "GossipAsk": "predecessors",
    "Submit": "casting",
    "Cast": "casting",
    "PartCast": "parts",
    "PartsCast": "parts",
    "SetsOrder": "order",
    "Stability": "stability",
    "EpochFlush": "epochs",
    "EnvelopeDecided": "gateway",
    "EnvelopeDelivered": "gateway",
    "EnvelopeDurable": "gateway",
}


def run(plan: BenchPlan, pattern_name: str, in_flight: int, say: Say) -> list[dict[str, Any]]:
    """In a run of its own, that is slowed down by the looking."""
    pattern = pattern_named(pattern_name, plan)
    say(f"{OWN} profile of {pattern_name}, {in_flight:,} in flight")
    with empty_directory(OWN) as directory:
        with own.running_cluster(directory, plan, pattern, ["--profile"]) as cluster:
            in_process_of_its_own(measure, OWN, own.servers_of(cluster), plan, pattern, in_flight)
        # Each process logs its profile when it stops.
        return by_stage([profile_of(member.log) for member in cluster.members.values()])


def profile_of(log: Path) -> dict[str, Any]:
    """The line that a process with --profile logs when it stops."""
    for line in reversed(log.read_text().splitlines()):
        if '"event": "profile"' in line:
            document: dict[str, Any] = json.loads(line)
            return document
    return {}


def by_stage(profiles: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Seconds of all processes together; what no machine's step accounts for is the runtime's."""
    stages: dict[str, tuple[int, float]] = {}
    total = sum(profile.get("cpu_s", 0.0) for profile in profiles)
    for profile in profiles:
        for kind, (count, spent) in profile.get("spent", {}).items():
            stage = STAGES.get(kind.rpartition(" ")[2], "other")
            before = stages.get(stage, (0, 0.0))
            stages[stage] = (before[0] + count, before[1] + spent)
    stages["runtime"] = (0, total - sum(spent for _, spent in stages.values()))
    return [
        {
            "stage": stage,
            "events": count,
            "cpu_s": round(spent, 3),
            "share": round(spent / total, 3) if total else 0,
        }
        for stage, (count, spent) in sorted(stages.items(), key=lambda item: -item[1][1])
    ]
