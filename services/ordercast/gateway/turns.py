"""Whose messages leave next: clients take turns, so that what one of them piled up delays nobody else.

A client is whoever is at the other end of a connection, or has a certificate; it may have many streams and calls,
and as many producers as it makes up. The gateway's service names each stream after its client (`client/7/12` is of
`client/7`), so that the machine can tell.
"""

import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ordercast.gateway.pressure import Pressure
from ordercast.gateway.producer import WaitingRequest
from ordercast.gateway.settings import GatewaySettings


def client_of(source: str) -> str:
    """The client whose stream or call this is.

    >>> client_of("client/7/12"), client_of("c1")
    ('client/7', 'c1')
    """
    client, slash, _ = source.rpartition("/")
    return client if slash else source


#: More requests than have so many messages do not go together: while an envelope with all that a producer may have
#: under way is ordered, its client would have nothing to do.
MESSAGES_MOST = 512


class Refusals:
    """Of which producers something was refused, by the stream it came on, whose end has to look at these alone."""

    def __init__(self) -> None:
        self._producers: dict[str, dict[bytes, None]] = {}

    def add(self, source: str, producer: bytes) -> None:
        self._producers.setdefault(source, {})[producer] = None

    def drop(self, source: str, producer: bytes) -> None:
        producers = self._producers.get(source)
        if producers is not None:
            producers.pop(producer, None)
            if not producers:
                del self._producers[source]

    def take(self, source: str) -> list[bytes]:
        return list(self._producers.pop(source, ()))


class Fit(NamedTuple):
    """What goes into an envelope, and whether that is enough to leave at once, whatever else there is to do."""

    items: list[WaitingRequest]
    is_full: bool


def as_fit(
    items: Sequence[WaitingRequest],
    settings: GatewaySettings,
    pressure: Pressure,
    client: Callable[[WaitingRequest], str],
) -> Fit:
    """From the front of what each client has, so that no producer's message overtakes another.

    Who has least in the envelope is next. `client` has to be the same for all that is one producer's.
    """
    window = pressure.window
    room = window - pressure.under_way
    most = min(settings.envelope_messages_max, MESSAGES_MOST)
    enough = min(most, window / 2)
    count, size = sum(item.rows.messages for item in items), sum(item.size for item in items)
    if count <= min(most, room) and size <= settings.envelope_bytes_max:
        return Fit(list(items), count >= enough or size >= settings.envelope_bytes_max)
    by_client: dict[str, list[WaitingRequest]] = {}
    for item in items:
        by_client.setdefault(client(item), []).append(item)
    names = list(by_client)
    #: How much of each client is in the envelope, its place among them, and how many of its requests that are.
    turns = [(0, place, 0) for place in range(len(names))]
    taken = [0] * len(names)
    count = size = 0
    is_full = False
    while turns:
        had, place, index = heapq.heappop(turns)
        item = by_client[names[place]][index]
        if count or size:
            count_then, size_then = count + item.rows.messages, size + item.size
            if count_then > most or size_then > settings.envelope_bytes_max:
                is_full = True
                break
        is_beyond = count + item.cost > room and (pressure.under_way or count)
        if is_beyond and not pressure.may_leave(names[place], had, item.cost):
            continue
        count, size = count + item.rows.messages, size + item.size
        taken[place] = index + 1
        if taken[place] < len(by_client[names[place]]):
            heapq.heappush(turns, (had + item.cost, place, taken[place]))
    fit = [item for place, name in enumerate(names) for item in by_client[name][: taken[place]]]
    return Fit(fit, is_full or count >= enough or size >= settings.envelope_bytes_max)
