"""What a domain can set, and what each setting trades."""

from collections.abc import Mapping
from dataclasses import dataclass

from ordercast.core.protocol import Setting
from ordercast.protocols.celllog.setting_texts import InvalidSettings, count_of, decimal_of, refuse_unknown
from ordercast.protocols.celllog.settings import LogSettings

#: For phi: the least there is, the most, or so many.
HALF, ALL = "half", "all"
IDLE_BOUNDS = (0.0, 1.0)
PHI_MAX = 1023


@dataclass(frozen=True, slots=True)
class Settings(LogSettings):
    #: [DKM93 4.2] How many votes a message must have more of than another one to come first, and to be delivered
    #: before everybody has voted: half of the processes, or all but one, which waits for all; or so many.
    phi: str = HALF
    #: How long a process that has nothing to send waits before it votes with an empty message.
    idle_delay_s: float = 0.002
    #: So many messages of a view are dropped at once when everybody has them.
    settle_batch: int = 64

    def phi_of(self, size: int) -> int:
        """Within what is possible for so many processes."""
        if self.phi == HALF:
            return size // 2
        if self.phi == ALL:
            return size - 1
        return min(max(int(self.phi), size // 2), size - 1)


def documented() -> tuple[Setting, ...]:
    defaults = Settings()
    low, high = IDLE_BOUNDS
    return (
        Setting("phi", f"{HALF}, {ALL}, or 0 to {PHI_MAX}", defaults.phi),
        Setting("idle_delay_s", f"{low:g} to {high:g} s", f"{defaults.idle_delay_s:g}"),
    )


def from_map(settings: Mapping[str, str], level: int = 0) -> Settings:
    """What is not in the map keeps its default."""
    refuse_unknown(settings, ["phi", "idle_delay_s"])
    found: dict[str, object] = {}
    if "phi" in settings:
        text = settings["phi"]
        try:
            found["phi"] = text if text in (HALF, ALL) else str(count_of("phi", text, (0, PHI_MAX)))
        except InvalidSettings:
            raise InvalidSettings(
                f"phi has to be {HALF}, {ALL} or a number from 0 to {PHI_MAX}, not {text[:64]!r}"
            ) from None
    if "idle_delay_s" in settings:
        found["idle_delay_s"] = decimal_of("idle_delay_s", settings["idle_delay_s"], IDLE_BOUNDS, "a number")
    return Settings(**found)  # type: ignore[arg-type]  # each was made as its field wants it
