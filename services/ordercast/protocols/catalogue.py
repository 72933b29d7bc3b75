"""The protocols that a domain can run: the built-in ones, and those of installed packages.

A package adds one with an entry point in the group `ordercast.protocols`, which names a `core.protocol.Protocol`.
This is the only module that knows protocols by name, and the only one in `protocols/` that looks at what is
installed: once, when somebody asks for the first time.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from ordercast.core.level import INSTALLED_LEVEL, LEVEL
from ordercast.core.protocol import Protocol, SeenCodec
from ordercast.core.session_token import MARK_BYTES
from ordercast.protocols.isis.protocol import ISIS
from ordercast.protocols.scalatom.protocol import SCALATOM

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "ordercast.protocols"

BUILT_IN = (SCALATOM, ISIS)
#: That of the domain which every cluster has, and of domains whose creator names none.
DEFAULT = SCALATOM


class UnknownProtocol(ValueError):  # noqa: N818 (it names what happened)
    pass


class UnusableProtocol(ValueError):  # noqa: N818 (it says what it is)
    """An installed package offers something that is not a protocol, or not one that can be told from others."""


@cache
def protocols() -> Mapping[str, Protocol]:
    """By name, sorted."""
    # Here, for it takes long to load, and whoever wants the default protocol does not need it.
    from importlib.metadata import entry_points

    return with_installed(entry_points(group=ENTRY_POINTS))


def with_installed(found: "Iterable[EntryPoint]") -> Mapping[str, Protocol]:
    by_name = {protocol.name: protocol for protocol in BUILT_IN}
    marks = {protocol.seen.mark for protocol in BUILT_IN}
    for point in found:
        protocol = point.load()
        if not isinstance(protocol, Protocol) or protocol.name != point.name:
            raise UnusableProtocol(f"the entry point {point.name} ({point.value}) is no protocol of that name")
        if protocol.name in by_name:
            raise UnusableProtocol(f"two protocols are called {protocol.name}: one of them is {point.value}")
        mark = protocol.seen.mark
        if mark and (len(mark) != MARK_BYTES or mark in marks):
            raise UnusableProtocol(
                f"{point.value}: its mark in session tokens is not {MARK_BYTES} bytes of its own"
            )
        marks.add(mark)
        by_name[protocol.name] = protocol
    return MappingProxyType({name: by_name[name] for name in sorted(by_name)})


def named(name: str) -> Protocol:
    """Raises UnknownProtocol if there is none of that name here."""
    protocol = protocols().get(name)
    if protocol is None:
        raise _unknown(name, protocols())
    return protocol


def _unknown(name: str, there: Iterable[str]) -> UnknownProtocol:
    return UnknownProtocol(f"there is no protocol {name[:64]!r}: there are {', '.join(sorted(there))}")


def installed() -> list[str]:
    """Those that are not built in."""
    built_in = [protocol.name for protocol in BUILT_IN]
    return [name for name in protocols() if name not in built_in]


def level_of(name: str) -> int:
    """That a cluster needs for domains with this protocol."""
    protocol = protocols().get(name)
    if protocol is None:
        return 0
    return protocol.level if protocol in BUILT_IN else max(protocol.level, INSTALLED_LEVEL)


def codec_of(seen: bytes) -> SeenCodec | None:
    """The codec for what a part of a session token says was seen; None if it is of a protocol that is not here.

    `seen` has a mark. Clocks have none, and need no codec.
    """
    codecs = (protocol.seen for protocol in protocols().values())
    return next((codec for codec in codecs if codec.mark and seen.startswith(codec.mark)), None)


def check_domain(
    protocol: str, settings: Mapping[str, str], level: int = LEVEL, everywhere: Iterable[str] = ()
) -> None:
    """Raises a ValueError, whose text can be shown to users, if no domain can be like this.

    In a cluster of a lower level, to the letter what the software of that level says. `everywhere` are the
    protocols of installed packages that all nodes have: whatever else is installed here does not count, for
    members that have other packages have to come to the same answer.
    """
    there = [known.name for known in BUILT_IN if known.level <= level]
    if protocol not in (*there, *everywhere):
        raise _unknown(protocol, [*there, *everywhere])
    named(protocol).parse(settings, level)


def check_group(protocol: Protocol, domain: Mapping[str, str], settings: Mapping[str, str]) -> None:
    """Raises a ValueError, whose text can be shown to users, if no group of a domain like this can have these."""
    if protocol.check_group is not None:
        protocol.check_group(domain, settings)
    elif settings:
        raise ValueError(f"groups of a domain with protocol {protocol.name} have no settings of their own")
