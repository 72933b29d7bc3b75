"""Envelopes are followed through a real cluster, from the client and back."""

from pathlib import Path

import pytest

from ordercast.bench import stages
from ordercast.bench.plan import BenchPlan


def test_every_stage_of_an_envelope_is_found_and_they_add_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ways = stages.follow(BenchPlan(seconds=3.0), 8, lambda text: None)
    assert ways
    for way in ways:
        spent_s = way.spent_s()
        assert list(spent_s) == list(stages.STAGES)
        assert min(spent_s.values()) >= 0.0
        assert sum(spent_s.values()) == pytest.approx(way.total_s)
    entries = stages.entries_of(8, ways)
    assert [entry["stage"] for entry in entries] == [*stages.STAGES, stages.TOTAL]
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"
