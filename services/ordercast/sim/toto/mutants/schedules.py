"""Stories for mutants of processes and views that random runs catch rarely."""

from typing import Any, ClassVar

from ordercast.protocols.toto.settings import Settings
from ordercast.sim.toto.stage import Schedule, Stage

FIVE = ("n1", "n2", "n3", "n4", "n5")


class OneHasTheBody(Schedule):
    """m is for a, and only n3 has its body: n1 and n2, who follow it, need none. n3 shows m, and is gone for good.
    Nobody has the body then, and something else comes in its place."""

    mutant = "shown-without-a-majority-of-the-group"
    nodes = FIVE
    groups: ClassVar = {"a": ("n3", "n4", "n5")}

    def play(self, stage: Stage) -> None:
        stage.hold("n3", "n4", "n5")
        stage.publish("c3", "a")
        stage.run(0.1)
        stage.publish("c4", "a")
        stage.finish("n3")


class LostVotes(Schedule):
    """n5 casts m, for which n4 and n3 vote; n4's vote reaches n5 alone. n1 casts another message, for which n2
    votes. n5 and n4 are gone for good, and with them n4's vote: among the others it is two against two."""

    mutant = "fed-by-less-than-a-majority"
    nodes = FIVE
    groups: ClassVar = {"a": FIVE}

    def play(self, stage: Stage) -> None:
        stage.part("n1", "n2")
        stage.hold("n4", "n3")
        stage.publish("c5", "a")
        stage.publish("c1", "a")
        stage.run(0.1)
        stage.finish("n4", "n5")


class FedWithLostVotes(LostVotes):
    """The same, of who does not even wait for a second one."""

    mutant = "order-fed-with-what-nobody-follows"


class Orphans(LostVotes):
    """The same: n3 has what n5 said behind n4's vote, and nobody has that vote any more."""

    mutant = "orphans-contributed"


class Queued(Schedule):
    """m0 is known to everybody, and n3's word of that comes late to n1. By then n1 has given m, for a, a place,
    and waits for n3 or n4 to have it. It drops m0, and restarts.
    """

    mutant = "queue-forgotten-over-a-restart"
    nodes = FIVE
    groups: ClassVar = {"a": ("n1", "n3", "n4"), "b": ("n1", "n2", "n5")}
    settings = Settings(settle_batch=1)

    def play(self, stage: Stage) -> None:
        stage.hold("n3", "n1")
        stage.hold("n4", "n1")
        stage.publish("c1", "b")
        stage.run(0.1)
        stage.hold("n1", "n3", "n4")
        stage.publish("c1", "a")
        stage.run(0.1)
        stage.release("n3", "n1")
        stage.release("n4", "n1")
        stage.run(0.05)
        stage.crash("n1")
        stage.restart("n1")
        stage.run(0.05)
        stage.finish()


class NobodyHasTheBody(Schedule):
    """n1 has no group. Its headers have come to n2, its bodies to nobody, and it is gone for good."""

    mutant = "nothing-is-void"
    nodes = FIVE
    groups: ClassVar = {"a": ("n3", "n4", "n5")}

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n3", "n4", "n5")
        stage.publish("c1", "a")
        stage.publish("c4", "a")
        stage.run(0.1)
        stage.finish("n1")


class SomebodyHasTheBody(Schedule):
    """The same, but n3 has the body."""

    mutant = "void-though-somebody-has-it"
    nodes = FIVE
    groups: ClassVar = {"a": ("n3", "n4", "n5")}

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n4", "n5")
        stage.publish("c1", "a")
        stage.publish("c4", "a")
        stage.run(0.1)
        stage.finish("n1")


class TwoGoOn(Schedule):
    """n1 and n2 vote for a message of n1, the others for m of n3. n2 has heard of m, and so n3 shows m, and
    then the other one. n1 and n2 go on alone, without the votes of the others.
    """

    mutant = "view-without-a-majority"
    nodes = FIVE
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.part("n1", "n2")
        stage.publish("c1", "a")
        stage.publish("c3", "a")
        stage.run(0.05)
        stage.release("n3", "n2")
        stage.release("n1", "n3")
        stage.release("n2", "n3")
        stage.run(0.05)
        stage.part("n1", "n2")
        stage.believe_in("n1", "n2")
        stage.tell("n1", "n2")
        stage.run(0.05)
        stage.look()
        stage.run(0.05)
        stage.tell("n1", "n2")
        stage.run(0.05)
        stage.finish()


class Overtaken(Schedule):
    """Everybody has the cut for the second view, and membership is about to hear so. n4 dies, and a third view is
    defined, which nobody has flushed for."""

    mutant = "completed-late"
    nodes = FIVE
    groups: ClassVar = {"a": FIVE}

    def play(self, stage: Stage) -> None:
        stage.publish("c1", "a")
        stage.run(0.05)
        stage.crash("n5")
        stage.believe_in("n1", "n2", "n3", "n4")
        stage.tell("n1", "n2", "n3", "n4")
        stage.run(0.05)
        stage.look()
        stage.crash("n4")
        stage.believe_in("n1", "n2", "n3")
        stage.run(0.05)
        stage.finish("n4", "n5")


class OneKnows(Schedule):
    """What n1 contributes reaches nobody. It has the cut, alone, and is gone for good."""

    mutant = "complete-with-one"
    nodes = FIVE
    groups: ClassVar = {"a": FIVE}

    def play(self, stage: Stage) -> None:
        stage.crash("n5")
        stage.publish("c1", "a")
        stage.run(0.05)
        stage.hold("n1", "n2", "n3", "n4")
        stage.believe_in("n1", "n2", "n3", "n4")
        stage.tell("n1", "n2", "n3", "n4")
        stage.run(0.05)
        stage.look()
        stage.run(0.05)
        stage.tell("n1", "n2", "n3", "n4")
        stage.run(0.05)
        stage.finish("n1", "n5")


class AwayForLong(Schedule):
    """n3 is down while the others go on, and drop what they may of their logs."""

    mutant = "log-dropped-that-somebody-lacks"
    nodes = ("n1", "n2", "n3")
    groups: ClassVar = {"a": ("n1", "n2", "n3")}

    def play(self, stage: Stage) -> None:
        stage.crash("n3")
        stage.believe_in("n1", "n2")
        stage.tell("n1", "n2")
        stage.run(0.05)
        stage.look()
        stage.run(0.05)
        stage.tell("n1", "n2", "c1", "c2")
        for _ in range(3):
            stage.publish("c1", "a")
            stage.run(0.15)
        stage.run(0.3)
        stage.truncate()
        stage.finish()


STORIES = (
    OneHasTheBody,
    LostVotes,
    FedWithLostVotes,
    Orphans,
    Queued,
    NobodyHasTheBody,
    SomebodyHasTheBody,
    TwoGoOn,
    Overtaken,
    OneKnows,
    AwayForLong,
)
SCHEDULES: dict[str, type[Any]] = {story.mutant: story for story in STORIES}
