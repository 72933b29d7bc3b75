"""The interface between a protocol and whatever drives it.

A machine is pure: `step(event)` changes the machine and returns effects, and that is all it does. Time,
chance, disks and networks are the driver's. The simulator and the services drive the same machines.

What a driver promises:

* **Effects are performed in order, and Persist is a barrier.** Nothing behind a Persist leaves the machine
  before that Persist, and everything before it, is durable. The machine itself goes on: its memory may be
  ahead of its disk, but nobody can tell. Drivers commit once for all that piled up (group commit). (A Persist
  with barrier=False holds up only its own `then`; it still commits in its turn. Optimistic deliveries wait for no
  disk.)
* **Deliver becomes durable with the next Persist of the same machine, in one transaction.** So the log, the
  position in it and the idempotence state never disagree after a crash.
* **Start is the first event and carries every record the machine had persisted.** A machine has no other way
  to remember. A ViewChanged comes before anything is received.
* **What one machine sends to one peer arrives in order, or ChannelReset says that some of it may be lost.**
  The first connection is announced by a ChannelReset too: that is how a machine learns incarnations.
* **Machines of one process compose by Hand:** an event for a sibling, performed in order like any effect.
* **Of the events that one machine is told, none has an earlier `now` than the one before it.** A handed event may
  have waited behind a barrier, so the driver gives it the time at which it is performed (`told_at`).

Drivers keep these promises in one place: core/performer.py.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from ordercast.core.view import View
from ordercast.v1.membership_pb2 import DomainView
from ordercast.v1.sequencer_pb2 import DescribeReplicaResponse, LogEntry

# --------------------------------------------------------------------------------------------------- events


@dataclass(slots=True)
class Event:
    #: Monotonic seconds. Only differences mean anything, and no safety argument may use them.
    now: float
    #: The wall clock, which may jump. Only the optimistic protocol reads it.
    wall: float


@dataclass(slots=True)
class Start(Event):
    """The machine begins, or begins again with what it had persisted."""

    incarnation: int
    records: Sequence[tuple[bytes, bytes]]


@dataclass(slots=True)
class ViewChanged(Event):
    """Membership's word on groups, replicas and acceptors.

    Views arrive in order, over restarts too: after Start, none is older than the last one before it. Other
    processes get theirs at other times. A group that is not in a view any more is gone for good, and the driver
    drops its log; it also drops the log of a group that this process has no part in any more, neither as a replica
    of this configuration or the one before, nor as a learner.
    """

    view: DomainView
    _index: View | None = field(default=None, repr=False, compare=False)

    @property
    def index(self) -> View:
        """For looking things up. It is made once for all machines of a process, since there may be many groups."""
        if self._index is None:
            self._index = View(self.view)
        return self._index


@dataclass(slots=True)
class Receive(Event):
    """A message from a peer, as the generated class it was sent as."""

    source: str
    #: The incarnation at the other end of the channel, from the handshake and never from the message.
    incarnation: int
    message: Any


@dataclass(slots=True)
class ChannelReset(Event):
    """The channel to a peer is new: what was in flight may be lost; the peer may be a new incarnation."""

    peer: str
    incarnation: int


@dataclass(slots=True)
class Ended(Event):
    """Membership: this incarnation of the process, and with it every earlier one, sends nothing any more.

    Told again after each Start, as long as the incarnation is not retired.
    """

    process: str
    incarnation: int


@dataclass(slots=True)
class Retired(Event):
    """Membership: all gateway incarnations below this are over, and nobody holds anything open of them.

    Incarnation numbers rise, so one number replaces everything that was kept to recognise what is theirs:
    whatever still arrives of them is old.
    """

    below: int


@dataclass(slots=True)
class GroupsClosed(Event):
    """Membership: these groups of the domain are being deleted, and all others are not. Nothing new for them."""

    groups: tuple[str, ...]


@dataclass(slots=True)
class GroupsRemoved(Event):
    """Membership: these groups of shared cells are gone, and nothing anywhere names them.

    What a machine keeps of them it has to say to nobody, and may forget. It may keep nothing.
    """

    groups: tuple[str, ...]


@dataclass(slots=True)
class NodesJudged(Event):
    """Membership: these processes are up, and all others are down; those of `full` have no room on their disks.

    Gateways are told, and as long as they are not, everybody counts as up.
    """

    up: frozenset[str]
    full: frozenset[str]


@dataclass(slots=True)
class Stopping(Event):
    """The process is about to stop. Gateways are told: they take nothing new, and answer what they have."""


@dataclass(slots=True)
class TimerFired(Event):
    name: str
    #: 64 random bits, for machines that roll dice. The driver's, so that a seed replays them.
    chance: int


@dataclass(slots=True)
class Advance(Event):
    """A merged subscription waits for this group to pass the order key: a Watermark at or above it is wanted.

    A machine says every Watermark that it can while it is asked for a higher one: questions that follow each other
    closely must not put off the answer to the first of them.
    """

    group: str
    key: bytes


@dataclass(slots=True)
class LogRead(Event):
    """The answer to ReadLog: count_max entries from `position` on, if there are as many, or fewer that are long,
    but one at least; `begins` is what retention left.

    A machine reads what it has delivered, durable or not.
    """

    group: str
    position: int
    entries: Sequence[LogEntry]
    begins: int
    tag: str


@dataclass(slots=True)
class Propose(Event):
    """To consensus: get some value decided in this instance.

    Without a value, only find out what was decided. The quorums are the qualified majorities of the groups'
    acceptors, in these configurations; every replica of the groups hears of the decision.
    """

    instance: bytes
    groups: tuple[str, ...]
    #: In which the value may be proposed: one for each group.
    configurations: tuple[int, ...]
    value: bytes | None
    #: The incarnation that owns round 0; 0 if there is none.
    owner: int
    #: What acceptors may close: see core/finished.py.
    done: int
    open: tuple[int, ...] = ()


@dataclass(slots=True)
class Decided(Event):
    """From consensus: this process drove the decision and is the first to know. To consensus: we know."""

    instance: bytes
    value: bytes
    #: For telemetry: whose vote was the last that was needed.
    last_voter: str = ""


@dataclass(slots=True)
class InstanceClosed(Event):
    """From consensus: decided and forgotten long ago. The outcome is in the groups' logs."""

    instance: bytes


