"""What simulated clients read before they publish: receipts of others, logs, and what is delivered early.

Where an order key says all that precedes it, whoever comes upon a message anywhere has seen the same: it is enough
to read what came into a log. Where entries of a log say what they come after (the trait `causal`), it matters
whose copy somebody reads, for replicas know different things of what is under way elsewhere. So clients read the
logs of replicas near their end, some of which lag, restarted, or copied theirs; and, if early deliveries are read
too, what a replica has just shown and nobody's log may ever have.
"""

from collections import deque
from collections.abc import Callable, Hashable
from random import Random

from ordercast.core.machine import TellsReaders
from ordercast.core.protocol import SeenCodec
from ordercast.core.view import names_of
from ordercast.sim.board import Board, MessageKey, Shown
from ordercast.sim.checkers.logs import GroupLog
from ordercast.sim.process import Process
from ordercast.sim.world import World
from ordercast.v1.common_pb2 import Batch
from ordercast.v1.sequencer_pb2 import LogEntry

#: Early deliveries that clients may come upon.
LIVE_KEPT = 8
#: Of the entries at the end of a log: the last of all may be read, and among some more those that lack parts.
LAST, LATE = 3, 8


class LogReading:
    def __init__(self, board: Board) -> None:
        self.board = board

    def anything(self, chance: int) -> Shown | None:
        tokens = self.board.tokens
        return tokens[chance % len(tokens)] if tokens else None

    def part(self) -> tuple[Shown, str] | None:
        """A message to several groups in one group's log, and another one of them whose log has it not."""
        return None


class ReplicaReading(LogReading):
    def __init__(
        self,
        board: Board,
        world: World,
        logs: dict[str, GroupLog],
        *,
        codec: SeenCodec,
        keeper: str,
        random: Random,
        reads_live: bool,
        place_of: Callable[[str, LogEntry], Hashable],
    ) -> None:
        super().__init__(board)
        self.world = world
        self.logs = logs
        self.codec = codec
        self.keeper = keeper
        self.random = random
        self.reads_live = reads_live
        self.place_of = place_of
        #: What was delivered last, by anybody, that may be in no log.
        self.live: deque[tuple[str, LogEntry]] = deque(maxlen=LIVE_KEPT)

    def delivered_early(self, group: str, entry: LogEntry) -> None:
        self.live.append((group, entry))

    def anything(self, chance: int) -> Shown | None:
        """What a receipt said, or somebody's log near its end, or what somebody has just delivered."""
        random = self.random
        if self.reads_live and self.live and random.random() < 0.5:
            group, entry = random.choice(self.live)
            return self._shown(
                group, entry, self.codec.of_entries(group, [entry.SerializeToString()], b""), lost=True
            )
        if random.random() < 0.3:
            return super().anything(chance)
        name = random.choice(sorted(self._keepers()))
        return self._of_log(self.world.processes[name], random.choice(sorted(self.logs)), random.randrange(LAST))

    def part(self) -> tuple[Shown, str] | None:
        names = sorted(self._keepers())
        for name in self.random.sample(names, len(names)):
            process = self.world.processes[name]
            for group in sorted(group for group in process.disk.logs if group in self.logs):
                for entry in process.disk.logs[group].entries[-LATE:]:
                    others = [other for other in self._lacking(entry) if other != group]
                    shown = self._read(process, group, entry) if others else None
                    if shown is not None:
                        return shown, self.random.choice(others)
        return None

    def _keepers(self) -> list[str]:
        return [name for name, process in self.world.processes.items() if self.keeper in process.factories]

    def _of_log(self, process: Process, group: str, back: int) -> Shown | None:
        log = process.disk.logs.get(group)
        if log is None or not log.entries:
            return None
        return self._read(process, group, log.entries[-1 - back % len(log.entries)])

    def _read(self, process: Process, group: str, entry: LogEntry) -> Shown | None:
        if not process.up:
            return None
        machine = process.slots[self.keeper].machine
        besides = machine.read_besides(group) if isinstance(machine, TellsReaders) else b""
        return self._shown(group, entry, self.codec.of_entries(group, [entry.SerializeToString()], besides))

    def _shown(self, group: str, entry: LogEntry, seen: bytes, *, lost: bool = False) -> Shown | None:
        messages = stored_in(self.board, entry) if not lost else messages_in(self.board, entry)
        return Shown(seen, messages[-1], self.place_of(group, entry), lost) if messages else None

    def _lacking(self, entry: LogEntry) -> list[str]:
        """Groups that it is for, and not in the log of."""
        id_ = entry.envelope.header.id
        return [
            name
            for name in names_of(entry.envelope.header.destinations)
            if name in self.logs and all(other.envelope.header.id != id_ for other in self.logs[name].entries)
        ]


def messages_in(board: Board, entry: LogEntry) -> list[MessageKey]:
    """None, if it only opens producers."""
    payloads = [message.payload for message in Batch.FromString(entry.envelope.body).messages]
    return [board.by_payload[payload] for payload in payloads if payload or not entry.dropped]


def stored_in(board: Board, entry: LogEntry) -> list[MessageKey]:
    """Of an entry of a log: without what was refused there, or dropped by its groups."""
    if entry.dropped:
        return messages_in(board, entry)
    messages, stored = messages_in(board, entry), []
    for range_, outcome in zip(entry.envelope.header.ranges, entry.outcomes, strict=True):
        found, messages = messages[: range_.count], messages[range_.count :]
        stored += found if outcome.spans else []
    return stored
