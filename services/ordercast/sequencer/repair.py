"""A damaged log entry is fetched from another replica and written again; the rest of the log is not touched.

Entries are found damaged when somebody reads them. So that this is not too late, when the other copies are gone
too, all logs are read through after each start, and once a day. What no replica has intact now is looked for
again: they may have been away. Until then the group halts here, and says why. Nothing is ever skipped.
"""

import asyncio
import contextlib
import time

import grpc
import lmdb
import structlog
from google.protobuf.message import DecodeError

from ordercast.protocols.catalogue import protocols
from ordercast.runtime.process.node import Node
from ordercast.runtime.storage.damage_advice import DISK, ENTRY, of_record
from ordercast.runtime.storage.group_index import DamagedRow
from ordercast.runtime.storage.store import CorruptRecord, StorageError
from ordercast.runtime.transport.mesh import CHANNEL_OPTIONS
from ordercast.runtime.transport.status import Refused
from ordercast.sequencer.reindexing import Reindexing
from ordercast.v1.sequencer_pb2 import LogEntry, ReadEntryRequest
from ordercast.v1.sequencer_pb2_grpc import SequencerServiceStub

log = structlog.get_logger("repair")

TIMEOUT_S = 5.0
LOOK_S = 0.01
#: Reading through: so much at a time, with a pause behind it, so that nobody notices.
PIECE_BYTES = 256 << 10
PIECE_ENTRIES = 256
PAUSE_S = 0.03
AGAIN_S = 86_400.0
#: What could not be mended is tried again, so many entries at most.
RETRY_S = 5.0
UNMENDED_MAX = 1000

Place = tuple[str, int]


class LogRepair:
    def __init__(self, node: Node) -> None:
        self.node = node
        self._busy: dict[Place, asyncio.Task[None]] = {}
        #: What no other replica had when it was last asked for; and how many entries were replaced, by group.
        self._unmended: dict[Place, None] = {}
        self._repaired: dict[str, int] = {}
        self.reindexing = Reindexing(node, self.mend)
        node.logs.repairs = self._counts
        # Before anything is read: whoever reads records has to know what a damaged one damages.
        for role, protocol in protocols().items():
            node.storage.damages.add_scope(role, protocol.records)
        node.spawn(self._read_through())

    async def mend(self, damaged: CorruptRecord) -> None:
        """Raises Refused if no other replica has it now: until one has, the group halts here, and says why."""
        if isinstance(damaged, DamagedRow):
            await self.reindexing.mend(damaged)
            return
        if damaged.group is None or damaged.position is None:
            raise Refused(
                grpc.StatusCode.DATA_LOSS, f"a damaged record: {damaged}; {of_record(damaged)}", "DAMAGED"
            ) from damaged
        place = (damaged.group, damaged.position)
        task = self._busy.get(place)
        if task is None:
            task = self._busy[place] = asyncio.create_task(self._mend(*place))
            task.add_done_callback(lambda _: self._busy.pop(place, None))
        await asyncio.shield(task)

    async def _mend(self, group: str, position: int) -> None:
        directory = self.node.directory
        found = directory.cells.get(group)
        refusals = []
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
                await self._write(group, position, answer.entry)
            except grpc.aio.AioRpcError as error:
                refusals.append(f"{name}: {error.code().name}: {error.details()}")
                continue
            except (DecodeError, StorageError) as error:
                log.error("no copy of ours", group=group, position=position, replica=name, why=str(error))
                refusals.append(f"{name}: not a copy of ours: {error}")
                continue
            log.warning("damaged log entry replaced", group=group, position=position, replica=name)
            self._unmended.pop((group, position), None)
            self._repaired[group] = self._repaired.get(group, 0) + 1
            return
        self._could_not(group, position, refusals)

    def _could_not(self, group: str, position: int, refusals: list[str]) -> None:
        why = "; ".join(refusals) or "there is none"
        if (group, position) not in self._unmended:
            # Once: it is tried again and again.
            log.critical(
                "damaged log entry, and no replica has another copy",
                group=group,
                position=position,
                why=why,
                advice=ENTRY,
            )
        if len(self._unmended) < UNMENDED_MAX:
            self._unmended[group, position] = None
        raise Refused(
            grpc.StatusCode.DATA_LOSS,
            f"entry {position} of {group!r} is damaged here, and no other replica gives it: {why}. Bring back a "
            "node that has it",
            "DAMAGED",
        )

    def _counts(self, group: str) -> tuple[int, int]:
        """Entries that were replaced, and those that could not be."""
        return self._repaired.get(group, 0), sum(1 for of, _ in self._unmended if of == group)

    async def _write(self, group: str, position: int, entry: bytes) -> None:
        writer = self.node.writer
        ticket = writer.repair(group, position, entry)
        writer.kick()
        while writer.durable < ticket:
            await asyncio.sleep(LOOK_S)

    # ------------------------------------------------------------------------------------------ reading through

    async def _read_through(self) -> None:
        """First the ends: nothing is known about a log whose end is damaged. Then all of it, piece by piece."""
        while self.node.directory.revision == 0:
            await asyncio.sleep(RETRY_S / 10)
        for damaged in self.node.storage.damages.scan().ends:
            await self._try(damaged)
        while True:
            begun = time.monotonic()
            for group in self.node.storage.groups():
                await self._read_log(group)
            while self._unmended or time.monotonic() - begun < AGAIN_S:
                await asyncio.sleep(RETRY_S)
                await self._try_again()

    async def _read_log(self, group: str) -> None:
        """To where it ends now. Damage behind that is found by whoever reads it."""
        storage = self.node.storage
        if group in storage.damages.all_groups():
            return  # It has to be replaced as a whole; nobody knows where its log ends.
        position, end = storage.positions(group).start, storage.positions(group).stop
        while position < end and self.node.logs.serves(group):
            try:
                read = storage.read(group, position, PIECE_ENTRIES, PIECE_BYTES)
                # Without any, retention was faster.
                position = read[-1].position + 1 if read else max(position + 1, storage.positions(group).start)
            except CorruptRecord as damaged:
                if damaged.position is None:
                    return
                await self._try(damaged)
                position = damaged.position + 1
            except lmdb.Error as error:
                log.critical(
                    "pages of the database are damaged",
                    group=group,
                    position=position,
                    why=str(error),
                    advice=DISK,
                )
                return
            await asyncio.sleep(PAUSE_S)

    async def _try(self, damaged: CorruptRecord) -> None:
        """If it cannot be mended, it is remembered."""
        with contextlib.suppress(Refused):
            await self.mend(damaged)

    async def _try_again(self) -> None:
        for group, position in list(self._unmended):
            try:
                if position in self.node.storage.positions(group):
                    self.node.storage.read(group, position, 1, 0)
                self._unmended.pop((group, position), None)
            except CorruptRecord as damaged:
                await self._try(damaged)
