"""Scripted schedules: counter-examples as stories, each wrong under one mutant and harmless to the real code.

Most are here because random runs catch their mutant in less than one of 200; those for E1, E2 and E4 because they
are the arguments behind the corrections. A gateway chooses the coordinator with the most of the groups, then the
highest name: that is how a story picks one.
"""

from typing import ClassVar

from ordercast.protocols.scalatom.settings import Settings
from ordercast.sim.scalatom.stage import ACCEPTORS, Schedule, Stage


class OffByOne(Schedule):
    """[E1] n1 has m' at 0 and m at 1. m is decided at 1; a history that lists m' one too high lets n1 deliver m,
    and then {n1, n3} decide m' at 0."""

    mutant = "off-by-one"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "c": ("n2",)}

    def play(self, stage: Stage) -> None:
        stage.hold("g1", "n2")
        stage.hold("n3", "n1", "n2")
        stage.hold("g2", "n3")
        stage.publish("c1", "a")  # m': stamped 0 by n1 and n3, coordinator n3
        stage.run(0.01)
        stage.publish("c2", "a", "c")  # m: stamped 1 by n1 and 0 by n2, coordinator n2
        stage.run(0.05)
        stage.finish()


class Ties(Schedule):
    """[E2] m and m' are both decided at 2, and m' has the lower id. n1 knows m' only by its own stamp, 2; if a
    predecessor must be strictly below, n1 delivers m first."""

    mutant = "ties-not-in-pps"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "c": ("n2",)}

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n1", "a", 1)
        stage.raise_clock("n2", "a", 1)
        stage.hold("g1", "n2")
        stage.hold("n3", "n1")
        stage.hold("n1", "n3")
        stage.hold("g2", "n1")
        stage.publish("c1", "a")  # m': by n1 at 2, by n3 at 0; its coordinator n3 knows only its own stamp
        stage.run(0.01)
        stage.publish("c2", "a", "c")  # m: by n2 at 2, by n3 at 1; coordinator n2
        stage.run(0.02)
        stage.release("g2", "n1")
        stage.run(0.05)
        stage.finish()


class ClockWithoutEntry(Schedule):
    """[E4] n1 has m' at 0 and n2 lacks it. n1 gossips a high clock without the entry, n2 counts {n1, n2} as
    complete for m and delivers it; then {n1, n3} decide m' at 0."""

    mutant = "entry-withheld-but-clock-sent"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "c": ("n2",)}

    def play(self, stage: Stage) -> None:
        stage.hold("g1", "n2", "n3")
        stage.hold("g2", "n3")
        stage.hold("n2", "n3")
        stage.publish("c1", "a")  # m'
        stage.run(0.01)
        stage.publish("c2", "a", "c")  # m
        stage.run(0.05)
        stage.release("g1", "n3")
        stage.run(0.05)
        stage.finish()


class StatementLost(Schedule):
    """n1 has m' at 0 and m at 1, and tells n2 so in a statement that is lost with its connection. The next one
    begins above both. n2, whose own stamps are 0 for m and 101 for m', delivers m, decided at 1, if it takes n1's
    history for complete without them; and n3 has m' decided at 0."""

    mutant = "gossip-applied-without-its-base"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "c": ("n2",)}

    def play(self, stage: Stage) -> None:
        stage.hold("g1", "n2")
        stage.hold("n3", "n1", "n2")
        stage.hold("g2", "n3")
        stage.hold("n1", "n2")
        stage.publish("c1", "a")  # m': stamped 0 by n1 and n3, coordinator n3
        stage.run(0.01)
        stage.publish("c2", "a", "c")  # m: stamped 1 by n1 and 0 by n2, coordinator n2
        stage.run(0.01)
        stage.raise_clock("n2", "a", 100)
        stage.release("g1", "n2")  # now n1 hears that n2 has m', and may tell of its place
        stage.run(0.1)
        stage.lose_in_flight("n1", "n2")
        stage.release("n1", "n2")
        stage.run(0.05)
        stage.finish()


class OnlyHolderDies(Schedule):
    """[E4] n1 is the only one to get m', gossips its entry, and is gone for good together with the gateway.
    Whoever counts the entry waits for a decision that nobody can make."""

    mutant = "non-uniform-gossip"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    #: So that the entry is gossiped with the stamp.
    settings = Settings(stamps_wait_s=0.0, gossip_early=False)

    def play(self, stage: Stage) -> None:
        stage.hold("g1", "n2", "n3")
        stage.publish("c1", "a")
        stage.run(0.01)
        stage.crash("n1")
        stage.crash("g1")
        stage.impatient("c1", 0.5)
        stage.publish("c2", "a")
        stage.finish("n1", "g1")


