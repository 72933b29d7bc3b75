"""Scripted schedules of changes from one configuration to the next: see schedules.py."""

from typing import ClassVar

from ordercast.protocols.scalatom.settings import Settings
from ordercast.sim.scalatom.stage import ACCEPTORS, Schedule, Stage

NEW_ACCEPTORS = ("n7", "n8", "n9")


class NewcomersBeginAtZero(Schedule):
    """n1 has said that nothing up to 150 will come any more, by the clocks of a majority. All are replaced. The
    new ones
    know the log, which ends at 101, and have to begin above those clocks all the same."""

    mutant = "newcomer-with-clock-0"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    spare = ("n7", "n8", "n9")

    def play(self, stage: Stage) -> None:
        for process in ("n1", "n2", "n3"):
            stage.raise_clock(process, "a", 100)
        stage.publish("c1", "a")
        stage.run(0.05)
        stage.cluster.advance("a", "n1", 150)
        stage.run(0.05)
        stage.change("a", ("n7", "n8", "n9"))
        stage.tell(*stage.world.processes)
        stage.run(0.5)
        stage.publish("c2", "a")
        stage.run(0.5)
        stage.finish()


class ClocksOfAnEarlierConfiguration(Schedule):
    """n2's clock is 101, and n1 has heard so. n2 is cut off, and {n1, n3} are the sealed majority from which
    the next configuration starts, with low clocks. n1 lets its own pass 90. Together with n2's that is no
    majority any more: {n7, n8} go on below it.
    """

    mutant = "watermark-kept-over-a-reconfiguration"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    spare = ("n7", "n8")

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n2", "a", 100)
        stage.run(1.5)  # n2 gossips it
        stage.hold("n2", "n1", "n3", "n7", "n8")
        stage.change("a", ("n1", "n7", "n8"))
        stage.tell(*[name for name in stage.world.processes if name != "n2"])
        stage.run(0.5)
        for other in ("n3", "n7", "n8"):
            stage.hold("n1", other)
            stage.hold(other, "n1")
        stage.cluster.advance("a", "n1", 90)
        stage.run(0.1)
        stage.publish("c1", "a")
        stage.run(0.5)
        stage.finish()


class OneSealedIsNotEnough(Schedule):
    """m' is delivered by n1 and n3; n2 has not heard of it, and they are replaced. If the word of n2 is enough to
    start, the new ones order m2 as if there were no m'."""

    mutant = "seal-from-a-minority"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    spare = ("n7", "n8")

    def play(self, stage: Stage) -> None:
        stage.hold("g1", "n2")
        stage.hold("n1", "n2", "n7", "n8")
        stage.hold("n3", "n2", "n7", "n8")
        stage.publish("c1", "a")  # m'
        stage.run(0.05)
        stage.change("a", ("n2", "n7", "n8"))
        stage.tell(*stage.world.processes)
        stage.run(0.5)
        stage.publish("c2", "a")  # m2
        stage.run(1.0)
        stage.finish()


class ImpliedAndUntold(Schedule):
    """All stamps of m are 0, so n3 knows that it is decided at 0, without asking anyone, and tells nobody. It is
    replaced. No vote tells of the decision, but the stamps of {n1, n2} do, if they are kept."""

    mutant = "fresh-stamp-though-all-had-stamped"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    spare = ("n7",)
    settings = Settings()

    def play(self, stage: Stage) -> None:
        stage.hold("n3", "n1", "n2", "g1")
        stage.publish("c1", "a")  # coordinator n3
        stage.run(0.02)
        stage.hold("n3", "n7", "n4", "n5", "n6")
        stage.change("a", ("n1", "n2", "n7"))
        stage.tell("n1", "n2", "n7", "n4", "n5", "n6", "g1", "g2")
        stage.run(2.0)
        stage.finish()


class OldMembersGoOn(ImpliedAndUntold):
    """n1 and n2, which stay, have to stand still and say what they had. If they go on in the new configuration as
    they did in the old one, n7 never hears from a majority of the old one that it has ended, and never starts."""

    mutant = "sealed-replica-still-stamps"


