"""What a process keeps about one of its groups: as a source, whose log it helps to decide, and as a destination.

As a destination, the group follows the logs of all its sources, each with a learner and a state of its own, though
another group here may follow the same one: they may have begun at different places.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappush

from ordercast.core.ids import incarnation_of
from ordercast.core.view import Group
from ordercast.protocols.celllog.group_log import GroupLog
from ordercast.protocols.optimistic.keys import LOWEST
from ordercast.protocols.optimistic.settings import Settings
from ordercast.protocols.optimistic.state import State
from ordercast.protocols.paxos.parallel.acceptor import LogAcceptor
from ordercast.protocols.paxos.parallel.leader import LogLeader
from ordercast.protocols.paxos.parallel.learner import LogLearner
from ordercast.v1.parallel_pb2 import CellAccept


@dataclass(slots=True)
class Following:
    """A source that this group waits for."""

    #: The key at which it was added: what is at or below that does not wait for it.
    begins: bytes
    #: None until the source has said where to begin.
    state: State | None = None
    learner: LogLearner = field(default_factory=LogLearner)
    #: Up to where this source was asked to let pass, and when that may be asked again.
    asked: bytes = LOWEST
    ask_due: float = 0.0

    @property
    def barrier(self) -> bytes:
        """Nothing that comes from this source is at or below this key."""
        return self._passed()

    def _passed(self) -> bytes:
        return max(self.begins, self.state.last) if self.state is not None else self.begins

    @property
    def position(self) -> int:
        return self.state.next if self.state is not None else 0

    def decision(self) -> bytes | None:
        if self.state is None:
            return None
        return self.learner.decision(self.state.configuration, self.state.members)


@dataclass(slots=True)
class Pending:
    """A message of this source that is not applied."""

    timestamp: int
    gateway: str
    counter: int
    destinations: tuple[str, ...]
    #: When it may be proposed.
    due: float


@dataclass(slots=True)
class Stamped:
    id: bytes
    source: str
    instance: int


@dataclass(slots=True)
class Candidate:
    """A message that may be shown early."""

    key: bytes
    source: str
    gateway: str
    counter: int
    due: float


class Replica(GroupLog):
    def __init__(self, group: Group, process: str, settings: Settings) -> None:
        super().__init__(group, process, settings)
        self.log_state = State(group.name, group.configuration, group.replicas)
        # As a source.
        self.acceptor = LogAcceptor(group.name)
        self.leader = LogLeader()
        #: While it leads: the state with everything that it has proposed.
        self.ahead: State | None = None
        #: Who leads, as far as is known, and when he was last heard.
        self.leads = ""
        self.heard_at: float | None = None
        self.pending: dict[bytes, Pending] = {}
        #: Accepted, and some payload is still missing.
        self.waiting_accepts: dict[int, CellAccept] = {}
        #: Values of applied instances, for those who are behind; and payloads that took effect there.
        self.values: dict[int, bytes] = {}
        self.held: dict[int, tuple[bytes, ...]] = {}
        #: By receiver, what it begins from, as long as somebody may need that; and who asks for it, at which key.
        self.openings: dict[str, State] = {}
        self.asks_open: dict[str, bytes] = {}
        #: How far the replicas of each receiver are, and what they said the time before.
        self.reported: dict[str, dict[str, int]] = {}
        #: The highest keys that somebody asked us to let pass: by when, not before its time.
        self.nulls: list[tuple[float, bytes]] = []
        self.null_due = LOWEST
        # As a destination.
        self.own = Following(LOWEST, self.log_state)
        self.following: dict[str, Following] = {group.name: self.own}
        self.stamped: dict[bytes, Stamped] = {}
        self.stamped_ids: dict[bytes, bytes] = {}
        self.heap: list[bytes] = []
        self.candidates: dict[bytes, Candidate] = {}
        self.shown: dict[bytes, Candidate] = {}
        self.last_key = LOWEST
        self.marked = LOWEST
        #: Up to where a merged subscription wants this log to be known.
        self.advance = LOWEST
        #: Where the envelopes are that a gateway may ask about.
        self.placed: dict[bytes, int] = {}
        #: Since when the first of those with a key waits.
        self.waits: tuple[bytes, float] = (LOWEST, 0.0)
        #: Sources whose state changed in this step.
        self.dirty: dict[str, None] = {}

    # ------------------------------------------------------------------------------------------- as a destination

    @property
    def barrier(self) -> bytes:
        """[Algorithm 1 l.31] Every source has passed it."""
        return self._lowest()

    def _lowest(self) -> bytes:
        return min(following.barrier for following in self.following.values())

    def stamp(self, key: bytes, stamped: Stamped) -> None:
        self.stamped[key] = stamped
        self.stamped_ids[stamped.id] = key
        heappush(self.heap, key)

    def is_resolved(self, source: str, gateway: str, id_: bytes, counter: int) -> bool:
        """The message has its place, or never gets one."""
        following = self.following.get(source)
        if following is None or following.state is None:
            return False
        return following.state.has_applied(gateway, id_, counter)

    # ------------------------------------------------------------------------------------ what the base asks for

    def retained_from(self) -> int:
        """Retention may drop what is before this position: no gateway asks about it any more."""
        return min(self.placed.values(), default=self.position)

    def slowest(self, wanted: int) -> int:
        return wanted

    def open_incarnations(self) -> Iterator[int]:
        """Of gateways of which something is not delivered here, or not revoked.

        What a source keeps for receivers that have not applied it is not among them. They pull it from us, and
        take it whatever became of its sender.
        """
        for ids in (self.pending, self.candidates, self.shown):
            yield from (incarnation_of(id_) for id_ in ids)
        yield from (incarnation_of(stamped.id) for stamped in self.stamped.values())
