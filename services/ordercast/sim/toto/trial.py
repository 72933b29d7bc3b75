"""ToTo on trial. Views change in every run: there is nothing to be asked for."""

from ordercast.sim.toto.chores import begin
from ordercast.sim.toto.cluster import TotoCluster
from ordercast.sim.toto.mutants.catalogue import CATALOGUE
from ordercast.sim.toto.scenario import draw
from ordercast.sim.trial import Trial

TRIAL = Trial(
    draw,
    TotoCluster,
    begin,
    CATALOGUE,
    schedules={},
    play=lambda schedule: None,
    counted={"views": "view_completed"},
)
