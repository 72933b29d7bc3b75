"""What a domain of virtually synchronous groups can set, and what each setting trades."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ordercast.core.level import LEVEL
from ordercast.core.protocol import Setting
from ordercast.protocols.celllog.forgetting import (
    IDEMPOTENCE_PRODUCERS,
    PRODUCERS_BOUNDS,
    settings_at,
)
from ordercast.protocols.celllog.setting_texts import InvalidSettings as InvalidSettings
from ordercast.protocols.celllog.setting_texts import count_of, decimal_of, is_count, refuse_unknown
from ordercast.protocols.celllog.settings import LogSettings


class Ordering(StrEnum):
    #: CBCAST: delivered on receipt unless something that precedes it is missing.
    CAUSAL = "causal"
    #: ABCAST: delivered when the token holder has said where, everywhere in the same order.
    TOTAL = "total"


class FlushKind(StrEnum):
    #: Everyone tells everyone: one delay less, n(n-1) messages.
    ALL = "all"
    #: Everyone tells one, who tells everyone: 2(n-1) messages.
    COORDINATOR = "coordinator"


class Causality(StrEnum):
    #: [BSS91 6.1] Casts carry the times of all groups that their sender knows of.
    TIMESTAMPS = "timestamps"
    #: [6.7] Casts carry their own group's time; who changes group waits until everyone there has everything.
    CONSERVATIVE = "conservative"
    #: [6.7] Casts carry the times of the sender's groups, and an epoch where groups may lie in a cycle.
    EPOCHS = "epochs"


K_STABILITY = "k_stability"
#: For k_stability: as many as a majority of the view, or all of it.
MAJORITY, ALL = "majority", "all"


@dataclass(frozen=True, slots=True)
class Settings(LogSettings):
    ordering: Ordering = Ordering.CAUSAL
    flush: FlushKind = FlushKind.COORDINATOR
    causality: Causality = Causality.TIMESTAMPS
    #: [6.5] How many disks have what a process sent or delivered in one group, before it speaks in another:
    #: a number, "majority" or "all". Below a majority, a crash may take away what others have answered to.
    #: A group may have its own.
    k_stability: str = MAJORITY
    #: [5.2] How many casts the token holder orders with one message, and how long it waits for so many.
    order_batch: int = 1
    order_wait_s: float = 0.002
    #: [5.2] The token goes to a member that sent at least this share of so many casts.
    token_window: int = 64
    token_share: float = 0.6
    #: [5.3] What nobody waits for is told after so long, if no cast takes it along.
    stability_idle_s: float = 0.005

    @property
    def spans_groups(self) -> bool:
        """There is no total order over several groups."""
        return self.ordering != Ordering.TOTAL

    @property
    def untold_past(self) -> str:
        if self.causality == Causality.TIMESTAMPS:
            return ""
        return (
            f"has the setting causality={self.causality}: its members keep causality among themselves, and do not "
            f"tell readers what messages come after. That needs causality={Causality.TIMESTAMPS}"
        )


# -------------------------------------------------------------------------------------- as users write them


_CHOICES: dict[str, type[StrEnum]] = {"ordering": Ordering, "flush": FlushKind, "causality": Causality}
_SECONDS = {"order_wait_s": (0.0, 1.0), "stability_idle_s": (0.0, 1.0), "silence_s": (0.01, 60.0)}
_SHARES = {"token_share": (0.5, 1.0)}
_COUNTS = {
    "order_batch": (1, 1024),
    "token_window": (1, 65_536),
    "idempotence_window": (4096, 65_536),
    IDEMPOTENCE_PRODUCERS: PRODUCERS_BOUNDS,
}
_NAMES = [*_CHOICES, K_STABILITY, *_SECONDS, *_SHARES, *_COUNTS]


def documented() -> tuple[Setting, ...]:
    """For users."""
    defaults = Settings()
    choices = [
        Setting(name, ", ".join(kind), getattr(defaults, name), choices=tuple(kind))
        for name, kind in _CHOICES.items()
    ]
    k = Setting(K_STABILITY, f"{MAJORITY}, {ALL}, or 1 to 64", defaults.k_stability, of_groups=True)
    seconds = [
        Setting(n, f"{low:g} to {high:g} s", f"{getattr(defaults, n):g}") for n, (low, high) in _SECONDS.items()
    ]
    numbers = [
        Setting(name, f"{low} to {high}", str(getattr(defaults, name)))
        for name, (low, high) in (*_SHARES.items(), *_COUNTS.items())
    ]
    return (*choices, k, *seconds, *numbers)


def from_map(settings: Mapping[str, str], level: int = LEVEL) -> Settings:
    """What is not in the map keeps its default."""
    refuse_unknown(settings, settings_at(_NAMES, level))
    found: dict[str, object] = {}
    for name, text in settings.items():
        if name in _CHOICES:
            found[name] = _choice(name, text)
        elif name == K_STABILITY:
            found[name] = _k(text)
        elif name in _COUNTS:
            found[name] = count_of(name, text, _COUNTS[name])
        else:
            found[name] = decimal_of(name, text, _SECONDS.get(name) or _SHARES[name], "a number")
    result = Settings(**found)  # type: ignore[arg-type]  # each was made as its field wants it
    if K_STABILITY in settings and result.k_stability != ALL:
        _refuse_with_conservative(result)
    return result


def check_group(domain: Mapping[str, str], settings: Mapping[str, str]) -> None:
    """What a group may have otherwise than its domain: only that which concerns nobody but its own members."""
    refuse_unknown(settings, [K_STABILITY])
    if K_STABILITY in settings:
        _refuse_with_conservative(from_map(domain))
        _k(settings[K_STABILITY])


def _refuse_with_conservative(domain: Settings) -> None:
    """[6.7] Times of other groups do not travel then: everyone has to have what precedes."""
    if domain.causality == Causality.CONSERVATIVE:
        raise InvalidSettings(f"causality=conservative waits for every member: {K_STABILITY} can only be {ALL}")


def _choice(name: str, text: str) -> StrEnum:
    kind = _CHOICES[name]
    try:
        return kind(text)
    except ValueError:
        raise InvalidSettings(f"{name} has to be one of {', '.join(kind)}, not {text[:64]!r}") from None


def _k(text: str) -> str:
    if text in (MAJORITY, ALL) or (is_count(text) and 1 <= int(text) <= 64):
        return text
    raise InvalidSettings(f"k_stability has to be {MAJORITY}, {ALL} or a number from 1 to 64, not {text[:64]!r}")
