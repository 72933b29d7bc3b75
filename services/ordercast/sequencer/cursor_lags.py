"""How far consumers are behind: cursors, beside the logs that this process has.

Cursors live with membership, and logs with replicas. Every replica asks for the cursors now and then, and looks at
its own log, so that nothing is written or read elsewhere for it. A replica that is behind says less than there is;
whoever looks at all replicas takes the largest number.
"""

import asyncio

import structlog

from ordercast.core.cells import cell_of
from ordercast.runtime.process.node import Node
from ordercast.runtime.telemetry.meters import Labels, Meters
from ordercast.runtime.transport.status import Refused
from ordercast.telemetry.schema import names
from ordercast.v1.membership_pb2 import Cursor

log = structlog.get_logger("cursors")

LOOK_S = 5.0


class CursorLags:
    def __init__(self, node: Node) -> None:
        self.node = node
        #: By domain, group and cursor: messages that are not acknowledged, and when the first was stored, if any.
        self._found: dict[Labels, tuple[int, int | None]] = {}

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            await self.look()

    async def look(self) -> None:
        found: dict[Labels, tuple[int, int | None]] = {}
        for cursor in await self.node.directory.cursors():
            await self._look_at(cursor, found)
            # There may be many, and messages have the way.
            await asyncio.sleep(0)
        self._found = found

    async def _look_at(self, cursor: Cursor, found: dict[Labels, tuple[int, int | None]]) -> None:
        directory, logs = self.node.directory, self.node.logs
        group = directory.group_by_name.get(cursor.group)
        if group is None:
            return
        address = directory.address_of(group)
        if not logs.serves(cell_of(address)):
            return
        try:
            found[group.domain, group.name, cursor.name] = await logs.unread(address, cursor.offset)
        except Refused as refused:
            log.debug("a cursor's lag is not known", group=group.name, cursor=cursor.name, why=str(refused))

    def measure(self, meters: Meters) -> None:
        now_ms = self.node.clock.wall() * 1e3
        ages = {
            labels: max(now_ms - stored_ms, 0.0) / 1e3 if stored_ms is not None else 0.0
            for labels, (_, stored_ms) in self._found.items()
        }
        meters.gauge(names.METRIC_CURSOR_LAG).replace({labels: lag for labels, (lag, _) in self._found.items()})
        meters.gauge(names.METRIC_CURSOR_AGE).replace(ages)
