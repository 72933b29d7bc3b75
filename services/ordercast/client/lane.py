"""A producer's messages to groups that live in the same cells: their numbers, and what is known about each.

Sequences are contiguous per set of cells (core/cells.py), and a message gets its number when it is first written,
so what was never written can be dropped without leaving a gap. What was written can be dropped, or get another
number, only when it is certain that no copy of it is stored or will be: `doubts` counts the copies of which that
is not known. A refusal settles one copy. Opening the set under a new epoch settles all: what the order has before
the opening is counted in the last sequence that it returns, and what comes behind is fenced.
"""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ordercast.client.errors import OrdercastError
from ordercast.client.types import Groups
from ordercast.v1.common_pb2 import Message

#: What the driver wants to have back with the outcome of a message.
H = TypeVar("H")


@dataclass(slots=True, eq=False)
class Item(Generic[H]):
    """One message without a receipt."""

    #: The place in the order of publish calls.
    ticket: int
    lane: "Lane[H]"
    groups: Groups
    message: Message
    size: int
    unordered: bool
    #: Somebody's session token: the message comes behind what it stands for.
    after: bytes
    deadline: float
    #: None once the caller was told that the outcome is unknown: the message is still repeated.
    handle: H | None
    #: 0 until it is written.
    sequence: int = 0
    #: The first sequence of the request that carried it. It is repeated in the same company, for a gateway that
    #: still has the request recognises it by its extent.
    batch: int = 0
    #: It was refused together with others, and has to show by itself whether it was the one at fault.
    alone: bool = False
    #: The stream that carries a copy which is not answered; 0 if none does.
    stream: int = 0
    doubts: int = 0
    #: The latest refusal.
    refusal: OrdercastError | None = None
    #: The caller's own trace: see tracing.py.
    trace: bytes = b""

    def follows(self, last: "Item[H]", *, mixes: bool) -> bool:
        """Whether it may be in one request with the one before; `mixes`: also if they are for different groups."""
        return (
            self.lane is last.lane
            and (mixes or self.groups == last.groups)
            and self.batch == last.batch
            and self.sequence == (last.sequence + 1 if last.sequence else 0)
            and self.unordered == last.unordered
            and self.after == last.after
            and not self.alone
        )


@dataclass(slots=True, eq=False)
class Lane(Generic[H]):
    #: Where the groups live that its messages are for.
    cells: Groups
    #: Those of the message that began it: it is opened in their name.
    groups: Groups
    #: What its message ids begin with.
    prefix: str
    #: May be written to. Otherwise it has to be opened first.
    is_open: bool
    #: Sequence and epoch are ours; otherwise a named producer's earlier instance may have left any.
    is_known: bool
    epoch: int = 0
    next_sequence: int = 1
    #: The highest sequence with a receipt.
    last_receipt: int = 0
    #: Of an opening without an answer. It is kept until there is one: the same token raises the epoch only once.
    open_token: bytes = b""
    open_stream: int = 0
    #: How many messages have no receipt, numbered or not.
    pending: int = 0
    #: Those that have a number, by it.
    items: dict[int, Item[H]] = field(default_factory=dict)

    def covered(self, first: int, count: int) -> list[Item[H]]:
        """What a reply about these sequences is about. The count is the gateway's word: it may be anything."""
        if count > len(self.items):
            return [self.items[s] for s in sorted(self.items) if first <= s < first + count]
        return [self.items[s] for s in range(first, first + count) if s in self.items]

    def number(self, item: Item[H]) -> None:
        item.sequence = self.next_sequence
        self.next_sequence += 1
        self.items[item.sequence] = item

    def unnumber(self, first: int) -> None:
        """Free the numbers from here on. No copy under any of them may be stored, now or later."""
        for item in self.covered(first, self.next_sequence - first):
            del self.items[item.sequence]
            item.sequence = item.batch = item.doubts = item.stream = 0
        self.next_sequence = first

    def is_certain_from(self, first: int) -> bool:
        """Nothing from here on is stored, and no copy of it is under way."""
        return not any(item.doubts for item in self.covered(first, self.next_sequence - first))

    def is_forgotten(self, epoch: int, last_sequence: int) -> bool:
        """Told by an opening: the groups' state about us expired, or the groups are new ones of the same name."""
        is_nothing_known = last_sequence == 0 and (epoch == 1 or self.last_receipt > 0)
        return self.is_known and is_nothing_known and not self.is_ours(epoch, last_sequence)

    def is_ours(self, epoch: int, last_sequence: int) -> bool:
        """Told by an opening: nobody else opened or wrote meanwhile."""
        return epoch == self.epoch + 1 and self.last_receipt <= last_sequence < self.next_sequence
