"""Bugs that simulation and attacks found, told again as stories."""

from ordercast.core.ids import last_key_of
from ordercast.core.machine import Ended
from ordercast.sim.scalatom.ending import check_retired
from ordercast.sim.scalatom.stage import ACCEPTORS, Stage
from ordercast.v1.common_pb2 import Batch


def test_an_envelope_known_from_one_groups_log_is_decided_for_the_other_groups_of_the_process() -> None:
    groups = {"a": ("n1", "n2", "n3"), "b": ("n1", "n4", "n5"), "c": ("n5",)}
    story = Stage(groups, acceptors=("n6", "n7", "n8"))
    others = ("n2", "n3", "n4", "n5")
    for node in others:
        story.hold(node, "n1")
    story.hold("n1", "n6", "n7", "n8")
    story.publish("c1", "a", "b", "c")  # coordinator n5; n1 stamps it and hears no more
    story.run(0.2)
    for node in others:
        story.lose_in_flight(node, "n1")
    story.release("n2", "n1")  # a's log is to be had, b's replicas still cannot be heard
    story.run(3.0)
    held = next(iter(story.cluster.machine("n1", "scalatom").held.values()))
    assert held.sn is not None
    assert held.id in story.cluster.machine("n1", "scalatom").replicas["b"].queued
    story.finish()


def test_a_gateway_uses_the_replica_in_its_own_process() -> None:
    story = Stage({"a": ("n1",)}, acceptors=None, gateways=("n1",), clients=1)
    story.publish("c1", "a")
    story.finish()
    assert len(story.cluster.logs.groups["a"].messages) == 1


def test_a_process_buries_what_an_earlier_life_of_its_own_gateway_left() -> None:
    story = Stage({"a": ("n1", "n2", "n3")}, acceptors=None, gateways=("n1", "n2"))
    story.publish("c1", "a")
    story.run(0.05)
    story.crash("n1")
    story.restart("n1")
    story.run(2.0)
    for node in ("n1", "n2", "n3"):
        buffers = story.cluster.machine(node, "scalatom").buffers()
        assert (buffers["delivered"], buffers["buried"], buffers["history"]) == (0, 1, 0)
    check_retired(story.world, story.cluster.retire())
    assert story.cluster.machine("n2", "scalatom").buffers()["buried"] == 0
    story.finish()


def test_an_acceptor_that_was_away_hears_what_is_finished() -> None:
    story = Stage({"a": ("n1", "n2", "n3")})
    story.publish("c1", "a")
    story.run(0.05)
    story.crash("n6")
    story.publish("c1", "a")  # says that the first is finished
    story.run(0.05)
    story.restart("n6")
    story.run(0.05)
    assert story.cluster.machine("n6", "acceptor").buffers()["instances"] == 0
    story.finish()


def test_promises_do_not_pile_up_where_stamps_imply_every_number() -> None:
    """n1 hears of no decision and asks the acceptors each time, but nobody asks them for a vote."""
    story = Stage({"a": ("n1", "n2", "n3")})
    story.hold("n2", "n1")
    story.hold("n3", "n1")
    for _ in range(10):
        story.publish("c1", "a")
        story.run(1.0)
    sent = story.cluster.traffic.by_kind
    assert sent["prepare"] > 0
    assert "accept" not in sent
    assert all(story.cluster.machine(node, "acceptor").buffers()["instances"] <= 1 for node in ACCEPTORS)
    story.finish()


def test_one_stuck_envelope_does_not_keep_others_from_being_forgotten() -> None:
    story = Stage({"a": ("n1", "n2", "n3"), "z": ("n7", "n8", "n9")})
    for node in ("n7", "n8"):
        story.crash(node)
    story.publish("c1", "z")  # waits for a quorum
    for _ in range(30):
        story.publish("c1", "a")
        story.run(0.02)
    assert len(story.cluster.logs.groups["a"].messages) == 30
    assert story.cluster.machine("n1", "scalatom").buffers()["delivered"] <= 2
    assert story.cluster.machine("n4", "acceptor").buffers()["instances"] <= 2
    story.finish()


