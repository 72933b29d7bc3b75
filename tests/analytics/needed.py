"""What these tests need and a machine may lack; then they are skipped, and that is written down."""

from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def need_packages() -> None:
    missing = [name for name in ("pandas", "pyarrow", "pyspark") if find_spec(name) is None]
    if missing:
        leave_out(f"tests of the Spark job: not installed: {', '.join(missing)}")


def need_spark() -> None:
    from ordercast.analytics import needs
    from ordercast.analytics.errors import AnalyticsError

    try:
        needs.check()
    except AnalyticsError as error:
        leave_out(f"tests of the Spark job: {error}")


def leave_out(text: str) -> None:
    with (ROOT / ".left-out").open("a") as left_out:
        left_out.write(f"{text}\n")
    pytest.skip(text, allow_module_level=True)
