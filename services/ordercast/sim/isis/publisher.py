"""Clients that publish through gateways, and what they may expect of the logs in the end."""

from dataclasses import dataclass, field
from typing import Any

from ordercast.protocols.isis import times
from ordercast.protocols.isis.times import Stamp
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.client import Board, Client, ClientSettings, MessageKey, name_of
from ordercast.v1.gateway_pb2 import PublishReply
from ordercast.v1.isis_pb2 import Seen


class Publisher(Client):
    """What it has seen is a Seen, and not a clock."""

    def __init__(self, name: str, settings: ClientSettings, board: Board) -> None:
        super().__init__(name, settings, board)
        self.seen = Stamp()
        self.seen_epoch = 0

    def session_token(self) -> bytes:
        return times.seen_from(self.seen, self.seen_epoch).SerializeToString()

    def learn(self, clock: Any) -> None:
        seen = Seen.FromString(clock)
        self.seen.merge(times.stamp_from(seen))
        self.seen_epoch = max(self.seen_epoch, seen.epoch)

    def clock_in(self, reply: PublishReply) -> bytes:
        return reply.session


@dataclass(slots=True)
class Publishers:
    board: Board = field(default_factory=Board)
    producers: dict[bytes, None] = field(default_factory=dict)

    def check_end(self, offsets: dict[str, dict[MessageKey, int]]) -> None:
        """Receipts are right; a producer's messages are in the order sent, and behind what it had seen."""
        for receipt in self.board.receipts:
            for group, offset in receipt.offsets.items():
                if offsets.get(group, {}).get(receipt.key) != offset:
                    raise Violation("receipt", f"{name_of(receipt.key)} is not at {offset} in {group}")
        last: dict[tuple[bytes, str], tuple[int, MessageKey]] = {}
        for key, sent in sorted(self.board.sent.items(), key=lambda item: (item[0][0], item[1].index)):
            for group in key[1]:
                mine = offsets.get(group, {}).get(key)
                if mine is None and key in self.board.given_up:
                    continue
                if mine is None:
                    raise Violation("receipt", f"{name_of(key)} is not in {group}")
                for other in sent.after:
                    if group in other[1] and offsets[group].get(other, mine + 1) >= mine:
                        raise Violation("causality", f"{name_of(key)} is in {group} before {name_of(other)}")
                if sent.unordered:
                    continue
                before = last.get((key[0], group))
                if before is not None and before[0] >= mine:
                    raise Violation("fifo", f"{name_of(key)} is in {group} before {name_of(before[1])}")
                last[(key[0], group)] = (mine, key)
