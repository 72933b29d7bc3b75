"""The checkers that apply to a protocol, which its traits say: nobody has to name them.

Of every protocol: all replicas of a group have the same log, every message is in all of its groups once, receipts
and refusals tell the truth, and a log has a producer's messages in the order sent and behind
all that their senders had seen. `orders: across`: there is one order over all groups, too. `early`: what
deliveries promise that are shown before they are in a log (live.py, early.py); and where there should be none,
there is none. `merges`: watermarks, or none. `genuine`: only those whom a message concerns take part in it.
"""

from collections.abc import Sequence
from typing import Any

from ordercast.core.machine import Deliver, ResetLog, Revoked, Watermark
from ordercast.core.protocol import Early, Genuine, Orders, Traits
from ordercast.sim.board import Board
from ordercast.sim.checkers import ending, order
from ordercast.sim.checkers.early import EarlyChecker
from ordercast.sim.checkers.genuine import GenuineChecker
from ordercast.sim.checkers.live import LiveChecker
from ordercast.sim.checkers.logs import LogChecker
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.world import World
from ordercast.v1.membership_pb2 import DomainView


class Checkers:
    def __init__(self, world: World, board: Board, traits: Traits, view: DomainView) -> None:
        self.world = world
        self.board = board
        self.traits = traits
        self.logs = LogChecker(board, {group.group: tuple(group.replicas) for group in view.groups})
        self.live = LiveChecker(board) if traits.early is Early.LIVE else None
        self.early = EarlyChecker(board) if traits.early is Early.OPTIMISTIC else None
        self.genuine = GenuineChecker(self.logs) if traits.genuine is Genuine.YES else None

    def _life(self, process: str) -> tuple[str, int]:
        return process, self.world.processes[process].incarnation

    def on_deliver(self, process: str, effect: Deliver) -> None:
        if effect.final:
            self.logs.on_deliver(process, effect)
            if self.early is not None:
                self.early.on_final(self._life(process), effect)
        elif self.early is not None:
            self.early.on_early(self._life(process), effect)
        elif self.live is not None:
            self.live.on_deliver(self._life(process), effect)
        else:
            raise Violation("early", f"{process} shows what has no place in the log of {effect.group}")

    def on_send(self, source: str, to: Sequence[str], message: Any) -> None:
        if self.genuine is not None:
            self.genuine.on_send(source, to, message)

    def on_interrupted(self, process: str, group: str) -> None:
        if self.live is not None:
            self.live.on_interrupted(self._life(process), group)
        if self.early is not None:
            self.early.on_interrupted(self._life(process), group)

    def on_revoked(self, process: str, effect: Revoked) -> None:
        if self.early is None:
            raise Violation("early", f"{process} takes back in {effect.group} what it cannot have shown")
        self.early.on_revoked(self._life(process), effect)

    def on_log_reset(self, process: str, effect: ResetLog) -> None:
        self.logs.on_log_reset(process, effect)

    def on_watermark(self, process: str, effect: Watermark) -> None:
        if not self.traits.merges:
            raise Violation(
                "watermark", f"{process} has a watermark in {effect.group}: logs are not merged by keys"
            )
        self.logs.on_watermark(process, effect)

    def check_end(self) -> None:
        check_history(self.logs, self.board, self.traits.orders)
        if self.early is not None:
            processes = [process for process in self.world.processes.values() if process.up]
            self.early.check_end({self._life(p.name): sorted(p.groups) for p in processes})


def check_history(logs: LogChecker, board: Board, orders: Orders) -> None:
    """What must hold of all that clients sent and were told, and of the logs, once everything has come to rest."""
    ending.check_all_or_nothing(logs)
    ending.check_receipts(logs, board, orders)
    ending.check_refused(logs, board)
    order.check_fifo(logs.groups, board)
    order.check_causality(logs.groups, board)
    if orders is Orders.ACROSS:
        order.check_acyclic(logs.groups, board)
    else:
        order.check_chains(logs.groups, board)
