"""Pods of the chart as processes of this machine: each with an address of its own, and told what its pod is told.

Only what a kubelet, volumes and DNS would do is done here: variables are expanded, folders moved, and the names of
hosts replaced by addresses of the loopback network.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.helm.chart import NAMESPACE, Object, component_of, container_of, of_kind, pod_names, pod_templates, told
from tests.helm.scripts import SCRIPTS

DOMAIN = f".{NAMESPACE}.svc.cluster.local"
START_S_MAX = 120.0


@dataclass
class Pod:
    name: str
    component: str
    address: str
    template: Object
    process: subprocess.Popen[bytes] | None = None

    @property
    def container(self) -> Object:
        return container_of(self.template)

    def passes(self, probe: str) -> bool:
        """As the kubelet asks."""
        asked = self.container[probe]["httpGet"]
        (port,) = [p["containerPort"] for p in self.container["ports"] if p["name"] == asked["port"]]
        try:
            with urllib.request.urlopen(f"http://{self.address}:{port}{asked['path']}", timeout=5) as answer:
                return 200 <= answer.status < 400
        except OSError:  # Nobody listens, or the answer is no.
            return False


@dataclass
class Release:
    """What `helm install` would bring about, in a folder. To be used with `with`, which leaves nothing running."""

    objects: list[Object]
    folder: Path
    pods: dict[str, Pod] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A network of its own, for tests that run at the same time.
        network = f"127.{os.getpid() % 250 + 2}.{os.getpid() // 250 % 250}"
        for workload in of_kind(self.objects, "StatefulSet", "Deployment"):
            for name in pod_names(workload):
                address = f"{network}.{len(self.pods) + 2}"
                self.pods[name] = Pod(name, component_of(workload), address, workload["spec"]["template"])
        self.tls = self.folder / "tls"
        self.tls.mkdir(parents=True)
        for each in of_kind(self.objects, "ConfigMap"):
            if "domains.json" in each["data"]:
                (self.folder / "domains.json").write_text(each["data"]["domains.json"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pod in self.pods.values():
            if pod.process is not None and pod.process.poll() is None:
                pod.process.kill()
                pod.process.wait()

    # ----------------------------------------------------------------------------------------------- names

    def resolved(self, text: str) -> str:
        """Every name of a Service or of a pod as an address: of a Service, of the first pod that it chooses."""

        def address(found: re.Match[str]) -> str:
            first, _, _ = found[1].partition(".")
            if first in self.pods:
                return self.pods[first].address
            (service,) = [each for each in of_kind(self.objects, "Service") if each["metadata"]["name"] == first]
            chosen = service["spec"]["selector"].items()
            return next(
                p.address for p in self.pods.values() if chosen <= p.template["metadata"]["labels"].items()
            )

        return re.sub(rf"([a-z0-9.-]+){re.escape(DOMAIN)}", address, text)

    def _told(self, container: Object, pod: str, address: str, data: Path) -> tuple[list[str], dict[str, str]]:
        words, own = told(container, pod, address)
        moves = {
            "0.0.0.0": address,
            "/etc/ordercast/tls": str(self.tls),
            "/etc/ordercast/scripts": str(SCRIPTS),
            "/etc/ordercast/declared": str(self.folder),
            "/var/lib/ordercast": str(data),
        }
        for there, here in moves.items():
            words = [text.replace(there, here) for text in words]
        # Whatever is set for this test run is not meant for the processes.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ORDERCAST")}
        return [self.resolved(text) for text in words], {**kept, **own}

    # ------------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        for pod in self.pods.values():
            data = self.folder / pod.name
            data.mkdir()
            words, environment = self._told(pod.container, pod.name, pod.address, data)
            assert words[0] == "serve"
            with (self.folder / f"{pod.name}.log").open("ab") as log:
                pod.process = subprocess.Popen(
                    [sys.executable, "-m", "ordercast.cli.services", *words[1:]],
                    env=environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_S_MAX
        for pod in self.pods.values():
            while not pod.passes("readinessProbe"):
                assert pod.process is not None
                assert pod.process.poll() is None, f"{pod.name} ended:\n{self.log(pod)}"
                assert time.monotonic() < deadline, f"{pod.name} is not ready:\n{self.log(pod)}"
                time.sleep(0.2)

    def run(self, kind: str) -> subprocess.CompletedProcess[str]:
        """What the one Job or Pod of the chart would do, to its end."""
        (template,) = [each for name, each in pod_templates(self.objects) if name.startswith(f"{kind}/")]
        words, environment = self._told(container_of(template), "job", "127.0.0.1", self.folder)
        assert words[0] == "python"
        return subprocess.run(
            [sys.executable, *words[1:]],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=250,
        )

    def stop(self) -> dict[str, int | None]:
        """SIGTERM to all; how each ended within the time that its pod has, or None."""
        for pod in self.pods.values():
            assert pod.process is not None
            pod.process.send_signal(signal.SIGTERM)
        codes: dict[str, int | None] = {}
        begun = time.monotonic()
        for pod in self.pods.values():
            assert pod.process is not None
            left_s = begun + pod.template["spec"]["terminationGracePeriodSeconds"] - time.monotonic()
            try:
                codes[pod.name] = pod.process.wait(max(left_s, 0.1))
            except subprocess.TimeoutExpired:
                codes[pod.name] = None
        return codes

    def connections(self) -> set[tuple[str, str, int]]:
        """Which component has a connection open to which, and at which port."""
        by_address = {pod.address: pod.component for pod in self.pods.values()}
        found = set()
        for pod in self.pods.values():
            assert pod.process is not None
            listening = {port["containerPort"] for port in pod.container["ports"]}
            for here, there in established(pod.process.pid):
                if there[0] in by_address and here[1] not in listening:
                    found.add((pod.component, by_address[there[0]], there[1]))
        return found

    def log(self, pod: Pod) -> str:
        return (self.folder / f"{pod.name}.log").read_text()[-4000:]


Socket = tuple[str, int]


def established(process: int) -> list[tuple[Socket, Socket]]:
    """The connections of a process: this end and the other one."""
    own = set()
    for path in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # It was closed meanwhile.
            own.add(os.readlink(path))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            _, here, there, state, *rest = line.split()
            if state == "01" and f"socket:[{rest[5]}]" in own:
                found.append((socket_from(here), socket_from(there)))
    return found


def socket_from(text: str) -> Socket:
    """
    >>> socket_from("0100007F:1CF2"), socket_from("0000000000000000FFFF00000203537F:1CF2")
    (('127.0.0.1', 7410), ('127.83.3.2', 7410))
    """
    address, _, port = text.partition(":")
    # An IPv4 address is the last word, with its bytes the other way round.
    return ".".join(str(byte) for byte in reversed(bytes.fromhex(address[-8:]))), int(port, 16)
