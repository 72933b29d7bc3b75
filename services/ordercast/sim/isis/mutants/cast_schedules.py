"""Stories for mutants within a view that random runs catch rarely."""

from typing import ClassVar

from ordercast.protocols.isis.settings import Causality, Settings
from ordercast.sim.isis.stage import Schedule, Stage

# In its first view, n3 holds the token of a group `a` of n1 to n3, or of n1 to n5.


class AgainstEachOther(Schedule):
    """n1 casts A1 and then B1, n2 casts B2 and then A2, all of them ABCASTs. The holders are outside the overlap:
    n3 gets A2 first, n0 gets B1 first. A1 < B1 < B2 < A2 < A1: nobody in both groups can deliver any of them."""

    mutant = "own-abcasts-ignored-when-crossing"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "b": ("n0", "n1", "n2")}

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n3")
        stage.hold("n2", "n0")
        stage.publish("c1", "a", through="n1", total=True)
        stage.publish("c2", "b", through="n2", total=True)
        stage.run(0.02)
        stage.publish("c3", "b", through="n1", total=True)
        stage.publish("c4", "a", through="n2", total=True)
        stage.run(0.02)
        stage.finish()


class PositionWithoutItsCast(Schedule):
    """n4's cast comes to n3 alone, whose order of it comes to everyone. n3 shows it, and is gone with n4: the
    majority that goes on knows a position of something that nobody has."""

    mutant = "shown-before-a-majority-has-the-cast"
    groups: ClassVar = {"a": ("n1", "n2", "n3", "n4", "n5")}

    def play(self, stage: Stage) -> None:
        stage.hold("n4", "n1", "n2", "n5")
        stage.publish("c1", "a", through="n4")
        stage.run(0.02)
        stage.crash("n3", "n4")
        stage.believe_in("n1", "n2", "n5")
        stage.tell("n1", "n2", "n5", "c2")
        stage.run(0.02)
        stage.look()
        stage.run(0.02)
        stage.tell("n1", "n2", "n5")
        stage.publish("c2", "a", through="n1")
        stage.run(0.02)
        stage.finish()


class OrderOfTheExcluded(Schedule):
    """n3 orders m2 before m1, and nobody hears of it. n1 and n2 go on without n3, and their cut has m1 first."""

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
        stage.run(0.02)
        stage.tell("n1", "n2")
        stage.run(0.02)
        stage.tell("n3")
        stage.run(0.02)
        stage.finish()


class OrderOnOneDisk(OrderOfTheExcluded):
    """And n3 has shown m2."""

    mutant = "shown-before-a-majority-has-the-position"


class TailOfTheSameLength(OrderOfTheExcluded):
    """And n3's order is as long as theirs."""

    mutant = "excluded-keeps-its-tail"


class RowsOfNoDisk(Schedule):
    """n1's cast is on n3's disk, and n2 says that it is on its own. n3 shows it. n1 and n2 restart without it, and
    are a majority."""

    mutant = "told-before-it-is-on-disk"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.hold_disk("n1")
        stage.hold_disk("n2")
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


class PastInAnotherGroup(Schedule):
    """n2 lacks m, of b. n4 has delivered m, and its ABCAST in a, whose token it holds, comes to n2 with its
    position."""

    mutant = "abcast-at-its-position-before-its-past"
    groups: ClassVar = {"a": ("n2", "n3", "n4"), "b": ("n1", "n2", "n4")}

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n2")
        stage.publish("c1", "b", through="n1")
        stage.run(0.02)
        stage.publish("c2", "a", through="n4", total=True)
        stage.run(0.02)
        stage.finish()


class PastOfACbcastInAnotherGroup(Schedule):
    """n2 lacks m, of b. n4 has delivered m, and its CBCAST in a comes to n2."""

    mutant = "only-the-own-group-looked-at"
    groups: ClassVar = {"a": ("n2", "n3", "n4"), "b": ("n1", "n2", "n4")}

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n2")
        stage.publish("c1", "b", through="n1")
        stage.run(0.02)
        stage.publish("c2", "a", through="n4")
        stage.run(0.02)
        stage.finish()


