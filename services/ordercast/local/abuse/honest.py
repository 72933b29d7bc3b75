"""An honest client: it publishes at a steady, modest rate, and looks how long each receipt takes."""

import asyncio
import time

import ordercast
from ordercast.client.errors import OrdercastError

PUBLISH_S_MAX = 60.0
#: How long one who comes while the attack goes on may wait for its first receipt before it counts as locked out.
NEWCOMER_S_MAX = 20.0


class Honest:
    """Publishes on schedule, whatever becomes of earlier messages: latencies count from when they were due."""

    def __init__(self, address: str, group: str, per_second: float) -> None:
        self.address = address
        self.group = group
        self.interval_s = 1 / per_second
        #: Of the present stretch.
        self.latencies: list[float] = []
        self.failures: list[str] = []
        self._under_way: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until it is cancelled."""
        async with ordercast.connect(self.address) as connection:
            due = time.perf_counter()
            while True:
                task = asyncio.create_task(self._publish(connection, due))
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)
                due += self.interval_s
                await asyncio.sleep(max(0.0, due - time.perf_counter()))

    async def _publish(self, connection: ordercast.Connection, due: float) -> None:
        try:
            await connection.publish(b"honest", to=[self.group], timeout=PUBLISH_S_MAX)
        except OrdercastError as error:
            self.failures.append(repr(error))
        else:
            self.latencies.append(time.perf_counter() - due)

    def begin_stretch(self) -> None:
        self.latencies, self.failures = [], []

    async def settle(self) -> None:
        """Until what is due by now has its answer."""
        await asyncio.gather(*list(self._under_way))

    async def newcomer_gets_in(self) -> bool:
        """Whether somebody who comes now, over a connection of its own, gets a receipt."""
        try:
            async with asyncio.timeout(NEWCOMER_S_MAX), ordercast.connect(self.address) as connection:
                await connection.publish(b"newcomer", to=[self.group], timeout=NEWCOMER_S_MAX)
        except (OrdercastError, OSError):
            return False
        return True
