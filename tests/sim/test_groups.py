"""Groups that come and go while others work, told as stories: who hears of it when, and who misses what."""

from ordercast.core.ids import incarnation_of
from ordercast.core.machine import Ended
from ordercast.protocols.scalatom.settings import Settings
from ordercast.sim.scalatom.ending import check_retired
from ordercast.sim.scalatom.mutants.catalogue import CATALOGUE
from ordercast.sim.scalatom.stage import ACCEPTORS, Stage
from ordercast.v1.common_pb2 import Batch

NODES = ("n1", "n2", "n3")


def everyone(story: Stage, *but: str) -> list[str]:
    return [name for name in story.world.processes if name not in but]


def log_of(story: Stage, node: str, group: str) -> list[str]:
    log = story.world.processes[node].disk.logs.get(group)
    entries = log.entries if log is not None else []
    return [m.payload.decode() for e in entries for m in Batch.FromString(e.envelope.body).messages]


def delete(story: Stage, group: str, *late: str) -> None:
    """Everyone hears that it is closed; the late ones do not hear that it is gone."""
    story.close(group)
    story.tell(*everyone(story))
    story.remove()
    assert group in story.cluster.membership.gone
    story.tell(*everyone(story, *late))


# ------------------------------------------------------------------------------------------------------ coming


def test_a_group_is_used_before_its_last_replica_has_heard_of_it() -> None:
    story = Stage({"a": NODES})
    story.create("e", *NODES)
    story.tell(*everyone(story, "n3"))
    story.publish("c1", "e")
    story.publish("c1", "a", "e")
    story.run(3.0)
    assert story.world.lags > 0
    assert log_of(story, "n1", "e") == ["c1 to e #1", "c1 to a,e #1"]
    assert log_of(story, "n3", "a") == ["c1 to a,e #1"], "from the log, which names a group that it does not know"
    story.finish()
    assert log_of(story, "n3", "e") == log_of(story, "n1", "e")


def test_nobody_but_the_gateway_knows_the_group_at_first() -> None:
    story = Stage({"a": NODES})
    story.create("e", *NODES)
    story.tell("c1", "g1")
    story.publish("c1", "a", "e")
    story.run(1.0)
    for name in ("n2", "n4", "n1", "n6", "n3", "n5"):
        story.tell(name)
        story.run(0.4)
    story.finish()
    assert log_of(story, "n1", "e") == ["c1 to a,e #1"]


def test_a_client_that_knows_a_group_before_its_gateway_keeps_its_order() -> None:
    story = Stage({"a": NODES})
    story.create("e", *NODES)
    story.tell("c1", *NODES, *ACCEPTORS)
    story.publish("c1", "a", "e")
    story.publish("c1", "a")
    story.run(0.1)
    assert log_of(story, "n1", "a") == []
    story.tell("g1")
    story.finish()
    assert log_of(story, "n1", "a") == ["c1 to a,e #1", "c1 to a #1"]


def test_a_process_that_restarts_hears_of_a_group_it_missed() -> None:
    story = Stage({"a": NODES})
    story.crash("n3")
    story.create("e", *NODES)
    story.tell(*everyone(story, "n3"))
    story.publish("c1", "e")
    story.run(0.2)
    story.restart("n3")
    story.finish()
    assert log_of(story, "n3", "e") == ["c1 to e #1"]


def test_a_replica_of_a_new_group_knows_what_is_retired() -> None:
    """n3 gets the view, and behind it an envelope of a gateway incarnation that is retired by then."""

    def play() -> tuple[Stage, list[bytes]]:
        """What n3 holds of that incarnation in the end, if acceptors, who have closed it, are asked."""
        story = Stage({"a": NODES}, settings=Settings(stamps_wait_s=0.0))
        story.create("e", *NODES)
        story.tell(*everyone(story, "n3"))
        story.pause("n3", 1.0)
        story.tell("n3")
        story.hold("g1", "n1", "n2")
        story.publish("c1", "e")
        story.run(0.05)
        story.crash("g1")
        story.restart("g1")
        story.run(0.2)
        below = story.cluster.retire()
        story.run(1.5)
        held = story.cluster.machine("n3", "scalatom").held
        return story, [id_ for id_ in held if incarnation_of(id_) < below]

    story, held = play()
    assert held == []
    story.finish()
    with next(m for m in CATALOGUE if m.name == "retired-unknown-to-a-new-replica").applied():
        assert len(play()[1]) == 1, "nobody will ever decide it"


# ------------------------------------------------------------------------------------------------------- going


