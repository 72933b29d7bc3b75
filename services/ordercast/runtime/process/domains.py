"""The domains of a process: their machines are started and told what changes, and hear what peers send."""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ordercast.core.machine import (
    ChannelReset,
    Ended,
    Event,
    GroupsClosed,
    GroupsRemoved,
    KeepsGroups,
    Retired,
    ViewChanged,
)
from ordercast.core.members import address_of
from ordercast.v1.frame_pb2 import Frame
from ordercast.v1.membership_pb2 import DomainView
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

#: How often machines are asked of which groups they keep something.
FORGET_S = 60.0


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
        gone = directory.take_gone()
        for name in directory.domains:
            self._follow_domain(name)
            if name in gone:
                self._tell_removed(name, gone[name])
        self.node.logs.removed(gone)
        self.node.disbelief.forget_what_is_over(directory.cells)
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
            self.node.directory.view(name), self.node.directory.cells, self.node.incarnation
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
            address_of(group) for group in self.node.directory.deleting.values() if group.domain == name
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

    # ------------------------------------------------------------------------------------- groups that are gone

    def _tell_removed(self, name: str, addresses: Iterable[str]) -> None:
        self.node.host.tell_domain(name, GroupsRemoved(*self.node.clock.read(), tuple(addresses)))

    async def forget_removed(self) -> None:
        """Machines may still keep something of groups that went while this process was away; and a log that was
        copied from elsewhere may bring something of one that went meanwhile. So they are asked now and then.
        """
        while True:
            await self.node.host.caught_up()
            for (name, _), slot in list(self.node.host.slots.items()):
                if name in self._views and isinstance(slot.machine, KeepsGroups):
                    kept = slot.machine.kept_groups()
                    if gone := [address for address in kept if self.node.directory.is_gone(address)]:
                        self._tell_removed(name, gone)
            await asyncio.sleep(FORGET_S)
