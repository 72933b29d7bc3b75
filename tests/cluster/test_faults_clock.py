"""Wall clocks that are an hour off and jump: order does not depend on them."""

from ordercast.v1.faults_pb2 import InjectRequest
from tests.cluster.trial import Progress, run_trial

HOUR_S = 3600.0


def test_clocks_that_are_an_hour_off_and_jump_do_not_affect_the_order(make_cluster):
    cluster = make_cluster(is_started=False, fault_injection=True)
    fast, slow, jumping = cluster.members
    cluster.members[fast].extra = [f"--wall-offset-s={HOUR_S}"]
    cluster.members[slow].extra = [f"--wall-offset-s={-HOUR_S}"]
    cluster.start()
    cluster.wait_healthy()

    def during(progress: Progress) -> None:
        for offset_s in (HOUR_S, -HOUR_S, 0.0, -2 * HOUR_S):
            cluster.inject(jumping, InjectRequest(wall_offset_s=offset_s))
            progress.wait_for_receipts()

    run_trial(cluster, during)
