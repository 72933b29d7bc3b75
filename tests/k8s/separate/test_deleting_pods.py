"""Pods of each kind are deleted while clients publish: with grace, and by force."""

import pytest

from tests.cluster.trial import Progress
from tests.k8s.installation import Installation
from tests.k8s.under_load import run_under_load

#: Each pod of these has a volume, and a name of its own.
LASTING = ("membership", "consensus", "sequencer")
COMPONENTS = (*LASTING, "gateway", "telemetry")


def delete(where: Installation, progress: Progress, *components: str) -> None:
    """The first pod of each, all at once, and once more by force."""
    for by_force in (False, True):
        where.delete_pods(*(where.pods(component)[0] for component in components), by_force=by_force)
        progress.wait_for_receipts()


def test_a_pod_of_each_kind_is_deleted_and_comes_back_as_the_same_member(separate: Installation):
    """Nothing is lost, for each kind can do without one; and pods find what is on their volumes."""
    names = [separate.pods(component)[0].name for component in LASTING]
    before = separate.nodes()
    run_under_load(separate, "deleted", lambda progress: delete(separate, progress, *COMPONENTS))
    after = separate.nodes()
    same = ("name", "services", "peer_address")
    for name in names:
        assert after[name]["incarnation"] > before[name]["incarnation"]
        assert {key: after[name][key] for key in same} == {key: before[name][key] for key in same}


@pytest.mark.long
@pytest.mark.parametrize("component", COMPONENTS)
def test_a_pod_is_deleted_and_nothing_is_lost(component: str, separate: Installation):
    run_under_load(separate, f"deleted-{component}", lambda progress: delete(separate, progress, component))
