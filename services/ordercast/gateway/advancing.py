"""Asks idle cells to pass an order key, once for all merged streams of this gateway that wait for them."""

import asyncio
import contextlib

import grpc
import structlog

from ordercast.core.questions import Question, Questions
from ordercast.gateway.reading import Reading
from ordercast.runtime.process.node import Node
from ordercast.runtime.transport.status import Refused

log = structlog.get_logger("advancing")


class Advancing:
    def __init__(self, node: Node, reading: Reading) -> None:
        self.node = node
        self.reading = reading
        self.questions = Questions()
        self._asking: asyncio.Task[None] | None = None
        #: Something is wanted that was not wanted before.
        self._news = asyncio.Event()
        #: By process: what it is to hear next, by cell; and the call to it that is under way.
        self._waiting: dict[str, dict[str, bytes]] = {}
        self._calls: dict[str, asyncio.Task[None]] = {}

    def want(self, cell: str, order_key: bytes) -> None:
        """Until it is passed. What a stream wanted that has ended is asked for to its end, which does no harm."""
        self.questions.want(cell, order_key, self.node.clock.now())
        self._news.set()
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(), name="advancing")

    def passed(self, cell: str, order_key: bytes) -> None:
        self.questions.passed(cell, order_key, self.node.clock.now())

    async def _ask(self) -> None:
        """As long as something is asked."""
        try:
            while (due_at := self.questions.next_at()) is not None:
                delay_s = due_at - self.node.clock.now()
                if delay_s > 0:
                    self._news.clear()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._news.wait(), delay_s)
                    continue
                for question in self.questions.due(self.node.clock.now()):
                    self._put(question)
        finally:
            self._asking = None

    def _put(self, question: Question) -> None:
        cell = self.node.directory.cells.get(question.cell)
        if cell is None:
            self.questions.forget(question.cell)
            return
        for name in list(cell.replicas) if question.again else [self.reading.choose(cell)]:
            self._waiting.setdefault(name, {})[question.cell] = question.order_key
            if name not in self._calls:
                self._calls[name] = asyncio.create_task(self._call(name), name="advance")

    async def _call(self, name: str) -> None:
        """One call at a time to each process: what is to be asked meanwhile goes into the next one."""
        try:
            while waiting := self._waiting.pop(name, None):
                by_key: dict[bytes, list[str]] = {}
                for cell, order_key in waiting.items():
                    by_key.setdefault(order_key, []).append(cell)
                for order_key, cells in by_key.items():
                    await self._advance(name, cells, order_key)
        finally:
            del self._calls[name]

    async def _advance(self, name: str, cells: list[str], order_key: bytes) -> None:
        """Whoever does not hear it, or has no say, is asked again, and others with it."""
        try:
            await self.reading.advance(name, cells, order_key)
        except (grpc.aio.AioRpcError, Refused) as error:
            log.debug("cannot be asked", replica=name, why=str(error))
