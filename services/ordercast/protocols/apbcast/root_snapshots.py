"""How a root gets what others have forgotten: a snapshot of a merge, and the log up to it (E6, R8, R9, R18).

A snapshot of any root is valid, for the merge is the same everywhere, and it is taken only if it is ahead.
Streams are never shortened by one. It counts when the log below it is here too.
"""

from collections.abc import Sequence

from ordercast.core.machine import LogRead, ReadLog, Receive, Send
from ordercast.protocols.apbcast.events import LOG
from ordercast.protocols.apbcast.merge import is_ahead
from ordercast.protocols.apbcast.root_base import RootBase
from ordercast.protocols.apbcast.streams import Stream
from ordercast.v1.apbcast_pb2 import (
    AskSnapshot,
    CopyLog,
    Fetch,
    LogPiece,
    MergeSnapshot,
    MergeState,
    Numbered,
)

#: Messages in one piece of a log.
PIECE = 64


class RootSnapshots(RootBase):
    #: The snapshot whose log is being copied, from whom, and what of the log has come.
    _copying: MergeState | None = None
    _giver = ""
    _copied: list[Numbered]
    _copied_from = 0

    # --------------------------------------------------------------------------------------------------- giving

    def on_ask_snapshot(self, event: Receive, message: AskSnapshot) -> None:
        self._offer(event.source)

    def _offer(self, to: str) -> None:
        self.out.append(ReadLog(LOG, self.merge.mseq, 1, f"offer/{to}"))

    def on_fetch(self, event: Receive, message: Fetch) -> None:
        """Entries; or, if they are merged and forgotten, the merge."""
        stream = self.streams.get(message.stream)
        if stream is None or message.first < stream.base:
            self._offer(event.source)
        else:
            self.out.append(Send((event.source,), self.entries_from(stream, message.first, fetched=True)))

    def on_fetch_log(self, event: Receive, message: CopyLog) -> None:
        self.out.append(ReadLog(LOG, message.first, PIECE, f"piece/{event.source}"))

    def on_log_read(self, event: LogRead) -> None:
        what, _, to = event.tag.partition("/")
        if what == "offer":
            self.out.append(Send((to,), MergeSnapshot(state=self.merge.state(), begins=event.begins)))
        elif what == "piece":
            items = items_of(event)
            self.out.append(Send((to,), LogPiece(first=event.position, items=items, begins=event.begins)))

    # --------------------------------------------------------------------------------------------------- taking

    def fetch_from(self, number: int, holder: str) -> None:
        stream = self.streams[number]
        if holder in self.connected and holder != self.process and stream.needed > stream.length:
            self.out.append(Send((holder,), Fetch(stream=number, first=stream.length)))

    def ask_for_snapshot(self, names: Sequence[str], turn: int) -> None:
        there = [name for name in names if name != self.process and name in self.connected]
        if there:
            self.out.append(Send((there[turn % len(there)],), AskSnapshot()))

    def on_snapshot(self, event: Receive, message: MergeSnapshot) -> None:
        if not self.is_worth_taking(message.state) or self._copying is not None:
            return
        self._copying, self._giver = message.state, event.source
        self._copied, self._copied_from = [], max(self.merge.mseq, message.begins)
        self._copy_on()

    def is_worth_taking(self, state: MergeState) -> bool:
        return is_ahead(state, self.merge.state(whole=False), self.ends)

    def stop_copying(self) -> None:
        """Nothing comes any more from whoever it was copied from: another one may do."""
        self._copying = None

    def _copy_on(self) -> None:
        assert self._copying is not None
        missing = self._copied_from + len(self._copied)
        if missing >= self._copying.mseq:
            self._adopt()
        else:
            self.out.append(Send((self._giver,), CopyLog(first=missing)))

    def on_piece(self, event: Receive, message: LogPiece) -> None:
        if self._copying is None or event.source != self._giver:
            return
        wanted = self._copied_from + len(self._copied)
        if message.first != wanted:
            return
        if not message.items:
            # Retention went on meanwhile: the copy begins again with another offer.
            self.stop_copying()
            return
        self._copied.extend(message.items)
        self._copy_on()

    def _adopt(self) -> None:
        state, self._copying = self._copying, None
        assert state is not None
        if not self.is_worth_taking(state):
            return  # the own merge went on meanwhile
        if self._copied_from > self.merge.mseq:
            self.begin_log_at(self._copied_from)
        for item in self._copied:
            if self.merge.mseq <= item.mseq < state.mseq:
                self.log(item)
        self.merge.adopt(state)
        for number, turn in self.merge.turns.items():
            stream = self.streams.setdefault(number, Stream(number))
            if turn.index > stream.length:
                self.begin_stream_at(stream, turn.index)
        self.skip_what_is_over()
        self.write_merge()


def items_of(event: LogRead) -> list[Numbered]:
    return [Numbered.FromString(entry.protocol) for entry in event.entries]
