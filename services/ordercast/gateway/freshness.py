"""Groups that this gateway has not heard of, but membership may have.

A group is created through one gateway, and the next moment a client names it at another, which follows a little
later. Before "unknown group" is said, membership is asked. One question at a time, for they may be many.
"""

import asyncio
import contextlib
from collections.abc import Iterable

from ordercast.runtime.node import Node
from ordercast.runtime.status import Refused
from ordercast.v1.membership_pb2 import Command, ReadCursors

ASK_S_MAX = 2.0
NAME_CHARACTERS_MAX = 63


class Freshness:
    def __init__(self, node: Node) -> None:
        self.node = node
        self._turn = asyncio.Lock()

    async def settle(self, names: Iterable[str]) -> None:
        """Returns when each is known here, or is not known to membership either, or nobody answers."""
        for name in names:
            if not self._is_known(name) and 0 < len(name) <= NAME_CHARACTERS_MAX:
                async with self._turn:
                    await self._ask(name)

    def _is_known(self, name: str) -> bool:
        return name in self.node.directory.group_by_name

    async def _ask(self, name: str) -> None:
        """Reading cursors is refused for a group that does not exist, and changes nothing for one that does."""
        if self._is_known(name):
            return
        command = Command(read_cursors=ReadCursors(group=name))
        with contextlib.suppress(Refused, TimeoutError):
            result = await self.node.directory.execute(command, ASK_S_MAX)
            async with asyncio.timeout(ASK_S_MAX):
                while not result.code and not self._is_known(name):
                    await self.node.wait_for_change()
