"""Mutants of how views end and begin."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from ordercast.core.quorums import has_majority
from ordercast.core.view import Processes
from ordercast.protocols.causal.flush import Attempt
from ordercast.protocols.toto.ballot import Key
from ordercast.protocols.toto.era import Era
from ordercast.protocols.toto.flush import Flushing
from ordercast.protocols.toto.keeping import Keeping
from ordercast.sim.mutant import Mutant, register
from ordercast.sim.toto.membership import DomainMembership

VIEWS: list[Mutant] = []
mutant = partial(register, VIEWS)


_seal = Flushing._seal


@mutant("closed-before-the-cut-is-held", "Close comes with the cut", (Flushing, "_seal"))
def _close_at_once(self: Flushing, processes: Processes) -> None:
    """[5.2 Crash(q)] As soon as somebody is believed to be gone: nothing of him will come."""
    _seal(self, processes)
    era = self.machine.era
    if era is not None and era.is_sealed and not era.is_closed and era.received == era.delivered:
        era.end(era.received)


VIEWS.append(
    Mutant(
        "closed-on-suspicion",
        "all survivors contribute",
        ((Attempt, "is_heard", property(lambda self: bool(self.flushes))),),
    )
)


@mutant("goes-on-after-its-report", "nothing is said or taken behind it", (Flushing, "_seal"))
def _not_sealed(self: Flushing, processes: Processes) -> None:
    pass


@mutant("orphans-contributed", "a contribution is causally closed", (Era, "forget_orphans"))
def _all_that_came(self: Era) -> list[Key]:
    return []


_compute = Flushing.compute


@mutant("nothing-is-void", "of what nobody has there is no body", (Flushing, "compute"))
def _all_kept(self: Flushing) -> None:
    before = self.cut
    _compute(self)
    if self.cut is not None and before is None:
        del self.cut.voids[:]


@mutant("void-though-somebody-has-it", "what a survivor has is kept", (Flushing, "compute"))
def _own_bodies_alone(self: Flushing) -> None:
    before = self.cut
    _compute(self)
    era = self.ending()
    if self.cut is not None and before is None and era is not None and self.attempt is not None:
        others = [c.flush for name, c in self.attempt.flushes.items() if name != self.machine.process]
        del self.cut.voids[:]
        known = {(key.member, key.number): None for flush in others for key in flush.bodies}
        for key, message in era.casts.items():
            if message.agreed and key not in known:
                self.cut.voids.add(member=key[0], number=key[1])


# ------------------------------------------------------------------------------------------ membership's part


@mutant("view-without-a-majority", "survivors are a majority", (DomainMembership, "may_go_on"))
def _anybody(self: DomainMembership, completed: Sequence[str], survivors: Sequence[str]) -> bool:
    return bool(survivors) and self._keeps_groups(survivors)


@mutant("view-without-a-group", "survivors hold a majority of each group", (DomainMembership, "may_go_on"))
def _whatever_groups(self: DomainMembership, completed: Sequence[str], survivors: Sequence[str]) -> bool:
    return has_majority(completed, survivors)


_next_view = DomainMembership.next_view


@mutant("majority-of-a-view-only-defined", "of the last completed one", (DomainMembership, "next_view"))
def _of_the_latest(self: DomainMembership, completed: Sequence[str]) -> list[str]:
    return _next_view(self, list(self.processes.names))


@mutant("completed-late", "refused once a later view is defined", (DomainMembership, "is_void"))
def _never_void(self: DomainMembership, number: int) -> bool:
    return not self.processes.previous


@mutant("complete-with-one", "a majority has the past on disk", (DomainMembership, "may_complete"))
def _one_is_enough(self: DomainMembership, started: Sequence[str]) -> bool:
    return bool(started)


_look = Keeping._look


@mutant("log-dropped-that-somebody-lacks", "an entry stays until all replicas have it", (Keeping, "_look"))
def _what_is_here(self: Keeping) -> None:
    _look(self)
    for log in self.machine.replicas.values():
        cut: Any = log
        cut.everywhere = log.position
