"""Large audiences on trial. Roots and broadcasters come and go in every run: there is nothing to be asked for."""

from ordercast.sim.apbcast.audience import summary
from ordercast.sim.apbcast.chores import begin
from ordercast.sim.apbcast.cluster import AudienceCluster
from ordercast.sim.apbcast.mutants.catalogue import CATALOGUE
from ordercast.sim.apbcast.scenario import draw
from ordercast.sim.trial import Trial

TRIAL = Trial(
    draw,
    AudienceCluster,
    begin,
    CATALOGUE,
    {},
    lambda schedule: None,
    audience=summary,
    counted={"replaced": "replace", "created": "create", "moved": "move_home"},
)
