"""Stories about messages to several groups, for mutants that random runs catch rarely."""

from typing import ClassVar

from ordercast.sim.isis.stage import Schedule, Stage


class AnsweredPartByPart(Schedule):
    """m is for a and b. n2, in both, delivers it in a, while its part for b has not come to n4, who is to cast it.
    If n2 answers in b now, the answer is before m there."""

    mutant = "speaks-on-before-all-parts-are-confirmed"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "b": ("n2", "n4", "n5")}

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n4")
        stage.publish("c1", "a", "b", through="n1")  # m
        stage.run(0.02)
        stage.publish("c2", "b", through="n2")
        stage.run(0.02)
        stage.finish()


class ConfirmedBeforeItIsDelivered(Schedule):
    """m is for a and b, and n2, in both, hears that all parts are cast before it can deliver any: in a it lacks
    what precedes m, and in b it has nothing from n4. Then it delivers m in a and answers in b."""

    mutant = "confirmed-part-forgotten-before-it-is-delivered"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "b": ("n2", "n4", "n5")}

    def play(self, stage: Stage) -> None:
        stage.hold("n3", "n2")
        stage.hold("n4", "n2")
        stage.publish("c1", "a", through="n3")
        stage.run(0.01)
        stage.publish("c2", "a", "b", through="n1")  # m
        stage.run(0.02)
        stage.release("n3", "n2")
        stage.run(0.005)
        stage.publish("c3", "b", through="n2")
        stage.run(0.02)
        stage.finish()


class LostWithWhoWasLeftOut(Schedule):
    """m is for a and b, and n1 casts it in both. Its part in b reaches nobody, n1 is left out, and its publisher
    is gone. n1 comes back in a later view: that does not mean that its cast was in the view before."""

    mutant = "part-that-was-dropped-taken-as-cast"
    groups: ClassVar = {"a": ("n1", "n4", "n5"), "b": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        nodes = ("n1", "n2", "n3", "n4", "n5")
        stage.hold("n1", "n2", "n3")
        stage.publish("c1", "a", "b", through="n1")  # m
        stage.run(0.02)
        stage.crash("c1")
        stage.lose_in_flight("n1", "n2")
        stage.lose_in_flight("n1", "n3")
        stage.believe_in(*nodes[1:])
        stage.tell(*nodes)
        stage.run(0.02)
        stage.look()
        stage.run(0.02)
        stage.tell(*nodes)
        stage.run(0.02)
        stage.release("n1", "n2", "n3")
        stage.finish("c1")


class OriginIsGone(Schedule):
    """m is for a and b, and n1 casts it in a. Before it has handed the other part to anybody in b, n1 is gone for
    good, with its publisher: n2 and n3 hold m and have to hand it on."""

    mutant = "only-the-origin-hands-on"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "b": ("n4", "n5", "n6")}

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n4", "n5", "n6")
        stage.publish("c1", "a", "b", through="n1")  # m
        stage.run(0.02)
        stage.crash("n1", "c1")
        stage.finish("n1", "c1")


class NobodyHandsOn(OriginIsGone):
    mutant = "part-never-handed-on"


#: m is for a and b: n6 or n7 casts it in a, and n4 is to cast it in b. n1 is in b alone and holds its token: if it
#: speaks there before it has m, its cast is before m in the log.
APART: dict[str, tuple[str, ...]] = {"a": ("n6", "n7", "n8"), "b": ("n1", "n4", "n5")}


class ReadAndAnswered(Schedule):
    """A client reads m in a, and answers in b through n1. Subclasses say what keeps m from n1 until then."""

    groups: ClassVar = APART
    #: To whom the first of them says nothing.
    silent: ClassVar[tuple[str, ...]]
    through = "n6"
    read_at = "n8"

    def play(self, stage: Stage) -> None:
        stage.hold(*self.silent)
        stage.publish("c1", "a", "b", through=self.through)  # m
        stage.run(0.02)
        self.between(stage)
        stage.sees("c2", "a", at=self.read_at)
        stage.publish("c2", "b", through="n1")
        stage.run(0.02)
        self.end(stage)

    def between(self, stage: Stage) -> None:
        """Before the client reads."""

    def end(self, stage: Stage) -> None:
        stage.finish()


class ReadBeforeTheOtherPartIsCast(ReadAndAnswered):
    """m's part for b has not come to n4."""

    mutant = "reads-say-nothing-of-open-messages"
    silent = ("n6", "n4")


class NotAsked(ReadBeforeTheOtherPartIsCast):
    mutant = "open-group-not-asked-about"


class ReadWhereTheLogIsCopied(ReadAndAnswered):
    """The same, but the client reads at n9, which copies the log of a and will be a member."""

    mutant = "a-copied-log-says-nothing-is-open"
    spare = ("n9",)
    silent = ("n6", "n4")
    read_at = "n9"

    def between(self, stage: Stage) -> None:
        stage.place("a", *APART["a"], "n9")
        stage.tell(*APART["a"], "n9")
        stage.run(0.1)


class ReadWhenAllPartsAreCast(ReadAndAnswered):
    """m is cast in b, but n1 does not have it there when it speaks for the client."""

    mutant = "reads-say-nothing-of-confirmed-messages"
    silent = ("n4", "n1")


class CastWhileItIsAsked(ReadAndAnswered):
    """m is cast in b after it was read in a, and n1, who asks, hears of that but does not have it."""

    mutant = "answer-without-the-casts"
    silent = ("n4", "n1", "n6")

    def end(self, stage: Stage) -> None:
        stage.release("n4", "n6")
        stage.run(0.02)
        stage.finish()


