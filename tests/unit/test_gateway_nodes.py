"""What membership says of processes: a gateway takes nothing for groups that cannot order or store it."""

import asyncio
from types import SimpleNamespace

from ordercast.core.machine import NodesJudged, Stopping
from ordercast.gateway.pressure import RETRY_S_MAX, RETRY_S_MIN
from ordercast.gateway.publishing import ROLE
from ordercast.gateway.service import GatewayProcess
from ordercast.protocols.catalogue import DEFAULT
from ordercast.runtime.process.settings import LimitSettings
from ordercast.v1.common_pb2 import RangeOutcome
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_OK,
    PUBLISH_STATUS_RESOURCE_EXHAUSTED,
    PUBLISH_STATUS_SEQUENCE_GAP,
    PUBLISH_STATUS_UNAVAILABLE,
)
from ordercast.v1.membership_pb2 import Domain, Node
from tests.unit.driving import edited
from tests.unit.gateway_host import RESEND_S, VIEW, Host, envelopes, replies, status

ALL = frozenset(f"n{number}" for number in range(1, 7))


def judge(host: Host, *, down: str = "", full: str = "") -> None:
    host.step(NodesJudged, ALL - set(down.split()), frozenset(full.split()))


def test_a_group_without_a_quorum_is_refused_before_anything_is_sent():
    host = Host()
    judge(host, down="n1")
    host.finish(host.submit("a"), 7)
    judge(host, down="n1 n2")
    (reply,) = replies(host.publish("a", "b", first=2))
    assert (reply.status, reply.detail) == (PUBLISH_STATUS_UNAVAILABLE, "group 'a' has no quorum")
    assert reply.retry_after_ms > 0
    assert host.submit("b", client="c2"), "which has one"


def test_who_is_not_named_is_down():
    host = Host()
    host.step(NodesJudged, frozenset({"n1"}), frozenset())
    assert status(host.publish("a")) == PUBLISH_STATUS_UNAVAILABLE


def test_a_process_is_down_if_it_is_for_membership_or_for_us():
    host = Host()
    envelope = host.submit("a")
    for source in ("n1", "n3"):
        host.decide(envelope, 7, source)
    host.tick(RESEND_S)
    assert host.submit("a", first=2), "n2 does not answer, but the others do"
    judge(host, down="n1")
    assert status(host.publish("a", client="c2")) == PUBLISH_STATUS_UNAVAILABLE


def test_a_replica_that_lost_its_disk_is_none_of_a_quorum():
    host = Host()
    judge(host, down="n1")
    host.change(edited(VIEW, "a", lost="n2"))
    assert status(host.publish("a")) == PUBLISH_STATUS_UNAVAILABLE
    host.change(edited(host.view, "a", lost=""))
    assert host.submit("a")


def test_a_group_whose_disks_are_full_is_refused():
    host = Host()
    judge(host, full="n1")
    host.finish(host.submit("a"), 7)
    judge(host, full="n1 n3")
    (reply,) = replies(host.publish("a", first=2))
    assert (reply.status, reply.detail) == (
        PUBLISH_STATUS_RESOURCE_EXHAUSTED,
        "the disks under group 'a' are full",
    )
    assert reply.retry_after_ms == round(RETRY_S_MAX * 1000)


def test_what_was_sent_behind_a_refusal_does_not_overtake_it():
    """m1 to {a} is refused, for a has no quorum; then it has one, and m2 to {a, b} was under way already."""
    host = Host()
    judge(host, down="n1 n2")
    assert status(host.publish("a")) == PUBLISH_STATUS_UNAVAILABLE
    judge(host)
    assert status(host.publish("a", "b")) == PUBLISH_STATUS_SEQUENCE_GAP
    assert status(host.publish("a", first=2)) == PUBLISH_STATUS_SEQUENCE_GAP
    assert host.submit("a", client="c2"), "another producer's"
    first = host.submit("a")
    assert host.publish("a", "b") == host.publish("a", first=2) == []
    assert len(envelopes(host.decide(first, 40))) == 1


def test_opening_the_set_anew_gives_the_refused_request_up():
    host = Host()
    judge(host, down="n1 n2")
    assert status(host.publish("a", first=7)) == PUBLISH_STATUS_UNAVAILABLE
    judge(host)
    opening = host.submit("a", first=0, count=0, open_token=b"t")
    host.deliver(opening, 7, "a", RangeOutcome(epoch=1, last_sequence=4))
    assert host.submit("a", first=5)


def test_a_gateway_that_stops_takes_nothing_and_answers_what_it_has():
    host = Host()
    envelope = host.submit("a")
    host.step(Stopping)
    (reply,) = replies(host.publish("a", first=2))
    assert (reply.status, reply.retry_after_ms) == (PUBLISH_STATUS_UNAVAILABLE, round(RETRY_S_MIN * 1000))
    assert "use another one" in reply.detail
    assert host.publish("a") == [], "it is here already"
    assert [reply.status for reply in replies(host.deliver(envelope, 7, "a"))] == [PUBLISH_STATUS_OK]


# --------------------------------------------------------------------------------------------- what it is told


class Process:
    """A gateway's process, and what its machines are told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, object]] = []
        telemetry = SimpleNamespace(is_on=False, share_of=lambda domain: 0.0)
        self.nodes = {name: Node(name=name) for name in ("s1", "s2", "s3")}
        node = SimpleNamespace(
            name="s1",
            observe=False,
            settings=SimpleNamespace(limits=LimitSettings(), telemetry=telemetry),
            directory=SimpleNamespace(nodes=self.nodes),
            clock=SimpleNamespace(read=lambda: (1.0, 1.0)),
            host=SimpleNamespace(tell=self._tell),
        )
        self.gateway = GatewayProcess(node)

    def _tell(self, domain: str, role: str, event: object) -> None:
        assert role == ROLE
        self.told.append((domain, event))

    def change(self) -> list[tuple[str, object]]:
        self.told.clear()
        self.gateway.changed()
        return list(self.told)


def judged(domain: str, up: str, full: str = "") -> tuple[str, NodesJudged]:
    return (domain, NodesJudged(1.0, 1.0, frozenset(up.split()), frozenset(full.split())))


def test_machines_hear_who_is_up_and_has_room_when_that_is_new_to_them():
    process = Process()
    process.gateway.machines(Domain(name="d", protocol=DEFAULT.name))
    assert process.change() == [judged("d", "s1 s2 s3")]
    assert process.change() == []
    process.nodes["s2"].suspected = process.nodes["s3"].read_only = True
    assert process.change() == [judged("d", "s1 s3", "s3")]
    del process.nodes["s3"]
    process.gateway.machines(Domain(name="e", protocol="isis"))
    assert process.change() == [judged("d", "s1"), judged("e", "s1")]


def test_machines_hear_that_the_process_stops_also_those_that_begin_later():
    async def story() -> None:
        process = Process()
        process.gateway.machines(Domain(name="d", protocol=DEFAULT.name))
        process.change()
        await process.gateway.drain()
        assert process.told[-1] == ("d", Stopping(1.0, 1.0))
        process.gateway.machines(Domain(name="e", protocol=DEFAULT.name))
        assert process.change() == [judged("e", "s1 s2 s3"), ("e", Stopping(1.0, 1.0))]

    asyncio.run(story())
