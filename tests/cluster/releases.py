"""Code of an earlier release, from the repository's history: what a cluster runs before it is upgraded."""

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: The releases that clusters are upgraded from: the tag, and the commit for clones without tags.
PREVIOUS = ("v0.5.0", "be6d92c")


def code_of_previous_release(directory: Path) -> Path:
    """Exported into this directory; what `Member.source` wants. Without it, the test is left out."""
    commit = next((found for name in PREVIOUS if (found := commit_of(name))), None)
    if commit is None:
        with (ROOT / ".left-out").open("a") as left_out:
            left_out.write(f"an upgrade from {PREVIOUS[0]}: the history with that release is not here\n")
        pytest.skip(f"no commit {' or '.join(PREVIOUS)} here")
    archive = git("archive", "--format=tar", commit, "services")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(directory, filter="data")
    return directory / "services"


def commit_of(name: str) -> str | None:
    try:
        found = git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except (OSError, subprocess.CalledProcessError):
        return None  # no git, no repository, or no such commit
    return found.stdout.decode().strip()


def git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True, timeout=60)