def told_at(event: Event, clock: tuple[float, float]) -> Event:
    """The event as of this (now, wall): for events that were made before they are told."""
    return replace(event, now=clock[0], wall=clock[1])


# -------------------------------------------------------------------------------------------------- effects


@dataclass(slots=True)
class Effect:
    pass


@dataclass(slots=True)
class Send(Effect):
    """One message to each of these processes; encoded once.

    What is not urgent may wait a moment, to travel with something that is. It is not overtaken meanwhile.
    """

    to: Sequence[str]
    message: Any
    urgent: bool = True


@dataclass(slots=True)
class Persist(Effect):
    """Put keyed records, or delete them (value None), with the Delivers since the last Persist.

    Transactions commit in the order of their Persists. One that is no barrier holds up only what is in
    `then`: a delivery must be durable before the gateway hears so, but the next stamp need not wait for it.
    Anything may be in `then` that does not itself go to the disk: by a Hand to its own role a machine hears that
    it is durable.
    """

    records: Sequence[tuple[bytes, bytes | None]]
    barrier: bool = True
    then: Sequence[Effect] = ()


@dataclass(slots=True)
class Deliver(Effect):
    """Append to a group's log. An optimistic delivery is shown to subscribers and not logged."""

    group: str
    position: int
    entry: LogEntry
    final: bool = True


@dataclass(slots=True)
class Interrupted(Effect):
    """Of optimistic deliveries in a group: whatever comes next, some of what comes before it is left out."""

    group: str


@dataclass(slots=True)
class Revoked(Effect):
    """Takes an optimistic delivery back: this envelope will never be in the group's log, at any replica."""

    group: str
    id: bytes


@dataclass(slots=True)
class ResetLog(Effect):
    """A snapshot replaced the log before this position; durable with the next Persist."""

    group: str
    position: int


@dataclass(slots=True)
class ReadLog(Effect):
    group: str
    position: int
    count_max: int
    #: Comes back in LogRead.
    tag: str


@dataclass(slots=True)
class SetTimer(Effect):
    """One wake-up per name; setting it again moves it."""

    name: str
    delay: float


@dataclass(slots=True)
class Hand(Effect):
    """An event for a sibling machine in the same process, by role."""

    role: str
    event: Event


