"""Who waits for whom: what all nodes say of what waits there, by envelope, and by what holds it up."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ordercast.cli.output import duration_text

if TYPE_CHECKING:
    from ordercast.v1.gateway_pb2 import DescribeWaitingResponse
    from ordercast.v1.sequencer_pb2 import WaitingEnvelope

#: What a gateway knows of an envelope that left it: only that a group has not delivered it. Replicas know more.
AT_GATEWAYS = "publish"
#: What holds up an envelope of which nobody says why it waits.
UNKNOWN = "nobody says for whom"
#: Of an id, which is long, so much is enough for people.
ID_CHARACTERS = 12
LINES_MAX = 200

#: The domain, and the id of the envelope in hexadecimal digits; without one, where it waits and for which groups.
Key = tuple[str, str]


@dataclass(slots=True)
class WaitingFor:
    """One envelope, as all nodes together have it."""

    domain: str
    id: str
    groups: dict[str, None] = field(default_factory=dict)
    #: By stage, the nodes.
    stages: dict[str, list[str]] = field(default_factory=dict)
    waited_s: float = 0.0
    blockers: dict[str, None] = field(default_factory=dict)
    #: What only a gateway says of it.
    at_gateways: dict[str, None] = field(default_factory=dict)

    def add(self, node: str, told: "WaitingEnvelope") -> None:
        self.groups.update(dict.fromkeys(told.groups))
        self.stages.setdefault(told.stage, []).append(node)
        self.waited_s = max(self.waited_s, told.waited_ms / 1e3)
        (self.at_gateways if told.stage == AT_GATEWAYS else self.blockers).update(dict.fromkeys(told.blocked_on))

    @property
    def blocked_on(self) -> list[str]:
        return list(self.blockers or self.at_gateways) or [UNKNOWN]

    def text(self) -> str:
        where = "; ".join(f"{stage} at {', '.join(nodes)}" for stage, nodes in self.stages.items())
        name = self.id[:ID_CHARACTERS] or "not in an envelope"
        return f"{name}  {self.domain}: {', '.join(self.groups)}  {where}  {duration_text(self.waited_s)}"


@dataclass(slots=True)
class Blocker:
    """What holds something up and waits for nothing itself, as far as anybody says."""

    #: Empty if it is known under one name in all domains.
    domain: str
    name: str
    #: Those that wait for it and for nothing before it, the oldest first.
    held_up: list[WaitingFor]
    #: With all that wait for those.
    count: int
    oldest_s: float


class Waits:
    def __init__(self, found: "DescribeWaitingResponse") -> None:
        self.silent = {node.node: node.error for node in found.nodes if node.error}
        self.suspected = {node.node: None for node in found.nodes if node.suspected}
        self.envelopes: dict[Key, WaitingFor] = {}
        for node in found.nodes:
            for told in node.waiting:
                id_ = told.id.hex()
                key = (told.domain, id_ or f"{node.node} {' '.join(told.groups)}")
                self.envelopes.setdefault(key, WaitingFor(told.domain, id_)).add(node.node, told)
        #: By what holds it up: keys of envelopes, or names of anything else.
        self._behind: dict[Key, list[Key]] = {}
        for key, envelope in self.envelopes.items():
            for name in envelope.blocked_on:
                self._behind.setdefault(self._cause(envelope.domain, name), []).append(key)

    def _cause(self, domain: str, name: str) -> Key:
        """Processes are the same in all domains."""
        kind, _, rest = name.partition(":")
        if kind == "message":
            return domain, rest
        return ("", name) if kind == "replica" else (domain, name)

    def blockers(self) -> list[Blocker]:
        """The worst first: by how long the oldest has waited."""
        found = [
            self._blocker(cause, self._oldest_first(cause))
            for cause in self._behind
            if cause not in self.envelopes
        ]
        caught = {key for cause in self._behind if cause not in self.envelopes for key in self._all_behind(cause)}
        circle = [key for key in self.envelopes if key not in caught]
        if circle:
            # Each waits for another of them, as it looked to nodes that were asked one moment after the other.
            waiting = sorted((self.envelopes[key] for key in circle), key=lambda each: -each.waited_s)
            found.append(Blocker("", "each other", waiting, len(circle), waiting[0].waited_s))
        return sorted(found, key=lambda blocker: (-blocker.oldest_s, blocker.name))

    def _blocker(self, cause: Key, direct: list[Key]) -> Blocker:
        behind = [self.envelopes[key] for key in self._all_behind(cause)]
        domain, name = cause
        if ":" not in name and name != UNKNOWN:
            name = f"message:{name}"
        oldest_s = max(each.waited_s for each in behind)
        return Blocker(domain, name, [self.envelopes[key] for key in direct], len(behind), oldest_s)

    def _oldest_first(self, cause: Key) -> list[Key]:
        return sorted(self._behind.get(cause, ()), key=lambda key: (-self.envelopes[key].waited_s, key))

    def _all_behind(self, cause: Key) -> dict[Key, None]:
        found: dict[Key, None] = {}
        ahead = [cause]
        while ahead:
            for key in self._behind.get(ahead.pop(), ()):
                if key not in found:
                    found[key] = None
                    ahead.append(key)
        return found

    # --------------------------------------------------------------------------------------------- as a tree

    def lines(self) -> Iterator[str]:
        """For people: each blocker, with what waits for it below, and what waits for that below again."""
        for node, error in self.silent.items():
            is_suspected = ", and is suspected to be down" if node in self.suspected else ""
            yield f"{node} does not answer{is_suspected}: {error}"
        shown: dict[Key, None] = {}
        for blocker in self.blockers():
            where = f" ({blocker.domain})" if blocker.domain else ""
            yield f"{blocker.name}{where}{self._state_of(blocker.name)}  holds up {blocker.count}"
            cause = self._cause(blocker.domain, blocker.name)
            keys = self._oldest_first(cause) or [(each.domain, each.id) for each in blocker.held_up]
            yield from self._branches(keys, "", shown)
        if not self.envelopes:
            yield "nothing waits"

    def _state_of(self, name: str) -> str:
        node = name.partition(":")[2] if name.startswith(("replica:", "token:")) else ""
        if node in self.silent:
            return ", which does not answer,"
        return ", which is suspected to be down," if node in self.suspected else ""

    def _branches(self, keys: list[Key], before: str, shown: dict[Key, None]) -> Iterator[str]:
        """What was shown already is not shown again: it waits for several."""
        for number, key in enumerate(keys, start=1):
            envelope = self.envelopes.get(key)
            if envelope is None or len(shown) >= LINES_MAX:
                continue
            is_last = number == len(keys)
            again = "  (see above)" if key in shown else ""
            yield f"{before}{'└─ ' if is_last else '├─ '}{envelope.text()}{again}"
            if not again:
                shown[key] = None
                yield from self._branches(self._oldest_first(key), before + ("   " if is_last else "│  "), shown)
