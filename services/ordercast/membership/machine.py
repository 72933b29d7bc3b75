"""Membership: commands go through a replicated log, and the member that leads it looks after the cluster.

The sibling machine "log" (protocols/paxos/log.py) orders batches of commands; State says what they come to. While
one batch is under way, the commands that arrive become the next one. Everything durable is the log's.

The leader has duties: to found the cluster, to tell from heartbeats who is there, to forget what everyone is done
with, to see to it that groups are held by those who should hold them (reassignment.py), and to take virtually
synchronous ones from view to view (view_duties.py). What it heard is a belief and lives in memory alone: a new
leader hears for itself before it judges. So whatever it concludes from silence may be wrong without harm. What it
must not get wrong (retire, remove) rests on what nodes said in their present incarnations, and the state checks it
once more.
"""

from dataclasses import dataclass, field

from ordercast.core.errors import InvariantBroken
from ordercast.core.ids import pack_u64
from ordercast.core.machine import Effect, Event, Hand, SetTimer, Start, TimerFired
from ordercast.membership import invariants
from ordercast.membership.commands import CHANGES_LEVEL, not_understood
from ordercast.membership.reassignment import Reassignment
from ordercast.membership.refusals import Code
from ordercast.membership.settings import COMMAND_FRAMING_BYTES, MembershipSettings
from ordercast.membership.state import State, shape_error
from ordercast.membership.view_duties import Reports, reports_in, view_duties
from ordercast.protocols.paxos.log import (
    Append,
    AppendRefused,
    LeaderChanged,
    LogApplied,
    LogSnapshot,
    Truncate,
)
from ordercast.v1.membership_pb2 import (
    Command,
    CommandBatch,
    CommandResult,
    EndIncarnation,
    FoundCluster,
    HeartbeatRequest,
    HeartbeatResponse,
    MarkNode,
    Node,
    RemoveGroup,
    RemoveNode,
    RetireIncarnations,
)

#: The roles by which this machine and the log know each other.
ROLE = "membership"
LOG = "log"

TIMER = "membership"

# --------------------------------------------------------------------------------------------------- events


@dataclass(slots=True)
class Execute(Event):
    """Answered once, with this tag, by Executed or NotLeading, unless the process dies."""

    command: Command
    tag: bytes


@dataclass(slots=True)
class HeartbeatReceived(Event):
    """`heartbeat_answer` is what its sender hears."""

    request: HeartbeatRequest


# -------------------------------------------------------------------------------------------------- effects


@dataclass(slots=True)
class Executed(Effect):
    tag: bytes
    result: CommandResult


@dataclass(slots=True)
class NotLeading(Effect):
    """Repeat the command with the same request_id, at the leader if it is known: it may be executed already."""

    tag: bytes
    leader: str | None


@dataclass(slots=True)
class StateChanged(Effect):
    """Watchers have something to see: State.changes_since."""

    revision: int


# ---------------------------------------------------------------------------------------------- the machine


@dataclass(slots=True)
class WaitingCommand:
    """A command that has no answer yet: a client's, by its tag, or a duty of ours, by what it is about."""

    command: Command
    tag: bytes | None
    duty: str | None = None


@dataclass(slots=True)
class Heard:
    """What the leader knows first hand of one incarnation of a node."""

    incarnation: int
    #: When it was last heard of, or when we began to listen.
    at: float
    heartbeat: HeartbeatRequest | None = None
    #: How many heartbeats there were of that name.
    beats: int = 0
    #: Ids of groups.
    clear_of: frozenset[str] = frozenset()


@dataclass(slots=True)
class SlotBatch:
    """Commands for one slot."""

    commands: list[WaitingCommand] = field(default_factory=list)
    size: int = 0


