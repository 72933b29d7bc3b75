"""What a process and membership tell each other: that it is there, that it lives, how far it is, that it goes."""

import asyncio
import contextlib
import os
from collections.abc import Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING

import grpc
import structlog

from ordercast.core.ids import U64_MAX, group_number
from ordercast.core.level import LEVEL
from ordercast.core.limits import CLEAR_OF_MAX
from ordercast.core.machine import ChangesConfigurations, KeepsIncarnations, NamesGroups
from ordercast.core.members import address_of, is_changing, kind_of
from ordercast.protocols.catalogue import installed
from ordercast.runtime.process.exits import EXIT_FENCED, EXIT_REFUSED
from ordercast.runtime.transport.status import Refused
from ordercast.v1.membership_pb2 import (
    Command,
    CommandResult,
    EndIncarnation,
    GroupProgress,
    HeartbeatRequest,
    RegisterNode,
)

if TYPE_CHECKING:
    from ordercast.runtime.process.node import Node

log = structlog.get_logger("node")

#: How often membership hears of those who take part in a change; and how soon that somebody has got further with
#: one of a group that has views, whose members wait for it.
CHANGING_S = 0.1
FURTHER_S = 0.02
#: So long a process that stops waits for views without it.
LEAVE_S_MAX = 3.0
#: And so long a gateway to be heard that it is over.
END_S_MAX = 2.0
#: Nothing was changed by a command that is answered so: it may be tried again, as another request.
COME_AGAIN = (grpc.StatusCode.UNAVAILABLE.value[0], grpc.StatusCode.RESOURCE_EXHAUSTED.value[0])


