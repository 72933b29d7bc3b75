"""All mutants, and the stories for those that random runs catch rarely."""

from ordercast.sim.apbcast.mutants.audience import AUDIENCE
from ordercast.sim.apbcast.mutants.changing import CHANGING
from ordercast.sim.apbcast.mutants.ordering import ORDERING
from ordercast.sim.apbcast.mutants.schedules import SCHEDULES as SCHEDULES
from ordercast.sim.mutant import Mutant

CATALOGUE: list[Mutant] = [*ORDERING, *CHANGING, *AUDIENCE]
