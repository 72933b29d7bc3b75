"""NetworkPolicies let processes talk that have to, and nobody else."""

from typing import Any

import pytest

from ordercast.runtime.process.domains import CONVERSATIONS
from tests.helm.chart import PROFILES, component_of, container_of, objects, of_kind, pod_templates
from tests.helm.policies import COMPONENT, port_names, ways_in, ways_out

WITH_POLICIES = [profile for profile in PROFILES if profile != "compact"]
OUTSIDE = {"clients", "prometheus"}


@pytest.mark.parametrize("profile", WITH_POLICIES)
def test_whoever_is_let_out_is_let_in_and_the_other_way_round(profile: str):
    inside = {way for way in ways_in(objects(profile)) if way[0] not in OUTSIDE}
    assert inside == ways_out(objects(profile))


def test_frames_go_between_those_whose_machines_talk():
    frames = {way[:2] for way in ways_in(objects()) if way[2] == "frames"}
    # Of two the one with the lower name dials.
    talking = {*CONVERSATIONS, *((there, here) for here, there in CONVERSATIONS), ("membership", "membership")}
    assert frames == talking
    assert {way[:2] for way in ways_in(objects()) if way[2] == "peers"} >= talking


def test_everybody_reaches_membership_and_only_clients_and_jobs_reach_gateways_as_clients():
    found = ways_in(objects())
    processes = {"membership", "consensus", "sequencer", "gateway"}
    assert {way[0] for way in found if way[1:] == ("membership", "peers")} == processes
    assert {way[:2] for way in found if way[2] == "clients"} == {("clients", "gateway"), ("jobs", "gateway")}
    assert {way[:2] for way in found if way[2] == "otlp"} == {(each, "telemetry") for each in processes}


def test_in_the_compact_profile_nodes_reach_each_other():
    found = ways_in(objects("compact", "networkPolicy.enabled=true"))
    assert found == {
        ("node", "node", "peers"),
        ("node", "node", "frames"),
        ("clients", "node", "clients"),
        ("jobs", "node", "clients"),
        ("prometheus", "node", "metrics"),
    }


@pytest.mark.parametrize("profile", WITH_POLICIES)
def test_every_pod_has_a_policy_and_ports_by_names_that_it_has(profile: str):
    found = objects(profile)
    policies = {component_of(policy): policy for policy in of_kind(found, "NetworkPolicy")}
    ports: dict[str, set[str]] = {}
    for _, template in pod_templates(found):
        component = template["metadata"]["labels"][COMPONENT]
        selector = policies[component]["spec"]["podSelector"]["matchLabels"]
        assert selector.items() <= template["metadata"]["labels"].items()
        assert policies[component]["spec"]["policyTypes"] == ["Ingress", "Egress"]
        ports[component] = {port["name"] for port in container_of(template).get("ports", [])}
    for _, there, port in ways_in(found):
        if there in ports:
            assert port in ports[there]


def to_the_api_server(*settings: str) -> dict[str, list[Any]]:
    """By component: the rules by which it may be reached."""
    policies = of_kind(objects("default", *settings), "NetworkPolicy")
    rules = {component_of(each): each["spec"]["egress"] for each in policies}
    return {
        component: found
        for component, each in rules.items()
        if (found := [rule for rule in each if port_names(rule)[-1] == "6443"])
    }


def test_those_who_ask_kubernetes_where_pods_are_reach_its_api_server_and_nobody_else_does():
    found = to_the_api_server()
    assert found.keys() == {"membership", "consensus", "sequencer", "gateway"}
    for (rule,) in found.values():
        assert (port_names(rule), "to" in rule) == (["443", "6443"], False)
    assert to_the_api_server("discovery.enabled=false") == {}


def test_values_say_where_the_api_server_is():
    settings = ("networkPolicy.apiServer.to[0].ipBlock.cidr=192.0.2.1/32", "networkPolicy.apiServer.ports={6443}")
    for (rule,) in to_the_api_server(*settings).values():
        assert rule["to"] == [{"ipBlock": {"cidr": "192.0.2.1/32"}}]
        assert port_names(rule) == ["6443"]


def test_policies_can_be_left_out():
    assert of_kind(objects("default", "networkPolicy.enabled=false"), "NetworkPolicy") == []


def test_values_say_who_is_outside():
    policies: dict[str, Any] = {component_of(p): p for p in of_kind(objects("production"), "NetworkPolicy")}
    rules = policies["gateway"]["spec"]["ingress"]
    (clients,) = [
        rule for rule in rules if port_names(rule) == ["clients"] and "namespaceSelector" in rule["from"][0]
    ]
    assert clients["from"] == [
        {"namespaceSelector": {"matchLabels": {"orders": "client"}}},
        {"ipBlock": {"cidr": "10.0.0.0/8"}},
    ]
    (scraping,) = [rule for rule in rules if port_names(rule) == ["metrics"]]
    names = scraping["from"][0]["namespaceSelector"]["matchLabels"]
    assert names == {"kubernetes.io/metadata.name": "monitoring"}
