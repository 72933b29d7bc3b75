"""A process that waits until membership can take it."""

import asyncio
import os
from types import SimpleNamespace

import grpc

from ordercast.runtime.process.registration import Registration
from ordercast.runtime.transport.status import Refused
from ordercast.v1.membership_pb2 import Command, CommandResult, RegisterNode

OK = grpc.StatusCode.OK.value[0]
FULL = grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]


class Membership:
    """Remembers what it answered to each request, as membership does; there is room after some of them."""

    def __init__(self, full: int) -> None:
        self.full = full
        self.answered: dict[bytes, CommandResult] = {}
        self.is_lost = False

    async def execute(self, command: Command, timeout_s: float) -> CommandResult:
        command.request_id = command.request_id or os.urandom(16)
        if command.request_id not in self.answered:
            self.answered[command.request_id] = CommandResult(code=FULL if self.full else OK)
            self.full = max(0, self.full - 1)
        if self.is_lost:
            self.is_lost = False
            raise Refused(grpc.StatusCode.UNAVAILABLE, "membership does not answer", "MEMBERSHIP_UNAVAILABLE")
        return self.answered[command.request_id]


def registered_at(membership: Membership) -> CommandResult:
    node = SimpleNamespace(directory=membership, settings=SimpleNamespace(members={}, heartbeat_s=0.0))
    waiting = Registration(node)._execute_patiently(Command(register=RegisterNode(name="g")))  # type: ignore[arg-type]
    return asyncio.run(asyncio.wait_for(waiting, 10))


def test_who_found_no_room_asks_anew_and_is_not_told_what_was_so_before():
    membership = Membership(full=2)
    assert registered_at(membership).code == OK
    assert len(membership.answered) == 3


def test_a_request_whose_answer_was_lost_is_repeated_and_not_made_twice():
    membership = Membership(full=0)
    membership.is_lost = True
    assert registered_at(membership).code == OK
    assert len(membership.answered) == 1
