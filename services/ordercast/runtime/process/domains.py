"""The domains of a process: their machines are started and told what changes, and hear what peers send."""

from typing import TYPE_CHECKING

from ordercast.core.machine import ChannelReset, Ended, Event, GroupsClosed, Retired, ViewChanged
from ordercast.runtime.process.directory import Directory
from ordercast.v1.frame_pb2 import Frame
from ordercast.v1.membership_pb2 import GROUP_STATE_DELETING, DomainView
from ordercast.v1.membership_pb2 import Node as NodeRecord

if TYPE_CHECKING:
    from ordercast.runtime.process.node import Node

#: Who talks to whom. Acceptors hand their votes over when a configuration follows another.
CONVERSATIONS = (
    ("sequencer", "sequencer"),
    ("sequencer", "consensus"),
    ("sequencer", "gateway"),
    ("consensus", "consensus"),
)


class Domains:
    def __init__(self, node: "Node") -> None:
        self.node = node
        #: By domain: what its machines have heard of.
        self._views: dict[str, DomainView] = {}
        self._ended: dict[str, int] = {}
        self._retired = 0
        self._closed: dict[str, tuple[str, ...]] = {}
        #: Peers that sent something for a domain that is not known here yet: it was lost.
        self._missed: dict[str, None] = {}

    def follow(self) -> None:
        """The directory has changed."""
        directory = self.node.directory
        peers = [node for node in directory.nodes.values() if self._speaks_with(node)]
        self.node.mesh.follow({node.name: node.peer_address for node in peers})
        ended = directory.ended()
        for peer, incarnation in self.node.mesh.connected():
            if incarnation <= ended.get(peer, 0):
                self.node.mesh.close(peer)  # Machines are told that nothing comes from it any more.
        for name in directory.domains:
            self._follow_domain(name)
        self.node.disbelief.forget_what_is_over(directory.groups)
        self._ended, self._retired = directory.ended(), directory.retired
        for service in self.node.services:
            service.changed()

    def _speaks_with(self, node: NodeRecord) -> bool:
        mine, theirs = self.node.settings.services, node.services
        return node.name != self.node.name and any(
            (a in mine and b in theirs) or (b in mine and a in theirs) for a, b in CONVERSATIONS
        )

    def _follow_domain(self, name: str) -> None:
        """Tell the machines of a domain what is new to them; start them if the domain is."""
        view = self.node.disbelief.overlay(
            self.node.directory.view(name), self.node.directory.groups, self.node.incarnation
        )
        known = self._views.get(name)
        clock = self.node.clock.read()
        news: list[Event] = []
        # Also of changes that views do not show: others name them, and what names them waits until we have heard.
        is_news = known is None or (known.changed, known.level) != (view.changed, view.level)
        if is_news or (known is not None and list(known.groups) != list(view.groups)):
            news.append(ViewChanged(*clock, view))
        for process, incarnation in sorted(self.node.directory.ended().items()):
            if incarnation and (known is None or self._ended.get(process) != incarnation):
                news.append(Ended(*clock, process, incarnation))
        if self.node.directory.retired and (known is None or self.node.directory.retired != self._retired):
            news.append(Retired(*clock, self.node.directory.retired))
        closed = tuple(
            group for group in deleting(self.node.directory) if self.node.directory.groups[group].domain == name
        )
        if closed != self._closed.get(name, ()):
            news.append(GroupsClosed(*clock, closed))
        self._views[name] = view
        self._closed[name] = closed
        if known is None:
            self._open_domain(name, news)
            return
        for event in news:
            self.node.host.tell_domain(name, event)

    def _open_domain(self, name: str, news: list[Event]) -> None:
        domain = self.node.directory.domains[name]
        for service in self.node.services:
            for role, machine in service.machines(domain).items():
                self.node.host.add(name, role, machine)
        for peer, incarnation in self.node.mesh.connected():
            news.append(ChannelReset(*self.node.clock.read(), peer, incarnation))
        self.node.host.start(name, self.node.incarnation, news)
        # Those who knew the domain before us have to hear that what they sent is lost.
        for peer in self._missed:
            self.node.mesh.close(peer)
        self._missed.clear()

    def opened(self, peer: str, incarnation: int) -> None:
        for name in self._views:
            self.node.host.tell_domain(name, ChannelReset(*self.node.clock.read(), peer, incarnation))

    def received(self, peer: str, incarnation: int, frame: Frame) -> None:
        for section in frame.sections:
            if section.domain in self._views:
                self.node.host.receive(section.domain, peer, incarnation, section.packets)
            else:
                self._missed[peer] = None


def deleting(directory: Directory) -> list[str]:
    """The groups that are about to be gone, by id."""
    return [group.id for group in directory.groups.values() if group.state == GROUP_STATE_DELETING]
