"""Three of everything, each in pods of its own. The tests share it, and leave it as it was."""

from collections.abc import Iterator

import pytest

from tests.k8s.installation import Installation, installed


@pytest.fixture(scope="package")
def separate() -> Iterator[Installation]:
    # A node that was removed is over before the tests are.
    settings = ("gateway.replicas=3", "settings.detection.end_after_s=60")
    with installed("ordercast-separate", *settings) as made:
        yield made
