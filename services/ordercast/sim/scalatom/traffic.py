"""Participant and message size minimality, checked at every send.

[SCALATOM 1.2] Only the sender and the destinations take part in a multicast, and what they send depends on the
number of destinations, not on the size of the system. Counted per (process, group) role: a process may hold
replicas of many groups, and says nothing about an envelope in a group that the envelope is not for.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ordercast.core.packets import FIELD_OF
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.trace import describe
from ordercast.v1.membership_pb2 import DomainView, GroupView

#: Which envelopes a packet is about, by its name in the Packet.
ABOUT: dict[str, Callable[[Any], Sequence[bytes]]] = {
    "disseminate": lambda m: (m.envelope.header.id,),
    "rec_ts": lambda m: (m.id,),
    "gossip": lambda m: [entry.id for entry in m.entries],
    "pull": lambda m: (m.id,),
    "have": lambda m: (m.id,),
    "have_ask": lambda m: (m.id,),
    "log_chunk": lambda m: [entry.envelope.header.id for entry in m.entries],
    "hand_over": lambda m: [handed.envelope.header.id for handed in m.envelopes],
    "votes": lambda m: [vote.instance for vote in m.votes],
    "envelope_decided": lambda m: (m.id,),
    "envelope_delivered": lambda m: (m.id,),
    "envelope_durable": lambda m: (m.id,),
    "prepare": lambda m: (m.instance,),
    "promise": lambda m: (m.instance,),
    "accept": lambda m: (m.instance,),
    "accepted": lambda m: (m.instance,),
    "rejected": lambda m: (m.instance,),
    "closed": lambda m: (m.instance,),
    "close": lambda m: m.instances,
    "decide": lambda m: (m.instance,),
}
#: The group a packet speaks for, where it names one.
GROUP = {"gossip", "log_chunk", "hand_over", "votes", "envelope_delivered", "envelope_durable"}
#: Fixed bytes, and bytes per destination group or entry. Group names in runs have one letter.
SIZES: dict[str, tuple[int, int]] = {
    "rec_ts": (40, 10),
    "gossip": (90, 32),
    "gossip_ask": (30, 0),
    "pull": (30, 0),
    "have": (30, 10),
    "have_ask": (30, 0),
    "fetch_log": (30, 0),
    "snapshot_ask": (40, 0),
    "hand_over_ask": (40, 0),
    "votes_ask": (40, 0),
    "envelope_decided": (60, 0),
    "envelope_durable": (40, 0),
    "prepare": (70, 10),
    "promise": (80, 0),
    "accept": (70, 10),
    "accepted": (60, 0),
    "rejected": (60, 0),
    "closed": (30, 0),
    "decide": (40, 0),
}

_UNMEASURED = (1 << 62, 0)
#: All of that by message class: kind, fixed bytes, which envelopes it is about, whether it names a group.
_RULES = {
    class_: (kind, SIZES.get(kind, _UNMEASURED)[0], ABOUT.get(kind), kind in GROUP)
    for class_, kind in FIELD_OF.items()
}


class TrafficChecker:
    def __init__(self, view: DomainView) -> None:
        #: Everyone who is or was in a configuration of the group, or was to be.
        self.members: dict[str, frozenset[str]] = {}
        for group in view.groups:
            self.add(group)
        #: Envelope -> (who submitted it, its groups), learnt from whoever submits it; and the processes that may
        #: speak of what is for some groups and from somebody.
        self.known: dict[bytes, tuple[str, tuple[str, ...]]] = {}
        self._processes: dict[tuple[str, tuple[str, ...]], frozenset[str]] = {}
        self.by_kind: dict[str, int] = {}

    def add(self, group: GroupView) -> None:
        before = self.members.get(group.group, frozenset())
        self.members[group.group] = before | {*group.replicas, *group.acceptors, *group.learners}
        self._processes = {}

    def on_send(self, source: str, to: Sequence[str], message: Any, size: int) -> None:
        kind, fixed, about, names_group = _RULES[type(message)]
        self.by_kind[kind] = self.by_kind.get(kind, 0) + len(to) - (source in to)
        if size > fixed:
            self._check_size(source, kind, message, size)
        if about is None:
            return
        if kind == "disseminate" and message.envelope.header.id not in self.known:
            names = tuple(destination.group for destination in message.envelope.header.destinations)
            self.known[message.envelope.header.id] = (source, names)
        for id_ in about(message):
            known = self.known.get(id_)
            if known is None:
                raise Violation("participants", f"{source} speaks of {describe(id_)}, which nobody sent")
            groups = known[1]
            processes = self._processes.get(known) or self._who_may(known)
            if source not in processes or not processes.issuperset(to):
                raise Violation(
                    "participants",
                    f"{source} sends {describe(message)} to {list(to)}, but {describe(id_)} is for {groups}",
                )
            if names_group and message.group not in groups:
                raise Violation(
                    "participants",
                    f"{source} speaks of {describe(id_)} in {message.group}, but it is for {groups}",
                )

    def _who_may(self, known: tuple[str, tuple[str, ...]]) -> frozenset[str]:
        found = frozenset((known[0],)).union(*(self.members[name] for name in known[1]))
        self._processes[known] = found
        return found

    def _check_size(self, source: str, kind: str, message: Any, size: int) -> None:
        fixed, each = SIZES[kind]
        parts = len(message.entries) if kind == "gossip" else len(message.groups) if each else 0
        if kind in ("prepare", "accept"):
            parts += len(message.open)  # as many as a gateway may have open, whatever else there is
        if size > fixed + each * parts:
            raise Violation("size", f"{source} sends {size} bytes for {describe(message)}")