class StampLostInACrash(Schedule):
    """[E5] n1's stamp of m makes n3's quorum, but n1 loses m and stamp in a crash. m is decided at 0 where only n3
    knows it; {n1, n2} order m2 without it."""

    mutant = "rec-ts-before-it-is-durable"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "c": ("n2",)}

    def play(self, stage: Stage) -> None:
        stage.hold("g1", "n2")
        stage.hold("n3", "n1", "n2")
        stage.hold("g2", "n3")
        stage.slow_disk("n1", 30.0)
        stage.publish("c1", "a")  # coordinator n3
        stage.run(0.005)
        stage.hold("g1", "n1")
        stage.crash("n1")
        stage.run(0.01)
        stage.restart("n1")
        stage.run(0.01)
        stage.publish("c2", "a", "c")  # coordinator n2
        stage.run(0.2)
        stage.finish()


class ClockGoesBack(Schedule):
    """[E7] n1 told n2 that it will stamp nothing below 103, and n2 delivered m at 101 on the strength of that. n1
    restarts; if its clock starts from what it holds, it stamps m' at 0, and {n1, n3} decide that."""

    mutant = "clock-reservation-ignored"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "c": ("n2",)}

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n1", "a", 100)
        stage.hold("g2", "n3")
        stage.hold("n1", "n3")
        stage.hold("n2", "n3")
        stage.publish("c2", "a", "c")  # m, coordinator n2
        stage.run(0.05)
        stage.crash("n1")
        stage.hold("g1", "n2")
        stage.restart("n1")
        stage.release("n1", "n3")
        stage.run(0.01)
        stage.publish("c1", "a")  # m', coordinator n3
        stage.run(0.05)
        stage.finish()


class DecidedButNotKnown(Schedule):
    """[E6] m1 is decided high by n3, whose clock is far ahead; the producer's next envelope meets replicas that
    have not heard of that yet. Only the session clock lifts their stamps above it."""

    mutant = "session-clock-ignored"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "c": ("n1",)}

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n3", "a", 100)
        stage.hold("n3", "n1", "n2")
        stage.publish("c1", "a")  # coordinator n3
        stage.run(0.01)
        stage.publish("c1", "a", "c")  # coordinator n1
        stage.run(0.05)
        stage.finish()


class VotesLost(Schedule):
    """[Paxos] {n4, n5} vote for 101 in round 0 and n3 learns it; n5 forgets its vote in a crash, so n1, which asks
    {n5, n6}, finds nothing and has 0 decided."""

    mutant = "acceptor-forgets-at-a-crash"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n3", "a", 100)
        stage.hold("n3", "n1", "n2", "g1", "n6")
        stage.hold("n1", "n4")
        stage.hold("n2", "n4", "n5", "n6")
        stage.publish("c1", "a")
        stage.run(0.02)
        stage.crash("n5")
        stage.restart("n5")
        stage.run(2.0)
        stage.finish()


class TwoRoundsWithVotes(Schedule):
    """[Paxos] n6 alone has voted for 101, in round 0. n1 takes over: {n4, n5} know of no vote, so it has 0 decided
    in a higher round. n2 takes over too and finds both votes, of n5 and n6. Only the later one can be decided."""

    mutant = "lowest-vote-taken-over"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n3", "a", 100)
        stage.hold("n3", "n1", "n2", "g1", "n4", "n5")
        stage.hold("n1", "n6")
        stage.hold("n2", *ACCEPTORS)
        stage.publish("c1", "a")
        stage.run(0.02)
        stage.hold("n1", "n2", "n3", "g1")
        stage.run(1.0)
        stage.hold("n2", "n1")
        stage.release("n2", "n5", "n6")
        stage.run(2.0)
        stage.release("n3", "n2")  # with the clock of n3, n2 can deliver
        stage.run(1.0)
        stage.finish()


class RoundZeroTwice(Schedule):
    """n3 has 101 chosen by {n4, n5} in round 0, tells n1, and restarts without memory. If round 0 is still its
    own, it has 0, from other stamps, chosen by {n5, n6}."""

    mutant = "round-0-again-after-a-restart"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    #: Early gossip would let n3 deliver with its decision, and remember.
    settings = Settings(stamps_wait_s=0.0, gossip_early=False)

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n1", "a", 100)
        stage.hold("n2", "n3")
        stage.hold("n3", "n2", "n6")
        stage.publish("c1", "a")
        stage.run(0.0062)  # n1 has just heard the decision; n3 has not delivered yet
        stage.crash("n3")
        stage.hold("n1", "n3", "n2")
        stage.hold("n3", "n4")
        stage.release("n3", "n2", "n6")
        stage.release("n2", "n3")
        stage.restart("n3")
        stage.run(0.1)
        stage.finish()


