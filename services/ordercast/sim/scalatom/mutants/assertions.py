"""What SCALATOM asserts about its own order: its mutants are looked for with that switched off."""

from ordercast.protocols.scalatom.replica import Replica
from ordercast.sim.mutant import Patch

SCALATOM_ASSERTIONS: tuple[Patch, ...] = ((Replica, "check_order", lambda self, key: None),)
