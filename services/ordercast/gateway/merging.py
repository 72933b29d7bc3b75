"""Subscribe to several groups: their logs as one stream in the domain's order, with one cursor.

Each group is read as ever, from one replica after the other (reading.py), with watermarks. What may come out,
and what is waited for, core/merge.py says; idle groups are asked to pass what waits for them (advancing.py). Of
a group that does not pass it for a while, the client is told that the stream waits for it.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import grpc

from ordercast.core import place as places
from ordercast.core.cells import cell_of
from ordercast.core.entries import order_key_in
from ordercast.core.errors import InvariantBroken
from ordercast.core.limits import MERGED_GROUPS_MAX
from ordercast.core.members import address_of
from ordercast.core.merge import Merge, Merged
from ordercast.gateway import reading
from ordercast.gateway.advancing import Advancing
from ordercast.gateway.cursors import check_cursor_name
from ordercast.gateway.cuts import Cuts, behind_the_beginning
from ordercast.gateway.domains import protocol_of_domain
from ordercast.gateway.reading import Reading
from ordercast.gateway.subscribing import Subscribing, Voice, seen_in
from ordercast.protocols.catalogue import protocols
from ordercast.runtime.transport.status import Refused
from ordercast.v1.common_pb2 import Place
from ordercast.v1.gateway_pb2 import (
    Acked,
    CutRequest,
    CutResponse,
    MergedDeliveries,
    SubscribeRequest,
    SubscribeResponse,
    SubscribeStart,
    SubscribeStarted,
    Waiting,
)
from ordercast.v1.membership_pb2 import Cursor, Group
from ordercast.v1.sequencer_pb2 import ReadGroupResponse

#: What a stream keeps of all its groups together, if there are not so many that each has a small share.
AHEAD_BYTES_MAX = 4 << 20
CHUNK_BYTES_MIN = 16 << 10
CHUNK_BYTES_MAX = 256 << 10
#: In one response: entries, and their bytes, if more than one.
ENTRIES_MAX = 256
#: After so long without what comes next, the client is told who is waited for.
WAITING_S = 1.0


class Read(NamedTuple):
    """An entry as it was read."""

    data: bytes
    stored_ms: int


def place_of(message: Place) -> places.Place:
    return places.Place(message.order_key, message.index)


def message_of(place: places.Place) -> Place:
    return Place(order_key=place.order_key, index=place.nth)


class Merging:
    """What all merged streams of a gateway share."""

    def __init__(self, subscribing: Subscribing) -> None:
        self.subscribing = subscribing
        self.node = subscribing.node
        self.reading: Reading = subscribing.reading
        self.advancing = Advancing(self.node, self.reading)
        self.cuts = Cuts(self.reading, self.advancing)

    @staticmethod
    def is_merged(start: SubscribeStart) -> bool:
        return bool(start.groups or start.domain)

    async def stream(self, start: SubscribeStart, context: Any, voice: Voice) -> None:
        groups = await self.groups(start)
        place = await self._place(start, groups, context)
        until = place_of(start.until) if start.HasField("until") else None
        if until is not None:
            await self._check_until(groups, until)
        if start.stop_at_end:
            until = await self.cuts.cut(groups)
        offsets = await self.cuts.offsets(groups, place)
        await MergedStream(self, start, groups, offsets, place, until, context, voice).run()

    async def cut(self, request: CutRequest) -> CutResponse:
        return CutResponse(place=message_of(await self.cuts.cut(await self.groups(request))))

    # ------------------------------------------------------------------------------------------------- which
    # groups

    async def groups(self, named: SubscribeStart | CutRequest) -> list[Group]:
        """Sorted by name. All of one domain, whose logs can be merged."""
        if named.groups:
            if named.domain or named.pattern or len(dict.fromkeys(named.groups)) < len(named.groups):
                message = "either groups, each once, or a domain, perhaps with a pattern"
                raise Refused(grpc.StatusCode.INVALID_ARGUMENT, message, "WHICH_GROUPS")
            await self.subscribing.freshness.settle(named.groups)
            found = [await self.subscribing.group(name) for name in sorted(named.groups)]
        else:
            found = self._of_domain(named.domain, named.pattern)
        domains = sorted({group.domain for group in found})
        if len(domains) > 1:
            message = f"groups of one domain are merged, not of {', '.join(domains)}: each has an order of its own"
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, message, "SEVERAL_DOMAINS")
        self._check_merges(domains[0])
        return found

    def _of_domain(self, domain: str, pattern: str) -> list[Group]:
        directory = self.node.directory
        if domain not in directory.domains:
            raise Refused(grpc.StatusCode.NOT_FOUND, f"unknown domain {domain!r}", "UNKNOWN_DOMAIN")
        known = [group for group in directory.group_by_name.values() if group.domain == domain]
        chosen = [group for group in known if not pattern or fnmatchcase(group.name, pattern)]
        if not 0 < len(chosen) <= MERGED_GROUPS_MAX:
            matching = f" that match {pattern!r}" if pattern else ""
            message = f"{domain!r} has {len(chosen)} groups{matching}; 1 to {MERGED_GROUPS_MAX} are merged"
            raise Refused(grpc.StatusCode.FAILED_PRECONDITION, message, "HOW_MANY_GROUPS")
        return [directory.described(group) for group in sorted(chosen, key=lambda group: group.name)]

    def _check_merges(self, domain: str) -> None:
        protocol = protocol_of_domain(self.node, domain)
        if protocol.traits.merges:
            return
        merging = [name for name, other in protocols().items() if other.traits.merges]
        instead = (
            "read them with a causal subscription, in which each message comes after those that it may depend on"
            if protocol.traits.causal
            else "read each group by itself"
        )
        message = (
            f"the domain {domain!r} is ordered by {protocol.name}, which has no order over several groups: "
            f"{instead}; groups of domains of the protocol {' or '.join(merging)} can be merged"
        )
        raise Refused(grpc.StatusCode.FAILED_PRECONDITION, message, "NO_MERGED_ORDER")

    # ------------------------------------------------------------------------------------------------ where to
    # begin

    async def _place(self, start: SubscribeStart, groups: Sequence[Group], context: Any) -> places.Place:
        """A cursor's place; or where the caller says, and then the cursor begins to exist there."""
        if start.replica:
            message = "several groups are read from whichever replicas have them: name no replica"
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, message, "NO_REPLICA")
        if not start.cursor:
            return await self._start_place(start, groups)
        check_cursor_name(start.cursor)
        domain, cursors = groups[0].domain, self.subscribing.cursors
        try:
            return place_of((await cursors.read("", start.cursor, domain=domain))[0].place)
        except Refused as refused:
            says_where = start.HasField("place") or start.start.WhichOneof("at") is not None
            if refused.code != grpc.StatusCode.NOT_FOUND or not says_where:
                raise
        place = await self._start_place(start, groups)
        self.subscribing.budgets.set_cursor(context, f"/{domain}", start.cursor)
        await cursors.move(Cursor(domain=domain, name=start.cursor, place=message_of(place)))
        return place

    async def _check_until(self, groups: Sequence[Group], until: places.Place) -> None:
        """A cut of these groups, or of others of the domain."""
        key_bytes = protocol_of_domain(self.node, groups[0].domain).traits.key_bytes
        is_there = len(until.order_key) == key_bytes and await self.cuts.is_reached(groups, until)
        if not is_there and len(until.order_key) == key_bytes:
            everywhere = [
                group for group in self.node.directory.groups.values() if group.domain == groups[0].domain
            ]
            described = [self.node.directory.described(group) for group in everywhere]
            is_there = await self.cuts.is_reached(described, until)
        if not is_there:
            message = "the order has not come as far as the place to end at: no cut is there"
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, message, "NO_CUT")

    async def _start_place(self, start: SubscribeStart, groups: Sequence[Group]) -> places.Place:
        if start.HasField("place"):
            return place_of(start.place)
        match start.start.WhichOneof("at"):
            case "earliest":
                return await self.cuts.earliest(groups)
            case "latest":
                return await self.cuts.cut(groups)
        message = "several groups begin at the earliest place, at the latest, or at a place in the order"
        raise Refused(grpc.StatusCode.INVALID_ARGUMENT, message, "NO_START")


