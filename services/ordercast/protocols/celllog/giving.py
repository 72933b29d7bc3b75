"""Answering those who ask for a piece of the log.

Whoever copies a log itself has nothing to give: what it has of it does not count yet.
"""

from collections.abc import Sequence
from typing import Generic

from ordercast.core.machine import LogRead, ReadLog, Receive, Send
from ordercast.protocols.celllog.pieces import as_fit, checksum_of
from ordercast.protocols.celllog.stepping import LogMachine, R
from ordercast.v1.sequencer_pb2 import FetchLog, LogChunk, LogEntry

#: Marks a ReadLog whose answer is a piece for somebody; the rest of the tag is that process.
COPY = "copy "


class Giving(Generic[R]):
    def __init__(self, machine: LogMachine[R], *, waits_for_disk: bool) -> None:
        """With `waits_for_disk` a piece leaves behind what is on its way to the disk here."""
        self.machine = machine
        self.waits_for_disk = waits_for_disk

    def on_fetch(self, event: Receive) -> None:
        fetch: FetchLog = event.message
        machine = self.machine
        replica = machine.log_asked_for(fetch, event.source)
        if replica.copied is not None:
            return
        if fetch.position < replica.position:
            tag = COPY + event.source
            machine.out.append(ReadLog(replica.name, fetch.position, machine.settings.log_chunk, tag))
        else:
            # Who takes no part in the group hears in no other way how far the log goes.
            self._send(replica, event.source, fetch.position, (), 0)

    def on_read(self, event: LogRead) -> None:
        replica = self.machine.replicas.get(event.group)
        if replica is None or replica.copied is not None:
            return  # That changed since the log was asked.
        if event.entries or event.position < event.begins:
            entries = as_fit(event.entries, self.machine.settings.log_chunk_bytes)
            self._send(replica, event.tag.removeprefix(COPY), event.position, entries, event.begins)

    def _send(self, replica: R, to: str, position: int, entries: Sequence[LogEntry], begins: int) -> None:
        chunk = LogChunk(
            group=replica.name,
            configuration=replica.group.configuration,
            position=position,
            entries=entries,
            head=replica.position,
            begins=begins,
            checksum=checksum_of(entries),
        )
        send = Send((to,), chunk)
        if self.waits_for_disk:
            self.machine.then.append(send)
        else:
            self.machine.out.append(send)
