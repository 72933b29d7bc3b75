"""The bias of a broadcaster: how much its slowness weighs in the merge.

The paper's rule is log(rate) / log(1 - highest rate) [apbcast Fig.4 l.57-59], with rates per tick. Only
differences of biases matter, and as the tick shrinks they tend to ln(highest / rate) / highest (E2 in
README.md). Whoever proposes a view computes them once, as integers, and the view carries them: roots take no
logarithms and measure no rates.
"""

import math
from collections.abc import Sequence

#: Messages in a thousand seconds, so that slow broadcasters have a rate too.
RATE_UNIT_S = 1000
RATE_MAX = 10**12


class InvalidRate(ValueError):  # noqa: N818 (it says what it is)
    pass


def rate_of(messages_per_second: float) -> int:
    """As it travels. Raises InvalidRate for what is no rate."""
    if not math.isfinite(messages_per_second) or messages_per_second <= 0:
        raise InvalidRate(f"a broadcaster's rate is finite and above 0, not {messages_per_second}")
    return check_rate(max(1, round(messages_per_second * RATE_UNIT_S)))


def check_rate(rate: int) -> int:
    if not 0 < rate <= RATE_MAX:
        raise InvalidRate(f"a broadcaster's rate is above 0 and at most {RATE_MAX // RATE_UNIT_S} messages/s")
    return rate


def biases(rates: Sequence[int]) -> list[int]:
    """In microseconds, in the order of the rates."""
    highest = max(rates, default=1)
    return [round(1e6 * RATE_UNIT_S * math.log(highest / rate) / highest) for rate in rates]
