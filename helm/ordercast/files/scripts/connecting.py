"""How the chart's scripts reach the cluster: with options as `ordercast` has them, and with patience."""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import ordercast
from ordercast.client.errors import (
    AlreadyExists,
    InvalidArgument,
    OrdercastError,
    PermissionDenied,
    Unauthenticated,
)

#: Asking again does not change these answers.
FINAL = (AlreadyExists, InvalidArgument, PermissionDenied, Unauthenticated)
PAUSE_S = 1.0

T = TypeVar("T")


def parser(what: str | None) -> argparse.ArgumentParser:
    """With the options of a connection."""
    made = argparse.ArgumentParser(description=what, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--gateway", required=True, metavar="HOST:PORT[,...]")
    for name in ("ca", "cert", "cert-key"):
        made.add_argument(f"--{name}", type=Path, metavar="FILE")
    return made


def connect(options: argparse.Namespace) -> ordercast.SyncConnection:
    """To be used with `with`."""
    tls = ordercast.TLS(options.ca, options.cert, options.cert_key) if options.ca else None
    return ordercast.connect_sync(*options.gateway.split(","), tls=tls)


def as_arguments(options: argparse.Namespace) -> list[str]:
    """The same, for `ordercast` itself."""
    given = {"ca": options.ca, "cert": options.cert, "cert-key": options.cert_key}
    return [f"--gateway={options.gateway}", *(f"--{name}={path}" for name, path in given.items() if path)]


def patiently(action: Callable[[], T], until: float) -> T:
    """A cluster that has just been installed says no for a while: nobody answers, or too few nodes are there.

    `until` is a time of the monotonic clock.
    """
    said = ""
    while True:
        try:
            return action()
        except OrdercastError as error:
            if isinstance(error, FINAL) or time.monotonic() > until:
                raise
            if said != error.message:
                print(f"waiting: {error.message}", flush=True)
                said = error.message
        time.sleep(PAUSE_S)
