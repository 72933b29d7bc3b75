"""A real Kafka broker: one node, KRaft, on ports that the system picks, with jars from Maven Central."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

ROOT = Path(__file__).parents[2]
JARS = ROOT / "build" / "kafka" / "broker"
CLUSTER_ID = "b3JkZXJjYXN0LXRlc3QtMQ"
PATIENCE_S = 180.0

PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/logs
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """Its address, once it answers."""
    java = shutil.which("java")
    assert java is not None
    address = f"127.0.0.1:{(port := free_port())}"
    properties = folder / "server.properties"
    properties.write_text(PROPERTIES.format(port=port, controller=free_port(), folder=folder))
    command = [java, "-Xmx512m", "-cp", f"{JARS}/*"]
    form = [*command, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)]
    subprocess.run(form, check=True, capture_output=True, timeout=PATIENCE_S)
    with (folder / "broker.log").open("w") as log:
        process = subprocess.Popen([*command, "kafka.Kafka", str(properties)], stdout=log, stderr=log)
    try:
        wait_for(address, process, folder / "broker.log")
        yield address
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    client = AdminClient({"bootstrap.servers": address, "log_level": 0})
    begun = time.monotonic()
    while True:
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            client.list_topics(timeout=2)
            return
        except KafkaException:
            assert time.monotonic() - begun < PATIENCE_S, log.read_text()[-3000:]
