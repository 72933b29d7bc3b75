"""Optimistic atomic multicast on trial."""

from ordercast.protocols.optimistic.protocol import OPTIMISTIC
from ordercast.sim.standard_trial import standard_trial

TRIAL = standard_trial(
    OPTIMISTIC,
    [],
    settings={},
    empty=("pending", "stamped", "shown", "proposals", "waiting_accepts", "missing"),
)
