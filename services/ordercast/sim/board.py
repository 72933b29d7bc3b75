"""What simulated clients did and were told: for the checkers, and for clients that hear of each other."""

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
    #: (what its reader has seen then, message) of receipts and deliveries, latest last.
    tokens: list[tuple[bytes, MessageKey]] = field(default_factory=list)

    def send(self, key: MessageKey, sent: Sent) -> None:
        self.sent[key] = sent
        self.by_payload[sent.payload] = key

    def post(self, seen: bytes, key: MessageKey) -> None:
        self.tokens.append((seen, key))
        del self.tokens[:-64]
