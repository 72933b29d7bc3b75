"""Pods of each kind are deleted while clients publish: with grace, and by force."""

import pytest

from tests.cluster.trial import Progress
from tests.k8s.installation import Installation
from tests.k8s.under_load import run_under_load


@pytest.mark.parametrize("component", ["membership", "consensus", "sequencer", "gateway", "telemetry"])
def test_a_pod_is_deleted_and_nothing_is_lost(component: str, separate: Installation):
    def during(progress: Progress) -> None:
        for by_force in (False, True):
            victim = separate.pods(component)[0]
            separate.delete_pod(victim.name, by_force=by_force)
            progress.wait_for_receipts()

    run_under_load(separate, f"deleted-{component}", during)
