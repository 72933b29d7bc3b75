"""Several groups on the command line: which, from which place to which, and how their messages are printed."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli import completion
from ordercast.cli.connection import Connection, connected
from ordercast.cli.delivery_forms import Form, message_document, message_text, stored_document
from ordercast.cli.output import Json, print_json, say

if TYPE_CHECKING:
    from ordercast.client.merged_types import Cut, MergedDelivery
    from ordercast.client.sync import SyncConnection

DomainOption = Annotated[
    str | None, typer.Option("--domain", metavar="NAME", help="All groups of this domain, in its order.")
]
PatternOption = Annotated[
    str | None,
    typer.Option("--groups", metavar="PATTERN", help="Only those of --domain that match, such as 'shard-*'."),
]
UntilNow = Annotated[bool, typer.Option("--until-now", help="Several groups: stop at a cut that is made now.")]


class Groups:
    """Those that a command names: `a,b,c`, or a domain and perhaps a pattern."""

    def __init__(self, names: str | None, domain: str | None, pattern: str | None) -> None:
        self.names = [name.strip() for name in names.split(",")] if names else None
        self.domain = domain or ("default" if pattern else None)
        self.pattern = pattern
        if (self.names is None) == (self.domain is None):
            raise typer.BadParameter("name groups, such as a,b,c, or a --domain, perhaps with --groups 'shard-*'")

    @property
    def are_several(self) -> bool:
        return self.names is None or len(self.names) > 1

    @property
    def only(self) -> str:
        """The one that is named."""
        assert self.names is not None
        return self.names[0]

    @property
    def chosen(self) -> dict[str, Any]:
        return {"groups": self.names, "domain": self.domain, "pattern": self.pattern}


def parse_place(text: str | None, *, ends: bool) -> "str | Cut":
    """Where several groups begin: `earliest`, `latest`, or a cut as `ordercast cut` prints it."""
    from ordercast.client.errors import InvalidArgument
    from ordercast.client.merged_types import Cut

    if text is None:
        return "earliest" if ends else "latest"
    if text in ("earliest", "latest"):
        return text
    try:
        return Cut.parse(text)
    except InvalidArgument as error:
        raise typer.BadParameter(f"{error}. Several groups begin at earliest, at latest, or at a cut") from None


def subscription(
    client: "SyncConnection", groups: Groups, start: str | None, cursor: str | None, *, ends: bool
) -> Any:
    place = parse_place(start, ends=ends)
    return client.subscribe_merged(**groups.chosen, start=place, cursor=cursor, stop_at_end=ends)


def merged_form(*, is_json: bool) -> Form:
    return _json_form if is_json else _line_form


def _line_form(delivery: "MergedDelivery") -> bytes:
    places = " ".join(f"{group}:{offset}" for group, offset in delivery.offsets.items())
    return f"{places:>16}{message_text(delivery)}".encode()


def _json_form(delivery: "MergedDelivery") -> bytes:
    place = {"offsets": delivery.offsets, "order_key": delivery.order_key.hex(), "cut": str(delivery.cut)}
    return json.dumps({**place, **stored_document(delivery), **message_document(delivery)}).encode()


@connected
def cut(
    connection: Connection,
    groups: Annotated[
        str | None, typer.Argument(metavar="[GROUP,...]", help="The groups.", autocompletion=completion.groups)
    ] = None,
    domain: DomainOption = None,
    pattern: PatternOption = None,
    json: Json = False,
) -> None:
    """Print a place in the order behind everything that was acknowledged in these groups so far.

    A subscription that begins there gets what comes later, and one that ends there a consistent snapshot.

    Examples: `ordercast cut a,b,c` · `ordercast cut --domain ledger --groups 'shard-*'` ·
    `ordercast subscribe a,b,c --from $(ordercast cut a,b,c)`
    """
    chosen = Groups(groups, domain, pattern)
    with connection.client() as client:
        found = client.cut(**chosen.chosen)
    if json:
        print_json({"cut": str(found), "order_key": found.order_key.hex(), "index": found.index})
    else:
        say(str(found))
