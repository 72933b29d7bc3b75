"""What can be set in a domain that is ordered so, and what each setting trades.

* `liveness` says how a group that has nothing to send lets others go on. `requested`: every message asks for the
  barriers that it needs, so it waits for no timer, at the price of one null for each group and burst. `periodic`:
  each group passes the present time once every `barrier_ms`: fewer messages under load, and everybody waits for
  the slowest period.
* `window` is how long a message waits for those that were stamped before it. `measured`: as long as nearly all
  messages take. A number of milliseconds is right where delays are known; 0 shows everything at once, and is wrong
  most often. Whatever it is, final order does not depend on it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ordercast.core.protocol import Setting
from ordercast.protocols.celllog.setting_texts import InvalidSettings, count_of, refuse_unknown
from ordercast.protocols.celllog.settings import LogSettings

REQUESTED, PERIODIC = "requested", "periodic"
MEASURED = "measured"

BARRIER_MS_BOUNDS = (1, 60_000)
WINDOW_MS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Settings(LogSettings):
    liveness: str = REQUESTED
    #: [Algorithm 2] barrierThreshold.
    barrier_s: float = 0.02
    #: Microseconds; None if it is measured.
    window_us: int | None = None
    #: Of the samples of each sender, so many are within the window.
    window_quantile: float = 0.99
    #: [E8] Nobody waits longer than this after receipt, whatever a sender's clock says.
    window_cap_s: float = 0.2
    #: Instances that a leader proposes without waiting for those before them, and entries in one of them.
    parallel: int = 16
    entries_max: int = 512
    #: Keys are microseconds: a week.
    idempotence_distance: int = 7 * 24 * 3600 * 1_000_000


SETTINGS = (
    Setting("liveness", "how groups without messages let others go on", REQUESTED, choices=(REQUESTED, PERIODIC)),
    Setting(
        "barrier_ms", "if it is periodic: milliseconds from 1 to 60000", str(round(Settings().barrier_s * 1000))
    ),
    Setting("window", f"'{MEASURED}', or milliseconds from 0 to {WINDOW_MS_MAX}", MEASURED),
)


def parse(settings: Mapping[str, str], level: int = 0) -> Settings:
    refuse_unknown(settings, [setting.name for setting in SETTINGS])
    liveness = settings.get("liveness", REQUESTED)
    if liveness not in (REQUESTED, PERIODIC):
        raise InvalidSettings(f"liveness has to be {REQUESTED} or {PERIODIC}, not {liveness[:64]!r}")
    barrier_ms = count_of("barrier_ms", settings.get("barrier_ms", SETTINGS[1].default), BARRIER_MS_BOUNDS)
    return Settings(
        liveness=liveness,
        barrier_s=barrier_ms / 1000,
        window_us=_window_of(settings.get("window", MEASURED)),
    )


def _window_of(text: str) -> int | None:
    if text == MEASURED:
        return None
    if not re.fullmatch(r"[0-9]{1,6}", text) or int(text) > WINDOW_MS_MAX:
        raise InvalidSettings(
            f"window has to be {MEASURED} or milliseconds from 0 to {WINDOW_MS_MAX}, not {text[:64]!r}"
        )
    return int(text) * 1000
