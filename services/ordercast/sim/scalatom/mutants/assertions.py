"""What SCALATOM's machines assert about themselves: its mutants are looked for with that switched off."""

from ordercast.core.machine import ChecksItself
from ordercast.gateway.machine import Gateway
from ordercast.protocols.paxos.acceptor import Acceptor
from ordercast.protocols.paxos.proposer import Proposer
from ordercast.protocols.scalatom.machine import Scalatom
from ordercast.protocols.scalatom.replica import Replica
from ordercast.sim.mutant import Patch


def _unchecked(self: ChecksItself) -> None:
    """Whatever state it is in."""


SCALATOM_ASSERTIONS: tuple[Patch, ...] = (
    (Replica, "check_order", lambda self, key: None),
    *((machine, "check_invariants", _unchecked) for machine in (Scalatom, Acceptor, Proposer, Gateway)),
)
