"""A namespace of Kubernetes with an installation in it, behind a local API server: well until a test meddles.

What the chart renders is there as Kubernetes would have it, with pods that are made of its templates. Ports of
pods lead to servers of this machine.
"""

import contextlib
import copy
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.helm.api_server import HOST, NOT_FOUND, Handler, serving
from tests.helm.chart import NAMESPACE, RELEASE, Object, objects, of_kind
from tests.helm.port_forward import forward

INSTANCE = "app.kubernetes.io/instance"
CREATED = "2026-01-01T00:00:00Z"
KINDS = {
    "pods": "Pod",
    "statefulsets": "StatefulSet",
    "deployments": "Deployment",
    "services": "Service",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "jobs": "Job",
    "poddisruptionbudgets": "PodDisruptionBudget",
    "events": "Event",
}


@dataclass
class Namespace:
    #: By kind.
    there: dict[str, list[Object]]
    #: (pod, port) -> where that is in truth.
    ports: dict[tuple[str, int], tuple[str, int]] = field(default_factory=dict)
    #: Kinds that nobody may list.
    forbidden: list[str] = field(default_factory=list)
    #: What was asked for: paths; and ports of pods.
    asked: list[str] = field(default_factory=list)
    forwarded: list[tuple[str, int]] = field(default_factory=list)
    #: Whoever wants a port is kept waiting.
    is_silent: threading.Event = field(default_factory=threading.Event)

    def pod(self, name: str) -> Object:
        (found,) = [pod for pod in self.there["Pod"] if pod["metadata"]["name"] == name]
        return found

    def warn(self, kind: str, name: str, message: str) -> None:
        about = {"kind": kind, "name": name}
        self.there["Event"].append({"involvedObject": about, "message": message, "lastTimestamp": CREATED})


def namespace_of(profile: str = "default", *settings: str, release: str = RELEASE) -> Namespace:
    found = copy.deepcopy(objects(profile, *settings))
    there = {kind: of_kind(found, kind) for kind in KINDS.values()}
    # A test's pod is there only when it is run.
    there["Pod"] = [pod for workload in of_kind(found, "StatefulSet", "Deployment") for pod in _pods(workload)]
    there["PersistentVolumeClaim"] += [
        _claim(workload, number) for workload in there["StatefulSet"] for number in range(_wanted(workload))
    ]
    for claim in there["PersistentVolumeClaim"]:
        claim["status"] = {"phase": "Bound"}
    for workload in of_kind(found, "StatefulSet", "Deployment"):
        workload["status"] = {"updatedReplicas": _wanted(workload)}
    for job in there["Job"]:
        job["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    for budget in there["PodDisruptionBudget"]:
        budget["status"] = {"disruptionsAllowed": 1, "expectedPods": 3}
    for each in (one for kind in there.values() for one in kind):
        each["metadata"]["labels"][INSTANCE] = release
    return Namespace(there)


def _wanted(workload: Object) -> int:
    return int(workload["spec"].get("replicas", 1))


def _pods(workload: Object) -> Iterator[Object]:
    template = workload["spec"]["template"]
    for number in range(_wanted(workload)):
        yield {
            "kind": "Pod",
            "metadata": {
                "name": f"{workload['metadata']['name']}-{number}",
                "labels": dict(template["metadata"]["labels"]),
                "creationTimestamp": CREATED,
            },
            "spec": copy.deepcopy(template["spec"]) | {"nodeName": f"machine-{number}"},
            "status": {
                "phase": "Running",
                "conditions": [
                    {"type": "PodScheduled", "status": "True"},
                    {"type": "Ready", "status": "True"},
                ],
                "containerStatuses": [{"name": "ordercast", "restartCount": 0, "state": {"running": {}}}],
            },
        }


def _claim(workload: Object, number: int) -> Object:
    """Kubernetes gives it the labels by which the workload finds its pods."""
    labels = dict(workload["spec"]["selector"]["matchLabels"])
    return {"metadata": {"name": f"data-{workload['metadata']['name']}-{number}", "labels": labels}}


# --- Serving


@contextlib.contextmanager
def api_server(namespace: Namespace, folder: Path) -> Iterator[Path]:
    """The path of a configuration that leads to it, in which the namespace is the context's."""

    class Asked(Handler):
        def do_GET(self) -> None:  # noqa: N802 (the server calls it so)
            url = urlsplit(self.path)
            query = parse_qs(url.query)
            namespace.asked.append(url.path)
            words = url.path.split("/")
            if words[-1] == "portforward":
                port = int(query["ports"][0])
                namespace.forwarded.append((words[-2], port))
                if namespace.is_silent.is_set():
                    self.rfile.read()
                    return
                forward(self, port, namespace.ports.get((words[-2], port)))
            elif words[-3:-1] != ["namespaces", NAMESPACE] or words[-1] not in KINDS:
                self.answer(404, NOT_FOUND)
            elif words[-1] in namespace.forbidden:
                message = f"{words[-1]} is forbidden: you cannot list it"
                self.answer(403, {"kind": "Status", "code": 403, "message": message})
            else:
                found = namespace.there[KINDS[words[-1]]]
                if words[-1] != "events":
                    found = [each for each in found if _is_chosen(each, query["labelSelector"][0])]
                self.answer(200, {"kind": "List", "items": found})

    with serving(Asked, folder, NAMESPACE) as kubeconfig:
        yield kubeconfig


def _is_chosen(each: Object, selector: str) -> bool:
    label, _, value = selector.partition("=")
    return bool(each["metadata"]["labels"].get(label) == value)


@contextlib.contextmanager
def pages(texts: dict[str, str]) -> Iterator[dict[str, tuple[str, int]]]:
    """A server for each pod, whose page of metrics has the text."""
    servers: list[tuple[ThreadingHTTPServer, Any]] = []
    try:
        for text in texts.values():
            server = ThreadingHTTPServer((HOST, 0), _page_handler(text.encode()))
            server.daemon_threads = True
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            servers.append((server, thread))
        yield {pod: (HOST, server.server_port) for pod, (server, _) in zip(texts, servers, strict=True)}
    finally:
        for server, thread in servers:
            server.shutdown()
            thread.join()
            server.server_close()


def _page_handler(text: bytes) -> type[BaseHTTPRequestHandler]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/metrics" else 404)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    return Page
