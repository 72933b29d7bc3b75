"""A damaged log entry is fetched from another replica and written again; the rest of the log is not touched."""

import asyncio

import grpc
import structlog
from google.protobuf.message import DecodeError

from ordercast.runtime.mesh import CHANNEL_OPTIONS
from ordercast.runtime.node import Node
from ordercast.runtime.status import Refused
from ordercast.runtime.storage import CorruptRecord, StorageError
from ordercast.v1.sequencer_pb2 import LogEntry, ReadEntryRequest
from ordercast.v1.sequencer_pb2_grpc import SequencerServiceStub

log = structlog.get_logger("repair")

TIMEOUT_S = 5.0
LOOK_S = 0.01


class LogRepair:
    def __init__(self, node: Node) -> None:
        self.node = node
        self._busy: dict[tuple[str, int], asyncio.Task[None]] = {}

    async def mend(self, damaged: CorruptRecord) -> None:
        """Raises Refused if no other replica has it now: until one has, the group halts here, and says why."""
        if damaged.group is None or damaged.position is None:
            raise damaged
        key = (damaged.group, damaged.position)
        task = self._busy.get(key)
        if task is None:
            task = self._busy[key] = asyncio.create_task(self._mend(*key))
            task.add_done_callback(lambda _: self._busy.pop(key, None))
        await asyncio.shield(task)

    async def _mend(self, group: str, position: int) -> None:
        directory = self.node.directory
        found = directory.groups.get(group)
        for name in found.replicas if found is not None else ():
            node = directory.nodes.get(name)
            if name == self.node.name or node is None:
                continue
            try:
                async with self.node.credentials.dial(node.peer_address, name, CHANNEL_OPTIONS) as channel:
                    stub = SequencerServiceStub(channel)
                    request = ReadEntryRequest(group=group, position=position)
                    answer = await stub.ReadEntry(request, timeout=TIMEOUT_S)
                LogEntry.FromString(answer.entry)
            except (grpc.aio.AioRpcError, DecodeError) as error:
                log.warning("no copy there", group=group, position=position, replica=name, why=str(error))
                continue
            try:
                await self._write(group, position, answer.entry)
            except StorageError as error:
                log.error("no copy of ours", group=group, position=position, replica=name, why=str(error))
                continue
            log.warning("damaged log entry replaced", group=group, position=position, replica=name)
            return
        log.critical("damaged log entry, and no replica has another copy", group=group, position=position)
        raise Refused(
            grpc.StatusCode.DATA_LOSS, f"entry {position} of {group!r} is damaged at every replica", "DAMAGED"
        )

    async def _write(self, group: str, position: int, entry: bytes) -> None:
        writer = self.node.writer
        ticket = writer.repair(group, position, entry)
        writer.kick()
        while writer.durable < ticket:
            await asyncio.sleep(LOOK_S)
