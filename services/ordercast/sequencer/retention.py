"""Retention: what a group's log keeps, by bytes and by age.

An entry that is needed to say again how its envelope fared stays. So does, up to twice the limit, what another
replica of the group has not delivered yet: it would otherwise need a snapshot to come back.

Whoever reads meanwhile sees the log before or after a cut, never in between: where it begins and what is there are
read in one transaction. A reader that finds that it is behind the beginning is told so (OUT_OF_RANGE).
"""

import asyncio
import contextlib

import structlog

from ordercast.runtime.process.node import Node
from ordercast.runtime.storage.group_index import can_be_mended
from ordercast.runtime.storage.store import CorruptRecord
from ordercast.runtime.transport.status import Refused
from ordercast.sequencer.shared_retention import SharedRetention
from ordercast.v1.membership_pb2 import Group

log = structlog.get_logger("retention")

LOOK_S = 5.0


class Retention:
    def __init__(self, node: Node) -> None:
        self.node = node
        self.shared = SharedRetention(node)
        node.logs.removed = self.shared.removed

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            # Of a group that shares its cell, the log is its cell's: see shared_retention.py.
            for group in list(self.node.directory.cells.values()):
                if self.node.name in group.replicas and (group.retention.bytes or group.retention.age_s):
                    try:
                        self.apply(group)
                    except CorruptRecord as damaged:
                        await self._mend(damaged, group.id)
            try:
                await self.shared.cut()
            except CorruptRecord as damaged:
                await self._mend(damaged)

    async def sweep(self) -> None:
        """Follows what `run` did in cells that groups share, in its own time."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.shared.sweep_what_is_due()
            except CorruptRecord as damaged:
                await self._mend(damaged)

    async def _mend(self, damaged: CorruptRecord, group: str | None = None) -> None:
        """Until it is mended, nothing is dropped."""
        log.error("log not truncated", group=group or damaged.group, why=str(damaged))
        mend = self.node.logs.mend
        if mend is not None and can_be_mended(damaged):
            with contextlib.suppress(Refused):
                await mend(damaged)

    def apply(self, group: Group) -> None:
        node = self.node
        slot = node.host.slots.get((group.domain, node.directory.domains[group.domain].protocol))
        replica = getattr(slot.machine, "replicas", {}).get(group.id) if slot is not None else None
        if replica is None or replica.copied is not None:
            return
        limit, age_s = group.retention.bytes, group.retention.age_s
        after_ms = node.clock.wall_ms() - age_s * 1000 if age_s else 0
        wanted = node.storage.floor(group.id, limit, after_ms)
        at_least = node.storage.floor(group.id, 2 * limit, 0) if limit else 0
        floor = min(wanted, max(replica.slowest(wanted), at_least), replica.retained_from())
        begin = node.storage.begin_of(group.id)
        begins = begin.position if begin is not None else floor
        if floor > begins:
            node.writer.truncate(group.id, floor)
            node.writer.kick()
            log.info("log truncated", group=group.id, before=floor, entries=floor - begins)
