"""Messages for views that we have not heard of: membership tells everyone at another time.

They are kept by group and view until it does. There is a limit to all of them together; and a caller says of
which messages a few are enough, since whoever sent them is asked again when the view is here.
"""

import math

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.machine import Receive

#: Of all groups and views, also what a change of view consists of; and so many views ahead of the latest.
EARLY_TOTAL_MAX = 1 << 16
VIEWS_AHEAD_MAX = 1024
#: Of one group and view. Beyond that they are dropped, and asked for again when the view is here.
EARLY_MAX = 4096

#: A group and a view of it.
Place = tuple[str, int]


class Early:
    def __init__(self) -> None:
        self.events: dict[Place, list[Receive]] = {}
        self.kept = 0
        #: Those of which something was dropped.
        self.dropped: dict[Place, None] = {}

    def keep(self, event: Receive, place: Place, at_most: float = math.inf) -> None:
        if self.kept >= EARLY_TOTAL_MAX or len(self.dropped) >= EARLY_TOTAL_MAX:
            raise RemoteProtocolError("too much of views that nobody has told us of")
        kept = self.events.setdefault(place, [])
        if len(kept) < at_most:
            self.kept += 1
            kept.append(event)
        else:
            self.dropped[place] = None

    def places(self) -> list[Place]:
        return [*self.events, *(place for place in self.dropped if place not in self.events)]

    def forget(self, place: Place) -> None:
        self.kept -= len(self.events.pop(place, ()))
        self.dropped.pop(place, None)

    def take(self, group: str, view: int) -> list[Receive]:
        """We have heard of the view: what is for it. What is for earlier ones never counts any more."""
        for place in self.places():
            if place[0] == group and place[1] < view:
                self.forget(place)
        events = self.events.pop((group, view), [])
        self.kept -= len(events)
        return events
