"""Optimistic atomic multicast on trial."""

from ordercast.sim.optimistic.cluster import OptimisticCluster, begin
from ordercast.sim.optimistic.mutants import CATALOGUE
from ordercast.sim.optimistic.scenario import draw
from ordercast.sim.optimistic.schedules import SCHEDULES
from ordercast.sim.optimistic.stage import verdict
from ordercast.sim.trial import Trial

TRIAL = Trial(
    draw,
    OptimisticCluster,
    begin,
    CATALOGUE,
    SCHEDULES,
    lambda schedule: verdict(schedule)[0],
)
