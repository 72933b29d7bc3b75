"""How much of what there is only so much of a client may have at a gateway: streams, commands, cursors.

Here a client is an identity, or else an address (callers.py).
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc

from ordercast.gateway.callers import caller_of
from ordercast.runtime.transport.status import Refused

#: Of what this gateway takes of streams of one kind: the rest is for others.
SHARE = 0.5
#: Commands of one client that membership works on, and that wait for that.
COMMANDS_MAX = 4
COMMANDS_WAITING_MAX = 256
#: Different cursors that one client sets here. Membership has room for 4,096.
CURSORS_MAX = 512
#: Clients of which it is remembered which cursors they have set; the one that was longest away goes first.
REMEMBERED_MAX = 1024


class Budget:
    def __init__(self) -> None:
        self.held: dict[str, int] = {}
        self.commands = asyncio.Semaphore(COMMANDS_MAX)


class Budgets:
    def __init__(self) -> None:
        self._budgets: dict[str, Budget] = {}
        #: By client: its cursors, as (group, name).
        self._cursors: OrderedDict[str, dict[tuple[str, str], None]] = OrderedDict()

    @contextlib.contextmanager
    def hold(self, context: Any, kind: str, count_max: float) -> Iterator[Budget]:
        """One more of this kind. Refused if the client has as many as it may have."""
        client = caller_of(context).owner
        budget = self._budgets.setdefault(client, Budget())
        held = budget.held.get(kind, 0)
        if held >= max(count_max, 1):
            message = f"{client} has {held} {kind} here already"
            raise Refused(grpc.StatusCode.RESOURCE_EXHAUSTED, message, "TOO_MUCH_OF_ONE_CLIENT", retry_after_s=1.0)
        budget.held[kind] = held + 1
        try:
            yield budget
        finally:
            budget.held[kind] -= 1
            if not any(budget.held.values()):
                self._budgets.pop(client, None)

    @contextlib.asynccontextmanager
    async def command(self, context: Any) -> AsyncIterator[None]:
        """Something that membership has to decide. Few of a client at a time: others' come in between."""
        with self.hold(context, "commands", COMMANDS_MAX + COMMANDS_WAITING_MAX) as budget:
            async with budget.commands:
                yield

    def set_cursor(self, context: Any, group: str, name: str) -> None:
        """Before it is done. Refused if the client has set as many others here."""
        client = caller_of(context).owner
        cursors = self._cursors.setdefault(client, {})
        self._cursors.move_to_end(client)
        if (group, name) not in cursors and len(cursors) >= CURSORS_MAX:
            message = f"{client} has set {len(cursors)} cursors here: delete some"
            raise Refused(grpc.StatusCode.RESOURCE_EXHAUSTED, message, "TOO_MUCH_OF_ONE_CLIENT")
        cursors[group, name] = None
        if len(self._cursors) > REMEMBERED_MAX:
            self._cursors.popitem(last=False)

    def delete_cursor(self, group: str, name: str) -> None:
        """When it is done, whoever did it."""
        for cursors in self._cursors.values():
            cursors.pop((group, name), None)
