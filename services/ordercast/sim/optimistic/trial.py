"""Optimistic atomic multicast on trial."""

from ordercast.sim.optimistic.cluster import OptimisticCluster, begin
from ordercast.sim.optimistic.scenario import draw
from ordercast.sim.trial import Trial

TRIAL = Trial(
    draw,
    OptimisticCluster,
    begin,
    [],
    {},
    lambda schedule: None,
)
