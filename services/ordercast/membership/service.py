"""The membership service: its own log among the configured members, and what others call.

The log runs before there are incarnations, since it is what issues them. So its streams are a channel of their
own, and its machines count the openings of the data directory instead. A member that comes back with an empty
disk has forgotten its votes and does not vote (protocols/paxos/log_admission.py) until the new disk is registered
under its name. Others let it in all the same, so that it can learn. A disk that votes is let in only if it is the
first one that we met under its name, or one that was readmitted.

Who the members are never changes: a majority of one list need not meet a majority of another. So each disk
remembers the list that it voted with, and members with different lists do not speak to each other.
"""

import os
from typing import ClassVar

import structlog

from ordercast.core.machine import ChannelReset, Effect, Machine
from ordercast.membership.machine import LOG, ROLE, Executed, Membership, NotLeading, StateChanged
from ordercast.membership.server import MembershipServer
from ordercast.membership.settings import MembershipSettings
from ordercast.protocols.paxos.log import LogReplica, MayVote
from ordercast.protocols.paxos.log_admission import VotingChanged
from ordercast.runtime.process.node import SYSTEM, Node
from ordercast.runtime.storage.store import Storage, StorageError
from ordercast.runtime.telemetry.meters import Meters
from ordercast.runtime.transport.mesh import WIRE_VERSION, Events, Mesh, Unwelcome
from ordercast.telemetry.schema import names
from ordercast.v1.frame_pb2 import CHANNEL_MEMBERSHIP, Frame, Hello
from ordercast.v1.membership_pb2 import DESCRIPTOR, Domain, FoundCluster
from ordercast.v1.membership_pb2_grpc import add_MembershipServiceServicer_to_server

log = structlog.get_logger("membership")

#: More than there are members, so that no two of them ever have the same number.
INCARNATION_STEP = 64
#: More than a data directory is ever opened: above it, numbers tell one disk of a member from another.
DISK_STEP = INCARNATION_STEP << 32
#: So that all of it fits into 63 bits.
DISKS = 1 << 25


