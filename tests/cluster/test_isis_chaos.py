"""Random faults on virtually synchronous groups for a while; and disks that lie, which has to be noticed."""

import pytest

from ordercast.local.chaos import Chaos
from ordercast.local.reconfiguring import ReconfiguringChaos

SECONDS = 12.0
#: Less is enough to see that something is broken.
MUTANT_SECONDS = 8.0


@pytest.mark.long
@pytest.mark.parametrize("ordering", ["causal", "total"])
def test_a_run_of_random_kills_pauses_and_partitions_is_clean(tmp_path, ordering):
    report = Chaos(tmp_path, seconds=SECONDS, seed=2, protocol="isis", ordering=ordering).run()
    assert report.verdict.is_clean, report.verdict.findings
    assert not report.verdict.findings
    assert not report.failed
    assert report.verdict.acknowledged == report.sent > 0
    assert report.actions


@pytest.mark.long
def test_a_run_in_which_replicas_change_all_the_time_and_disks_are_lost_is_clean(tmp_path):
    report = ReconfiguringChaos(tmp_path, seconds=SECONDS, seed=13, protocol="isis").run()
    assert report.is_clean, report.document()
    assert not report.verdict.findings
    assert not report.failed
    assert report.verdict.acknowledged == report.sent > 0
    assert report.reconfigured["changes_done"] > 0


@pytest.mark.long
def test_disks_that_answer_before_they_sync_are_noticed_by_what_is_lost(tmp_path):
    report = Chaos(tmp_path, seconds=MUTANT_SECONDS, seed=1, mutant="answers-before-fsync", protocol="isis").run()
    # Some processes find out by themselves that what they have cannot be, and end.
    assert report.verdict.lost > 0 or report.verdict.findings, report.document()
