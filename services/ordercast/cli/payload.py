"""Where the message of `ordercast publish` comes from: the command line, a file, or stdin as a whole."""

import sys
from pathlib import Path

import typer

from ordercast.core.limits import PAYLOAD_BYTES_MAX

#: In place of a message, or of a file's name.
STDIN = "-"


def payload_of(groups: str, message: str | None, file: Path | None) -> bytes:
    """At most one of `message` and `file` is given. Without both, it is stdin, if somebody writes there."""
    if file is not None and str(file) != STDIN:
        return _checked(_content(file), str(file))
    if message is not None and message != STDIN:
        return message.encode(errors="surrogateescape")
    if message is None and file is None and sys.stdin.isatty():
        raise typer.BadParameter(
            f"what is to be published? Give it as MESSAGE: `ordercast publish {groups} 'hello'`; or write it to "
            f"stdin: `echo hello | ordercast publish {groups}`. --lines makes each line of stdin a message"
        )
    return _checked(_stdin(groups), "stdin")


def _content(file: Path) -> bytes:
    """A message that is too large is not read to its end."""
    try:
        with file.open("rb") as opened:
            return opened.read(PAYLOAD_BYTES_MAX + 1)
    except OSError as error:
        raise typer.BadParameter(f"--file: {file}: {error.strerror}") from error


def _stdin(groups: str) -> bytes:
    """Nothing at all is more often a command before the pipe that failed than a message without content."""
    content = sys.stdin.buffer.read(PAYLOAD_BYTES_MAX + 1)
    if not content:
        raise typer.BadParameter(
            "stdin is empty, and nothing was published. A message without content is "
            f"`ordercast publish {groups} ''`"
        )
    return content


def _checked(content: bytes, source: str) -> bytes:
    if len(content) > PAYLOAD_BYTES_MAX:
        raise typer.BadParameter(f"{source} has more than {PAYLOAD_BYTES_MAX} bytes: no message can")
    return content