class MergedStream:
    """One client's."""

    def __init__(
        self,
        merging: Merging,
        start: SubscribeStart,
        groups: Sequence[Group],
        offsets: Sequence[int],
        place: places.Place,
        until: places.Place | None,
        context: Any,
        voice: Voice,
    ) -> None:
        self.merging = merging
        self.start = start
        self.groups = {group.name: group for group in groups}
        self.rank = {group.name: rank for rank, group in enumerate(groups)}
        self.cells = {group.name: cell_of(address_of(group)) for group in groups}
        self.offsets = dict(zip(self.groups, offsets, strict=True))
        self.place = place
        self.until = until
        self.context = context
        self.voice = voice
        self.domain = groups[0].domain
        share = AHEAD_BYTES_MAX // len(groups)
        self.chunk = reading.Merged(min(max(share, CHUNK_BYTES_MIN), CHUNK_BYTES_MAX))
        self.merge: Merge[Read] = Merge(self.groups, place, until, size_max=AHEAD_BYTES_MAX)
        #: Something was read; and something came out, so there is room.
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        #: Whom the client was told that the stream waits for.
        self._waits_for: tuple[str, ...] = ()
        #: The latest place that the client acknowledged, and the latest that it was told to be durable.
        self._acked: places.Place | None = None
        self._confirmed: places.Place | None = None
        self._ack_news = asyncio.Event()
        self._is_read = False

    async def run(self) -> None:
        started = SubscribeStarted(place=message_of(self.place), groups=list(self.groups), domain=self.domain)
        if self.until is not None:
            started.until.CopyFrom(message_of(self.until))
        await self.voice.say(SubscribeResponse(started=started))
        delivering = asyncio.create_task(self._deliver())
        others = [asyncio.create_task(work) for work in (self._take_acks(), self._move_cursor())]
        sources = [asyncio.create_task(self._read(name)) for name in self.groups]
        # With a cursor, what was acknowledged on the way to the end is still confirmed.
        awaited = {delivering, *others} if self.start.cursor else {delivering}
        tasks = {delivering, *others, *sources}
        try:
            pending = set(tasks)
            while awaited & pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # ------------------------------------------------------------------------------------------------ what
    # comes in

    async def _read(self, name: str) -> None:
        responses = self.merging.reading.read(
            self.groups[name], self.offsets[name], stop_at_end=False, replica="", merged=self.chunk
        )
        try:
            async with contextlib.aclosing(responses):
                async for response in responses:
                    self._received(name, response)
                    while not self.merge.has_room(name):
                        self._room.clear()
                        await self._room.wait()
        except Refused as refused:
            if refused.code == grpc.StatusCode.OUT_OF_RANGE:
                raise await self._out_of_range(name) from None
            raise

    def _received(self, name: str, response: ReadGroupResponse) -> None:
        stored_ms: Sequence[int] = response.stored_ms or [0] * len(response.entries)
        entries = [
            (order_key_in(data), Read(data, stored), len(data))
            for data, stored in zip(response.entries, stored_ms, strict=True)
        ]
        source = self.merge.sources[name]
        before = source.passed
        try:
            self.merge.received(name, entries, response.watermark)
        except InvariantBroken as error:
            # Nothing of it was shown. Somebody's log or watermark is wrong, and this stream is not to be believed.
            raise Refused(grpc.StatusCode.DATA_LOSS, str(error), "ORDER_BROKEN") from None
        if source.passed > before:
            self.merging.advancing.passed(self.cells[name], source.passed)
            self._news.set()

    async def _out_of_range(self, name: str) -> Refused:
        """Retention was faster than this reader."""
        first = await self.merging.cuts.earliest([self.groups[name]])
        return behind_the_beginning([(first.order_key, self.groups[name])])

    # ----------------------------------------------------------------------------------------------- what comes
    # out

    async def _deliver(self) -> None:
        while True:
            merged = self.merge.take(ENTRIES_MAX)
            if merged:
                await self._tell_waiting(())
                await self._say(merged)
                self._room.set()
            elif self.merge.has_ended:
                return
            else:
                await self._wait()

    async def _wait(self) -> None:
        """For what holds the stream up, if there is something to come; else for anything."""
        wanted = self.merge.wanted()
        for name in wanted.sources if wanted is not None else ():
            self.merging.advancing.want(self.cells[name], wanted.order_key if wanted is not None else b"")
        self._news.clear()
        if wanted is None:
            await self._news.wait()
            return
        try:
            async with asyncio.timeout(WAITING_S):
                while (still := self.merge.wanted()) is not None and still.order_key == wanted.order_key:
                    await self._news.wait()
                    self._news.clear()
        except TimeoutError:
            await self._tell_waiting(still.sources if still is not None else ())

    async def _tell_waiting(self, names: tuple[str, ...]) -> None:
        if names != self._waits_for:
            self._waits_for = names
            await self.voice.say(SubscribeResponse(waiting=Waiting(groups=names)))

    async def _say(self, merged: Sequence[Merged[Read]]) -> None:
        """All of it, in as many responses as it takes."""
        protocol = protocol_of_domain(self.merging.node, self.domain)
        deliveries = MergedDeliveries()
        size = 0
        latest: dict[str, bytes] = {}
        for envelope in merged:
            entry = deliveries.entries.add(stored_ms=envelope.parts[0].entry.stored_ms)
            for part in envelope.parts:
                entry.groups.append(self.rank[part.source])
                entry.entries.append(part.entry.data)
                size += len(part.entry.data)
                latest[part.source] = part.entry.data
            if size >= CHUNK_BYTES_MAX or envelope is merged[-1]:
                seen = [seen_in([data], self.groups[name], protocol) for name, data in latest.items()]
                deliveries.session = self.merging.subscribing.intake.sign(self.domain, protocol.seen.merged(seen))
                # Before it is written: the acknowledgement may be here before the write returns.
                self.place = places.Place(envelope.order_key, places.NTH_MAX)
                await self.voice.say(SubscribeResponse(merged=deliveries))
                self.merging.subscribing.intake.counts.delivered += len(deliveries.entries)
                deliveries, size, latest = MergedDeliveries(), 0, {}

    # ----------------------------------------------------------------------------------------------
    # acknowledgements

    async def _take_acks(self) -> None:
        try:
            while True:
                frame: SubscribeRequest | Any = await self.context.read()
                if frame is grpc.aio.EOF:
                    return
                self._take(frame)
        finally:
            self._is_read = True
            self._ack_news.set()

    def _take(self, frame: SubscribeRequest) -> None:
        if frame.WhichOneof("step") != "ack" or not frame.ack.HasField("place"):
            message = "after the start come acknowledgements, each of a place"
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, message, "WRONG_ORDER")
        if not self.start.cursor:
            raise Refused(grpc.StatusCode.FAILED_PRECONDITION, "a subscription without a cursor", "NO_CURSOR")
        place = place_of(frame.ack.place)
        if place > self.place:
            message = "a place that was not delivered yet"
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, message, "ACK_BEYOND_DELIVERED")
        self._acked = place
        self._ack_news.set()

    async def _move_cursor(self) -> None:
        """One move at a time; what is acknowledged meanwhile is one move again."""
        while not (self._is_read and self._acked == self._confirmed):
            await self._ack_news.wait()
            self._ack_news.clear()
            place = self._acked
            if place is not None and place != self._confirmed:
                cursor = Cursor(domain=self.domain, name=self.start.cursor, place=message_of(place))
                await self.merging.subscribing.cursors.move(cursor)
                self._confirmed = place
                await self.voice.say(SubscribeResponse(acked=Acked(place=message_of(place))))
