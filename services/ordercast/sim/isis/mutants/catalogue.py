"""All mutants of ISIS, and the stories for those that random runs catch rarely."""

from ordercast.sim.isis.mutants.cast_schedules import CAST_SCHEDULES
from ordercast.sim.isis.mutants.casts import CASTS
from ordercast.sim.isis.mutants.found import FOUND
from ordercast.sim.isis.mutants.found_schedules import FOUND_SCHEDULES
from ordercast.sim.isis.mutants.part_schedules import PART_SCHEDULES
from ordercast.sim.isis.mutants.parts import PARTS
from ordercast.sim.isis.mutants.view_schedules import VIEW_SCHEDULES
from ordercast.sim.isis.mutants.views import VIEWS
from ordercast.sim.isis.stage import Schedule
from ordercast.sim.mutant import Mutant

CATALOGUE: list[Mutant] = [*CASTS, *PARTS, *VIEWS, *FOUND]
SCHEDULES: dict[str, type[Schedule]] = CAST_SCHEDULES | PART_SCHEDULES | VIEW_SCHEDULES | FOUND_SCHEDULES
