"""Bugs in the change of a group's replicas, told again as stories.

Each went wrong before it was mended; what would have come of it is in the docstrings. `finish` judges.
"""

import pytest

from ordercast.protocols.paxos import acceptor
from ordercast.protocols.scalatom import records
from ordercast.protocols.scalatom.machine import Scalatom
from ordercast.protocols.scalatom.replica import Replica
from ordercast.protocols.scalatom.settings import Settings
from ordercast.sim.scalatom.stage import Stage

ACCEPTORS = ("n7", "n8", "n9")
#: Those that come with a third configuration, where there is one.
LATER = ("n6", "n10")


def stage(groups: dict[str, tuple[str, ...]], *, stamps_wait_s: float = 0.0) -> Stage:
    """With consensus on every number, unless the story is about numbers that stamps imply."""
    return Stage(groups, acceptors=ACCEPTORS, settings=Settings(stamps_wait_s=stamps_wait_s))


def scalatom(story: Stage, node: str) -> Scalatom:
    machine: Scalatom = story.cluster.machine(node, "scalatom")
    return machine


def replica(story: Stage, node: str, group: str = "a") -> Replica:
    return scalatom(story, node).replicas[group]


def positions(story: Stage, *nodes: str) -> list[int]:
    return [replica(story, node).position for node in nodes]


def tell_all(story: Stage, seconds: float) -> None:
    """The latest view, to everyone; and time for what they make of it."""
    story.cluster.membership.tell_all()
    story.run(seconds)


def prepare(story: Stage, group: str, *replicas: str) -> None:
    """Newcomers are to copy the log; without any the configuration begins. Nobody is told."""
    story.cluster.reconfiguration.prepare(group, replicas, ACCEPTORS)


def begin(story: Stage, *groups: str) -> None:
    """What was prepared. Nobody is told."""
    for group in groups:
        story.cluster.reconfiguration.begin(group)


def damage(story: Stage, node: str, *kinds: bytes, role: str = "scalatom") -> None:
    """It is down, and what its disk had of these kinds is gone."""
    story.crash(node)
    disk = story.world.processes[node].disk.records[role]
    damaged = [key for key in disk if key[:1] in kinds]
    assert damaged
    for key in damaged:
        del disk[key]


def lose_in_previous(story: Stage, group: str, node: str) -> None:
    """Membership hears of a disk when the next configuration has begun. Nobody is told."""
    reconfiguration = story.cluster.reconfiguration
    view = reconfiguration.group(group)
    assert node in (*view.previous.replicas, *view.previous.acceptors)
    view.previous.lost.append(node)
    reconfiguration.tell_checkers(view)
    story.cluster.membership.groups[group] = view
    story.cluster.membership.change("disk_lost", group)


# ------------------------------------------------------------------------------------------------ stamps


def test_a_newcomer_does_not_stamp_where_it_has_delivered() -> None:
    """The number of m was implied by stamps, in a by n2 alone: there is no vote for it. n3 follows n2 in a, and
    has m from the log. When it took m for b it stamped it in a as well, with a higher clock, and n1 decided by
    that.
    """
    story = stage({"a": ("n2",), "b": ("n1",), "z": ("n3", "n4")}, stamps_wait_s=0.05)
    prepare(story, "b", "n1", "n3", "n4")
    tell_all(story, 0.5)
    story.hold("n2", "n1")
    for node in ("n1", "n4"):
        story.hold(node, "n3")
    story.publish("c1", "a", "b")
    story.run(0.05)  # n2 has delivered it, and n1 does not know
    assert (replica(story, "n2").position, replica(story, "n1", "b").position) == (1, 0)
    prepare(story, "a", "n3")
    tell_all(story, 0.5)
    begin(story, "a")
    tell_all(story, 0.5)
    story.cluster.reconfiguration.record_started("a", ["n3", *ACCEPTORS])
    tell_all(story, 0.01)
    begin(story, "b")
    tell_all(story, 3.0)  # the gateway sends it again: n3 has not started in b
    assert (replica(story, "n3").started, replica(story, "n3", "b").started) == (2, 0)
    assert replica(story, "n3").position == 1
    story.finish()


