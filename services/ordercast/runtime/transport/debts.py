"""Slows down a client whose calls come to nothing, one after the other.

A call that is refused, or given up by its caller, costs the server nearly as much as one that is of use, and a
client can make thousands of them in a second. A few are everybody's right: so many are free. After that the
client's calls begin at intervals, and together cost a small part of a processor. Calls of other clients do not
wait, and the client itself is as free as before when it has made none for a while.

A client is a connection here: who opens a new one for each call pays with the handshake.
"""

import asyncio
from collections import OrderedDict

#: A call that came to nothing counts for so long, and so many of them are free.
COST_S = 0.002
FREE_CALLS = 100
#: Clients that are remembered; the one that was longest away goes first.
REMEMBERED_MAX = 4096


class Debts:
    def __init__(self) -> None:
        #: By client: when all of its calls that came to nothing stop to count.
        self._until: OrderedDict[str, float] = OrderedDict()

    def came_to_nothing(self, client: str) -> None:
        """A call of this client has ended otherwise than well."""
        self._count(client, asyncio.get_running_loop().time())

    async def wait(self, client: str) -> None:
        """Returns when a call of this client may begin: at once, unless too many of them came to nothing."""
        until = self._until.get(client)
        if until is None:
            return
        now = asyncio.get_running_loop().time()
        if until <= now:
            del self._until[client]
        elif until > now + FREE_CALLS * COST_S:
            # It counts at once, so that calls that come together do not all begin together later.
            self._count(client, now)
            await asyncio.sleep(until - now - FREE_CALLS * COST_S)

    def _count(self, client: str, now: float) -> None:
        self._until[client] = max(self._until.get(client, 0.0), now) + COST_S
        self._until.move_to_end(client)
        if len(self._until) > REMEMBERED_MAX:
            self._until.popitem(last=False)
