"""How far the consumers of a group are behind, for whoever lists its cursors."""

import asyncio
import contextlib
from collections.abc import Sequence

from ordercast.gateway.reading import Reading, bounds_in
from ordercast.runtime.process.node import Node
from ordercast.runtime.transport.status import Refused
from ordercast.v1.gateway_pb2 import CursorLag
from ordercast.v1.membership_pb2 import Cursor, Group

#: For the age of a cursor a replica is asked for one entry. Of more cursors the ages are not told.
AGES_MAX = 50
#: A replica that does not answer by then does not hold up the list.
AGE_S_MAX = 2.0


async def lags_of(node: Node, reading: Reading, group: Group, cursors: Sequence[Cursor]) -> list[CursorLag]:
    """One for each cursor; none if no replica answers."""
    described = node.directory.described(group)
    bounds = bounds_in(await reading.describe(described))
    if not bounds:
        return []
    first, following = min(found.first_offset for found in bounds), max(found.next_offset for found in bounds)
    behind = [cursor for cursor in cursors if cursor.offset < following][:AGES_MAX]
    offsets = sorted({max(cursor.offset, first) for cursor in behind})
    stored = await asyncio.gather(*(_stored_ms(reading, described, offset) for offset in offsets))
    now_ms = int(node.clock.wall() * 1e3)
    ages = {
        offset: max(now_ms - stored_ms, 0)
        for offset, stored_ms in zip(offsets, stored, strict=True)
        if stored_ms is not None
    }
    lags = []
    for cursor in cursors:
        lag = CursorLag(messages=max(following - cursor.offset, 0))
        age_ms = ages.get(max(cursor.offset, first)) if lag.messages else 0
        if age_ms is not None:
            lag.age_ms = age_ms
        lags.append(lag)
    return lags


async def _stored_ms(reading: Reading, group: Group, offset: int) -> int | None:
    """When the entry with this offset was stored; None if nobody says so in time."""
    with contextlib.suppress(Refused, TimeoutError):
        async with asyncio.timeout(AGE_S_MAX):
            responses = reading.read(group, offset, stop_at_end=True, replica="")
            async with contextlib.aclosing(responses):
                async for response in responses:
                    if response.stored_ms:
                        return int(response.stored_ms[0])
    return None
