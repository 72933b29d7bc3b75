"""Which installation is meant, and what of it is in Kubernetes. Pure: objects are as the API server has them."""

from ordercast.cli.exit_codes import ExitCode
from ordercast.cli.kube.api import KubeError, Object, Objects, one_line

INSTANCE = "app.kubernetes.io/instance"
COMPONENT = "app.kubernetes.io/component"
CHART = "helm.sh/chart"

#: Those tell that something is installed; claims, for one, outlive it.
_TELLING = ("statefulsets", "deployments", "pods")


def name_of(each: Object) -> str:
    return str(each["metadata"]["name"])


def label_of(each: Object, label: str) -> str:
    return str((each["metadata"].get("labels") or {}).get(label, ""))


def releases_in(objects: Objects) -> list[str]:
    found = {label_of(each, INSTANCE) for kind in _TELLING for each in objects.of(kind)}
    return sorted(found - {""})


def choose_release(objects: Objects, wanted: str | None, namespace: str) -> str:
    """The one that is named, or the only one."""
    there = releases_in(objects)
    if wanted in there:
        return str(wanted)
    if not there:
        raise KubeError(
            ExitCode.NOT_FOUND,
            f"Ordercast is not installed in the namespace {namespace}: "
            f"`helm install ordercast helm/ordercast --namespace {namespace}` does it, --namespace names another",
        )
    if wanted is not None:
        text = f"there is no release {wanted} in the namespace {namespace}; there are {', '.join(there)}"
        raise KubeError(ExitCode.NOT_FOUND, text)
    if len(there) > 1:
        text = f"there are {len(there)} releases in the namespace {namespace}, --release names one: "
        raise KubeError(ExitCode.USAGE, text + ", ".join(there))
    return there[0]


def of_release(objects: Objects, release: str) -> Objects:
    """Events have no labels: they are found by the object that they are about."""
    found = {
        kind: each if kind == "events" else [one for one in each if label_of(one, INSTANCE) == release]
        for kind, each in objects.found.items()
    }
    return Objects(found, objects.forbidden)


def chart_of(objects: Objects) -> str | None:
    workloads = [*objects.of("statefulsets"), *objects.of("deployments")]
    return next((label_of(each, CHART) for each in workloads if label_of(each, CHART)), None)


def latest_warning(objects: Objects, kind: str, each: Object) -> str:
    """What Kubernetes last complained of about an object; empty if it did not."""
    # One that had the same name before has another uid.
    own = (kind, name_of(each), each["metadata"].get("uid"))
    about = [
        event
        for event in objects.of("events")
        if own == tuple(event["involvedObject"].get(key) for key in ("kind", "name", "uid"))
    ]
    if not about:
        return ""
    last = max(about, key=lambda event: event.get("lastTimestamp") or event.get("eventTime") or "")
    return one_line(last.get("message") or last.get("reason") or "")


# ------------------------------------------------------------------------------------------- what pods listen at


def port_of(pod: Object, name: str) -> int | None:
    """The number of the port with that name."""
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or []:
            if port.get("name") == name:
                return int(port["containerPort"])
    return None


def arguments_of(pod: Object) -> list[str]:
    return [str(word) for container in pod["spec"]["containers"] for word in container.get("args") or []]


def uses_tls(pod: Object) -> bool:
    """Towards clients."""
    return any(word.startswith("--tls.client-cert=") for word in arguments_of(pod))


def client_host(objects: Objects, namespace: str) -> str | None:
    """The host that clients in Kubernetes dial, which certificates name."""
    for service in objects.of("services"):
        ports = service["spec"].get("ports") or []
        if any(port.get("name") == "clients" for port in ports) and service["spec"].get("clusterIP") != "None":
            return f"{name_of(service)}.{namespace}.svc"
    return None


def short_lived_gateways(objects: Objects) -> list[str]:
    """Deployments whose pods are gateways: each of those is a node that never comes back."""
    return [
        name_of(each)
        for each in objects.of("deployments")
        if port_of({"spec": each["spec"]["template"]["spec"]}, "clients") is not None
    ]
