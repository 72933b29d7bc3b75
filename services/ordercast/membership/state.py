"""What the log of a cluster comes to: nodes, domains, groups, cursors, and the answer to every command.

The same slots give the same state on every member: commands read nothing but the state, and what is written out
is sorted. A command that is refused changes nothing.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from google.protobuf.message import DecodeError

from ordercast.core.errors import InvariantBroken
from ordercast.core.group_table import GroupTable
from ordercast.core.ids import group_id, group_name
from ordercast.membership import settings as limits
from ordercast.membership.cells import (
    Choice,
    check_fits_beside,
    check_one_place,
    lives_apart,
    new_name,
    no_more_placed,
)
from ordercast.membership.commands import CHANGES_LEVEL, COMMANDS, check_level, check_understands, too_early
from ordercast.membership.cursors import (
    MergedCursors,
    all_cursors,
    delete_cursor,
    move_cursors,
    put_cursor,
    read_cursors,
)
from ordercast.membership.installed import (
    check_all_have,
    check_has_all,
    checked_protocols,
    everywhere,
    installed_protocol,
)
from ordercast.membership.kinds import KINDS
from ordercast.membership.kinds.members import called
from ordercast.membership.names import (
    InvalidName,
    check_address,
    check_name,
    check_zone,
    checked_services,
    checked_settings,
    quoted,
)
from ordercast.membership.placement import NotEnoughNodes, passing_shortage, place
from ordercast.membership.population import Population
from ordercast.membership.refusals import Code, Refused, precondition
from ordercast.protocols.catalogue import check_domain, check_group
from ordercast.v1.membership_pb2 import (
    GROUP_STATE_ACTIVE,
    GROUP_STATE_DELETED,
    GROUP_STATE_DELETING,
    ClusterState,
    Command,
    CommandBatch,
    CommandResult,
    CreateDomain,
    CreateGroup,
    DeleteGroup,
    Domain,
    EndIncarnation,
    ExecutedCommand,
    FoundCluster,
    Group,
    MarkNode,
    Node,
    Registered,
    RegisterNode,
    RemoveGroup,
    RetireIncarnations,
    WatchResponse,
)

#: Executing these twice does no harm, and they are too many to remember.
NOT_REMEMBERED = (
    "read_cursors",
    "move_cursors",
    "mark_node",
    "retire",
    "begin_configuration",
    "record_started",
    "define_view",
    "complete_view",
    "record_lost",
    "raise_level",
    "note_protocols",
)


def shape_error(command: Command) -> str | None:
    """What is wrong with a command before anything is known about the state, if anything is."""
    if not 0 < len(command.request_id) <= limits.REQUEST_ID_BYTES_MAX:
        return f"a request_id has 1 to {limits.REQUEST_ID_BYTES_MAX} bytes, not {len(command.request_id)}"
    if command.WhichOneof("what") is None:
        return "the command does not say what to do"
    if command.ByteSize() > limits.COMMAND_BYTES_MAX:
        return f"the command has {command.ByteSize()} bytes, more than {limits.COMMAND_BYTES_MAX}"
    return None


class State:
    def __init__(self) -> None:
        #: Empty until the cluster is founded.
        self.cluster_id = b""
        self.key = b""
        #: How many slots are applied.
        self.revision = 0
        #: The revision at which watchers last had something to see.
        self.changed = 0
        self.incarnation_last = 0
        self.group_last = 0
        self.retired = 0
        #: What all nodes understand.
        self.level = 0
        self.nodes: dict[str, Node] = {}
        self.domains: dict[str, Domain] = {}
        self.population = Population()
        #: (group name, cursor name) -> offset
        self.cursors: dict[tuple[str, str], int] = {}
        self.merged_cursors = MergedCursors()
        #: By request id, oldest first, and how many bytes they are.
        self.executed: dict[bytes, CommandResult] = {}
        self.executed_bytes = 0
        #: Groups that are gone, by id, oldest first.
        self.deleted: dict[str, Group] = {}
        #: Nodes that are gone, by name, oldest first.
        self.removed: dict[str, Node] = {}
        #: Whoever has an older revision cannot be told what changed.
        self.changes_from = 0
        own: dict[str, Callable[[Any, CommandResult], None]] = {
            "found": self._found,
            "register": self._register,
            "create_domain": self._create_domain,
            "create_group": self.create_group,
            "delete_group": self._delete_group,
            "remove_group": self._remove_group,
            "mark_node": self._mark_node,
            "end_incarnation": self._end_incarnation,
            "retire": self._retire,
            "move_cursors": partial(move_cursors, self),
            "delete_cursor": partial(delete_cursor, self),
            "read_cursors": partial(read_cursors, self),
        }
        self._handlers = own | {kind: partial(handler, self) for kind, handler in COMMANDS.items()}

    # ------------------------------------------------------------------------------------------ the log

    def apply(self, slot: int, batch_bytes: bytes | None) -> list[tuple[Command, CommandResult]]:
        """The next slot. None is a slot that a new leader had to fill with nothing."""
        if slot != self.revision:
            raise InvariantBroken(f"slot {slot} is applied to a state of {self.revision} slots")
        try:
            commands = CommandBatch.FromString(batch_bytes or b"").commands
        except DecodeError as error:
            raise InvariantBroken(f"slot {slot} of membership's log holds no commands: {error}") from error
        self.revision = slot + 1
        return [(command, self._execute(command)) for command in commands]

    def _execute(self, command: Command) -> CommandResult:
        remembered = self.executed.get(command.request_id)
        if remembered is not None:
            return remembered
        kind = command.WhichOneof("what") or ""
        result = CommandResult(revision=self.revision)
        try:
            self._handler_of(kind)(getattr(command, kind), result)
        except Refused as refused:
            result.code, result.message = refused.code, str(refused)
        except InvalidName as error:
            result.code, result.message = Code.INVALID_ARGUMENT, str(error)
        # Whoever came before the cluster was founded may repeat the command afterwards, and then it counts.
        if kind not in NOT_REMEMBERED and result.code != Code.UNAVAILABLE:
            self._remember(command.request_id, result)
        return result

    def _handler_of(self, kind: str) -> Callable[[Any, CommandResult], None]:
        if kind not in self._handlers:
            raise Refused(Code.INVALID_ARGUMENT, "the command does not say what to do")
        if not self.cluster_id and kind != "found":
            raise Refused(Code.UNAVAILABLE, "the cluster is not founded yet: repeat the command")
        why_not = too_early(kind, self.level)
        if why_not is not None:
            raise precondition(why_not)
        return self._handlers[kind]

    def _remember(self, request_id: bytes, result: CommandResult) -> None:
        self.executed[request_id] = result
        self.executed_bytes += _executed_size(request_id, result)
        while len(self.executed) > limits.EXECUTED_COUNT_MAX or self.executed_bytes > limits.EXECUTED_BYTES_MAX:
            oldest = next(iter(self.executed))
            self.executed_bytes -= _executed_size(oldest, self.executed.pop(oldest))

    # ------------------------------------------------------------------------------------------ snapshots

    def to_bytes(self) -> bytes:
        state = ClusterState(
            cluster_id=self.cluster_id,
            key=self.key,
            revision=self.revision,
            incarnation_last=self.incarnation_last,
            group_last=self.group_last,
            retired=self.retired,
            nodes=[self.nodes[name] for name in sorted(self.nodes)],
            domains=[self.domains[name] for name in sorted(self.domains)],
            cursors=all_cursors(self),
            executed=[ExecutedCommand(request_id=id_, result=result) for id_, result in self.executed.items()],
            deleted=self.deleted.values(),
            changes_since=self.changes_from,
            level=self.level,
            removed=self.removed.values(),
            cells=[self.population.cells[name] for name in sorted(self.population.cells)],
        )
        # Fields may stand anywhere, and groups are packed already: there may be very many.
        return state.SerializeToString(deterministic=True) + self.groups.as_field(ClusterState.GROUPS_FIELD_NUMBER)

    @classmethod
    def from_bytes(cls, data: bytes) -> "State":
        try:
            found = ClusterState.FromString(data)
        except DecodeError as error:
            raise InvariantBroken(f"a snapshot that is none: {error}") from error
        check_level(found.level)
        state = cls()
        state.level = found.level
        state.cluster_id, state.key = found.cluster_id, found.key
        state.revision, state.retired = found.revision, found.retired
        state.incarnation_last, state.group_last = found.incarnation_last, found.group_last
        state.nodes = {node.name: node for node in found.nodes}
        state.domains = {domain.name: domain for domain in found.domains}
        state.population = Population.of(found.groups, found.cells)
        for cursor in found.cursors:
            put_cursor(state, cursor)
        state.executed = {item.request_id: item.result for item in found.executed}
        state.executed_bytes = sum(_executed_size(id_, result) for id_, result in state.executed.items())
        state.deleted = {group.id: group for group in found.deleted}
        state.removed = {node.name: node for node in found.removed}
        state.changes_from = found.changes_since
        stamped: list[Node | Domain | Group] = [*found.nodes, *found.domains, *found.groups, *found.cells]
        stamped += [*found.deleted, *found.removed]
        state.changed = max((item.revision for item in stamped), default=0)
        return state

    # ------------------------------------------------------------------------------------------ watching

    def changes_since(self, revision: int) -> WatchResponse:
        """What somebody who has this revision has to hear. One that is ahead of us hears that nothing changed.

        A removed node of which something may still be open is also told to those who start afresh: they have to
        hear that its gateway is over.
        """
        reset = revision == 0 or revision < self.changes_from
        since = 0 if reset else revision
        gone = [] if reset else [group for group in self.deleted.values() if group.revision > since]
        groups = sorted([*self.population.groups_since(since), *gone], key=lambda group: group.id)
        cells = self.population.cells
        removed = [node for node in self.removed.values() if not reset or node.incarnation >= self.retired]
        nodes = self.nodes | {node.name: node for node in removed}
        return WatchResponse(
            revision=max(self.revision, revision),
            reset=reset,
            cluster_id=self.cluster_id,
            nodes=[nodes[name] for name in sorted(nodes) if nodes[name].revision > since],
            domains=[self.domains[name] for name in sorted(self.domains) if self.domains[name].revision > since],
            groups=groups,
            cells=[cells[name] for name in sorted(cells) if cells[name].revision > since],
            group_last=self.group_last,
            retired=self.retired,
            level=self.level,
        )

    def stamp(self, item: Node | Domain | Group) -> None:
        item.revision = self.changed = self.revision
        if isinstance(item, Group):
            self.population.note_change(item)

    # ------------------------------------------------------------------------------------------ the cluster

    def _found(self, found: FoundCluster, result: CommandResult) -> None:
        if self.cluster_id:
            raise Refused(Code.ALREADY_EXISTS, "the cluster is founded already")
        if not 0 < len(found.cluster_id) <= limits.CLUSTER_ID_BYTES_MAX:
            raise Refused(Code.INVALID_ARGUMENT, f"a cluster_id has 1 to {limits.CLUSTER_ID_BYTES_MAX} bytes")
        if not 0 < len(found.key) <= limits.KEY_BYTES_MAX:
            raise Refused(Code.INVALID_ARGUMENT, f"a key has 1 to {limits.KEY_BYTES_MAX} bytes")
        self.cluster_id, self.key = found.cluster_id, found.key
        domain = Domain(name=limits.DOMAIN_DEFAULT, protocol=limits.PROTOCOL_DEFAULT)
        self.stamp(domain)
        self.domains[domain.name] = domain

    # ------------------------------------------------------------------------------------------ nodes

    def _register(self, register: RegisterNode, result: CommandResult) -> None:
        node = self._checked_node(register)
        if register.cluster_id and register.cluster_id != self.cluster_id:
            raise Refused(Code.FAILED_PRECONDITION, f"the disk of {node.name} belongs to another cluster")
        check_understands(node.name, node.level, self.level)
        check_has_all(node, self.domains)
        known = self.nodes.get(node.name)
        if known is None and len(self.nodes) >= limits.NODES_MAX:
            raise Refused(Code.RESOURCE_EXHAUSTED, f"there are {limits.NODES_MAX} nodes: no more are taken")
        if known is not None:
            self._check_disk(known, register)
            node.draining = known.draining
        self._check_keeps_services(node)
        # One counter for all processes: a number says which of two lives is the later one, whoever's they are.
        self.incarnation_last += 1
        node.incarnation = self.incarnation_last
        self.stamp(node)
        self.nodes[node.name] = node
        self.removed.pop(node.name, None)
        registered = Registered(incarnation=node.incarnation, cluster_id=self.cluster_id, key=self.key)
        result.registered.CopyFrom(registered)

    def _checked_node(self, register: RegisterNode) -> Node:
        check_name("node", register.name)
        check_address("peer", register.peer_address)
        if register.client_address:
            check_address("client", register.client_address)
        check_zone(register.zone)
        if not 0 < len(register.node_id) <= limits.NODE_ID_BYTES_MAX:
            raise Refused(Code.INVALID_ARGUMENT, f"a node_id has 1 to {limits.NODE_ID_BYTES_MAX} bytes")
        return Node(
            name=register.name,
            node_id=register.node_id,
            services=checked_services(register.services),
            peer_address=register.peer_address,
            client_address=register.client_address,
            zone=register.zone,
            level=register.level,
            protocols=checked_protocols(register.protocols, self.level),
        )

    def _check_disk(self, known: Node, register: RegisterNode) -> None:
        name, is_other = known.name, known.node_id != register.node_id
        if known.disk_lost and not is_other:
            raise precondition(f"the disk of {name} was given up for good: start it with an empty data directory")
        if known.disk_lost and register.cluster_id:
            raise precondition(
                f"the disk of {name} was given up, but this one has been in the cluster under another name: start "
                f"{name} with an empty data directory"
            )
        if is_other and not known.disk_lost:
            message = f"the name {name} belongs to a node with another disk; this disk is new: "
            if self.level < CHANGES_LEVEL:
                # To the letter what older software answers: members remember answers, up to so many bytes.
                raise precondition(message + "bring the old disk back, or use another name")
            raise precondition(
                message + "bring the old disk back, or use another name; if the old disk is gone for good, "
                f"`ordercast node give-up-disk {name}` takes this one in as a new member"
            )

    def _check_keeps_services(self, node: Node) -> None:
        """A disk that holds a group's data still counts: without the service nobody would ask it any more."""
        for group in self.placed():
            configurations = (group, group.previous, group.next)
            replicas = [holder for one in configurations for holder in one.replicas]
            replicas += [*group.placement, *group.leaving]
            acceptors = [holder for one in configurations for holder in one.acceptors]
            for service, holders in (("sequencer", replicas), ("consensus", acceptors)):
                if node.name in holders and service not in node.services:
                    message = f"{node.name} holds data of {called(group)}: it has to run the service {service}"
                    raise precondition(message)

    def node_called(self, name: str) -> Node:
        node = self.nodes.get(name)
        if node is None:
            raise Refused(Code.NOT_FOUND, f"there is no node {quoted(name)}")
        return node

    def node_in(self, name: str, incarnation: int) -> Node:
        """If this is its latest incarnation."""
        node = self.node_called(name)
        if node.incarnation != incarnation:
            raise precondition(f"the incarnation of {name} is {node.incarnation}, not {incarnation}")
        return node

    def make_room_for_removed(self) -> None:
        """Forget the node that was removed first, of those of which nothing can be open any more."""
        if not self.has_room_for_removed():
            message = "too many nodes were removed of whose gateways something may still be open: repeat it later"
            raise Refused(Code.RESOURCE_EXHAUSTED, message)
        if len(self.removed) >= limits.TOMBSTONES_MAX:
            self._forget_changes(self.removed.pop(self._forgettable()[0]).revision)

    def has_room_for_removed(self) -> bool:
        return len(self.removed) < limits.TOMBSTONES_MAX or bool(self._forgettable())

    def _forgettable(self) -> list[str]:
        return [name for name, node in self.removed.items() if node.incarnation < self.retired]

    def _forget_changes(self, revision: int) -> None:
        self.changes_from = max(self.changes_from, revision)

    def _mark_node(self, mark: MarkNode, result: CommandResult) -> None:
        node = self.node_in(mark.name, mark.incarnation)
        if node.ended:
            raise Refused(Code.FAILED_PRECONDITION, f"incarnation {node.incarnation} of {node.name} has ended")
        if (node.suspected, node.read_only) != (mark.suspected, mark.read_only):
            node.suspected, node.read_only = mark.suspected, mark.read_only
            self.stamp(node)

    def _end_incarnation(self, end: EndIncarnation, result: CommandResult) -> None:
        node = self.node_in(end.name, end.incarnation)
        if not node.ended:
            node.ended = node.suspected = True
            self.stamp(node)

    def retirable(self) -> int:
        """No incarnation from here on may be retired: a gateway lives with it, or nobody has had it yet."""
        nodes = self.nodes.values()
        living = [node.incarnation for node in nodes if "gateway" in node.services and not node.ended]
        return min([*living, self.incarnation_last + 1])

    def _retire(self, retire: RetireIncarnations, result: CommandResult) -> None:
        if retire.below > self.retirable():
            message = f"incarnation {self.retirable()} may still publish: below {retire.below} is too much"
            raise Refused(Code.FAILED_PRECONDITION, message)
        if retire.below > self.retired:
            self.retired = retire.below
            self.changed = self.revision

    # ------------------------------------------------------------------------------------------ domains, groups

    def _create_domain(self, create: CreateDomain, result: CommandResult) -> None:
        check_name("domain", create.name)
        try:
            settings = checked_settings(create.settings)
            check_all_have(create.protocol, self.nodes)
            check_domain(create.protocol, settings, self.level, everywhere(self.nodes))
        except ValueError as error:
            raise Refused(Code.INVALID_ARGUMENT, str(error)) from error
        domain = self.domains.get(create.name)
        if domain is None:
            if len(self.domains) >= limits.DOMAINS_MAX:
                raise Refused(Code.RESOURCE_EXHAUSTED, f"there are {limits.DOMAINS_MAX} domains: no more fit")
            domain = Domain(name=create.name, protocol=create.protocol, settings=settings)
            self.stamp(domain)
            self.domains[domain.name] = domain
        elif (domain.protocol, dict(domain.settings)) != (create.protocol, settings):
            raise Refused(Code.ALREADY_EXISTS, f"there is a domain {create.name} with other settings")
        result.domain.CopyFrom(domain)

    def why_not_now(self, create: CreateGroup) -> str | None:
        """Say if a group would get fewer replicas at present than it will find later. Changes nothing."""
        domain = self.domains.get(create.domain or limits.DOMAIN_DEFAULT)
        if create.replicas or create.beside or domain is None or create.name in self.groups:
            return None
        needs_room = create.new_cell or lives_apart(create, self.level)
        if not needs_room and self._choice(create, domain, dict(create.settings)).is_enough():
            return None
        return passing_shortage(self.nodes.values(), with_acceptors=installed_protocol(domain).traits.acceptors)

    def create_group(self, create: CreateGroup, result: CommandResult) -> None:
        check_name("group", create.name)
        is_apart = lives_apart(create, self.level)
        if not is_apart:
            check_one_place(create)
        domain = self._domain_for(create, is_apart)
        self.check_is_free(create.name)
        try:
            settings = checked_settings(create.settings)
            check_group(installed_protocol(domain), domain.settings, settings)
        except ValueError as error:
            raise Refused(Code.INVALID_ARGUMENT, str(error)) from error
        if create.replicas > limits.REPLICAS_MAX:
            raise Refused(Code.INVALID_ARGUMENT, f"a group has at most {limits.REPLICAS_MAX} replicas")
        if len(self.groups) >= limits.GROUPS_MAX:
            raise Refused(Code.RESOURCE_EXHAUSTED, f"there are {limits.GROUPS_MAX} groups: no more fit")
        if is_apart:
            group = self._placed(create.name, domain, create.replicas, settings)
        else:
            cell = self._cell_for(create, domain, settings)
            group = Group(
                name=create.name,
                id=self._next_id(create.name),
                domain=domain.name,
                state=GROUP_STATE_ACTIVE,
                cell=cell.id,
            )
        group.retention.CopyFrom(create.retention)
        self.population.add(group)
        self.stamp(group)
        result.group.CopyFrom(group)

    def _domain_for(self, create: CreateGroup, is_apart: bool) -> Domain:
        name = create.domain or limits.DOMAIN_DEFAULT
        if create.beside and not is_apart and not create.domain:
            name = self.group_called(create.beside).domain
        if name not in self.domains:
            raise Refused(Code.NOT_FOUND, f"there is no domain {quoted(name)}")
        return self.domains[name]

    def check_is_free(self, name: str) -> None:
        if name in self.groups:
            deleting = name in self.population.deleting
            message = f"there is a group {name}" + (", which is being deleted" if deleting else "")
            raise Refused(Code.ALREADY_EXISTS, message)
        if name in self.population.cells:
            raise Refused(
                Code.ALREADY_EXISTS, f"{name} is the name of a cell that groups share: choose another one"
            )

    def _next_id(self, name: str) -> str:
        """One counter for groups and cells: a number says whose it is, and which one came later."""
        self.group_last += 1
        return group_id(name, self.group_last)

    def _placed(self, name: str, domain: Domain, replicas: int, settings: Mapping[str, str]) -> Group:
        """A group that has a cell to itself, or a cell; nothing is changed yet but the counter."""
        traits = installed_protocol(domain).traits
        if self.population.placed_count() >= limits.PLACED_MAX:
            raise Refused(Code.RESOURCE_EXHAUSTED, no_more_placed(self.level))
        try:
            placement = place(list(self.nodes.values()), self.placed(), replicas, with_acceptors=traits.acceptors)
        except NotEnoughNodes as error:
            raise Refused(Code.FAILED_PRECONDITION, str(error)) from error
        group = Group(
            name=name,
            id=self._next_id(name),
            domain=domain.name,
            configuration=1,
            replicas=placement.replicas,
            acceptors=placement.acceptors,
            state=GROUP_STATE_ACTIVE,
            settings=settings,
        )
        KINDS[traits.members].found(group, self.nodes)
        return group

    # ------------------------------------------------------------------------------------------ cells

    def _choice(self, create: CreateGroup, domain: Domain, settings: Mapping[str, str]) -> Choice:
        population = self.population
        return Choice(
            domain.name, create.replicas, settings, self.nodes, population.cells.values(), population.living
        )

    def _cell_for(self, create: CreateGroup, domain: Domain, settings: Mapping[str, str]) -> Group:
        """The one in which a new group lives; a new one, if there are fewer than there should be."""
        if create.beside:
            return self._cell_beside(create, settings)
        choice = self._choice(create, domain, settings)
        if choice.is_enough() and not create.new_cell:
            return choice.fitting[0]
        name = new_name((self.groups, self.population.cells), len(self.population.cells) + 1)
        try:
            cell = self._placed(name, domain, create.replicas, settings)
        except Refused:
            # Fewer than there should be will do, if there are any.
            if create.new_cell or not choice.fitting:
                raise
            return choice.fitting[0]
        cell.is_cell = True
        self.population.add_cell(cell)
        self.stamp(cell)
        return cell

    def _cell_beside(self, create: CreateGroup, settings: Mapping[str, str]) -> Group:
        other = self.group_called(create.beside)
        cell = self.population.cell_with(other.cell)
        if cell is None:
            raise precondition(f"the group {other.name} has a cell to itself: nothing else lives there")
        check_fits_beside(create, settings, other, cell)
        return cell

    def placed(self) -> list[Group]:
        """What has replicas of its own, by name: groups with a cell to themselves, and cells that others share."""
        return self.population.placed()

    def placed_called(self, name_or_id: str) -> Group:
        found = self.population.placed_as(name_or_id)
        if found is None:
            what = "group" if group_name(name_or_id) == name_or_id else "group with the id"
            raise Refused(Code.NOT_FOUND, f"there is no {what} {quoted(name_or_id)}")
        return found

    # ------------------------------------------------------------------------------------------ groups

    @property
    def groups(self) -> GroupTable:
        """All groups, by name."""
        return self.population.groups

    def group_called(self, name: str) -> Group:
        group = self.groups.get(name)
        if group is None:
            raise Refused(Code.NOT_FOUND, f"there is no group {quoted(name)}")
        return group

    def _delete_group(self, delete: DeleteGroup, result: CommandResult) -> None:
        """A change that is being prepared is given up; one that has begun has to come to its end."""
        group = self.group_called(delete.name)
        if group.state != GROUP_STATE_DELETING:
            group.state = GROUP_STATE_DELETING
            group.ClearField("next")
            self.stamp(group)
        result.group.CopyFrom(group)

    def _remove_group(self, remove: RemoveGroup, result: CommandResult) -> None:
        group = self.population.with_id(remove.id)
        if group is None:
            raise Refused(Code.NOT_FOUND, f"there is no group with the id {quoted(remove.id)}")
        if group.state != GROUP_STATE_DELETING:
            raise Refused(Code.FAILED_PRECONDITION, f"the group {group.name} is not being deleted")
        if group.HasField("previous"):
            message = (
                f"configuration {group.configuration} of the group {group.name} has begun: it is not over yet"
            )
            raise precondition(message)
        self.population.remove(group)
        self.cursors = {key: offset for key, offset in self.cursors.items() if key[0] != group.name}
        # Whoever knew the group knows where it was.
        tombstone = Group(
            name=group.name,
            id=group.id,
            domain=group.domain,
            configuration=group.configuration,
            state=GROUP_STATE_DELETED,
            cell=group.cell,
        )
        self.stamp(tombstone)
        self.deleted[group.id] = tombstone
        if len(self.deleted) > limits.GROUP_TOMBSTONES_MAX:
            self._forget_changes(self.deleted.pop(next(iter(self.deleted))).revision)
        result.group.CopyFrom(tombstone)


def _executed_size(request_id: bytes, result: CommandResult) -> int:
    return len(request_id) + result.ByteSize()
