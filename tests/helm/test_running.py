"""Processes that are told what the chart tells its pods become a cluster, and the chart's Jobs work with it."""

import sys
from pathlib import Path

import pytest

from ordercast.local.cluster import wait_until
from ordercast.runtime.process.domains import CONVERSATIONS
from tests.helm.chart import objects
from tests.helm.policies import Way, ways_in
from tests.helm.running import Release
from tests.left_out import leave_out
from tests.unit.certificates import Authority

PORTS = {7410: "peers", 7411: "frames", 4317: "otlp"}
#: Either of the two dials.
TALKING = {frozenset(pair) for pair in (*CONVERSATIONS, ("membership", "membership"))}
SENDING = {"membership", "consensus", "sequencer", "gateway"}
GROUPS = ("domains[0].name=default", "domains[0].groups[0].name=orders", "domains[0].groups[1].name=stock")


@pytest.fixture(autouse=True)
def _addresses() -> None:
    if sys.platform != "linux":
        leave_out("pods of the chart as processes: this machine has one loopback address")


def works(made: Release) -> None:
    """Domains are created, the test of the release passes, and everybody stops in time."""
    created = made.run("Job")
    assert created.returncode == 0, created.stdout + created.stderr
    assert "created group orders\ncreated group stock" in created.stdout
    tested = made.run("Pod")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "All replicas agree" in tested.stdout
    codes = made.stop()
    assert set(codes.values()) == {0}, codes


def test_the_compact_profile_becomes_a_cluster_with_tls(tmp_path: Path):
    """Every process shows one certificate, which names all of them, and Jobs show it too."""
    settings = ("tls.requireClientCertificates=true", "helmTest.messages=20")
    with Release(objects("tls-secret", *GROUPS, *settings), tmp_path / "release") as made:
        authority = Authority("ordercast")
        addresses = [pod.address for pod in made.pods.values()]
        pair = authority.issue_peer("", dns=[*made.pods, "oc-ordercast-telemetry", *addresses])
        for file, content in (("ca.crt", authority.pem), ("tls.crt", pair.cert_pem), ("tls.key", pair.key_pem)):
            (made.tls / file).write_bytes(content)

        assert sorted({pod.component for pod in made.pods.values()}) == ["node", "telemetry"]
        made.start()
        made.wait_ready()
        assert all(pod.passes("livenessProbe") for pod in made.pods.values())
        works(made)


def test_the_separate_profile_becomes_a_cluster_in_which_nobody_talks_who_may_not(tmp_path: Path):
    """Nothing enforces NetworkPolicies here, so the connections that are there are held against them."""

    with Release(objects("default", *GROUPS, "helmTest.messages=20"), tmp_path / "release") as made:
        assert len(made.pods) == 3 + 3 + 3 + 2 + 1
        made.start()
        made.wait_ready()
        seen: set[Way] = set()

        def everybody_talks() -> bool:
            seen.update((here, there, PORTS[port]) for here, there, port in made.connections())
            frames = {frozenset(way[:2]) for way in seen if way[2] == "frames"}
            return frames >= TALKING and {way[0] for way in seen if way[2] == "otlp"} == SENDING

        wait_until("those talk who have to", everybody_talks, 60)
        assert seen <= ways_in(made.objects)
        works(made)
