"""What simulated clients did and were told: for the checkers, and for clients that hear of each other."""

from collections.abc import Hashable
from dataclasses import dataclass, field

Groups = tuple[str, ...]
#: (producer, destination set, number): the number only tells the producer's messages to that set apart.
MessageKey = tuple[bytes, Groups, int]


def name_of(key: MessageKey) -> str:
    return f"{key[0].decode(errors='replace')} to {','.join(key[1])} #{key[2]}"


@dataclass(slots=True)
class Sent:
    """What a client did, for the checkers."""

    index: int
    unordered: bool
    payload: bytes
    #: Messages the client had seen: receipts and tokens.
    after: list[MessageKey]
    #: Deliveries that it had been shown (`Shown.place`), also those that may be lost.
    shown: list[Hashable] = field(default_factory=list)
    #: Of what it had seen, what it knew of by a receipt, its own or somebody's.
    by_receipt: list[MessageKey] = field(default_factory=list)
    #: How many were sent before it, by all clients.
    number: int = 0


@dataclass(slots=True)
class Shown:
    """A message that somebody comes upon, as a receipt or in a replica's log or as it is delivered."""

    #: What its reader has seen then, as the protocol writes it.
    seen: bytes
    key: MessageKey
    #: Which delivery it was, if it was one: the same message may be sent again, and be delivered again.
    place: Hashable = None
    #: What is delivered early may be lost.
    may_be_lost: bool = False


@dataclass(slots=True)
class Receipt:
    key: MessageKey
    order_key: bytes
    offsets: dict[str, int]
    duplicate: bool


@dataclass(slots=True)
class Board:
    sent: dict[MessageKey, Sent] = field(default_factory=dict)
    #: No two messages have the same payload.
    by_payload: dict[bytes, MessageKey] = field(default_factory=dict)
    receipts: list[Receipt] = field(default_factory=list)
    #: What senders gave up, told that it may be stored or not. Some of it may be delivered all the same.
    given_up: dict[MessageKey, None] = field(default_factory=dict)
    #: What they were told is not stored, and never will be.
    refused: dict[MessageKey, None] = field(default_factory=dict)
    #: What went again under another number comes behind what was stored meanwhile, also of the same producer.
    renumbered: dict[MessageKey, None] = field(default_factory=dict)
    #: Of receipts and deliveries, latest last.
    tokens: list[Shown] = field(default_factory=list)

    def send(self, key: MessageKey, sent: Sent) -> None:
        sent.number = len(self.sent)
        self.sent[key] = sent
        self.by_payload[sent.payload] = key

    def post(self, shown: Shown) -> None:
        self.tokens.append(shown)
        del self.tokens[:-64]
