"""A process that runs SCALATOM, driven by hand, and what its peers would say to it."""

from typing import Any

from ordercast.core.ids import KEY_MIN, pack_u64
from ordercast.core.machine import Decided, Effect, LogRead, ReadLog
from ordercast.protocols.scalatom.machine import Scalatom
from ordercast.protocols.scalatom.settings import Settings
from ordercast.v1.common_pb2 import Envelope
from ordercast.v1.consensus_pb2 import Decide
from ordercast.v1.sequencer_pb2 import Disseminate, Gossip, HistoryEntry, RecTs
from tests.unit.driving import CONFIGURATION, Driven, envelope_of, sends, sent, view_of

GROUPS = {"a": "n1 n2 n3", "b": "n1 n4 n5", "c": "n6"}
VIEW = view_of(GROUPS)
SILENCE_S = Settings().silence_s
GOSSIP_S = Settings().gossip_s


class Host(Driven):
    """Process n1, which has a replica of a and one of b."""

    def __init__(self, name: str = "n1", *, stamps_wait_s: float = 0.0, **settings: Any) -> None:
        """By the paper's rule, consensus on every number, unless a wait is given."""
        super().__init__(name, lambda: Scalatom(name, Settings(stamps_wait_s=stamps_wait_s, **settings)), VIEW)

    def take(self, envelope: Envelope, source: str = "g1", *, again: bool = False) -> list[Effect]:
        return self.receive(source, Disseminate(envelope=envelope, again=again))

    def stamp(self, source: str, envelope: Envelope, rec_ts: int, *, ask: bool = False) -> list[Effect]:
        """As a peer would that holds one of the envelope's groups."""
        here = [d for d in envelope.header.destinations if source in GROUPS[d.group]]
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
        group = "a" if source in GROUPS["a"] else "b"
        if base is None:
            base = self.machine.replicas[group].peers[source].clock
        listed = [HistoryEntry(id=envelope.header.id, rec_ts=rec_ts) for rec_ts, envelope in entries]
        fields = {"group": group, "configuration": CONFIGURATION, "forgotten": KEY_MIN, **fields}
        return self.receive(source, Gossip(base=base, clock=clock, entries=listed, **fields))

    def order(self, envelope: Envelope, sn: int) -> list[Effect]:
        """From receipt to delivery, with everybody's help."""
        self.take(envelope)
        effects = []
        peers = [p for d in envelope.header.destinations for p in GROUPS[d.group].split() if p != self.name]
        for peer in peers:
            self.stamp(peer, envelope, sn)
        effects += self.decide(envelope, sn)
        for peer in peers:
            if any(peer in replica.peers for replica in self.machine.replicas.values()):
                effects += self.gossip(peer, sn + 1)
        return effects

    def answer_reads(self, effects: list[Effect], begins: int = 0) -> list[Effect]:
        """As a driver would whose log begins there, until nothing more is asked for; what else came of it."""
        others = [effect for effect in effects if not isinstance(effect, ReadLog)]
        for read in effects:
            if isinstance(read, ReadLog):
                log = self.logs[read.group]
                first = read.position - log.begins
                entries = log.entries[first : first + read.count_max] if read.position >= begins else []
                answer = self.step(LogRead, read.group, read.position, entries, begins, read.tag)
                others += self.answer_reads(answer, begins)
        return others

    def next_stamp(self) -> int:
        """What the next envelope would get: of a host that is not needed any more."""
        (stamp,) = sent(self.take(envelope_of(999, "a")), RecTs)
        return stamp.rec_ts


def told_in(effects: list[Effect], peer: str) -> list[Gossip]:
    return [gossip for to, gossip in sends(effects, Gossip) if to == [peer]]
