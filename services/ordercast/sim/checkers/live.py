"""What is promised of deliveries that are shown before they have a place in a log, checked at each of them.

They are one replica's word, in causal order: who is shown a message has been shown whatever its sender had seen,
of all that this replica shows without a gap. It begins to show a group's messages with some delivery, and what is
sent after that will be shown; a restart ends it, and so does an `Interrupted`.
"""

from dataclasses import dataclass, field

from ordercast.core.cells import cells_of
from ordercast.core.machine import Deliver
from ordercast.sim.board import Board, MessageKey, name_of
from ordercast.sim.checkers.violation import Violation
from ordercast.v1.common_pb2 import Batch


@dataclass(slots=True)
class Showing:
    """Of one group, by one life of a process."""

    #: How many messages had been sent when it began.
    begins: int
    messages: dict[MessageKey, None] = field(default_factory=dict)


class LiveChecker:
    def __init__(self, board: Board) -> None:
        self.board = board
        #: By life and group.
        self.showing: dict[tuple[str, int], dict[str, Showing]] = {}

    def on_deliver(self, life: tuple[str, int], effect: Deliver) -> None:
        groups = self.showing.setdefault(life, {})
        here = groups.setdefault(effect.group, Showing(len(self.board.sent)))
        for message in Batch.FromString(effect.entry.envelope.body).messages:
            key = self.board.by_payload.get(message.payload)
            if key is None or effect.group not in cells_of(key[1]):
                raise Violation("integrity", f"{life[0]} shows in {effect.group} what nobody sent there")
            for seen in self.board.sent[key].after:
                self._check_shown(life[0], groups, key, seen)
            here.messages[key] = None

    def _check_shown(self, process: str, groups: dict[str, Showing], key: MessageKey, seen: MessageKey) -> None:
        for group in cells_of(seen[1]):
            there = groups.get(group)
            if there is not None and self.board.sent[seen].number >= there.begins and seen not in there.messages:
                raise Violation(
                    "causality",
                    f"{process} shows {name_of(key)} without {name_of(seen)} in {group}, which it answers",
                )

    def on_interrupted(self, life: tuple[str, int], group: str) -> None:
        self.showing.get(life, {}).pop(group, None)
