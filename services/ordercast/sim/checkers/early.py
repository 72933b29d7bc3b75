"""What is promised of deliveries that come before their places in a log, where these may turn out otherwise.

In one life of a process, and between two `Interrupted` of a group: each envelope is shown early at most once, and
never behind its place in the log. Each that is shown is followed by its place, or by the word that it has none,
once. What was revoked anywhere is in no log of the group. And how often the early order was wrong is counted
exactly: a place in the log is a mistake if an envelope that was shown before it has none yet.
"""

from dataclasses import dataclass, field

from ordercast.core.ids import short
from ordercast.core.machine import Deliver, Revoked
from ordercast.sim.board import Board
from ordercast.sim.checkers.violation import Violation
from ordercast.v1.common_pb2 import Batch

Life = tuple[str, int]


@dataclass(slots=True)
class Shown:
    """Of one group, by one life of a process."""

    #: Shown early, and neither placed nor revoked since: oldest first.
    open: dict[bytes, None] = field(default_factory=dict)
    #: All that was shown early, placed or revoked since it began.
    over: dict[bytes, None] = field(default_factory=dict)


class EarlyChecker:
    def __init__(self, board: Board) -> None:
        self.board = board
        self.shown: dict[Life, dict[str, Shown]] = {}
        #: By group: envelopes that are in its log, and those that were revoked.
        self.placed: dict[str, dict[bytes, None]] = {}
        self.revoked: dict[str, dict[bytes, None]] = {}
        # For summaries.
        self.early = self.confirmed = self.mistakes = self.taken_back = 0

    def _of(self, life: Life, group: str) -> Shown:
        return self.shown.setdefault(life, {}).setdefault(group, Shown())

    def on_early(self, life: Life, effect: Deliver) -> None:
        header = effect.entry.envelope.header
        here = self._of(life, effect.group)
        if effect.group not in [destination.group for destination in header.destinations]:
            raise Violation("early", f"{life[0]} shows {short(header.id)} in {effect.group}, which it is not for")
        for message in Batch.FromString(effect.entry.envelope.body).messages:
            if message.payload not in self.board.by_payload:
                raise Violation("early", f"{life[0]} shows in {effect.group} what nobody sent")
        if header.id in here.open or header.id in here.over:
            raise Violation("early", f"{life[0]} shows {short(header.id)} in {effect.group} late, or twice")
        here.open[header.id] = None
        self.early += 1

    def on_final(self, life: Life, effect: Deliver) -> None:
        id_ = effect.entry.envelope.header.id
        here = self._of(life, effect.group)
        self.placed.setdefault(effect.group, {})[id_] = None
        if id_ in self.revoked.get(effect.group, ()):
            raise Violation("early", f"{life[0]} delivers {short(id_)} in {effect.group}, which was revoked")
        if id_ in here.open:
            self.confirmed += 1
            self.mistakes += next(iter(here.open)) != id_
            del here.open[id_]
        here.over[id_] = None

    def on_revoked(self, life: Life, effect: Revoked) -> None:
        here = self._of(life, effect.group)
        if effect.id not in here.open:
            raise Violation(
                "early", f"{life[0]} revokes {short(effect.id)} in {effect.group}, which it did not show"
            )
        if effect.id in self.placed.get(effect.group, ()):
            raise Violation(
                "early", f"{life[0]} revokes {short(effect.id)}, which is in the log of {effect.group}"
            )
        del here.open[effect.id]
        here.over[effect.id] = None
        self.revoked.setdefault(effect.group, {})[effect.id] = None
        self.taken_back += 1

    def on_interrupted(self, life: Life, group: str) -> None:
        self.shown.get(life, {}).pop(group, None)

    def check_end(self, lives: dict[Life, list[str]]) -> None:
        """Of the lives that go on, with the groups that are there: nothing is open any more."""
        for life, groups in lives.items():
            for name in groups:
                for id_ in self._of(life, name).open:
                    raise Violation("early", f"{life[0]} never said what became of {short(id_)} in {name}")