class ImpliedBeforeTwoChanges(Schedule):
    """n3 knows, by the stamps alone, that m is decided at 0, and tells nobody. In the next configuration n1 and n7
    start, with that stamp, and get nothing decided; n2 never starts. They change again, and {n1, n2} are heard. n2
    had nothing to stamp m with: if it is taken for one that had not stamped it, m gets a fresh stamp."""

    mutant = "idle-member-counts-as-one-that-had-not-stamped"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    spare = ("n7", "n8")
    settings = Settings()

    def play(self, stage: Stage) -> None:
        stage.publish("c1", "a")  # coordinator n3
        stage.run(0.0025)  # stamps are under way; a decision of n3 goes nowhere
        stage.hold("n3", "n1", "n2", "g1")
        stage.run(0.02)
        stage.hold("n3", "n7", "n8", *ACCEPTORS)
        for name in ("n1", "n2", "n7"):
            stage.hold(name, *ACCEPTORS)
        stage.hold("n1", "n2")
        stage.change("a", ("n1", "n2", "n7"))
        stage.tell("n1", "n2", "n7", *ACCEPTORS, "g1", "g2")
        stage.run(0.0015)  # n7 has asked n2 for what it had
        stage.hold("n7", "n2")
        stage.run(0.5)
        stage.look()
        stage.hold("n7", "n1", "n8")
        stage.release("n1", "n2", *ACCEPTORS)
        stage.release("n2", *ACCEPTORS)
        stage.change("a", ("n1", "n2", "n8"))
        stage.tell("n1", "n2", "n8", *ACCEPTORS, "g1", "g2")
        stage.run(2.0)
        stage.finish()


class NewcomersStartFromOne(Schedule):
    """n3 alone has delivered m, and n7 has copied its log. All are replaced, and n3 is not heard. n7 starts from
    what {n1, n2} had: m is open there, and n7, which has it, does not pass it on. n8 and n9 start from what n7
    passes on. If that does not tell them to get as far in the log as n7 is, they order m2 as if there were no
    m."""

    mutant = "passed-on-without-the-own-position"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    spare = ("n7", "n8", "n9")

    def play(self, stage: Stage) -> None:
        for name in ("n3", "g1"):
            stage.hold(name, "n8", "n9")
        for name in ("n1", "n2"):
            stage.hold(name, "n7", "n8", "n9", *ACCEPTORS)
        stage.publish("c1", "a")  # m, coordinator n3
        stage.run(0.0025)  # stamps are under way; a decision of n3 goes nowhere
        stage.hold("n3", "n1", "n2")
        stage.run(0.05)
        stage.prepare("a", ("n7", "n8", "n9"))
        stage.tell("n3", "n7")
        stage.run(1.5)
        stage.hold("n3", "n7")
        for name in ("n1", "n2"):
            stage.release(name, "n7")
        stage.begin("a")
        stage.tell("n1", "n2", "n7", "n8", "n9", *ACCEPTORS, "g1", "g2")
        stage.run(0.4)
        stage.hold("n7", "n8", "n9")
        stage.hold("g2", "n7")
        stage.publish("c2", "a")  # m2, coordinator n9
        stage.run(0.5)
        stage.finish()


class NewAcceptorsKnowNothing(Schedule):
    """{n4, n5} have chosen 0 for m, from the stamps of n1 and n3, and only n3 knows. All acceptors are replaced.
    If
    those join empty, n1 and n2, whose highest stamp is 101, have that chosen."""

    mutant = "acceptor-joins-empty"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    spare = NEW_ACCEPTORS

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n2", "a", 100)
        stage.hold("n2", "n3")
        stage.hold("n3", "n1", "n2", "n6", "g1")
        stage.publish("c1", "a")  # coordinator n3
        stage.run(0.02)
        stage.hold("n3", "n4", "n5")
        stage.change("a", ("n1", "n2", "n3"), NEW_ACCEPTORS)
        stage.tell("n1", "n2", "n4", "n5", "n6", *NEW_ACCEPTORS, "g1", "g2")
        stage.run(3.0)
        stage.finish()


class OneHadNotStamped(Schedule):
    """m' is stamped 0 by n1 alone. n2, which lacks it, has told n3 a clock above 101, and m was delivered there by
    that. n3 is replaced; {n1, n2} are sealed. Only a fresh stamp puts m' behind m."""

    mutant = "old-stamp-used-though-not-all-had-stamped"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "c": ("n3",)}
    spare = ("n7",)

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n2", "a", 100)
        stage.raise_clock("n3", "a", 100)
        stage.hold("g1", "n2", "n3")
        stage.hold("n1", "n2", "n3")
        stage.publish("c1", "a")  # m'
        stage.run(0.01)
        stage.hold("g2", "n1")
        stage.publish("c2", "a", "c")  # m, coordinator n3
        stage.run(0.05)
        stage.hold("n3", "n1", "n2", "n7")
        stage.release("n1", "n2")
        stage.change("a", ("n1", "n2", "n7"))
        stage.tell("n1", "n2", "n7", "n4", "n5", "n6", "g1", "g2")
        stage.run(2.0)
        stage.finish()


