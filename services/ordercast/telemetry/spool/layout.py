"""The directory of a spool: which files there are, what they are called, and who may use it.

`spool.json` says which spool it is. `<first>.otlp` is a segment with requests as they came, `<first>-<end>.arrow`
a sealed one with the records from the first offset up to but without the last. `*.damaged` was set aside: nobody
reads it but people. `*.tmp` is of no use without the process that wrote it.
"""

import fcntl
import json
import os
import re
import secrets
import time
from pathlib import Path
from typing import NamedTuple

from ordercast.runtime.storage.private_files import FILE_MODE, make_private

IDENTITY = "spool.json"
LOCK = "process.lock"
FORMAT = 1
OPEN_NAME = re.compile(r"(\d{20})\.otlp")
SEALED_NAME = re.compile(r"(\d{20})-(\d{20})\.arrow")
#: The sealer of a process that was killed ends when it is done with what it has in hand.
LOCK_S_MAX = 30.0
LOCK_PAUSE_S = 0.05
#: Files that were set aside.
DAMAGED_MAX = 64


class SpoolDirectoryError(Exception):
    """The directory cannot be used as a spool."""


class Identity(NamedTuple):
    spool_id: str
    #: Where the checksums of frames begin.
    salt: int


def open_path(directory: Path, first: int) -> Path:
    return directory / f"{first:020d}.otlp"


def sealed_path(directory: Path, first: int, end: int) -> Path:
    return directory / f"{first:020d}-{end:020d}.arrow"


def open_segments(directory: Path) -> list[tuple[int, Path]]:
    """By their first offset."""
    found = ((OPEN_NAME.fullmatch(path.name), path) for path in directory.iterdir())
    return sorted((int(match[1]), path) for match, path in found if match)


def sealed_segments(directory: Path) -> list[tuple[int, int, Path]]:
    """By their first offset; of those that begin together the longest comes first."""
    found = ((SEALED_NAME.fullmatch(path.name), path) for path in directory.iterdir())
    listed = [(int(match[1]), int(match[2]), path) for match, path in found if match]
    return sorted(listed, key=lambda each: (each[0], -each[1]))


def set_aside(path: Path) -> Path:
    """Kept for people to look at."""
    aside = path.with_name(path.name + ".damaged")
    path.rename(aside)
    sync_directory(path.parent)
    return aside


def forget_old_damage(directory: Path) -> None:
    """Of what was set aside only the latest is kept."""
    found = sorted(directory.glob("*.damaged"), key=lambda path: path.stat().st_mtime_ns)
    for path in found[:-DAMAGED_MAX]:
        path.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """It is there as a whole and on disk, or not at all."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    except BaseException:
        # It is tried again, and a full disk would be filled up with attempts.
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    sync_directory(path.parent)


def remove_leftovers(directory: Path) -> None:
    for path in directory.glob("*.tmp"):
        path.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(directory: Path) -> int:
    """A descriptor that holds the directory. A sealer inherits it: the next process waits for both."""
    try:
        make_private(directory)
        descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    except OSError as error:
        raise SpoolDirectoryError(f"{directory}: {error.strerror}") from error
    until = time.monotonic() + LOCK_S_MAX
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if time.monotonic() > until:
                os.close(descriptor)
                raise SpoolDirectoryError(f"{directory}: another process uses it") from None
            time.sleep(LOCK_PAUSE_S)


def identify(directory: Path) -> Identity:
    """Of the spool that is there, or of a new one if the directory has none."""
    path = directory / IDENTITY
    if not path.exists():
        if open_segments(directory) or sealed_segments(directory):
            raise SpoolDirectoryError(f"{path}: missing, and there are segments")
        made = {"format": FORMAT, "spool_id": secrets.token_hex(16), "salt": secrets.randbits(32)}
        write_whole(path, json.dumps(made).encode())
    try:
        known = json.loads(path.read_bytes())
        version, identity = known["format"], Identity(str(known["spool_id"]), int(known["salt"]) & 0xFFFFFFFF)
    except (ValueError, KeyError, TypeError) as error:
        raise SpoolDirectoryError(f"{path}: damaged: {error}") from error
    if version != FORMAT:
        raise SpoolDirectoryError(f"{path}: has the format {version!r}; this version knows {FORMAT}")
    return identity
