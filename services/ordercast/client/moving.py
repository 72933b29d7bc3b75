"""Messages that go to other cells than they were numbered for, or that wait to learn which those are.

A group that was deleted, and made again under its name, may live elsewhere. A gateway refuses what is numbered by
the cells of before, and stores none of it. So it is asked where the groups live now, and the messages get numbers
there, in the order of the publish calls. Only of a message with another copy under way nobody knows whether the
group of before has it.
"""

from typing import TYPE_CHECKING

from ordercast.client.errors import OrdercastError, ResourceExhausted
from ordercast.client.lane import H, Item, Lane
from ordercast.client.outcomes import unknown
from ordercast.client.types import Groups

if TYPE_CHECKING:
    from ordercast.client.session import Session


def placed(session: "Session[H]", found: list[tuple[Lane[H], Groups]]) -> None:
    """What waited without a place goes on in a lane."""
    for before, groups in found:
        items = [item for item in session.queue if item.lane is before]
        try:
            lane = session._lane(groups)
        except ResourceExhausted as error:
            session._give_up([(item, error) for item in items])
            continue
        for item in items:
            item.lane = lane
        lane.pending += len(items)
        if items and not lane.is_open:
            session._open(lane)


def refused(session: "Session[H]", lane: Lane[H], items: list[Item[H]], error: OrdercastError) -> None:
    """These sequences of a lane were refused, for their groups live elsewhere."""
    first, in_doubt = items[0].sequence, any(item.doubts for item in items)
    _go(session, items, error)
    session._mend(lane, first, in_doubt=in_doubt)


def opening_refused(session: "Session[H]", lane: Lane[H], error: OrdercastError) -> None:
    """It was to be opened in the name of groups that live elsewhere. Others may be left that it can be opened for;
    else the next publish tries again. The token is the same: it was not used.
    """
    lane.open_stream = 0
    items = [item for item in (*session.sent.values(), *session.queue) if item.lane is lane]
    here = [item for item in items if session.places.knows(item.groups)]
    _go(session, [item for item in items if not session.places.knows(item.groups)], error)
    if here:
        lane.groups = here[0].groups
    else:
        session.opening.pop(lane.cells, None)


def _go(session: "Session[H]", items: list[Item[H]], error: OrdercastError) -> None:
    gone = {item.ticket for item in items}
    session.queue = type(session.queue)(item for item in session.queue if item.ticket not in gone)
    waiting = []
    for item in items:
        session._remove(item)
        if item.doubts:
            session._settle(item, unknown(error.message))
            continue
        session.bytes += item.size
        item.lane = session.places.wait(item.groups)
        item.lane.pending += 1
        item.sequence = item.batch = 0
        item.alone = False
        waiting.append(item)
    session._queue_again(waiting)