def test_a_group_goes_when_what_was_taken_for_it_is_finished() -> None:
    story = Stage({"a": NODES, "d": ("n2", "n7")})
    story.hold("g1", "n7")
    story.publish("c1", "a", "d")
    story.publish("c1", "d")  # waits behind the first
    story.run(0.05)
    story.close("d")
    story.tell(*everyone(story))
    story.run(0.05)
    story.publish("c2", "d")
    story.remove()
    assert "d" not in story.cluster.membership.gone
    story.finish()
    assert log_of(story, "n1", "a") == ["c1 to a,d #1"]
    assert list(story.cluster.board.refused) == [(b"c1", ("d",), 1)], "the one that waited"


def test_a_group_goes_though_the_gateway_that_wrote_to_it_says_no_more() -> None:
    story = Stage({"a": NODES, "d": ("n2", "n7")})
    story.publish("c1", "a", "d")
    story.run(1.0)
    delete(story, "d")
    for node in ("n1", "n2"):
        assert story.cluster.machine(node, "scalatom").buffers()["delivered"] == 1, "done is said by the next one"
    story.publish("c1", "a")
    story.finish()
    assert story.cluster.machine("n1", "scalatom").buffers()["delivered"] == 1


def test_what_names_a_group_that_is_gone_is_buried_when_its_gateway_is_over() -> None:
    story = Stage({"a": NODES, "d": ("n2", "n7")})
    story.publish("c1", "a", "d")
    story.run(1.0)
    delete(story, "d")
    story.crash("n1")
    story.restart("n1")
    story.crash("g1")
    story.restart("g1")
    story.run(3.0)
    for node in NODES:
        assert story.cluster.machine(node, "scalatom").buffers()["delivered"] == 0
    check_retired(story.world, story.cluster.retire())
    story.finish()


def test_who_never_knew_the_group_learns_that_what_names_it_is_finished() -> None:
    """n3 was away for the whole life of e. It has the envelope from a's log, without a way to ask e's replicas."""
    story = Stage({"a": NODES})
    for name in ("g1", "n1", "n2"):
        story.hold(name, "n3")
    story.create("e", "n2")
    story.tell(*everyone(story, "n3"))
    story.publish("c1", "a", "e")
    story.run(1.0)
    story.close("e")
    story.tell(*everyone(story, "n3"))
    story.remove()
    story.tell(*everyone(story))
    assert "e" in story.cluster.membership.gone
    story.crash("g1")
    story.restart("g1")
    for name in ("g1", "n1", "n2"):
        story.lose_in_flight(name, "n3")
        story.release(name, "n3")
    story.run(6.0)
    assert log_of(story, "n3", "a") == ["c1 to a,e #1"]
    assert story.cluster.machine("n3", "scalatom").buffers()["delivered"] == 0
    check_retired(story.world, story.cluster.retire())
    story.finish()


def test_who_came_after_all_that_stamped_it_buries_what_names_a_group_that_is_gone() -> None:
    """n7, n8 and n9 have the envelope from a's log, and the replicas that had stamped it have left: nobody is left
    who has buried it, or knew d. But a has changed since the gateway saw a and d together.
    """
    newcomers = ("n7", "n8", "n9")
    story = Stage({"a": NODES, "d": ("n2",)}, spare=newcomers)
    story.publish("c1", "a", "d")
    story.run(1.0)
    delete(story, "d")
    story.prepare("a", newcomers)
    story.tell(*everyone(story))
    story.run(1.0)
    story.begin("a")
    story.tell(*everyone(story))
    story.run(1.0)
    story.look()
    story.tell(*everyone(story))
    story.crash("g1")
    story.restart("g1")
    story.run(3.0)
    for node in newcomers:
        buffers = story.cluster.machine(node, "scalatom").buffers()
        assert (buffers["delivered"], buffers["buried"]) == (0, 1)
    check_retired(story.world, story.cluster.retire())
    story.finish()


def test_a_copy_that_comes_late_is_dropped_with_its_group() -> None:
    """n3 takes it after it had said that nothing there names d, and before it hears that d is gone."""
    story = Stage({"a": NODES, "d": ("n2", "n7")})
    story.hold("g1", "n3")
    story.hold("n1", "n3")
    story.hold("n2", "n3")
    story.publish("c1", "a", "d")
    story.run(1.0)
    delete(story, "d", "n3")
    story.release("g1", "n3")
    story.run(0.01)
    assert story.cluster.machine("n3", "scalatom").mentions("d")
    story.tell("n3")
    assert not story.cluster.machine("n3", "scalatom").mentions("d")
    story.finish()
    assert log_of(story, "n3", "a") == ["c1 to a,d #1"]


def test_a_process_that_is_gone_for_good_does_not_keep_a_group() -> None:
    story = Stage({"a": NODES, "d": NODES})
    story.publish("c1", "a", "d")
    story.run(0.003)
    story.crash("n1")
    story.close("d")
    for process in story.world.processes.values():
        if process.up:
            process.tell_all(Ended(*process.clock(), "n1", story.world.processes["n1"].incarnation))
    story.finish("n1")
    assert "d" in story.cluster.membership.gone
