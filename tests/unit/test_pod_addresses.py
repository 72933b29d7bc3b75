"""Where pods are: which of the addresses that Kubernetes names is dialled, and when the given one."""

import pytest

from ordercast.runtime.kubernetes.pod_addresses import PodAddresses, family_of
from tests.unit.kubernetes_api import endpoint, slice_of

GIVEN = "n1.peers.orders.svc.cluster.local:7410"


def test_the_host_is_that_of_the_pod_and_the_port_is_as_given():
    pods = PodAddresses("IPv4")
    pods.replace([slice_of("peers-1", endpoint("n1", "10.1.0.1"), endpoint("n2", "10.1.0.2"))])
    assert pods.locate(GIVEN, "n1") == "10.1.0.1:7410"
    assert pods.locate("n2.peers:17411", "n2") == "10.1.0.2:17411"


def test_who_is_in_no_slice_is_looked_for_where_its_address_says():
    pods = PodAddresses("IPv4")
    assert pods.locate(GIVEN, "n1") == GIVEN
    pods.replace([slice_of("peers-1", endpoint("n1", "10.1.0.1"))])
    assert pods.locate("elsewhere:7410", "n9") == "elsewhere:7410"
    pods.clear()
    assert pods.locate(GIVEN, "n1") == GIVEN


def test_a_pod_of_two_services_stays_while_one_of_them_has_it():
    pods = PodAddresses("IPv4")
    pods.replace([slice_of("a", endpoint("n1", "10.1.0.1")), slice_of("b", endpoint("n1", "10.1.0.1"))])
    pods.remove(slice_of("a"))
    assert pods.locate(GIVEN, "n1") == "10.1.0.1:7410"
    pods.put(slice_of("b"))
    assert pods.locate(GIVEN, "n1") == GIVEN


@pytest.mark.parametrize("is_in_one_slice", [True, False])
def test_a_pod_that_leaves_gives_way_to_the_next_one_of_its_name(is_in_one_slice: bool):
    old, new = endpoint("n1", "10.1.0.1", terminating=True), endpoint("n1", "10.1.0.9", ready=False)
    pods = PodAddresses("IPv4")
    pods.replace([slice_of("a", old, new)] if is_in_one_slice else [slice_of("a", old), slice_of("b", new)])
    assert pods.locate(GIVEN, "n1") == "10.1.0.9:7410"


def test_one_that_leaves_is_still_found_while_there_is_no_other():
    pods = PodAddresses("IPv4")
    pods.replace([slice_of("a", endpoint("n1", "10.1.0.1", terminating=True))])
    assert pods.locate(GIVEN, "n1") == "10.1.0.1:7410"


def test_only_addresses_of_the_kind_that_processes_listen_at_are_dialled():
    slices = [
        slice_of("4", endpoint("n1", "10.1.0.1")),
        slice_of("6", endpoint("n1", "fd00::0:7"), family="IPv6"),
        slice_of("names", endpoint("n1", "host.example"), family="FQDN"),
    ]
    for listen, found in (("0.0.0.0:7410", "10.1.0.1:7410"), ("[::]:7410", "[fd00::7]:7410")):
        pods = PodAddresses(family_of(listen))
        pods.replace(slices)
        assert pods.locate(GIVEN, "n1") == found


def test_what_is_no_pod_has_no_name_of_a_process():
    by_hand = {"addresses": ["10.1.0.1"], "targetRef": {"kind": "Node", "name": "n1"}}
    pods = PodAddresses("IPv4")
    pods.replace([slice_of("a", by_hand, {"addresses": ["10.1.0.2"]}), {**slice_of("b"), "endpoints": None}])
    assert pods.count == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"metadata": {"name": "a"}},
        slice_of("a", endpoint("n1", "not an address")),
        slice_of("a", {"targetRef": {"kind": "Pod", "name": "n1"}}),
        slice_of("a", {"addresses": ["10.1.0.1"], "targetRef": {"kind": "Pod"}}),
        {**slice_of("a"), "endpoints": "many"},
        "a",
    ],
)
def test_what_is_no_slice_is_an_error_and_changes_nothing(wrong):
    pods = PodAddresses("IPv4")
    pods.replace([slice_of("a", endpoint("n1", "10.1.0.1"))])
    for change in (pods.put, lambda each: pods.replace([each])):
        with pytest.raises((KeyError, ValueError, TypeError, AttributeError)):
            change(wrong)
    assert pods.locate(GIVEN, "n1") == "10.1.0.1:7410"
