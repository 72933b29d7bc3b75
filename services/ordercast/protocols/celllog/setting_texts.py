"""Settings as users write them: plain decimals and whole numbers within bounds, and no name that is unknown."""

import re
from collections.abc import Iterable, Sequence

_INTEGER = re.compile(r"[0-9]{1,20}")
_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


class InvalidSettings(ValueError):  # noqa: N818 (it says what they are)
    """The text names the setting and can be shown to users."""


def refuse_unknown(names: Iterable[str], there: Sequence[str]) -> None:
    unknown = sorted(name for name in names if name not in there)
    if unknown:
        shown = ", ".join(repr(name[:64]) for name in unknown[:5])
        raise InvalidSettings(f"no such setting: {shown}; there are {', '.join(there)}")


def decimal_of(name: str, text: str, bounds: tuple[float, float], what: str) -> float:
    """Plain decimals only: what float() takes besides, as 'nan' or '1_0', nobody means."""
    low, high = bounds
    if not _DECIMAL.fullmatch(text) or not low <= float(text) <= high:
        raise InvalidSettings(f"{name} has to be {what} from {low} to {high}, not {text[:64]!r}")
    return float(text)


def count_of(name: str, text: str, bounds: tuple[int, int]) -> int:
    low, high = bounds
    if not is_count(text) or not low <= int(text) <= high:
        raise InvalidSettings(f"{name} has to be a whole number from {low} to {high}, not {text[:64]!r}")
    return int(text)


def is_count(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None
