"""What is always so between two steps, and what the README argues with.

It is so whatever others say: what they must not say is refused, and breaks nothing here. Each is a few comparisons
for a view, however much is kept of it: the simulator looks after every step.
"""

from typing import TYPE_CHECKING

from ordercast.core.errors import InvariantBroken
from ordercast.protocols.isis.era import Era
from ordercast.protocols.isis.replica import Replica

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis


def check(machine: "Isis") -> None:
    for replica in machine.replicas.values():
        _check_views(replica)
        for era in replica.eras:
            _check_delivered(era)
            if not era.is_closed:
                _check_kept(era)
                _check_rows(era)
        installed = replica.installed
        if installed is not None:
            _check_log(replica, installed)


def _broken(group: str, view: int, what: str) -> InvariantBroken:
    return InvariantBroken(f"{group} in view {view}: {what}")


def _check_views(replica: Replica) -> None:
    """Nobody acts in a view that is not complete; of the views that still deliver, all but the last have ended."""
    if replica.view > replica.completed:
        raise _broken(replica.name, replica.view, f"only {replica.completed} is complete")
    view = 0
    for era in replica.eras:
        if not view < era.view <= replica.view:
            raise _broken(replica.name, replica.view, f"{era.view} is delivered behind {view}")
        view = era.view
        if not era.is_closed and era is not replica.eras[-1]:
            raise _broken(era.group, era.view, "it has not ended, but a later one has begun")


def _check_delivered(era: Era) -> None:
    """Casts come and are delivered without gaps; what is dropped was delivered, and one place is one cast's."""
    for settled, delivered, received in zip(era.settled_counts, era.delivered, era.received, strict=True):
        if not settled <= delivered <= received:
            what = f"{settled} casts of a member are dropped, {delivered} delivered, and {received} came"
            raise _broken(era.group, era.view, what)
    if era.settled > era.ordered or era.passed > era.ordered:
        what = f"{era.settled} is dropped and {era.passed} passed, but the order known up to {era.ordered}"
        raise _broken(era.group, era.view, what)
    if len(era.places) != len(era.place_of):
        raise _broken(era.group, era.view, "two casts have one place, or one has two")


def _check_kept(era: Era) -> None:
    """[5.3] All that came is kept until it is everywhere, and no longer; own casts are kept as they are sent."""
    came = sum(era.received) - sum(era.settled_counts)
    if len(era.casts) != came:
        raise _broken(era.group, era.view, f"{len(era.casts)} casts are kept of {came} that are not everywhere")
    if era.received[era.me] != era.sent:
        raise _broken(era.group, era.view, f"{era.sent} were cast here, and {era.received[era.me]} kept")


def _check_rows(era: Era) -> None:
    """On our disk is nothing that did not come, and what was dropped is on every disk, as far as others say."""
    mine = era.rows[era.me]
    if mine.positions > era.ordered or any(map(int.__gt__, mine.counts, era.received)):
        raise _broken(era.group, era.view, f"{mine} is on our disk, but did not come")
    # Counts begin at 0 and only rise, so a row can only be short of members of whom something was dropped. In a
    # wide view those are few, and comparing every row with every member would take longer than the step itself.
    dropped = [(index, count) for index, count in enumerate(era.settled_counts) if count]
    for row in era.rows:
        if row.positions < era.settled or any(row.counts[index] < count for index, count in dropped):
            raise _broken(era.group, era.view, f"what is below {era.settled} is dropped, and somebody has {row}")


def _check_log(replica: Replica, era: Era) -> None:
    """The log holds what is visible: all that is everywhere, and nothing whose place is not known."""
    if not era.settled <= replica.position <= era.ordered:
        what = f"the log ends at {replica.position}, and not between {era.settled} and {era.ordered}"
        raise _broken(era.group, era.view, what)
    token = era.token
    if token.holder == era.me and token.is_taken and not era.is_sealed and era.unplaced:
        raise _broken(era.group, era.view, f"the holder has given no place to {len(era.unplaced)} casts")
