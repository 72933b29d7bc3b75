"""Bugs that simulation found, told again as stories."""

from ordercast.sim.checkers.ending import check_retired
from ordercast.sim.stage import Stage


def test_an_envelope_known_from_one_groups_log_is_decided_for_the_other_groups_of_the_process() -> None:
    groups = {"a": ("n1", "n2", "n3"), "b": ("n1", "n4", "n5"), "c": ("n5",)}
    story = Stage(groups, acceptors=("n6", "n7", "n8"))
    others = ("n2", "n3", "n4", "n5")
    for node in others:
        story.block(node, "n1")
    story.block("n1", "n6", "n7", "n8")
    story.publish("c1", "a", "b", "c")  # coordinator n5; n1 stamps it and hears no more
    story.run(0.2)
    for node in others:
        story.lose_in_flight(node, "n1")
    story.open("n2", "n1")  # a's log is to be had, b's replicas still cannot be heard
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
