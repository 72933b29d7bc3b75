"""What was measured, as it is printed and saved."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import median


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One system, one pattern, so many messages in flight. What was not measured is None."""

    system: str
    pattern: str
    in_flight: int
    messages_per_second: float
    p50_ms: float
    p99_ms: float
    server_cpu_s_per_10k: float
    client_cpu_s_per_10k: float
    #: Of the server that has most.
    rss_anon_mb_max: float
    #: Messages that were refused or lost their connection: not among those per second.
    failed: int
    #: Of the repetitions.
    messages_per_second_min: float
    messages_per_second_max: float
    #: What carried the messages; only our own system has them.
    envelopes: int | None = None
    messages_per_envelope: float | None = None
    server_cpu_ms_per_envelope: float | None = None

    @property
    def case(self) -> tuple[str, str, int]:
        """Rows with the same are repetitions."""
        return self.system, self.pattern, self.in_flight


@dataclass(frozen=True, slots=True)
class Replay:
    """One subscriber has read a whole log."""

    messages: int
    messages_per_second: float
    #: Of each node, afterwards.
    rss_anon_mb: list[float]


def medians(rows: Sequence[BenchRow]) -> list[BenchRow]:
    """One row for each case, in the order in which cases came first."""
    cases: dict[tuple[str, str, int], list[BenchRow]] = {}
    for row in rows:
        cases.setdefault(row.case, []).append(row)
    return [_median(repetitions) for repetitions in cases.values()]


def _median(repetitions: Sequence[BenchRow]) -> BenchRow:
    rates = [row.messages_per_second for row in repetitions]
    values = {
        field.name: _middle([getattr(row, field.name) for row in repetitions])
        for field in fields(BenchRow)
        if field.name not in ("system", "pattern", "in_flight")
    }
    # A failure in one repetition is not made up for by two without.
    values["failed"] = sum(row.failed for row in repetitions)
    values["messages_per_second_min"], values["messages_per_second_max"] = min(rates), max(rates)
    return BenchRow(*repetitions[0].case, **values)  # type: ignore[arg-type]


def _middle(values: Sequence[float | int | None]) -> float | int | None:
    present = [value for value in values if value is not None]
    if not present:
        return None
    middle = median(present)
    return round(middle) if all(isinstance(value, int) for value in present) else round(middle, 3)
