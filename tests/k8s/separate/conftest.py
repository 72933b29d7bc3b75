"""Three of everything, each in pods of its own. The tests share it, and leave it as it was."""

from collections.abc import Iterator

import pytest

from tests.k8s.installation import Installation, installed


@pytest.fixture(scope="package")
def separate() -> Iterator[Installation]:
    # A node that is gone is soon taken to be over: tests wait for that.
    settings = ("gateway.replicas=3", "settings.detection.end_after_s=20")
    with installed("ordercast-separate", *settings) as made:
        yield made
