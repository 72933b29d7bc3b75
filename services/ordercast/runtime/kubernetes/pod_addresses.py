"""Where pods are, as Kubernetes says in EndpointSlices: the address of a process whose name is that of its pod.

Written by the thread that follows Kubernetes (endpoint_slices.py), and read by whoever dials: each change makes a
new table. A process that is not in it is looked for where its own address says, by DNS.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from ordercast.runtime.process.settings import split_address

Family = Literal["IPv4", "IPv6"]


class Found(NamedTuple):
    #: A pod that is being deleted stays listed for a while; the next one of its name is the better choice.
    is_leaving: bool
    address: str


def family_of(address: str) -> Family:
    """In which family a listener at host:port is reached: one at 0.0.0.0 has no IPv6 address."""
    return "IPv6" if ":" in split_address(address)[0] else "IPv4"


def pods_of(endpoint_slice: Mapping[str, Any], family: Family) -> dict[str, Found]:
    """The pods in an EndpointSlice (discovery.k8s.io/v1), by name. Any exception, if it is none."""
    if endpoint_slice["addressType"] != family:
        return {}
    pods: dict[str, Found] = {}
    for endpoint in endpoint_slice.get("endpoints") or ():
        target = endpoint.get("targetRef") or {}
        if target.get("kind") != "Pod":
            continue
        # Kubernetes promises one at least; all of them are the same pod.
        address = str(ipaddress.ip_address(endpoint["addresses"][0]))
        found = Found(bool((endpoint.get("conditions") or {}).get("terminating")), address)
        name = str(target["name"])
        pods[name] = min(found, pods.get(name, found))
    return pods


class PodAddresses:
    def __init__(self, family: Family) -> None:
        self._family = family
        self._slices: dict[str, dict[str, Found]] = {}
        self._addresses: dict[str, str] = {}

    def locate(self, address: str, process: str) -> str:
        """host:port where this process is: the port as given, and the host too, if Kubernetes does not say."""
        found = self._addresses.get(process)
        if found is None:
            return address
        _, port = split_address(address)
        return f"[{found}]:{port}" if ":" in found else f"{found}:{port}"

    @property
    def count(self) -> int:
        return len(self._addresses)

    # ------------------------------------------------------------------------------- of the one that follows

    def replace(self, slices: Iterable[Mapping[str, Any]]) -> None:
        self._slices = {each["metadata"]["name"]: pods_of(each, self._family) for each in slices}
        self._join()

    def put(self, endpoint_slice: Mapping[str, Any]) -> None:
        self._slices[endpoint_slice["metadata"]["name"]] = pods_of(endpoint_slice, self._family)
        self._join()

    def remove(self, endpoint_slice: Mapping[str, Any]) -> None:
        self._slices.pop(endpoint_slice["metadata"]["name"], None)
        self._join()

    def clear(self) -> None:
        self._slices = {}
        self._join()

    def _join(self) -> None:
        """A pod is in the slices of every Service that chooses it."""
        found: dict[str, Found] = {}
        for _, pods in sorted(self._slices.items()):
            for name, each in pods.items():
                known = found.get(name)
                if known is None or (known.is_leaving and not each.is_leaving):
                    found[name] = each
        self._addresses = {name: each.address for name, each in found.items()}
