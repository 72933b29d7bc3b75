"""Pods, and what makes them: how they are, and what is not as it should be. Pure, but for what is shown."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ordercast.cli.kube.api import Object, Objects, one_line
from ordercast.cli.kube.release import COMPONENT, label_of, latest_warning, name_of
from ordercast.cli.output import NOTHING

#: Nobody has to act while a container waits for these.
_ON_THE_WAY = ("ContainerCreating", "PodInitializing")


@dataclass(frozen=True, slots=True)
class Pod:
    name: str
    component: str
    is_ready: bool
    #: As Kubernetes says it: Pending, Running, Succeeded, Failed, Unknown.
    phase: str
    #: In one word, as kubectl does: CrashLoopBackOff, ImagePullBackOff, Terminating, or else the phase.
    state: str
    #: Why it is not ready, if Kubernetes says so.
    why: str
    restarts: int
    #: How a container of it ended the last time; empty if none did.
    last_end: str
    age_s: float
    node: str
    #: It is there to end: a Job's, or a test's.
    is_to_end: bool


@dataclass(frozen=True, slots=True)
class Component:
    name: str
    kind: str
    workload: str
    wanted: int
    ready: int
    #: Pods that are as the workload says now; fewer while they are being replaced.
    updated: int
    why: str


@dataclass(slots=True)
class Workloads:
    components: list[Component] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    #: What is worth knowing, and no trouble.
    notes: list[str] = field(default_factory=list)


def judge_workloads(objects: Objects, now: datetime) -> Workloads:
    pods = [_pod(each, latest_warning(objects, "Pod", each), now) for each in objects.of("pods")]
    # What has ended as it should is told by its Job.
    shown = [pod for pod in pods if not (pod.is_to_end and pod.phase in ("Succeeded", "Failed"))]
    found = Workloads(pods=sorted(shown, key=lambda pod: (pod.component, pod.name)))
    for kind, key in (("StatefulSet", "statefulsets"), ("Deployment", "deployments")):
        for each in objects.of(key):
            warning = latest_warning(objects, kind, each)
            found.components.append(_component(kind, each, found.pods, warning))
    found.components.sort(key=lambda component: component.name)
    for component in found.components:
        _judge_component(found, component)
    for pod in found.pods:
        _judge_pod(found, pod)
    return found


def _judge_component(found: Workloads, component: Component) -> None:
    if component.ready < component.wanted:
        text = f"{component.name}: {component.ready} of {component.wanted} pods are ready"
        found.troubles.append(f"{text}: {component.why}" if component.why else text)
    if component.updated < component.wanted:
        text = f"{component.name}: pods are being replaced, {component.updated} of {component.wanted} are new"
        found.notes.append(text)


def _judge_pod(found: Workloads, pod: Pod) -> None:
    """One that leaves was asked to. One that failed is replaced, or else its component says that it is missing."""
    if pod.is_ready or pod.state == "Terminating":
        return
    # That it runs is no answer.
    state = "not ready" if pod.state == "Running" else pod.state
    text = f"pod {pod.name}: {state}" + (f", {pod.why}" if pod.why else "")
    if pod.phase == "Failed":
        found.notes.append(text)
    elif not pod.is_to_end or (pod.phase == "Pending" and pod.state not in _ON_THE_WAY):
        # Whoever crashes says why by the code that it ended with.
        ended = f" (ended with {pod.last_end})" if pod.last_end else ""
        found.troubles.append(text + ended)


# ------------------------------------------------------------------------------------------------------ reading


def _component(kind: str, workload: Object, pods: list[Pod], warning: str) -> Component:
    status = workload.get("status") or {}
    name = label_of(workload, COMPONENT)
    wanted = int(workload["spec"].get("replicas", 1))
    failures = [
        str(condition.get("message", ""))
        for condition in status.get("conditions") or []
        if condition["type"] == "ReplicaFailure" and condition["status"] == "True"
    ]
    there = [pod for pod in pods if pod.component == name]
    ready = sum(pod.is_ready and pod.state != "Terminating" for pod in there)
    is_revised = kind == "StatefulSet" and status.get("currentRevision") != status.get("updateRevision")
    is_behind = kind == "Deployment" or is_revised
    updated = int(status.get("updatedReplicas", 0)) if is_behind and there else wanted
    # Pods that are there say themselves what is wrong with them.
    why = (failures[0] if failures else warning) if len(there) < wanted else ""
    return Component(name, kind, name_of(workload), wanted, ready, min(updated, wanted), why)


def _pod(pod: Object, warning: str, now: datetime) -> Pod:
    spec, status = pod["spec"], pod.get("status") or {}
    conditions = {one["type"]: one for one in status.get("conditions") or []}
    containers = [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
    ]
    is_ready = conditions.get("Ready", {}).get("status") == "True"
    state, why = _state(pod, conditions, containers)
    return Pod(
        name=name_of(pod),
        component=label_of(pod, COMPONENT),
        is_ready=is_ready,
        phase=str(status.get("phase", "Unknown")),
        state=state,
        # A volume that cannot be mounted is only in the events. Old warnings of a pod that is well are history.
        why="" if is_ready or not (why or warning) else one_line(why or warning),
        restarts=sum(int(container.get("restartCount", 0)) for container in containers),
        last_end=_last_end(containers),
        age_s=age_s(pod["metadata"].get("creationTimestamp"), now),
        node=str(spec.get("nodeName") or ""),
        is_to_end=spec.get("restartPolicy") in ("Never", "OnFailure"),
    )


def _state(pod: Object, conditions: dict[str, Any], containers: list[Any]) -> tuple[str, str]:
    """In a word, and why."""
    status = pod.get("status") or {}
    phase = str(status.get("phase", "Unknown"))
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating", ""
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return phase, str(scheduled.get("message") or scheduled.get("reason") or "")
    if phase == "Failed":
        return str(status.get("reason") or phase), str(status.get("message") or "")
    for container in containers:
        waiting = (container.get("state") or {}).get("waiting")
        if waiting:
            return str(waiting.get("reason") or phase), str(waiting.get("message") or "")
    return phase, ""


def _last_end(containers: list[Any]) -> str:
    """Describe the end of the container that ended last, if it did not end well."""
    ends = [
        state["terminated"]
        for container in containers
        for state in (container.get("state") or {}, container.get("lastState") or {})
        if "terminated" in state and state["terminated"].get("exitCode") != 0
    ]
    if not ends:
        return ""
    end = max(ends, key=lambda one: one.get("finishedAt") or "")
    reason = str(end.get("reason") or "Error")
    return f"{reason}, exit code {end['exitCode']}" if "exitCode" in end else reason


# -------------------------------------------------------------------------------------------------------- time


def age_s(timestamp: str | None, now: datetime) -> float:
    """Clocks differ: nothing is younger than now."""
    if not timestamp:
        return 0.0
    then = datetime.fromisoformat(timestamp)
    return max(0.0, (now - (then if then.tzinfo else then.replace(tzinfo=UTC))).total_seconds())


def age_text(seconds: float) -> str:
    """
    >>> age_text(42), age_text(150), age_text(7300), age_text(200_000)
    ('42s', '2m', '2h', '2d')
    """
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return f"{int(seconds)}s"


# ----------------------------------------------------------------------------------------------------- showing


def component_row(component: Component) -> dict[str, str]:
    return {
        "component": component.name,
        "kind": component.kind,
        "ready": f"{component.ready}/{component.wanted}",
    }


def pod_row(pod: Pod) -> dict[str, str]:
    restarts = f"{pod.restarts} ({pod.last_end})" if pod.restarts and pod.last_end else str(pod.restarts)
    return {
        "pod": pod.name,
        "ready": "yes" if pod.is_ready else "no",
        "state": pod.state,
        "restarts": restarts,
        "age": age_text(pod.age_s),
        "machine": pod.node or NOTHING,
    }


def component_document(component: Component) -> dict[str, Any]:
    return {
        "name": component.name,
        "kind": component.kind,
        "workload": component.workload,
        "wanted": component.wanted,
        "ready": component.ready,
        "updated": component.updated,
    }


def pod_document(pod: Pod) -> dict[str, Any]:
    return {
        "name": pod.name,
        "component": pod.component,
        "ready": pod.is_ready,
        "phase": pod.phase,
        "state": pod.state,
        "why": pod.why or None,
        "restarts": pod.restarts,
        "last_end": pod.last_end or None,
        "age_s": int(pod.age_s),
        "node": pod.node or None,
    }
