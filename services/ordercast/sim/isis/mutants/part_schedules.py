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


PART_SCHEDULES: dict[str, type[Schedule]] = {
    schedule.mutant: schedule
    for schedule in (AnsweredPartByPart, ConfirmedBeforeItIsDelivered, LostWithWhoWasLeftOut)
}