class OneNeverStarted(Schedule):
    """As before, but in a group of five, of which n3 has never started. m' is stamped by n1 alone, and m was
    delivered by the clocks of {n2, n7, n8}. They change again, and {n1, n2, n3} are heard. If n3 is counted as one
    that had stamped m', that makes two, as many as have started: m' keeps its old stamp, and comes before m."""

    mutant = "idle-member-counts-as-one-that-had-stamped"
    groups: ClassVar = {"a": ("n1", "n2", "n3", "n7", "n8"), "c": ("n8",)}
    spare = ("n9",)

    def play(self, stage: Stage) -> None:
        started = ("n1", "n2", "n7", "n8")
        stage.change("a", ("n1", "n2", "n3", "n7", "n8"))
        stage.tell(*started, *ACCEPTORS, "g1", "g2")
        stage.run(0.5)
        stage.look()
        stage.tell(*started, *ACCEPTORS, "g1", "g2")
        stage.run(0.01)
        for name in ("n2", "n7", "n8"):
            stage.raise_clock(name, "a", 100)
        stage.hold("g1", "n2", "n3", "n7", "n8")
        stage.hold("n1", "n2", "n3", "n7", "n8")
        stage.publish("c1", "a")  # m'
        stage.run(0.01)
        stage.hold("g2", "n1")
        stage.publish("c2", "a", "c")  # m, coordinator n8
        stage.run(0.05)
        for name in ("n7", "n8"):
            stage.hold(name, "n1", "n2", "n3", "n9")
        stage.release("n1", "n2", "n3")
        stage.change("a", ("n1", "n2", "n9"))
        stage.tell("n1", "n2", "n3", "n9", *ACCEPTORS, "g1", "g2")
        stage.run(2.0)
        stage.finish()


class DecidedBelowTheFreshStamp(Schedule):
    """n3 knows that m' is decided at 0, by the stamps of n1 and itself; n2 has not stamped it, but m2, at 101, as
    n1 has at 1. {n1, n2} are sealed: m' gets a fresh stamp above 101, and m2 keeps 101. If the entry of m' rises
    with
    the stamp, m2 is delivered, and then m'."""

    mutant = "history-entry-replaced-by-the-new-stamp"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "c": ("n2",)}
    spare = ("n7",)

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n2", "a", 100)
        stage.hold("g1", "n2")
        stage.hold("n1", "n2")
        stage.hold("n3", "n1", "n2", "g1")
        stage.publish("c1", "a")  # m', coordinator n3
        stage.run(0.02)
        stage.hold("n3", "n4", "n5", "n6")
        stage.hold("n2", "n3")
        stage.hold("g2", "n3")
        stage.publish("c2", "a", "c")  # m2, coordinator n2, which lacks the stamp of n1
        stage.run(0.02)
        self.meanwhile(stage)
        stage.change("a", ("n1", "n2", "n7"))
        stage.release("n1", "n2")
        stage.tell("n1", "n2", "n7", "n4", "n5", "n6", "g1", "g2")
        self.afterwards(stage)
        stage.run(3.0)
        stage.finish()

    def meanwhile(self, stage: Stage) -> None:
        pass

    def afterwards(self, stage: Stage) -> None:
        pass


class DecidedBelowTheHighestEntry(DecidedBelowTheFreshStamp):
    """As before, but n2 has stamped m' too, later, at 111: so all have, and m' keeps 111 as its stamp. It is
    decided
    at 0 all the same, and its entry has to stay there."""

    mutant = "highest-history-entry-handed-over"

    def meanwhile(self, stage: Stage) -> None:
        stage.raise_clock("n2", "a", 110)
        stage.release("g1", "n2")
        stage.run(0.01)

    def afterwards(self, stage: Stage) -> None:
        stage.run(0.0021)  # n1 has handed over, and says no more: its own entry is where it was
        stage.hold("n1", "n2", "n7")


class VoteOfAnEarlierConfiguration(Schedule):
    """n3 has the vote of n4 for 0. n4 is replaced, and comes back two configurations later, as a newcomer without
    that
    vote. If n3 still counts it, the vote of n5 makes a majority, while {n4, n6} know of nothing and choose 101."""

    mutant = "proposal-keeps-its-value-and-votes"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    spare = ("n7",)

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n2", "a", 100)
        stage.hold("n2", "n3", "n4", "n5", "n6", "n7")
        stage.hold("n1", "n4", "n5", "n6", "n7")
        stage.hold("n3", "n1", "n2", "n5", "n6", "g1")
        stage.publish("c1", "a")  # coordinator n3: stamps of n1 and n3
        stage.run(0.02)
        everyone = ("n1", "n2", "n3", "n4", "n5", "n6", "n7", "g1", "g2")
        stage.hold("n4", "n5", "n6", "n7")  # its vote is not among those that are handed over
        for acceptors in (("n5", "n6", "n7"), ("n4", "n5", "n6")):
            stage.release("n3", "n1", "n2")
            stage.release("n2", "n3")
            stage.change("a", ("n1", "n2", "n3"), acceptors)
            stage.tell(*everyone)
            stage.run(0.3)
            stage.look()
            stage.tell(*everyone)
            stage.run(0.1)
        stage.hold("n3", "n1", "n2")
        stage.release("n3", "n5")
        stage.run(1.0)
        stage.hold("n3", "n4", "n5", "n6")
        stage.release("n2", "n4", "n6")
        stage.release("n4", "n6")
        stage.run(3.0)
        stage.finish()


