"""What happens to containers: stopped, out of memory, without room on their disks."""

import contextlib

import pytest

import ordercast
from ordercast.errors import OrdercastError, ResourceExhausted
from tests.cluster.asking import assert_replicas_agree
from tests.cluster.trial import Progress
from tests.k8s.compact.inside import EMPTY, EXHAUST, FILL, GO_ON, NEARLY_FILL, STOP, run_inside
from tests.k8s.installation import PREFIX, Installation
from tests.k8s.kube import KubectlFailed, wait_until
from tests.k8s.under_load import run_under_load

NODES = [f"{PREFIX}-node-{number}" for number in range(3)]
LARGE_BYTES = 64 << 10


def restarts(where: Installation, name: str) -> int:
    pod = where.pod(name)
    return pod.restarts if pod else 0


def is_ready(where: Installation, name: str) -> bool:
    pod = where.pod(name)
    return pod is not None and pod.is_ready


def wait_restarted(where: Installation, name: str, before: int) -> None:
    wait_until(f"{name} is started again", lambda: restarts(where, name) > before)
    where.wait_settled()


def test_a_container_that_is_paused_goes_on_afterwards(compact: Installation):
    def during(progress: Progress) -> None:
        for name in NODES:
            before = restarts(compact, name)
            run_inside(compact, name, STOP)
            progress.wait_for_receipts()
            # By then it is suspected, and Kubernetes sends nobody there. It would lose patience much later.
            wait_until(f"{name} is not ready", lambda name=name: not is_ready(compact, name))
            progress.wait_for_receipts()
            run_inside(compact, name, GO_ON)
            compact.wait_settled()
            progress.wait_for_receipts()
            assert restarts(compact, name) == before

    run_under_load(compact, "paused", during)


def test_a_container_that_stays_stopped_is_started_anew(compact: Installation):
    """By the liveness probe: nobody else would."""

    def during(progress: Progress) -> None:
        before = restarts(compact, NODES[1])
        run_inside(compact, NODES[1], STOP)
        progress.wait_for_receipts()
        wait_restarted(compact, NODES[1], before)
        progress.wait_for_receipts()

    run_under_load(compact, "stopped", during)


def test_a_container_that_runs_out_of_memory_comes_back(compact: Installation):
    def during(progress: Progress) -> None:
        for name in NODES[:2]:
            before = restarts(compact, name)
            with contextlib.suppress(KubectlFailed):  # Whatever runs beside it ends with it.
                run_inside(compact, name, EXHAUST)
            wait_restarted(compact, name, before)
            pod = compact.pod(name)
            assert pod is not None
            assert (pod.ended, pod.exit_code) == ("OOMKilled", 137)
            progress.wait_for_receipts()

    run_under_load(compact, "out-of-memory", during)


def test_one_full_volume_holds_nobody_up_and_a_majority_of_them_refuses(on_small_disks: Installation):
    where = on_small_disks

    def during(progress: Progress) -> None:
        run_inside(where, NODES[0], FILL)
        progress.wait_for_receipts()
        run_inside(where, NODES[0], EMPTY)
        progress.wait_for_receipts()

    run_under_load(where, "full", during)

    for name in NODES:
        run_inside(where, name, NEARLY_FILL)
    wait_until("publishes are refused", lambda: publish(where, b"x" * LARGE_BYTES) == "refused")
    assert [restarts(where, name) for name in NODES] == [0, 0, 0]
    for name in NODES:
        run_inside(where, name, EMPTY)
    wait_until("there is room again", lambda: publish(where, b"again") == "stored")
    assert_replicas_agree(where.gateways[0])


def publish(where: Installation, payload: bytes) -> str:
    """What became of it."""
    with ordercast.connect_sync(*where.gateways) as connection:
        try:
            connection.publish(payload, to=["full-a"])
        except ResourceExhausted:
            return "refused"
        except OrdercastError as error:
            return str(error)
        return "stored"


@pytest.fixture(autouse=True)
def _settled_before(request: pytest.FixtureRequest) -> None:
    if "compact" in request.fixturenames:
        request.getfixturevalue("compact").wait_settled()
