"""From what a client asks for to what the machine takes, and back: names to ids, tokens to clocks.

Clients know groups by name and machines by id, since a name may be used again. Whatever is wrong with a request
and can be told without the machine is refused here.
"""

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property

from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import group_name
from ordercast.core.limits import NAME_CHARACTERS_MAX, OPEN_TOKEN_BYTES_MAX, PRODUCER_BYTES_MAX
from ordercast.core.quorums import majority
from ordercast.gateway.counting import Counts
from ordercast.gateway.domains import protocol_of
from ordercast.gateway.machine import Gateway
from ordercast.gateway.pressure import RETRY_S_MAX, RETRY_S_MIN, RETRY_S_UNKNOWN
from ordercast.gateway.tokens import Tokens
from ordercast.runtime.node import Node
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_INVALID_ARGUMENT,
    PUBLISH_STATUS_NOT_FOUND,
    PUBLISH_STATUS_RESOURCE_EXHAUSTED,
    PUBLISH_STATUS_SEQUENCE_GAP,
    PUBLISH_STATUS_UNAVAILABLE,
    PublishReply,
    PublishRequest,
    PublishStatus,
)
from ordercast.v1.membership_pb2 import GROUP_STATE_ACTIVE, Group

#: Of one stream; with more, everything on it is refused until some come again.
REFUSED_PRODUCERS_MAX = 1024
#: A group's id in a text: its name and a number.
_ID_IN_TEXT = re.compile(r"([a-z0-9._-]+)#[0-9]+")
COMES_AGAIN = (PUBLISH_STATUS_UNAVAILABLE, PUBLISH_STATUS_RESOURCE_EXHAUSTED)


class Wrong(Exception):  # noqa: N818 (it names what happened, not a kind of error)
    def __init__(self, status: PublishStatus, detail: str, retry_after_s: float = 0.0) -> None:
        super().__init__(detail)
        self.status = status
        self.retry_after_s = retry_after_s


Place = tuple[bytes, tuple[str, ...], int, int]


def place_of(request: PublishRequest) -> Place:
    """As the client sent it, and sends it again."""
    return (request.producer, tuple(request.groups), request.epoch, request.first_sequence)


class Turns:
    """The refusals of one stream: what a producer sent behind a request that will come again must not overtake it.

    Frame 1 has m1 to {a}, and is refused, for a has no quorum. Then it has one again, and frame 2 has m2 to
    {a, b}: it would come before m1, which was sent first. The machine sees to that for what it refuses itself.
    """

    def __init__(self) -> None:
        #: By producer: the request that has to come again first.
        self._first: dict[bytes, Place] = {}

    def check(self, request: PublishRequest) -> None:
        first = self._first.get(request.producer)
        is_too_many = first is None and len(self._first) >= REFUSED_PRODUCERS_MAX
        is_behind = first is not None and first != place_of(request) and not request.open_token
        if is_behind or is_too_many:
            raise Wrong(PUBLISH_STATUS_SEQUENCE_GAP, "an earlier request was refused: repeat that first")

    def refused(self, place: Place, status: PublishStatus) -> None:
        if status in COMES_AGAIN:
            self._first.setdefault(place[0], place)
        elif status != PUBLISH_STATUS_SEQUENCE_GAP and self._first.get(place[0]) == place:
            del self._first[place[0]]  # it is wrong, and nobody sends it again

    def admitted(self, place: Place) -> None:
        """It came again; or its set was opened, after which what was refused comes with another number."""
        first = self._first.get(place[0])
        if first is not None and first[:2] == place[:2]:
            del self._first[place[0]]


