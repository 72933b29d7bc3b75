"""How long to wait for an answer, and before something is tried again. Chance is an argument."""

from ordercast.client.errors import OrdercastError

#: How long a gateway may be silent while it owes us something, be it its first word. Doubles until the next
#: receipt.
PATIENCE_S = 3.0
PATIENCE_S_MAX = 6.0
BACKOFF_S = 0.05
BACKOFF_S_MAX = 2.0
#: By how much of itself a wait that a gateway asked for is lengthened at most.
SPREAD = 0.25


def backoff_s(failures: int, chance: float) -> float:
    """Longer with each failure, and spread, so that clients do not come back all at once."""
    longest = min(BACKOFF_S * 2.0 ** min(failures, 10), BACKOFF_S_MAX)
    return longest * (0.5 + chance / 2)


def wait_s(failures: int, trouble: OrdercastError, chance: float) -> float:
    """Before it is tried again: as above, and no less than the gateway said."""
    return max(backoff_s(failures, chance), trouble.retry_after or 0.0)
