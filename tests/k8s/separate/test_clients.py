"""Clients in Kubernetes, and outside of it."""

import contextlib
import re
import subprocess
from collections.abc import Iterator

import ordercast
from tests.cluster.asking import payloads
from tests.k8s.installation import IMAGE, PREFIX, Installation
from tests.k8s.kube import PATIENCE_S

RUNNER = """
apiVersion: v1
kind: Pod
metadata: {{name: client}}
spec:
  automountServiceAccountToken: false
  securityContext: {{runAsNonRoot: true, runAsUser: 10001, seccompProfile: {{type: RuntimeDefault}}}}
  containers:
    - name: client
      image: {image}
      imagePullPolicy: IfNotPresent
      command: [sleep, infinity]
      env:
        - {{name: ORDERCASTCTL_GATEWAY, value: "{gateway}"}}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {{drop: [ALL]}}
"""


@contextlib.contextmanager
def client_pod(where: Installation) -> Iterator[str]:
    """One that has the command line, and knows the name of the Service."""
    manifest = RUNNER.format(image=IMAGE, gateway=f"{PREFIX}-gateway.{where.namespace}:7400")
    where.kubectl("apply", "--filename=-", stdin=manifest)
    try:
        where.kubectl("wait", "pod/client", "--for=condition=Ready", f"--timeout={PATIENCE_S:.0f}s")
        yield "client"
    finally:
        where.kubectl("delete", "pod", "client", "--grace-period=1")


@contextlib.contextmanager
def port_forward(where: Installation) -> Iterator[str]:
    command = ["kubectl", "--namespace", where.namespace, "port-forward", f"service/{PREFIX}-gateway", ":7400"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            said = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline())
            assert said is not None
            yield said[0]
        finally:
            process.terminate()


def test_clients_in_the_cluster_and_outside_see_the_same_order(separate: Installation):
    groups = ["clients-a", "clients-b"]
    (node_port,) = separate.gateways
    with client_pod(separate) as pod, port_forward(separate) as forwarded:
        separate.exec(pod, "ordercast", "group", "create", *groups, "--replicas", "3")
        for number in range(3):
            separate.exec(pod, "ordercast", "publish", ",".join(groups), f"from inside {number}")
            for address in (node_port, forwarded):
                with ordercast.connect_sync(address) as connection:
                    connection.publish(f"from {address} {number}".encode(), to=groups)
        inside = separate.exec(pod, "ordercast", "subscribe", groups[0], "--until-end", "--payload-only")
        seen = [payloads(address, group) for address in (node_port, forwarded) for group in groups]
    assert len(set(inside.splitlines())) == 9
    assert [line.encode() for line in inside.splitlines()] == seen[0]
    assert all(each == seen[0] for each in seen)