class Intake:
    def __init__(self, node: Node) -> None:
        self.node = node
        #: By domain: what comes in is handed to them.
        self.machines: dict[str, Gateway] = {}
        self.counts = Counts()
        self.is_draining = False

    @cached_property
    def tokens(self) -> Tokens:
        """Not before there is a group: the key comes with the registration."""
        return Tokens(self.node.key)

    def admit(self, request: PublishRequest, identity: str | None) -> str:
        """Rewrites the request for the machine and returns the domain; raises Wrong."""
        if self.is_draining:
            detail = "this gateway is about to stop: use another one"
            raise Wrong(PUBLISH_STATUS_UNAVAILABLE, detail, RETRY_S_MIN)
        groups = self._groups(request.groups)
        domain = groups[0].domain
        if request.session:
            try:
                codec = protocol_of(self.node, domain).seen
                request.session = self.tokens.verify(domain, request.session, codec)
            except RemoteProtocolError as error:
                raise Wrong(PUBLISH_STATUS_INVALID_ARGUMENT, str(error)) from None
        request.groups[:] = [group.id for group in groups]
        if identity is not None and request.producer:
            request.producer = owner_of(identity) + request.producer
        return domain

    def sign(self, domain: str, session: bytes) -> bytes:
        """What a machine says was seen, as a token."""
        return self.tokens.sign(domain, session, protocol_of(self.node, domain).seen)

    def credits(self, source: str = "") -> int:
        """What a producer may send that has nothing here; of whoever this stream is of, if there is one."""
        of_machines = [machine.credits(source) for machine in self.machines.values()]
        return min(of_machines, default=self.node.settings.limits.producer_messages_max)

    def _groups(self, names: Sequence[str]) -> list[Group]:
        if not names:
            raise Wrong(PUBLISH_STATUS_INVALID_ARGUMENT, "a message needs at least one destination group")
        groups_max = self.node.settings.limits.groups_max
        if len(names) > groups_max:
            raise Wrong(PUBLISH_STATUS_INVALID_ARGUMENT, f"{len(names)} destination groups; at most {groups_max}")
        groups = []
        for name in names:
            group = self.node.directory.group_by_name.get(name)
            if group is None or group.state != GROUP_STATE_ACTIVE:
                raise Wrong(PUBLISH_STATUS_NOT_FOUND, f"unknown group {name!r}")
            groups.append(group)
        for group in groups[1:]:
            if group.domain != groups[0].domain:
                raise Wrong(
                    PUBLISH_STATUS_INVALID_ARGUMENT,
                    f"{groups[0].name!r} is in domain {groups[0].domain!r}, {group.name!r} in {group.domain!r}: "
                    "there is no order between domains",
                )
        for group in groups:
            self._check_usable(group)
        return groups

    def _check_usable(self, group: Group) -> None:
        """What is disseminated cannot be withdrawn, and holds up its other groups: better refuse it."""
        nodes = [self.node.directory.nodes.get(name) for name in group.replicas if name not in group.lost]
        needed = majority(len(group.replicas))
        if sum(1 for node in nodes if node is not None and not node.suspected) < needed:
            detail = f"group {group.name!r} has no quorum"
            raise Wrong(PUBLISH_STATUS_UNAVAILABLE, detail, RETRY_S_UNKNOWN)
        if sum(1 for node in nodes if node is not None and not node.read_only) < needed:
            detail = f"the disks under group {group.name!r} are full"
            raise Wrong(PUBLISH_STATUS_RESOURCE_EXHAUSTED, detail, RETRY_S_MAX)

    def domain_of(self, reply: PublishReply) -> str:
        """Nobody's, if there is no such group."""
        directory = self.node.directory
        name = reply.groups[0] if reply.groups else ""
        group = directory.groups.get(name) or directory.group_by_name.get(name)
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
        return self.refusal(shown, Wrong(PUBLISH_STATUS_INVALID_ARGUMENT, violation), source)

    def refusal(self, request: PublishRequest, wrong: Wrong, source: str) -> PublishReply:
        return PublishReply(
            producer=request.producer,
            groups=request.groups,
            first_sequence=request.first_sequence,
            count=len(request.messages),
            status=wrong.status,
            detail=str(wrong),
            open_token=request.open_token,
            credits=self.credits(source),
            retry_after_ms=round(wrong.retry_after_s * 1000),
        )

    def to_client(self, reply: PublishReply, identity: str | None) -> PublishReply:
        """A machine's reply with names and a signed token; one for several streams comes here for each."""
        if reply.groups and "#" in reply.groups[0]:
            group = self.node.directory.groups.get(reply.groups[0])
            if reply.session:
                reply.session = self.sign(group.domain, reply.session) if group is not None else b""
            reply.groups[:] = [group_name(id_) for id_ in reply.groups]
            reply.detail = _ID_IN_TEXT.sub(r"\1", reply.detail)
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
