"""Stories for mutants of view changes that random runs catch rarely."""

from typing import ClassVar

from ordercast.protocols.isis.settings import Settings
from ordercast.sim.isis.stage import Schedule, Stage

# In its first view, n3 holds the token of a group `a` of n1 to n3, or of n1 to n5.


class DefinedIsNotCompleted(Schedule):
    """m is with n3, n4 and n5, which is a majority. A view of n1, n2 and n3 is defined, and n3 dies before its
    flush. n1 and n2 are a majority of that view, and neither has m."""

    mutant = "majority-of-a-view-that-was-only-defined"
    groups: ClassVar = {"a": ("n1", "n2", "n3", "n4", "n5")}

    def play(self, stage: Stage) -> None:
        for name in ("n3", "n4", "n5"):
            stage.hold(name, "n1", "n2")
        stage.publish("c1", "a", through="n4")
        stage.run(0.02)
        stage.believe_in("n1", "n2", "n3")
        stage.crash("n3")
        stage.tell("n1", "n2")
        stage.run(0.02)
        stage.believe_in("n1", "n2")
        stage.tell("n1", "n2", "c2")
        stage.run(0.02)
        stage.look()
        stage.run(0.02)
        stage.tell("n1", "n2")
        stage.publish("c2", "a", through="n1")
        stage.run(0.02)
        stage.finish()


class OneGoesOn(Schedule):
    """n1 and n3 have m, and n3 shows it. n2 alone is believed to be up."""

    mutant = "view-without-a-majority"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.part("n2")
        stage.publish("c1", "a", through="n1")
        stage.run(0.02)
        stage.believe_in("n2")
        stage.tell("n2", "c2")
        stage.run(0.02)
        stage.look()
        stage.run(0.02)
        stage.tell("n2")
        stage.publish("c2", "a", through="n2")
        stage.run(0.02)
        stage.finish()


class OnlyOneHasTheCut(Schedule):
    """n3 restarts, and all three are in the next view. n1, who has its cut, is gone for good; n2 and n3 do not
    know what that view begins with.
    """

    mutant = "completion-by-one"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.publish("c1", "a", through="n2")
        stage.run(0.02)
        stage.crash("n3")
        stage.restart("n3")
        stage.run(0.01)
        stage.hold("n1", "n2", "n3")
        stage.believe_in("n1", "n2", "n3")
        stage.tell("n1", "n2", "n3")
        stage.run(0.02)
        stage.look()
        stage.run(0.02)
        stage.tell("n1", "n2", "n3")
        stage.run(0.02)
        stage.finish("n1")


class TwoEndings(Schedule):
    """n3 ordered m2 before m1, unheard. n1 and n2 have a cut with m1 before m2, and that is about to be recorded
    when a view of n2 and n3 is defined, whose cut has n3's order. If both are completed, n1 shows m1 first."""

    mutant = "completion-after-a-later-view-was-defined"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.hold("n3", "n1", "n2")
        stage.hold("n1", "n3")
        stage.publish("c1", "a", through="n1")  # m1
        stage.publish("c2", "a", through="n2")  # m2
        stage.run(0.01)
        stage.release("n1", "n3")
        stage.run(0.02)
        stage.believe_in("n1", "n2")
        stage.tell("n1", "n2")
        stage.run(0.02)
        stage.look()
        stage.believe_in("n2", "n3")
        stage.tell("n2", "n3")
        stage.run(0.02)
        stage.tell("n1")
        stage.release("n3", "n2")
        stage.run(0.02)
        stage.look()
        stage.run(0.02)
        stage.tell("n2", "n3")
        stage.run(0.02)
        stage.finish()


