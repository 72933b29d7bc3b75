"""Mutants of the change from one configuration to the next. Each breaks one rule of what is carried over.

Those that random runs catch are caught in runs in which replicas come and go.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

from ordercast.core.machine import Effect, Send
from ordercast.core.view import Former, Group
from ordercast.protocols.celllog.collect import Collect
from ordercast.protocols.paxos.handover import VotesHanding
from ordercast.protocols.paxos.proposer import Attempt, Proposer
from ordercast.protocols.scalatom.handover import Handing, Part
from ordercast.protocols.scalatom.history import Peer
from ordercast.protocols.scalatom.machine import Scalatom
from ordercast.protocols.scalatom.replica import Replica
from ordercast.protocols.scalatom.snapshot import Snapshots
from ordercast.sim.mutant import Mutant, register
from ordercast.sim.scalatom.reconfiguration import Reconfiguration
from ordercast.v1.consensus_pb2 import Votes
from ordercast.v1.scalatom_pb2 import HandedOver
from ordercast.v1.sequencer_pb2 import Snapshot

RECONFIGURING: list[Mutant] = []
mutant = partial(register, RECONFIGURING, reconfigures=True)


# ------------------------------------------------------------------------------------------------- starting


@mutant("newcomer-with-clock-0", "above the highest sealed clock", (Handing, "raise_clock"))
def _no_clock(self: Handing, replica: Replica, whole: Part) -> None:
    pass


@mutant("acceptor-joins-empty", "votes are handed over", (VotesHanding, "merge"))
def _no_votes(self: VotesHanding, message: Votes) -> list[tuple[bytes, bytes | None]]:
    return []


_enough, _merged = Collect.enough, Handing.merged


@mutant("seal-from-a-minority", "a majority of the old configuration", (Collect, "enough"))
def _one_is_enough(self: Collect[Any], complete: dict[str, Any]) -> dict[str, Any]:
    started = {name: part for name, part in complete.items() if not part.is_idle}
    return dict([min(started.items())]) if started else {}


@mutant("passed-on-without-the-own-position", "it covers what its keeper has delivered", (Handing, "merged"))
def _position_of_the_sealed(self: Handing, replica: Replica, parts: list[Part]) -> Part:
    whole = _merged(self, replica, parts)
    whole.position = max(part.position for part in parts)
    return whole


@mutant("open-message-forgotten", "open envelopes are handed over", (Handing, "_sealed"), seed=62)
def _nothing_open(self: Handing, replica: Replica) -> dict[bytes, HandedOver]:
    return {}


@mutant("old-stamp-used-though-not-all-had-stamped", "the stamp", (Handing, "stamp_of"))
def _any_old_stamp(self: Handing, found: list[HandedOver], members: int) -> int | None:
    return max(one.rec_ts for one in found)


@mutant("fresh-stamp-though-all-had-stamped", "the stamp: implied numbers", (Handing, "stamp_of"))
def _always_fresh(self: Handing, found: list[HandedOver], members: int) -> int | None:
    return None


@mutant("idle-member-counts-as-one-that-had-not-stamped", "who never started there", (Collect, "enough"))
def _idle_too(self: Collect[Any], complete: dict[str, Any]) -> dict[str, Any]:
    found = _enough(self, complete)
    if not found or any(part.is_whole for part in found.values()):
        return found
    return found | {name: part for name, part in complete.items() if part.is_idle}


def _idle_has_stamped(self: Handing, replica: Replica, parts: list[Part]) -> Part:
    started = [part for part in parts if not part.is_idle]
    whole = _merged(self, replica, started)
    for id_, handed in whole.envelopes.items():
        found = [part.envelopes[id_] for part in started if id_ in part.envelopes]
        if len(started) <= len(found) + len(parts) - len(started):
            handed.rec_ts = max(one.rec_ts for one in found)
    return whole


RECONFIGURING.append(
    Mutant(
        "idle-member-counts-as-one-that-had-stamped",
        "who never started there",
        ((Collect, "enough", _idle_too), (Handing, "merged", _idle_has_stamped)),
        reconfigures=True,
    )
)


@mutant("history-entry-replaced-by-the-new-stamp", "the lowest entry is kept", (Handing, "enter"))
def _new_entry(self: Handing, replica: Replica, id_: bytes, rec_ts: int, handed: HandedOver | None) -> None:
    entry = replica.history.entry(id_)
    if entry is not None:
        replica.history.forget(id_, b"\0" * 24)
    replica.stamp(id_, rec_ts)


@mutant("highest-history-entry-handed-over", "the lowest entry is kept", (Handing, "lowest"))
def _highest(self: Handing, found: Iterable[HandedOver]) -> int:
    return max(one.entry for one in found)


# -------------------------------------------------------------------------------------------------- sealing


@mutant("sealed-replica-still-stamps", "sealed stands still", (Replica, "follow"))
def _stays_active(self: Replica, group: Group) -> None:
    """It goes on as if the new configuration were the old one."""
    self.group = group
    self.is_active = bool(self.started) and self.process in group.replicas
    if self.is_active:
        self.started = group.configuration
        self.peers = {name: self.peers.get(name) or Peer() for name in group.replicas if name != self.process}


_follow, _complete_up_to = Replica.follow, Replica.complete_up_to


def _remembers_clocks(self: Replica, group: Group) -> None:
    """What members of the configuration before had said of theirs."""
    known = {name: peer.clock for name, peer in self.peers.items()}
    _follow(self, group)
    self.clocks_before = {**getattr(self, "clocks_before", {}), **known}  # type: ignore[attr-defined]


def _by_clocks_before(self: Replica, own_clock: int) -> int:
    before: dict[str, int] = getattr(self, "clocks_before", {})
    clocks = sorted([own_clock, *before.values()], reverse=True)
    known = clocks[self.majority() - 1] - 1 if len(clocks) >= self.majority() else -1
    return max(known, _complete_up_to(self, own_clock))


RECONFIGURING.append(
    Mutant(
        "watermark-kept-over-a-reconfiguration",
        "Watermark: by a majority of one configuration",
        ((Replica, "follow", _remembers_clocks), (Replica, "complete_up_to", _by_clocks_before)),
        reconfigures=True,
    )
)


_on_ask = Handing.on_ask


@mutant("asked-before-it-is-sealed", "sealed stands still: stamps, clock", (Handing, "on_ask"))
def _answers_at_once(self: Handing, event: Any) -> None:
    """It has not heard of the new configuration, and goes on in the old one after it has answered."""
    ask, replica = event.message, self.machine.replicas.get(event.message.group)
    if replica is None or not replica.is_active or ask.configuration <= replica.group.configuration:
        _on_ask(self, event)
        return
    answer = self._answer(replica, replica.clock, replica.position, self._sealed(replica), ask.after)
    answer.configuration = ask.configuration
    self.machine.then.append(Send((event.source,), answer))


@mutant("F-not-carried-over", "the log reaches what any sealed one has forgotten", (Handing, "reached"))
def _any_log(self: Handing, replica: Replica, complete: dict[str, Part]) -> dict[str, Part]:
    return complete


@mutant("waits-for-the-longest-log-of-all", "any sealed majority is enough", (Handing, "reached"))
def _all_or_none(self: Handing, replica: Replica, complete: dict[str, Part]) -> dict[str, Part]:
    return complete if all(part.position <= replica.position for part in complete.values()) else {}


# ------------------------------------------------------------------------------------------------ consensus


@mutant(
    "round-0-again-in-a-later-configuration", "round 0, implied numbers", (Scalatom, "may_skip_votes"), seed=17
)
def _always_skips(self: Scalatom, header: Any) -> bool:
    return True


@mutant("proposal-keeps-its-value-and-votes", "votes count within one configuration", (Proposer, "begin_again"))
def _goes_on(self: Proposer, attempt: Attempt, now: float) -> list[Effect]:
    assert self.view is not None
    attempt.configurations = {name: self.view.groups[name].configuration for name in attempt.groups}
    return []


# ------------------------------------------------------------------------------------- what comes with the log


def _snapshot_without(field: str) -> Any:
    whole = Snapshots.snapshot

    def snapshot(self: Snapshots, replica: Replica) -> Snapshot:
        found = whole(self, replica)
        found.ClearField(field)  # type: ignore[arg-type]
        return found

    return snapshot


RECONFIGURING.append(
    Mutant(
        "idempotence-state-not-carried-over",
        "state of the log",
        ((Snapshots, "snapshot", _snapshot_without("producers")),),
        reconfigures=True,
    )
)
RECONFIGURING.append(
    Mutant(
        "done-not-carried-over",
        "state of the log",
        ((Snapshots, "snapshot", _snapshot_without("done")),),
        reconfigures=True,
        seed=16,
    )
)


# --------------------------------------------------------------------------------------------- one at a time


@mutant("two-changes-at-once", "the next change waits for a majority", (Reconfiguration, "may_change"), seed=3)
def _any_time(self: Reconfiguration, name: str) -> bool:
    return name in self.membership.groups and name not in self.membership.closed and name not in self.next


@mutant("hand-over-not-passed-on", "members keep what they started from", (Handing, "keep"))
def _keeps_nothing(self: Handing, name: str, whole: Part) -> None:
    pass


def _lost_is_idle(self: Replica) -> bool:
    former = self.group.former
    return former is not None and self.process in former.replicas and self.started != former.number


def _lost_too(self: Collect[Any]) -> list[str]:
    return [] if self.group.former is None else list(self._members(self.group.former))


RECONFIGURING.append(
    Mutant(
        "lost-disk-counts-as-idle",
        "who lost its disk has no say",
        ((Replica, "is_idle", property(_lost_is_idle)), (Collect, "sealed", _lost_too)),
        reconfigures=True,
    )
)


def _answers_though_lost(self: VotesHanding, former: Former | None) -> bool:
    return former is not None and self.acceptor.process in former.acceptors


RECONFIGURING.append(
    Mutant(
        "lost-acceptor-counts",
        "who lost its disk has no say",
        ((VotesHanding, "is_sealed", _answers_though_lost), (Collect, "sealed", _lost_too)),
        reconfigures=True,
    )
)