class Membership:
    handles = ()

    def __init__(self, process: str, founding: FoundCluster, settings: MembershipSettings | None = None) -> None:
        """`founding` is what this member would found a cluster with, should there be none."""
        self.process = process
        self.founding = founding
        self.settings = settings or MembershipSettings()
        self.state = State()
        self.incarnation = 0
        self.leader: str | None = None
        #: What is in the log or on its way there, by its tag; and what goes there next.
        self.flight: tuple[bytes, list[WaitingCommand]] | None = None
        self.next = SlotBatch()
        self.duties: dict[str, None] = {}
        self.heard: dict[str, Heard] = {}
        #: A number that everyone's reports allowed to retire, and how many heartbeats of each there were then.
        self.retiring: tuple[int, dict[str, int]] | None = None
        #: Groups of which everyone said to be clear, and how many heartbeats of each there were then.
        self.removing: dict[str, dict[str, int]] = {}
        self.reassignment = Reassignment(self.settings)
        self.snapshot_at = 0
        self.ticked_at = 0.0
        self._numbers = 0
        self.now = self.wall = 0.0
        self.out: list[Effect] = []

    def step(self, event: Event) -> list[Effect]:
        self.now, self.wall, self.out = event.now, event.wall, []
        match event:
            case Execute():
                self._on_execute(event)
            case HeartbeatReceived(request=request):
                self._on_heartbeat(request)
            case LogApplied():
                self._on_applied(event)
            case TimerFired(name=name) if name == TIMER:
                self._on_tick()
            case AppendRefused(tag=tag, leader=leader):
                self._on_refused(tag, leader)
            case LeaderChanged(leader=leader):
                self._on_leader(leader)
            case LogSnapshot():
                self._on_snapshot(event)
            case Start():
                self.incarnation = event.incarnation
                self.ticked_at = self.now
                self.out.append(SetTimer(TIMER, self.settings.tick_s))
        self._append()
        return self.out

    def check_invariants(self) -> None:
        """See core.machine.ChecksItself."""
        invariants.check(self)

    def buffers(self) -> dict[str, int]:
        return {
            "flight": len(self.flight[1]) if self.flight is not None else 0,
            "next": len(self.next.commands),
            "next_bytes": self.next.size,
            "duties": len(self.duties),
            "heard": len(self.heard),
        }

    def heartbeat_answer(self, request: HeartbeatRequest) -> HeartbeatResponse:
        """Incarnation 0 if nobody of that name is registered. Who was removed is over, even if that is forgotten:
        it is who has seen no more than we have, for it registered before it saw anything.
        """
        node = self.state.nodes.get(request.name) or self.state.removed.get(request.name)
        if node is None:
            return HeartbeatResponse(ended=0 < request.revision <= self.state.revision)
        if node.incarnation < request.incarnation:
            # It has registered again, and a leader that is new may not have heard of that yet.
            return HeartbeatResponse()
        return HeartbeatResponse(incarnation=node.incarnation, ended=node.ended)

    # ------------------------------------------------------------------------------------------- commands

    def _on_execute(self, event: Execute) -> None:
        error = shape_error(event.command)
        if error is not None:
            self._refuse(event.tag, Code.INVALID_ARGUMENT, error)
            return
        remembered = self.state.executed.get(event.command.request_id)
        if remembered is not None:
            self.out.append(Executed(event.tag, remembered))
        elif self.leader != self.process:
            self.out.append(NotLeading(event.tag, self.leader))
        elif (why_not := self._why_not_now(event.command)) is not None:
            self._refuse(event.tag, Code.FAILED_PRECONDITION, why_not)
        elif not self._queue(WaitingCommand(event.command, event.tag)):
            self._refuse(event.tag, Code.RESOURCE_EXHAUSTED, "too many commands wait: repeat it later")

    def _why_not_now(self, command: Command) -> str | None:
        """What older software does not know must not reach the log: members with it would judge otherwise. What
        would be right at another moment is kept out of it here, too, before anything is agreed.
        """
        what = command.WhichOneof("what")
        if what == "raise_level":
            return "the level of a cluster rises by itself, when all nodes have it"
        if not self.state.cluster_id:
            return None
        why_not = not_understood(command, self.state.level)
        if why_not is None and what in ("create_group", "create_groups"):
            is_one = what == "create_group"
            why_not = self.state.why_not_now(command.create_group if is_one else command.create_groups.like)
        return why_not

    def _refuse(self, tag: bytes, code: Code, message: str) -> None:
        result = CommandResult(code=code, message=message, revision=self.state.revision)
        self.out.append(Executed(tag, result))

    def _queue(self, waiting: WaitingCommand) -> bool:
        """Whether it fits into the next batch."""
        size = self.next.size + waiting.command.ByteSize() + COMMAND_FRAMING_BYTES
        full = len(self.next.commands) >= self.settings.batch_count_max
        if full or size > self.settings.log.value_bytes_max:
            return False
        self.next.commands.append(waiting)
        self.next.size = size
        return True

    def _append(self) -> None:
        """All that piled up while the last batch was under way."""
        if self.flight is not None or not self.next.commands:
            return
        commands, self.next = self.next.commands, SlotBatch()
        self.flight = (pack_u64(self._number()), commands)
        value = CommandBatch(commands=[waiting.command for waiting in commands]).SerializeToString(
            deterministic=True
        )
        self.out.append(Hand(LOG, Append(self.now, self.wall, value, self.flight[0])))

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    # ------------------------------------------------------------------------------------------- the log

    def _on_applied(self, event: LogApplied) -> None:
        changed = self.state.changed
        results = self.state.apply(event.slot, event.value)
        if self.flight is not None and event.tag == self.flight[0]:
            waiting = self._land()
            if len(waiting) != len(results):
                raise InvariantBroken(f"{len(waiting)} commands were appended and {len(results)} applied")
            for one, (_, result) in zip(waiting, results, strict=True):
                if one.tag is not None:
                    self.out.append(Executed(one.tag, result))
        if self.state.changed != changed:
            self.out.append(StateChanged(self.state.revision))
            self._look_after_views()
        if self.state.revision - self.snapshot_at >= self.settings.snapshot_every:
            self.snapshot_at = self.state.revision
            snapshot = Truncate(self.now, self.wall, self.state.revision, self.state.to_bytes())
            self.out.append(Hand(LOG, snapshot))

    def _on_snapshot(self, event: LogSnapshot) -> None:
        self.state = State.from_bytes(event.snapshot)
        if self.state.revision != event.slot:
            raise InvariantBroken(f"a snapshot of {self.state.revision} slots stands before slot {event.slot}")
        self.snapshot_at = event.slot
        if self.flight is not None and self.flight[0] in event.unknown:
            self._outcome_unknown(self._land())
        self.out.append(StateChanged(self.state.revision))

    def _on_refused(self, tag: bytes, leader: str | None) -> None:
        if self.flight is None or tag != self.flight[0]:
            return  # Answered when the reign ended.
        for one in self._land():
            if one.tag is None:
                continue
            if leader == self.process:
                self._refuse(one.tag, Code.RESOURCE_EXHAUSTED, "the log has no room now: repeat it later")
            else:
                self.out.append(NotLeading(one.tag, leader))

    def _on_leader(self, leader: str | None) -> None:
        """Whoever waits is sent on: what becomes of a batch under way may show only when others go on."""
        self.leader = leader
        if leader != self.process:
            waiting = self._land() + self.next.commands
            self.next = SlotBatch()
            self.duties = {}
            self._outcome_unknown(waiting)
            return
        self._listen()
        self._do_duties()

    def _outcome_unknown(self, commands: list[WaitingCommand]) -> None:
        """Executed or not: only the state can tell, and what it does not remember may be repeated."""
        for one in commands:
            if one.tag is None:
                continue
            result = self.state.executed.get(one.command.request_id)
            answer = Executed(one.tag, result) if result is not None else NotLeading(one.tag, self.leader)
            self.out.append(answer)

    def _land(self) -> list[WaitingCommand]:
        """Nothing is under way any more. Returns what was."""
        if self.flight is None:
            return []
        (_, commands), self.flight = self.flight, None
        for one in commands:
            if one.duty is not None:
                del self.duties[one.duty]
        return commands

    # ------------------------------------------------------------------------------------------- listening

    def _on_heartbeat(self, request: HeartbeatRequest) -> None:
        node = self.state.nodes.get(request.name)
        if node is None or node.incarnation != request.incarnation or node.ended:
            return
        clear_of = frozenset(request.clear_of)
        before = self._heard_of(node)
        beats = before.beats + 1
        self.heard[node.name] = Heard(node.incarnation, self.now, request, beats, clear_of)
        if self.retiring is not None and request.oldest_open < self.retiring[0]:
            self.retiring = None
        self.removing = {group: since for group, since in self.removing.items() if group in clear_of}
        if request.leaving and self.leader == self.process:
            self._judge(node)
        if before.heartbeat is None or _about_views(before.heartbeat) != _about_views(request):
            self._look_after_views()

    def _listen(self) -> None:
        """From now on silence counts, and nothing that was said before: it may be from long ago."""
        self.heard = {}
        self.retiring = None
        self.removing = {}
        self.reassignment.listen()

    def _heard_of(self, node: Node) -> Heard:
        heard = self.heard.get(node.name)
        if heard is None or heard.incarnation != node.incarnation:
            beats = heard.beats if heard is not None else 0
            heard = self.heard[node.name] = Heard(node.incarnation, self.now, beats=beats)
        return heard

    # ------------------------------------------------------------------------------------------- duties

    def _on_tick(self) -> None:
        self.out.append(SetTimer(TIMER, self.settings.tick_s))
        if self.now - self.ticked_at >= self.settings.suspect_s:
            # It was us who slept: a suspended machine wakes up, and this tick comes before all the heartbeats
            # that wait for it. To end every node of the cluster would be the wrong conclusion.
            self._listen()
        self.ticked_at = self.now
        if self.leader == self.process:
            self._do_duties()

    def _do_duties(self) -> None:
        if not self.state.cluster_id:
            self._duty("found", Command(found=self.founding))
            return
        nodes = [self.state.nodes[name] for name in sorted(self.state.nodes)]
        self.heard = {name: heard for name, heard in self.heard.items() if name in self.state.nodes}
        for node in nodes:
            self._judge(node)
            self._forget_gateway(node)
        involved = [node for node in nodes if "sequencer" in node.services or "gateway" in node.services]
        self._retire(involved)
        self._remove_groups(involved)
        for about, command in self.reassignment.duties(self.state, self._heartbeats(), self.now):
            self._duty(about, command)
        self._look_after_views()

    def _look_after_views(self) -> None:
        """The leader does this between ticks, too: everybody waits while a view changes."""
        if self.leader != self.process:
            return
        # Only those that were heard: to listen to the others begins with a tick.
        heartbeats = {
            name: heard.heartbeat
            for name, heard in self.heard.items()
            if heard.heartbeat is not None and self._is_present(name, heard.incarnation)
        }
        # One that said so and fell silent is gone.
        leaving = [
            name
            for name, heartbeat in heartbeats.items()
            if heartbeat.leaving and self.now - self.heard[name].at < self.settings.suspect_s
        ]
        for about, command in view_duties(self.state, heartbeats, leaving):
            self._duty(about, command)

    def _is_present(self, name: str, incarnation: int) -> bool:
        node = self.state.nodes.get(name)
        return node is not None and node.incarnation == incarnation and not node.ended

    def _heartbeats(self) -> dict[str, HeartbeatRequest]:
        """The latest of those who are there."""
        heard = {name: self._heard_of(node) for name, node in self.state.nodes.items() if not node.ended}
        return {name: one.heartbeat for name, one in heard.items() if one.heartbeat is not None}

    def _duty(self, about: str, command: Command) -> None:
        """Unless it is under way already. If there is no room now, the next tick comes."""
        if about not in self.duties:
            # Never used twice: incarnations are unique.
            command.request_id = b"duty" + pack_u64(self.incarnation) + pack_u64(self._number())
            if self._queue(WaitingCommand(command, None, about)):
                self.duties[about] = None

    def _judge(self, node: Node) -> None:
        """Whether a node is there, by what was heard since we lead."""
        if node.ended:
            return
        heard = self._heard_of(node)
        silence_s, heartbeat = self.now - heard.at, heard.heartbeat
        about = f"node {node.name}"
        if silence_s >= self.settings.end_after_s:
            end = EndIncarnation(name=node.name, incarnation=node.incarnation)
            self._duty(about, Command(end_incarnation=end))
            return
        suspected, read_only = node.suspected, node.read_only
        if silence_s >= self.settings.suspect_s:
            suspected = True
        elif heartbeat is not None:
            suspected, read_only = heartbeat.leaving, heartbeat.read_only
        if (suspected, read_only) != (node.suspected, node.read_only):
            mark = MarkNode(name=node.name, incarnation=node.incarnation, suspected=suspected, read_only=read_only)
            self._duty(about, Command(mark_node=mark))

    def _forget_gateway(self, node: Node) -> None:
        """What runs nothing but a gateway holds nothing: when it is over, it leaves the list, which has an end.

        If it comes back it is new there. One that is drained somebody wants to look after himself.
        """
        if not node.ended or list(node.services) != ["gateway"] or node.draining:
            return
        if self.state.level >= CHANGES_LEVEL and self.state.has_room_for_removed():
            self._duty(f"node {node.name}", Command(remove_node=RemoveNode(node=node.name)))

    def _retire(self, involved: list[Node]) -> None:
        """Retire what nobody holds open, once everyone has said so twice.

        Once is not enough: a says that nothing of gateway incarnation 3 is open there; then b, where something
        is, relays it to a; then b is done with it and says so. Neither report names 3, but a holds it open. So
        everyone has to say it again, after everyone had said it.

        Something may still arrive that was long under way. Whoever took it from its gateway did so before it
        heard that the gateway is over, so before its first report, and by then was done with it: then it is in
        the logs of its groups, from which a late holder gets over it.
        """
        below = self._unused_below(involved) if involved else None
        if below is None or below <= self.state.retired:
            self.retiring = None
        elif self.retiring is None or below < self.retiring[0]:
            self.retiring = (below, self._beats())
        elif self._said_again(self.retiring[1], [node for node in involved if not node.ended]):
            self._duty("retire", Command(retire=RetireIncarnations(below=self.retiring[0])))
            self.retiring = None

    def _unused_below(self, involved: list[Node]) -> int | None:
        """Below which nothing is open anywhere, as everyone last reported; None while somebody has not."""
        below = self.state.retirable()
        revision = self._nodes_revision()
        for node in involved:
            if node.ended and "sequencer" in node.services and not node.disk_lost:
                return None  # It may come back, with open envelopes on its disk.
            if node.ended:
                continue
            heard = self._heard_of(node)
            if heard.heartbeat is None or self.now - heard.at >= self.settings.suspect_s:
                return None
            if heard.heartbeat.revision < revision:
                return None
            below = min(below, heard.heartbeat.oldest_open)
        return below

    def _beats(self) -> dict[str, int]:
        return {name: heard.beats for name, heard in self.heard.items()}

    def _said_again(self, since: dict[str, int], nodes: list[Node]) -> bool:
        """Whether all said it again after all had said it once. What was under way does not count."""
        return all(self._heard_of(node).beats >= since.get(node.name, 0) + 2 for node in nodes)

    def _nodes_revision(self) -> int:
        """Whoever has not heard of this revision may still take something new from a gateway that is over."""
        nodes = [*self.state.nodes.values(), *self.state.removed.values()]
        return max((node.revision for node in nodes), default=0)

    def _remove_groups(self, involved: list[Node]) -> None:
        """A group goes when every disk and every gateway is clear of it, and says so twice, as with `_retire`.

        A disk that is away may not be clear, unless it was given up.
        """
        witnesses = [
            node for node in involved if not node.ended or ("sequencer" in node.services and not node.disk_lost)
        ]
        removing: dict[str, dict[str, int]] = {}
        nodes_revision = self._nodes_revision()
        for _, group in sorted(self.state.population.deleting.items()):
            if group.HasField("previous"):
                continue  # Its members have yet to leave the configuration before.
            revision = max(group.revision, nodes_revision)
            if not all(self._is_clear(node, group.id, revision) for node in witnesses):
                continue
            since = removing[group.id] = self.removing.get(group.id) or self._beats()
            if self._said_again(since, witnesses):
                self._duty(f"group {group.id}", Command(remove_group=RemoveGroup(id=group.id)))
        self.removing = removing

    def _is_clear(self, node: Node, group: str, revision: int) -> bool:
        heard = self._heard_of(node)
        return heard.heartbeat is not None and heard.heartbeat.revision >= revision and group in heard.clear_of


def _about_views(heartbeat: HeartbeatRequest) -> tuple[bool, Reports]:
    return heartbeat.leaving, reports_in(heartbeat)
