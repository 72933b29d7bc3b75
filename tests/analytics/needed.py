"""What these tests need and a machine may lack; then they are skipped, and that is written down."""

from importlib.util import find_spec

from tests.left_out import leave_out


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
