"""What nodes say of what waits, as a tree of who waits for whom."""

from ordercast.cli.waits import document_of
from ordercast.cli.who_waits import UNKNOWN, Waits
from ordercast.v1.gateway_pb2 import DescribeWaitingResponse, NodeWaiting
from ordercast.v1.sequencer_pb2 import WaitingEnvelope

FIRST, SECOND, THIRD = b"\x01" * 16, b"\x02" * 16, b"\x03" * 16


def waits(id_: bytes, stage: str, waited_ms: int, *blocked_on: str, groups: str = "a") -> WaitingEnvelope:
    return WaitingEnvelope(
        id=id_, domain="d", groups=groups.split(), stage=stage, waited_ms=waited_ms, blocked_on=blocked_on
    )


def node(name: str, *waiting: WaitingEnvelope, error: str = "", suspected: bool = False) -> NodeWaiting:
    return NodeWaiting(node=name, waiting=waiting, error=error, suspected=suspected)


def message(id_: bytes) -> str:
    return f"message:{id_.hex()}"


def test_what_waits_is_put_below_what_it_waits_for_and_a_silent_node_comes_first():
    found = DescribeWaitingResponse(
        nodes=[
            node(
                "n1",
                waits(FIRST, "decide", 4200, "replica:n3", groups="a b"),
                waits(SECOND, "deliver", 3000, message(FIRST)),
                waits(THIRD, "deliver", 2000, message(SECOND)),
            ),
            node("n2", waits(FIRST, "decide", 4100, "replica:n3", groups="a b")),
            node("n3", error="DEADLINE_EXCEEDED: too late", suspected=True),
        ]
    )
    assert list(Waits(found).lines()) == [
        "n3 does not answer, and is suspected to be down: DEADLINE_EXCEEDED: too late",
        "replica:n3, which does not answer,  holds up 3",
        "└─ 010101010101  d: a, b  decide at n1, n2  4.20 s",
        "   └─ 020202020202  d: a  deliver at n1  3.00 s",
        "      └─ 030303030303  d: a  deliver at n1  2.00 s",
    ]
    (blocker,) = document_of(found)["blockers"]
    assert blocker == {"blocker": "replica:n3", "domain": None, "envelopes": 3, "oldest_s": 4.2}


def test_replicas_know_better_than_gateways_what_an_envelope_waits_for():
    at_gateway = node("g", waits(FIRST, "publish", 500, "group:a"))
    assert [each.name for each in Waits(DescribeWaitingResponse(nodes=[at_gateway])).blockers()] == ["group:a"]
    found = DescribeWaitingResponse(nodes=[at_gateway, node("n1", waits(FIRST, "decide", 400, "replica:n2"))])
    assert [each.name for each in Waits(found).blockers()] == ["replica:n2"]


def test_what_waits_for_two_is_below_both_and_its_own_are_shown_once():
    found = DescribeWaitingResponse(
        nodes=[
            node(
                "n1",
                waits(FIRST, "decide", 9000, "replica:n2", "replica:n3"),
                waits(SECOND, "deliver", 8000, message(FIRST)),
            )
        ]
    )
    lines = list(Waits(found).lines())
    assert [line.strip("└─├│ ").split("  ")[0] for line in lines] == [
        "replica:n2",
        "010101010101",
        "020202020202",
        "replica:n3",
        "010101010101",
    ]
    assert lines[-1].endswith("(see above)")


def test_a_message_that_nobody_knows_any_more_and_one_without_a_reason_hold_up_too():
    """Nodes are asked one moment after the other: what was named may have been delivered meanwhile."""
    found = DescribeWaitingResponse(
        nodes=[node("n1", waits(FIRST, "deliver", 2000, message(THIRD)), waits(SECOND, "deliver", 1000))]
    )
    assert [(each.name, each.count) for each in Waits(found).blockers()] == [(message(THIRD), 1), (UNKNOWN, 1)]
    assert len(list(Waits(found).lines())) == 4


def test_a_circle_is_told_and_ends():
    found = DescribeWaitingResponse(
        nodes=[
            node("n1", waits(FIRST, "deliver", 2000, message(SECOND))),
            node("n2", waits(SECOND, "deliver", 1000, message(FIRST))),
        ]
    )
    assert [(each.name, each.count) for each in Waits(found).blockers()] == [("each other", 2)]
    assert len(list(Waits(found).lines())) >= 3


def test_messages_in_no_envelope_are_told_where_they_wait():
    found = DescribeWaitingResponse(
        nodes=[node("g1", waits(b"", "submit", 100)), node("g2", waits(b"", "submit", 100, groups="a b"))]
    )
    texts = list(Waits(found).lines())
    assert sum("not in an envelope" in line for line in texts) == 2


def test_nothing_waits():
    assert list(Waits(DescribeWaitingResponse(nodes=[node("n1"), node("n2")])).lines()) == ["nothing waits"]


def test_so_many_lines_and_no_more():
    many = [waits(number.to_bytes(16), "decide", 1000, "replica:n2") for number in range(1, 1000)]
    assert 200 <= len(list(Waits(DescribeWaitingResponse(nodes=[node("n1", *many)])).lines())) <= 210