class AskedOfOneWhoLacksIt(ReadAndAnswered):
    """n1 asks n6, which has not got m at all, and so holds nothing that is open."""

    mutant = "answered-before-it-is-delivered"
    silent = ("n7", "n4", "n6")
    through = "n7"


class ReadTwice(Schedule):
    """m is for b and d, and n3 casts it in d; what d's members say to those of b does not come. n is for a and d,
    n3 casts it in d behind m, and all its parts are cast. A client reads n in d, where m is open. Then it reads
    something else, from somebody who knows where n is and not where m is, and answers in b through n1."""

    mutant = "times-alone-settle-what-is-open"
    groups: ClassVar = {"a": ("n6", "n7", "n8"), "b": ("n1", "n4", "n5"), "d": ("n2", "n3", "n9")}
    #: Where it reads then.
    reads_then = ("a", "n6")

    def play(self, stage: Stage) -> None:
        self.before(stage)
        for name in self.groups["d"]:
            stage.hold(name, *self.groups["b"])
        stage.publish("c1", "b", "d", through="n3")  # m
        stage.run(0.02)
        stage.publish("c2", "a", "d", through="n6")  # n
        stage.run(0.02)
        stage.sees("c3", "d", at="n3")
        group, process = self.reads_then
        stage.sees("c3", group, at=process)
        stage.publish("c3", "b", through="n1")
        stage.run(0.02)
        stage.finish()

    def before(self, stage: Stage) -> None:
        """Before m and n."""


class ReadFromOneWhoLacksIt(ReadTwice):
    """It reads in d once more, at n9, which is in a too: so n9 knows where n is, and has nothing from n3."""

    mutant = "confirmed-ahead-of-what-is-delivered"
    groups: ClassVar = {"a": ("n6", "n7", "n9"), "b": ("n1", "n4", "n5"), "d": ("n2", "n3", "n9")}
    reads_then = ("d", "n9")

    def before(self, stage: Stage) -> None:
        stage.publish("c4", "d", through="n2")
        stage.run(0.02)
        stage.hold("n3", "n9")


def join(stage: Stage, group: str, newcomer: str) -> None:
    """It copies the log, and is a member from the next view on, which everybody has heard of."""
    members = stage.membership.placement[group]
    nodes = stage.cluster.scenario.nodes
    stage.place(group, *members, newcomer)
    stage.tell(*members, newcomer)
    stage.run(0.02)
    stage.believe_in(*nodes)
    stage.tell(*members, newcomer)
    stage.run(0.04)
    stage.look()
    stage.run(0.02)
    stage.tell(*nodes, *stage.cluster.scenario.clients)
    stage.run(0.04)


class NewcomerAnswers(Schedule):
    """m's part for b has come to nobody. n6, in b, joins a, hears there what comes after m, and speaks in b."""

    mutant = "newcomer-hears-of-no-open-messages"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "b": ("n4", "n5", "n6")}

    def play(self, stage: Stage) -> None:
        for name in ("n1", "n2", "n3"):
            stage.hold(name, "n4", "n5")
        stage.publish("c1", "a", "b", through="n1")  # m
        stage.run(0.02)
        join(stage, "a", "n6")
        stage.publish("c2", "a", through="n1")  # It follows the part in a, and n1 need not wait for the other.
        stage.run(0.02)
        stage.publish("c3", "b", through="n6")
        stage.run(0.02)
        stage.finish()


class NewcomerIsRead(ReadAndAnswered):
    """All parts of m are cast, but n1 lacks the one in b. The client reads at n9, which has just joined."""

    mutant = "newcomer-hears-of-no-confirmed-messages"
    spare = ("n9",)
    silent = ("n4", "n1")
    read_at = "n9"

    def between(self, stage: Stage) -> None:
        join(stage, "a", "n9")


class AllOfOneGroupRestart(ReadAndAnswered):
    """All parts of m are cast, but n1 does not have it in b. All of a go down, and come back from their disks."""

    mutant = "confirmed-messages-forgotten-at-a-restart"
    silent = ("n4", "n1")

    def between(self, stage: Stage) -> None:
        nodes = stage.cluster.scenario.nodes
        stage.crash("c1", *APART["a"])
        stage.restart(*APART["a"])
        stage.run(0.01)
        stage.believe_in(*nodes)
        stage.tell(*nodes)
        stage.run(0.04)
        stage.look()
        stage.run(0.02)
        stage.tell(*nodes, "c2")
        stage.run(0.04)

    def end(self, stage: Stage) -> None:
        stage.finish("c1")


PART_SCHEDULES: dict[str, type[Schedule]] = {
    schedule.mutant: schedule
    for schedule in (
        AnsweredPartByPart,
        ConfirmedBeforeItIsDelivered,
        LostWithWhoWasLeftOut,
        OriginIsGone,
        NobodyHandsOn,
        ReadBeforeTheOtherPartIsCast,
        NotAsked,
        ReadWhereTheLogIsCopied,
        ReadWhenAllPartsAreCast,
        CastWhileItIsAsked,
        AskedOfOneWhoLacksIt,
        ReadTwice,
        ReadFromOneWhoLacksIt,
        NewcomerAnswers,
        NewcomerIsRead,
        AllOfOneGroupRestart,
    )
}
