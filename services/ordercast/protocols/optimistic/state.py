"""What follows from a source group's log, and from nothing else: Algorithm 1 l.19-28, Algorithm 3 l.26-39.

Whoever has applied the same instances of a source has the same state: its last key, which is its barrier; whose
message comes next; which groups it may send to; and whose barriers it waits for itself.

[E7] **Counters.** Each sender counts its messages to a source. An entry that is not its sender's next is ignored,
and its message stays pending: instances run in parallel, so I+1 may be decided with m2 while I, with m1 before it,
was lost with its leader. Of the lives of a gateway only the latest counts.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from google.protobuf.message import DecodeError

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import ID_BYTES, incarnation_of
from ordercast.protocols.optimistic import keys
from ordercast.protocols.optimistic.keys import LOWEST
from ordercast.v1.optimistic_pb2 import (
    AddedState,
    NullEntry,
    OpenEntry,
    OverEntry,
    PlacedEntry,
    SenderState,
    SourceEntries,
    SourceState,
)


class Verdict(Enum):
    """What became of an entry for a message."""

    STAMPED = auto()
    #: It was there before, or its sender is over.
    REPEATED = auto()
    #: Earlier messages of its sender are missing: it comes again.
    EARLY = auto()
    #: A destination that this group may not send to. Its sender's next one follows all the same.
    REFUSED = auto()


@dataclass(slots=True)
class Sender:
    """The latest life of a gateway, and which of its messages comes next."""

    incarnation: int
    next: int = 1
    is_over: bool = False


@dataclass(slots=True)
class Applied:
    entry: PlacedEntry
    verdict: Verdict
    key: bytes = b""
    is_raised: bool = False


class State:
    """Of one source, at `next`: after all instances below that."""

    def __init__(self, source: str, configuration: int, members: Iterable[str]) -> None:
        self.source = source
        self.next = 0
        self.last = LOWEST
        self.senders: dict[str, Sender] = {}
        self.configuration = configuration
        self.members = tuple(members)
        #: Groups that it may send to, besides itself, and since which instance.
        self.receivers: dict[str, None] = {}
        #: Groups whose barriers it waits for, besides its own, above a key.
        self.added: dict[str, bytes] = {}

    # -------------------------------------------------------------------------------------------------- applying

    def apply(self, value: bytes) -> "Outcome":
        """The next instance. Entries are in the order of their keys, as far as the leader knew them."""
        outcome = Outcome()
        for entry in entries_of(value).entries:
            match entry.WhichOneof("entry"):
                case "placed":
                    outcome.applied.append(self._place(entry.placed, outcome))
                case "null":
                    self._pass(entry.null)
                case "over":
                    self._end(entry.over, outcome)
                case "add":
                    if entry.add.group != self.source and entry.add.group not in self.added:
                        self.added[entry.add.group] = self.last
                        outcome.added.append(entry.add.group)
                case "open":
                    self._open(entry.open, outcome)
                case _:
                    pass
        self.next += 1
        return outcome

    def _place(self, entry: PlacedEntry, outcome: "Outcome") -> Applied:
        sender = self.senders.get(entry.gateway)
        incarnation = incarnation_of(entry.id)
        if sender is None or incarnation > sender.incarnation:
            if entry.counter != 1:
                return Applied(entry, Verdict.EARLY)
            if sender is not None and not sender.is_over:
                outcome.over.append((entry.gateway, sender.incarnation))
            sender = self.senders[entry.gateway] = Sender(incarnation)
        verdict = self.verdict_on(entry.gateway, incarnation, entry.counter)
        if verdict is not Verdict.STAMPED:
            return Applied(entry, verdict)
        sender.next += 1
        if any(group != self.source and group not in self.receivers for group in entry.destinations):
            return Applied(entry, Verdict.REFUSED)
        key = self._key_of(entry)
        is_raised = key != keys.key_of(entry.timestamp, entry.id)
        self.last = key
        return Applied(entry, Verdict.STAMPED, key, is_raised)

    def _key_of(self, entry: PlacedEntry) -> bytes:
        """[Algorithm 3 l.29-30, E4] That of its sender, if it is above all before it; else one that is."""
        key = keys.key_of(entry.timestamp, entry.id)
        return key if key > self.last else keys.raised_above(self.last, entry.id)

    def verdict_on(self, gateway: str, incarnation: int, counter: int) -> Verdict:
        """What would become of this message, as far as its sender goes."""
        sender = self.senders.get(gateway)
        if sender is None or incarnation > sender.incarnation:
            return Verdict.STAMPED if counter == 1 else Verdict.EARLY
        if incarnation < sender.incarnation or sender.is_over or counter < sender.next:
            return Verdict.REPEATED
        return Verdict.STAMPED if counter == sender.next else Verdict.EARLY

    def has_applied(self, gateway: str, id_: bytes, counter: int) -> bool:
        """The message has its place, or never gets one."""
        return self.verdict_on(gateway, incarnation_of(id_), counter) is Verdict.REPEATED

    def is_over(self, gateway: str, incarnation: int) -> bool:
        """Nothing more of this life of the gateway is placed."""
        sender = self.senders.get(gateway)
        if sender is None or incarnation > sender.incarnation:
            return False
        return incarnation < sender.incarnation or sender.is_over

    def _pass(self, null: NullEntry) -> None:
        """[E5] Barriers only rise."""
        self.last = max(self.last, null.key)

    def _end(self, over: OverEntry, outcome: "Outcome") -> None:
        sender = self.senders.get(over.gateway)
        if self.is_over(over.gateway, over.incarnation):
            return
        if sender is None or sender.incarnation < over.incarnation:
            sender = self.senders[over.gateway] = Sender(over.incarnation)
        sender.is_over = True
        outcome.over.append((over.gateway, over.incarnation))

    def _open(self, open_: OpenEntry, outcome: "Outcome") -> None:
        """The receiver waits for our barrier above that key: nothing that it gets from us is at or below it."""
        if open_.group != self.source and open_.group not in self.receivers:
            self.last = max(self.last, open_.key)
            self.receivers[open_.group] = None
            outcome.opened.append(open_.group)

    # ---------------------------------------------------------------------------------------------------- copies

    def to_message(self) -> SourceState:
        return SourceState(
            next=self.next,
            last=self.last,
            senders=[
                SenderState(gateway=name, incarnation=s.incarnation, next=s.next, over=s.is_over)
                for name, s in self.senders.items()
            ],
            configuration=self.configuration,
            members=self.members,
            receivers=self.receivers,
            added=[AddedState(group=group, key=key) for group, key in self.added.items()],
        )

    @classmethod
    def of_message(cls, source: str, message: SourceState) -> "State":
        """From a peer, or from our disk."""
        state = cls(source, message.configuration, message.members)
        state.next, state.last = message.next, message.last
        keys.check(state.last)
        for sender in message.senders:
            state.senders[sender.gateway] = Sender(sender.incarnation, sender.next, sender.over)
        state.receivers = dict.fromkeys(message.receivers)
        for added in message.added:
            keys.check(added.key)
            state.added[added.group] = added.key
        return state


@dataclass(slots=True)
class Outcome:
    """Of one instance."""

    applied: list[Applied]
    #: Incarnations of gateways that are over from here on.
    over: list[tuple[str, int]]
    #: Groups that this one may send to from the next instance on; and groups whose barriers it waits for.
    opened: list[str]
    added: list[str]

    def __init__(self) -> None:
        self.applied, self.over, self.opened, self.added = [], [], [], []


def entries_of(value: bytes) -> SourceEntries:
    """The value of an instance; no value has no entries."""
    try:
        return SourceEntries.FromString(value)
    except DecodeError as error:
        raise RemoteProtocolError(f"not the entries of a source group: {error}") from error


def check_entries(value: bytes) -> None:
    """A peer proposes it, or says that it is decided: nothing in it may be what cannot be applied."""
    for entry in entries_of(value).entries:
        match entry.WhichOneof("entry"):
            case "placed":
                if len(entry.placed.id) != ID_BYTES or not entry.placed.counter:
                    raise RemoteProtocolError("not an entry for a message")
                keys.check(keys.key_of(entry.placed.timestamp, entry.placed.id))
            case "null":
                keys.check(entry.null.key)
            case "open":
                keys.check(entry.open.key)
            case None:
                raise RemoteProtocolError("an entry of a kind that is not known here")
            case _:
                pass
