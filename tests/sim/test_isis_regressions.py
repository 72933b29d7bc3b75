"""What attacks and campaigns have found in ISIS: each as the schedule that shows it, or as the run that did."""

import zlib
from typing import ClassVar

import pytest

from ordercast.protocols.isis.era import Era
from ordercast.protocols.isis.speaking import Need, Speaking
from ordercast.sim.campaign import run_one
from ordercast.sim.isis.stage import Schedule, Stage, verdict


class CopiedBeforeTheCut(Schedule):
    """A member becomes a learner through a view that is never completed, and copies part of the log. Then it is in
    the next view, and gets the cut without its casts: they are in its log, and were never delivered here.
    """

    mutant = ""
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n2")
        stage.publish("c1", "a", through="n1")
        stage.run(0.02)
        stage.believe_in("n1", "n3")
        stage.tell("n2")
        stage.run(0.5)
        stage.believe_in("n1", "n2", "n3")
        stage.tell("n1", "n2", "n3")
        stage.run(0.02)
        stage.look()
        stage.run(0.02)
        stage.tell("n1", "n2", "n3")
        stage.run(0.5)
        stage.tell("c2")
        stage.publish("c2", "a", through="n3")
        stage.run(0.02)
        stage.finish()


def first_held_by(place: int, members: int) -> str:
    """The first name of a group whose first view has its token there."""
    return next(g for g in "abcdefghijklmnop" if zlib.crc32(f"{g} 1".encode()) % members == place)


ONE, OTHER = first_held_by(0, 5), first_held_by(1, 5)


class OrdersThatDied(Schedule):
    """Two token holders order, deliver, and speak in each other's group; both die before anybody has the order.
    Both cuts then go by key. If what they said in the other group survived, it may contradict that.
    """

    mutant = ""
    groups: ClassVar = {ONE: ("n1", "n2", "n3", "n5", "n6"), OTHER: ("n1", "n2", "n4", "n5", "n6")}

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n2", "n3", "n5", "n6")
        stage.hold("n2", "n1", "n4", "n5", "n6")
        stage.publish("c1", ONE, through="n3", total=True)
        stage.publish("c2", OTHER, through="n4", total=True)
        stage.run(0.02)
        stage.publish("c3", OTHER, through="n1", total=True)
        stage.publish("c4", ONE, through="n2", total=True)
        stage.run(0.02)
        stage.crash("n1", "n2")
        stage.believe_in("n3", "n4", "n5", "n6")
        stage.tell("n3", "n4", "n5", "n6")
        stage.run(0.02)
        stage.look()
        stage.run(0.02)
        stage.tell("n3", "n4", "n5", "n6")
        stage.run(0.02)
        stage.finish()


@pytest.mark.parametrize("schedule", [CopiedBeforeTheCut, OrdersThatDied])
def test_the_schedule_is_survived(schedule):
    assert verdict(schedule())[0] is None


def test_without_the_order_on_k_disks_the_cuts_wait_for_each_other(monkeypatch):
    def counts_alone(self: Speaking, need: Need) -> bool:
        replica = self.machine.replicas.get(need.group)
        if replica is None or replica.view > need.view or not replica.eras:
            return True
        era: Era = replica.eras[-1]
        k = self.machine.stability.k(era)
        return self.has_own_abcasts(era, need) and all(era.synced_by(key) >= k for key in need.counts.items())

    monkeypatch.setattr(Speaking, "is_safe", counts_alone)
    violation, _ = verdict(OrdersThatDied())
    assert violation is not None


#: Runs that showed: a token taken over too early after a new connection, an order made after contributing, epochs
#: promised ahead of casts that a new connection brought later, gateways that saw one part of a message, what was
#: said behind casts that were lost with a view, parts that waited behind what waited for them, and more.
FOUND_BY = [61, 70, 73, 92, 141, 158, 194, 264, 294, 569, 815, 908, 990, 1114, 1312, 1380, 1843, 2169, 2262, 3892]


@pytest.mark.parametrize("seed", FOUND_BY)
def test_the_run_is_clean(seed):
    assert run_one(seed, protocol="isis").violation is None
