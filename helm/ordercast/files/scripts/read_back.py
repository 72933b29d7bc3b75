"""`helm test`: does the cluster do what it is for?

Publishes messages to two groups, some to one of them and some to both; reads both groups back and compares what
comes, and in which order; and lets `ordercast verify` compare every copy of every group. The groups are the test's
own, and stay, with little in them.
"""

import contextlib
import subprocess
import sys
import time
from collections.abc import Sequence

from connecting import as_arguments, connect, parser, patiently

import ordercast
from ordercast.client.errors import AlreadyExists
from ordercast.v1.membership_pb2 import Retention

GROUPS = ("helm-test-a", "helm-test-b")
REPLICAS = 3
#: Of the test's groups: yesterday's messages are of no use.
RETENTION = Retention(bytes=16 << 20, age_s=86_400)
PATIENCE_S = 120.0


def create_groups(client: ordercast.SyncConnection) -> None:
    until = time.monotonic() + PATIENCE_S
    for name in GROUPS:
        with contextlib.suppress(AlreadyExists):
            patiently(lambda name=name: client.create_group(name, replicas=REPLICAS, retention=RETENTION), until)


def publish(client: ordercast.SyncConnection, count: int) -> dict[str, list[tuple[int, bytes]]]:
    """What each group has to show: offsets and payloads, in the order sent."""
    sent: dict[str, list[tuple[int, bytes]]] = {name: [] for name in GROUPS}
    for number in range(count):
        # Two of three go to both.
        destinations = [GROUPS[number // 3 % 2]] if number % 3 == 0 else list(GROUPS)
        payload = f"message {number}".encode()
        receipt = client.publish(payload, to=destinations)
        for name in destinations:
            sent[name].append((receipt.offsets[name], payload))
    return sent


def read(client: ordercast.SyncConnection, name: str, start: int, count: int) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    with client.subscribe(name, start=start) as deliveries:
        for delivery in deliveries:
            found.append((delivery.offset, delivery.payload))
            if len(found) == count:
                break
    return found


def differences(name: str, sent: Sequence[tuple[int, bytes]], found: Sequence[tuple[int, bytes]]) -> list[str]:
    return [
        f"{name}: {expected[1]!r} at offset {expected[0]} was sent, and {seen[1]!r} is read at {seen[0]}"
        for expected, seen in zip(sent, found, strict=True)
        if expected != seen
    ]


def main(arguments: list[str] | None = None) -> int:
    made = parser(__doc__)
    made.add_argument("--messages", type=int, default=100, metavar="COUNT")
    made.add_argument("--verify", action="store_true", help="compare every copy of every group")
    options = made.parse_args(arguments)
    wrong: list[str] = []
    with connect(options) as client:
        create_groups(client)
        sent = publish(client, options.messages)
        for name in GROUPS:
            if sent[name]:
                found = read(client, name, sent[name][0][0], len(sent[name]))
                wrong += differences(name, sent[name], found)
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        return 1
    print(f"{options.messages} messages came back from {' and '.join(GROUPS)}, in the order sent", flush=True)
    if options.verify:
        command = [sys.executable, "-m", "ordercast.cli.main", "verify", *as_arguments(options)]
        return subprocess.run(command, check=False).returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