class Reopened(Schedule):
    """[E8] n1 was cut off while everyone else ordered m1 at 101, finished it and closed its instance. If that can
    be reopened, n1 has m1 decided again, at 0."""

    mutant = "closed-instance-reopened"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n3", "a", 100)
        stage.hold("n3", "n1")
        stage.hold("n1", "n4", "n5", "n6")
        stage.publish("c1", "a")
        stage.run(0.003)
        stage.hold("n2", "n1")
        stage.hold("g1", "n1")
        stage.run(0.05)
        stage.publish("c1", "a")  # carries done
        stage.run(0.2)
        stage.release("n1", "n4", "n5", "n6")
        stage.run(3.0)
        stage.finish()


class NotAllStamps(Schedule):
    """n3 has the stamps of {n2, n3}, both 0, and not n1's, which is 101. If it takes them for all there are, it
    delivers m at 0, and {n1, n2} have it decided at 101."""

    mutant = "number-implied-by-a-quorum-of-stamps"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    settings = Settings()

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n1", "a", 100)
        stage.hold("n1", "n3")
        stage.publish("c1", "a")
        stage.run(0.0025)  # stamps are under way; a decision of n3 goes nowhere
        stage.hold("n3", "n1", "n2")
        stage.run(3.0)
        stage.finish()


class LowerQuorum(Schedule):
    """All stamps are known to n3: 101 of n1, 0 of n2 and n3. If it takes the highest for the only number there can
    be, it delivers m at 101, and n2, which has the stamps of {n2, n3}, has it decided at 0."""

    mutant = "lower-quorum-of-stamps-ignored"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    settings = Settings()

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n1", "a", 100)
        stage.hold("n1", "n2", *ACCEPTORS)
        stage.hold("n3", *ACCEPTORS)
        stage.publish("c1", "a")
        stage.run(0.0025)
        stage.hold("n3", "n1", "n2")
        stage.run(3.0)
        stage.finish()


class OwnStampLost(Schedule):
    """[E5] n3 has everyone's stamps, its own the highest, and delivers m in s at 101. Its own was not durable: n3
    crashes, stamps m higher, and delivers it in another place."""

    mutant = "number-implied-by-a-stamp-that-is-not-durable"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "s": ("n3",)}
    settings = Settings()

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n3", "s", 100)
        stage.run(0.01)
        stage.hold("n3", "n1", "n2")
        stage.slow_disk("n3", 30.0)
        stage.publish("c1", "a", "s")
        stage.run(0.01)
        stage.crash("n3")
        stage.restart("n3")
        stage.run(0.1)
        stage.finish()


class GatewayCameBack(Schedule):
    """[E4] m is in the memory of n1, its gateway, and on the disk of n2. n1 restarts without it. If n2 still takes
    n1 for a holder, it gossips its entry and is gone for good; n1 waits for a decision that nobody can make."""

    mutant = "entry-told-to-another-life-of-its-gateway"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    gateways = ("n1", "g2")
    settings = Settings()

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n3")
        stage.slow_disk("n1", 30.0)
        stage.publish("c1", "a")
        stage.run(0.01)
        stage.crash("n1")
        stage.release("n1", "n3")
        stage.restart("n1")
        stage.run(0.05)
        stage.crash("n2")
        stage.publish("c2", "a")
        stage.finish("n2")


class DoneBeforeDelivery(Schedule):
    """[E8] m2 says that m1 is finished. n1, which missed m1, receives m2; if it takes m1 for delivered, it says so
    to n2, which then gossips its entry; n1 ignores that and delivers m2 in the place of m1."""

    mutant = "done-acted-on-at-receipt"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.hold("g1", "n1")
        stage.hold("n2", "n1")
        stage.hold("n3", "n1")
        stage.publish("c1", "a")
        stage.run_to(0.505)  # by now n2 has asked n1 about m1; the question is on its way
        stage.raise_clock("n2", "a", 50)
        stage.lose_in_flight("g1", "n1")
        stage.release("g1", "n1")
        stage.release("n3", "n1")
        stage.hold("g1", "n2")
        stage.hold("n3", "n2")
        stage.run(0.005)
        stage.publish("c1", "a")  # carries done; {n1, n3} decide it, and n2 knows nothing of it
        stage.run(0.02)
        stage.release("n2", "n1")
        stage.run(0.02)
        stage.finish()


class ForgottenByTheOthers(DoneBeforeDelivery):
    """[E8] The others have delivered m1 and forgotten it, so their histories do not list it any more. n1 may count
    them as complete only when it has delivered what they have forgotten; otherwise it delivers m2 first."""

    mutant = "forgotten-key-ignored"


