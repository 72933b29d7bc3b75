"""The gateway: many clients' messages in, envelopes out, receipts back.

Messages with the same destination set leave in one envelope, as many as piled up: no timer delays them. What is
in an envelope never changes, whoever dies meanwhile: a resend is the same envelope, the coordinator included.
A gateway keeps nothing on disk. If it dies, clients repeat elsewhere, and delivery tells what is a duplicate.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from zlib import crc32

from ordercast.core.errors import InvariantBroken, RemoteProtocolError
from ordercast.core.ids import CLOCK_MAX, KEY_BYTES, counter_of, envelope_id, pack_u64, sn_of, unpack_u64
from ordercast.core.machine import (
    ChannelReset,
    Effect,
    Ended,
    Event,
    GroupsClosed,
    Observe,
    Receive,
    Send,
    SetTimer,
    Start,
    TimerFired,
    ViewChanged,
)
from ordercast.core.quorums import has_majority, majority
from ordercast.core.tracing import KEPT
from ordercast.core.view import OtherConfiguration, UnknownGroup, View
from ordercast.gateway.checking import what_is_wrong
from ordercast.gateway.opened import Open
from ordercast.gateway.pressure import RETRY_S_UNKNOWN, Pressure
from ordercast.gateway.producer import NOTHING_SEEN, Groups, Producer, Waiting
from ordercast.gateway.ranges import ranges_of
from ordercast.gateway.settings import GatewaySettings
from ordercast.gateway.turns import Refusals, as_fit, client_of
from ordercast.protocols.forgetting import CLIENTS_LEVEL
from ordercast.v1.common_pb2 import (
    REFUSAL_FENCED,
    REFUSAL_UNSPECIFIED,
    Batch,
    Envelope,
    Header,
    Incarnation,
    Span,
)
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_FENCED,
    PUBLISH_STATUS_INVALID_ARGUMENT,
    PUBLISH_STATUS_NOT_FOUND,
    PUBLISH_STATUS_OK,
    PUBLISH_STATUS_RESOURCE_EXHAUSTED,
    PUBLISH_STATUS_SEQUENCE_GAP,
    PUBLISH_STATUS_UNAVAILABLE,
    PublishReply,
    PublishRequest,
    PublishStatus,
)
from ordercast.v1.sequencer_pb2 import Disseminate, EnvelopeDecided, EnvelopeDelivered, EnvelopeDurable

TICK = "gateway"
FORGOTTEN_AT_ONCE = 4


class Gateway:
    handles = (PublishRequest, EnvelopeDecided, EnvelopeDelivered, EnvelopeDurable)

    def __init__(self, process: str, settings: GatewaySettings | None = None, *, observe: bool = False) -> None:
        self.process = process
        self.settings = settings or GatewaySettings()
        self.observe = observe
        self.incarnation = 0
        self.counter = 0
        self.view: View | None = None
        #: Least recently heard of first; and those that have something waiting.
        self.producers: OrderedDict[bytes, Producer] = OrderedDict()
        self.waiting: dict[bytes, Producer] = {}
        self.waiting_bytes = 0
        self.pressure = Pressure(self.settings)
        self.refusals = Refusals()
        #: By rising counter.
        self.open: dict[bytes, Open] = {}
        self.open_by_group: dict[str, int] = {}
        #: Envelopes to each group since one told it what is finished.
        self.untold: dict[str, int] = {}
        #: Envelopes without an answer, by destination set.
        self.unanswered: dict[Groups, int] = {}
        #: Groups that are being deleted: nothing new for them.
        self.closed: dict[str, None] = {}
        #: Incarnations of the processes we are connected to, and when each was last heard of.
        self.connected: dict[str, int] = {}
        self.heard: dict[str, float] = {}
        #: Until when each silent process is believed to be down.
        self.suspected: dict[str, float] = {}
        self._is_ticking = False
        #: Something was decided or finished since envelopes were last filled; or a request came that may leave.
        self._may_fill = False
        self._came: Producer | None = None
        self.out: list[Effect] = []
        self.now = self.wall = 0.0
        self._on_message: dict[type, Callable[[Receive], None]] = {
            PublishRequest: self._on_publish,
            EnvelopeDecided: self._on_decided,
            EnvelopeDelivered: self._on_delivered,
            EnvelopeDurable: self._on_durable,
        }

    def step(self, event: Event) -> list[Effect]:
        self.now, self.wall, self.out = event.now, event.wall, []
        self.pressure.measure(event.now)
        match event:
            case Receive():
                self._on_message[type(event.message)](event)
            case TimerFired():
                self._is_ticking = False
                self._may_fill = True
                self._on_tick()
            case ChannelReset():
                self._on_channel_reset(event)
            case Ended():
                if self.connected.get(event.process, 0) <= event.incarnation:
                    self.connected.pop(event.process, None)
                    self._on_new_stream(event.process)
            case ViewChanged():
                self._on_view(event.index)
            case GroupsClosed():
                self.closed = dict.fromkeys(event.groups)
                self._refuse_waiting(event.groups)
            case Start():
                # A replica in our own process needs no channel.
                self.incarnation = self.connected[self.process] = event.incarnation
            case _:
                pass
        if self._may_fill:
            self._fill_envelopes(self.waiting.values())
        elif self._came is not None:
            self._fill_envelopes([self._came])
        self._may_fill, self._came = False, None
        if (self.open or self.waiting) and not self._is_ticking:
            self._is_ticking = True
            self.out.append(SetTimer(TICK, self.settings.tick_s))
        return self.out

    def buffers(self) -> dict[str, int]:
        return {
            "waiting": sum(len(producer.waiting) for producer in self.producers.values()),
            "unanswered": sum(1 for opened in self.open.values() if not opened.answered),
            "open": len(self.open),
        }

    # --------------------------------------------------------------------------- groups that come and go

    def mentions(self, group: str) -> bool:
        """Whether something for the group waits here or is not finished: see core.machine.NamesGroups."""
        waiting = (item for producer in self.waiting.values() for item in producer.waiting)
        return any(group in item.groups for item in waiting) or any(
            group in opened.groups for opened in self.open.values()
        )

    def _on_view(self, view: View) -> None:
        gone = [] if self.view is None else [name for name in self.view.groups if name not in view.groups]
        for name in gone:
            if any(name in opened.groups for opened in self.open.values()):
                raise InvariantBroken(f"group {name!r} was removed, but an envelope to it is not finished")
            self.open_by_group.pop(name, None)
            self.untold.pop(name, None)
            self.closed.pop(name, None)
        before, self.view = self.view, view
        self._refuse_waiting(gone)
        if before is not None:
            changed = [
                n
                for n, g in view.groups.items()
                if n in before.groups and g.configuration != before.groups[n].configuration
            ]
            self._begin_again(changed)

    def _begin_again(self, changed: list[str]) -> None:
        """Majorities are counted within one configuration: whoever is in the new one says again what it has."""
        assert self.view is not None
        for opened in self.open.values():
            names = [name for name in opened.groups if name in changed]
            if names:
                for name in names:
                    opened.durable.pop(name, None)
                opened.deadline, opened.delay = self.now + self.settings.tick_s, self.settings.resend_s

    def _refuse_waiting(self, groups: Sequence[str]) -> None:
        """What is in an envelope cannot be withdrawn; what is not yet will never be."""
        self._may_fill = True
        for producer in self.producers.values():
            gone, behind = producer.give_up(groups)
            for item in gone:
                self._give_back(item, PUBLISH_STATUS_NOT_FOUND, self._being_deleted(item.groups))
            for item in behind:
                self.refusals.add(item.client, producer.id)
                self._give_back(
                    item, PUBLISH_STATUS_SEQUENCE_GAP, "an earlier request was given up: repeat this one"
                )
            if not producer.waiting:
                self.waiting.pop(producer.id, None)

    def _give_back(self, item: Waiting, status: PublishStatus, detail: str) -> None:
        self.pressure.gave(item.taken, self.now)
        self.waiting_bytes -= item.size
        self._refuse(item.client, item, status, detail)

    def _being_deleted(self, groups: Groups) -> str:
        assert self.view is not None
        name = next(name for name in groups if name in self.closed or name not in self.view.groups)
        return f"group {name!r} is being deleted"

    # ------------------------------------------------------------------------------------------- intake

    def _on_publish(self, event: Receive) -> None:
        request: PublishRequest = event.message
        assert self.view is not None
        groups = tuple(sorted(request.groups))
        size = request.ByteSize()
        wrong = what_is_wrong(request, groups, size, self.settings) or self.wrong_for_protocol(request, groups)
        if wrong:
            self._refuse(event.source, request, PUBLISH_STATUS_INVALID_ARGUMENT, wrong)
            return
        if event.source != self.process and event.source not in self.view.hosts:
            self.connected.pop(event.source, None)  # a client, and not a replica that is still to come
            self.heard.pop(event.source, None)
        producer = self._producer(request.producer, event.source)
        item = Waiting(
            event.source,
            request.producer,
            request.epoch,
            groups,
            request.first_sequence,
            request.messages,
            request.unordered,
            request.open_token,
            request.trace,
            size,
        )
        repeated = producer.requests.get(item.key)
        if repeated is not None:
            # It is here already, and ahead of everything that came later: only the answer goes elsewhere.
            repeated.client = event.source
            return
        if any(group in self.closed for group in groups):
            # Nobody waits for it to come again, so it holds nothing up.
            self._refuse(event.source, request, PUBLISH_STATUS_NOT_FOUND, self._being_deleted(groups))
            return
        status, detail = self._may_enter(producer, item)
        if status != PUBLISH_STATUS_OK:
            producer.refuse(item)
            self.refusals.add(event.source, producer.id)
            self._refuse(event.source, request, status, detail)
            return
        if request.session:
            self.see(producer, request.session)
        producer.accept(item)
        item.taken = self.pressure.took(client_of(event.source), producer.id, groups, item.cost, self.now)
        self.waiting_bytes += item.size
        self.waiting[producer.id] = producer
        # Others could not leave before it came, and to look at all that waits with each request would take long.
        if self._has_room(groups) and groups not in producer.busy_sets():
            self._came = producer

    def wrong_for_protocol(self, request: PublishRequest, groups: Groups) -> str:
        if request.session and (len(request.session) != 8 or unpack_u64(request.session) > CLOCK_MAX):
            return "not a session token"
        return ""

    def see(self, producer: Producer, session: bytes) -> None:
        producer.clock = max(producer.clock, unpack_u64(session))

    def session_of(self, producers: Iterable[Producer]) -> bytes:
        clock = max(producer.clock for producer in producers)
        return pack_u64(clock) if clock != NOTHING_SEEN else b""

    def _may_enter(self, producer: Producer, item: Waiting) -> tuple[PublishStatus, str]:
        assert self.view is not None
        unknown = [group for group in item.groups if group not in self.view.groups]
        if unknown:
            # Our view may be late. Then it comes again, and what was sent after it must not overtake it.
            return PUBLISH_STATUS_INVALID_ARGUMENT, f"unknown group {unknown[0]!r}"
        if producer.is_behind_refused(item):
            return PUBLISH_STATUS_SEQUENCE_GAP, "an earlier request was refused: repeat that first"
        if producer.outstanding + item.cost > self.settings.producer_messages_max:
            return PUBLISH_STATUS_RESOURCE_EXHAUSTED, "out of credits"
        if not self.pressure.admits(client_of(item.client), item.cost):
            self.pressure.refused(client_of(item.client), item.cost, self.now)
            return PUBLISH_STATUS_RESOURCE_EXHAUSTED, "more than this gateway can order soon"
        if self.waiting_bytes and self.waiting_bytes + item.size > self.settings.waiting_bytes_max:
            return PUBLISH_STATUS_RESOURCE_EXHAUSTED, "too much waits at this gateway"
        lacking = [group for group in item.groups if self._lacks_quorum(group)]
        if lacking:
            return PUBLISH_STATUS_UNAVAILABLE, f"group {lacking[0]!r} has no quorum"
        return PUBLISH_STATUS_OK, ""

    def _lacks_quorum(self, group: str) -> bool:
        """What is disseminated cannot be withdrawn, and holds up its other groups: better refuse it."""
        assert self.view is not None
        there = self.view.groups[group]
        return sum(not self._is_suspected(p) for p in there.working) < majority(len(there.replicas))

    def _is_suspected(self, process: str) -> bool:
        """For a while: then something is sent to it again, which is how one finds out."""
        return self.now < self.suspected.get(process, -1.0)

    def _refuse(self, client: str, request: PublishRequest | Waiting, status: PublishStatus, detail: str) -> None:
        retry_after_s = 0.0
        if status == PUBLISH_STATUS_RESOURCE_EXHAUSTED:
            retry_after_s = self.pressure.retry_after_s()
        elif status == PUBLISH_STATUS_UNAVAILABLE:
            retry_after_s = max(self.pressure.retry_after_s(), RETRY_S_UNKNOWN)
        reply = PublishReply(
            producer=request.producer,
            groups=request.groups,
            first_sequence=request.first_sequence,
            count=len(request.messages),
            status=status,
            detail=detail,
            credits=self.credits(client, request.producer),
            open_token=request.open_token,
            retry_after_ms=round(retry_after_s * 1000),
        )
        self.out.append(Send((client,), reply))

    def credits(self, source: str = "", id_: bytes = b"") -> int:
        """What a producer may have here without an answer; one that has nothing here, unless it is named."""
        return self.pressure.credits(client_of(source), id_)

    def _producer(self, id_: bytes, client: str) -> Producer:
        producer = self.producers.pop(id_, None) or Producer(id_, client, client_of(client))
        if producer.client != client:
            # On a new stream its requests start with what has no receipt yet.
            producer.refused.clear()
            self.refusals.drop(producer.client, id_)
            producer.client, producer.owner = client, client_of(client)
        self.producers[id_] = producer
        self._forget_producers(producer)
        return producer

    def _forget_producers(self, present: Producer) -> None:
        """Looks at a few each time; those that have to stay move to the end, so that all have their turn."""
        for _ in range(FORGOTTEN_AT_ONCE):
            count = len(self.producers)
            if count <= self.settings.producers_idle_max:
                return
            id_, oldest = self.producers.popitem(last=False)
            # What it sent behind a refusal has come long ago, if so many others came since.
            is_late = count > self.settings.producers_refused_max and not oldest.requests and not oldest.undecided
            if oldest is present or not (oldest.is_idle or is_late):
                self.producers[id_] = oldest
            else:
                self.refusals.drop(oldest.client, id_)

    # ---------------------------------------------------------------------------------------- envelopes

    def _fill_envelopes(self, producers: Collection[Producer]) -> None:
        """[E6] By destination set, from all these producers; what arrives meanwhile fills the next envelope."""
        while self.waiting and len(self.open) < self.settings.envelopes_open_max:
            filled: dict[Groups, list[Waiting]] = {}
            #: How much each client has under way, or None if nothing more of it may leave.
            clients: dict[str, int | None] = {}
            first: dict[Groups, int] = {}
            for producer in producers:
                if producer.owner not in clients:
                    clients[producer.owner] = self.pressure.under_way_of(producer.owner)
                under_way = clients[producer.owner]
                if under_way is None:
                    continue
                for item in producer.ready():
                    filled.setdefault(item.groups, []).append(item)
                    first[item.groups] = min(first.get(item.groups, under_way), under_way)
            sent = False
            for groups, items in sorted(filled.items(), key=lambda filling: first[filling[0]]):
                if not self._has_room(groups):
                    continue
                fit = as_fit(items, self.settings, self.pressure, self._client)
                if fit.items and (fit.is_full or not self._shall_wait(groups)):
                    sent = self._submit(groups, fit.items) or sent
            if not sent:
                return

    def _client(self, item: Waiting) -> str:
        """The producer's, as it is now: its requests may have come over several connections, but stay in order."""
        return self.producers[item.producer].owner

    def _has_room(self, groups: Groups) -> bool:
        """No group takes more than a quarter of what may be open: one without a quorum must not stop others."""
        if len(self.open) >= self.settings.envelopes_open_max:
            return False
        share = max(1, self.settings.envelopes_open_max // 4)
        return all(self.open_by_group.get(group, 0) < share for group in groups)

    def _shall_wait(self, groups: Groups) -> bool:
        """An envelope is as much work as hundreds of messages: when there is too much, better fewer and full ones.

        So one that is not full then waits until nothing is under way to the same set.
        """
        return groups in self.unanswered and self.pressure.is_high(self.now)

    def _submit(self, groups: Groups, items: list[Waiting]) -> bool:
        assert self.view is not None
        coordinator = self._choose_coordinator(groups)
        if coordinator is None:
            return False
        id_ = envelope_id(self.incarnation, self.counter)
        self.counter += 1
        for item in items:
            producer = self.producers[item.producer]
            producer.waiting.remove(item)
            self.waiting_bytes -= item.size
            self.pressure.leaves(item.taken, self.now)
            # Those that have not had a turn come first, next time.
            self.waiting.pop(producer.id, None)
            if producer.waiting:
                self.waiting[producer.id] = producer
            ordered = not item.unordered or producer.undecided.get(id_, (groups, False))[1]
            producer.undecided[id_] = (groups, ordered)
        ranges, requests = ranges_of(items, names_clients=self.view.level >= CLIENTS_LEVEL)
        done, open_ = self._finished_to_tell(groups)
        header = Header(
            id=id_,
            destinations=self.view.destinations(groups),
            coordinator=coordinator,
            session=self.session_of(self.producers[item.producer] for item in items),
            done=done,
            open=open_,
            ranges=ranges,
            gateway=self.process,
            trace=self._trace_of(id_, items),
        )
        if self.settings.tells_time:
            waited_s = self.now - min(item.taken.at for item in items)
            header.accepted_ns = max(int((self.wall - waited_s) * 1e9), 1)
        body = Batch(messages=[message for item in items for message in item.messages]).SerializeToString()
        envelope = Envelope(header=header, body=body)
        delay = self.settings.resend_s
        opened = self.open[id_] = Open(envelope, groups, requests, self.now + delay, delay, self.now)
        self.unanswered[groups] = self.unanswered.get(groups, 0) + 1
        for group in groups:
            self.open_by_group[group] = self.open_by_group.get(group, 0) + 1
        self.disseminate(opened)
        if self.observe:
            first = min(items, key=lambda item: item.taken.at)
            submitted = Observe("submit", id_, ",".join(groups), since=first.taken.at, trace=header.trace)
            submitted.blocked_on = self.producers[first.producer].waited_for(first)
            submitted.messages = sum(len(item.messages) for item in items)
            self.out.append(submitted)
        return True

    def _trace_of(self, id_: bytes, items: list[Waiting]) -> bytes:
        """Whether its trace is kept: since a client's own is, or because it is one of the share that are."""
        asked = next((item.trace for item in items if item.trace), b"")
        if asked:
            return asked
        return KEPT if crc32(id_) < self.settings.sampling * (1 << 32) else b""

    def disseminate(self, opened: Open) -> None:
        assert self.view is not None
        self.out.append(Send(self.view.replicas_of(opened.groups), Disseminate(envelope=opened.envelope)))

    def _finished_to_tell(self, groups: Groups) -> tuple[int, list[int]]:
        """[E8] Nothing, mostly. Each group is told in its turn: who never hears it would never forget."""
        for group in groups:
            self.untold[group] = self.untold.get(group, 0) + 1
        if max(self.untold[group] for group in groups) < self.settings.finished_every:
            return 0, []
        for group in groups:
            self.untold[group] = 0
        return self.counter - 1, [counter_of(opened) for opened in self.open]

    def _choose_coordinator(self, groups: Groups) -> Incarnation | None:
        """A replica that is believed to be up, of as many of the groups as possible; our own first."""
        assert self.view is not None
        members = [self.view.groups[group].working for group in groups]
        replicas = [process for process in self.view.replicas_of(groups) if any(process in m for m in members)]
        known = [process for process in replicas if process in self.connected]
        up = [process for process in known if not self._is_suspected(process)] or known
        if not up:
            return None

        def rank(process: str) -> tuple[int, bool, str]:
            return (sum(process in replicas for replicas in members), process == self.process, process)

        best = max(up, key=rank)
        return Incarnation(process=best, number=self.connected[best])

    # ------------------------------------------------------------------------------------------- answers

    def _opened(self, event: Receive) -> Open | None:
        """The envelope that a replica reports about; nobody else may."""
        assert self.view is not None
        opened = self.open.get(event.message.id)
        group = getattr(event.message, "group", "")
        if group and group not in self.view.groups:
            raise UnknownGroup(group)
        if opened is None and not group and event.source not in self.view.hosts:
            return None  # Old news of a process whose groups are gone.
        names = (group,) if group else opened.groups if opened else tuple(self.view.groups)
        if event.source not in self.view.replicas_of(names):
            raise OtherConfiguration(names[0], f"{event.source} is no replica of {list(names)}")
        return opened

    def _hear(self, source: str) -> None:
        """It said something that is no mistake."""
        self.heard[source] = self.now
        self.suspected.pop(source, None)

    def _on_decided(self, event: Receive) -> None:
        opened = self._opened(event)
        if opened is not None:
            self._is_decided(opened, event.message.order_key)
        self._hear(event.source)

    def _is_decided(self, opened: Open, order_key: bytes) -> None:
        """[E6] Before delivery: the producers' next envelopes may leave, above this sn."""
        if opened.decided:
            return
        if len(order_key) != KEY_BYTES or sn_of(order_key) > CLOCK_MAX:
            raise RemoteProtocolError("not an order key")
        opened.decided = self._may_fill = True
        header = opened.envelope.header
        for range_ in header.ranges:
            producer = self.producers[range_.producer]
            producer.clock = max(producer.clock, sn_of(order_key))
            producer.envelope_decided(header.id, self.now)

    def _on_delivered(self, event: Receive) -> None:
        delivered: EnvelopeDelivered = event.message
        opened = self._opened(event)
        if opened is not None:
            opened.check(delivered)
            self._is_decided(opened, delivered.order_key)
        self._hear(event.source)
        if opened is None:
            return
        opened.delivered.setdefault(delivered.group, delivered)
        if len(opened.delivered) == len(opened.groups) and not opened.answered:
            self._answer(opened)
            if self.observe:
                refused = any(o.refusal for d in opened.delivered.values() for o in d.outcomes)
                detail = "refused" if refused else ",".join(opened.groups)
                self.out.append(Observe("answered", delivered.id, detail))
        self._finish(opened)

    def _answer(self, opened: Open) -> None:
        """One replica of each destination group has delivered; payload and decision are durable already."""
        opened.answered = self._may_fill = True
        self.unanswered[opened.groups] -= 1
        if not self.unanswered[opened.groups]:
            del self.unanswered[opened.groups]
        self.pressure.delivered(self.now - opened.sent)
        for index, range_ in enumerate(opened.envelope.header.ranges):
            producer = self.producers[range_.producer]
            # Who repeated a part of the range from elsewhere hears of all of it.
            clients = list(dict.fromkeys(item.client for item in opened.requests[index]))
            for item in opened.requests[index]:
                producer.outstanding -= item.cost
                del producer.requests[item.key]
                self.pressure.gave(item.taken, self.now)
            outcomes = [opened.delivered[group].outcomes[index] for group in opened.groups]
            first = next((outcome for outcome in outcomes if outcome.refusal), outcomes[0])
            reply = PublishReply(
                producer=range_.producer,
                groups=opened.groups,
                first_sequence=range_.first_sequence,
                count=range_.count,
                epoch=first.epoch,
                last_sequence=first.last_sequence,
                session=self.session_of([producer]),
                credits=self.credits(producer.client, range_.producer),
                open_token=range_.open_token,
            )
            if first.refusal != REFUSAL_UNSPECIFIED:
                fenced = first.refusal == REFUSAL_FENCED
                reply.status = PUBLISH_STATUS_FENCED if fenced else PUBLISH_STATUS_SEQUENCE_GAP
                self.out.append(Send(clients, reply))
                continue
            reply.status = PUBLISH_STATUS_OK
            if range_.open_token:
                reply.order_key = opened.delivered[opened.groups[0]].order_key
                self.out.append(Send(clients, reply))
            for spans in self.places_of(opened, index):
                receipt = PublishReply()
                receipt.CopyFrom(reply)
                receipt.first_sequence, receipt.count = spans[0].first_sequence, spans[0].count
                receipt.order_key, receipt.duplicate = spans[0].order_key, all(span.duplicate for span in spans)
                for group, there in zip(opened.groups, spans, strict=True):
                    receipt.offsets.add(group=group, first_offset=there.first_offset)
                self.out.append(Send(clients, receipt))

    def places_of(self, opened: Open, index: int) -> list[list[Span]]:
        """Where the messages of a range went: runs of them, each with a span for every group."""
        spans = [list(opened.delivered[group].outcomes[index].spans) for group in opened.groups]
        for group, there in zip(opened.groups, spans, strict=True):
            if len(there) != len(spans[0]):
                raise InvariantBroken(f"{group} and {opened.groups[0]} disagree about what is a duplicate")
        return [list(run) for run in zip(*spans, strict=True)]

    def _on_durable(self, event: Receive) -> None:
        opened = self._opened(event)
        if opened is not None:
            group, configuration = event.message.group, event.message.configuration
            if group not in opened.groups:
                raise RemoteProtocolError("not a delivery of this envelope")
            assert self.view is not None
            if configuration:  # an early version, which has none, knows only first configurations
                self.view.groups[group].check(configuration)
            opened.durable.setdefault(event.message.group, {})[event.source] = None
            self._finish(opened)
        self._hear(event.source)

    def _finish(self, opened: Open) -> None:
        if opened.answered and self.is_finished(opened):
            del self.open[opened.envelope.header.id]
            self._may_fill = True
            for group in opened.groups:
                self.open_by_group[group] -= 1

    def is_finished(self, opened: Open) -> bool:
        """[E8] Durable at a majority of each group. A receipt comes earlier, and finishes nothing."""
        assert self.view is not None
        groups = self.view.groups
        return all(has_majority(groups[name].replicas, opened.durable.get(name, {})) for name in opened.groups)

    # ------------------------------------------------------------------------------------------- silence

    def _on_tick(self) -> None:
        assert self.view is not None
        for opened in self.open.values():
            if self.now < opened.deadline:
                continue
            opened.deadline = self.now + opened.delay
            opened.delay = min(opened.delay * 2, self.settings.resend_s_max)
            silent = [process for process in self.view.replicas_of(opened.groups) if self._owes(opened, process)]
            for process in silent:
                if self.heard.get(process, -1.0) < opened.sent:
                    self.suspected[process] = self.now + self.settings.suspicion_s
            if silent:
                self.out.append(Send(silent, self.resend(opened)))

    def resend(self, opened: Open) -> Disseminate:
        """The same envelope: two coordinators of one instance would both skip phase 1."""
        return Disseminate(envelope=opened.envelope, again=True)

    def _owes(self, opened: Open, process: str) -> bool:
        assert self.view is not None
        return any(
            process in self.view.groups[name].replicas
            and (process not in opened.durable.get(name, {}) or name not in opened.delivered)
            for name in opened.groups
        )

    def _on_channel_reset(self, event: ChannelReset) -> None:
        peer = event.peer
        self._on_new_stream(peer)
        self.connected[peer] = event.incarnation
        self._may_fill = True
        self.heard[peer] = self.now
        self.suspected.pop(peer, None)
        again = [opened for opened in self.open.values() if self._owes(opened, peer)]
        self.out += [Send((peer,), self.resend(opened)) for opened in again]

    def _on_new_stream(self, client: str) -> None:
        """A client connected: its requests start with what has no receipt yet."""
        for id_ in self.refusals.take(client):
            producer = self.producers.get(id_)
            if producer is not None and producer.client == client:
                producer.refused.clear()
