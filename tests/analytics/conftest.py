"""One Spark session for all tests of a process, and one run over planted faults that many of them look at."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.analytics.needed import need_packages, need_spark

need_packages()

from ordercast.analytics import session  # noqa: E402
from tests.analytics.planted import Planted, planted  # noqa: E402

#: The first of these tests starts Spark and runs the whole job; on a busy machine that takes minutes.
PATIENCE_S = 900
# A JVM that lives for a minute does better without its second compiler. The job's own process inherits it.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=128m")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(PATIENCE_S))


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
