"""Which command membership takes from whom, over its own service: every command, and every kind of caller."""

import asyncio
from types import SimpleNamespace

import grpc
import pytest

from ordercast.core.machine import Hand, Start
from ordercast.membership.machine import Executed, Membership
from ordercast.membership.permissions import SPEAKERS, Speaker
from ordercast.membership.server import MembershipServer
from ordercast.protocols.paxos.log import Append, LeaderChanged, LogApplied
from ordercast.runtime.transport.status import Refused
from ordercast.v1.membership_pb2 import Command, ExecuteRequest, FoundCluster, HeartbeatRequest, RegisterNode

KINDS = [field.name for field in Command.DESCRIPTOR.oneofs_by_name["what"].fields]
KEY = b"the key that session tokens are signed with"
SERVICES = {"g1": ["gateway"], "all": ["consensus", "gateway", "sequencer"], "s1": ["sequencer"]}
CLOCK = (0.0, 0.0)


def certificate(*names):
    """What gRPC tells of a caller whose certificate has these names; of one without TLS nothing."""
    auth = {"transport_security_type": [b"ssl"], "peer_dns": [name.encode() for name in names]} if names else {}
    return SimpleNamespace(auth_context=lambda: auth)


class Leader:
    """The service of a membership node that leads alone, so that what it appends is applied at once."""

    def __init__(self):
        self.name = "m1"
        self.host = self
        self.clock = SimpleNamespace(read=lambda: CLOCK)
        self.machine = Membership(self.name, FoundCluster(cluster_id=b"cluster", key=KEY))
        self.server = MembershipServer(self, self.machine)
        self.slots = 0
        self.tell("", "", Start(*CLOCK, 1, ()))
        self.tell("", "", LeaderChanged(*CLOCK, self.name))

    def tell(self, _domain, _role, event):
        for effect in self.machine.step(event):
            match effect:
                case Executed(tag=tag, result=result):
                    self.server.executed(tag, result)
                case Hand(event=Append(value=value, tag=tag)):
                    self.slots += 1
                    self.tell("", "", LogApplied(*CLOCK, self.slots - 1, value, tag))

    async def execute(self, command, *names):
        command.request_id = command.request_id or f"request {self.slots} {command}".encode()[:64]
        request = ExecuteRequest(command=command)
        return (await self.server.Execute(request, certificate(*names))).result

    async def register(self, name):
        node = RegisterNode(
            name=name, node_id=name.encode(), services=SERVICES[name], peer_address="127.0.0.1:1", level=2
        )
        return await self.execute(Command(register=node), name)


async def leader_with_nodes():
    leader = Leader()
    for name in SERVICES:
        assert (await leader.register(name)).code == 0
    return leader


def command_of(kind, name=""):
    command = Command()
    getattr(command, kind).SetInParent()
    if SPEAKERS[kind] is Speaker.ITSELF:
        getattr(command, kind).name = name
    return command


async def verdict(leader, command, *names):
    """Why the caller was refused; None if membership judged the command itself, whatever came out."""
    try:
        await leader.execute(command, *names)
    except Refused as refused:
        return refused.code, refused.reason
    return None


DENIED = grpc.StatusCode.PERMISSION_DENIED


def test_every_command_has_a_row():
    assert sorted(SPEAKERS) == sorted(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_command_is_taken_from_whom_the_table_says_and_from_nobody_else(kind):
    async def run():
        leader = await leader_with_nodes()

        async def verdicts(*names):
            return [await verdict(leader, command_of(kind, name), *names) for name in ("g1", "s1")]

        match SPEAKERS[kind]:
            case Speaker.LEADER:
                for caller in ((), ("g1",), ("s1",), ("m1",), ("stranger",)):
                    assert await verdicts(*caller) == [(DENIED, "NOT_FOR_CALLERS")] * 2
            case Speaker.ITSELF:
                wrong = (DENIED, "WRONG_CERTIFICATE")
                assert await verdicts("g1") == [None, wrong]
                assert await verdicts("s1") == [wrong, None]
                assert await verdicts("stranger") == [wrong, wrong]
                assert await verdicts() == [None, None]
            case Speaker.GATEWAY:
                assert await verdicts("g1") == await verdicts("all") == [None, None]
                assert await verdicts("other", "all") == [None, None]
                assert await verdicts("s1") == [(DENIED, "NOT_A_GATEWAY")] * 2
                unknown = (grpc.StatusCode.FAILED_PRECONDITION, "UNKNOWN_CALLER")
                assert await verdicts("stranger") == [unknown, unknown]
                assert await verdicts() == [None, None]

    asyncio.run(run())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if SPEAKERS[kind] is Speaker.GATEWAY])
def test_a_member_that_does_not_lead_sends_gateways_that_it_has_not_heard_of_to_the_leader(kind):
    async def run():
        leader = await leader_with_nodes()
        leader.tell("", "", LeaderChanged(*CLOCK, "m2"))
        for name in ("s1", "stranger"):
            reason = grpc.StatusCode.FAILED_PRECONDITION, "NOT_LEADER"
            assert await verdict(leader, command_of(kind), name) == reason

    asyncio.run(run())


def test_a_command_that_says_nothing_is_refused_for_what_it_is():
    async def run():
        leader = await leader_with_nodes()
        assert (await leader.execute(Command(), "s1")).code == grpc.StatusCode.INVALID_ARGUMENT.value[0]

    asyncio.run(run())


def test_a_heartbeat_is_the_callers_own():
    async def run():
        leader = await leader_with_nodes()
        for name, caller in (("g1", "s1"), ("m1", "stranger")):
            with pytest.raises(Refused) as caught:
                await leader.server.Heartbeat(HeartbeatRequest(name=name), certificate(caller))
            assert caught.value.code == DENIED
        assert await leader.server.Heartbeat(HeartbeatRequest(name="g1", incarnation=1), certificate("g1"))

    asyncio.run(run())


def test_the_key_of_session_tokens_goes_to_gateways_alone():
    async def run():
        leader = Leader()
        for name, services in SERVICES.items():
            registered = (await leader.register(name)).registered
            assert registered.incarnation
            assert registered.key == (KEY if "gateway" in services else b""), name

    asyncio.run(run())


def test_the_answer_to_a_gateways_registration_gives_its_key_to_nobody_else_who_repeats_it():
    async def run():
        leader = await leader_with_nodes()
        node = RegisterNode(name="g1", node_id=b"g1", services=["gateway"], peer_address="127.0.0.1:1", level=2)
        first = await leader.execute(Command(register=node, request_id=b"once"), "g1")
        again = await leader.execute(Command(register=node, request_id=b"once"), "g1")
        assert first == again
        assert first.registered.key == KEY
        for command in (command_of("register", "s1"), command_of("end_incarnation", "s1")):
            command.request_id = b"once"
            assert (await leader.execute(command, "s1")).registered.key == b""

    asyncio.run(run())
