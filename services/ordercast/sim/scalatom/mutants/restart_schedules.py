"""Scripted schedules of replicas that come back: see schedules.py."""

from typing import ClassVar

from ordercast.sim.scalatom.stage import Schedule, Stage


class ToldBeforeItWasReserved(Schedule):
    """[E7] m is decided at 5001, far above what n1 has reserved, and n1's disk is slow. If n1 says that its clock
    has passed 5001 before its disk knows, n2 delivers m by that. n1 crashes and is back at its old reservation:
    it stamps m' at 1001, and {n1, n3} decide that."""

    mutant = "clock-reservation-not-awaited"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "c": ("n2",)}

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n2", "a", 5000)
        stage.hold("g2", "n3")
        stage.hold("n1", "n3")
        stage.hold("n2", "n3")
        stage.publish("c2", "a", "c")  # m, coordinator n2
        stage.run(0.004)  # n1 has stamped it, and knows no number yet
        stage.slow_disk("n1", 30.0)
        stage.run(0.05)
        stage.crash("n1")
        stage.hold("n2", "n1")
        stage.hold("g1", "n2")
        stage.restart("n1")
        stage.release("n1", "n3")
        stage.run(0.01)
        stage.publish("c1", "a")  # m', coordinator n3
        stage.run(0.05)
        stage.finish()


class ForgottenBeforeTheRestart(Schedule):
    """[E8] n2 has missed m1, which is finished, and forgotten by n1 with the delivery of m2. n1 restarts. It tells
    all its entries up to a high clock, and m1 is not among them: if it does not say either up to where it has
    forgotten some, n2 delivers m2 in the place of m1."""

    mutant = "F-lost-at-a-restart"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        for name in ("g1", "n1", "n3"):
            stage.hold(name, "n2")
        stage.publish("c1", "a")  # m1
        stage.run(0.05)
        stage.lose_in_flight("g1", "n2")
        stage.release("g1", "n2")
        stage.run(0.01)
        stage.publish("c1", "a")  # m2 says that m1 is finished; n2 has it, and hears no more of it
        stage.run(0.05)
        stage.crash("n1")
        stage.release("n1", "n2")
        stage.restart("n1")
        stage.run(1.0)
        stage.finish()


class EntryLost(Schedule):
    """[E5] m' is stamped 0 by {n1, n3}, and decided where only n3 knows. n1 restarts, and says that it will stamp
    nothing below its reservation. If it does not know any more that it has stamped m', n2 counts {n1, n2} as
    complete and delivers m, at 1001, before m'."""

    mutant = "history-lost-at-a-restart"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "c": ("n2",)}

    def play(self, stage: Stage) -> None:
        stage.hold("g1", "n2")
        stage.hold("n3", "n1", "n2")
        stage.hold("g2", "n3")
        stage.publish("c1", "a")  # m', coordinator n3
        stage.run(0.05)
        stage.crash("n1")
        stage.restart("n1")
        stage.run(0.01)
        stage.publish("c2", "a", "c")  # m, coordinator n2
        stage.run(0.05)
        stage.finish()


class StampedInOneOfTwoGroups(Schedule):
    """m' is stamped 0 by n2 alone. n1 has told n3 a clock above 101 in b, and m was delivered there by that. n3 is
    replaced; n1, which has left the old b and not begun in the new one, stamps m' for a alone, at 0, and
    restarts. If that is taken for a stamp of b, {n1, n2} seem to have stamped m' at 0, and it comes before m."""

    mutant = "stamp-of-another-group-after-a-restart"
    groups: ClassVar = {"a": ("n1",), "b": ("n1", "n2", "n3"), "c": ("n3",)}
    spare = ("n7",)

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n1", "b", 100)
        stage.raise_clock("n3", "b", 100)
        stage.hold("g1", "n1", "n3")
        stage.hold("n2", "n1", "n3")
        stage.publish("c1", "a", "b")  # m'
        stage.run(0.01)
        stage.hold("g2", "n2")
        stage.publish("c2", "b", "c")  # m, coordinator n3
        stage.run(0.05)
        stage.hold("n3", "n1", "n2", "n7")
        stage.hold("n1", "n2", "n7")
        stage.change("b", ("n1", "n2", "n7"))
        stage.tell("n1")
        stage.release("g1", "n1")
        stage.run(0.01)
        stage.crash("n1")
        stage.restart("n1")
        stage.release("n1", "n2", "n7")
        stage.release("n2", "n1")
        stage.tell("n1", "n2", "n7", "n4", "n5", "n6", "g1", "g2")
        stage.run(2.0)
        stage.finish()


class StartedLater(StampedInOneOfTwoGroups):
    """Members of the new b that start later begin with what the first ones began with, if it is passed on to them.
    Without that, m' comes before m again."""

    mutant = "hand-over-not-passed-on"


RESTART_SCHEDULES: dict[str, type[Schedule]] = {
    schedule.mutant: schedule
    for schedule in (
        ToldBeforeItWasReserved,
        ForgottenBeforeTheRestart,
        EntryLost,
        StampedInOneOfTwoGroups,
        StartedLater,
    )
}
