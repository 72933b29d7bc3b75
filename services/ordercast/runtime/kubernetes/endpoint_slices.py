"""Follows the EndpointSlices of Kubernetes, in a thread, and keeps a table of where pods are.

Nobody ever waits for Kubernetes. When its API server does not answer, or says what cannot be understood, or a
watch ends before its time, the table is emptied at once, so that names are left to DNS; then it is tried again,
with growing pauses. Every watch ends soon, and is followed by a list: what was missed is not missed for long.
"""

import importlib.util
import json
import random
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from ordercast.runtime.kubernetes.pod_addresses import PodAddresses
from ordercast.runtime.process.settings import KubernetesSettings

log = structlog.get_logger("kubernetes")

#: Where a pod finds out who it is.
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
CONNECT_S_MAX = 3.0
LIST_S_MAX = 5.0
#: The API server ends a watch then. It is silent while nothing changes, so the connection itself is looked after.
WATCH_S = 30
LATE_S_MAX = 5.0
PAUSE_S = 0.5
PAUSE_S_MAX = 30.0
#: After a round that was at least so long, pauses are short again.
LASTING_S = 10.0
#: A connection whose other side is gone without a word is noticed after some ten seconds.
KEEPALIVE = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 4), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
]


class DiscoveryError(Exception):
    """Pods are to be found through Kubernetes, and that is not installed."""


class Unclear(Exception):  # noqa: N818 (it names what happened, not a kind of error)
    """The API server answers, and not with what was asked for."""


def in_cluster() -> Any:
    """How the API server is reached from a pod: read anew each time, for tokens are replaced."""
    from kubernetes.client import Configuration
    from kubernetes.config.incluster_config import InClusterConfigLoader

    configuration = Configuration()
    files = (str(ACCOUNT / "token"), str(ACCOUNT / "ca.crt"))
    InClusterConfigLoader(*files, try_refresh_token=False).load_and_set(configuration)
    return configuration


class EndpointSlices:
    def __init__(
        self, settings: KubernetesSettings, addresses: PodAddresses, configure: Callable[[], Any] = in_cluster
    ) -> None:
        """DiscoveryError if the package `kubernetes` is not there: it is loaded only where it is wanted."""
        if importlib.util.find_spec("kubernetes") is None:
            raise DiscoveryError("kubernetes.selector needs the package kubernetes (ordercast[k8s])")
        self._settings = settings
        self._addresses = addresses
        self._configure = configure
        self._stopping = threading.Event()
        self._watch: Any = None
        self._is_known: bool | None = None
        self._thread = threading.Thread(target=self._run, name="endpoint-slices", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Without waiting: the thread may be in the middle of a call."""
        self._stopping.set()
        watch = self._watch
        if watch is not None:
            watch.stop()

    def _run(self) -> None:
        pause_s = PAUSE_S
        while not self._stopping.is_set():
            begun = time.monotonic()
            try:
                self._follow()
                pause_s = PAUSE_S
                continue
            except Exception as error:  # Whatever it is: this thread must not end, and nothing else may notice.
                self._addresses.clear()
                self._tell(False, why=_reason(error))
            if time.monotonic() - begun >= LASTING_S:
                pause_s = PAUSE_S
            # Not all processes of a cluster at once.
            self._stopping.wait(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, PAUSE_S_MAX)

    def _follow(self) -> None:
        """One list, and one watch from there."""
        from kubernetes.client import ApiClient, DiscoveryV1Api

        configuration = self._configure()
        configuration.retries = False
        configuration.socket_options = KEEPALIVE
        namespace = self._settings.namespace or (ACCOUNT / "namespace").read_text().strip()
        with ApiClient(configuration) as client:
            ask = DiscoveryV1Api(client).list_namespaced_endpoint_slice
            version = self._list(ask, namespace)
            self._tell(True)
            self._follow_changes(ask, namespace, version)

    def _list(self, ask: Any, namespace: str) -> str:
        response = ask(
            namespace,
            label_selector=self._settings.selector,
            _preload_content=False,
            _request_timeout=(CONNECT_S_MAX, LIST_S_MAX),
        )
        if response.status != 200:
            raise Unclear(f"the list was answered with {response.status} {response.reason}")
        found = json.loads(response.data)
        self._addresses.replace(found["items"])
        return str(found["metadata"]["resourceVersion"])

    def _follow_changes(self, ask: Any, namespace: str, version: str) -> None:
        from kubernetes.watch import Watch

        end = time.monotonic() + WATCH_S
        watch = self._watch = Watch()
        events = watch.stream(
            ask,
            namespace,
            label_selector=self._settings.selector,
            resource_version=version,
            timeout_seconds=WATCH_S,
            _request_timeout=(CONNECT_S_MAX, WATCH_S + LATE_S_MAX),
        )
        for event in events:
            if self._stopping.is_set():
                return
            match event:
                case {"type": "ADDED" | "MODIFIED", "raw_object": endpoint_slice}:
                    self._addresses.put(endpoint_slice)
                case {"type": "DELETED", "raw_object": endpoint_slice}:
                    self._addresses.remove(endpoint_slice)
                case _:
                    raise Unclear(f"the watch said {str(event)[:100]}")
            if time.monotonic() > end + LATE_S_MAX:
                return  # An API server that does not end it. The list that follows is what counts.
        if time.monotonic() < end - LATE_S_MAX and not self._stopping.is_set():
            raise Unclear("the watch ended before its time")

    def _tell(self, is_known: bool, why: str = "") -> None:
        """Only when it changes."""
        if is_known == self._is_known or self._stopping.is_set():
            return
        self._is_known = is_known
        if is_known:
            log.info("pods are found through Kubernetes", pods=self._addresses.count)
        else:
            log.warning("pods are found by DNS alone: Kubernetes does not say where they are", why=why)


def _reason(error: Exception) -> str:
    """In one line: Kubernetes' own errors carry headers and bodies."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
