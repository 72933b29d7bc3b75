"""What clients that publish through gateways may expect of the logs in the end."""

from dataclasses import dataclass, field

from ordercast.sim.board import Board, MessageKey, name_of
from ordercast.sim.checkers.violation import Violation


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
                if mine is not None and key in self.board.refused:
                    raise Violation("receipt", f"{name_of(key)} was refused for good, and is in {group}")
                if mine is None and (key in self.board.given_up or key in self.board.refused):
                    continue
                if mine is None:
                    raise Violation("receipt", f"{name_of(key)} is not in {group}")
                for other in sent.after:
                    if group in other[1] and offsets[group].get(other, mine + 1) >= mine:
                        raise Violation("causality", f"{name_of(key)} is in {group} before {name_of(other)}")
                if sent.unordered or key in self.board.renumbered:
                    continue
                before = last.get((key[0], group))
                if before is not None and before[0] >= mine:
                    raise Violation("fifo", f"{name_of(key)} is in {group} before {name_of(before[1])}")
                last[(key[0], group)] = (mine, key)
