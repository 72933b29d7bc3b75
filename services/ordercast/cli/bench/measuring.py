"""What commands of `ordercast bench` do around a measurement: what is installed, what is said, how it ends."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ordercast.cli.exit_codes import ExitCode, fail
from ordercast.cli.output import err, print_json

if TYPE_CHECKING:
    from ordercast.bench.report import BenchReport
    from ordercast.bench.trial import Say

HOW_TO_INSTALL = "pip install 'ordercast[bench]', or `make bench` in a checkout"


def timed_say() -> "Say":
    begun = time.monotonic()
    return lambda text: err.print(f"{time.monotonic() - begun:7.1f} s  {text}", highlight=False)


def check_installed(peers: Sequence[str], *, is_plotted: bool) -> None:
    from ordercast.bench.peers.installed import missing

    lacking = missing(peers, is_plotted=is_plotted)
    if lacking:
        fail(
            ExitCode.UNAVAILABLE,
            f"not installed: {', '.join(lacking)}. They come with the extra `bench`: {HOW_TO_INSTALL}",
        )


@contextlib.contextmanager
def exit_codes() -> Iterator[None]:
    """What cannot be measured is a text on stderr, and an exit code."""
    from ordercast.bench.servers import BenchError
    from ordercast.errors import OrdercastError
    from ordercast.local.cluster import ClusterError

    try:
        yield
    except (BenchError, ClusterError, OrdercastError) as error:
        fail(ExitCode.UNAVAILABLE, str(error))


def report(measure: Callable[["Say"], "BenchReport"], save: Path | None, json: bool) -> None:
    from ordercast.bench.saving import save_report
    from ordercast.cli.bench.showing import show_report

    with exit_codes():
        found = measure(timed_say())
    if save is not None:
        save_report(found, save)
    if json:
        print_json(found.document())
    else:
        show_report(found)
