"""Mutants of what happens within a view: vector time, the token holder's order, stability, and several groups."""

from dataclasses import replace
from functools import partial
from typing import Any

from ordercast.core.ids import CLOCK_MAX
from ordercast.core.machine import Receive, Send
from ordercast.core.quorums import majority
from ordercast.protocols.isis import times
from ordercast.protocols.isis.delivery import Delivering
from ordercast.protocols.isis.epochs import Epochs
from ordercast.protocols.isis.era import Era, key_of
from ordercast.protocols.isis.ordering import Ordering
from ordercast.protocols.isis.parts import Parts, Spread
from ordercast.protocols.isis.receiving import Receiving
from ordercast.protocols.isis.records import Key
from ordercast.protocols.isis.replica import Replica
from ordercast.protocols.isis.settings import Causality
from ordercast.protocols.isis.speaking import Need, Speaking
from ordercast.protocols.isis.stability import Stabilising
from ordercast.protocols.isis.telling import Telling
from ordercast.protocols.isis.times import Stamp, Time, Times
from ordercast.sim.mutant import Mutant, register
from ordercast.v1.isis_pb2 import GroupTime, Resume, SetsOrder

CASTS: list[Mutant] = []
mutant = partial(register, CASTS)


# ---------------------------------------------------------------------------------------------- vector time


@mutant("one-entry-of-the-vector-ignored", "5.1 step 2: every member", (Era, "precedes_is_delivered"))
def _without_the_first(self: Era, key: Key) -> bool:
    if key[1] != self.delivered[key[0]] + 1:
        return False
    time = self.times[key].get(self.group)
    if time is None or not time.counts:
        return time is None or time.is_covered(self.view, self.delivered)
    ignored = min(time.counts)
    rest = {member: count for member, count in time.counts.items() if member != ignored}
    return Time(time.view, rest).is_covered(self.view, self.delivered)


@mutant("only-the-own-group-looked-at", "rule 2.3'", (Delivering, "has_delivered"))
def _no_other_group(self: Delivering, stamp: Times, besides: str = "") -> bool:
    return True


@mutant("newer-views-time-taken-as-satisfied", "a time of a newer view waits for it", (Time, "is_covered"))
def _any_other_view(self: Time, view: int, counts: Any) -> bool:
    return self.view != view or all(count <= counts[member] for member, count in self.counts.items())


_is_deliverable = Delivering.is_deliverable


@mutant("own-casts-delivered-at-once", "5.1 across groups", (Delivering, "is_deliverable"))
def _own_at_once(self: Delivering, replica: Replica, era: Era, key: Key) -> bool:
    if key[0] == era.me and not era.casts[key].total and not era.is_closed:
        return key[1] == era.delivered[era.me] + 1
    return _is_deliverable(self, replica, era, key)


_encode = times.encode


@mutant("changed-field-left-out", "5.4: only what has not changed", (times, "encode"))
def _without_the_last(stamp: Times, known: Times | None = None) -> list[GroupTime]:
    result = _encode(stamp, known)
    for message in result:
        before = known.get(message.group) if known is not None else None
        if before is not None and before.view == message.view:
            del message.members[-1], message.counts[-1]
    return result


# -------------------------------------------------------------------------------------------------- ABCAST


_on_sets_order = Ordering.on_sets_order


def _order_is_delivered(ordering: Ordering, message: SetsOrder) -> bool:
    replica = ordering.machine.replicas.get(message.group)
    era = replica.current if replica is not None else None
    return era is None or era.view != message.view or all(era.is_delivered(key_of(key)) for key in message.keys)


def _order_waits(self: Ordering, event: Receive) -> None:
    """Its time would be its holder's: what it lists is delivered there."""
    if _order_is_delivered(self, event.message):
        _on_sets_order(self, event)
    else:
        self.__dict__.setdefault("waiting", []).append(event)


_drain = Delivering.drain


def _drain_with_orders(self: Delivering) -> None:
    _drain(self)
    ordering = self.machine.ordering
    waiting, ordering.__dict__["waiting"] = ordering.__dict__.get("waiting", []), []
    for event in waiting:
        self.machine.ordering.on_sets_order(event)


CASTS.append(
    Mutant(
        "sets-order-in-vector-time",
        "sets-order is not a CBCAST",
        ((Ordering, "on_sets_order", _order_waits), (Delivering, "drain", _drain_with_orders)),
        seed=2,
    )
)


@mutant("abcast-at-its-position-before-its-past", "5.2 step 5: and rule 2'", (Delivering, "is_deliverable"))
def _by_position_alone(self: Delivering, replica: Replica, era: Era, key: Key) -> bool:
    cast = era.casts[key]
    if cast.total and key in era.place_of and key[1] == era.delivered[key[0]] + 1:
        return era.is_in_turn(key)
    return _is_deliverable(self, replica, era, key)


@mutant("new-holder-forgets-its-queue", "5.2: it orders what already waits", (Ordering, "take_over"), seed=4)
def _nothing_waits(self: Ordering, replica: Replica, era: Era) -> None:
    pass


@mutant("own-abcasts-ignored-when-crossing", "its own ABCASTs are delivered", (Speaking, "has_own_abcasts"))
def _whatever_is_ordered(self: Speaking, era: Era, need: Need) -> bool:
    return True


_start = Replica.start


