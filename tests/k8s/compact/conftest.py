"""Three pods with everything in each, whose data is on a small disk that can be filled."""

from collections.abc import Iterator

import pytest

from tests.k8s.installation import Installation, installed

#: In memory, for any cluster can make these, and they have an end.
DISK = {"name": "small", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}}
MOUNT = {"name": "small", "mountPath": "/var/lib/ordercast/data"}


SETTINGS = ("profile=compact", "telemetry.enabled=false")
DOMAINS = (
    "domains[0].name=default",
    "domains[0].groups[0].name=orders",
    "domains[1].name=chat",
    "domains[1].protocol=isis",
    "domains[1].groups[0].name=room",
)


@pytest.fixture(scope="package")
def compact() -> Iterator[Installation]:
    with installed("ordercast-compact", *SETTINGS, *DOMAINS) as made:
        yield made


@pytest.fixture
def on_small_disks() -> Iterator[Installation]:
    mounted = {"extraVolumes": [DISK], "extraVolumeMounts": [MOUNT]}
    # What a process keeps free for itself must not be all of it.
    reserve = "settings.storage.reserve_bytes=8388608"
    with installed("ordercast-small-disks", *SETTINGS, reserve, values={"pods": mounted}) as made:
        yield made
