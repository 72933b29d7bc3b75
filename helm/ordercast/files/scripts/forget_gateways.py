"""Removes gateways from membership's list whose pods will not come back.

A pod of a Deployment has a name of its own, and so is a node of its own. When it is gone, its node is over after
`detection.end_after_s`, and stays in the list, which has an end. Only gateways are forgotten that run nothing
else, are over, and have the Deployment's name: whatever has a disk worth keeping has another one.
"""

import sys
import time

from connecting import connect, parser, patiently

from ordercast.client.errors import FailedPrecondition, NotFound
from ordercast.v1.membership_pb2 import Node

PATIENCE_S = 60.0


def is_gone(node: Node, prefix: str) -> bool:
    return node.ended and list(node.services) == ["gateway"] and node.name.startswith(prefix)


def main(arguments: list[str] | None = None) -> int:
    made = parser(__doc__)
    made.add_argument("--prefix", required=True, help="what the names of the Deployment's pods begin with")
    options = made.parse_args(arguments)
    with connect(options) as client:
        for node in patiently(client.nodes, time.monotonic() + PATIENCE_S):
            if not is_gone(node, options.prefix):
                continue
            try:
                client.remove_node(node.name)
                print(f"forgot {node.name}")
            except (NotFound, FailedPrecondition) as error:
                # Somebody else did it, or it is alive after all.
                print(f"left {node.name}: {error.message}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
