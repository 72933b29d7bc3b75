"""Asking Kubernetes' API server, as kubectl would: which cluster and namespace, and what there is of Ordercast."""

import importlib.util
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ordercast.cli.exit_codes import ExitCode

#: An API server that is there answers in less.
CONNECT_S_MAX = 3.0
ANSWER_S_MAX = 5.0
EVENTS_MAX = 500
TEXT_MAX = 300
NAMESPACE_DEFAULT = "default"
#: Of every object of the chart.
SELECTOR = "app.kubernetes.io/name=ordercast"

Object = dict[str, Any]

#: By which class and method of the client each kind is listed.
_LISTS = {
    "pods": ("CoreV1Api", "list_namespaced_pod"),
    "statefulsets": ("AppsV1Api", "list_namespaced_stateful_set"),
    "deployments": ("AppsV1Api", "list_namespaced_deployment"),
    "services": ("CoreV1Api", "list_namespaced_service"),
    "persistentvolumeclaims": ("CoreV1Api", "list_namespaced_persistent_volume_claim"),
    "jobs": ("BatchV1Api", "list_namespaced_job"),
    "poddisruptionbudgets": ("PolicyV1Api", "list_namespaced_pod_disruption_budget"),
    "events": ("CoreV1Api", "list_namespaced_event"),
}


class KubeError(Exception):
    """What is said to people, and the exit code that it means."""

    def __init__(self, code: ExitCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class ApiPlace:
    """A namespace, and how its API server is reached (`kubernetes.client.Configuration`)."""

    namespace: str
    configuration: Any


@dataclass(slots=True)
class Objects:
    """The objects of a release, by kind, as the API server writes them."""

    found: dict[str, list[Object]] = field(default_factory=dict)
    #: Kinds that we may not list.
    forbidden: list[str] = field(default_factory=list)

    def of(self, kind: str) -> list[Object]:
        return self.found.get(kind, [])


# ------------------------------------------------------------------------------------------------------ where


def find_place(kubeconfig: Path | None, context: str | None, namespace: str | None) -> ApiPlace:
    """As kubectl decides: what is given, else the current context, else the pod that this runs in."""
    if importlib.util.find_spec("kubernetes") is None:
        raise KubeError(ExitCode.USAGE, "this needs the package kubernetes: pip install 'ordercast[cli,k8s]'")
    from kubernetes.config import ConfigException

    try:
        if kubeconfig is None and context is None and _is_pod_without_kubeconfig():
            found = _by_account(namespace)
        else:
            found = _by_kubeconfig(str(kubeconfig) if kubeconfig else None, context, namespace)
    # A file that is no YAML, or has a text where a list belongs, fails in many ways.
    except (ConfigException, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise KubeError(ExitCode.USAGE, f"no way to Kubernetes: {one_line(error)}") from error
    # A first answer that does not come is the answer; and asking again takes the time that people wait.
    found.configuration.retries = False
    return found


def _is_pod_without_kubeconfig() -> bool:
    from kubernetes.config.kube_config import ENV_KUBECONFIG_PATH_SEPARATOR, KUBE_CONFIG_DEFAULT_LOCATION

    files = KUBE_CONFIG_DEFAULT_LOCATION.split(ENV_KUBECONFIG_PATH_SEPARATOR)
    there = any(Path(file).expanduser().exists() for file in files if file)
    return "KUBERNETES_SERVICE_HOST" in os.environ and not there


def _by_account(namespace: str | None) -> ApiPlace:
    """Use the service account of the pod that this runs in."""
    from ordercast.runtime.kubernetes.endpoint_slices import ACCOUNT, in_cluster

    own = (ACCOUNT / "namespace").read_text().strip() or NAMESPACE_DEFAULT
    return ApiPlace(namespace or own, in_cluster())


def _by_kubeconfig(file: str | None, context: str | None, namespace: str | None) -> ApiPlace:
    from kubernetes.client import Configuration
    from kubernetes.config import ConfigException, list_kube_config_contexts, load_kube_config

    contexts, current = list_kube_config_contexts(file)
    chosen = current if context is None else next((one for one in contexts if one["name"] == context), None)
    if chosen is None:
        raise ConfigException(f"there is no context {context!r}; there are {_names(contexts)}")
    configuration = Configuration()
    # Tokens that it had to fetch are not written back: this command changes nothing.
    load_kube_config(file, context, configuration, persist_config=False)
    return ApiPlace(namespace or chosen["context"].get("namespace") or NAMESPACE_DEFAULT, configuration)


def _names(contexts: list[Any]) -> str:
    return ", ".join(str(one["name"]) for one in contexts) or "none"


# ----------------------------------------------------------------------------------------------------- listing


def list_objects(place: ApiPlace, timeout_s: float) -> Objects:
    """All that is Ordercast's in the namespace, and warnings. Of some kinds one can do without."""
    from kubernetes.client import ApiClient

    found = Objects()
    with ApiClient(place.configuration) as client:
        for kind in _LISTS:
            items = _list(client, place, kind, timeout_s)
            if items is None:
                found.forbidden.append(kind)
            else:
                found.found[kind] = items
    return found


def _list(client: Any, place: ApiPlace, kind: str, timeout_s: float) -> list[Object] | None:
    """None of what we may not see, unless it is pods: without them there is nothing to say."""
    import kubernetes.client

    api, method = _LISTS[kind]
    ask = getattr(getattr(kubernetes.client, api)(client), method)
    chosen = (
        {"field_selector": "type=Warning", "limit": EVENTS_MAX}
        if kind == "events"
        else {"label_selector": SELECTOR}
    )
    patience = (min(CONNECT_S_MAX, timeout_s), min(ANSWER_S_MAX, timeout_s))
    with api_errors(place):
        try:
            response = ask(place.namespace, **chosen, _preload_content=False, _request_timeout=patience)
        except kubernetes.client.ApiException as error:
            if error.status == 403 and kind != "pods":
                return None
            raise
        return list(json.loads(response.data)["items"])


@contextmanager
def api_errors(place: ApiPlace) -> Iterator[None]:
    """What the client, its transport and JSON raise becomes one kind of error, in one line."""
    from kubernetes.client import ApiException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except ApiException as error:
        raise _refusal(place, error.status or 0, error.body or str(error.reason)) from error
    except (HTTPError, OSError) as error:
        text = f"the API server at {place.configuration.host} does not answer: {one_line(error)}"
        raise KubeError(ExitCode.UNAVAILABLE, text) from error
    except (ValueError, KeyError, TypeError) as error:
        text = f"what is at {place.configuration.host} answers, and not as Kubernetes does"
        raise KubeError(ExitCode.UNAVAILABLE, text) from error


def _refusal(place: ApiPlace, status: int, body: str | bytes) -> KubeError:
    """Make an error with the reason that the API server gives, if it gives one."""
    try:
        why = str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        why = one_line(body.decode(errors="replace") if isinstance(body, bytes) else body)
    code = ExitCode.REFUSED if status in (401, 403) else ExitCode.UNAVAILABLE
    number = f" ({status})" if status else ""
    return KubeError(code, f"the API server at {place.configuration.host} says no{number}: {why}")


def one_line(said: object) -> str:
    """Errors of libraries carry headers and bodies, and events the story of a volume."""
    return " ".join(str(said).split())[:TEXT_MAX] or type(said).__name__
