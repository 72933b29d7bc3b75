"""A process that runs SCALATOM, driven by hand, and what its peers would say to it."""

import zlib
from typing import Any

from ordercast.core.ids import KEY_MIN, pack_u64
from ordercast.core.machine import Decided, Effect, LogRead, ReadLog
from ordercast.core.view import Group, View
from ordercast.protocols.celllog.pieces import checksum_of
from ordercast.protocols.scalatom.machine import Scalatom
from ordercast.protocols.scalatom.replica import Replica
from ordercast.protocols.scalatom.settings import Settings
from ordercast.v1.common_pb2 import Envelope
from ordercast.v1.consensus_pb2 import Decide
from ordercast.v1.membership_pb2 import DomainView
from ordercast.v1.scalatom_pb2 import Gossip, HistoryEntry, RecTs
from ordercast.v1.sequencer_pb2 import Disseminate, LogChunk, LogEntry, Snapshot, SnapshotAsk, SnapshotPart
from tests.unit.driving import CONFIGURATION, Driven, envelope_of, key_of, sends, sent, sent_when_durable, view_of

GROUPS = {"a": "n1 n2 n3", "b": "n1 n4 n5", "c": "n6"}
VIEW = view_of(GROUPS)
SILENCE_S = Settings().silence_s
GOSSIP_S = Settings().gossip_s


class Host(Driven):
    """Process n1, which has a replica of a and one of b."""

    def __init__(
        self, name: str = "n1", *, view: DomainView = VIEW, stamps_wait_s: float = 0.0, **settings: Any
    ) -> None:
        """By the paper's rule, consensus on every number, unless a wait is given."""
        super().__init__(name, lambda: Scalatom(name, Settings(stamps_wait_s=stamps_wait_s, **settings)), view)

    @property
    def known(self) -> View:
        assert self.view is not None
        return View(self.view)

    @property
    def groups(self) -> dict[str, Group]:
        """As in the view that it has."""
        return self.known.groups

    def replica(self, group: str = "a") -> Replica:
        found: Replica = self.machine.replicas[group]
        return found

    def take(self, envelope: Envelope, source: str = "g1", *, again: bool = False) -> list[Effect]:
        return self.receive(source, Disseminate(envelope=envelope, again=again))

    def stamp(self, source: str, envelope: Envelope, rec_ts: int, *, ask: bool = False) -> list[Effect]:
        """As a peer would that holds some of the envelope's groups, and has our view."""
        view = self.known
        known = view.known(d.group for d in envelope.header.destinations)
        here = view.destinations(name for name in known if source in view.groups[name].replicas)
        return self.receive(source, RecTs(id=envelope.header.id, rec_ts=rec_ts, groups=here, ask=ask))

    def decide(self, envelope: Envelope, sn: int) -> list[Effect]:
        """By the proposer here."""
        return self.step(Decided, envelope.header.id, pack_u64(sn))

    def told(self, source: str, envelope: Envelope, sn: int) -> list[Effect]:
        return self.receive(source, Decide(instance=envelope.header.id, value=pack_u64(sn)))

    def gossip(
        self, source: str, clock: int, *entries: tuple[int, Envelope], base: int | None = None, **fields: Any
    ) -> list[Effect]:
        """From a peer in a, or in b; from where its last statement ended unless a base is given."""
        group = "a" if source in self.groups["a"].replicas else "b"
        if base is None:
            base = self.machine.replicas[group].peers[source].clock
        listed = [HistoryEntry(id=envelope.header.id, rec_ts=rec_ts) for rec_ts, envelope in entries]
        configuration = self.groups[group].configuration
        fields = {"group": group, "configuration": configuration, "forgotten": KEY_MIN, **fields}
        return self.receive(source, Gossip(base=base, clock=clock, entries=listed, **fields))

    def order(self, envelope: Envelope, sn: int) -> list[Effect]:
        """From receipt to delivery, with everybody's help."""
        self.take(envelope)
        effects = []
        groups = self.groups
        peers = [p for d in envelope.header.destinations for p in groups[d.group].replicas if p != self.name]
        for peer in peers:
            self.stamp(peer, envelope, sn)
        effects += self.decide(envelope, sn)
        for peer in peers:
            if any(peer in replica.peers for replica in self.machine.replicas.values()):
                effects += self.gossip(peer, sn + 1)
        return effects

    def hear(self, source: str, message: Any) -> list[Effect]:
        return self.answer_reads(self.receive(source, message))

    def answer_reads(self, effects: list[Effect]) -> list[Effect]:
        """As a driver would, until nothing more is asked for; what else came of it."""
        others = [effect for effect in effects if not isinstance(effect, ReadLog)]
        for read in effects:
            if isinstance(read, ReadLog):
                log = self.logs[read.group]
                first = read.position - log.begins
                entries = log.entries[first : first + read.count_max] if first >= 0 else []
                answer = self.step(LogRead, read.group, read.position, entries, log.begins, read.tag)
                others += self.answer_reads(answer)
        return others

    def next_stamp(self) -> int:
        """What the next envelope would get: of a host that is not needed any more."""
        (rec_ts,) = {stamp.rec_ts for stamp in sent(self.take(envelope_of(999, "a")), RecTs)}
        return rec_ts


def snapshot_of(host: Host, group: str, peer: str) -> Snapshot:
    """The state at the end of its log, as it gives it to a peer in that group."""
    configuration = host.groups[group].configuration
    data, ask = b"", SnapshotAsk(group=group, configuration=configuration)
    while True:
        ((_, part),) = sent_when_durable(host.receive(peer, ask), SnapshotPart)
        data += part.data
        if part.part + 1 == part.parts:
            assert zlib.crc32(data) == part.checksum
            return Snapshot.FromString(data)
        ask = SnapshotAsk(group=group, configuration=configuration, token=part.token, part=part.part + 1)


def chunk_of(*entries: LogEntry, group: str = "a", position: int = 0, **fields: Any) -> LogChunk:
    """A piece of a log; unless said otherwise, its last."""
    fields = {"configuration": CONFIGURATION, "head": position + len(entries), **fields}
    fields.setdefault("checksum", checksum_of(entries))
    return LogChunk(group=group, position=position, entries=entries, **fields)


def log_entry(sn: int, envelope: Envelope, **fields: Any) -> LogEntry:
    return LogEntry(**{"order_key": key_of(sn, envelope), "envelope": envelope, **fields})


def told_in(effects: list[Effect], peer: str) -> list[Gossip]:
    return [gossip for to, gossip in sends(effects, Gossip) if to == [peer]]