class Registration:
    def __init__(self, node: "Node") -> None:
        self.node = node
        #: The process is about to stop, and membership hears of it.
        self.is_leaving = False

    async def register(self) -> None:
        settings = self.node.settings
        register = RegisterNode(
            name=self.node.name,
            node_id=self.node.storage.node_id,
            services=sorted(settings.services),
            peer_address=settings.peer_advertise,
            client_address=settings.client_advertise if "gateway" in settings.services else "",
            zone=settings.zone,
            cluster_id=self.node.storage.meta_get(b"cluster_id") or b"",
            level=LEVEL,
            protocols=installed(),
        )
        result = await self._execute_patiently(Command(register=register))
        if result.code != grpc.StatusCode.OK.value[0]:
            log.critical("membership refused this process", why=result.message)
            os._exit(EXIT_REFUSED)
        self.node.directory.revision_min = result.revision
        self.node.incarnation = result.registered.incarnation
        self.node.key = result.registered.key
        if not register.cluster_id:
            self.node.storage.meta_put(b"cluster_id", result.registered.cluster_id)
        log.info("registered", incarnation=self.node.incarnation)

    async def end_incarnation(self) -> None:
        """Whoever holds data is waited for when it is gone. A gateway alone is not, and can say so itself."""
        command = Command(end_incarnation=EndIncarnation(name=self.node.name, incarnation=self.node.incarnation))
        try:
            await self.node.directory.execute(command, timeout_s=END_S_MAX)
        except Refused as refused:
            log.warning("membership did not hear that this gateway is over", why=str(refused))

    async def _execute_patiently(self, command: Command) -> CommandResult:
        """Whoever starts first waits for a majority of the membership nodes."""
        while True:
            try:
                result = await self.node.directory.execute(command, timeout_s=5.0)
                if result.code not in COME_AGAIN:
                    return result
                why = result.message
                # Another request, for this one is answered: membership would remember that.
                command.request_id = b""
            except Refused as refused:
                why = str(refused)
            log.info("waiting for membership", peers=sorted(self.node.settings.members), why=why)
            await asyncio.sleep(self.node.settings.heartbeat_s)

    async def heartbeats(self) -> None:
        while True:
            await self._until_due(await self.heartbeat())

    async def _until_due(self, reported: list[GroupProgress]) -> None:
        """Until membership has to hear from us again: soon if we are in a change, since everyone in it waits for
        the others; and if groups have views, as soon as we are further than we said.
        """
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while True:
            changing = [cell for cell in self.node.directory.cells.values() if is_changing(cell, self.node.name)]
            heartbeat_s = self.node.settings.heartbeat_s
            left_s = begun + (min(heartbeat_s, CHANGING_S) if changing else heartbeat_s) - loop.time()
            if left_s <= 0:
                return
            if not any(kind_of(cell).follows_processes for cell in changing):
                await self.node.wait_for_change(left_s)
                continue
            await asyncio.sleep(min(left_s, FURTHER_S))
            if _steps(self._progress()) != _steps(reported):
                return

    async def leave_views(self) -> None:
        """Membership has heard that we leave. Until views go on without us, the others need our contribution."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S_MAX):
                while self._is_expected():
                    await self.node.wait_for_change(CHANGING_S)

    def _is_expected(self) -> bool:
        """Whether some group waits for us: it can go on without us once we have left its view."""
        up = [name for name, node in self.node.directory.nodes.items() if not (node.suspected or node.ended)]
        me = self.node.name
        return any(kind_of(cell).is_waited_for(cell, me, up) for cell in self.node.directory.cells.values())

    async def heartbeat(self) -> list[GroupProgress]:
        """What it said of changes."""
        revision = self.node.directory.revision
        oldest_open, clear_of, progress = await self._what_is_open()
        request = HeartbeatRequest(
            name=self.node.name,
            incarnation=self.node.incarnation,
            revision=revision,
            oldest_open=oldest_open,
            read_only=self.node.is_read_only,
            clear_of=clear_of,
            leaving=self.is_leaving,
            progress=progress,
            damaged=self.node.disbelief.to_report(self.node.directory.cells),
            level=LEVEL,
            protocols=installed(),
        )
        response = await self.node.directory.heartbeat(request)
        if response is not None and (response.incarnation > self.node.incarnation or response.ended):
            log.critical("this incarnation was given up", latest=response.incarnation)
            os._exit(EXIT_FENCED)
        return progress

    async def _what_is_open(self) -> tuple[int, list[str], list[GroupProgress]]:
        """The lowest gateway incarnation with something open here, the deleted groups we are clear of, and how far
        we are with changes.

        Machines answer when they have heard all that we have. What they say counts when it is on disk: after a
        crash they would say otherwise. While that cannot be had, everything counts as open.
        """
        try:
            async with asyncio.timeout(self.node.settings.heartbeat_s / 2):
                await self.node.host.caught_up()
                machines = [slot.machine for slot in self.node.host.slots.values()]
                keepers = [machine for machine in machines if isinstance(machine, KeepsIncarnations)]
                namers = [machine for machine in machines if isinstance(machine, NamesGroups)]
                oldest_open = min((machine.oldest_open() for machine in keepers), default=U64_MAX)
                clear_of = self._clear_of(namers)
                progress = self._progress()
                await self.node.host.synced()
        except TimeoutError:
            return 0, [], []
        return oldest_open, clear_of, progress

    def _clear_of(self, namers: Sequence[NamesGroups]) -> list[str]:
        """Ids of groups that are being deleted. The oldest are looked at, here as everywhere, and the rest has its
        turn when they are gone: neither a heartbeat nor what it costs grows with how much is deleted at once.
        """
        directory = self.node.directory
        going = nsmallest(CLEAR_OF_MAX, directory.deleting, key=group_number)
        return [id_ for id_ in going if not any(m.mentions(address_of(directory.groups[id_])) for m in namers)]

    def _progress(self) -> list[GroupProgress]:
        """Started is who has in every role."""
        found: dict[str, GroupProgress] = {}
        for slot in self.node.host.slots.values():
            if not isinstance(slot.machine, ChangesConfigurations):
                continue
            for group, progress in slot.machine.progress().items():
                known = found.setdefault(
                    group, GroupProgress(group=group, configuration=progress.configuration, started=True)
                )
                known.started = known.started and progress.started
                known.caught_up = known.caught_up or progress.caught_up
                known.position = max(known.position, progress.position)
                known.head = max(known.head, progress.head)
                known.epoch = max(known.epoch, progress.epoch)
        return [found[group] for group in sorted(found)]


def _steps(progress: list[GroupProgress]) -> list[tuple[str, int, bool, bool]]:
    """What others wait for; not how far a copy is."""
    return [(one.group, one.configuration, one.started, one.caught_up) for one in progress]
