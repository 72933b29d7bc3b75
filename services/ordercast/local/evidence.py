"""What clients did and saw on a real cluster and what its logs show; and what became of it when it was judged.

Messages are told apart by their payloads, which are unique.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from ordercast.core.cells import cell_of, shares_cell
from ordercast.core.ids import group_name
from ordercast.core.place import Place
from ordercast.core.protocol import Orders
from ordercast.local.messages import new_messages
from ordercast.protocols.catalogue import named
from ordercast.sim.board import MessageKey
from ordercast.v1.membership_pb2 import Domain
from ordercast.v1.sequencer_pb2 import LogEntry

FINDINGS_MAX = 20


def is_within(protocol: str) -> bool:
    """Whether it orders each group by itself."""
    return named(protocol).traits.orders == Orders.WITHIN


@dataclass(slots=True)
class SentMessage:
    payload: bytes
    #: Rising with each message that the same producer sent.
    index: int
    groups: tuple[str, ...]
    unordered: bool = False
    #: Payloads of messages that the sender had a receipt for.
    after: tuple[bytes, ...] = ()


@dataclass(slots=True)
class Acknowledged:
    order_key: bytes
    offsets: dict[str, int]
    duplicate: bool


@dataclass(slots=True)
class MergedWitness:
    """Who read several groups as one stream, from the beginning."""

    groups: tuple[str, ...]
    #: Place in the order, payload, and by group the offset.
    seen: list[tuple[Place, bytes, dict[str, int]]] = field(default_factory=list)


@dataclass(slots=True)
class Evidence:
    sent: dict[bytes, SentMessage] = field(default_factory=dict)
    receipts: dict[bytes, Acknowledged] = field(default_factory=dict)
    #: (subscriber, group) -> (offset, payload), in the order in which they came.
    seen: dict[tuple[str, str], list[tuple[int, bytes]]] = field(default_factory=dict)
    #: By reader.
    merged: dict[str, MergedWitness] = field(default_factory=dict)
    #: group -> replica -> entries, as readers of the group are shown them. Groups are named by their addresses.
    logs: dict[str, dict[str, list[LogEntry]]] = field(default_factory=dict)
    #: Of cells that groups share: cell -> replica -> entries, as replicas have them.
    shared: dict[str, dict[str, list[LogEntry]]] = field(default_factory=dict)
    #: group or cell -> its domain, with protocol and settings. Others are in the domain that every cluster has.
    domains: dict[str, Domain] = field(default_factory=dict)

    @property
    def cells(self) -> dict[str, dict[str, list[LogEntry]]]:
        """What protocols order among: also groups that have a cell to themselves."""
        alone = {id_: replicas for id_, replicas in self.logs.items() if not shares_cell(id_)}
        return alone | self.shared

    def ordered_within(self) -> list[str]:
        """Those of the groups that are ordered each by itself."""
        return [id_ for id_ in self.logs if self._is_within(id_)]

    def _is_within(self, id_: str) -> bool:
        return id_ in self.domains and is_within(self.domains[id_].protocol)

    def of_groups(self, ids: Collection[str]) -> "Evidence":
        """What concerns these groups alone."""
        names = {group_name(id_) for id_ in ids}
        cells = {cell_of(id_) for id_ in ids}
        sent = {payload: one for payload, one in self.sent.items() if names.intersection(one.groups)}
        return Evidence(
            sent,
            {payload: receipt for payload, receipt in self.receipts.items() if payload in sent},
            {key: seen for key, seen in self.seen.items() if key[1] in names},
            {},
            {id_: self.logs[id_] for id_ in ids},
            {id_: replicas for id_, replicas in self.shared.items() if id_ in cells},
            {id_: domain for id_, domain in self.domains.items() if id_ in cells or id_ in ids},
        )


@dataclass(slots=True)
class Verdict:
    acknowledged: int = 0
    lost: int = 0
    duplicated: int = 0
    order_violations: int = 0
    findings: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.duplicated or self.order_violations)

    def find(self, text: str) -> None:
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(text)


def messages_of(entry: LogEntry) -> list[tuple[int, bytes, MessageKey]]:
    """(offset, payload, key) of what is new in an entry."""
    return [
        (told.offset, told.payload, (told.producer, told.groups, told.sequence)) for told in new_messages(entry)
    ]