def payloads(story: Stage, node: str) -> list[str]:
    entries = story.world.processes[node].disk.logs["a"].entries
    return [m.payload.decode() for e in entries for m in Batch.FromString(e.envelope.body).messages]


def cut_off(story: Stage, node: str, *others: str) -> None:
    for other in others:
        story.hold(node, other)
        story.hold(other, node)


def test_a_snapshot_brings_the_log_that_its_sender_still_has() -> None:
    """Otherwise an acknowledged body is on one disk only: n1 has the state without it, and n2 dropped its own."""
    story = Stage({"a": ("n1", "n2", "n3")})
    cut_off(story, "n1", "g1", "g2", "n2", "n3", *ACCEPTORS)
    for _ in range(4):
        story.publish("c1", "a")
        story.run(0.3)
    story.cluster.truncate(keep=0)
    story.publish("c1", "a")
    story.run(0.0045)
    story.hold("n3", "n2")  # n2 has stamped #5 and hears no more; n3 delivers it
    cut_off(story, "n2", *ACCEPTORS)
    story.hold("n2", "g1")
    story.run(2.5)
    story.release("n1", "n3")
    story.release("n3", "n1")
    story.run(1.5)  # n1 is too far behind for n3's log and takes a snapshot
    story.crash("n3")
    story.finish("n3")
    assert "c1 to a #5" in payloads(story, "n1")
    assert "c1 to a #5" in payloads(story, "n2")


def test_catching_up_does_not_depend_on_one_peer() -> None:
    story = Stage({"a": ("n1", "n2", "n3")})
    story.crash("n1")
    story.publish("c1", "a")
    story.run(0.1)
    story.crash("g1")
    story.run(0.05)
    story.restart("g1")  # the first life of g1 is over, so n2 and n3 bury the envelope
    story.run(1.5)
    story.restart("n1")
    story.run(0.05)  # both have said how far they are
    story.crash("n3")
    story.finish("n3")
    assert story.cluster.machine("n1", "scalatom").replicas["a"].position == 1


def test_a_replica_that_caught_up_in_silence_is_trusted_again() -> None:
    story = Stage({"a": ("n1", "n2", "n3"), "c": ("n1",)}, gateways=("g1",), clients=1)
    cut_off(story, "n1", "n2", "n3", *ACCEPTORS)
    for _ in range(3):
        story.publish("c1", "a")
        story.run(0.1)
    story.cluster.truncate(keep=0)
    story.slow_disk("n3", 1.0)
    story.publish("c1", "a")
    story.run(0.7)  # long enough for the gateway to suspect n1
    assert "n1" in story.cluster.machine("g1", "gateway").suspected
    for other in ("n2", "n3", *ACCEPTORS):
        story.release("n1", other)
        story.release(other, "n1")
    story.slow_disk("n3", 0.0)
    story.run(4.0)
    story.publish("c1", "c")
    story.finish()
    assert len(story.cluster.logs.groups["c"].messages) == 1


def test_a_gateway_that_just_came_back_is_not_taken_for_over() -> None:
    """n1 and n2 still have the channel of its first life, and get the second life's envelope by relay."""
    story = Stage({"a": ("n1", "n2", "n3")})
    story.crash("g1")
    cut_off(story, "g1", "n1", "n2")
    story.restart("g1")
    story.run(0.2)
    story.publish("c1", "a")
    story.run(3.0)
    assert story.cluster.machine("n1", "scalatom").buffers()["buried"] == 0
    story.finish()


def test_an_idle_group_reaches_the_first_sequence_number() -> None:
    story = Stage({"a": ("n1", "n2", "n3"), "b": ("n4", "n5", "n6")})
    story.cluster.advance("b", "n4", 0)
    story.run(1.0)
    assert story.cluster.logs.groups["b"].watermark == last_key_of(0)


