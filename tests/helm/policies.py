"""Who may talk to whom, as the NetworkPolicies of the chart say."""

from collections.abc import Iterator

from tests.helm.chart import Object, component_of, of_kind

#: From, to, port.
Way = tuple[str, str, str]
COMPONENT = "app.kubernetes.io/component"


def peers(rule: Object, side: str, outside: str) -> Iterator[str]:
    for peer in rule[side]:
        labels = peer.get("podSelector", {}).get("matchLabels", {})
        yield labels.get(COMPONENT, outside)


def port_names(rule: Object) -> list[str]:
    return [str(port["port"]) for port in rule.get("ports", [{"port": "any"}])]


def ways_in(found: list[Object]) -> set[Way]:
    """As those let in who are called."""
    ways = set()
    for policy in of_kind(found, "NetworkPolicy"):
        for rule in policy["spec"]["ingress"] or []:
            for port in port_names(rule):
                outside = "prometheus" if port == "metrics" else "clients"
                ways |= {(peer, component_of(policy), port) for peer in peers(rule, "from", outside)}
    return ways


def ways_out(found: list[Object]) -> set[Way]:
    """As those let out who call; without DNS, and what values add."""
    ways = set()
    for policy in of_kind(found, "NetworkPolicy"):
        for rule in policy["spec"]["egress"]:
            if "to" in rule:
                for port in port_names(rule):
                    ways |= {(component_of(policy), peer, port) for peer in peers(rule, "to", "added")}
    return {way for way in ways if way[1] != "added"}
