"""Messages to two groups that have to outlive whatever happens to a release."""

import ordercast
from ordercast.local.setup import create_groups
from tests.cluster.asking import assert_replicas_agree, payloads
from tests.k8s.installation import Installation

SENT = [f"message {number}".encode() for number in range(50)]


def publish(where: Installation, groups: list[str]) -> dict[str, int]:
    """To new groups. Returns where the last one is."""
    create_groups(where.gateways, groups, replicas=3)
    with ordercast.connect_sync(*where.gateways) as connection:
        receipts = [connection.publish(payload, to=groups) for payload in SENT]
    return dict(receipts[-1].offsets)


def assert_kept(where: Installation, last: dict[str, int]) -> None:
    """All of them and nothing else; and the next one comes right behind them."""
    for group in last:
        assert payloads(where.gateways[0], group) == SENT
    with ordercast.connect_sync(*where.gateways) as connection:
        receipt = connection.publish(b"after", to=list(last))
    assert receipt.offsets == {group: offset + 1 for group, offset in last.items()}
    assert_replicas_agree(where.gateways[0])
