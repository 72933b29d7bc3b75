"""`ordercast domain`: what groups can be ordered together, and by which protocol."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli import completion
from ordercast.cli.connection import Connection, connected
from ordercast.cli.exit_codes import ExitCode, fail
from ordercast.cli.output import Json, print_json, print_list, print_table, say
from ordercast.core.protocol import Protocol, Traits
from ordercast.protocols import catalogue

if TYPE_CHECKING:
    from ordercast.v1.membership_pb2 import Domain

app = typer.Typer(help="Domains: what can be ordered together, and by which protocol.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The domain.", autocompletion=completion.domains)]


@app.command("create")
@connected
def create(
    connection: Connection,
    name: Annotated[str, typer.Argument(help="The domain.")],
    protocol: Annotated[
        str, typer.Option(help="The protocol that orders its messages: see `ordercast domain protocols`.")
    ] = catalogue.DEFAULT.name,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the protocol; repeatable.")
    ] = None,
    if_missing: Annotated[
        bool, typer.Option("--if-missing", help="A domain that is there with other settings keeps them: no error.")
    ] = False,
    json: Json = False,
) -> None:
    """Create a domain. One that is there already, with this protocol and these settings, is no error.

    Examples: `ordercast domain create payments` · `ordercast domain create payments --set gossip_s=0.02`
    """
    settings = pairs(set_ or [], "--set")
    with connection.client() as client:
        domain = client.create_domain(name, protocol, settings, exist_ok=if_missing)
    if json:
        print_json(domain_document(domain))
    else:
        say(f"domain {domain.name}, ordered by {domain.protocol}")


@app.command("list")
@connected
def list_(connection: Connection, json: Json = False) -> None:
    """List the domains.

    Example: `ordercast domain list`
    """
    with connection.client() as client:
        domains = client.domains()
    headings = ("domain", "protocol", "settings")
    print_list(domains, domain_document, headings, _row, json=json)


def _row(domain: "Domain") -> tuple[str, ...]:
    return domain.name, domain.protocol, settings_text(domain.settings)


@app.command("describe")
@connected
def describe(connection: Connection, name: Name, json: Json = False) -> None:
    """Show one domain and its groups.

    Example: `ordercast domain describe default`
    """
    with connection.client() as client:
        domains = {domain.name: domain for domain in client.domains()}
        if name not in domains:
            fail(ExitCode.NOT_FOUND, f"there is no domain {name!r}")
        groups = client.groups(name)
    domain = domains[name]
    if json:
        print_json(domain_document(domain) | {"groups": [group.name for group in groups]})
        return
    say(f"domain    {domain.name}")
    say(f"protocol  {domain.protocol}")
    say(f"settings  {settings_text(domain.settings)}")
    say(f"groups    {', '.join(group.name for group in groups) or '-'}")


@app.command("protocols")
def protocols(
    name: Annotated[str | None, typer.Argument(help="Show the settings of this one.", show_default=False)] = None,
    json: Json = False,
) -> None:
    """Show the protocols that a domain can have, what they promise, and what a domain with one can set.

    Those that this software has: the built-in ones, and those of installed packages.

    Example: `ordercast domain protocols`
    """
    known = catalogue.protocols()
    if name is not None and name not in known:
        fail(ExitCode.NOT_FOUND, f"there is no protocol {name!r}: there are {', '.join(known)}")
    shown = list(known.values()) if name is None else [known[name]]
    if json:
        print_json([protocol_document(protocol) for protocol in shown])
    elif name is None:
        names = [field.name for field in fields(Traits)]
        rows = [(each.name, *(str(value) for value in asdict(each.traits).values())) for each in shown]
        print_table(("protocol", *(trait.replace("_", " ") for trait in names)), rows)
    else:
        settings = [
            (each.name, each.values, each.default, "yes" if each.of_groups else "") for each in shown[0].settings
        ]
        print_table(("setting", "values", "default", "also of a group"), settings)


def protocol_document(protocol: Protocol) -> dict[str, Any]:
    settings = [asdict(setting) for setting in protocol.settings]
    return {
        "name": protocol.name,
        "level": protocol.level,
        "traits": asdict(protocol.traits),
        "settings": settings,
    }


def domain_document(domain: "Domain") -> dict[str, Any]:
    settings = dict(sorted(domain.settings.items()))
    return {"name": domain.name, "protocol": domain.protocol, "settings": settings, "revision": domain.revision}


def settings_text(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={settings[key]}" for key in sorted(settings)) or "-"


def pairs(texts: list[str], option: str) -> dict[str, str]:
    """KEY=VALUE, each key once."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{option}: {text!r} is not KEY=VALUE")
        if key in found:
            raise typer.BadParameter(f"{option}: {key!r} is given twice")
        found[key] = value
    return found
