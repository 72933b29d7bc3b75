"""All mutants of ToTo, and the stories for those that random runs catch rarely."""

from typing import Any

from ordercast.sim.mutant import Mutant
from ordercast.sim.toto.mutants import schedules
from ordercast.sim.toto.mutants.order_schedules import ORDER_SCHEDULES
from ordercast.sim.toto.mutants.orders import ORDERS
from ordercast.sim.toto.mutants.processes import PROCESSES
from ordercast.sim.toto.mutants.views import VIEWS

CATALOGUE: list[Mutant] = [*ORDERS, *PROCESSES, *VIEWS]
SCHEDULES: dict[str, type[Any]] = ORDER_SCHEDULES | schedules.SCHEDULES
