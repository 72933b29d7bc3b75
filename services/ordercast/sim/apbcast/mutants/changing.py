"""Mutants of removals and of changes of roots."""

from typing import Any

from ordercast.core.machine import Receive, Send
from ordercast.core.quorums import has_majority
from ordercast.protocols.apbcast.registrar import Registrar
from ordercast.protocols.apbcast.registry import Registry
from ordercast.protocols.apbcast.root_base import RootBase
from ordercast.protocols.apbcast.root_changes import RootChanges
from ordercast.sim.mutant import Mutant, register
from ordercast.v1.apbcast_pb2 import RootGroup, RootHandOver, StreamEnd, StreamSealed

CHANGING: list[Mutant] = []


def _sealed(self: Registrar, stream: int) -> tuple[list[str], dict[str, int], str] | None:
    removal, known = self.registry.removal(stream), self.registry.streams().get(stream)
    if removal is None or known is None or not self._try(self.registry.check_end, stream, removal.configuration):
        return None
    members = list(self.registry.group(known.home).started.members)
    told = self.sealed.get((stream, removal.configuration), {})
    return members, {name: length for name, length in told.items() if name in members}, known.home


@register(
    CHANGING, "shortest_end", "an end is the shortest of the sealed prefixes", (Registrar, "_end_of"), seed=38
)
def _shortest_end(self: Registrar, stream: int) -> StreamEnd | None:
    found = _sealed(self, stream)
    if found is None or not has_majority(found[0], found[1]):
        return None
    return StreamEnd(stream=stream, length=min(found[1].values()), keeper=found[2])


@register(
    CHANGING, "unfilled_end", "an end is appended before a majority has all up to it", (Registrar, "_end_of")
)
def _unfilled_end(self: Registrar, stream: int) -> StreamEnd | None:
    found = _sealed(self, stream)
    if found is None or not has_majority(found[0], found[1]):
        return None
    return StreamEnd(stream=stream, length=max(found[1].values()), keeper=found[2])


@register(CHANGING, "sealed_by_one", "one root's seal is enough for an end", (Registrar, "_end_of"))
def _sealed_by_one(self: Registrar, stream: int) -> StreamEnd | None:
    found = _sealed(self, stream)
    if found is None or not found[1]:
        return None
    return StreamEnd(stream=stream, length=max(found[1].values()), keeper=found[2])


@register(CHANGING, "end_before_seal", "lengths are told, and more is taken", (RootChanges, "is_sealed"), seed=16)
def _end_before_seal(self: RootChanges, stream: int) -> bool:
    self.stream_seals.pop(stream, None)
    return False


@register(CHANGING, "seal_in_memory", "a seal counts before it is on the disk", (RootChanges, "tell_sealed"))
def _seal_in_memory(self: RootChanges) -> None:
    group = self.group
    for stream, configuration in self.known.removals.items():
        if group is not None and self.stream_seals.get(stream) == configuration == self.configuration:
            length = self.durable.length(stream)
            told = StreamSealed(stream=stream, group=group.group, configuration=configuration, length=length)
            self.tell_registrar(told)


@register(
    CHANGING,
    "end_unchecked",
    "a removal does not begin again with its home's configuration",
    (Registry, "check_end"),
    (Registry, "intend"),
)
def _end_unchecked(self: Registry, stream: int, configuration: int | None = None) -> None:
    if configuration is None and self.removal(stream) is None:
        _intend(self, stream)


_intend = Registry.intend


def _acknowledged_after(self: RootBase) -> int:
    group = self.group
    return group.started.number if group is not None and self.process in group.started.members else 0


_CONFIGURATION: Any = property(_acknowledged_after)
register(
    CHANGING,
    "acknowledged_after",
    "a root acknowledges in a configuration it has sealed",
    (RootBase, "configuration"),
)(_CONFIGURATION)


@register(CHANGING, "handed_by_one", "one giver's hand-over is enough", (RootChanges, "_has_all"))
def _handed_by_one(self: RootChanges, group: RootGroup) -> bool:
    handed = dict(self._handed) if self._handed_for == group.defined.number else {}
    return bool(handed) and all(self._has_durably(message) for message in list(handed.values())[:1])


@register(CHANGING, "nothing_handed", "a newcomer is ready with nothing", (RootChanges, "_has_durably"))
def _nothing_handed(self: RootChanges, message: RootHandOver) -> bool:
    return True


@register(
    CHANGING, "handed_unsealed", "who hands over goes on acknowledging", (RootChanges, "on_seal_configuration")
)
def _handed_unsealed(self: RootChanges, event: Receive, message: object) -> None:
    group = self.group
    if group is not None and self.process in group.started.members and group.defined.number > group.started.number:
        self.out.append(Send((event.source,), self._hand_over(group, group.defined.number)))


@register(
    CHANGING,
    "views_forgotten",
    "a view is forgotten before anybody has begun the next",
    (Registrar, "_have_begun"),
)
def _views_forgotten(self: Registrar, group: str, view: int) -> bool:
    return True
