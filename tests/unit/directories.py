"""What a process knows of the cluster, as membership would have told it."""

from collections.abc import Iterable

from ordercast.protocols.catalogue import DEFAULT
from ordercast.runtime.process.directory import Directory
from ordercast.runtime.process.settings import TlsSettings
from ordercast.runtime.transport.tls import Credentials
from ordercast.v1.membership_pb2 import Domain, Group, Node, WatchResponse


def directory_of(
    groups: Iterable[Group],
    *,
    cells: Iterable[Group] = (),
    nodes: Iterable[str] = (),
    domains: Iterable[str] = ("d",),
) -> Directory:
    directory = Directory("n1", {}, Credentials(TlsSettings()))
    directory._apply(
        WatchResponse(
            revision=1,
            reset=True,
            nodes=[Node(name=name) for name in nodes],
            domains=[Domain(name=name, protocol=DEFAULT.name) for name in domains],
            cells=cells,
            groups=groups,
        )
    )
    return directory
