"""Which envelopes are kept as traces, and the spans of those.

An envelope is kept because its header says so, which its gateway decided when it was submitted; or late: each
second a gateway keeps the slowest one that it answered in each domain, and whatever failed. It tells the replicas,
which remember the stages of their latest envelopes (ring.py).
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ordercast.core.held_up import for_people
from ordercast.core.ids import group_name
from ordercast.core.machine import Observe
from ordercast.core.protocol import Stage
from ordercast.core.tracing import CONTEXT_BYTES, root_id, span_id, trace_id
from ordercast.runtime.telemetry.meters import Exemplar, Histogram, Meters
from ordercast.runtime.telemetry.ring import DeliveredHere, Key, Ring, StageMark, Way
from ordercast.runtime.telemetry.stages import began, span_of, stages_of
from ordercast.telemetry.schema import names

#: Ids that somebody wants to be kept and that are not known here, yet or any more.
WANTED_MAX = 4096
#: What failed is kept, but no more than so many a second.
FAILED_PER_S_MAX = 20
SAMPLED, ASKED, SLOW, FAILED = "sampled", "asked", "slow", "failed"
REFUSED = "refused"

Value = str | int | bytes


@dataclass(slots=True)
class SpanRecord:
    """Times are those of the monotonic clock."""

    trace: bytes
    id: bytes
    parent: bytes
    name: str
    begun: float
    ended: float
    attributes: dict[str, Value]
    failed: bool = False
    #: A trace and a span of it that this one belongs to.
    link: bytes = b""


@dataclass(frozen=True, slots=True)
class Slowest:
    took_s: float
    id: bytes
    groups: str


class Tracing:
    def __init__(
        self,
        process: str,
        meters: Meters,
        *,
        tell: Callable[[SpanRecord], None],
        spread: Callable[[str, bytes, str], None],
        protocol_of: Callable[[str], str],
        wall: Callable[[], float],
    ) -> None:
        """`tell` takes a span; `spread` asks the replicas of groups (ids, with commas) to keep an envelope too."""
        self.process = process
        self.cluster = b""
        self.ring = Ring()
        self._tell_span = tell
        self._spread = spread
        self._protocol_of = protocol_of
        self._wall = wall
        self._wanted: OrderedDict[Key, str] = OrderedDict()
        self._slowest: dict[str, Slowest] = {}
        self._failed = 0
        self._stages_by_domain: dict[str, Mapping[str, Stage]] = {}
        #: Of stages, by domain and stage.
        self._labels: dict[tuple[str, str], tuple[str, ...]] = {}
        self._stages = meters.histogram(names.METRIC_STAGE_DURATION)
        self._published = meters.histogram(names.METRIC_PUBLISH_DURATION)
        self._envelopes = meters.counter(names.METRIC_PUBLISH_ENVELOPES)

    # --------------------------------------------------------------------------------------------- machines

    def observe(self, domain: str, effect: Observe, now: float) -> None:
        """A stage that an envelope has reached."""
        way, mark = self.ring.note(domain, effect, now)
        if mark is None:
            return
        stage = self._stages_in(domain).get(mark.stage)
        if stage is not None:
            begun = began(stage, mark, way)
            if begun is not None:
                labels = self._labels.get((domain, stage.label))
                if labels is None:
                    labels = (domain, self._protocol_of(domain), stage.label)
                    self._labels[domain, stage.label] = labels
                self._observed(self._stages, now - begun, domain, effect.id, way, labels)
        if effect.trace:
            self._keep(way, effect.trace)
        elif self._wanted and (domain, effect.id) in self._wanted:
            way.kept = way.kept or self._wanted.pop((domain, effect.id))
        if mark.stage == "submit":
            way.groups, way.messages = effect.detail, effect.messages
        elif mark.stage == "answered":
            self._answered(domain, effect, way, now)
        if way.kept:
            self._tell(domain, effect.id, way)

    def delivered(self, domain: str, group: str, id_: bytes, trace: bytes, delivered: DeliveredHere) -> None:
        """In the log of a replica here."""
        way = self.ring.of((domain, id_))
        if way.deliveries is None:
            way.deliveries = {}
        way.deliveries[group] = delivered
        if trace:
            self._keep(way, trace)

    def _keep(self, way: Way, trace: bytes) -> None:
        if not way.kept:
            way.kept = ASKED if len(trace) == CONTEXT_BYTES else SAMPLED
            way.context = trace if len(trace) == CONTEXT_BYTES else b""

    def _observed(
        self, histogram: Histogram, took_s: float, domain: str, id_: bytes, way: Way, labels: tuple[str, ...]
    ) -> None:
        histogram.observe(took_s, *labels)
        if way.kept:
            trace = trace_id(self.cluster, domain, id_)
            histogram.note(Exemplar(trace, took_s, self._wall()), *labels)

    # ------------------------------------------------------------------------------------------ late decisions

    def _answered(self, domain: str, effect: Observe, way: Way, now: float) -> None:
        accepted = way.marks[0].since if way.marks[0].stage == "submit" else None
        if accepted is None:
            return
        took_s = now - accepted
        self._envelopes.add(1, domain)
        for group in way.groups.split(","):
            self._observed(self._published, took_s, domain, effect.id, way, (domain, group_name(group)))
        if effect.detail == REFUSED:
            self._failed += 1
            if not way.kept and self._failed <= FAILED_PER_S_MAX:
                way.kept = FAILED
                self._spread(domain, effect.id, way.groups)
        elif not way.kept:
            slowest = self._slowest.get(domain)
            if slowest is None or took_s > slowest.took_s:
                self._slowest[domain] = Slowest(took_s, effect.id, way.groups)

    def second(self) -> None:
        """Once a second: the slowest of the last one is kept, in each domain."""
        slowest, self._slowest, self._failed = self._slowest, {}, 0
        for domain, found in slowest.items():
            self.keep(domain, found.id, SLOW)
            self._spread(domain, found.id, found.groups)

    def keep(self, domain: str, id_: bytes, why: str = SLOW) -> None:
        key = (domain, id_)
        way = self.ring.ways.get(key)
        if way is None:
            # It may still come here: a replica may be far behind.
            self._wanted[key] = why
            if len(self._wanted) > WANTED_MAX:
                self._wanted.popitem(last=False)
        elif not way.kept:
            way.kept = why
            self._tell(domain, id_, way)

    # -------------------------------------------------------------------------------------------------- spans

    def _tell(self, domain: str, id_: bytes, way: Way) -> None:
        """Those that were not told yet."""
        trace, stages = trace_id(self.cluster, domain, id_), self._stages_in(domain)
        for mark in way.marks[way.told :]:
            if mark.stage == "answered":
                self._tell_root(domain, id_, trace, way, mark)
            elif mark.stage in stages:
                self._tell_stage(domain, id_, trace, way, mark)
        way.told = len(way.marks)

    def _stages_in(self, domain: str) -> Mapping[str, Stage]:
        found = self._stages_by_domain.get(domain)
        if found is None:
            protocol = self._protocol_of(domain)
            found = stages_of(protocol)
            if protocol:  # Otherwise nothing has been heard of the domain yet.
                self._stages_by_domain[domain] = found
        return found

    def _tell_stage(self, domain: str, id_: bytes, trace: bytes, way: Way, mark: StageMark) -> None:
        stage = self._stages_in(domain)[mark.stage]
        span = span_of(stage)
        begun = began(stage, mark, way)
        if begun is None:
            return
        attributes = self._attributes(domain, id_)
        attributes[names.ATTRIBUTE_STAGE] = stage.label
        if mark.blocked_on:
            attributes[names.ATTRIBUTE_BLOCKED_ON] = for_people(mark.blocked_on)
        if mark.group:
            attributes[names.ATTRIBUTE_GROUP] = group_name(mark.group)
        delivered = way.deliveries.get(mark.group) if way.deliveries is not None else None
        if span == names.SPAN_DELIVER and delivered is not None:
            attributes |= _of_delivery(group_name(mark.group), delivered)
        own = span_id(trace, self.process, f"{span} {mark.group}")
        record = SpanRecord(trace, own, root_id(trace), span, begun, mark.at, attributes)
        if span == names.SPAN_DELIVER:
            record.link = trace + root_id(trace)
        self._tell_span(record)

    def _tell_root(self, domain: str, id_: bytes, trace: bytes, way: Way, mark: StageMark) -> None:
        accepted = way.marks[0].since
        if accepted is None:
            return
        attributes = self._attributes(domain, id_) | {
            names.ATTRIBUTE_MESSAGING_SYSTEM: "ordercast",
            names.ATTRIBUTE_MESSAGING_OPERATION_NAME: "publish",
            names.ATTRIBUTE_MESSAGING_DESTINATION_NAME: ",".join(map(group_name, way.groups.split(","))),
            names.ATTRIBUTE_MESSAGING_BATCH_MESSAGE_COUNT: way.messages,
            names.ATTRIBUTE_KEPT: way.kept,
        }
        record = SpanRecord(
            trace, root_id(trace), b"", names.SPAN_PUBLISH, accepted, mark.at, attributes, link=way.context[:-1]
        )
        if way.kept == FAILED:
            record.failed = True
            attributes[names.ATTRIBUTE_REASON] = REFUSED
        self._tell_span(record)

    def _attributes(self, domain: str, id_: bytes) -> dict[str, Value]:
        return {
            names.ATTRIBUTE_DOMAIN: domain,
            names.ATTRIBUTE_PROTOCOL: self._protocol_of(domain),
            names.ATTRIBUTE_ENVELOPE_ID: id_,
        }


def _of_delivery(group: str, delivered: DeliveredHere) -> dict[str, Value]:
    return {
        names.ATTRIBUTE_MESSAGING_SYSTEM: "ordercast",
        names.ATTRIBUTE_MESSAGING_OPERATION_NAME: "deliver",
        names.ATTRIBUTE_MESSAGING_DESTINATION_NAME: group,
        names.ATTRIBUTE_MESSAGING_BATCH_MESSAGE_COUNT: delivered.messages,
        names.ATTRIBUTE_POSITION: delivered.position,
        names.ATTRIBUTE_OFFSET: delivered.offset,
        names.ATTRIBUTE_PUBLISHED_NS: delivered.published_ns,
    }