class MembershipProcess:
    name: ClassVar[str] = "membership"

    def __init__(self, node: Node) -> None:
        self.node = node
        members = self.members = tuple(sorted(node.settings.members))
        remember_members(node.storage, members)
        disk = node.storage.node_id
        self.incarnation = (
            int.from_bytes(disk) % DISKS * DISK_STEP
            + node.storage.boot * INCARNATION_STEP
            + members.index(node.name)
        )
        detection = node.settings.detection
        replacement = node.settings.replacement
        settings = MembershipSettings(
            suspect_s=detection.suspect_s,
            end_after_s=detection.end_after_s,
            replace_after_s=replacement.after_s,
            cancel_after_s=replacement.cancel_after_s,
            moves_at_once=replacement.moves_at_once,
        )
        founding = FoundCluster(cluster_id=os.urandom(16), key=os.urandom(32))
        self.machine = Membership(node.name, founding, settings)
        self.server = MembershipServer(node, self.machine)
        self.log = LogReplica(node.name, members, ROLE, settings.log, disk)
        #: Who was suspected when somebody last looked.
        self._suspected: set[str] = set()
        #: In which life the log was last told that it may vote.
        self._life = 0
        node.host.add(SYSTEM, LOG, self.log, self._effect)
        node.host.add(SYSTEM, ROLE, self.machine, self._effect)
        self.mesh = node.system_mesh = Mesh(
            CHANNEL_MEMBERSHIP,
            self._hello,
            Events(self._opened, self._received, self._check, node.host.room),
            node.credentials,
            node.settings.peer_queue_bytes_max,
        )

    def machines(self, domain: Domain) -> dict[str, Machine]:
        return {}

    def changed(self) -> None:
        pass

    async def start(self) -> None:
        service = DESCRIPTOR.services_by_name["MembershipService"]
        self.node.peer_server.add(service, add_MembershipServiceServicer_to_server, self.server)
        self.node.host.start(SYSTEM, self.incarnation, [])
        self.mesh.follow({name: a for name, a in self.node.settings.members.items() if name != self.node.name})

    async def drain(self) -> None:
        pass

    async def stop(self) -> None:
        self.server.stop()

    def measure(self, meters: Meters) -> None:
        nodes = {name: node for name, node in self.machine.state.nodes.items() if not node.ended}
        suspected = {name for name, node in nodes.items() if node.suspected}
        meters.gauge(names.METRIC_NODES).set(len(nodes))
        meters.gauge(names.METRIC_NODES_SUSPECTED).set(len(suspected))
        is_leading = self.machine.leader == self.node.name
        meters.gauge(names.METRIC_MEMBERSHIP_LEADING).set(int(is_leading))
        for name in sorted(suspected - self._suspected):
            meters.counter(names.METRIC_SUSPICIONS).add(1, name)
            if self.node.telemetry is not None and is_leading:
                self.node.telemetry.event(names.EVENT_SUSPECTED, {names.ATTRIBUTE_NODE: name})
        self._suspected = suspected

    # ------------------------------------------------------------------------------------------- machines

    def _effect(self, effect: Effect) -> None:
        match effect:
            case Executed(tag=tag, result=result):
                self.server.executed(tag, result)
            case NotLeading(tag=tag, leader=leader):
                self.server.not_leading(tag, leader)
            case StateChanged():
                self._readmit()
                self.server.changed()
            case VotingChanged(votes=True, life=life):
                log.info("this membership node votes", life=life)
            case VotingChanged():
                others = sorted(set(self.members) - {self.node.name})
                log.warning("this membership node does not vote: its disk was empty", others=others)

    def _readmit(self) -> None:
        """Our name belongs to our disk: registrations are decided by those who vote, and numbered upwards."""
        state, storage = self.machine.state, self.node.storage
        known = state.nodes.get(self.node.name)
        if known is None or known.node_id != storage.node_id or known.disk_lost:
            return
        if known.incarnation > self._life and not self.log.state.votes:
            self._life = known.incarnation
            log.info("this membership node asks to vote", life=self._life)
            self.node.host.tell(SYSTEM, LOG, MayVote(*self.node.clock.read(), self._life))

    # -------------------------------------------------------------------------------------------- streams

    def _hello(self) -> Hello:
        return Hello(
            version=WIRE_VERSION,
            channel=CHANNEL_MEMBERSHIP,
            process=self.node.name,
            incarnation=self.incarnation,
            node_id=self.node.storage.node_id,
            cluster_id=self.machine.state.cluster_id,
            mute=not self.log.state.votes,
            life=self.log.state.life,
            members=self.members,
        )

    async def _check(self, hello: Hello) -> None:
        check_members(self.members, hello)
        if not hello.node_id:
            raise Unwelcome(f"{hello.process!r} does not say which disk it has")
        mine = self.machine.state.cluster_id
        if mine and hello.cluster_id and mine != hello.cluster_id:
            raise Unwelcome("another cluster")
        key = b"member/" + hello.process.encode()
        known = self.node.storage.meta_get(key)
        if known is not None and known != hello.node_id and not hello.life:
            log.error("a membership node came back without its disk", node=hello.process)
        disk = disk_to_remember(known, hello)
        if disk != known:
            # Before anything of it counts.
            self.node.storage.meta_put(key, disk)

    def _opened(self, peer: str, incarnation: int) -> None:
        self.node.host.tell_domain(SYSTEM, ChannelReset(*self.node.clock.read(), peer, incarnation))

    def _received(self, peer: str, incarnation: int, frame: Frame) -> None:
        for section in frame.sections:
            if section.domain == SYSTEM:
                self.node.host.receive(SYSTEM, peer, incarnation, section.packets)


def remember_members(storage: Storage, members: tuple[str, ...]) -> None:
    known = storage.meta_get(b"members")
    if known is None:
        # Before this disk promises anything to them.
        storage.meta_put(b"members", ",".join(members).encode())
    elif known.decode() != ",".join(members):
        raise StorageError(
            f"the membership nodes of this disk's cluster are {known.decode()}, and not {','.join(members)}: "
            "they stay the same for good"
        )


def check_members(members: tuple[str, ...], hello: Hello) -> None:
    if hello.process not in members:
        raise Unwelcome(f"{hello.process!r} is no membership node")
    # Older software does not say.
    if hello.members and tuple(hello.members) != members:
        theirs, ours = ",".join(hello.members), ",".join(members)
        raise Unwelcome(f"{hello.process!r} takes {theirs} for the membership nodes; here they are {ours}")


def disk_to_remember(known: bytes | None, hello: Hello) -> bytes:
    """Under the name in the hello, if it is let in; else raises Unwelcome.

    One that does not vote takes nobody's place. One that was readmitted does, and the log tells its lives apart.
    """
    if known is None or known == hello.node_id:
        return hello.node_id
    if hello.mute:
        return known
    if hello.life:
        return hello.node_id
    raise Unwelcome(f"{hello.process!r} has another disk than before: what it promised is forgotten")
