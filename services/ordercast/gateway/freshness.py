"""Groups that this gateway has not heard of, but membership may have.

A group is created through one gateway, and the next moment a client names it at another, which follows a
little later. Before "unknown group" is said, the members of membership are asked for their revisions, and
this gateway waits until it has the highest.

Why that is enough, without a word in membership's log: whoever says that a group was created heard it from a
member that had executed the command, and so that member's revision has the group. While it answers, we hear
of it. If it does not answer, the others learn the command as they choose a leader; a gateway that asks just
then may say "unknown group" a moment too early, as it may if nobody answers. No order and no receipt hangs on
it: the client asks again.

A question costs a small call to each member, and one at a time is under way for all who wait: who comes while
it is answered waits for the next one, since what it asks for may be newer. So a flood of names that nobody
knows costs the members no more than one patient client. Nothing is remembered: a "no" might be out of date
the next moment.
"""

import asyncio
import contextlib
import re
from collections.abc import Iterable

from ordercast.runtime.process.node import Node

FOLLOW_S_MAX = 2.0
#: What no group can be called is not asked for.
_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")


class Freshness:
    def __init__(self, node: Node) -> None:
        self.node = node
        self._turn = asyncio.Lock()
        #: How many questions were asked.
        self._asked = 0

    async def settle(self, names: Iterable[str]) -> None:
        """Returns when each is known here, or is not known to membership either, or nobody answers."""
        known = self.node.directory.group_by_name
        if all(name in known or not _NAME.fullmatch(name) for name in names):
            return
        asked_before = self._asked
        async with self._turn:
            # Another one may have asked meanwhile, after we came: then we know what it heard.
            if self._asked == asked_before:
                self._asked += 1
                await self._catch_up()

    async def _catch_up(self) -> None:
        directory = self.node.directory
        revision = await directory.newest_revision()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FOLLOW_S_MAX):
                while directory.revision < revision:
                    await self.node.wait_for_change()
