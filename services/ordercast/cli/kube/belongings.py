"""What belongs to an installation besides pods: volume claims, Jobs, disruption budgets. Pure."""

from dataclasses import dataclass, field
from typing import Any

from ordercast.cli.kube.api import Object, Objects
from ordercast.cli.kube.release import latest_warning, name_of


@dataclass(slots=True)
class Belongings:
    """As JSON documents have them; people read the troubles and notes."""

    claims: list[dict[str, Any]] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    budgets: list[dict[str, Any]] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def judge_belongings(objects: Objects) -> Belongings:
    found = Belongings()
    for claim in objects.of("persistentvolumeclaims"):
        _judge_claim(found, claim, latest_warning(objects, "PersistentVolumeClaim", claim))
    for job in objects.of("jobs"):
        _judge_job(found, job)
    for budget in objects.of("poddisruptionbudgets"):
        _judge_budget(found, budget)
    return found


def _judge_claim(found: Belongings, claim: Object, warning: str) -> None:
    phase = str((claim.get("status") or {}).get("phase", "Pending"))
    is_bound = phase == "Bound"
    why = "" if is_bound else warning
    found.claims.append({"name": name_of(claim), "phase": phase, "why": why or None})
    if not is_bound:
        found.troubles.append(f"volume claim {name_of(claim)} is {phase}" + (f": {why}" if why else ""))


def _judge_job(found: Belongings, job: Object) -> None:
    name = name_of(job)
    conditions = {
        one["type"]: one
        for one in (job.get("status") or {}).get("conditions") or []
        if one.get("status") == "True"
    }
    failure = conditions.get("Failed")
    state = "failed" if failure else "done" if "Complete" in conditions else "under way"
    why = str(failure.get("message") or failure.get("reason") or "") if failure else ""
    found.jobs.append({"name": name, "state": state, "why": why or None})
    if failure:
        text = f"Job {name} failed" + (f": {why}" if why else "")
        found.troubles.append(f"{text} (`kubectl logs job/{name}` shows what it said)")
    elif state == "under way":
        found.notes.append(f"Job {name} is under way")


def _judge_budget(found: Belongings, budget: Object) -> None:
    """A machine cannot be emptied then, which is right while a pod is away."""
    status = budget.get("status") or {}
    allowed = int(status.get("disruptionsAllowed", 0))
    found.budgets.append({"name": name_of(budget), "disruptions_allowed": allowed})
    if not allowed and status.get("expectedPods"):
        found.notes.append(f"no pod of {name_of(budget)} may be taken away at present (PodDisruptionBudget)")
