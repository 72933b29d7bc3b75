"""Mutants of how one view follows another: who may define and complete one, and what it takes along."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ordercast.core.view import View
from ordercast.membership.views import Defined, next_view
from ordercast.protocols.causal.casts import Key
from ordercast.protocols.isis import cut
from ordercast.protocols.isis.cut import Contribution, Ending
from ordercast.protocols.isis.delivery import Delivering
from ordercast.protocols.isis.era import Era, key_of
from ordercast.protocols.isis.flush import Flushing
from ordercast.protocols.isis.replica import Replica
from ordercast.protocols.isis.views import Views
from ordercast.sim.isis.membership import ViewMembership
from ordercast.sim.mutant import Mutant, register
from ordercast.v1.isis_pb2 import Cast, Flush, IsisRecord
from ordercast.v1.membership_pb2 import Configuration, DomainView, GroupView

VIEWS: list[Mutant] = []
mutant = partial(register, VIEWS)


# ----------------------------------------------------------------------------------------------- membership


@mutant("majority-of-a-view-that-was-only-defined", "of the last completed one", (ViewMembership, "next_view"))
def _majority_of_the_defined(self: ViewMembership, group: GroupView, completed: list[str]) -> Defined | None:
    defined = list(group.replicas)
    return next_view(self._defined(group), defined, self.placement[group.group], self.suspicion.alive)


@mutant("view-without-a-majority", "of the last completed one", (ViewMembership, "next_view"))
def _whoever_is_there(self: ViewMembership, group: GroupView, completed: list[str]) -> Defined | None:
    there = [name for name in completed if name in self.suspicion.alive]
    return next_view(self._defined(group), there, self.placement[group.group], self.suspicion.alive)


@mutant("completion-by-one", "a majority has the cut on disk", (ViewMembership, "may_complete"))
def _one_has_it(self: ViewMembership, members: list[str], have_cut: list[str]) -> bool:
    return bool(have_cut)


_complete = ViewMembership.complete


@mutant("completion-after-a-later-view-was-defined", "it is refused then", (ViewMembership, "complete"))
def _complete_late(self: ViewMembership, name: str, number: int) -> None:
    """The later one goes on, and ends this one: those who have its cut have another beginning of it."""
    group = self.groups[name]
    if not self.is_void(group, number):
        _complete(self, name, number)
    elif group.HasField("previous") and group.previous.number < number < group.configuration:
        members = self.defined[(name, number)].members
        group.previous.CopyFrom(Configuration(number=number, replicas=members))
        self.completed[name].append(number)
        self.change("view_completed", name)


VIEWS.append(
    Mutant(
        "installed-before-it-is-complete",
        "nobody acts in a view before reading its completion",
        ((Replica, "completed", property(lambda self: self.group.configuration)),),
    )
)


# ---------------------------------------------------------------------------------------------------- flush


VIEWS.append(
    Mutant(
        "taken-after-contributing",
        "from its contribution on a member takes nothing more",
        ((Replica, "is_sealed", property(lambda self: False)),),
    )
)


@mutant("unstable-casts-not-forwarded", "5.5", (Flushing, "forward"))
def _forward_nothing(self: Flushing, view: int, casts: Iterable[Cast], to: list[str]) -> None:
    pass


_forward = Flushing.forward


@mutant("forwarded-taken-as-stable", "5.5: forwarding makes nothing stable", (Flushing, "forward"))
def _forward_once(self: Flushing, view: int, casts: Iterable[Cast], to: list[str]) -> None:
    """Whatever becomes of the view, or of the connection: it counts as being with everyone."""
    stable = self.__dict__.setdefault("stable", {})
    fresh = {(cast.group, cast.view, key_of(cast.key)): cast for cast in casts}
    _forward(self, view, [cast for name, cast in fresh.items() if name not in stable], to)
    stable.update(fresh)


_flush_of = Flushing.flush_of


@mutant("casts-of-who-goes-forgotten", "5.5: its messages are everyone's", (Flushing, "flush_of"))
def _without_who_goes(self: Flushing, replica: Replica) -> Flush:
    flush = _flush_of(self, replica)
    attempt = replica.attempt
    assert attempt is not None
    if not flush.behind:
        goes = [index for index, name in enumerate(attempt.members) if name not in replica.group.replicas]
        for member in goes:
            flush.received[member] = flush.settled_counts[member]
        kept = [(p, k) for p, k in zip(flush.positions, flush.keys, strict=True) if k.member not in goes]
        flush.positions[:] = [position for position, _ in kept]
        del flush.keys[:]
        flush.keys.extend(key for _, key in kept)
    return flush


_compute = cut.compute


@mutant("known-positions-ignored-by-the-cut", "known positions first", (cut, "compute"))
def _by_causality_alone(contributions: Sequence[Contribution], *args: Any) -> Ending:
    return _compute([replace(c, places={}) for c in contributions], *args)


@mutant("orphans-in-the-cut", "the union less orphans", (cut, "compute"))
def _with_orphans(contributions: Sequence[Contribution], group: str, *args: Any) -> Ending:
    return _compute(contributions, "", *args)


# ----------------------------------------------------------------------------------------------- installing


_drain_first = Delivering._drain_first


@mutant("rest-of-the-cut-dropped-on-install", "5.5: delivered first", (Delivering, "_drain_first"))
def _drop_the_rest(self: Delivering, replica: Replica) -> bool:
    if replica.eras[0].is_closed:
        replica.eras.popleft()
        self._installed(replica)
        return True
    return _drain_first(self, replica)


_start = Replica.start


@mutant("vector-time-goes-on-in-the-next-view", "5.5: VT fields begin at 0", (Replica, "start"))
def _counts_go_on(
    self: Replica, view: int, members: tuple[str, ...], lives: dict[str, int], incarnation: int
) -> None:
    """What came of the others counts on; what we send does not."""
    before = self.eras[-1] if self.eras else None
    _start(self, view, members, lives, incarnation)
    if before is not None and self.eras and self.eras[-1].view == view:
        era = self.eras[-1]
        for name in era.others:
            if name in before.members:
                index, count = era.members.index(name), before.received[before.members.index(name)]
                era.received[index] = era.delivered[index] = count


_view = View.__init__


@mutant("casts-name-what-was-heard", "they name the last change of groups", (View, "__init__"))
def _changed_by_whatever_was_heard(self: View, view: DomainView) -> None:
    _view(self, view)
    self.changed = self.number


# -------------------------------------------------------------------------------- what is over once all are there


_collect_times = Views._collect_times


@mutant("old-time-dropped-before-all-have-installed", "6.4: by views", (Views, "_collect_times"))
def _drop_what_shrank(self: Views, view: View) -> None:
    _collect_times(self, view)
    for known in (self.machine.known.times, self.machine.known.carried):
        for name in [name for name, time in known.items() if not time.counts]:
            del known[name]


@mutant("dropped-from-logs-while-a-view-begins", "until all have installed it", (Replica, "retained_from"))
def _what_all_members_have(self: Replica) -> int:
    era = self.installed
    return 0 if era is None or self.copied is not None else era.settled


# ---------------------------------------------------------------------------------------- who was down, or out


_saved_era = Views._saved_era


@mutant("pending-discarded-at-a-restart", "nobody discards: the disk counts", (Views, "_saved_era"))
def _nothing_saved(
    self: Views,
    replica: Replica,
    members: tuple[str, ...],
    found: IsisRecord,
    casts: dict[Key, Cast],
    places: dict[int, Key],
) -> Era:
    return _saved_era(self, replica, members, found, {}, {})


_leave = Views._leave


@mutant("excluded-keeps-its-tail", "the log is the cut's, not only as long", (Views, "_leave"))
def _keep_the_tail(self: Views, replica: Replica) -> None:
    """What it had beyond its log is as good as any log of that length."""
    era = replica.ending
    while era is not None and era.places.get(replica.position) in era.casts:
        self.machine.log.append(replica, era.casts[era.places[replica.position]], reports=False)
        self.machine.changes.append(replica.position_record())
    _leave(self, replica)


_load = Views._load


def _load_and_go_on(self: Views, replica: Replica) -> None:
    """A restarted process takes part in the view that means the life before."""
    _load(self, replica)
    if replica.saved is not None and replica.group.configuration == replica.saved.view:
        era, replica.saved = replica.saved, None
        era.delivered, era.sent = list(era.received), era.received[era.me]
        replica.eras.append(era)
        self.entered(replica)


def _any_life(self: Era, process: str, incarnation: int) -> int | None:
    return self.members.index(process) if process in self.members else None


VIEWS.append(
    Mutant(
        "another-life-goes-on-in-the-view",
        "a view means lives",
        ((Era, "index_of", _any_life), (Views, "_load", _load_and_go_on)),
    )
)
