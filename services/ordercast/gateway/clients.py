"""Who is at the other end, and how much of a gateway's attention each client has at a time.

A client is an identity, where certificates name one; otherwise it is a connection. All its streams and calls share
one budget: however many it opens, a gateway looks at so many of its requests, and then at somebody else's.
"""

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import Iterator
from typing import Any

from ordercast.gateway.intake import belongs_to
from ordercast.runtime.host import Host
from ordercast.runtime.tls import client_identity

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
        identity = client_identity(context)
        key = f"connection {context.peer()}" if identity is None else f"identity {identity}"
        client = self._clients.get(key)
        if client is None:
            # What is remembered of a client outlives its connection, so its name says who it belongs to.
            owner = belongs_to(identity, context.peer())
            client = self._clients[key] = Client(f"client/{owner}.{next(self._numbers)}", identity)
        client.calls += 1
        try:
            yield client
        finally:
            client.calls -= 1
            if not client.calls:
                del self._clients[key]
