"""Each profile of the chart comes to what is written down, and Kubernetes takes all of it."""

import copy
import json
from typing import Any

import kubernetes_validate
import pytest

from deploy.kubernetes.rendering import CHART, run
from tests.helm.chart import PROFILES, named, objects
from tests.helm.expected import FOLDER, expected

#: From the first version that the chart is for to the newest whose schemas there are.
VERSIONS = ("1.30", "1.34", "1.37")
#: What operators bring, and Kubernetes itself has no schema of.
OF_OPERATORS = ("cert-manager.io/", "monitoring.coreos.com/", "sparkoperator.k8s.io/")


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_comes_to_what_is_written_down(profile: str):
    assert expected(profile) == (FOLDER / f"{profile}.yaml").read_text(), "run `make helm`, and look at the diff"


def test_nothing_is_written_down_that_is_no_profile():
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(PROFILES)


def is_of_kubernetes(each: dict[str, Any]) -> bool:
    return not each["apiVersion"].startswith(OF_OPERATORS)


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_takes_every_object(version: str):
    # Many are the same in several profiles.
    found = {json.dumps(each): each for profile in PROFILES for each in filter(is_of_kubernetes, objects(profile))}
    assert len(found) > 80
    for each in found.values():
        kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "replicas"), "three"),
        (("spec", "podManagmentPolicy"), "Parallel"),
        (("spec", "template", "spec", "containers", 0, "startupProbe", "grpc"), {"prot": 7410}),
    ],
)
def test_what_kubernetes_would_not_take_is_caught(path: tuple[str | int, ...], value: object):
    broken = copy.deepcopy(named(objects(), "StatefulSet", "oc-ordercast-sequencer"))
    kubernetes_validate.validate(broken, VERSIONS[0], strict=True)
    inner: Any = broken
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSIONS[0], strict=True)


def test_helm_has_nothing_against_the_chart():
    objects()
    assert "1 chart(s) linted, 0 chart(s) failed" in run("lint", "--strict", str(CHART))


def test_no_two_objects_have_one_name():
    for profile in PROFILES:
        found = [(each["kind"], each["metadata"]["name"]) for each in objects(profile)]
        assert len(set(found)) == len(found), profile