class SealedIsSealed(Schedule):
    """n1 and n2 have contributed to the end of a view, and their cut is on disk, when a cast of n3 comes that has
    not heard of that. If n1 takes it, n3 shows it; n2 begins the next view without it."""

    mutant = "taken-after-contributing"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    settings = Settings(stability_idle_s=1.0)

    def play(self, stage: Stage) -> None:
        stage.hold("n3", "n2")
        stage.believe_in("n1", "n2")
        stage.tell("n1", "n2", "c2")
        stage.run(0.02)
        stage.publish("c1", "a", through="n3")
        stage.run(0.02)
        stage.look()
        stage.run(0.02)
        stage.tell("n1", "n2")
        stage.publish("c2", "a", through="n2")
        stage.run(0.02)
        stage.finish()


class NotThereYet(Schedule):
    """n2 speaks in a's second view and then in b. n3, in both, hears it in b, while a's first view has not ended
    there."""

    mutant = "newer-views-time-taken-as-satisfied"
    groups: ClassVar = {"a": ("n1", "n2", "n3", "n4"), "b": ("n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.crash("n4")
        stage.hold("n1", "n3")
        stage.believe_in("n1", "n2", "n3")
        stage.tell("n1", "n2", "n3")
        stage.run(0.02)
        stage.look()
        stage.run(0.02)
        stage.tell("n1", "n2", "n3", "c1")
        stage.run(0.02)
        stage.publish("c1", "a", through="n2")
        stage.run(0.02)
        stage.publish("c2", "b", through="n2")
        stage.run(0.02)
        stage.finish()


class EndNotHeardOf(Schedule):
    """n4 is gone, and n1 and n2 are in a's second view. n3 knows that it is complete, and lacks what the first one
    ended with: m, cast by n1."""

    groups: ClassVar = {"a": ("n1", "n2", "n3", "n4"), "b": ("n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n3")
        stage.hold("n2", "n3")
        stage.publish("c1", "a", through="n1")  # m
        stage.run(0.02)
        stage.crash("n4")
        stage.believe_in("n1", "n2", "n3")
        stage.tell("n1", "n2", "n3")
        stage.run(0.02)
        stage.look()
        stage.run(0.02)
        stage.tell("n1", "n2", "n3")
        stage.run(0.02)
        self.go_on(stage)
        stage.run(0.02)
        stage.finish("n4")

    def go_on(self, stage: Stage) -> None:
        raise TypeError("something happens then")


class AnsweredBeforeAllAreThere(EndNotHeardOf):
    """n2, which has delivered m, speaks in b. If it says nothing of a, n3 delivers that first."""

    mutant = "old-time-dropped-before-all-have-installed"

    def go_on(self, stage: Stage) -> None:
        stage.release("n2", "n3")
        stage.publish("c2", "b", through="n2")


class EndDroppedTooEarly(EndNotHeardOf):
    """The flush is lost on its way to n3, and retention looks at the logs of n1 and n2. n3 has a part in the view
    that ended, and has to deliver m as a cast: no state can stand for that."""

    mutant = "dropped-from-logs-while-a-view-begins"

    def go_on(self, stage: Stage) -> None:
        stage.lose_in_flight("n1", "n3")
        stage.lose_in_flight("n2", "n3")
        stage.truncate()


class ForwardedInVain(Schedule):
    """n3 is gone. n2 forwards m, which nobody else has, to the end of the view, and it is lost on its way to n1:
    who has to compute that end waits for m."""

    mutant = "forwarded-taken-as-stable"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.hold("n2", "n1", "n3")
        stage.publish("c1", "a", through="n2")  # m
        stage.run(0.02)
        stage.crash("n3")
        stage.believe_in("n1", "n2")
        stage.tell("n1", "n2")
        stage.run(0.02)
        stage.lose_in_flight("n1", "n2")
        stage.finish("n3")


class RefusedAndOvertaken(Schedule):
    """n1 has heard that it is left out, and refuses what comes for a. It is back when the next one comes."""

    mutant = "taken-though-it-does-not-follow"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        for alive in (("n2", "n3"), ("n1", "n2", "n3")):
            stage.believe_in(*alive)
            stage.tell("n1", "n2", "n3")
            stage.run(0.02)
            stage.look()
            stage.run(0.02)
            stage.tell("n1", "n2", "n3")
            stage.run(0.02)
            stage.publish("c1", "a", through="n1")
            stage.run(0.02)
        stage.finish()


class PositionsBeforeCausality(Schedule):
    """n3 ordered m2 before m1, everyone knows and has that, and n3 alone has shown it. The cut's own order would
    be another one.
    """

    mutant = "known-positions-ignored-by-the-cut"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    settings = Settings(stability_idle_s=1.0)

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n3")
        stage.publish("c1", "a", through="n1")  # m1
        stage.publish("c2", "a", through="n2")  # m2
        stage.run(0.01)
        stage.release("n1", "n3")
        stage.run(0.02)
        stage.crash("n3")
        stage.believe_in("n1", "n2")
        stage.tell("n1", "n2")
        stage.run(0.02)
        stage.look()
        stage.run(0.02)
        stage.tell("n1", "n2")
        stage.run(0.02)
        stage.finish()


class AnswerToNothing(Schedule):
    """n2 has delivered n1's m, which nobody else has, and casts an answer. Both go: the answer has no past."""

    mutant = "orphans-in-the-cut"
    groups: ClassVar = {"a": ("n1", "n2", "n3", "n4", "n5")}

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n3", "n4", "n5")
        stage.publish("c1", "a", through="n1")
        stage.run(0.01)
        stage.publish("c2", "a", through="n2")
        stage.run(0.01)
        stage.crash("n1", "n2")
        stage.believe_in("n3", "n4", "n5")
        stage.tell("n3", "n4", "n5")
        stage.run(0.02)
        stage.look()
        stage.run(0.02)
        stage.tell("n3", "n4", "n5")
        stage.run(0.02)
        stage.finish()


class AllWereDown(Schedule):
    """n3 has shown m, everyone has it, and everyone goes down. n1 and n2 come back first."""

    mutant = "pending-discarded-at-a-restart"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    settings = Settings(stability_idle_s=1.0)

    def play(self, stage: Stage) -> None:
        stage.publish("c1", "a", through="n1")
        stage.run(0.02)
        stage.crash("n1", "n2", "n3")
        stage.restart("n1", "n2")
        stage.run(0.02)
        stage.believe_in("n1", "n2")
        stage.tell("n1", "n2", "c2")
        stage.run(0.02)
        stage.look()
        stage.run(0.02)
        stage.tell("n1", "n2")
        stage.publish("c2", "a", through="n1")
        stage.run(0.02)
        stage.finish()


class SaidByAnotherLife(Schedule):
    """n1 casts m, restarts before m is on its disk, and casts as if it had never said anything."""

    mutant = "another-life-goes-on-in-the-view"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.hold_disk("n1")
        stage.publish("c1", "a", through="n1")
        stage.run(0.01)
        stage.crash("n1")
        stage.restart("n1")
        stage.run(0.02)
        stage.publish("c2", "a", through="n1")
        stage.run(0.02)
        stage.finish()


class OneOfTwoHasIt(Schedule):
    """n1's cast has come to n2 and not to n3, and n1 is gone for good. The view of n2 and n3 begins with it."""

    mutant = "unstable-casts-not-forwarded"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n3")
        stage.publish("c1", "a", through="n1")
        stage.run(0.02)
        stage.crash("n1", "c1")
        stage.finish("n1", "c1")


class ShownAndItsCasterGone(OneOfTwoHasIt):
    """And n2 has shown it, for it was on two disks."""

    mutant = "casts-of-who-goes-forgotten"


VIEW_SCHEDULES: dict[str, type[Schedule]] = {
    schedule.mutant: schedule
    for schedule in (
        DefinedIsNotCompleted,
        OneGoesOn,
        OnlyOneHasTheCut,
        TwoEndings,
        SealedIsSealed,
        NotThereYet,
        AnsweredBeforeAllAreThere,
        EndDroppedTooEarly,
        ForwardedInVain,
        RefusedAndOvertaken,
        PositionsBeforeCausality,
        AnswerToNothing,
        AllWereDown,
        SaidByAnotherLife,
        OneOfTwoHasIt,
        ShownAndItsCasterGone,
    )
}
