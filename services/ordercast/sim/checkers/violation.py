"""What went wrong, in as few words as explain it."""

from dataclasses import dataclass


@dataclass(slots=True)
class Violation(Exception):  # noqa: N818 (it is a finding; raising it only ends the run early)
    #: The property's name: agreement, integrity, order, fifo, causality, exactly-once, receipt, durability,
    #: termination, participants, size, bounded, watermark, refused, early, invariant.
    property: str
    explanation: str

    def __str__(self) -> str:
        return f"{self.property}: {self.explanation}"