def test_duelling_proposers_agree_though_the_network_is_slower_than_their_timeouts() -> None:
    story = Stage({"a": ("n1", "n2", "n3")})
    story.world.network.settings.delay_s = 0.7
    story.impatient("c1", 1000.0)
    for _ in range(3):
        story.publish("c1", "a")
    story.finish()
    assert len(story.cluster.logs.groups["a"].messages) == 3


def test_a_delivery_that_is_not_synced_is_not_buried() -> None:
    """Or its vote is dropped when the incarnation is retired, and after a crash nobody can decide it again."""
    story = Stage({"a": ("n1",)}, gateways=("g1", "g2"))
    story.publish("c1", "a")
    story.run(0.0035)  # stamped and proposed
    story.slow_disk("n1", 60.0)
    story.run(0.1)
    assert len(story.cluster.board.receipts) == 1
    story.crash("g1")
    story.restart("g1")
    story.run(1.0)
    assert story.cluster.machine("n1", "scalatom").buffers()["buried"] == 0
    story.cluster.retire()
    story.crash("n1")
    story.restart("n1")
    story.finish()
    assert len(story.cluster.logs.groups["a"].messages) == 1


def test_what_comes_late_of_a_retired_incarnation_is_buried_at_once() -> None:
    story = Stage({"a": ("n1", "n2", "n3")})
    story.hold("g1", "n3")
    story.hold("n1", "n3")
    story.hold("n2", "n3")
    story.publish("c1", "a")
    story.run(2.0)
    story.crash("g1")
    story.restart("g1")
    story.run(1.0)
    story.cluster.retire()
    for node in ("g1", "n1", "n2"):
        story.release(node, "n3")
    story.run(5.0)
    assert story.cluster.machine("n3", "scalatom").replicas["a"].position == 1
    assert story.cluster.machine("n3", "scalatom").buffers()["delivered"] == 0
    story.finish()


def test_what_waits_behind_a_message_that_is_given_up_does_not_come_before_it() -> None:
    """The client has moved on and another gateway has sent the message: only there it may be waited for."""
    nodes = ("n1", "n2", "n3")
    story = Stage({"a": nodes, "c": ("n7",)})
    story.raise_clock("n7", "c", 100)
    for node in (*nodes, "n7"):
        story.hold("g1", node)
    story.impatient("c1", 0.5)
    for groups in (("a",), ("a", "c"), ("a",)):  # the first is stuck at g1, and the others wait behind it
        story.publish("c1", *groups)
    story.run(0.2)
    story.cluster.machine("c1", "client").settings.gateways[:] = ["g2"]
    for node in ("g2", *nodes):
        story.hold(node, "n7")
    story.run(1.0)  # g2 has ordered the first, and sent the second, which waits for n7
    story.world.network.disconnect("g1", "c1")
    story.close("c")
    story.tell("g1")  # it gives up the second
    for node in nodes:
        story.release("g1", node)
    story.run(1.0)
    story.finish()
    assert [key[1:] for key in story.cluster.logs.groups["a"].messages] == [
        (("a",), 1),
        (("a", "c"), 1),
        (("a",), 2),
    ]


def test_what_only_the_process_of_a_dead_gateway_holds_is_taken_from_its_next_life() -> None:
    """Membership has given up the life that sent it. Refused, it would stay undecided, and block its groups."""
    story = Stage({"a": ("n1", "n2", "n3")}, acceptors=None, gateways=("n1", "n2"))
    for node in ("n2", "n3"):
        story.slow_disk(node, 30.0)
    story.publish("c1", "a")
    story.run(0.01)
    ended = story.world.processes["n1"].incarnation
    for node in ("n1", "n2", "n3"):
        story.crash(node)
    for node in ("n1", "n2", "n3"):
        story.restart(node)
    for process in story.world.processes.values():
        process.tell_all(Ended(*process.clock(), "n1", ended))
    assert story.cluster.machine("n1", "scalatom").buffers()["undelivered"] == 1
    story.run(5.0)
    # Itself, and the client's repetition.
    assert [story.cluster.machine(n, "scalatom").replicas["a"].position for n in ("n1", "n2", "n3")] == [2, 2, 2]
    story.finish()