def test_an_envelope_that_nobody_here_has_stamped_is_not_read_back_as_stamped() -> None:
    """n3 takes m before it has started in a or b, and has it from the log when it starts in a: so it never stamps
    it there. The record of m was one without stamps, which after a restart meant 0 in every group that works; but
    m was delivered at 5.
    """
    story = stage({"a": ("n2",), "b": ("n1",), "z": ("n3", "n4")}, stamps_wait_s=0.05)
    prepare(story, "b", "n1", "n3", "n4")
    prepare(story, "a", "n3")
    tell_all(story, 0.5)
    story.raise_clock("n2", "a", 4)
    story.hold("n2", "n1", "n3")
    for node in ("n1", "n4"):
        story.hold(node, "n3")
    story.publish("c1", "a", "b")
    story.run(0.05)
    begin(story, "a", "b")
    tell_all(story, 1.0)
    assert [held.own for held in scalatom(story, "n3").held.values()] == [{}]
    story.release("n2", "n3")
    story.run(1.0)
    assert (replica(story, "n3").started, replica(story, "n3").position) == (2, 1)
    story.crash("n3")
    story.restart("n3")
    story.release("n1", "n3")
    for _ in range(10_000):
        if ("n1", "n3") in story.world.network.connections:
            break
        story.run(0.0002)
    story.pause("n3", 5.0)  # what it has said by now are its stamps, and nothing else
    story.run(3.0)
    story.finish()


def test_a_stamp_that_came_before_its_envelope_does_not_outlive_its_configuration() -> None:
    """n5 has n1's stamp of m, 0, and not m, so it does not know which groups m is for. In a's next configuration
    n1 stamps m anew, behind what n2 and n3 have delivered at 10; n5 counted the old stamp, and m was decided at 0.
    """
    story = stage({"a": ("n1", "n2", "n3"), "b": ("n5",)})
    story.hold("g1", "n2", "n3", "n5")
    story.hold("n1", "n2", "n3")
    story.hold("n5", "n1")
    story.publish("c1", "a", "b")
    story.run(0.005)
    story.hold("n1", "n5")
    assert [(held.names, held.stamps) for held in scalatom(story, "n5").held.values()] == [((), {"a": {"n1": 0}})]
    for node in ("n2", "n3"):
        story.raise_clock(node, "a", 9)
    for node in ("g2", "n2", "n3"):
        story.hold(node, "n1")
    story.publish("c2", "a")
    story.run(0.1)
    assert positions(story, "n2", "n3") == [1, 1]
    prepare(story, "a", "n1")
    tell_all(story, 0.01)
    story.release("n1", "n2")
    story.release("n2", "n1")
    story.run(2.0)  # n1 starts from what it had and what n2 had
    assert replica(story, "n1").started == 2
    story.release("g1", "n5")
    story.run(0.5)
    story.finish()


def test_what_is_handed_over_for_one_group_is_stamped_in_the_others_here() -> None:
    """n2 has m with the hand-over of a. It did not take the gateway's copy for b any more, as it held m already:
    so b waited for its stamp for ever.
    """
    story = stage({"a": ("n1",), "b": ("n2",)})
    story.hold("g1", "n2")
    story.publish("c1", "a", "b")
    story.run(0.01)
    prepare(story, "a", "n2")
    begin(story, "a")
    tell_all(story, 0.05)
    assert replica(story, "n2").started == 2
    story.release("g1", "n2")
    story.run(2.0)
    story.finish()
    assert len(story.cluster.logs.groups["b"].messages) == 1


# ---------------------------------------------------------------------------------------- what is delivered


def test_who_starts_from_a_fellow_needs_the_log_that_the_fellow_had() -> None:
    """n4 has m from n3's log, and starts from n1 and n2, which had not delivered it. What n4 passed on was without
    m, as delivered, but asked for a log no longer than n1's: n5 and n6 delivered something else in its place.
    """
    story = stage({"a": ("n1", "n2", "n3"), "z": ("n4", "n5", "n6")})
    prepare(story, "a", "n4", "n5", "n6")
    tell_all(story, 1.0)
    story.hold("n3", "n5", "n6")
    deliver_at_n3_alone(story)
    copy_delivered(story, "n4")
    story.crash("g1")
    story.hold("n3", "n4")
    for node in ("n1", "n2"):
        story.hold(node, "n5", "n6")
    begin(story, "a")
    story.tell("n1", "n2", "n3", "n4", *ACCEPTORS)
    story.run(0.2)
    story.tell("n5", "n6", "g2", "c1", "c2")
    for _ in range(4000):
        if all(replica(story, node).is_active for node in ("n5", "n6")):
            break
        story.run(0.0005)
    assert all(replica(story, node).is_active for node in ("n4", "n5", "n6"))
    story.hold("n4", "n5", "n6")
    story.publish("c2", "a")
    story.run(5.0)
    story.finish()


