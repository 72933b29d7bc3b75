"""How much of a gateway's attention each client has at a time.

Who a client is, callers.py says. All its streams and calls share one budget: however many it opens, a gateway
looks at so many of its requests, and then at somebody else's.
"""

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import Iterator
from typing import Any

from ordercast.gateway.callers import caller_of
from ordercast.runtime.driver.host import Host

#: Requests of one client that the machine has not judged.
UNJUDGED_MAX = 16


class Client:
    """One client, as long as a stream or call of it is open."""

    def __init__(self, name: str, identity: str | None) -> None:
        self.name = name
        self.identity = identity
        #: Streams and calls that are open.
        self.calls = 0
        #: Requests that were handed to the machine, each time with the event after which they are judged.
        self._handed: deque[tuple[int, int]] = deque()
        self._unjudged = 0
        self._turn = asyncio.Lock()

    async def room(self, host: Host, count: int) -> None:
        """Returns when so many requests more may be handed to the machine. Who came first is first."""
        async with self._turn:
            while self._unjudged and self._unjudged + count > UNJUDGED_MAX:
                if self._handed[0][0] > host.stepped:
                    await host.caught_up(self._handed[0][0])
                else:
                    self._unjudged -= self._handed.popleft()[1]

    def handed(self, host: Host, count: int) -> None:
        self._handed.append((host.goal, count))
        self._unjudged += count


class Clients:
    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}
        self._numbers = itertools.count(1)

    @contextlib.contextmanager
    def present(self, context: Any) -> Iterator[Client]:
        """The client of a call, while the call lasts."""
        caller = caller_of(context)
        client = self._clients.get(caller.turn)
        if client is None:
            # What is remembered of a client outlives its connection, so its name says who it belongs to.
            name = f"client/{caller.label}.{next(self._numbers)}"
            client = self._clients[caller.turn] = Client(name, caller.identity)
        client.calls += 1
        try:
            yield client
        finally:
            client.calls -= 1
            if not client.calls:
                del self._clients[caller.turn]
