"""What a gateway takes: each request is judged here, once, and either waits for an envelope or is refused.

A producer's messages keep their order, also around refusals: what was sent behind a request that is refused and
may come again is refused too, until that request comes again. A gateway that has more than it can order soon
refuses those clients that have more than their share of it (pressure.py).
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ordercast.core.cells import cell_of, cells_of, told_cells
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import group_name
from ordercast.core.machine import NodesJudged, Receive, Send
from ordercast.core.quorums import majority
from ordercast.core.submission import Groups
from ordercast.gateway.checking import limits_of_messages, what_is_wrong, wrong_with_messages
from ordercast.gateway.pressure import RETRY_S_MAX, RETRY_S_MIN, RETRY_S_UNKNOWN
from ordercast.gateway.producer import Producer, WaitingRequest
from ordercast.gateway.rows import Rows, count_of, messages_of, rows_of, split
from ordercast.gateway.turns import Refusals, client_of
from ordercast.v1.common_pb2 import Message
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_INVALID_ARGUMENT,
    PUBLISH_STATUS_NOT_FOUND,
    PUBLISH_STATUS_RESOURCE_EXHAUSTED,
    PUBLISH_STATUS_SEQUENCE_GAP,
    PUBLISH_STATUS_UNAVAILABLE,
    PublishReply,
    PublishRequest,
    PublishStatus,
)

if TYPE_CHECKING:
    from ordercast.gateway.machine import Gateway

#: Producers that are looked at with each request, to see whether they can be forgotten.
FORGOTTEN_AT_ONCE = 4


class Refusal(NamedTuple):
    status: PublishStatus
    #: In words for users, who know groups by their names.
    detail: str
    #: When it is worth trying again; 0 if it is not, or behind another one.
    retry_after_s: float = 0.0


BEHIND_REFUSED = Refusal(PUBLISH_STATUS_SEQUENCE_GAP, "an earlier request was refused: repeat that first")
BEHIND_GIVEN_UP = Refusal(PUBLISH_STATUS_SEQUENCE_GAP, "an earlier request was given up: repeat this one")
STOPPING = Refusal(
    PUBLISH_STATUS_UNAVAILABLE, "this gateway is about to stop: use another one", retry_after_s=RETRY_S_MIN
)


class Intake:
    def __init__(self, machine: "Gateway") -> None:
        self.machine = machine
        self.settings = machine.settings
        self.submission = machine.submission
        self.pressure = machine.pressure
        #: Least recently heard of first.
        self.producers: OrderedDict[bytes, Producer] = OrderedDict()
        self.refusals = Refusals()
        self.is_stopping = False
        self._limits_of_messages = limits_of_messages(self.settings)
        #: Membership's word on who is up, None before there is one, and on whose disks are full.
        self._up: frozenset[str] | None = None
        self._full: frozenset[str] = frozenset()
        #: Nobody who has a replica is down, full, or without what it had stored: no group needs to be looked at.
        self._all_well = True

    # ---------------------------------------------------------------------------------------------- requests

    def on_publish(self, event: Receive) -> None:
        machine = self.machine
        request: PublishRequest = event.message
        groups = tuple(sorted(request.groups))
        size = request.ByteSize()
        read = self._read(request, groups)
        if isinstance(read, str):
            self._refuse_for_good(event.source, request, groups, read)
            return
        messages, rows, presented = read
        wrong_messages = self._wrong_with_messages(messages, size)
        if wrong_messages and rows.messages == 1:
            self._refuse_for_good(event.source, request, groups, wrong_messages)
            return
        machine.note_client(event.source)
        producer = self._producer(request.producer, event.source)
        item = WaitingRequest(
            event.source,
            request.producer,
            request.epoch,
            groups,
            request.first_sequence,
            rows,
            request.unordered,
            request.open_token,
            request.trace,
            size,
        )
        if wrong_messages:
            # Each of several may be all right, and then they come again, one by one.
            self._refuse_for_now(producer, item, Refusal(PUBLISH_STATUS_INVALID_ARGUMENT, wrong_messages))
            return
        repeated = producer.requests.get(item.key)
        if repeated is not None:
            # It is here already, and ahead of everything that came later: only the answer goes elsewhere.
            repeated.client, repeated.is_repeated = event.source, True
            return
        if machine.closed and item.is_for(machine.closed):
            self._refuse_closed(event, producer, item)
            return
        refusal = self._refusal_of(producer, item)
        if refusal is not None:
            self._refuse_for_now(producer, item, refusal)
            return
        if presented is not None:
            producer.seen = self.submission.see(producer.seen, presented)
        producer.accept(item)
        item.taken = self.pressure.took(client_of(event.source), producer.id, item.cells, item.cost, machine.now)
        machine.batching.add(producer, item)

    def _read(self, request: PublishRequest, groups: Groups) -> tuple[Sequence[Message], Rows, Any] | str:
        """Its messages, for whom they are, and what its producer has seen; or what is wrong with it for good."""
        wrong = what_is_wrong(request, groups, self.settings) or self._wrong_with(cells_of(groups))
        if wrong:
            return wrong
        presented = None
        if request.session:
            try:
                presented = self.submission.read_session(request.session)
            except RemoteProtocolError:
                return "not a session token"
        try:
            messages = messages_of(request)
            return messages, rows_of(request, groups, messages), presented
        except RemoteProtocolError as error:
            return str(error)

    def _refuse_closed(self, event: Receive, producer: Producer, item: WaitingRequest) -> None:
        """Nobody waits for it to come again, so it holds nothing up. Of several rows each is judged by itself."""
        request: PublishRequest = event.message
        if item.is_mixed:
            for part in split(request):
                self.on_publish(replace(event, message=part))
            return
        producer.refused.never_comes(item.cells, item.epoch, item.first_sequence, item.rows.messages)
        self._refuse(event.source, request, self._being_deleted(item.groups))

    def _wrong_with_messages(self, messages: Sequence[Message], size: int) -> str:
        return wrong_with_messages(messages, size, self.settings, self._limits_of_messages)

    def _wrong_with(self, cells: Groups) -> str:
        wrong = self.submission.wrong_with(cells)
        across = self.settings.protocols_across
        if wrong and len(cells) > 1 and across:
            return f"{wrong}. Protocols that order across groups: {', '.join(across)}"
        return wrong

    def _refuse_for_now(self, producer: Producer, item: WaitingRequest, refusal: Refusal) -> None:
        """It comes again, as it is or message by message, and nothing that was sent behind it may overtake it."""
        producer.refuse(item)
        self.refusals.add(item.client, producer.id)
        self._refuse(item.client, item, refusal)

    def _refuse_for_good(self, client: str, request: PublishRequest, groups: Groups, wrong: str) -> None:
        """It does not come again, so it holds nothing up: not even if it was one of several that were refused."""
        producer = self.producers.get(request.producer)
        if producer is not None:
            count = count_of(request)
            producer.refused.never_comes(cells_of(groups), request.epoch, request.first_sequence, count)
        self._refuse(client, request, Refusal(PUBLISH_STATUS_INVALID_ARGUMENT, wrong))

    def _refusal_of(self, producer: Producer, item: WaitingRequest) -> Refusal | None:
        """Why it cannot be taken now. It comes again, and what was sent after it must not overtake it."""
        if self.is_stopping:
            return STOPPING
        cells = self.machine.view.groups
        for group in item.groups:
            if cell_of(group) not in cells:  # Our view may be late.
                return Refusal(PUBLISH_STATUS_INVALID_ARGUMENT, f"unknown group {group_name(group)!r}")
        if producer.is_behind_refused(item):
            return BEHIND_REFUSED
        if self.machine.suspected or not self._all_well:
            for cell in item.cells:
                refusal = self._unusable(cell, next(group for group in item.groups if cell_of(group) == cell))
                if refusal is not None:
                    return refusal
        if producer.outstanding + item.cost > self.settings.producer_messages_max:
            return self._too_much("out of credits")
        client = client_of(item.client)
        if not self.pressure.admits(client, item.cost):
            self.pressure.refused(client, item.cost, self.machine.now)
            return self._too_much("more than this gateway can order soon")
        waiting_bytes = self.machine.batching.waiting_bytes
        if waiting_bytes and waiting_bytes + item.size > self.settings.waiting_bytes_max:
            return self._too_much("too much waits at this gateway")
        return None

    def _too_much(self, detail: str) -> Refusal:
        return Refusal(PUBLISH_STATUS_RESOURCE_EXHAUSTED, detail, self.pressure.retry_after_s())

    # ------------------------------------------------------------------------------------ who is up and has room

    def on_nodes(self, event: NodesJudged) -> None:
        self._up, self._full = event.up, event.full
        self.on_view()

    def on_view(self) -> None:
        view, up = self.machine.view, self._up
        is_up = up is None or view.hosts <= up
        self._all_well = is_up and view.hosts.isdisjoint(self._full) and not view.has_lost

    def _unusable(self, name: str, group: str) -> Refusal | None:
        """Of a cell, in words about a group that lives there.

        What is disseminated cannot be withdrawn, and holds up its other groups: better refuse it.

        A process counts as up if it is for membership and for us, who may have waited for its answers in vain.
        """
        cell, up = self.machine.view.groups[name], self._up
        needed = majority(len(cell.replicas))
        there = [p for p in cell.working if (up is None or p in up) and not self.machine.is_suspected(p)]
        if len(there) < needed:
            retry_after_s = max(self.pressure.retry_after_s(), RETRY_S_UNKNOWN)
            return Refusal(PUBLISH_STATUS_UNAVAILABLE, f"group {group_name(group)!r} has no quorum", retry_after_s)
        if sum(process not in self._full for process in cell.working) < needed:
            detail = f"the disks under group {group_name(group)!r} are full"
            return Refusal(PUBLISH_STATUS_RESOURCE_EXHAUSTED, detail, RETRY_S_MAX)
        return None

    # ---------------------------------------------------------------------------------------------- refusals

    def _refuse(self, client: str, request: PublishRequest | WaitingRequest, refusal: Refusal) -> None:
        count = request.rows.messages if isinstance(request, WaitingRequest) else count_of(request)
        reply = PublishReply(
            producer=request.producer,
            groups=request.groups,
            first_sequence=request.first_sequence,
            count=count,
            status=refusal.status,
            detail=refusal.detail,
            credits=self.machine.credits(client, request.producer),
            open_token=request.open_token,
            retry_after_ms=round(refusal.retry_after_s * 1000),
            cells=told_cells(tuple(sorted(request.groups))),
        )
        self.machine.out.append(Send((client,), reply))

    def refuse_waiting(self, groups: Sequence[str]) -> None:
        """What is in an envelope cannot be withdrawn; what is not yet will never be."""
        batching = self.machine.batching
        batching.may_fill = True
        for producer in self.producers.values():
            gone, behind = producer.give_up(groups)
            for item in gone:
                self._give_back(item, self._being_deleted(item.groups))
            for item in behind:
                self.refusals.add(item.client, producer.id)
                self._give_back(item, BEHIND_GIVEN_UP)
            if not producer.waiting:
                batching.waiting.pop(producer.id, None)

    def _give_back(self, item: WaitingRequest, refusal: Refusal) -> None:
        self.pressure.gave(item.taken, self.machine.now)
        self.machine.batching.waiting_bytes -= item.size
        self._refuse(item.client, item, refusal)

    def _being_deleted(self, groups: Groups) -> Refusal:
        machine = self.machine
        closed, cells = machine.closed, machine.view.groups
        name = next(g for g in groups if g in closed or cell_of(g) in closed or cell_of(g) not in cells)
        return Refusal(PUBLISH_STATUS_NOT_FOUND, f"group {group_name(name)!r} is being deleted")

    # --------------------------------------------------------------------------------------------- producers

    def on_new_stream(self, client: str) -> None:
        """A client connected: its requests start with what has no receipt yet."""
        for id_ in self.refusals.take(client):
            producer = self.producers.get(id_)
            if producer is not None and producer.client == client:
                producer.refused.clear()

    def _producer(self, id_: bytes, client: str) -> Producer:
        producer = self.producers.pop(id_, None)
        if producer is None:
            producer = Producer(id_, client, client_of(client), self.submission.nothing_seen())
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
