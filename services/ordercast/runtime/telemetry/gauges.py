"""What is looked at once a second, because nobody says when it changes."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import structlog

from ordercast.core.ids import group_name
from ordercast.core.members import places_of
from ordercast.core.quorums import has_majority
from ordercast.runtime.telemetry.meters import Labels, Meters
from ordercast.runtime.transport.certificates import Validity, validity
from ordercast.telemetry.schema import names
from ordercast.version import installed

if TYPE_CHECKING:
    from ordercast.runtime.process.node import Node

log = structlog.get_logger("telemetry")

#: Reasons that are told one by one; the words of others would be as many as their mistakes.
MALFORMED, UNEXPECTED, WRONG = "malformed", "unexpected", "refused"


class Gauges:
    def __init__(self, node: "Node", meters: Meters) -> None:
        self.node = node
        self.meters = meters
        self._views: dict[str, int] = {}
        #: By certificate: how long it is good, so that each is read once.
        self._validities: dict[bytes, Validity | None] = {}

    def look(self) -> None:
        self._process()
        self._certificates()
        self._links()
        self._groups()
        for service in self.node.services:
            service.measure(self.meters)

    def _process(self) -> None:
        node, meters = self.node, self.meters
        meters.gauge(names.METRIC_STORAGE_FREE).set(min(node.storage.free_bytes(), node.storage.map_room_bytes()))
        meters.gauge(names.METRIC_STORAGE_FREE_SHARE).set(node.storage.free_share())
        meters.gauge(names.METRIC_STORAGE_READ_ONLY).set(int(node.is_read_only))
        directory = node.directory
        if directory.cluster_id:
            info = (directory.cluster_id.hex(), installed(), str(directory.level))
            meters.gauge(names.METRIC_INFO).replace({info: 1})
        meters.gauge(names.METRIC_HOST_WAITING).set(node.host.waiting)
        refused: dict[str, int] = {}
        for why, count in node.host.refusals.items():
            kind = MALFORMED if why.startswith("malformed") else UNEXPECTED if why.startswith("nobody") else WRONG
            refused[kind] = refused.get(kind, 0) + count
        for kind, count in refused.items():
            meters.counter(names.METRIC_INPUTS_REFUSED).rise_to(count, kind)

    def _certificates(self) -> None:
        left: dict[Labels, float] = {}
        lifetimes: dict[Labels, float] = {}
        known, self._validities = self._validities, {}
        for towards, pem in self.node.credentials.shown().items():
            good = known[pem] if pem in known else readable(pem)
            self._validities[pem] = good
            if good is None:
                continue
            left[(towards,)] = good.ends_s - self.node.clock.wall()
            lifetimes[(towards,)] = good.ends_s - good.begins_s
        self.meters.gauge(names.METRIC_CERTIFICATE_LEFT).replace(left)
        self.meters.gauge(names.METRIC_CERTIFICATE_LIFETIME).replace(lifetimes)

    def _links(self) -> None:
        mesh = self.node.mesh
        queued: dict[Labels, float] = {(peer,): size for peer, size in mesh.queued().items()}
        self.meters.gauge(names.METRIC_PEER_QUEUE).replace(queued)
        self.meters.counter(names.METRIC_PEER_RESETS).rise_to(mesh.resets)

    def _groups(self) -> None:
        """Set the gauges of the groups that this process has to do with."""
        node = self.node
        current: dict[Labels, float] = {}
        members: dict[Labels, float] = {}
        available: dict[Labels, float] = {}
        missing: dict[Labels, float] = {}
        up = [name for name, found in node.directory.nodes.items() if not (found.suspected or found.ended)]
        changes = self.meters.counter(names.METRIC_VIEW_CHANGES)
        for id_, group in node.directory.cells.items():
            labels = (group.domain, group_name(id_))
            there = [name for name in group.replicas if name in up and name not in group.lost]
            available[labels] = int(has_majority(group.replicas, there))
            missing[labels] = sum(name not in there for name in places_of(group))
            if node.name not in group.replicas:
                continue
            current[labels], members[labels] = group.configuration, len(group.replicas)
            before = self._views.get(id_, group.configuration)
            if group.configuration > before:
                changes.add(group.configuration - before, *labels)
                self._tell(id_, group.domain, group.configuration, group.replicas)
            self._views[id_] = group.configuration
        self._views = {id_: view for id_, view in self._views.items() if id_ in node.directory.cells}
        self.meters.gauge(names.METRIC_VIEW_CURRENT).replace(current)
        self.meters.gauge(names.METRIC_VIEW_MEMBERS).replace(members)
        if "gateway" in node.settings.services:
            self.meters.gauge(names.METRIC_GROUP_AVAILABLE).replace(available)
            self.meters.gauge(names.METRIC_GROUP_MISSING).replace(missing)

    def _tell(self, id_: str, domain: str, number: int, replicas: Iterable[str]) -> None:
        telemetry, found = self.node.telemetry, self.node.directory.domains.get(domain)
        if telemetry is not None:
            telemetry.event(
                names.EVENT_VIEW,
                {
                    names.ATTRIBUTE_DOMAIN: domain,
                    names.ATTRIBUTE_PROTOCOL: found.protocol if found is not None else "",
                    names.ATTRIBUTE_GROUP: group_name(id_),
                    names.ATTRIBUTE_VIEW_NUMBER: number,
                    names.ATTRIBUTE_VIEW_MEMBERS: ",".join(replicas),
                },
            )


def readable(pem: bytes) -> Validity | None:
    """OpenSSL has taken it; if we cannot read it all the same, there is no reason to end a process."""
    try:
        return validity(pem)
    except ValueError as error:
        log.warning("how long a certificate is good is not known", why=str(error))
        return None
