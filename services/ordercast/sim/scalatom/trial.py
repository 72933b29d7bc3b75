"""SCALATOM on trial."""

from ordercast.sim.mutants_of_cells import OF_CELLS
from ordercast.sim.mutants_of_merging import OF_MERGING
from ordercast.sim.mutants_of_rows import OF_ROWS
from ordercast.sim.scalatom.chores import begin
from ordercast.sim.scalatom.cluster import ScalatomCluster
from ordercast.sim.scalatom.mutants.assertions import SCALATOM_ASSERTIONS
from ordercast.sim.scalatom.mutants.catalogue import CATALOGUE
from ordercast.sim.scalatom.mutants.configuration_schedules import CONFIGURATION_SCHEDULES
from ordercast.sim.scalatom.mutants.configurations import RECONFIGURING
from ordercast.sim.scalatom.mutants.restart_schedules import RESTART_SCHEDULES
from ordercast.sim.scalatom.mutants.restarts import RESTARTING
from ordercast.sim.scalatom.mutants.schedules import SCHEDULES
from ordercast.sim.scalatom.scenario import draw
from ordercast.sim.scalatom.stage import verdict
from ordercast.sim.trial import Trial

TRIAL = Trial(
    draw,
    ScalatomCluster,
    begin,
    [*CATALOGUE, *RESTARTING, *RECONFIGURING, *OF_CELLS, *OF_ROWS, *OF_MERGING],
    SCHEDULES | RESTART_SCHEDULES | CONFIGURATION_SCHEDULES,
    lambda schedule: verdict(schedule)[0],
    SCALATOM_ASSERTIONS,
    counted_reconfiguring={"changes": "configuration_started", "disks_lost": "disk_lost"},
)
