"""One producer's messages at a gateway, and which of them may leave.

A protocol need not promise an order between two envelopes in flight: m1 and m2 to {A1, A2, A3} over FIFO
channels, A3's clock at 100: {A1, A3} decide m1 at 100, {A1, A2} decide m2 at 6. So an envelope leaves only when
the producer's earlier ones that share a cell with it are decided, and carries their highest sn. Messages for the
same cells ride together, whichever groups of those they are for, and have one sequence.
"""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ordercast.core.cells import cells_of
from ordercast.core.submission import Groups
from ordercast.gateway.pressure import Taken
from ordercast.gateway.refused import Refused
from ordercast.gateway.rows import Rows, are_all_for

#: Cells, epoch, first sequence, number of messages, open token.
RequestKey = tuple[Groups, int, int, int, bytes]

#: Claims a cell for messages that have to stay behind.
_HELD_BACK: Groups = ()


@lru_cache(maxsize=4096)
def label_of(client: str) -> bytes:
    """Whoever is behind a stream, for envelopes.

    A stream's name is its client's, a slash, and a number. A client's name may end with a dot and the number of
    its connection, which does not count here: who connects again is still the same.
    """
    owner = (client.rpartition("/")[0] or client).partition(".")[0]
    return hashlib.blake2b(owner.encode(), digest_size=8).digest()


@dataclass(slots=True, eq=False)  # Each is itself alone: comparing their contents would take long.
class WaitingRequest:
    """One request, accepted and not yet in an envelope."""

    client: str
    producer: bytes
    epoch: int
    groups: Groups
    first_sequence: int
    rows: Rows
    unordered: bool
    open_token: bytes
    trace: bytes
    size: int
    #: What it counts in the pressure on the gateway, once it is accepted.
    taken: Taken = field(default_factory=Taken)
    #: It was sent again, from wherever, while it was here.
    is_repeated: bool = False
    #: Where its groups live.
    cells: Groups = field(init=False)

    def __post_init__(self) -> None:
        self.cells = cells_of(self.groups)

    def is_for(self, names: Collection[str]) -> bool:
        """Whether it is for one of these groups or cells."""
        return any(name in names for name in self.groups) or any(name in names for name in self.cells)

    @property
    def is_mixed(self) -> bool:
        """Its messages are not all for the same groups."""
        return len(self.rows.targets) > 1

    def is_only_for(self, names: Collection[str]) -> bool:
        """Whether each of its messages is for one of these groups or cells."""
        return are_all_for(names, self.cells, self.rows.targets)

    def is_ordered_with(self, cells: Groups, unordered: bool) -> bool:
        """Towards a request to other cells."""
        return not (self.unordered or unordered) and any(cell in cells for cell in self.cells)

    def may_not_overtake(self, other: "WaitingRequest") -> bool:
        return self.cells == other.cells or self.is_ordered_with(other.cells, other.unordered)

    @property
    def key(self) -> RequestKey:
        """What a client that repeats it sends again."""
        return (self.cells, self.epoch, self.first_sequence, self.rows.messages, self.open_token)

    @property
    def extent(self) -> tuple[Groups, int, int, int]:
        """Its sequences, up to before the last number, in whatever batches they come again."""
        return (self.cells, self.epoch, self.first_sequence, self.first_sequence + self.rows.messages)

    @property
    def cost(self) -> int:
        """In credits. Opening carries no message, but takes an answer too."""
        return max(self.rows.messages, 1)


