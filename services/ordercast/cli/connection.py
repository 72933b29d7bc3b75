"""How commands reach a cluster: the options that they share, and what an error of the cluster means for a script.

A command that takes a `Connection` is declared with `@connected`: its command line gets the options instead.
"""

import contextlib
import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli.exit_codes import ExitCode, fail, of_status
from ordercast.cli.listeners import reasons_for_nobody
from ordercast.cli.option_groups import put_in_place_of

if TYPE_CHECKING:
    import grpc

    from ordercast.client.sync import SyncConnection
    from ordercast.client.types import TLS

GATEWAY_DEFAULT = "127.0.0.1:7400"
#: Not ORDERCAST_: that prefix is for the settings of processes, which refuse what they do not know.
GATEWAY_VARIABLE = "ORDERCASTCTL_GATEWAY"
GATEWAYS_MAX = 64
TIMEOUT_S_DEFAULT = 10.0
TIMEOUT_S_MAX = 86_400.0
PORT_MAX = 65_535

_PANEL = "Connection"


def _pem_file(help_: str) -> tuple[Any, None]:
    option = typer.Option(exists=True, dir_okay=False, metavar="FILE", help=help_, rich_help_panel=_PANEL)
    return Annotated[Path | None, option], None


_OPTIONS: dict[str, tuple[Any, Any]] = {
    "gateway": (
        Annotated[
            str,
            typer.Option(
                "--gateway",
                "-g",
                envvar=GATEWAY_VARIABLE,
                metavar="HOST:PORT[,...]",
                help="Gateways of the cluster; the first one that answers is used.",
                rich_help_panel=_PANEL,
            ),
        ],
        GATEWAY_DEFAULT,
    ),
    "timeout": (
        Annotated[
            float | None,
            typer.Option(
                min=0.001,
                max=TIMEOUT_S_MAX,
                metavar="SECONDS",
                help="How long to wait for an answer. If given, a gateway need not listen yet.",
                show_default=f"{TIMEOUT_S_DEFAULT:g}",
                rich_help_panel=_PANEL,
            ),
        ],
        None,
    ),
    "ca": _pem_file("Use TLS, and trust gateways whose certificate this authority signed (PEM)."),
    "cert": _pem_file("Our own certificate (PEM)."),
    # Not --key: that is the key of a message.
    "cert_key": _pem_file("The key of --cert (PEM)."),
    "server_name": (
        Annotated[
            str | None,
            typer.Option(
                metavar="NAME",
                help="What the gateways' certificate says, if it is not the host that is dialled.",
                rich_help_panel=_PANEL,
            ),
        ],
        None,
    ),
}


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the cluster is, and how long to wait for it."""

    gateways: tuple[str, ...]
    timeout_s: float
    tls: "TLS | None"
    #: If nobody listens, somebody may soon: wait for that, too.
    is_patient: bool = False

    def client(self, producer: str | None = None) -> "SyncConnection":
        """To be used with `with`."""
        from ordercast.client.sync import connect_sync

        self._look()
        return connect_sync(*self.gateways, producer=producer, tls=self.tls, timeout=self.timeout_s)

    @contextlib.contextmanager
    def channel(self) -> Iterator["grpc.Channel"]:
        """To the first gateway that can be reached, for what speaks the wire contract itself."""
        import grpc

        from ordercast.client.errors import Unavailable
        from ordercast.client.transport import sync_channel

        self._look()
        for address in self.gateways:
            with sync_channel(address, self.tls) as channel:
                try:
                    grpc.channel_ready_future(channel).result(timeout=self.timeout_s / len(self.gateways))
                except grpc.FutureTimeoutError:
                    continue
                yield channel
                return
        raise Unavailable(f"no gateway answers at {', '.join(self.gateways)} within {self.timeout_s:g} s")

    def _look(self) -> None:
        """Without a server there is nothing to wait for."""
        from ordercast.client.errors import Unavailable

        reasons = [] if self.is_patient else reasons_for_nobody(self.gateways)
        if reasons:
            hint = "`ordercast up` starts a cluster on this machine"
            elsewhere = f"--gateway, or {GATEWAY_VARIABLE} in the environment, says where another one is"
            raise Unavailable(f"{', '.join(reasons)}: {hint}; {elsewhere}")


# ----------------------------------------------------------------------------------------------- the decorator


def connected(command: Callable[..., None]) -> Callable[..., None]:
    """The command line gets the options of a connection in place of the parameter `connection`.

    Errors of the cluster end the command with the exit code that they mean; so does a reader that went away.
    """
    options = dict(_OPTIONS)
    # A command that waits until something is done has a --timeout for that, and the usual one for each answer.
    # One that finds gateways by itself has a --gateway that may be left out.
    for name in ("timeout", "gateway"):
        if name in inspect.signature(command).parameters:
            del options[name]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        chosen: dict[str, Any] = {name: given.pop(name) for name in options}
        chosen.setdefault("gateway", given.get("gateway") or GATEWAY_DEFAULT)
        until_done = given.get("timeout")
        chosen.setdefault("timeout", until_done and min(until_done, TIMEOUT_S_DEFAULT))
        connection = connection_of(**chosen)
        with exit_codes(connection.gateways), quiet_end():
            command(connection=connection, **given)

    put_in_place_of("connection", options, command, run)
    return run


def connection_of(
    gateway: str,
    timeout: float | None,
    ca: Path | None,
    cert: Path | None,
    cert_key: Path | None,
    server_name: str | None,
) -> Connection:
    tls = _tls(ca, cert, cert_key, server_name)
    return Connection(_addresses(gateway), timeout or TIMEOUT_S_DEFAULT, tls, is_patient=timeout is not None)


def _addresses(text: str) -> tuple[str, ...]:
    """
    >>> _addresses("10.0.0.1:7400, [::1]:7401")
    ('10.0.0.1:7400', '[::1]:7401')
    """
    addresses = tuple(part.strip() for part in text.split(",") if part.strip())
    if not 0 < len(addresses) <= GATEWAYS_MAX:
        raise typer.BadParameter(f"--gateway names 1 to {GATEWAYS_MAX} gateways, not {len(addresses)}")
    for address in addresses:
        check_address("--gateway", address)
    return addresses


def check_address(option: str, address: str) -> None:
    host, _, port = address.rpartition(":")
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) <= PORT_MAX
    if not host or not is_port or any(character.isspace() or character == "/" for character in host):
        raise typer.BadParameter(f"{option}: {address!r} is not HOST:PORT")


def _tls(ca: Path | None, cert: Path | None, key: Path | None, server_name: str | None) -> "TLS | None":
    check_tls(ca, cert, key, server_name)
    if ca is None:
        return None
    from ordercast.client.types import TLS

    return TLS(ca, cert, key, server_name)


def check_tls(ca: Path | None, cert: Path | None, key: Path | None, server_name: str | None) -> None:
    """What belongs together is there together."""
    if (cert is None) != (key is None):
        raise typer.BadParameter("--cert and --cert-key go together")
    for name, given in (("cert", cert), ("server-name", server_name)):
        if ca is None and given is not None:
            raise typer.BadParameter(f"--{name} needs --ca: without it there is no TLS")
    if server_name is not None and not server_name.strip():
        raise typer.BadParameter("--server-name is empty")


# ------------------------------------------------------------------------------------------------------ errors


@contextlib.contextmanager
def exit_codes(asked: tuple[str, ...] = ()) -> Iterator[None]:
    """Errors of the cluster become a text on stderr and an exit code."""
    import grpc

    from ordercast.client.errors import OrdercastError, Unimplemented

    try:
        yield
    except Unimplemented as error:
        where = f" (asked: {', '.join(asked)})" if asked else ""
        fail(of_status(error.code), f"{error.message}{where}")
    except OrdercastError as error:
        fail(of_status(error.code), error.message)
    except grpc.RpcError as error:
        if not isinstance(error, grpc.Call):
            raise
        fail(of_status(error.code().name), error.details() or error.code().name)


@contextlib.contextmanager
def quiet_end() -> Iterator[None]:
    """`ordercast subscribe ... | head` is no failure."""
    try:
        yield
    except BrokenPipeError:
        # Whatever is still buffered goes nowhere, instead of failing once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(ExitCode.OK) from None