class ReceiptIsNotFinished(Schedule):
    """[E8] n3 delivers m1 and says so before its disk does; a receipt is out. If that counts as finished, the next
    envelope closes m1's instance, n3 crashes, and nobody can ever decide m1 again."""

    mutant = "receipt-taken-as-finished"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "d": ("n7",)}

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n4", "n5", "n6")
        stage.hold("n2", "n4", "n5", "n6")
        stage.publish("c1", "a")
        stage.run(0.0035)  # stamps are exchanged; decisions are not
        stage.hold("n3", "n1", "n2")
        stage.slow_disk("n3", 60.0)
        stage.run(2.0)  # gossip lets n3 deliver
        stage.publish("c1", "d")
        stage.run(0.05)
        stage.crash("n3")
        stage.restart("n3")
        stage.run(0.05)
        stage.finish()


class OneGroupHasIt(Schedule):
    """[E8] m is durable in b. In a it was delivered, so that a receipt is out, and n1 has lost that in a crash.
    The gateway of m is over. If it is enough for a burial that b has m, acceptors forget what they voted for. b is
    lost for good, and nobody can tell n1 the number of m."""

    mutant = "buried-when-one-of-its-groups-has-it"
    groups: ClassVar = {"a": ("n1",), "b": ("n7", "n8", "n9")}

    def play(self, stage: Stage) -> None:
        stage.raise_clock("n9", "b", 100)  # so that the stamps leave the number open, and acceptors vote
        stage.publish("c2", "a", "b")  # m, coordinator n9
        stage.run(0.004)  # n1 has stamped it, and knows no number yet
        stage.slow_disk("n1", 30.0)
        stage.run(0.02)
        stage.crash("n1")
        stage.crash("g2")
        stage.restart("g2")
        stage.run(3.0)
        for name in ("n7", "n8", "n9"):
            stage.crash(name)
        stage.finish("n7", "n8", "n9")


class NeededGroupRemoved(Schedule):
    """A group goes when nobody needs it: {n1, n2, n3} hold m, which n7 has not got. Without d they order it alone,
    and m is delivered in one of its two groups."""

    mutant = "group-removed-while-an-envelope-names-it"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "d": ("n7",)}

    def play(self, stage: Stage) -> None:
        for node in ("g1", "n1", "n2", "n3"):
            stage.hold(node, "n7")
        stage.publish("c1", "a", "d")
        stage.run(0.05)
        stage.crash("g1")
        stage.restart("g1")
        stage.close("d")
        stage.tell(*stage.world.processes)
        stage.remove()
        stage.tell(*stage.world.processes)
        stage.run(2.0)
        stage.finish()


class LogNamesAGoneGroup(Schedule):
    """n1 was cut off while m, for a and d, was delivered and d was removed. It has to take m from a's log, though
    its view has no d: otherwise it never gets further."""

    mutant = "log-entries-judged-by-all-their-groups"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "d": ("n7",)}

    def play(self, stage: Stage) -> None:
        for name in ("g1", "n2", "n3", "n7"):
            stage.hold(name, "n1")
        stage.publish("c1", "a", "d")
        stage.run(1.0)
        stage.close("d")
        stage.tell(*stage.world.processes)
        stage.remove()
        stage.tell(*stage.world.processes)
        stage.publish("c1", "a")
        stage.run(0.5)
        stage.finish()


class AwayWhenTheGroupWent(Schedule):
    """n7 restarts with a view that has no d, and has records of it."""

    mutant = "records-of-a-gone-group-kept"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "d": ("n1", "n7")}

    def play(self, stage: Stage) -> None:
        stage.publish("c1", "d")
        stage.publish("c2", "a", "d")
        stage.run(1.0)
        stage.close("d")
        stage.tell(*stage.world.processes)
        stage.remove()
        stage.crash("n7")
        stage.restart("n7")
        stage.finish()


SCHEDULES: dict[str, type[Schedule]] = {
    schedule.mutant: schedule
    for schedule in (
        OffByOne,
        Ties,
        ClockWithoutEntry,
        StatementLost,
        OnlyHolderDies,
        StampLostInACrash,
        ClockGoesBack,
        DecidedButNotKnown,
        VotesLost,
        TwoRoundsWithVotes,
        RoundZeroTwice,
        Reopened,
        NotAllStamps,
        LowerQuorum,
        OwnStampLost,
        GatewayCameBack,
        DoneBeforeDelivery,
        ForgottenByTheOthers,
        ReceiptIsNotFinished,
        OneGroupHasIt,
        NeededGroupRemoved,
        LogNamesAGoneGroup,
        AwayWhenTheGroupWent,
    )
}
