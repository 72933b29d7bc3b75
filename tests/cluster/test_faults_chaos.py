"""Random faults for a while; and the same with processes that are broken on purpose, which has to be noticed."""

import pytest

from ordercast.local.chaos import Chaos
from ordercast.local.reconfiguring import ReconfiguringChaos

SECONDS = 12.0
LONG_SECONDS = 40.0
RECONFIGURING_SECONDS = 15.0
#: Less is enough to see that something is broken.
MUTANT_SECONDS = 10.0


@pytest.mark.parametrize("seconds", [SECONDS, pytest.param(LONG_SECONDS, marks=pytest.mark.long)])
def test_a_run_of_random_kills_pauses_and_partitions_is_clean(tmp_path, seconds):
    report = Chaos(tmp_path, seconds=seconds, seed=1).run()
    assert report.verdict.is_clean, report.verdict.findings
    assert not report.verdict.findings
    assert not report.failed
    assert report.verdict.acknowledged == report.sent > 0
    assert report.actions


@pytest.mark.long
def test_a_run_in_which_replicas_change_all_the_time_and_disks_are_lost_is_clean(tmp_path):
    report = ReconfiguringChaos(tmp_path, seconds=RECONFIGURING_SECONDS, seed=1).run()
    assert report.is_clean, report.document()
    assert not report.verdict.findings
    assert not report.failed
    assert report.verdict.acknowledged == report.sent > 0
    assert report.reconfigured["changes_done"] > 0
    assert report.reconfigured["changes_unfinished"] == 0


@pytest.mark.long
def test_disks_that_answer_before_they_sync_are_noticed_by_what_is_lost(tmp_path):
    report = Chaos(tmp_path, seconds=MUTANT_SECONDS, seed=1, mutant="answers-before-fsync").run()
    # Some processes find out by themselves that what they have cannot be, and end.
    assert report.verdict.lost > 0 or report.verdict.findings, report.document()


@pytest.mark.long
def test_a_gateway_that_forgets_who_sent_what_is_noticed_by_what_is_there_twice(tmp_path):
    report = Chaos(tmp_path, seconds=MUTANT_SECONDS, seed=1, mutant="forgetful-gateway").run()
    assert report.verdict.duplicated > 0, report.document()
