"""Stories that only broken machines get wrong, for mutants that random runs catch rarely."""

from typing import ClassVar

from ordercast.protocols.apbcast.settings import Settings
from ordercast.sim.apbcast.stage import Schedule, Stage

#: Nobody is removed, and nobody moves, only because time passes.
PATIENT = Settings(silent_s=1e6, home_s=1e6)


class TwoViewsAtOnce(Schedule):
    """b0 hears of two views together: it belongs to both, and owes a mark for each."""

    mutant = "mark_skipped"
    broadcasters: ClassVar[dict[str, str]] = {"b0": "g0", "b1": "g0", "b2": "g0"}
    away = ("b1", "b2")
    settings = PATIENT

    def play(self, stage: Stage) -> None:
        stage.hold("m1", "b0")
        stage.restart("b1")
        stage.run(1.0)
        stage.restart("b2")
        stage.run(1.0)
        stage.lose_in_flight("m1", "b0")
        stage.release("m1", "b0")
        stage.run(1.0)
        stage.publish("p", "b0")
        stage.publish("q", "b2")
        stage.finish()


class LateAcknowledgement(Schedule):
    """r0 to r2 hand over to r3 to r5, while r0 and r1 still take what b0 says. Then the old ones are gone."""

    mutant = "acknowledged_after"
    spare = ("r3", "r4", "r5")
    broadcasters: ClassVar[dict[str, str]] = {"b0": "g0"}
    settings = PATIENT

    def play(self, stage: Stage) -> None:
        # What b0 says does not get to the new ones, and their word of being ready waits.
        for new in ("r3", "r4", "r5"):
            stage.hold("b0", new)
            stage.hold(new, "m1")
        stage.place("g0", "r3", "r4", "r5")
        stage.run(1.0)
        for old in ("r0", "r1", "r2"):
            for new in ("r3", "r4", "r5"):
                stage.hold(old, new)
        stage.publish("p", "b0")
        stage.run(1.0)
        for new in ("r3", "r4", "r5"):
            stage.release(new, "m1")
        stage.run(1.0)
        stage.finish()


class HandedUnsealed(LateAcknowledgement):
    mutant = "handed_unsealed"


class HandedByOne(Schedule):
    """r2 lacks what r0 and r1 have acknowledged, and is the first to hand over."""

    mutant = "handed_by_one"
    spare = ("r3", "r4", "r5")
    broadcasters: ClassVar[dict[str, str]] = {"b0": "g0"}
    settings = PATIENT

    def play(self, stage: Stage) -> None:
        stage.hold("b0", "r2")
        stage.hold("r0", "r2")
        stage.hold("r1", "r2")
        stage.publish("p", "b0")
        stage.run(0.5)
        for new in ("r3", "r4", "r5"):
            stage.hold("b0", new)
            for old in ("r0", "r1"):
                stage.hold(old, new)
        stage.place("g0", "r3", "r4", "r5")
        stage.run(2.0)
        stage.finish()


class NothingHanded(Schedule):
    """New members have in memory what was handed over, and their disks are slow."""

    mutant = "nothing_handed"
    spare = ("r3", "r4", "r5")
    broadcasters: ClassVar[dict[str, str]] = {"b0": "g0"}
    settings = PATIENT

    def play(self, stage: Stage) -> None:
        stage.publish("p", "b0")
        stage.run(0.5)
        for new in ("r3", "r4", "r5"):
            stage.hold_disk(new)
        stage.place("g0", "r3", "r4", "r5")
        stage.run(1.0)
        stage.finish()


class TwoConfigurations(Schedule):
    """r0 acknowledges in the configuration before, and r1 in this one: that is a majority of none."""

    mutant = "majority_of_all"
    spare = ("r3",)
    broadcasters: ClassVar[dict[str, str]] = {"b0": "g0"}
    settings = PATIENT

    def play(self, stage: Stage) -> None:
        stage.hold("b0", "r1", "r2", "r3")
        for other in ("r1", "r2", "r3"):
            stage.hold("r0", other)
            stage.hold(other, "r0")
        stage.publish("p", "b0")
        stage.run(0.5)
        stage.place("g0", "r1", "r2", "r3")
        stage.run(1.0)
        stage.hold("r1", "r2", "r3")
        stage.release("b0", "r1")
        stage.run(1.0)
        stage.finish()


class ShortenedBySnapshot(Schedule):
    """r2 has what b0 said last, which is announced. It takes the merge of r1, who has not."""

    mutant = "snapshot_shortens"
    settings = Settings(silent_s=1e6, home_s=1e6, window=4)

    def play(self, stage: Stage) -> None:
        stage.hold("b1", "r2")
        stage.hold("r0", "r2")
        stage.hold("r1", "r2")
        for _ in range(3):
            stage.publish("p", "b0")
            stage.publish("q", "b1")
            stage.run(0.5)
        stage.hold("b0", "r1")
        stage.publish("p", "b0")
        stage.run(0.5)
        stage.lose_in_flight("b1", "r2")
        stage.release("b1", "r2")
        stage.release("r1", "r2")
        stage.run(1.5)
        stage.finish()


