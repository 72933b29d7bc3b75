"""The protocols that a domain can run, and what each lets a domain set.

A protocol's parser takes names and values as users write them, and raises a ValueError that names what is wrong.
"""

from collections.abc import Callable, Mapping

from ordercast.protocols.scalatom import settings as scalatom

Parser = Callable[[Mapping[str, str]], object]

PROTOCOLS: Mapping[str, Parser] = {"scalatom": scalatom.from_map}


class UnknownProtocol(ValueError):  # noqa: N818 (it names what happened)
    pass


def check_domain(protocol: str, settings: Mapping[str, str]) -> None:
    """Raises a ValueError, whose text can be shown to users, if no domain can be like this."""
    parse = PROTOCOLS.get(protocol)
    if parse is None:
        known = ", ".join(sorted(PROTOCOLS))
        raise UnknownProtocol(f"there is no protocol {protocol[:64]!r}: there are {known}")
    parse(settings)
