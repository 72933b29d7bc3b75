"""Stories that only a broken protocol gets wrong, and random runs seldom come upon."""

from typing import Any, ClassVar

from ordercast.sim.optimistic.stage import SETTLED_S, Schedule, Stage

ABC = ("n1", "n2", "n3")


class NewcomerFromTheOtherSideOfTheHour(Schedule):
    """a is far ahead, through a sender whose clock is. Then a takes z among its senders, and z places what its own
    sender has stamped with the right time: below what a has delivered, unless z begins above the key of the
    opening.
    """

    mutant = "open_key"
    groups: ClassVar[dict[str, tuple[str, ...]]] = {"a": ABC}
    walls: ClassVar[dict[str, float]] = {"g1": 100.0}

    def play(self, stage: Stage) -> None:
        stage.publish("c1", "a")
        stage.run(SETTLED_S)
        stage.create("z", *ABC)
        stage.run(SETTLED_S)
        # g2 has sent nothing yet, so it chooses its source now.
        stage.publish("c2", "a", "z")
        stage.run(SETTLED_S)
        stage.publish("c1", "a", "z")
        stage.finish()


SCHEDULES: dict[str, type[Any]] = {schedule.mutant: schedule for schedule in (NewcomerFromTheOtherSideOfTheHour,)}
