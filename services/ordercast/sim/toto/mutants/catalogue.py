"""All mutants of ToTo, and the stories for those that random runs catch rarely."""

from ordercast.sim.mutant import Mutant
from ordercast.sim.toto.mutants.orders import ORDERS
from ordercast.sim.toto.mutants.processes import PROCESSES
from ordercast.sim.toto.mutants.views import VIEWS

CATALOGUE: list[Mutant] = [*ORDERS, *PROCESSES, *VIEWS]
