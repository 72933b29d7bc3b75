"""Looks at pods while something is done to them: every change that Kubernetes tells of is taken down."""

import threading
from collections import defaultdict
from types import TracebackType
from typing import Any, Self

from kubernetes import client, config, watch

from tests.k8s.pods import Pod

#: A watch has to begin anew now and then, anyway; and only then it is seen that nobody watches any more.
WATCH_S = 2


class Watching:
    """To be used with `with`: what was seen is told afterwards."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        #: By component, how many pods were ready after each change.
        self._ready: dict[str, list[int]] = defaultdict(list)
        self._pods: dict[str, Pod] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._failed: Exception | None = None

    def __enter__(self) -> Self:
        config.load_kube_config()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join(3 * WATCH_S)
        if error is None and self._failed is not None:
            raise self._failed

    def ready_min(self) -> dict[str, int]:
        """By component, the least that was ready at any moment."""
        return {component: min(counts) for component, counts in self._ready.items()}

    def _follow(self) -> None:
        with client.ApiClient() as api:
            ask = client.CoreV1Api(api).list_namespaced_pod
            try:
                listed = api.sanitize_for_serialization(ask(self.namespace))
                for found in listed["items"]:
                    self._put(found)
                self._take_down()
                version = listed["metadata"]["resourceVersion"]
                while not self._stopping.is_set():
                    following = watch.Watch()
                    for event in following.stream(
                        ask, self.namespace, resource_version=version, timeout_seconds=WATCH_S
                    ):
                        version = event["raw_object"]["metadata"]["resourceVersion"]
                        self._see(event)
            except Exception as error:
                self._failed = error

    def _see(self, event: dict[str, Any]) -> None:
        found = event["raw_object"]
        if event["type"] == "DELETED":
            self._pods.pop(found["metadata"]["uid"], None)
        else:
            self._put(found)
        self._take_down()

    def _put(self, found: dict[str, Any]) -> None:
        pod = Pod.of(found)
        if pod.is_lasting:
            self._pods[pod.uid] = pod

    def _take_down(self) -> None:
        ready: dict[str, int] = {pod.component: 0 for pod in self._pods.values()}
        for pod in self._pods.values():
            ready[pod.component] += pod.is_ready
        for component, count in ready.items():
            self._ready[component].append(count)
