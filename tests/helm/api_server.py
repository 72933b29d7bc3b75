"""As much of Kubernetes' API as Helm asks for when a chart looks something up: kinds, and one object."""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

HOST = "127.0.0.1"
VERSION = {"groupVersion": "apps/v1", "version": "v1"}
KINDS: dict[str, dict[str, Any]] = {
    "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
    "/apis": {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [{"name": "apps", "versions": [VERSION], "preferredVersion": VERSION}],
    },
    "/apis/apps/v1": {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "apps/v1",
        "resources": [
            {
                "name": "statefulsets",
                "singularName": "",
                "namespaced": True,
                "kind": "StatefulSet",
                "verbs": ["get"],
            }
        ],
    },
}
NOT_FOUND = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}


@contextlib.contextmanager
def with_statefulset(name: str, namespace: str, replicas: int, folder: Path) -> Iterator[Path]:
    """A configuration for a cluster in which there is this one, and nothing else."""
    there = {
        "kind": "StatefulSet",
        "apiVersion": "apps/v1",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas},
    }
    objects = {**KINDS, f"/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}": there}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = objects.get(self.path.partition("?")[0])
            body = json.dumps(found or NOT_FOUND).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((HOST, 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        path = folder / "kubeconfig"
        path.write_text(yaml.safe_dump(_configuration(f"http://{HOST}:{server.server_port}")))
        yield path
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _configuration(address: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": {"server": address}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "users": [{"name": "me", "user": {}}],
        "current-context": "here",
    }
