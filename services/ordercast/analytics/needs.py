"""What the job needs beside Python: Java, and packages that are not installed with Ordercast itself.

Looked for before anything is started. Spark says nothing of use when they are missing: without pyarrow in a worker
there is only a time-out.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ordercast.analytics.errors import AnalyticsError

JAVA_MIN = 17
PACKAGES = ("pandas", "pyarrow", "pyspark")
HOW_TO_GET_JAVA = (
    "install one, such as Debian's openjdk-17-jre-headless (`make java` in a checkout), or set JAVA_HOME"
)


def check(packages: Sequence[str] = PACKAGES) -> None:
    check_packages(packages)
    check_java()


def check_packages(packages: Sequence[str] = PACKAGES) -> None:
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise AnalyticsError(
            f"not installed: {', '.join(missing)}. They come with: pip install 'ordercast[analytics]'"
        )


def check_java() -> None:
    found = java_path()
    if found is None:
        raise AnalyticsError(f"Spark needs Java {JAVA_MIN} or later, and there is none: {HOW_TO_GET_JAVA}")
    version = java_version(found)
    if version < JAVA_MIN:
        raise AnalyticsError(f"Spark needs Java {JAVA_MIN} or later, and {found} is {version}: {HOW_TO_GET_JAVA}")


def java_path() -> str | None:
    """The one that Spark will use."""
    home = os.environ.get("JAVA_HOME")
    if home:
        path = Path(home) / "bin" / "java"
        return str(path) if os.access(path, os.X_OK) else None
    return shutil.which("java")


def java_version(path: str) -> int:
    """The first number of what it says; 1.8 is 8."""
    try:
        said = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=60).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AnalyticsError(f"{path} does not run: {error}") from error
    return version_in(said)


def version_in(text: str) -> int:
    """
    >>> version_in('openjdk version "17.0.15" 2025-04-15'), version_in('java version "1.8.0_402"')
    (17, 8)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    if found is None:
        raise AnalyticsError(f"this does not look like Java: {text.strip()[:200] or 'it said nothing'}")
    return int(found[1])