class FieldLeftOut(Schedule):
    """n2's second cast differs from its first in what it has of n1 alone; n3 lacks that."""

    mutant = "changed-field-left-out"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.publish("c1", "a", through="n1")
        stage.run(0.01)
        stage.publish("c2", "a", through="n2")
        stage.run(0.01)
        stage.hold("n1", "n3")
        stage.publish("c3", "a", through="n1")
        stage.run(0.01)
        stage.publish("c4", "a", through="n2")
        stage.run(0.01)
        stage.finish()


class SaidWhatIsLost(Schedule):
    """n1's m in a is on its own disk alone when n1 speaks in b, and is gone. n2, in both, gets from n4 what n1
    said in b, and nobody has m."""

    mutant = "speaks-elsewhere-before-k-disks-have-it"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "b": ("n1", "n2", "n4")}

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n2", "n3")
        stage.publish("c1", "a", through="n1")
        stage.run(0.01)
        stage.publish("c2", "b", through="n1")
        stage.run(0.01)
        stage.finish("n1")


class OrdersThatDied(Schedule):
    """n4 holds the token of a, places A2 first, and speaks: B1 in b. n2 holds the token of b, places B0 first, and
    speaks: A1 in a. A2 and B0 are on everyone's disk, and both orders die with their holders. B1 is with n1 alone,
    which is not in a, and A1 with n3, which is not in b. By key a's cut is A1, A2 and b's is B1, B0. At n5, in
    both: A1 waits for B0, B0 for B1's turn, B1 for A2, and A2 for A1's turn.
    """

    mutant = "speaks-elsewhere-before-k-disks-have-the-order"
    groups: ClassVar = {"a": ("n2", "n3", "n4", "n5", "n6"), "b": ("n1", "n2", "n4", "n5", "n7")}

    def play(self, stage: Stage) -> None:
        stage.hold("n4", "n2", "n3", "n5", "n6", "n7")
        stage.hold("n2", "n1", "n4", "n5", "n6", "n7")
        stage.publish("c1", "a", through="n6", total=True)  # A2
        stage.publish("c2", "b", through="n7", total=True)  # B0
        stage.run(0.02)
        stage.publish("c3", "b", through="n4", total=True)  # B1
        stage.publish("c4", "a", through="n2", total=True)  # A1
        stage.run(0.02)
        stage.finish("n2", "n4")


