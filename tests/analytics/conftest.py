"""One Spark session for all tests of a process, and one run over a cluster with planted faults that many look at."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.analytics.needed import need_packages, need_spark

need_packages()

from ordercast.analytics import session  # noqa: E402
from tests.analytics.planted import Planted, planted  # noqa: E402


@pytest.fixture(scope="session")
def spark() -> Iterator["object"]:
    need_spark()
    # Half of what the job has: two of these run at once.
    made = session.start(session.SessionSettings(more={"spark.driver.memory": "1g"}))
    yield made
    made.stop()


@pytest.fixture(scope="session")
def run(spark: object, tmp_path_factory: pytest.TempPathFactory) -> Planted:
    folder: Path = tmp_path_factory.mktemp("planted")
    return planted(spark, folder)
