"""What a domain that runs SCALATOM can set."""

from collections.abc import Mapping
from dataclasses import dataclass

from ordercast.core.ids import CLOCK_MAX
from ordercast.core.level import LEVEL
from ordercast.core.protocol import Setting
from ordercast.protocols.celllog.forgetting import (
    IDEMPOTENCE_PRODUCERS,
    PRODUCERS_BOUNDS,
    settings_at,
)
from ordercast.protocols.celllog.setting_texts import InvalidSettings as InvalidSettings
from ordercast.protocols.celllog.setting_texts import count_of, decimal_of, refuse_unknown
from ordercast.protocols.celllog.settings import LogSettings


@dataclass(frozen=True, slots=True)
class Settings(LogSettings):
    #: No word of a replica about an envelope for `silence_s`: relay, pull, ask, take over. Doubles each time.
    silence_s_max: float = 2.0
    #: Where decisions take long, silence is normal for longer: four times as long as they take, at most this.
    patience_s_max: float = 3.0
    #: How long a coordinator with a quorum of stamps waits for the others: all together they may imply the number
    #: (implied.py). 0 is the paper's rule: consensus on every number.
    stamps_wait_s: float = 0.01
    #: Gossip at least this often, if only to say "nothing new since".
    gossip_s: float = 1.0
    #: The clock is reserved this far ahead, so that few receipts persist it (E7).
    clock_reserved: int = 1000
    #: Envelopes that are handed over in one message to the next configuration, and their bytes.
    hand_over: int = 64
    #: Gossip an entry as soon as it may be, instead of when a decision makes somebody wait for it. The messages
    #: are as many, and the receipt comes two steps sooner. Off for comparison with the paper.
    gossip_early: bool = True
    #: Relay each envelope and decision on first receipt, as the paper's reliable multicast does, instead of
    #: on silence. Costs (d-1)^2 + (d-1)(d-2) messages more; for comparison with the paper.
    relay_eagerly: bool = False


# -------------------------------------------------------------------------------------- as users write them


#: What a domain may set, and within which bounds. `relay_eagerly` and `gossip_early` are for comparisons in the
#: simulator.
_SECONDS = {
    "tick_s": (0.001, 10.0),
    "stamps_wait_s": (0.0, 1.0),
    "silence_s": (0.01, 60.0),
    "silence_s_max": (0.01, 600.0),
    "patience_s_max": (0.01, 600.0),
    "gossip_s": (0.01, 60.0),
}
_COUNTS = {
    "clock_reserved": (1, 1_000_000),
    "idempotence_distance": (1_000_000, CLOCK_MAX),
    # A client may have 4096 messages under way: it must get the receipts of all of them again.
    "idempotence_window": (4096, 65_536),
    IDEMPOTENCE_PRODUCERS: PRODUCERS_BOUNDS,
    "log_chunk": (1, 1024),
    "log_chunk_bytes": (1, 1 << 24),
}


def documented() -> tuple[Setting, ...]:
    """For users."""
    defaults = Settings()
    seconds = [
        Setting(n, f"{low:g} to {high:g} s", f"{getattr(defaults, n):g}") for n, (low, high) in _SECONDS.items()
    ]
    counts = [
        Setting(name, f"{low} to {high}", str(getattr(defaults, name))) for name, (low, high) in _COUNTS.items()
    ]
    return (*seconds, *counts)


def from_map(settings: Mapping[str, str], level: int = LEVEL) -> Settings:
    """What is not in the map keeps its default."""
    there = settings_at([*_SECONDS, *_COUNTS], level)
    refuse_unknown(settings, there)
    seconds = {n: decimal_of(n, settings[n], _SECONDS[n], "seconds") for n in _SECONDS if n in settings}
    counts = {n: count_of(n, settings[n], _COUNTS[n]) for n in _COUNTS if n in settings}
    found = Settings(**seconds, **counts)  # type: ignore[arg-type]  # neither holds the name of a bool
    if found.silence_s_max < found.silence_s:
        raise InvalidSettings(f"silence_s_max ({found.silence_s_max}) is below silence_s ({found.silence_s})")
    return found
