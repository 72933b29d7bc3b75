"""The stages that the latest envelopes have reached in this process, for whoever decides late to keep a trace.

A mark is noted for every envelope, kept or not, so it is as little as possible. Old ones make room for new ones.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

from ordercast.core.machine import Observe

#: Of how many envelopes; older ones are forgotten.
ENVELOPES_MAX = 8192


class StageMark(NamedTuple):
    """Times are those of the monotonic clock."""

    stage: str
    group: str
    #: When what the stage ends with began, if no other stage tells.
    since: float | None
    at: float
    blocked_on: str


class DeliveredHere(NamedTuple):
    """In one group."""

    position: int
    offset: int
    messages: int
    published_ns: int


@dataclass(slots=True)
class Way:
    """The way of one envelope through this process."""

    marks: list[StageMark] = field(default_factory=list)
    #: By group.
    deliveries: dict[str, DeliveredHere] | None = None
    #: The groups that it is for, and how many messages it has, where its gateway is.
    groups: str = ""
    messages: int = 0
    #: A client's own trace, if one asked for this one.
    context: bytes = b""
    #: Why it is kept, if it is, and how many of its marks were told.
    kept: str = ""
    told: int = 0

    def reached(self, stages: tuple[str, ...], group: str) -> float | None:
        """When the latest of these was."""
        found = None
        for mark in self.marks:
            if mark.stage in stages and mark.group in ("", group) and (found is None or mark.at > found):
                found = mark.at
        return found


Key = tuple[str, bytes]


class Ring:
    def __init__(self, envelopes_max: int = ENVELOPES_MAX) -> None:
        self._envelopes_max = envelopes_max
        #: By domain and id, for gateways number the envelopes of each domain apart. The oldest first.
        self.ways: OrderedDict[Key, Way] = OrderedDict()

    def of(self, key: Key) -> Way:
        way = self.ways.get(key)
        if way is None:
            way = self.ways[key] = Way()
            if len(self.ways) > self._envelopes_max:
                self.ways.popitem(last=False)
        return way

    def note(self, domain: str, effect: Observe, now: float) -> tuple[Way, StageMark | None]:
        """The first time counts: what is said again was known before."""
        way = self.of((domain, effect.id))
        stage, group = effect.stage, effect.group
        for mark in way.marks:
            if mark.stage == stage and mark.group == group:
                return way, None
        mark = StageMark(stage, group, effect.since, now, effect.blocked_on)
        way.marks.append(mark)
        return way, mark
