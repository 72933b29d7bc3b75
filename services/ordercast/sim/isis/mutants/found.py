"""Mutants that undo what campaigns once found missing, so that it would be found again."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from ordercast.core.submission import Seeing, Submitted
from ordercast.protocols.isis.era import Era
from ordercast.protocols.isis.flush import Attempt, Flushing
from ordercast.protocols.isis.records import Key
from ordercast.protocols.isis.replica import Replica
from ordercast.protocols.isis.speaking import Speaking, WaitingCast
from ordercast.protocols.isis.submission import IsisSubmission
from ordercast.protocols.isis.times import Stamp
from ordercast.sim.mutant import Mutant, register
from ordercast.v1.common_pb2 import Envelope
from ordercast.v1.isis_pb2 import Cut, Flush

FOUND: list[Mutant] = []
mutant = partial(register, FOUND)


# ------------------------------------------------------------------------------------ the token and its order


def _whoever_is_told(self: Era) -> bool:
    """Though what was ordered before may still come over a new connection."""
    return not self.is_sealed and self.token.holder == self.me


def _still_in_a_sealed_view(self: Era) -> bool:
    """What it orders now is in no contribution."""
    sealed, self.is_sealed = self.is_sealed, False
    try:
        return bool(_is_holder(self))
    finally:
        self.is_sealed = sealed


_is_holder = Era.__dict__["is_holder"].fget
FOUND += [
    Mutant(
        "token-taken-before-what-was-ordered-came",
        "whoever takes the token over has delivered what was ordered before",
        ((Era, "is_holder", property(_whoever_is_told)),),
        seed=9,
    ),
    Mutant(
        "orders-after-contributing",
        "nothing is ordered once a later view is defined",
        ((Era, "is_holder", property(_still_in_a_sealed_view)),),
    ),
]


@mutant(
    "promise-counts-before-what-was-sent-has-come", "6.7: nothing lower comes behind it", (Era, "promise"), seed=11
)
def _at_once(self: Era, member: int, sent: int, epoch: int) -> None:
    self.epochs[member] = max(self.epochs[member], epoch)


# -------------------------------------------------------------------------------------- messages to several groups


_on_answered = IsisSubmission.on_answered


@mutant("gateway-has-seen-one-part", "who has a receipt has seen all parts", (IsisSubmission, "on_answered"))
def _the_first_alone(self: IsisSubmission, submitted: Submitted, producers: Sequence[Seeing]) -> None:
    delivered, first = submitted.delivered, submitted.groups[0]
    submitted.delivered = {first: delivered[first]}
    _on_answered(self, submitted, producers)
    submitted.delivered = delivered


@mutant(
    "part-waits-behind-what-waits-for-it", "a part that is handed on waits for nothing", (Speaking, "submit_part")
)
def _in_its_turn(self: Speaking, group: str, envelope: Envelope, stamp: Stamp, epoch: int) -> None:
    self.machine.epochs.rise(epoch)
    if (group, envelope.header.id) not in self.ids:
        self._enqueue(WaitingCast(group, envelope, False, stamp, [], is_part=True))


# -------------------------------------------------------------------------------------------------- how views end


_close = Flushing._close


@mutant(
    "overtaken-by-what-came-behind-it", "what is behind a lost answer is dropped with it", (Flushing, "_close")
)
def _go_on(self: Flushing, era: Era, replica: Replica, first: int, keys: list[Key]) -> None:
    machine: Any = self.machine
    machine.left_out_of = lambda group: None
    _close(self, era, replica, first, keys)
    del machine.left_out_of


_lacks = Flushing._lacks


@mutant("waits-to-be-told-what-it-said", "what we hold is known, or confirmed meanwhile", (Flushing, "_lacks"))
def _also_its_own(self: Flushing, attempt: Attempt, said: Iterable[Flush | Cut]) -> bool:
    messages = list(said)
    if not any(isinstance(message, Cut) for message in messages):
        messages = [flush for flush in attempt.flushes.values() if not flush.behind]
    return _lacks(self, attempt, messages)
