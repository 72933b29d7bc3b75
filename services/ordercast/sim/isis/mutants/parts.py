"""Mutants of how clients and newcomers, who have no part of a message to several groups, come to follow it."""

from functools import partial
from typing import Any

from ordercast.protocols.causal.times import Time, Times
from ordercast.protocols.isis.asking import Asking
from ordercast.protocols.isis.confirmed import Confirmed
from ordercast.protocols.isis.flush import Flushing
from ordercast.protocols.isis.past import Stamp
from ordercast.protocols.isis.replica import Replica
from ordercast.sim.mutant import Mutant, register
from ordercast.v1.isis_pb2 import Cut, Flush, Seen

PARTS: list[Mutant] = []
mutant = partial(register, PARTS)

# --------------------------------------------------------------------------------------------------- clients


_read = Confirmed.read


@mutant("reads-say-nothing-of-open-messages", "what is read names what is open", (Confirmed, "read"))
def _nothing_open(self: Confirmed, replica: Replica, besides: bytes = b"") -> Seen | None:
    seen = _read(self, replica, besides)
    if seen is not None:
        seen.ClearField("open")
    return seen


@mutant("reads-say-nothing-of-confirmed-messages", "what is read names all casts", (Confirmed, "read"))
def _the_entry_alone(self: Confirmed, replica: Replica, besides: bytes = b"") -> Seen | None:
    seen = _read(self, replica, besides)
    return Seen(open=seen.open, confirmed=seen.confirmed) if seen is not None else None


@mutant("a-copied-log-says-nothing-is-open", "who is in no view cannot tell", (Confirmed, "read"))
def _as_far_as_known(self: Confirmed, replica: Replica, besides: bytes = b"") -> Seen | None:
    return _read(self, replica, besides) if replica.eras else None


@mutant("open-group-not-asked-about", "who speaks for a token with an open group asks", (Asking, "about"))
def _ask_nothing(self: Asking, seen: Stamp, group: str) -> Times:
    return {}


_answered = Asking._answered


@mutant("answer-without-the-casts", "the casts join the stamp", (Asking, "_answered"))
def _only_that_they_are_cast(self: Asking, group: str, until: Time, stamp: Times) -> None:
    _answered(self, group, until, {})


@mutant(
    "answered-before-it-is-delivered", "who answers has all that precedes the time", (Replica, "has_delivered")
)
def _as_things_are(self: Replica, time: Time) -> bool:
    return bool(self.eras)


@mutant("times-alone-settle-what-is-open", "only a mark settles what is open", (Stamp, "settles"))
def _covered_is_settled(self: Stamp, group: str, other: Stamp) -> bool:
    mine, theirs = self.times.get(group, Time()), other.times.get(group, Time())
    return group not in self.open and mine.covers(theirs)


@mutant("confirmed-ahead-of-what-is-delivered", "what precedes may be open", (Confirmed, "_is_ahead"))
def _never_ahead(self: Confirmed, *_: Any) -> bool:
    return False


# ------------------------------------------------------------------------------------------------- newcomers


_say_parts = Flushing._say_parts


@mutant("newcomer-hears-of-no-open-messages", "the cut has the open messages", (Flushing, "_say_parts"))
def _say_nothing_open(self: Flushing, replica: Replica, view: int, message: Flush | Cut, to: list[str]) -> None:
    before = len(self.machine.out)
    _say_parts(self, replica, view, message, to)
    del self.machine.out[before:]
    message.ClearField("open")


@mutant("newcomer-hears-of-no-confirmed-messages", "and what is known of the others", (Flushing, "_say_parts"))
def _say_nothing_confirmed(
    self: Flushing, replica: Replica, view: int, message: Flush | Cut, to: list[str]
) -> None:
    _say_parts(self, replica, view, message, to)
    message.ClearField("confirmed")


@mutant("confirmed-messages-forgotten-at-a-restart", "durable with the log", (Confirmed, "load"))
def _begin_without(self: Confirmed, *_: Any) -> None:
    pass
