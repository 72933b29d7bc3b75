"""What ISIS asserts about itself where a checker would see the same a little later: mutants switch it off."""

from contextlib import suppress

from ordercast.core.machine import ChecksItself
from ordercast.gateway.machine import Gateway
from ordercast.protocols.isis.machine import Isis
from ordercast.protocols.isis.replica import Replica
from ordercast.protocols.isis.snapshot import Snapshots
from ordercast.sim.mutant import Patch

_began = Snapshots.began


def _began_anywhere(self: Snapshots, replica: Replica) -> None:
    """The log need not end where the cut does."""
    with suppress(AssertionError):
        _began(self, replica)


def _unchecked(self: ChecksItself) -> None:
    """Whatever state it is in."""


ISIS_ASSERTIONS: tuple[Patch, ...] = (
    (Snapshots, "began", _began_anywhere),
    *((machine, "check_invariants", _unchecked) for machine in (Isis, Gateway)),
)