@mutant("two-token-holders", "a view has one token", (Replica, "start"))
def _still_the_holder(
    self: Replica, view: int, members: tuple[str, ...], lives: dict[str, int], incarnation: int
) -> None:
    """Who held the token takes itself for the holder still, though it was suspected, wrongly, and is back."""
    before = self.__dict__.get("holder")
    _start(self, view, members, lives, incarnation)
    if self.eras and self.eras[-1].view == view:
        era = self.eras[-1]
        if before == self.process:
            era.token.holder = era.me
        self.__dict__["holder"] = era.members[era.token.holder]


# ---------------------------------------------------------------------------------------- stability and the log


def _places_alone(self: Era, position: int) -> bool:
    key = self.places.get(position)
    return key is not None and key in self.casts and self.placed_by(position) >= majority(len(self.members))


def _casts_alone(self: Era, position: int) -> bool:
    key = self.places.get(position)
    return key is not None and key in self.casts and self.synced_by(key) >= majority(len(self.members))


mutant("shown-before-a-majority-has-the-cast", "visible", (Era, "is_visible"))(_places_alone)
mutant("shown-before-a-majority-has-the-position", "visible", (Era, "is_visible"))(_casts_alone)


_flush = Stabilising.flush


@mutant("told-before-it-is-on-disk", "rows are of disks", (Stabilising, "flush"))
def _tell_at_once(self: Stabilising) -> None:
    before = len(self.machine.then)
    _flush(self)
    sends: list[Send] = self.machine.then[before:]
    del self.machine.then[before:]
    self.machine.out += sends


@mutant("buffers-never-freed", "5.3", (Era, "is_everywhere"))
def _nowhere(self: Era, position: int) -> bool:
    return False


# -------------------------------------------------------------------------------------- what comes, and is sent


@mutant("taken-though-it-does-not-follow", "what a stream lacks is not overtaken", (Speaking, "follows"))
def _whatever_comes(self: Speaking, event: Receive) -> bool:
    return True


CASTS.append(
    Mutant(
        "casts-while-somebody-is-being-told",
        "7.2: the sender casts nothing meanwhile",
        ((Telling, "is_inhibited", property(lambda self: False)),),
    )
)


_on_resume = Receiving.on_resume


@mutant("nothing-sent-again-on-a-new-connection", "resume from what the peer has", (Receiving, "on_resume"))
def _what_was_sent_has_come(self: Receiving, event: Receive) -> None:
    resume: Resume = event.message
    all_ = Resume(group=resume.group, view=resume.view, received=CLOCK_MAX, positions=CLOCK_MAX)
    _on_resume(self, replace(event, message=all_))


# ------------------------------------------------------------------------------------------- several groups


_is_safe = Speaking.is_safe


@mutant("speaks-elsewhere-before-k-disks-have-it", "6.5", (Speaking, "is_safe"))
def _safe_with_own_abcasts(self: Speaking, need: Need) -> bool:
    replica = self.machine.replicas.get(need.group)
    if replica is None or replica.view > need.view or not replica.eras:
        return True
    return self.has_own_abcasts(replica.eras[-1], need)


_needs = Speaking.needs


@mutant("speaks-elsewhere-before-k-disks-have-the-order", "6.5: the order too", (Speaking, "needs"))
def _any_order(self: Speaking, group: str) -> list[Need]:
    return [replace(need, positions=0) for need in _needs(self, group)]


@mutant("conservative-rule-skipped", "6.7", (Speaking, "is_safe"))
def _as_with_times(self: Speaking, need: Need) -> bool:
    return self.machine.settings.causality == Causality.CONSERVATIVE or _is_safe(self, need)


_carry = Speaking.carry


@mutant("what-clients-saw-left-out", "no rule but times covers it", (Speaking, "carry"))
def _carry_nothing(self: Speaking, stamp: Stamp, seen: Times) -> None:
    if self.machine.settings.causality == Causality.CONSERVATIVE:
        times.merge(stamp.times, seen)
    else:
        _carry(self, stamp, seen)


@mutant("epoch-not-raised-when-speaking-elsewhere", "6.7", (Epochs, "about_to_speak"))
def _same_epoch(self: Epochs, group: str) -> None:
    pass


_epochs_on_view = Epochs.on_view


@mutant("epoch-not-raised-on-leave", "6.7", (Epochs, "on_view"), (Speaking, "_completed"))
def _same_epoch_elsewhere(self: Epochs | Speaking, *group: str) -> int:
    """The number of the view that ended without it says the same as the epoch: so neither is told."""
    if isinstance(self, Speaking):
        replica = self.machine.replicas.get(group[0])
        return replica.view if replica is not None else 0
    self._member_of = {}
    _epochs_on_view(self)
    return 0


# ---------------------------------------------------------------------------------- messages to several groups


@mutant("part-never-handed-on", "a message to several groups is all or nothing", (Parts, "_relay"))
def _keep_to_itself(self: Parts, spread: Spread) -> None:
    spread.tries += 1
    spread.due = self.machine.now + self.machine.settings.silence_s


@mutant("only-the-origin-hands-on", "every holder hands on", (Parts, "on_tick"))
def _leave_it_to_the_origin(self: Parts) -> None:
    pass


@mutant("speaks-on-before-all-parts-are-confirmed", "it comes behind all of them", (Parts, "unconfirmed"))
def _wait_for_no_part(self: Parts, group: str) -> dict[bytes, None]:
    return {}


@mutant("confirmed-part-forgotten-before-it-is-delivered", "whoever delivers one later", (Parts, "_knows_all"))
def _know_one_part(self: Parts, id_: bytes) -> None:
    pass


@mutant("part-that-was-dropped-taken-as-cast", "all or nothing", (Parts, "left_out_of"))
def _in_some_view(self: Parts, group: str) -> None:
    pass
