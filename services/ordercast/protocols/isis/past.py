"""What precedes a cast, and what a client has seen: times of groups, and what is not settled among them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ordercast.core.view import View
from ordercast.protocols.causal import times
from ordercast.protocols.causal.times import Time, Times
from ordercast.v1.isis_pb2 import Cast, CastStamp, Seen


@dataclass(slots=True)
class Stamp:
    """What precedes a cast: what its sender sent and delivered, and what others told it of."""

    times: Times = field(default_factory=dict)
    carried: Times = field(default_factory=dict)
    #: Of a client's token, and of nothing else: groups of whose messages to several groups, up to that time, some
    #: may not be cast everywhere; and groups of which all of those are, and the times name all their casts.
    open: dict[str, None] = field(default_factory=dict)
    confirmed: dict[str, None] = field(default_factory=dict)

    def copy(self) -> "Stamp":
        return Stamp(times.copy_of(self.times), times.copy_of(self.carried), dict(self.open), dict(self.confirmed))

    def merge(self, other: "Stamp") -> None:
        if self.open or self.confirmed or other.open or other.confirmed:
            self._merge_marks(other)
        times.merge(self.times, other.times)
        times.merge(self.carried, other.carried)

    def _merge_marks(self, other: "Stamp") -> None:
        names = sorted({**self.open, **self.confirmed, **other.open, **other.confirmed})
        pairs = ((self, other), (other, self))
        open_ = [
            name for name in names if any(name in one.open and not two.settles(name, one) for one, two in pairs)
        ]
        confirmed = [
            name
            for name in names
            if name not in open_ and any(one._confirms_for_both(name, two) for one, two in pairs)
        ]
        self.open, self.confirmed = dict.fromkeys(open_), dict.fromkeys(confirmed)

    def settles(self, group: str, other: "Stamp") -> bool:
        """What is open in the other one is confirmed in this one.

        A time that covers it is not enough, for a stamp names casts of a group whose predecessors nobody joined:
        those of a confirmation. m is for b and d, and open in d; n is for a and d, behind m in d, and confirmed.
        Whoever reads n in a hears of its cast in d, which covers m's, and nothing of where m is in b.
        """
        mine, theirs = self.times.get(group, Time()), other.times.get(group, Time())
        return group in self.confirmed and mine.covers(theirs)

    def _confirms_for_both(self, group: str, other: "Stamp") -> bool:
        if group not in self.confirmed:
            return False
        mine, theirs = self.times.get(group, Time()), other.times.get(group, Time())
        return group in other.confirmed or mine.covers(theirs)

    def all(self) -> Times:
        """Both: what must be delivered first."""
        if not self.carried:
            return self.times
        both = times.copy_of(self.times)
        times.merge(both, self.carried)
        return both


def collect(known: Times, view: View) -> None:
    """[6.4] Not by age, for a clock is no argument. What a later view covers shrinks to that view's number, and is
    dropped when all of its members have installed it.
    """
    for name in list(known):
        group = view.groups.get(name)
        if group is None:
            del known[name]
            continue
        completed = group.former.number if group.former is not None else group.configuration
        if known[name].view < completed:
            known[name] = Time(completed, {})
        time = known[name]
        if not time.counts and group.former is None and not group.starting and time.view <= completed:
            del known[name]


def stamp_from(message: Cast | CastStamp | Seen) -> Stamp:
    stamp = Stamp(times.decode(message.times), times.decode(message.carried))
    if isinstance(message, Seen) and (message.open or message.confirmed):
        stamp.open = dict.fromkeys(sorted(message.open))
        stamp.confirmed = dict.fromkeys(sorted(set(message.confirmed).difference(message.open)))
    return stamp


def seen_from(stamp: Stamp, epoch: int) -> Seen:
    seen = Seen(times=times.encode(stamp.times), carried=times.encode(stamp.carried), epoch=epoch)
    if stamp.open or stamp.confirmed:
        seen.open.extend(sorted(stamp.open))
        seen.confirmed.extend(sorted(stamp.confirmed))
    return seen


def merged(seen: Sequence[Seen]) -> Seen:
    """One for all that each of them stands for."""
    together = Stamp()
    for one in seen:
        together.merge(stamp_from(one))
    return seen_from(together, max((one.epoch for one in seen), default=0))
