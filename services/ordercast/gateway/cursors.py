"""Cursors: named, durable positions. They live in membership's log, and many moves are one entry there."""

import asyncio
import itertools
import re

import grpc
import structlog

from ordercast.core.level import MERGED_LEVEL
from ordercast.runtime.process.node import Node
from ordercast.runtime.transport.results import check_result
from ordercast.runtime.transport.status import Refused
from ordercast.v1.membership_pb2 import Command, Cursor, DeleteCursor, MoveCursors, ReadCursors

log = structlog.get_logger("cursors")

TIMEOUT_S = 10.0
#: Membership takes no more in one command.
MOVES_MAX = 256
#: As membership has it: one name that it refuses would be refused together with all that are moved with it.
NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")

#: The domain of a cursor over several groups, else the group; and the name.
Key = tuple[str, str, str]


class Move:
    """Where a cursor shall go, and who wants to know that it is there. Only the latest place counts."""

    def __init__(self) -> None:
        self.cursor = Cursor()
        self.waiting: list[asyncio.Future[None]] = []

    def end(self, error: Exception | None) -> None:
        for done in self.waiting:
            if not done.done():
                if error is None:
                    done.set_result(None)
                else:
                    done.set_exception(error)


class Cursors:
    def __init__(self, node: Node) -> None:
        self.node = node
        self._moves: dict[Key, Move] = {}
        self._writing: asyncio.Task[None] | None = None

    async def read(self, group: str, name: str, *, domain: str = "") -> list[Cursor]:
        """Of a group; or over several groups, of a domain."""
        result = await self.node.directory.execute(
            Command(read_cursors=ReadCursors(group=group, name=name, domain=domain)), TIMEOUT_S
        )
        return list(check_result(result).cursors)

    async def delete(self, group: str, name: str, *, domain: str = "") -> None:
        command = Command(delete_cursor=DeleteCursor(group=group, name=name, domain=domain))
        check_result(await self.node.directory.execute(command, TIMEOUT_S))

    async def move(self, cursor: Cursor) -> None:
        """Returns when it is durable. What is asked for meanwhile goes into the next command together."""
        if cursor.domain and self.node.directory.level < MERGED_LEVEL:
            raise Refused(
                grpc.StatusCode.FAILED_PRECONDITION,
                "not all nodes run software that has cursors over several groups: that takes level "
                f"{MERGED_LEVEL}; upgrade them first",
                "LEVEL_TOO_LOW",
            )
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        move = self._moves.setdefault((cursor.domain, cursor.group, cursor.name), Move())
        move.cursor = cursor
        move.waiting.append(done)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        await done

    async def _write(self) -> None:
        try:
            while self._moves:
                taken = {key: self._moves.pop(key) for key in list(itertools.islice(self._moves, MOVES_MAX))}
                await self._write_together(taken)
        finally:
            self._writing = None

    async def _write_together(self, moves: dict[Key, Move]) -> None:
        """All of them or none, says membership: if one of them is wrong, the others go without it."""
        try:
            await self._execute(moves)
        except Refused as refused:
            if len(moves) > 1 and refused.code != grpc.StatusCode.UNAVAILABLE:
                for key, move in moves.items():
                    await self._write_together({key: move})
                return
            self._end(moves, refused)
        except Exception as error:  # Whoever waits has to hear of it, and the next moves must not wait for ever.
            log.error("cursors not moved", exc_info=error)
            self._end(
                moves, Refused(grpc.StatusCode.INTERNAL, "internal error; the server's log has more", "INTERNAL")
            )
        else:
            self._end(moves, None)

    async def _execute(self, moves: dict[Key, Move]) -> None:
        command = Command(move_cursors=MoveCursors(cursors=[move.cursor for move in moves.values()]))
        check_result(await self.node.directory.execute(command, TIMEOUT_S))

    def _end(self, moves: dict[Key, Move], error: Exception | None) -> None:
        for move in moves.values():
            move.end(error)


def check_cursor_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise Refused(
            grpc.StatusCode.INVALID_ARGUMENT,
            f"{name[:80]!r} is no name for a cursor: 1 to 63 of a-z, 0-9, '.', '_', '-', "
            "and a letter or digit at both ends",
            "BAD_CURSOR_NAME",
        )
