"""ToTo on trial. Views change in every run: there is nothing to be asked for."""

from ordercast.sim.toto.chores import begin
from ordercast.sim.toto.cluster import TotoCluster
from ordercast.sim.toto.mutants.catalogue import CATALOGUE, SCHEDULES
from ordercast.sim.toto.scenario import draw
from ordercast.sim.trial import Trial, violation_in

TRIAL = Trial(
    draw,
    TotoCluster,
    begin,
    CATALOGUE,
    SCHEDULES,
    lambda schedule: violation_in(schedule.play),
    counted={"views": "view_completed"},
)
