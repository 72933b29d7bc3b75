"""ISIS on trial. Views change in every run: there is nothing to be asked for."""

from ordercast.sim.isis.chores import begin
from ordercast.sim.isis.cluster import IsisCluster
from ordercast.sim.isis.mutants.assertions import ISIS_ASSERTIONS
from ordercast.sim.isis.mutants.catalogue import CATALOGUE, SCHEDULES
from ordercast.sim.isis.scenario import draw
from ordercast.sim.isis.stage import verdict
from ordercast.sim.trial import Trial

TRIAL = Trial(
    draw,
    IsisCluster,
    begin,
    CATALOGUE,
    SCHEDULES,
    lambda schedule: verdict(schedule)[0],
    ISIS_ASSERTIONS,
    counted={"views": "view_completed"},
)
