"""Files for nobody but their owner: a data directory has all payloads in it, and the key of tokens."""

import contextlib
import os
import stat
from pathlib import Path

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
#: What group and others could do.
OTHERS = 0o077


def make_private(directory: Path) -> None:
    """Makes the directory, if it is not there, and closes it and its files to others; OSError if it cannot do so.

    What is another user's stays as it is, such as a volume that was mounted for a group.
    """
    directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    for path in (directory, *directory.iterdir()):
        # A file may be gone meanwhile, and a file system may have no modes.
        with contextlib.suppress(OSError):
            found = path.lstat()
            is_ours = found.st_uid == os.geteuid() and (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode))
            if is_ours and found.st_mode & OTHERS:
                path.chmod(stat.S_IMODE(found.st_mode) & ~OTHERS)
