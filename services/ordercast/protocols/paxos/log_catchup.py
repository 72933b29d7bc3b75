"""Catching up with the replicated log: from the entries a peer still has, or from its snapshot.

Whoever says that it knows more decided slots than we do can be asked for them, leader or not: a decided slot has
one value for ever. So nothing here waits for a barrier either.
"""

from typing import TYPE_CHECKING

from ordercast.core.errors import InvariantBroken
from ordercast.protocols.paxos.log_state import batch_of
from ordercast.v1.consensus_pb2 import LogFetch, LogInstall, LogItem, LogTail

if TYPE_CHECKING:
    from ordercast.protocols.paxos.log import LogReplica


class CatchUp:
    def __init__(self, member: "LogReplica") -> None:
        self.member = member
        #: The number of decided slots that each peer last said it knows.
        self.peers_decided: dict[str, int] = {}
        #: Whom we asked and await; one at a time.
        self.asked: str | None = None
        self.deadline = 0.0

    # ------------------------------------------------------------------------------------------- asking

    def fetch_if_behind(self, source: str) -> None:
        if self.asked is None and self.peers_decided[source] > self.member.state.decided:
            self._fetch(source)

    def on_reset(self, peer: str) -> None:
        if self.asked == peer:
            self._fetch(peer)

    def on_tick(self) -> None:
        if self.asked is not None and self.member.now >= self.deadline:
            self._fetch_elsewhere(self.asked)

    def _fetch(self, source: str) -> None:
        self.asked = source
        self.deadline = self.member.now + self.member.settings.retry_s
        self.member.send((source,), LogFetch(decided=self.member.state.decided))

    def _fetch_elsewhere(self, silent: str) -> None:
        """From the next one after the silent peer that has more than we do; in the end from that peer again."""
        self.asked = None
        others = self.member.others
        turn = others.index(silent) + 1
        for name in others[turn:] + others[:turn]:
            if self.peers_decided.get(name, 0) > self.member.state.decided:
                self._fetch(name)
                return

    def _answered(self, source: str) -> None:
        if self.asked == source:
            self.asked = None

    # ------------------------------------------------------------------------------------------- answering

    def on_fetch(self, source: str, fetch: LogFetch) -> None:
        state, settings = self.member.state, self.member.settings
        first = fetch.decided
        if first < state.begins:
            install = LogInstall(slot=state.begins, decided=state.decided, snapshot=state.snapshot)
            self.member.send((source,), install)
            return
        last = min(state.decided, first + settings.fetch_count_max)
        items = [state.entries[slot].item for slot in range(first, last)]
        tail = LogTail(first=first, decided=state.decided)
        # Empty if we know less than we once said: we restarted, and had not yet written down what was decided
        # last. The peer hears how little we know now, and asks somebody else.
        tail.items.extend(batch_of(items, settings.batch_bytes_max, settings.fetch_count_max))
        self.member.send((source,), tail)

    # ------------------------------------------------------------------------------------------- learning

    def on_tail(self, source: str, tail: LogTail) -> None:
        self._answered(source)
        state, before = self.member.state, self.member.state.decided
        for slot, item in enumerate(tail.items, tail.first):
            state.check_agrees(slot, item)
            if slot == state.decided:
                self._learn(slot, item)
        if state.decided > before:
            self.member.persist(barrier=False)

    def _learn(self, slot: int, item: LogItem) -> None:
        member = self.member
        if member.reign is not None:
            known = member.state.entries.get(slot)
            if known is None or known.item != item:
                # Decided in a higher round: b and c elected c, which had this slot decided, and c answered us
                # with `decided` before anybody told us of its round.
                member.follow(None)
            else:
                member.reign.on_learned(slot)
        member.state.learn(item)
        member.apply_next()

    def on_install(self, source: str, install: LogInstall) -> None:
        self._answered(source)
        member = self.member
        if install.slot <= member.state.decided:
            return
        if member.reign is not None:
            # Peers cannot have dropped what we have not seen decided, unless others decided it in a higher round.
            member.follow(None)
        hidden = [slot for slot in sorted(member.mine) if slot < install.slot]
        tags = tuple(member.mine.pop(slot)[1] for slot in hidden)
        member.state.truncate(install.slot, install.snapshot)
        member.hand_snapshot(tags)
        member.persist(barrier=False)

    # ------------------------------------------------------------------------------------------- dropping

    def truncate(self, slot: int, snapshot: bytes) -> None:
        member = self.member
        if slot > member.state.decided or len(snapshot) > member.settings.snapshot_bytes_max:
            raise InvariantBroken(f"the client's snapshot of {len(snapshot)} bytes before slot {slot}")
        # Not newer than what is there: a peer's snapshot came while the client made its own.
        if slot > member.state.begins:
            member.state.truncate(slot, snapshot)
            member.persist(barrier=False)
