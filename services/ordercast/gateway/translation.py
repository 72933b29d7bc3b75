"""From what a client asks for to what the machine takes, and back: names to ids, tokens to clocks.

Clients know groups by name and machines by id, since a name may be used again. There is a machine for each domain:
what is for no known group, for groups of several domains, or shows a token that no gateway signed, is for none of
them, and is refused here. Everything else is judged by the machine (intake.py).
"""

import hashlib
from collections.abc import Sequence
from functools import cached_property

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import group_name
from ordercast.core.limits import NAME_CHARACTERS_MAX, OPEN_TOKEN_BYTES_MAX, PRODUCER_BYTES_MAX
from ordercast.gateway.checking import NO_GROUP
from ordercast.gateway.counting import Counts
from ordercast.gateway.domains import protocol_of_domain
from ordercast.gateway.machine import Gateway
from ordercast.gateway.rows import count_of
from ordercast.gateway.tokens import Tokens
from ordercast.runtime.process.node import Node
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_INVALID_ARGUMENT,
    PUBLISH_STATUS_MOVED,
    PUBLISH_STATUS_NOT_FOUND,
    GroupPlace,
    PublishReply,
    PublishRequest,
    PublishStatus,
)
from ordercast.v1.membership_pb2 import Group


class Wrong(Exception):  # noqa: N818 (it names what happened, not a kind of error)
    """A request that no machine can be given. It is wrong for good, so it holds nothing up."""

    def __init__(self, status: PublishStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class Translation:
    def __init__(self, node: Node) -> None:
        self.node = node
        #: By domain: what comes in is handed to them.
        self.machines: dict[str, Gateway] = {}
        self.counts = Counts()

    @cached_property
    def tokens(self) -> Tokens:
        """Not before there is a group: the key comes with the registration."""
        return Tokens(self.node.key)

    def to_machine(self, request: PublishRequest, identity: str | None) -> str:
        """Rewrites the request for the machine of a domain, and returns the domain; raises Wrong."""
        groups = self._groups(request.groups)
        self._check_cells(request, groups)
        domain = groups[0].domain
        if request.session:
            try:
                request.session = self.tokens.verify(
                    domain, request.session, protocol_of_domain(self.node, domain).seen
                )
            except RemoteProtocolError as error:
                raise Wrong(PUBLISH_STATUS_INVALID_ARGUMENT, str(error)) from None
        request.groups[:] = [self.node.directory.address_of(group) for group in groups]
        del request.cells[:]
        if identity is not None and request.producer:
            request.producer = owner_of(identity) + request.producer
        return domain

    def sign(self, domain: str, session: bytes) -> bytes:
        """What a machine says was seen, as a token."""
        return self.tokens.sign(domain, session, protocol_of_domain(self.node, domain).seen)

    def credits(self, source: str = "") -> int:
        """What a producer may send that has nothing here; of whoever this stream is of, if there is one."""
        of_machines = [machine.credits(source) for machine in self.machines.values()]
        return min(of_machines, default=self.node.settings.limits.producer_messages_max)

    def _groups(self, names: Sequence[str]) -> list[Group]:
        """Of one domain, in whatever state they are: that is for the domain's machine to judge."""
        if not names:
            raise Wrong(PUBLISH_STATUS_INVALID_ARGUMENT, NO_GROUP)
        groups = []
        for name in names:
            group = self.node.directory.group_by_name.get(name)
            if group is None:
                raise Wrong(PUBLISH_STATUS_NOT_FOUND, f"unknown group {name!r}")
            groups.append(group)
        for group in groups[1:]:
            if group.domain != groups[0].domain:
                raise Wrong(
                    PUBLISH_STATUS_INVALID_ARGUMENT,
                    f"{groups[0].name!r} is in domain {groups[0].domain!r}, {group.name!r} in {group.domain!r}: "
                    "there is no order between domains",
                )
        return groups

    def _check_cells(self, request: PublishRequest, groups: Sequence[Group]) -> None:
        """A client that numbers its messages by other cells would have new messages taken for old ones.

        It asked where a group lives, and the group was deleted and made again somewhere else since.
        """
        shares = any(group.cell for group in groups)
        if not (shares or request.cells):
            return
        there = sorted({group_name(group.cell or group.id) for group in groups})
        if list(request.cells) != there:
            if not request.cells:
                text = "say in `cells` how the messages are numbered: some of these groups share a cell"
                raise Wrong(PUBLISH_STATUS_INVALID_ARGUMENT, f"{text} ({', '.join(there)})")
            moved = f"{', '.join(request.groups)} do not live in {', '.join(request.cells)}"
            raise Wrong(PUBLISH_STATUS_MOVED, f"{moved}: a group was deleted, and made again elsewhere")

    def place_of(self, name: str) -> GroupPlace:
        """For clients: where a group lives."""
        group = self.node.directory.group_by_name.get(name)
        return GroupPlace(group=name, cell=group_name(group.cell) if group is not None else "")

    def domain_of(self, reply: PublishReply) -> str:
        """Nobody's, if there is no such group."""
        directory = self.node.directory
        name = reply.groups[0] if reply.groups else ""
        group = directory.group_at(name) or directory.group_by_name.get(name)
        return group.domain if group is not None else ""

    def excess(self, request: PublishRequest, source: str) -> PublishReply | None:
        """The refusal of a request that has too much of something, and shows no more of it than it might have had.

        Of single calls the server's shell looks at that. Requests of a stream are looked at here, one by one: one
        that is wrong ends neither the stream nor what else is in the frame.
        """
        limits = self.node.client_limits.of(request.DESCRIPTOR)
        violation = limits.violation(request, request.ByteSize())
        if not violation:
            return None
        shown = PublishRequest(first_sequence=request.first_sequence)
        shown.producer = request.producer[:PRODUCER_BYTES_MAX]
        shown.open_token = request.open_token[:OPEN_TOKEN_BYTES_MAX]
        shown.groups[:] = [
            name[:NAME_CHARACTERS_MAX] for name in request.groups[: self.node.settings.limits.groups_max]
        ]
        refusal = self.refusal(shown, Wrong(PUBLISH_STATUS_INVALID_ARGUMENT, violation), source)
        refusal.count = count_of(request)
        return refusal

    def refusal(self, request: PublishRequest, wrong: Wrong, source: str) -> PublishReply:
        return PublishReply(
            producer=request.producer,
            groups=request.groups,
            first_sequence=request.first_sequence,
            count=count_of(request),
            status=wrong.status,
            detail=str(wrong),
            open_token=request.open_token,
            credits=self.credits(source),
            cells=request.cells,
        )

    def to_client(self, reply: PublishReply, identity: str | None) -> PublishReply:
        """A machine's reply with names and a signed token; one for several streams comes here for each."""
        if reply.groups and "#" in reply.groups[0]:
            group = self.node.directory.group_at(reply.groups[0])
            if reply.session:
                reply.session = self.sign(group.domain, reply.session) if group is not None else b""
            reply.groups[:] = [group_name(id_) for id_ in reply.groups]
            reply.cells[:] = [group_name(id_) for id_ in reply.cells]
            for offset in reply.offsets:
                offset.group = group_name(offset.group)
            if identity is not None:
                reply.producer = reply.producer[len(owner_of(identity)) :]
        return reply


def owner_of(identity: str | None) -> bytes:
    """What goes before a producer's id, so that nobody can publish in the name of another one's producer."""
    return (
        b"" if identity is None else hashlib.blake2b(identity.encode(), digest_size=8).hexdigest().encode() + b"/"
    )