class FilledByNobody(Schedule):
    """r0 alone has what b0 said last. The end says so, and r0 is gone before anybody has copied it."""

    mutant = "unfilled_end"
    settings = Settings(silent_s=0.5, home_s=1e6)

    def play(self, stage: Stage) -> None:
        stage.hold("b0", "r1", "r2")
        stage.publish("p", "b0")
        stage.may_lose[b"p"] = None
        stage.run(0.05)
        stage.part("b0")
        for other in ("r1", "r2"):
            stage.hold("r0", other)
        stage.publish("q", "b1")
        stage.run(2.5)
        stage.finish("r0", "b0")


class SealedByOne(Schedule):
    """r2 lacks what is announced, and is the first to seal."""

    mutant = "sealed_by_one"
    settings = Settings(silent_s=0.5, home_s=1e6)

    def play(self, stage: Stage) -> None:
        stage.hold("b0", "r2")
        stage.hold("r0", "r2")
        stage.hold("r1", "r2")
        stage.publish("p", "b0")
        stage.run(0.3)
        for root in ("r0", "r1"):
            stage.hold(root, "m1")
        stage.part("b0")
        stage.publish("q", "b1")
        stage.run(2.0)
        stage.finish("b0")


class SealedInMemory(Schedule):
    """r1 and r2 have sealed b0, and forget it with what is on its way to their disks. b0 goes on."""

    mutant = "seal_in_memory"
    settings = Settings(silent_s=0.5, home_s=1e6)

    def play(self, stage: Stage) -> None:
        stage.publish("p", "b0")
        stage.run(0.5)
        stage.hold("b0", "r0", "r1", "r2")
        stage.hold("m1", "b0")
        stage.hold_disk("r1")
        stage.hold_disk("r2")
        stage.publish("q", "b1")
        stage.run(2.0)
        stage.hold("m1", "r1", "r2")
        stage.crash("r1", "r2")
        stage.release("b0", "r1", "r2")
        stage.restart("r1", "r2")
        stage.run(0.5)
        stage.publish("p", "b0")
        stage.run(1.0)
        stage.publish("q", "b1")
        stage.run(1.0)
        stage.finish()


class EndOfAnotherConfiguration(Schedule):
    """b0 is sealed at 1 by r0 and r2. Its home changes, and b0 goes on there, before r0's word arrives."""

    mutant = "end_unchecked"
    spare = ("r3",)
    settings = Settings(silent_s=0.5, home_s=1e6)

    def play(self, stage: Stage) -> None:
        stage.publish("p", "b0")
        stage.run(0.5)
        stage.hold("r0", "m1")
        stage.hold("r1", "m1")
        stage.hold("b0", "r0", "r1", "r2")
        stage.publish("q", "b1")
        stage.run(1.5)
        stage.place("g0", "r0", "r2", "r3")
        stage.run(1.0)
        stage.hold("r2", "r0")
        stage.hold("r3", "r0")
        stage.release("b0", "r2")
        stage.run(0.3)
        stage.publish("p", "b0")
        stage.run(1.0)
        stage.hold("m1", "b0")
        stage.release("r0", "m1")
        stage.run(1.0)
        stage.crash("b0")
        stage.publish("q", "b1")
        stage.run(3.0)
        stage.finish("b0")


class ViewsForgotten(Schedule):
    """A view is forgotten while b0, who is in it, has not heard of it."""

    mutant = "views_forgotten"
    broadcasters: ClassVar[dict[str, str]] = {"b0": "g0", "b1": "g0", "b2": "g0"}
    away = ("b1", "b2")
    settings = PATIENT

    def play(self, stage: Stage) -> None:
        stage.hold("m1", "b0", "r0", "r1", "r2")
        stage.restart("b1")
        stage.run(1.0)
        stage.restart("b2")
        stage.run(1.0)
        stage.release("m1", "b0", "r0", "r1", "r2")
        stage.run(1.0)
        stage.publish("p", "b0")
        stage.finish()


ALL: tuple[type[Schedule], ...] = (
    TwoViewsAtOnce,
    LateAcknowledgement,
    HandedUnsealed,
    HandedByOne,
    NothingHanded,
    FilledByNobody,
    SealedByOne,
    TwoConfigurations,
    ShortenedBySnapshot,
    SealedInMemory,
    EndOfAnotherConfiguration,
    ViewsForgotten,
)
SCHEDULES: dict[str, type[Schedule]] = {schedule.mutant: schedule for schedule in ALL}