@dataclass(slots=True)
class Watermark(Effect):
    """Nothing at or below this order key will be delivered in the group at this position of its log, or behind it.

    That holds for all replicas and for good, so it outlives the machine that said it: other replicas, restarts and
    changes of members do not make it false. A reader may count on it once it has read the log up to the position.
    """

    group: str
    key: bytes
    position: int


@dataclass(slots=True)
class Observe(Effect):
    """For telemetry: a stage an envelope has reached, or why it waits."""

    stage: str
    id: bytes
    detail: str = ""
    #: When what the stage ends with began, if no other stage tells.
    since: float | None = None
    #: The group that it is about, if it is about one of several.
    group: str = ""
    #: What it waited for last: "replica:n2", "message:0a0b...", "group:a#1", "view:a#1/7", "token:n1".
    blocked_on: str = ""
    #: Of a gateway that submits: Header.trace, and how many messages are in the envelope.
    trace: bytes = b""
    messages: int = 0


@runtime_checkable
class ChecksItself(Protocol):
    def check_invariants(self) -> None:
        """Raise InvariantBroken if the machine is in a state that its argument excludes.

        The simulator asks after every step, so it has to be cheap, and must change nothing. Services ask after
        some of them, before anything leaves that the step led to.
        """
        ...


@runtime_checkable
class HoldsUp(Protocol):
    def undelivered(self) -> tuple[int, float]:
        """For telemetry: how many envelopes are here and not delivered, and since when the oldest of them is."""
        ...


@runtime_checkable
class TellsReaders(Protocol):
    """A machine that knows something of its groups' logs that is not in their entries."""

    def describe(self, group: str, found: DescribeReplicaResponse) -> None:
        """Add what the machine knows to a description of the log as it is on disk, which may be behind."""
        ...

    def read_besides(self, group: str) -> bytes:
        """What a reader of the log has seen besides its entries, for `ReadGroupResponse.besides`."""
        ...


@runtime_checkable
class KeepsIncarnations(Protocol):
    """A machine that remembers gateway incarnations. Membership retires what is below everyone's answer."""

    def oldest_open(self) -> int:
        """The lowest gateway incarnation of which something is open here; U64_MAX if there is none."""
        ...


@dataclass(slots=True)
class Progress:
    """How far a machine is with a change of a group that it takes part in."""

    #: The configuration that it has heard of.
    configuration: int
    #: It has started in that one; it copies the log for the next one, and is close behind.
    started: bool
    caught_up: bool = False
    #: Envelopes of the log that it has, and that there are.
    position: int = 0
    head: int = 0
    #: Of virtually synchronous groups: that of the cut, see core.view.Group.
    epoch: int = 0


@runtime_checkable
class ChangesConfigurations(Protocol):
    """A machine whose groups change their members. Membership goes on when those who must have got so far."""

    def progress(self) -> dict[str, Progress]:
        """By group: those in which this process is starting or learning, as a member or to be one.

        Of what is on its way to the disk nothing is certain yet: drivers answer membership behind a sync.
        """
        ...


@runtime_checkable
class NamesGroups(Protocol):
    """A machine that works for groups. Membership removes a group that is being deleted when nobody names it."""

    def mentions(self, group: str) -> bool:
        """Whether something is under way here that needs the group: the address of one that shares its cell, or a
        cell, for who has its own.

        Machines that know nothing but cells, such as acceptors, have no say in groups that share theirs. What they
        hold is about envelopes that replicas hold, too, and the cell stays when one of its groups goes.

        Of what is on its way to the disk nothing is certain yet: drivers answer membership behind a sync.
        """
        ...


@runtime_checkable
class KeepsGroups(Protocol):
    """A machine that remembers something of groups that share their cells, until GroupsRemoved."""

    def kept_groups(self) -> Iterable[str]:
        """The addresses of all of them. The machine must not be told anything while somebody goes through them."""
        ...


class Machine(Protocol):
    @property
    def handles(self) -> Sequence[type]:
        """The generated message classes this machine receives: drivers route by them."""
        ...

    def step(self, event: Event) -> list[Effect]: ...

    def buffers(self) -> dict[str, int]:
        """The size of everything that grows, for limits, metrics and the boundedness checker."""
        ...
