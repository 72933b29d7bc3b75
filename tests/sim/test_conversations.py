"""Scripted conversations, word for word: the counter-examples behind E1, E2 and E4 as replicas speak them.

`ORDERCAST_REWRITE=1 make test` rewrites the files; review them as a diff.
"""

import os
from pathlib import Path

import pytest

from ordercast.protocols.scalatom.settings import Settings
from ordercast.sim.scalatom.mutants.schedules import ClockWithoutEntry, OffByOne, OnlyHolderDies, Ties
from ordercast.sim.scalatom.stage import Schedule, Stage, verdict

FOLDER = Path(__file__).parent / "conversations"


class OneMessage(Schedule):
    """A message to two groups, and nothing goes wrong."""

    groups = {"a": ("n1", "n2", "n3"), "b": ("n2", "n3", "n4")}  # noqa: RUF012
    acceptors = None

    def play(self, stage: Stage) -> None:
        stage.publish("c1", "a", "b")
        stage.run(0.05)


class NumberImplied(OneMessage):
    """A message to two groups whose stamps imply its number: no acceptor hears of it."""

    settings = Settings()


@pytest.mark.parametrize(
    "schedule", [OneMessage, NumberImplied, OffByOne, Ties, ClockWithoutEntry, OnlyHolderDies]
)
def test_the_conversation_is_as_written(schedule: type[Schedule]) -> None:
    violation, trace = verdict(schedule(), tracing=True)
    assert violation is None
    # Until the director ends the story; what healing brings is the simulator's business.
    spoken = [line.rstrip() for line in trace if "Gossip(" not in line or "entries" in line][:120]
    text = f"{' '.join((schedule.__doc__ or '').split())}\n\n" + "\n".join(spoken) + "\n"
    path = FOLDER / f"{schedule.__name__}.txt"
    if os.environ.get("ORDERCAST_REWRITE"):
        path.write_text(text)
    assert text == path.read_text()
