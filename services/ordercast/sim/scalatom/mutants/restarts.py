"""Mutants of what a replica brings back from its disk. Each loses, or makes up, one thing at a restart."""

from functools import partial

from ordercast.core.machine import Persist
from ordercast.protocols.scalatom import records
from ordercast.protocols.scalatom.history import OwnHistory
from ordercast.protocols.scalatom.machine import Scalatom
from ordercast.protocols.scalatom.recovery import Recovery
from ordercast.protocols.scalatom.replica import Replica
from ordercast.sim.mutant import Mutant, register
from ordercast.v1.scalatom_pb2 import StampedRecord

RESTARTING: list[Mutant] = []
mutant = partial(register, RESTARTING)


_raise_clock = Scalatom.raise_clock


@mutant("clock-reservation-not-awaited", "E7: durable before the clock is told", (Scalatom, "raise_clock"))
def _goes_ahead(self: Scalatom, replica: Replica, clock: int) -> None:
    _raise_clock(self, replica, clock)
    for index, effect in enumerate(self.out):
        if isinstance(effect, Persist) and [key for key, _ in effect.records] == [records.CLOCK]:
            self.out[index] = Persist(effect.records, barrier=False)


@mutant("F-lost-at-a-restart", "E8: F", (Recovery, "restore_forgotten"))
def _nothing_forgotten(self: Recovery) -> None:
    pass


_recover_stamped = Recovery._recover_stamped


@mutant("history-lost-at-a-restart", "E5: entries of what is not delivered", (Recovery, "_recover_stamped"))
def _no_history(self: Recovery, record: StampedRecord) -> None:
    """What is delivered needs no entry: F is above it."""
    _recover_stamped(self, record)
    for replica in self.machine.replicas.values():
        replica.history = OwnHistory()


@mutant(
    "stamp-of-another-group-after-a-restart",
    "a stamp counts in the groups that gave it",
    (Recovery, "_recover_stamped"),
    reconfigures=True,
)
def _one_stamp_for_all(self: Recovery, record: StampedRecord) -> None:
    """As if it were the same in all groups here, which it mostly is."""
    stamped = {stamp.group for stamp in record.stamps}
    if stamped:
        for destination in record.envelope.header.destinations:
            if destination.group not in stamped:
                record.stamps.add(group=destination.group, rec_ts=record.rec_ts, entry=record.rec_ts)
    _recover_stamped(self, record)