@dataclass(slots=True)
class Producer:
    id: bytes
    #: The stream that it was last heard on, and whose that is.
    client: str
    owner: str
    #: What this producer has seen, as its domain's submission keeps it.
    seen: Any = None
    waiting: list[WaitingRequest] = field(default_factory=list)
    #: Envelopes of ours that are not decided: their cells, and whether order matters across sets.
    undecided: dict[bytes, tuple[Groups, bool]] = field(default_factory=dict)
    #: The latest of those that was decided, and when: what waited may have waited for it.
    decided: tuple[bytes, float] = (b"", 0.0)
    #: Everything that has no answer yet, waiting or in an envelope.
    requests: dict[RequestKey, WaitingRequest] = field(default_factory=dict)
    #: What was refused and did not come again.
    refused: Refused = field(default_factory=Refused)
    #: Messages without a receipt.
    outstanding: int = 0
    #: Nothing that waits may leave, as long as nothing more comes and nothing is decided.
    is_held_up: bool = False

    def is_behind_refused(self, item: WaitingRequest) -> bool:
        """After a refusal, what may not overtake it is refused as well, until it comes again."""
        return not item.open_token and self.refused.is_before(item)

    def refuse(self, item: WaitingRequest) -> None:
        if not item.open_token:
            self.refused.add(item)

    def accept(self, item: WaitingRequest) -> None:
        """What came again need not come again. Opening a set starts it afresh."""
        if item.open_token:
            self.refused.forget(item.cells)
        elif self.refused:
            self.refused.came_again(item)
        self.requests[item.key] = item
        self.outstanding += item.cost
        self.waiting.append(item)
        self.is_held_up = False

    def give_up(self, names: Collection[str]) -> tuple[list[WaitingRequest], list[WaitingRequest]]:
        """Forget what waits for one of these groups or cells, what waits behind that, and that such a one may come
        again.

        m1 to {A, C}, m2 to {A} wait here, and the client has moved on: another gateway has sent m1, which is not
        decided. C is closed, and m1 is given up here. If m2 then left it would come before m1.
        """
        self.refused.forget_for(names)
        gone: list[WaitingRequest] = []
        behind: list[WaitingRequest] = []
        for item in self.waiting:
            if item.is_for(names) and item.is_only_for(names):
                gone.append(item)
            elif item.is_for(names):
                behind.append(item)  # It comes again, and then each of its messages is judged by itself.
            elif any(item.may_not_overtake(other) for other in (*gone, *behind)):
                behind.append(item)
        self.is_held_up = False
        for item in (*gone, *behind):
            self.waiting.remove(item)
            del self.requests[item.key]
            self.outstanding -= item.cost
        self.refused.add_in_front(item for item in behind if not item.open_token)
        return gone, behind

    def envelope_decided(self, id_: bytes, now: float) -> None:
        if self.undecided.pop(id_, None) is not None:
            self.decided = (id_, now)
            self.is_held_up = False

    def waited_for(self, item: WaitingRequest) -> str:
        """Of a request that leaves now, for whoever looks on: what was decided last while it was here."""
        id_, at = self.decided
        return f"message:{id_.hex()}" if id_ and at > item.taken.at else ""

    @property
    def is_idle(self) -> bool:
        """All it sent has its receipt, and with it the token that says what it has seen."""
        return not (self.waiting or self.undecided or self.outstanding or self.refused)

    def ready(self) -> list[WaitingRequest]:
        """What may leave now, in order.

        A message may not overtake: with m1 to {A}, m2 to {A, B}, m3 to {A} waiting, m3 must not ride with m1.
        Messages to the same cells leave in sequence even if they are unordered, for a gap would be refused.
        """
        if self.is_held_up:
            return []  # With many destination sets hundreds wait, and would be looked at with every answer.
        if len(self.waiting) == 1 and not self.undecided:
            return [self.waiting[0]]  # As it mostly is, and all that waits is looked at often.
        taken: list[WaitingRequest] = []
        busy = dict.fromkeys(self.busy_sets())
        claims: dict[str, Groups] = dict.fromkeys(self.busy_cells(), _HELD_BACK)
        for item in self.waiting:
            if item.cells not in busy and (item.unordered or self.may_join(item, claims)):
                taken.append(item)
                if not item.unordered:
                    claims.update(dict.fromkeys(item.cells, item.cells))
            else:
                busy[item.cells] = None
                if not item.unordered:
                    self.hold_back(item, claims)
        self.is_held_up = not taken
        return taken

    def hold_back(self, item: WaitingRequest, claims: dict[str, Groups]) -> None:
        """Whatever comes later and shares a cell with it stays behind it."""
        claims.update(dict.fromkeys(item.cells, _HELD_BACK))

    def may_join(self, item: WaitingRequest, claims: dict[str, Groups]) -> bool:
        """No earlier message outside this envelope shares a cell with it."""
        return all(claims.get(cell, item.cells) == item.cells for cell in item.cells)

    def busy_sets(self) -> Iterable[Groups]:
        return [cells for cells, _ in self.undecided.values()]

    def busy_cells(self) -> Iterable[str]:
        return [cell for cells, ordered in self.undecided.values() if ordered for cell in cells]
