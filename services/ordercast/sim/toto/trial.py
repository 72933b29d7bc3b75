"""ToTo on trial. Views change in every run: there is nothing to be asked for."""

from ordercast.sim.checkers.violation import Violation
from ordercast.sim.toto.chores import begin
from ordercast.sim.toto.cluster import TotoCluster
from ordercast.sim.toto.mutants.catalogue import CATALOGUE, SCHEDULES
from ordercast.sim.toto.mutants.order_schedules import OneDag
from ordercast.sim.toto.scenario import draw
from ordercast.sim.toto.stage import Schedule, verdict
from ordercast.sim.trial import Trial


def play(schedule: Schedule | OneDag) -> Violation | None:
    """Stories of a cluster, and of the order alone."""
    return schedule.verdict() if isinstance(schedule, OneDag) else verdict(schedule)[0]


TRIAL = Trial(
    draw,
    TotoCluster,
    begin,
    CATALOGUE,
    SCHEDULES,
    play,
    counted={"views": "view_completed"},
)
