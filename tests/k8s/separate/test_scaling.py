"""More gateways and fewer, and more sequencers, while clients publish."""

import contextlib

import ordercast
from ordercast.errors import FailedPrecondition
from ordercast.v1.membership_pb2 import Group
from tests.cluster.trial import Progress
from tests.k8s.installation import PREFIX, Installation
from tests.k8s.kube import wait_until
from tests.k8s.under_load import run_under_load

GROUPS_MAX = 10


def scale(where: Installation, component: str, kind: str, replicas: int) -> None:
    where.kubectl("scale", f"{kind}/{PREFIX}-{component}", f"--replicas={replicas}")
    wait_until(
        f"there are {replicas} of {component}",
        lambda: len(where.pods(component)) == replicas and where.is_settled(),
    )


def created(connection: ordercast.SyncConnection, name: str) -> Group:
    """As soon as three nodes can take it: under load, one may be suspected for a moment."""
    made: list[Group] = []

    def is_created() -> bool:
        with contextlib.suppress(FailedPrecondition):
            made.append(connection.create_group(name, replicas=3))
        return bool(made)

    wait_until(f"{name} is created", is_created)
    return made[0]


def test_gateways_come_and_go_and_clients_notice_nothing(separate: Installation):
    def during(progress: Progress) -> None:
        for replicas in (5, 1, 3):
            scale(separate, "gateway", "deployment", replicas)
            progress.wait_for_receipts()

    run_under_load(separate, "scaled-gateways", during)


def test_a_new_sequencer_gets_new_groups_and_is_emptied_before_it_goes(separate: Installation):
    newest = f"{PREFIX}-sequencer-3"

    def during(progress: Progress) -> None:
        separate.upgrade("sequencer.replicas=4")
        progress.wait_for_receipts()
        with ordercast.connect_sync(*separate.gateways) as connection:
            # Placement goes by how much each node has: an empty one is chosen before long.
            names = (f"scaled-sequencers-new-{number}" for number in range(GROUPS_MAX))
            placed = next(name for name in names if newest in created(connection, name).replicas)
            receipt = connection.publish(b"first", to=[placed])
        assert receipt.offsets == {placed: 0}
        progress.wait_for_receipts()
        separate.ordercast("node", "drain", newest, "--timeout", "120")
        separate.upgrade()
        progress.wait_for_receipts()
        separate.kubectl("delete", "pvc", f"data-{newest}")
        wait_until(f"{newest} is over", lambda: separate.nodes()[newest]["ended"])
        separate.ordercast("node", "remove", newest)

    run_under_load(separate, "scaled-sequencers", during)
