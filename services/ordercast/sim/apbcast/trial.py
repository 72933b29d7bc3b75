"""Large audiences on trial. Roots and broadcasters come and go in every run: there is nothing to be asked for."""

from ordercast.sim.apbcast.audience import summary
from ordercast.sim.apbcast.chores import begin
from ordercast.sim.apbcast.cluster import AudienceCluster
from ordercast.sim.apbcast.mutants.catalogue import CATALOGUE, SCHEDULES
from ordercast.sim.apbcast.scenario import draw
from ordercast.sim.apbcast.stage import verdict
from ordercast.sim.trial import Trial

TRIAL = Trial(
    draw,
    AudienceCluster,
    begin,
    CATALOGUE,
    SCHEDULES,
    lambda schedule: verdict(schedule)[0],
    audience=summary,
    counted={"replaced": "replace", "created": "create", "moved": "move_home"},
)
