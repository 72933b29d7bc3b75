"""Waiting until the cluster has done something that takes its time: what is shown, and how it ends.

The cluster does it by itself. Whoever stops waiting only stops watching.
"""

import time
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Self

import typer

from ordercast.cli.connection import TIMEOUT_S_MAX
from ordercast.cli.exit_codes import ExitCode, fail

if TYPE_CHECKING:
    from rich.status import Status

LOOK_S = 0.5
#: Where lines cannot be replaced, numbers that rise are told no more often than this.
REPEAT_S = 10.0

NoWait = Annotated[bool, typer.Option("--no-wait", help="Return when it is agreed, before it is done.")]
Patience = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        min=0.001,
        max=TIMEOUT_S_MAX,
        metavar="SECONDS",
        help="How long to wait until it is done; as long as it takes, if not given.",
        show_default=False,
    ),
]


class WaitDisplay:
    """Progress on stderr: a line that changes on a terminal, otherwise a line for each stage."""

    def __init__(self, timeout_s: float | None, hint: str) -> None:
        """`hint` says where to look for somebody who does not wait any longer."""
        self._timeout_s = timeout_s
        self._hint = hint
        self._begun = time.monotonic()
        self._status: Status | None = None
        self._stage = ""
        self._numbers = ""
        self._told_at = 0.0

    def __enter__(self) -> Self:
        from ordercast.cli.consoles import err

        if err.is_terminal:
            self._status = err.status("")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()
        if error is not None and is_only_the_watching(error):
            note(f"the cluster goes on with it: {self._hint}")

    def tell(self, stage: str, numbers: str = "") -> None:
        """What is under way. A new stage is news, and so are its first numbers; that they rise is not."""
        text = f"{stage} ({numbers})" if numbers else stage
        now = time.monotonic()
        if self._status is not None:
            from rich.text import Text

            self._status.update(Text(text))
        elif stage != self._stage or (numbers and (not self._numbers or now - self._told_at >= REPEAT_S)):
            note(text)
            self._told_at = now
        self._stage, self._numbers = stage, numbers

    def pause(self) -> None:
        """Until it is time to look again; ends the command if it is too late for that."""
        if self._timeout_s is not None:
            left = self._begun + self._timeout_s - time.monotonic()
            if left <= 0:
                doing = f" ({self._stage})" if self._stage else ""
                message = f"not done after {self._timeout_s:g} s{doing}; the cluster goes on with it: {self._hint}"
                fail(ExitCode.UNAVAILABLE, message)
            time.sleep(min(LOOK_S, left))
        else:
            time.sleep(LOOK_S)


def is_only_the_watching(error: BaseException) -> bool:
    """Ended by Ctrl-C, or since no gateway answers: neither stops what is under way."""
    from ordercast.client.errors import DeadlineExceeded, Unavailable

    return isinstance(error, KeyboardInterrupt | Unavailable | DeadlineExceeded)


def note(text: str) -> None:
    from ordercast.cli.consoles import err

    err.print(text, markup=False, highlight=False, soft_wrap=True)
