"""What is looked at once a second: groups that lack members, certificates, and who the process is."""

import datetime
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from ordercast.runtime.telemetry.gauges import Gauges
from ordercast.runtime.telemetry.meters import Meters
from ordercast.telemetry.schema import names
from ordercast.v1.membership_pb2 import Group
from tests.unit.test_certificate_validity import certificate

NOW_S = 1_800_000_000.0
NOBODY: frozenset[str] = frozenset()


class NodeOfGauges(SimpleNamespace):
    """As much of a process as gauges look at."""

    def __init__(self, groups: Sequence[Group], down: frozenset[str], shown: dict[str, bytes]) -> None:
        nodes = {name: SimpleNamespace(suspected=name in down, ended=False) for name in ("n1", "n2", "n3")}
        super().__init__(
            name="n1",
            services=[],
            settings=SimpleNamespace(services=["gateway"]),
            is_read_only=False,
            telemetry=None,
            clock=SimpleNamespace(wall=lambda: NOW_S),
            storage=SimpleNamespace(free_bytes=lambda: 1000, map_room_bytes=lambda: 400, free_share=lambda: 0.25),
            host=SimpleNamespace(waiting=0, refusals={}),
            mesh=SimpleNamespace(queued=dict, resets=0),
            credentials=SimpleNamespace(shown=lambda: shown),
            directory=SimpleNamespace(
                nodes=nodes,
                domains={},
                cells={group.id: group for group in groups},
                cluster_id=b"\x01\x02",
                level=6,
            ),
        )


def looked_at(
    groups: Sequence[Group] = (), down: frozenset[str] = NOBODY, shown: dict[str, bytes] | None = None
) -> dict[str, dict[Any, float]]:
    meters = Meters()
    Gauges(NodeOfGauges(groups, down, shown or {}), meters).look()  # type: ignore[arg-type]
    return {name: getattr(meter, "values", {}) for name, meter in meters.by_name.items()}


ALL = ["n1", "n2", "n3"]


@pytest.mark.parametrize(
    ("group", "down", "missing"),
    [
        (Group(replicas=ALL), NOBODY, 0),
        (Group(replicas=ALL), frozenset({"n3"}), 1),
        (Group(replicas=ALL, lost=["n2"]), frozenset({"n3"}), 2),
        # In a group with views who is not in the view is missing, even if the node is up.
        (Group(replicas=["n1", "n2"], placement=ALL), NOBODY, 1),
    ],
)
def test_members_that_are_not_there_are_counted(group: Group, down: frozenset[str], missing: int):
    group.MergeFrom(Group(id="a#1", name="a", domain="d"))
    assert looked_at([group], down)[names.METRIC_GROUP_MISSING] == {("d", "a"): missing}


def test_a_process_says_which_cluster_it_belongs_to_and_what_it_runs():
    ((labels, value),) = looked_at()[names.METRIC_INFO].items()
    assert (labels[0], labels[2], value) == ("0102", "6", 1)


def test_the_share_of_room_is_told_beside_the_room():
    found = looked_at()
    assert found[names.METRIC_STORAGE_FREE] == {(): 400}
    assert found[names.METRIC_STORAGE_FREE_SHARE] == {(): 0.25}


def test_certificates_have_their_time_left_and_without_tls_there_are_none():
    begins = datetime.datetime.fromtimestamp(NOW_S, datetime.UTC) - datetime.timedelta(days=60)
    pem = certificate(begins, begins + datetime.timedelta(days=90))
    found = looked_at(shown={"peers": pem, "clients": b"not to be read"})
    assert found[names.METRIC_CERTIFICATE_LEFT] == {("peers",): 30 * 86400}
    assert found[names.METRIC_CERTIFICATE_LIFETIME] == {("peers",): 90 * 86400}
    assert looked_at()[names.METRIC_CERTIFICATE_LEFT] == {}
