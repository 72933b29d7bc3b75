"""The protocols that a domain can run, and what each lets a domain set.

A protocol's parser takes names and values as users write them, and raises a ValueError that names what is wrong.
"""

from collections.abc import Callable, Mapping

from ordercast.core.level import LEVEL
from ordercast.protocols.isis import settings as isis
from ordercast.protocols.scalatom import settings as scalatom

#: Of a domain's settings, in a cluster of some level.
Parser = Callable[[Mapping[str, str], int], object]
#: Of a group's settings, given its domain's.
GroupCheck = Callable[[Mapping[str, str], Mapping[str, str]], None]

PROTOCOLS: Mapping[str, Parser] = {"isis": isis.from_map, "scalatom": scalatom.from_map}
#: Those whose groups have settings of their own.
GROUP_CHECKS: Mapping[str, GroupCheck] = {"isis": isis.check_group}
#: The level (core/level.py) that a cluster needs for them, if they have not been there from the beginning.
LEVELS: Mapping[str, int] = {"isis": 2}
#: Those whose groups have views: membership defines one after the other, as processes come and go.
WITH_VIEWS = ("isis",)


class UnknownProtocol(ValueError):  # noqa: N818 (it names what happened)
    pass


def level_of(protocol: str) -> int:
    """That a cluster needs for domains with this protocol."""
    return LEVELS.get(protocol, 0)


def check_domain(protocol: str, settings: Mapping[str, str], level: int = LEVEL) -> None:
    """Raises a ValueError, whose text can be shown to users, if no domain can be like this.

    In a cluster of a lower level, to the letter what the software of that level says.
    """
    there = {name: parse for name, parse in PROTOCOLS.items() if level_of(name) <= level}
    parse = there.get(protocol)
    if parse is None:
        known = ", ".join(sorted(there))
        raise UnknownProtocol(f"there is no protocol {protocol[:64]!r}: there are {known}")
    parse(settings, level)


def check_group(protocol: str, domain: Mapping[str, str], settings: Mapping[str, str]) -> None:
    """Raises a ValueError, whose text can be shown to users, if no group of a domain like this can have these."""
    check = GROUP_CHECKS.get(protocol)
    if check is not None:
        check(domain, settings)
    elif settings:
        raise ValueError(f"groups of a domain with protocol {protocol} have no settings of their own")
