"""Stories of what campaigns found, for mutants that random runs catch rarely."""

from typing import ClassVar

from ordercast.protocols.isis.settings import FlushKind, Settings
from ordercast.sim.client import ClientSettings, Plan
from ordercast.sim.isis.stage import Schedule, Stage


class OrderedTooLate(Schedule):
    """n3 holds the token of a, and lacks x of b, which precedes n2's ABCAST in a. It contributes to the end of a's
    view, and then x comes. If it gave that ABCAST a place now, it would deliver it before n1's, which it has not
    heard of; and the cut, which knows of no place, has n1's first."""

    mutant = "orders-after-contributing"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "b": ("n2", "n3", "n4")}
    spare = ("n5",)

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n2", "n3")
        stage.hold("n4", "n3")
        stage.publish("c1", "b", through="n4")  # x
        stage.run(0.03)
        stage.publish("c2", "a", through="n1", total=True)
        stage.publish("c3", "a", through="n2", total=True)
        stage.run(0.03)
        stage.place("a", "n1", "n2", "n3", "n5")
        stage.tell("n5")
        stage.run(0.02)
        stage.believe_in("n1", "n2", "n3", "n4", "n5")
        stage.tell("n1", "n2", "n3", "n5")
        stage.run(0.02)
        stage.release("n4", "n3")
        stage.run(0.02)
        stage.finish()


class SaidAndForgotten(Schedule):
    """m is for a and b, and n1 casts it in a. n3 is gone, and the next view needs n1's word and n2's. n1 says in
    its contribution that m is open. Then it hears that m is cast in b, and so does n2, which says nothing of it.
    Before that, m's gateway asks for m again, and n1 begins afresh with it: it knows m as little as anybody else
    who would tell it what it said itself.
    """

    mutant = "waits-to-be-told-what-it-said"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "b": ("n4", "n5", "n6")}
    settings = Settings(flush=FlushKind.ALL)

    def play(self, stage: Stage) -> None:
        there = ("n1", "n2", "n4", "n5", "n6")
        for name in (*there, "n3"):
            stage.hold(name, "c1")
        stage.hold("n1", "n4", "n5", "n6")
        stage.publish("c1", "a", "b", through="n1")  # m
        stage.run(0.03)
        stage.crash("n3")
        stage.believe_in(*there)
        stage.tell("n1")
        stage.run(0.01)
        stage.release("n1", "n4", "n5", "n6")
        stage.run(0.1)
        stage.hold("n1", "n2", "n4", "n5", "n6")
        stage.lose_in_flight("n1", "c1")
        stage.release("n1", "c1")
        stage.run(0.02)
        stage.tell("n2")
        stage.run(0.02)
        stage.finish("n3")


class BehindALostAnswer(Schedule):
    """A client is shown m by n1, which nobody else has, and answers through n2. n1 is gone, and m and the answer
    are lost with the view. What came behind the answer waits at n2 for the next view.
    """

    mutant = "overtaken-by-what-came-behind-it"
    groups: ClassVar = {"a": ("n1", "n2", "n3")}
    reads_live = True

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n2", "n3")
        stage.publish("c1", "a", through="n1")  # m
        stage.run(0.02)
        stage.is_shown("c2", "a")
        stage.publish("c2", "a", through="n2")
        stage.run(0.02)
        stage.crash("c1", "n1")
        stage.believe_in("n2", "n3")
        stage.tell("n2", "n3")
        stage.publish("c2", "a", through="n2")
        stage.run(0.02)
        stage.look()
        stage.run(0.02)
        stage.tell("n2", "n3")
        stage.run(0.02)
        stage.finish("c1")


class OnePartOfAReceipt(Schedule):
    """A client has the receipt of m, which is for a and b. What it publishes in b then goes through n4, which
    lacks m there: it must be told of both parts, and wait for the one in b.
    """

    mutant = "gateway-has-seen-one-part"
    groups: ClassVar = {"a": ("n1",), "b": ("n2", "n3", "n4")}
    publishers: ClassVar = {
        "c9": ClientSettings(
            [Plan(0.1, ("a", "b"), 1, unordered=False), Plan(0.2, ("b",), 1, unordered=False)], ["n4"]
        )
    }

    def play(self, stage: Stage) -> None:
        stage.hold("n3", "n4")  # n3 is the one that casts m in b.
        stage.run(0.3)
        stage.finish()


class BehindWhatWaitsForIt(Schedule):
    """m is for a and b, and n2, the only member of b, gets m in a with the view that n1 leaves. A client answers
    in b through n2, which waits there until all of m is cast; and then n3 hands m's part of b on to n2."""

    mutant = "part-waits-behind-what-waits-for-it"
    groups: ClassVar = {"a": ("n1", "n2", "n3"), "b": ("n2",)}

    def play(self, stage: Stage) -> None:
        stage.hold("n1", "n2")
        stage.publish("c1", "a", "b", through="n1")  # m
        stage.run(0.02)
        stage.crash("n1", "c1")
        stage.believe_in("n2", "n3")
        stage.tell("n2", "n3", "c2")
        stage.run(0.02)
        stage.look()
        stage.run(0.02)
        stage.tell("n2", "n3", "c2")
        stage.run(0.005)
        stage.publish("c2", "b", through="n2")
        stage.run(0.02)
        stage.finish("n1", "c1")


FOUND_SCHEDULES: dict[str, type[Schedule]] = {
    schedule.mutant: schedule
    for schedule in (OrderedTooLate, SaidAndForgotten, BehindALostAnswer, BehindWhatWaitsForIt, OnePartOfAReceipt)
}
