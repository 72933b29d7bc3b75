"""The version that is installed: what `ordercast.__version__` says."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def installed() -> str:
    try:
        return version("ordercast")
    except PackageNotFoundError:
        # The code runs from a folder that was never installed.
        return "unknown"