class ForgetfulMajority(Schedule):
    """m' is delivered by n1, with the stamps and votes of {n1, n3}; n2 has heard nothing. n3 loses its disk, n1
    cannot be
    reached, and n1 is replaced. If n3 counts as one that never took part, {n2, n3} begin with nothing."""

    mutant = "lost-disk-counts-as-idle"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    spare = ("n7",)

    def play(self, stage: Stage) -> None:
        stage.hold("g1", "n2")
        stage.hold("n1", "n2")
        stage.hold("n3", "n2")
        stage.publish("c1", "a")  # m'
        stage.run(0.05)
        stage.lose_in_flight("n3", "n2")
        stage.lose_in_flight("g1", "n2")
        stage.release("n3", "n2")
        stage.hold("n1", "n3", "n7", "g1", "g2")
        stage.lose_disk("n3")
        stage.restart("n3")
        stage.change("a", ("n2", "n3", "n7"))
        stage.tell("n2", "n3", "n7", "g1", "g2")
        stage.run(0.5)
        stage.publish("c2", "a")
        stage.run(2.0)
        stage.finish()


class LostVoteIsMissed(Schedule):
    """n5 and n6 have voted for 9, and n3 alone knows, and delivers. n5 loses its disk. If the new acceptors count
    its word, and that of n4, as a majority, they start without the vote, and n1 and n2 have 0 decided."""

    mutant = "lost-acceptor-counts"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    spare = ("n7",)

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n3", "a", 8)
        stage.hold("n3", "n4")
        stage.publish("c1", "a")  # coordinator n3
        stage.run(0.0035)
        stage.hold("n3", "n1", "n2", "g1", "g2")
        for process in ("n1", "n2"):
            stage.hold(process, *ACCEPTORS)
        stage.cluster.advance("a", "n1", 20)  # and it tells n3 its clock
        stage.run(0.01)
        stage.lose_disk("n5")
        stage.restart("n5")
        for process in ("n4", "n5", "n7"):
            stage.hold("n6", process)
        stage.change("a", ("n1", "n2", "n3"), ("n4", "n5", "n7"))
        stage.tell(*stage.world.processes)
        for process in ("n1", "n2"):
            stage.release(process, *ACCEPTORS)
        stage.run(5.0)
        stage.finish()


class LongestLogDies(Schedule):
    """n3 alone has delivered m, and is replaced. It hands over to everybody, before n1 and n2 have heard from each
    other, and dies for good before it sends its log. Whoever waits for that waits for ever, though {n1, n2} are a
    sealed majority, and both have m."""

    mutant = "waits-for-the-longest-log-of-all"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    spare = ("n7",)

    def play(self, stage: Stage) -> None:
        stage.publish("c1", "a")  # m, coordinator n3
        stage.run(0.0045)
        stage.hold("n3", "n1", "n2")
        stage.run(0.05)
        for process in ("n1", "n2", "n7"):
            stage.hold(process, *(other for other in ("n1", "n2", "n7") if other != process))
        stage.change("a", ("n1", "n2", "n7"))
        stage.tell(*stage.world.processes)
        stage.release("n3", "n1", "n2")  # they are sealed: the decision of m comes too late for them to deliver it
        stage.run(0.0025)  # its hand-over has come, and they ask it for its log
        stage.crash("n3")
        stage.finish("n3")


CONFIGURATION_SCHEDULES: dict[str, type[Schedule]] = {
    schedule.mutant: schedule
    for schedule in (
        NewcomersBeginAtZero,
        ClocksOfAnEarlierConfiguration,
        OneSealedIsNotEnough,
        ImpliedAndUntold,
        OldMembersGoOn,
        ImpliedBeforeTwoChanges,
        NewcomersStartFromOne,
        NewAcceptorsKnowNothing,
        OneHadNotStamped,
        OneNeverStarted,
        DecidedBelowTheFreshStamp,
        DecidedBelowTheHighestEntry,
        VoteOfAnEarlierConfiguration,
        ForgetfulMajority,
        LostVoteIsMissed,
        LongestLogDies,
    )
}
