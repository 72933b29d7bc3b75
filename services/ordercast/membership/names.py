"""Which names, addresses, services and sizes of settings a cluster accepts."""

import re
from collections.abc import Iterable, Mapping

from ordercast.membership.settings import (
    ADDRESS_CHARACTERS_MAX,
    QUOTED_CHARACTERS_MAX,
    SETTINGS_BYTES_MAX,
    ZONE_CHARACTERS_MAX,
)

SERVICES = ("consensus", "gateway", "membership", "sequencer")

#: Also a DNS label or a part of one, and free of '#', which stands in the ids of groups.
_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z_]([0-9A-Za-z._-]*[0-9A-Za-z])?):([0-9]{1,5})")
_PORT_MAX = 65535


class InvalidName(ValueError):  # noqa: N818 (it says what the name is)
    """Something that is called or addressed in a way that no cluster accepts. The text can be shown to users."""


def quoted(text: str) -> str:
    """A user's text in an answer, never longer than an answer may be."""
    return repr(text if len(text) <= QUOTED_CHARACTERS_MAX else text[:QUOTED_CHARACTERS_MAX] + "...")


def check_name(kind: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidName(
            f"{quoted(name)} is no name for a {kind}: 1 to 63 of a-z, 0-9, '.', '_', '-', "
            "and a letter or digit at both ends"
        )


def check_address(kind: str, address: str) -> None:
    found = _ADDRESS.fullmatch(address) if len(address) <= ADDRESS_CHARACTERS_MAX else None
    if found is None or not 0 < int(found.group(3)) <= _PORT_MAX:
        raise InvalidName(f"{quoted(address)} is no {kind} address: it has to be host:port")


def check_zone(zone: str) -> None:
    if len(zone) > ZONE_CHARACTERS_MAX or not (zone.isascii() and zone.isprintable()):
        raise InvalidName(f"{quoted(zone)} is no zone: at most {ZONE_CHARACTERS_MAX} printable ASCII characters")


def checked_services(services: Iterable[str]) -> list[str]:
    """Sorted, each once."""
    found = sorted(set(services))
    unknown = [service for service in found if service not in SERVICES]
    if unknown:
        raise InvalidName(f"there is no service {quoted(unknown[0])}: there are {', '.join(SERVICES)}")
    if not found:
        raise InvalidName("a node runs at least one service")
    return found


def checked_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """What they mean is for the protocol to say."""
    size = sum(len(name.encode()) + len(value.encode()) for name, value in settings.items())
    if size > SETTINGS_BYTES_MAX:
        raise ValueError(f"settings of {size} bytes are more than {SETTINGS_BYTES_MAX}")
    return dict(settings)