class ToldLate(Schedule):
    """n1 tells n3 something, which is on its way, and casts in a. n2 answers in b, and n3 has the answer first."""

    mutant = "casts-while-somebody-is-being-told"
    groups: ClassVar = {"a": ("n1", "n2"), "b": ("n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n3")
        stage.tell_one("n1", "n3")
        stage.publish("c1", "a", through="n1")
        stage.run(0.01)
        stage.publish("c2", "b", through="n2")
        stage.run(0.01)
        stage.finish()


class LostOnTheWay(Schedule):
    """n1's cast is lost with its connection to n2, and comes again over the next one."""

    mutant = "nothing-sent-again-on-a-new-connection"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n2")
        stage.publish("c1", "a", through="n1")
        stage.run(0.01)
        stage.lose_in_flight("n1", "n2")
        stage.finish()


class ReadElsewhere(Schedule):
    """A client reads m in b's log and publishes in a, through n1, which is not in b. n3, in both, lacks m. No rule
    about what n1 sent or delivered covers that."""

    mutant = "what-clients-saw-left-out"
    groups: ClassVar = {"a": ("n1", "n3"), "b": ("n2", "n3", "n4")}
    settings = Settings(causality=Causality.CONSERVATIVE)

    def play(self, stage: Stage) -> None:
        stage.hold("n2", "n3")
        stage.publish("c1", "b", through="n2")
        stage.run(0.01)
        stage.sees("c2", "b", at="n2")
        stage.publish("c2", "a", through="n1")
        stage.run(0.01)
        stage.finish()


class OwnCastWithAPast(Schedule):
    """A client reads m in b's log and publishes in a, through n3, which is in both and lacks m. What n3 casts for
    the client has a past that n3 has not delivered."""

    mutant = "own-casts-delivered-at-once"
    groups: ClassVar = {"a": ("n1", "n3"), "b": ("n2", "n3", "n4")}

    def play(self, stage: Stage) -> None:
        stage.hold("n2", "n3")
        stage.publish("c1", "b", through="n2")  # m
        stage.run(0.01)
        stage.sees("c2", "b", at="n2")
        stage.publish("c2", "a", through="n3")
        stage.run(0.01)
        stage.finish()


class RoundTheRing(Schedule):
    """n1 speaks in c, then in a; n2 answers in b. n3, in b and c, has the answer before what n1 said in c. n2 is
    not in c, so its cast says nothing about c: but its epoch does.
    """

    mutant = "epoch-not-raised-when-speaking-elsewhere"
    groups: ClassVar = {"a": ("n1", "n2"), "b": ("n2", "n3"), "c": ("n1", "n3", "n4")}
    settings = Settings(causality=Causality.EPOCHS)

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n3")
        stage.publish("c1", "c", through="n1")
        stage.run(0.02)
        stage.publish("c2", "a", through="n1")
        stage.run(0.02)
        stage.publish("c3", "b", through="n2")
        stage.run(0.02)
        stage.finish()


class RoundTheRingUnderTheConservativeRule(RoundTheRing):
    """The same ring. Neither times nor epochs travel: n1 waits until everyone in c has what it said there."""

    mutant = "conservative-rule-skipped"
    settings = Settings(causality=Causality.CONSERVATIVE)


class LeavesWithWhatItSaw(Schedule):
    """n1 has delivered m in a, tells n5 something, and casts in b when n5 has it. Meanwhile it leaves a and
    forgets it. n4, in both, knows that a's next view is complete, and lacks its cut, with m in it.
    """

    mutant = "epoch-not-raised-on-leave"
    groups: ClassVar = {"a": ("n1", "n2", "n3", "n4"), "b": ("n1", "n4")}
    spare = ("n5",)
    settings = Settings(causality=Causality.EPOCHS)

    def play(self, stage: Stage) -> None:
        stage.hold("n2", "n4")
        stage.hold("n5", "n1")
        stage.publish("c1", "a", through="n2")
        stage.run(0.02)
        stage.tell_one("n1", "n5")
        stage.publish("c2", "b", through="n1")
        stage.run(0.02)
        stage.place("a", "n2", "n3", "n4")
        stage.believe_in("n1", "n2", "n3", "n4")
        stage.tell("n1", "n2", "n3", "n4")
        stage.run(0.02)
        stage.look()
        stage.run(0.005)
        stage.tell("n1", "n2", "n3", "n4")
        stage.run(0.002)
        stage.release("n5", "n1")
        stage.run(0.005)
        stage.finish()


CAST_SCHEDULES: dict[str, type[Schedule]] = {
    schedule.mutant: schedule
    for schedule in (
        AgainstEachOther,
        PositionWithoutItsCast,
        OrderOnOneDisk,
        TailOfTheSameLength,
        RowsOfNoDisk,
        PastInAnotherGroup,
        PastOfACbcastInAnotherGroup,
        FieldLeftOut,
        SaidWhatIsLost,
        OrdersThatDied,
        ToldLate,
        LostOnTheWay,
        ReadElsewhere,
        OwnCastWithAPast,
        RoundTheRing,
        RoundTheRingUnderTheConservativeRule,
        LeavesWithWhatItSaw,
    )
}
