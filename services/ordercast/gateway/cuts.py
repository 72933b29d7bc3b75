"""Places in a domain's order: where several groups can begin together, and a cut behind all that was
acknowledged.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import grpc

from ordercast.core.cells import cell_of
from ordercast.core.members import address_of
from ordercast.core.place import Place
from ordercast.core.quorums import majority
from ordercast.gateway.advancing import Advancing
from ordercast.gateway.reading import Reading, bounds_in, unanswered
from ordercast.runtime.transport.status import Refused
from ordercast.v1.membership_pb2 import Group
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse

#: Groups whose replicas are asked at the same time.
ASKED_AT_ONCE = 32
#: How long a cut waits for a cell to pass it, and how often it is looked.
PASS_S_MAX = 10.0
LOOK_S = 0.005
#: Below every order key, and no empty one: those ask for nothing.
LOWEST = b"\0"

Found = TypeVar("Found")


class Cuts:
    def __init__(self, reading: Reading, advancing: Advancing) -> None:
        self.reading = reading
        self.advancing = advancing

    async def cut(self, groups: Sequence[Group]) -> Place:
        """Behind everything that was acknowledged in these groups before, and before all that is published later.

        What was acknowledged was delivered, and then a majority of each of its cells had passed its number. Any
        other majority has one of them; so the highest number that a majority has reached is not below it. Then
        every cell passes that number, for one that is behind the others would give lower ones to what comes.
        """
        of_cells = list({cell_of(address_of(group)): group for group in groups}.values())
        order_key = max(await _for_each(of_cells, self._reached))
        await _for_each(of_cells, lambda group: self._passes(group, order_key))
        return Place(order_key)

    async def is_reached(self, groups: Sequence[Group], place: Place) -> bool:
        """Whether the order has come so far in one of these groups.

        Whoever ends at a place lets groups pass it. One that somebody made up would raise all clocks without end.
        """
        of_cells = list({cell_of(address_of(group)): group for group in groups}.values())
        return place.order_key <= max(await _for_each(of_cells, self._reached))

    async def _passes(self, group: Group, order_key: bytes) -> None:
        cell = cell_of(address_of(group))
        try:
            async with asyncio.timeout(PASS_S_MAX):
                while not await self._has_passed(group, order_key):
                    self.advancing.want(cell, order_key)
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            message = f"the group {group.name!r} cannot pass the cut: it may lack a quorum"
            code = grpc.StatusCode.UNAVAILABLE
            raise Refused(code, message, "NO_QUORUM", {"group": group.name}, retry_after_s=1.0) from None
        self.advancing.passed(cell, order_key)

    async def _has_passed(self, group: Group, order_key: bytes) -> bool:
        bounds = await self._bounds(group, order_key)
        return any(found.passed_key >= order_key for found in bounds)

    async def _reached(self, group: Group) -> bytes:
        described = await self.reading.describe(group)
        keys = [found.reached_key for found in bounds_in(described) if found.reached_key]
        if len(keys) < majority(len(group.replicas)):
            raise unanswered(group, [found for found in described.values() if isinstance(found, str)])
        return max(keys)

    async def earliest(self, groups: Sequence[Group]) -> Place:
        """The first place from which on all groups have everything: the beginning, if retention took nothing."""
        firsts = await _for_each(groups, self._first_key)
        return Place(max(firsts))

    async def _first_key(self, group: Group) -> bytes:
        """From this order key on the group is whole."""
        bounds = await self._bounds(group, LOWEST)
        if any(found.HasField("key_offset") for found in bounds):
            return b""
        return self._whole_from(group, bounds)

    def _whole_from(self, group: Group, bounds: Sequence[DescribeReplicaResponse]) -> bytes:
        """Some replica keeps more than the others."""
        firsts = [found.first_key for found in bounds if found.first_key]
        if len(bounds) < majority(len(group.replicas)) or not firsts:
            raise unanswered(group)
        return min(firsts)

    async def offsets(self, groups: Sequence[Group], place: Place) -> list[int]:
        """Where to read each group, so that nothing is missing from the place on. It may begin a little
        earlier.
        """
        key = place.order_key or LOWEST
        found = await _for_each(groups, lambda group: self._bounds(group, key))
        offsets: list[int] = []
        behind: list[tuple[bytes, Group]] = []
        for group, bounds in zip(groups, found, strict=True):
            # The log of one that is behind ends before the place, and then its end is a place to begin at, too.
            here = [described.key_offset for described in bounds if described.HasField("key_offset")]
            if here:
                offsets.append(max(here))
            else:
                behind.append((self._whole_from(group, bounds), group))
        if behind:
            raise behind_the_beginning(behind)
        return offsets

    async def _bounds(self, group: Group, order_key: bytes) -> list[DescribeReplicaResponse]:
        described = await self.reading.describe(group, order_key=order_key)
        bounds = bounds_in(described)
        if not bounds:
            raise unanswered(group, [found for found in described.values() if isinstance(found, str)])
        return bounds


def behind_the_beginning(groups: Sequence[tuple[bytes, Group]]) -> Refused:
    """Of each group, from which order key on its log is whole."""
    whole, group = max(groups, key=lambda found: (found[0], found[1].name))
    message = (
        f"retention has dropped messages of {group.name!r} that come behind this place; the first cut at "
        f"which all groups are whole is {whole.hex()}"
    )
    metadata = {"group": group.name, "order_key": whole.hex()}
    return Refused(grpc.StatusCode.OUT_OF_RANGE, message, "PLACE_OUT_OF_RANGE", metadata)


async def _for_each(groups: Sequence[Group], ask: Callable[[Group], Awaitable[Found]]) -> list[Found]:
    """Some at a time: there may be a thousand."""
    found: list[Found] = []
    for first in range(0, len(groups), ASKED_AT_ONCE):
        found += await asyncio.gather(*(ask(group) for group in groups[first : first + ASKED_AT_ONCE]))
    return found