def test_what_is_durable_where_nobody_has_started_does_not_count() -> None:
    """n3 and n4 have m in their logs, and are a majority of the second configuration, in which they have not
    started. Asked again, they called m durable there, so it was finished and its votes were dropped. n3 never
    starts there: to those of the third it has nothing to say, and n1, from which they start, has m open and
    undecided.
    """
    story = stage({"a": ("n1", "n2", "n3"), "y": ("n4",), "z": LATER})
    for node in LATER:
        story.hold(node, "n3", "n4")
    prepare(story, "a", "n1", "n3", "n4")
    tell_all(story, 1.0)
    deliver_at_n3_alone(story)
    copy_delivered(story, "n4")
    for node in ("n1", "n2"):
        story.hold(node, "n3", "n4")
    story.hold("n3", "n4")
    story.hold("n4", "n3")
    begin(story, "a")
    tell_all(story, 2.0)  # nothing is handed over to n3 and n4; the gateway sends m again
    start_twice_without(story, "n3", started="n4")
    story.finish()


def test_what_is_copied_before_the_start_is_not_called_durable() -> None:
    """As above, but n4 and n5 have m from n3's log only when the second configuration has begun, and called it
    durable as they wrote it.
    """
    story = stage({"a": ("n1", "n2", "n3"), "y": ("n4", "n5"), "z": LATER})
    for node in LATER:
        story.hold(node, "n3", "n4", "n5")
    prepare(story, "a", "n1", "n4", "n5")
    tell_all(story, 1.0)
    for node in ("n1", "n2", "n3"):
        story.hold(node, "n4", "n5")
    deliver_at_n3_alone(story)
    story.hold("n4", "n5")
    story.hold("n5", "n4")
    begin(story, "a")
    tell_all(story, 0.1)
    assert positions(story, "n4", "n5") == [0, 0]
    story.release("n3", "n4", "n5")
    for node in ("n4", "n5"):
        copy_delivered(story, node)
    story.run(2.0)
    start_twice_without(story, "n5", started="n4")
    story.finish()


def deliver_at_n3_alone(story: Stage) -> None:
    """The others have stamped it, and hear no more."""
    story.publish("c1", "a")
    story.run(0.0045)
    story.hold("n3", "n1", "n2")
    for node in ("n1", "n2"):
        story.hold(node, *ACCEPTORS)
    story.run(0.1)
    assert positions(story, "n1", "n2", "n3") == [0, 0, 1]


def copy_delivered(story: Stage, node: str) -> None:
    """Until the newcomer has the first message by the log."""
    for _ in range(100):
        if replica(story, node).position:
            return
        story.run(0.1)
    raise AssertionError(f"{node} has not copied the log")


def start_twice_without(story: Stage, idle: str, *, started: str) -> None:
    """The second configuration is over with n1 and one more; the third starts from n1 and the one left out."""
    members = ("n1", started, idle)
    assert [replica(story, node).is_active for node in members] == [True, False, False]
    story.publish("c1", "z")  # tells the acceptors what is finished
    story.run(0.5)
    story.hold(started, "n1")
    story.release("n1", started)
    story.run(0.5)
    assert [replica(story, node).is_active for node in members] == [True, True, False]
    story.look()
    tell_all(story, 0.1)
    prepare(story, "a", "n1", *LATER)
    tell_all(story, 1.5)
    begin(story, "a")
    story.tell("n1", idle, *ACCEPTORS)
    story.run(0.01)
    for node in LATER:
        story.release(node, idle)
    story.run(0.01)
    story.tell(*LATER)
    story.run(0.01)
    for node in LATER:
        story.hold(node, idle)
    assert [replica(story, node).started for node in LATER] == [3, 3]
    tell_all(story, 1.0)
    story.look()
    tell_all(story, 0.5)
    assert not story.cluster.membership.groups["a"].HasField("previous")
    for source, to in list(story.world.network.blocked):
        story.lose_in_flight(source, to)


# -------------------------------------------------------------------------------------------- damaged disks


def leave_the_first(story: Stage, *members: str) -> None:
    """For a second configuration, the same: only from then on a disk has a record of where it has started."""
    prepare(story, "a", *members)
    tell_all(story, 1.0)
    story.cluster.reconfiguration.look()
    tell_all(story, 0.1)


