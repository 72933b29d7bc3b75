"""The options `--protocol` and `--ordering` of commands that make a domain of their own on a local cluster."""

import typer

from ordercast.core.protocol import Protocol
from ordercast.protocols.catalogue import protocols

#: The setting of a domain that says what it orders, where the protocol lets a domain choose.
ORDERING = "ordering"


def protocol_names() -> str:
    return " or ".join(protocols())


def choosers() -> dict[str, tuple[str, ...]]:
    """Protocols that let a domain choose what it orders, and what there is to choose from."""
    settings = {name: protocol.setting(ORDERING) for name, protocol in protocols().items()}
    return {name: setting.choices for name, setting in settings.items() if setting is not None}


def ordering_help() -> str:
    return "; ".join(f"with --protocol {name}: {' or '.join(choices)}" for name, choices in choosers().items())


def checked_protocol(name: str) -> Protocol:
    if name not in protocols():
        raise typer.BadParameter(f"--protocol takes {protocol_names()}")
    return protocols()[name]


def checked_ordering(protocol: Protocol, ordering: str | None) -> str:
    """What is asked for, or the protocol's default; empty if there is nothing to choose."""
    setting = protocol.setting(ORDERING)
    if setting is None:
        if ordering is not None:
            raise typer.BadParameter(f"--ordering is for --protocol {' or '.join(choosers())}")
        return ""
    if ordering is not None and ordering not in setting.choices:
        raise typer.BadParameter(f"--ordering takes {' or '.join(setting.choices)}")
    return ordering or setting.default
