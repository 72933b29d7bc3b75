"""A cluster to install on, and what it looks like when a test fails."""

from collections.abc import Generator

import pytest

from tests.k8s.installation import present
from tests.k8s.kube import require_cluster


@pytest.fixture(scope="session", autouse=True)
def _cluster() -> None:
    require_cluster()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        for each in present:
            report.sections += [(f"{each.namespace}: {title}", text) for title, text in each.report()]
    return report