@pytest.mark.parametrize("knows", [True, False])
def test_who_lost_its_disk_in_the_configuration_before_hands_nothing_over(knows: bool) -> None:
    """m is decided by n2 and n3, and n3 alone has delivered it. n2's record of m is damaged. Membership notes that
    when the next configuration has begun; n2 counted as sealed, and with n1 was a majority that had no m. Whether
    n2 has heard of it by then must make no difference: the others have.
    """
    story = stage({"a": ("n1", "n2", "n3"), "z": ("n4", "n5")})
    leave_the_first(story, "n1", "n2", "n3")
    prepare(story, "a", "n1", "n4", "n5")
    tell_all(story, 1.0)
    for node in ("g1", "n2", "n3"):
        story.hold(node, "n1")
    story.publish("c1", "a")
    story.run(0.0045)
    story.hold("n3", "n2", "n4", "n5")
    story.run(0.05)
    assert positions(story, "n2", "n3") == [0, 1]
    assert len(story.cluster.board.receipts) == 1
    story.crash("g1")
    damage(story, "n2", records.STAMPED)
    begin(story, "a")
    if not knows:
        story.restart("n2")
    lose_in_previous(story, "a", "n2")
    if knows:
        story.restart("n2")
    story.run(0.05)
    story.tell("n1", "n3", "n4", "n5", "g2", "c1", "c2", *ACCEPTORS)
    story.run(1.0)
    assert replica(story, "n2").is_sealed is not knows
    assert not any(replica(story, node).is_active for node in ("n1", "n4", "n5"))  # they wait for n3
    story.publish("c2", "a")
    story.run(3.0)
    story.finish()


def test_an_acceptor_that_lost_its_vote_in_the_configuration_before_hands_nothing_over() -> None:
    """n8 and n9 have voted for 9, and n3 alone has delivered m. n8's vote is damaged. Membership notes that when
    the next configuration has begun, and n8 has not heard. The new acceptors counted n8 as sealed, with n7 it was
    a majority without a vote, and n1 and n2 had m decided at 0.
    """
    story = stage({"a": ("n1", "n2", "n3"), "z": ("n4", "n5")})
    story.raise_clock("n3", "a", 8)
    story.hold("n3", "n7")
    story.publish("c1", "a")
    story.run(0.0035)
    story.hold("n3", "n1", "n2", "g1", "g2")
    for node in ("n1", "n2"):
        story.hold(node, *ACCEPTORS)
    story.cluster.advance("a", "n1", 20)  # and it tells n3 its clock
    story.run(0.01)
    assert positions(story, "n1", "n2", "n3") == [0, 0, 1]
    damage(story, "n8", acceptor._INSTANCE, role="acceptor")
    newcomers = ("n4", "n5", "n7")
    for node in newcomers:
        story.hold("n9", node)
    story.change("a", ("n1", "n2", "n3"), newcomers)
    story.restart("n8")
    lose_in_previous(story, "a", "n8")
    story.tell(*(name for name in story.world.processes if name != "n8"))
    for node in ("n1", "n2"):
        story.release(node, *ACCEPTORS)
    story.run(5.0)
    assert not any(story.cluster.machine(node, "acceptor").started.get("a") == 2 for node in newcomers)
    story.finish()
    assert positions(story, "n1", "n2", "n3") == [1, 1, 1]


def test_who_lost_its_disk_in_the_configuration_before_is_a_newcomer_in_the_next() -> None:
    """n2 has its log and its position, but not what its producers have sent. It went on with that in the next
    configuration, and judged the producer's next message otherwise than n1 and n3.
    """
    nodes = ("n1", "n2", "n3")
    story = stage({"a": nodes})
    leave_the_first(story, *nodes)
    story.publish("c1", "a")
    story.run(0.5)
    assert positions(story, *nodes) == [1, 1, 1]
    damage(story, "n2", records.PRODUCER, records.SPAN)
    prepare(story, "a", *nodes)
    lose_in_previous(story, "a", "n2")
    story.restart("n2")
    tell_all(story, 1.0)
    assert [replica(story, node).started for node in nodes] == [3, 3, 3]
    story.publish("c1", "a")
    story.run(1.0)
    story.finish()
    assert len(story.cluster.logs.groups["a"].messages) == 2
