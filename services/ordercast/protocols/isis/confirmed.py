"""What a log says of messages to several groups: where all of their parts are, or that some may not be cast yet.

Whoever reads m in group a, and answers in group b, must find the answer behind m there. So a reader of a is told,
with what it reads, where the parts of all messages to several groups are that are in the log up to there. If some
of them are not known to be cast in all of their groups, it is told that the group is *open* (`Seen.open`), and
whoever speaks for that reader elsewhere asks first (asking.py).

The casts of all those messages are kept as one time for each group, and not by message: so they are no longer than
a stamp. As in stamps, a time of a view that is over shrinks to the view's number, and is dropped when all members
have installed a later one. They are on disk with the log that they are about. A reader may be told of messages
behind the place that it read. Those are cast, so nothing waits for them in vain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ordercast.core.view import View
from ordercast.protocols.causal import times
from ordercast.protocols.causal.times import Time, Times
from ordercast.protocols.celllog.idempotence import Record
from ordercast.protocols.isis import past, records
from ordercast.protocols.isis.past import Stamp
from ordercast.protocols.isis.replica import Replica
from ordercast.v1.isis_pb2 import Seen

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis


@dataclass(slots=True)
class Joined:
    """Of the messages in one group's log whose parts are all cast: where all parts are."""

    times: Times = field(default_factory=dict)
    epoch: int = 0

    def message(self) -> Seen:
        return Seen(times=times.encode(self.times), epoch=self.epoch)


class Confirmed:
    def __init__(self, machine: "Isis") -> None:
        self.machine = machine
        #: By group that this process has a log of. A group without such messages has no entry.
        self.joined: dict[str, Joined] = {}

    def add(self, group: str, stamp: Times, epoch: int) -> None:
        """All parts of a message in the group's log are there."""
        joined = self.joined.setdefault(group, Joined())
        times.merge(joined.times, stamp)
        joined.epoch = max(joined.epoch, epoch)
        self.machine.changes.append((records.confirmed(group), joined.message().SerializeToString()))

    def hear(self, group: str, seen: Seen) -> None:
        """From somebody who has the log that we begin with: it counts as if we had delivered it."""
        stamp = times.decode(seen.times)
        if stamp or seen.epoch:
            self.add(group, stamp, seen.epoch)
            self._know(stamp, seen.epoch)

    def load(self, group: str, seen: Seen) -> None:
        """From disk: what an earlier life knew when it put the log there."""
        self.joined[group] = Joined(times.decode(seen.times), seen.epoch)
        self._know(self.joined[group].times, seen.epoch)

    def _know(self, stamp: Times, epoch: int) -> None:
        self.machine.epochs.rise(epoch)
        self.machine.speaking.carry(self.machine.known, stamp)

    def of(self, group: str) -> Seen:
        """For somebody who begins with our log, or who asked."""
        joined = self.joined.get(group)
        return joined.message() if joined is not None else Seen()

    def forget(self, group: str) -> list[Record]:
        return [(records.confirmed(group), None)] if self.joined.pop(group, None) is not None else []

    def collect(self, view: View) -> None:
        """[6.4] As with all that is known: see past.collect."""
        for name in list(self.joined):
            past.collect(self.joined[name].times, view)
            if not self.joined[name].times and not self.machine.parts.open_in(name):
                self.machine.changes += self.forget(name)

    # ------------------------------------------------------------------------------------------- for readers

    def read(self, replica: Replica, besides: bytes = b"") -> Seen | None:
        """What a reader of the log has seen besides the entries that it read; None if that is nothing.

        Who is in no view has a log that it copied, and nobody has told it what is open there. `besides` is the
        message itself, whose other parts the reader has seen too.
        """
        group = replica.name
        is_open = not replica.eras or any(id_ != besides for id_ in self.machine.parts.open_in(group))
        joined = self.joined.get(group)
        if joined is None:
            return Seen(open=[group]) if is_open else None
        seen = joined.message()
        (seen.open if is_open or self._is_ahead(replica, joined) else seen.confirmed).append(group)
        return seen

    def _is_ahead(self, replica: Replica, joined: Joined) -> bool:
        """It names a cast of the group that we have not delivered there, and what precedes that may be open."""
        return not replica.has_delivered(joined.times.get(replica.name, Time()))


def seen_with(seen: Seen, read: Seen) -> Seen:
    """What a reader has seen: the entries, and what their log says besides.

    The marks are about the entries, and have no time of their own.
    """
    if not read.ByteSize():
        return seen
    stamp, other = past.stamp_from(seen), past.stamp_from(read)
    together = Stamp(times.copy_of(stamp.times), stamp.carried)
    times.merge(together.times, other.times)
    together.open = {**stamp.open, **other.open}
    together.confirmed = {
        group: None for group in (*stamp.confirmed, *other.confirmed) if group not in together.open
    }
    return past.seen_from(together, max(seen.epoch, read.epoch))


def settle(seen: Stamp, presented: Stamp, groups: Sequence[str]) -> None:
    """A message to these groups was spoken for somebody who presented this, and is part of what he has seen now.

    What was open then was asked for, and joined the message's stamp, unless it was for that one group.
    """
    for group in presented.open:
        now, then = seen.times.get(group, Time()), presented.times.get(group, Time())
        if group in seen.open and list(groups) != [group] and then.covers(now):
            del seen.open[group]
            seen.confirmed[group] = None
