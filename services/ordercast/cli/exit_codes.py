"""How commands end, as scripts see it: one table, and which error means which code."""

from enum import IntEnum
from typing import NoReturn

import typer


class ExitCode(IntEnum):
    OK = 0
    NO = 1
    USAGE = 2
    NOT_FOUND = 3
    ALREADY_EXISTS = 4
    REFUSED = 5
    UNAVAILABLE = 6
    OUT_OF_RANGE = 7


MEANINGS: dict[ExitCode, str] = {
    ExitCode.OK: "done",
    ExitCode.NO: "the answer is no: not healthy, a problem was found, not stopped cleanly",
    ExitCode.USAGE: "wrong usage",
    ExitCode.NOT_FOUND: "not found",
    ExitCode.ALREADY_EXISTS: "already exists",
    ExitCode.REFUSED: "refused, or an invalid argument",
    ExitCode.UNAVAILABLE: "unavailable, or timed out",
    ExitCode.OUT_OF_RANGE: "out of range: the log has no such offset",
}

#: One line, for the help.
SUMMARY = "Exit codes: " + " · ".join(f"{code.value} {meaning}" for code, meaning in MEANINGS.items())

#: By the name of the gRPC status. Whatever is not here was refused.
_OF_STATUS: dict[str, ExitCode] = {
    "NOT_FOUND": ExitCode.NOT_FOUND,
    "ALREADY_EXISTS": ExitCode.ALREADY_EXISTS,
    "OUT_OF_RANGE": ExitCode.OUT_OF_RANGE,
    "UNAVAILABLE": ExitCode.UNAVAILABLE,
    "DEADLINE_EXCEEDED": ExitCode.UNAVAILABLE,
    "RESOURCE_EXHAUSTED": ExitCode.UNAVAILABLE,
    "ABORTED": ExitCode.UNAVAILABLE,
    "CANCELLED": ExitCode.UNAVAILABLE,
    # Not the caller's fault: the cluster could not do it this time.
    "INTERNAL": ExitCode.UNAVAILABLE,
    "UNKNOWN": ExitCode.UNAVAILABLE,
    "DATA_LOSS": ExitCode.UNAVAILABLE,
}


def of_status(status: str) -> ExitCode:
    return _OF_STATUS.get(status, ExitCode.REFUSED)


def fail(code: ExitCode, message: str) -> NoReturn:
    """Says on stderr what is wrong; stdout stays free for what was asked for."""
    from ordercast.cli.consoles import err

    err.print(f"error: {message}", style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(code)
