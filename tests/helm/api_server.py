"""A local API server of Kubernetes, with what a test puts there, and a configuration that leads to it.

As it is, it has as much as Helm asks for when a chart looks something up: kinds, and one object.
"""

import contextlib
import json
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

HOST = "127.0.0.1"
VERSION = {"groupVersion": "apps/v1", "version": "v1"}


def _kinds(version: str, **kinds: str) -> dict[str, Any]:
    """What there is, by the names of lists."""
    resources = [
        {"name": name, "singularName": "", "namespaced": True, "kind": kind, "verbs": ["get", "list"]}
        for name, kind in kinds.items()
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}


KINDS: dict[str, dict[str, Any]] = {
    "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": _kinds("v1", secrets="Secret", serviceaccounts="ServiceAccount"),
    "/apis": {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [{"name": "apps", "versions": [VERSION], "preferredVersion": VERSION}],
    },
    "/apis/apps/v1": _kinds("apps/v1", statefulsets="StatefulSet"),
}
NOT_FOUND = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}


def with_statefulset(there: dict[str, Any], namespace: str, folder: Path) -> AbstractContextManager[Path]:
    """A configuration for a cluster in which there is this one, and nothing else."""
    listed = {"kind": "StatefulSetList", "apiVersion": "apps/v1", "metadata": {}, "items": [there]}
    return with_objects({f"/apis/apps/v1/namespaces/{namespace}/statefulsets": listed}, folder)


@contextlib.contextmanager
def with_objects(there: dict[str, dict[str, Any]], folder: Path) -> Iterator[Path]:
    """A configuration for a cluster that has these, by path, and nothing else."""
    objects = {**KINDS, **there}

    class Found(Handler):
        def do_GET(self) -> None:
            found = objects.get(self.path.partition("?")[0])
            self.answer(200 if found else 404, found or NOT_FOUND)

    with serving(Found, folder) as path:
        yield path


class Handler(BaseHTTPRequestHandler):
    def answer(self, code: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serving(handler: type[Handler], folder: Path, namespace: str | None = None) -> Iterator[Path]:
    """A configuration whose context has the namespace, if one is given."""
    server = ThreadingHTTPServer((HOST, 0), handler)
    # Whoever is still connected, or kept waiting, does not keep a test from ending.
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield kubeconfig(f"http://{HOST}:{server.server_port}", folder, namespace)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def kubeconfig(address: str, folder: Path, namespace: str | None = None) -> Path:
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(_configuration(address, namespace)))
    return path


def _configuration(address: str, namespace: str | None) -> dict[str, Any]:
    context = {"cluster": "here", "user": "me"} | ({"namespace": namespace} if namespace else {})
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": {"server": address}}],
        "contexts": [{"name": "here", "context": context}],
        "users": [{"name": "me", "user": {}}],
        "current-context": "here",
    }
