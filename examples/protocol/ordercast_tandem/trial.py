"""The protocol on trial: `ordercast sim tandem`. What is simulated and checked is Ordercast's own."""

from ordercast.sim.standard_trial import standard_trial
from ordercast_tandem.mutants import MUTANTS
from ordercast_tandem.protocol import TANDEM

TRIAL = standard_trial(
    TANDEM,
    MUTANTS,
    settings={"sequencer": "n1", "standby": "n2"},
    empty=("log", "finished"),
    waits=True,
    may_lose=("n1", "n2"),
)
