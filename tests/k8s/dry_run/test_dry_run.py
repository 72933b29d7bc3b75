"""What the chart renders is taken by an API server, for every profile: nothing is installed."""

from collections.abc import Iterator

import pytest
import yaml

from tests.helm.chart import NAMESPACE, PROFILES, objects
from tests.k8s.kube import kubectl, make_namespace, remove_namespace
from tests.left_out import leave_out

#: The type of the first comes with Spark's operator. The second is `helm test`: a bare Pod needs an account that
#: is really there.
NOT_ASKED = ("SparkApplication", "Pod")
TYPES = ("certificates.cert-manager.io", "podmonitors.monitoring.coreos.com")


@pytest.fixture(scope="module", autouse=True)
def _namespace() -> Iterator[None]:
    there = kubectl("get", "customresourcedefinitions", "--output=name")
    if not all(each in there for each in TYPES):
        leave_out("what the API server says of monitors and certificates: the cluster does not know their types")
    make_namespace(NAMESPACE)
    yield
    remove_namespace(NAMESPACE)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_api_server_takes_all_of_it(profile: str):
    found = [each for each in objects(profile) if each["kind"] not in NOT_ASKED]
    manifest = yaml.safe_dump_all(found)
    said = kubectl(
        "--namespace", NAMESPACE, "apply", "--dry-run=server", "--validate=strict", "--filename=-", stdin=manifest
    )
    assert len(said.splitlines()) == len(found)
