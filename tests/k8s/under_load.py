"""Trials on an installation: clients publish, something happens to pods, and all that came of it is judged."""

from collections.abc import Callable

from tests.cluster.trial import Progress, TrialReport, run_trial_at
from tests.k8s.installation import Installation

#: Between two messages of one producer, on average. Pods that start need the processors that messages would take.
PAUSE_S = 0.03


def run_under_load(
    where: Installation, name: str, during: Callable[[Progress], None], pause_s: float = PAUSE_S
) -> TrialReport:
    """Three groups of its own, whose names begin so. In the end every message has its receipt, and its place."""
    groups = [f"{name}-{letter}" for letter in "abc"]
    return run_trial_at(where.gateways, during, groups, (), where.wait_settled, pause_s)
