"""A producer's session: everything that publishing decides, without I/O. Time and chance are arguments.

A driver carries frames and responses of one stream at a time. What has no receipt is kept, and repeated on the
next stream in the order of the publish calls. How a refusal is dealt with:

* too much, no quorum, or behind such a refusal: nothing was stored. Wait as long as the gateway says, then repeat
  all of it in order: what was too much on the same stream, and otherwise on a new one, to another gateway.
* a wrong request, or an unknown group: it fails, and its numbers are free. What was written behind it in the same
  set is refused as a gap, and may have other copies under way, through a gateway that was lost: to give one of
  those another number could store it twice. So the set is opened anew: the opening says how far the set got, and
  fences every older copy. What lies beyond gets new numbers. If no copy of it can exist, it gets them at once.
* a gap at delivery, or a lower epoch than ours: the groups forgot us, as they do in time. The set is opened anew.
* a higher epoch: another instance of a named producer opened the set. Nothing can be published any more.

A message that goes again under a new number comes behind what was stored meanwhile, also of the same producer.

What the producer has seen is one session token, merged from its receipts and from what the application has read.
Every request shows it, so what it carries is ordered behind all of that, through any gateway.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from math import inf
from typing import Generic

from ordercast.client import moving
from ordercast.client.amounts import FRAME_BYTES_MAX, IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX, OPENING_BYTES_MAX
from ordercast.client.backoff import BACKOFF_S_MAX, PATIENCE_S, PATIENCE_S_MAX, SPREAD, backoff_s
from ordercast.client.errors import (
    DeadlineExceeded,
    FailedPrecondition,
    Fenced,
    InvalidArgument,
    OrdercastError,
    Unavailable,
)
from ordercast.client.lane import H, Item, Lane
from ordercast.client.lanes import Lanes
from ordercast.client.outcomes import refusal_of, unknown
from ordercast.client.places import Places
from ordercast.client.rows import placed_by, put_messages
from ordercast.client.session_tokens import merge
from ordercast.client.types import GROUPS_MAX, Groups, Receipt, id_prefix
from ordercast.core.cells import told_as
from ordercast.core.errors import RemoteProtocolError
from ordercast.core.ids import pack_u64
from ordercast.core.limits import BATCH_BYTES_MAX, BATCH_MESSAGES_MAX, LOCATED_MAX
from ordercast.v1.common_pb2 import Message
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_FENCED,
    PUBLISH_STATUS_INVALID_ARGUMENT,
    PUBLISH_STATUS_MOVED,
    PUBLISH_STATUS_NOT_FOUND,
    PUBLISH_STATUS_OK,
    PUBLISH_STATUS_RESOURCE_EXHAUSTED,
    PUBLISH_STATUS_SEQUENCE_GAP,
    GroupPlace,
    PublishReply,
    PublishRequest,
    PublishStreamRequest,
    PublishStreamResponse,
)


class Session(Generic[H]):
    """One producer. `producer` is its id; `instance` are random bytes that no other instance of it has."""

    def __init__(
        self,
        producer: bytes,
        instance: bytes,
        *,
        is_named: bool = False,
        in_flight_max: int = IN_FLIGHT_MAX,
        token: bytes = b"",
        patience_s: float = PATIENCE_S,
        cell_of: Callable[[str], str | None] | None = None,
    ) -> None:
        self.producer = producer
        self.places: Places[H] = Places(cell_of)
        #: What gateways put before it.
        self.owner = b""
        self.instance = instance
        self.is_named = is_named
        self.in_flight_max = in_flight_max
        #: What this producer has seen: every request shows it.
        self.token = token
        #: Set when it has seen something that does not go into its token: it could not publish behind that.
        self.unseen: FailedPrecondition | None = None
        self.fenced: Fenced | None = None
        #: Counts up; the driver takes it modulo its addresses.
        self.gateway = 0
        #: The number of the stream in use; 0 if there is none.
        self.stream = self.credits = 0
        self.is_ready = False
        #: The gateway of the stream in use takes messages to different groups in one request.
        self.takes_batches = False
        #: When to come back after a refusal or a loss.
        self.retry_at: float | None = None
        #: Why the latest stream or request failed.
        self.trouble: OrdercastError | None = None
        self.lanes: Lanes[H] = Lanes(is_named=is_named)
        self.opening: dict[Groups, Lane[H]] = {}
        #: By ticket: not written on this stream, and written on this stream without an answer.
        self.queue: deque[Item[H]] = deque()
        self.sent: dict[int, Item[H]] = {}
        self.bytes = 0
        self._streams = self._tickets = self._openings = self._failures = 0
        #: The gateway of the stream in use, and whether something that it refused was given up: it would wait for
        #: that to come again, before what shares a group with it.
        self._dialed_gateway = 0
        self._has_given_up = False
        self._dialed_at = self._heard_at = 0.0
        self._patience_s = self.patience_s = patience_s
        self._deadline_next = inf
        self._settled: list[tuple[H, Receipt | OrdercastError]] = []

    # ------------------------------------------------------------------------------------------- intake

    @property
    def pending(self) -> int:
        """Messages without a receipt."""
        return len(self.queue) + len(self.sent)

    @property
    def leaves_nothing(self) -> bool:
        """On the stream in use: neither a copy without an answer, nor a refusal that its gateway remembers."""
        return not (self.pending or self.opening or self._has_given_up)

    def has_room(self, size: int) -> bool:
        """Whether one more message of that many bytes may be published now."""
        if self.pending == 0:
            return True
        return self.pending < self.in_flight_max and self.bytes + size <= IN_FLIGHT_BYTES_MAX

    def publish(
        self,
        message: Message,
        groups: Groups,
        *,
        size: int,
        handle: H,
        deadline: float,
        unordered: bool = False,
        after: bytes = b"",
        trace: bytes = b"",
    ) -> None:
        """Take a message of that many bytes. Its outcome comes with `take_settled`, together with the handle."""
        if self.fenced is not None:
            raise self.fenced.copy()
        if self.unseen is not None:
            raise self.unseen.copy()
        if after:
            self._check_after(after)
        lane = self._lane(groups) if self.places.knows(groups) else self.places.wait(groups)
        self._tickets += 1
        item = Item(self._tickets, lane, groups, message, size, unordered, after, deadline, handle, trace=trace)
        lane.pending += 1
        self.bytes += item.size
        self.queue.append(item)
        if deadline < self._deadline_next:
            self._deadline_next = deadline
        if lane.cells and not lane.is_open:
            self._open(lane)

    def _check_after(self, after: bytes) -> None:
        """A request shows it together with our own."""
        try:
            merge(self.token, after)
        except RemoteProtocolError as error:
            raise InvalidArgument(str(error)) from None

    def _lane(self, groups: Groups) -> Lane[H]:
        cells = self.places.cells_of(groups)
        lane = self.lanes.get(cells)
        if lane is None:
            lane = self.lanes.add(cells, groups, id_prefix(self.owner + self.producer, cells))
            # One that had to make room may have waited to be opened, for messages that were given up since.
            self.opening = {c: opening for c, opening in self.opening.items() if c in self.lanes}
        elif not (lane.is_open or lane.pending):
            lane.groups = groups  # Those of before may live elsewhere by now.
        return lane

    def _open(self, lane: Lane[H]) -> None:
        """Nothing is written to the set until it is open."""
        lane.is_open = False
        if not lane.open_token:
            self._openings += 1
            lane.open_token = self.instance + pack_u64(self._openings)
            lane.open_stream = 0
        self.opening[lane.cells] = lane

    # ------------------------------------------------------------------------------------------ streams

    def dial_due(self, now: float) -> bool:
        """Whether the driver should open a stream, to `gateway`, and say `dialed`."""
        has_work = bool(self.queue or self.opening)
        return self.stream == 0 and has_work and (self.retry_at is None or self.retry_at <= now)

    def dialed(self, now: float) -> int:
        """The number of the new stream. Nothing is written before its first response."""
        assert self.stream == 0
        self._streams += 1
        self.stream = self._streams
        self._dialed_gateway = self.gateway
        self._has_given_up = False
        self.retry_at = None
        self._dialed_at = self._heard_at = now
        return self.stream

    def lost(self, stream: int, trouble: OrdercastError, now: float, chance: float) -> None:
        """The stream ended or could not be opened: on to the next gateway. News of earlier ones is ignored."""
        if stream != self.stream:
            return
        self.trouble = trouble
        self.gateway += 1
        self._drop()
        self._wait(now, chance, trouble.retry_after)
        if not trouble.is_retryable:
            self._give_up([(item, trouble) for item in self.queue if not item.doubts])

    def _wait(self, now: float, chance: float, told: float | None) -> None:
        """A gateway knows better than we how long. Not all of its clients come back in the same moment."""
        if told is None:
            delay = backoff_s(self._failures, chance)
        else:
            delay = max(min(told, BACKOFF_S_MAX) * (1 + SPREAD * chance), backoff_s(0, chance))
        self._failures += 1
        self.retry_at = now + delay

    def _drop(self) -> None:
        """What was written may have been stored, or may still be: it keeps its number and is repeated."""
        self.stream = self.credits = 0
        self.is_ready = False
        self.places.asked.clear()
        items, self.sent = self.sent, {}
        self._queue_again(items.values())

    def _go_on_here(self) -> bool:
        """Repeat what was refused on the same stream, if nothing else is needed and all of it is known.

        What was written behind a refusal is refused as well. Were one of those still without its answer, it would
        have to be repeated later, behind others that it came before.
        """
        refused = [item for item in self.sent.values() if not item.stream]
        first = min((item.ticket for item in refused), default=inf)
        is_certain = all(item.ticket < first for item in self.sent.values() if item.stream)
        if self.gateway != self._dialed_gateway or self._has_given_up or not is_certain:
            return False
        self.retry_at = None
        self._unsend(refused)
        return True

    def _queue_again(self, items: Iterable[Item[H]]) -> None:
        """In the order of the publish calls."""
        again = list(items)
        for item in again:
            item.stream = 0
        if again:
            self.queue = deque(sorted([*again, *self.queue], key=lambda item: item.ticket))

    @property
    def _outstanding(self) -> int:
        """What this stream's gateway owes an answer for. An opening counts as one message."""
        openings = sum(1 for lane in self.opening.values() if lane.open_stream == self.stream)
        return len(self.sent) + openings + bool(self.places.asked)

    # ------------------------------------------------------------------------------------------ writing

    def frame(self, now: float) -> PublishStreamRequest | None:
        """All that may be written now, or as much of it as one frame takes."""
        frame = PublishStreamRequest()
        self.fill(frame, now)
        return frame if frame.requests or frame.locate else None

    def fill(self, frame: PublishStreamRequest, now: float) -> int:
        """The same, into a frame that may have requests of others too; about how many bytes that is."""
        if not self.is_ready or self.retry_at is not None:
            return 0
        outstanding = self._outstanding
        if outstanding == 0:
            self._heard_at = now
        room = max(min(self.credits, self.in_flight_max) - outstanding, 0)
        moving.placed(self, self.places.assume())
        frame.locate.extend(self.places.ask(LOCATED_MAX - len(frame.locate)))
        openings = self._write_openings(frame, room)
        room -= openings
        size = 0
        while self.queue and room > 0 and size < FRAME_BYTES_MAX:
            items = self._next_batch(room)
            if not items:
                break
            room -= len(items)
            size += sum(item.size for item in items) + len(self.token)
            frame.requests.append(self._request(items))
        return size + openings * (OPENING_BYTES_MAX + len(self.token))

    def _write_openings(self, frame: PublishStreamRequest, room: int) -> int:
        """How many: each takes as much room as a message."""
        fit = max(FRAME_BYTES_MAX // (OPENING_BYTES_MAX + len(self.token)), 1)
        lanes = [lane for lane in self.opening.values() if lane.open_stream != self.stream][: min(room, fit)]
        for lane in lanes:
            lane.open_stream = self.stream
            frame.requests.append(self._opening_request(lane))
        return len(lanes)

    def _opening_request(self, lane: Lane[H]) -> PublishRequest:
        return PublishRequest(
            producer=self.producer,
            groups=lane.groups,
            open_token=lane.open_token,
            session=self.token,
            cells=told_as(lane.cells, lane.groups),
        )

    def _next_batch(self, room: int) -> list[Item[H]]:
        """From the front of the queue: messages that follow on each other, to the same groups or just cells."""
        head = self.queue[0]
        lane = head.lane
        if not lane.is_open:
            return []
        batch = [head]
        size, limit = head.size, 1 if head.alone else min(room, BATCH_MESSAGES_MAX)
        mixes, groups = self.takes_batches, dict.fromkeys(head.groups)
        for item in islice(self.queue, 1, None):
            size += item.size
            if len(batch) >= limit or size > BATCH_BYTES_MAX or not item.follows(batch[-1], mixes=mixes):
                break
            groups.update(dict.fromkeys(item.groups))
            if len(groups) > GROUPS_MAX:
                break
            batch.append(item)
        for _ in batch:
            self.queue.popleft()
        return batch

    def _request(self, items: list[Item[H]]) -> PublishRequest:
        head = items[0]
        lane = head.lane
        for item in items:
            if not item.sequence:
                lane.number(item)
            # What is repeated in part keeps its batch, so that the rest is not taken for new.
            item.batch = item.batch or head.sequence
            item.stream = self.stream
            item.doubts += 1
            self.sent[item.ticket] = item
        request = PublishRequest(
            producer=self.producer,
            epoch=lane.epoch,
            first_sequence=head.sequence,
            unordered=head.unordered,
            session=merge(self.token, head.after) if head.after else self.token,
            trace=next((item.trace for item in items if item.trace), b""),
        )
        put_messages(request, items, as_batch=self.takes_batches)
        return request

    # ------------------------------------------------------------------------------------------ replies

    def _belong_to(self, owner: bytes) -> None:
        """Message ids show producers as deliveries do: with what gateways know of our certificate."""
        self.owner = owner
        for lane in self.lanes.values():
            lane.prefix = id_prefix(owner + self.producer, lane.cells)

    def received(self, stream: int, response: PublishStreamResponse, now: float, chance: float) -> None:
        if stream != self.stream:
            return
        if response.owner != self.owner and not response.replies:
            self._belong_to(response.owner)
        if not self.is_ready:
            self.places.is_told = response.locates
            self.takes_batches = response.batches
        self.told(stream, response.places)
        if response.credits:
            self.credits = response.credits
        self.replied(stream, response.replies, now, chance)

    def told(self, stream: int, places: Sequence[GroupPlace]) -> None:
        """Where groups live that this producer asked for, or that others did."""
        if stream == self.stream and places:
            moving.placed(self, self.places.told(places))

    def replied(self, stream: int, replies: Iterable[PublishReply], now: float, chance: float) -> None:
        """What the gateway says to this producer, on a stream that others may share."""
        if stream != self.stream:
            return
        self.is_ready = True
        self._heard_at = now
        for reply in replies:
            if reply.credits:
                self.credits = reply.credits
            lane = self.lanes.get(tuple(reply.cells) or tuple(sorted(reply.groups)))
            if lane is None or reply.producer != self.producer or self.fenced is not None:
                continue
            if reply.session:
                self.see(reply.session)
            if reply.open_token:
                self._on_opening_reply(lane, reply, now, chance)
            elif reply.status == PUBLISH_STATUS_OK:
                self._on_receipt(lane, reply, now, chance)
            else:
                self._on_refusal(lane, reply, now, chance)

    def see(self, token: bytes) -> None:
        """Whatever is published from now on comes behind what this stands for: a receipt, or what was read."""
        try:
            merged = merge(self.token, token)
            if len(merged) > len(self.token):
                # One more domain. There has to be room beside the tokens of others that messages wait to show.
                for item in (*self.sent.values(), *self.queue):
                    merge(merged, item.after)
        except RemoteProtocolError as error:
            self.unseen = FailedPrecondition(
                f"this connection has seen what its token cannot hold ({error}): publish on another one"
            )
            return
        self.token = merged

    def _on_refusal(self, lane: Lane[H], reply: PublishReply, now: float, chance: float) -> None:
        """It is about the copy on this stream, and settles it.

        Nothing else has that number by now: numbers are given anew only when the copy was answered, or by an
        opening, which is answered behind it.
        """
        covered = lane.covered(reply.first_sequence, reply.count)
        items = [item for item in covered if item.stream == self.stream]
        for item in items:
            item.doubts -= 1
            item.stream = 0
        if not items:
            return
        error = refusal_of(reply)
        if reply.status in (PUBLISH_STATUS_INVALID_ARGUMENT, PUBLISH_STATUS_NOT_FOUND):
            self.places.forget(reply.groups)
            self._on_wrong(lane, items, error, now, chance)
        elif reply.status == PUBLISH_STATUS_MOVED:
            self.places.forget(reply.groups)
            moving.refused(self, lane, items, error)
        elif reply.status == PUBLISH_STATUS_FENCED:
            self._on_other_epoch(lane, items, reply.epoch)
        elif reply.status == PUBLISH_STATUS_SEQUENCE_GAP and reply.session:
            # Found at delivery, which signs a token: a hole that we left, or the groups forgot us.
            self._reopen(lane, items)
        else:
            self._on_busy(reply, error, now, chance)
            # What is behind another refusal has that one's reason.
            for item in items:
                item.refusal = self.trouble

    def _on_receipt(self, lane: Lane[H], reply: PublishReply, now: float, chance: float) -> None:
        self._failures = 0
        self._patience_s = self.patience_s
        items = lane.covered(reply.first_sequence, reply.count)
        # Rarely: refused on this stream, when an earlier copy's receipt was already under way.
        queued = {item.ticket for item in items if item.ticket not in self.sent}
        if queued:
            self.queue = deque(item for item in self.queue if item.ticket not in queued)
        if not items:
            return
        if reply.bases and len(items) != reply.count:
            # It speaks of others as well: we cannot tell where these went, until they are repeated.
            self.lost(self.stream, Unavailable("the gateway spoke of messages that are settled"), now, chance)
            return
        placed = placed_by(reply, lane.prefix, [item.groups for item in items])
        lane.last_receipt = max(lane.last_receipt, items[-1].sequence)
        for item in items:
            self._remove(item)
            self._settle(item, Receipt(placed, item.sequence))

    def _on_busy(self, reply: PublishReply, error: OrdercastError, now: float, chance: float) -> None:
        """Nothing was stored. What is accepted is still answered on this stream until it is time to repeat."""
        if self.retry_at is None:
            self.trouble = error
            if reply.status != PUBLISH_STATUS_RESOURCE_EXHAUSTED:
                self.gateway += 1  # another one may reach the group
            self._wait(now, chance, error.retry_after)

    def _on_wrong(
        self, lane: Lane[H], items: list[Item[H]], error: OrdercastError, now: float, chance: float
    ) -> None:
        first = items[0].sequence
        if len(items) > 1 and error.code == "INVALID_ARGUMENT":
            # One of them is wrong, and the others need not fail with it.
            for item in items:
                item.alone = True
            if lane.is_open and not lane.is_certain_from(first):
                # More is under way, and will be refused. Opened anew, the set would lose its place there.
                if self.retry_at is None:
                    self._wait(now, chance, None)
                return
            self._unsend(items)
            self._mend(lane, first)
            return
        # Its gateway may wait for what it refused before together with these: it would wait for ever.
        self._has_given_up |= any(item.refusal is not None for item in items)
        in_doubt = any(item.doubts for item in items)
        for item in items:
            self._remove(item)
            self._settle(item, unknown(error.message) if item.doubts else error)
        self._mend(lane, first, in_doubt=in_doubt)

    def _on_other_epoch(self, lane: Lane[H], items: list[Item[H]], epoch: int) -> None:
        if not lane.is_open:
            self._unsend(items)  # the answer to the opening decides
        elif epoch > lane.epoch:
            self._fence()
        else:
            self._reopen(lane, items)

    def _fence(self) -> None:
        name = self.producer.decode(errors="replace")
        self.fenced = Fenced(f"another client opened the producer {name!r} later")
        self.opening.clear()
        items = [*self.sent.values(), *self.queue]
        self.sent.clear()
        self.queue.clear()
        for item in items:
            self._remove(item)
            self._settle(item, self.fenced)

    # ----------------------------------------------------------------------------------- holes, openings

    def _unsend(self, items: list[Item[H]]) -> None:
        """Refused: the gateway owes nothing for them any more. They wait until their set is mended."""
        self._queue_again([item for item in items if self.sent.pop(item.ticket, None) is not None])

    def _reopen(self, lane: Lane[H], items: list[Item[H]]) -> None:
        self._unsend(items)
        self._open(lane)

    def _mend(self, lane: Lane[H], first: int, *, in_doubt: bool = False) -> None:
        """The sequence `first` is not stored, and what has higher ones must not wait for it."""
        if not lane.is_open:
            return  # the answer to the opening tells where to go on
        if in_doubt or not lane.is_certain_from(first):
            self._open(lane)
            return
        self._unsend(lane.covered(first, lane.next_sequence - first))
        lane.unnumber(first)

    def _on_opening_reply(self, lane: Lane[H], reply: PublishReply, now: float, chance: float) -> None:
        if reply.open_token != lane.open_token:
            return  # answered before, through another gateway
        if reply.status == PUBLISH_STATUS_OK:
            self._failures = 0
            self._patience_s = self.patience_s
            self._go_on(lane, reply.epoch, reply.last_sequence)
            return
        error = refusal_of(reply)
        if reply.status in (PUBLISH_STATUS_INVALID_ARGUMENT, PUBLISH_STATUS_NOT_FOUND):
            self.places.forget(reply.groups)
            self._on_cannot_open(lane, error)
        elif reply.status == PUBLISH_STATUS_MOVED:
            self.places.forget(reply.groups)
            moving.opening_refused(self, lane, error)
        elif reply.status == PUBLISH_STATUS_FENCED:
            self._fence()
        else:
            lane.open_stream = 0
            self._on_busy(reply, error, now, chance)

    def _go_on(self, lane: Lane[H], epoch: int, last_sequence: int) -> None:
        """Up to `last_sequence` all is stored: repeating it yields its receipt. Beyond, nothing ever will be."""
        is_forgotten = lane.is_forgotten(epoch, last_sequence)
        if lane.is_known and not is_forgotten and not lane.is_ours(epoch, last_sequence):
            self._fence()
            return
        numbered = list(lane.items.values())
        self._unsend(numbered)
        self.opening.pop(lane.cells, None)
        lane.is_open = lane.is_known = True
        lane.open_token = b""
        lane.epoch = epoch
        if is_forgotten:
            lane.last_receipt = 0
            doubtful = {item.ticket: item for item in numbered if item.doubts}
            self.queue = deque(item for item in self.queue if item.ticket not in doubtful)
            for item in doubtful.values():
                self._remove(item)
                self._settle(item, unknown("the groups no longer know whether they have it"))
        lane.unnumber(last_sequence + 1)

    def _on_cannot_open(self, lane: Lane[H], error: OrdercastError) -> None:
        """The next publish tries again, with the same token: this one was not used."""
        self.opening.pop(lane.cells, None)
        lane.open_stream = 0
        items = [item for item in (*self.sent.values(), *self.queue) if item.lane is lane]
        self.queue = deque(item for item in self.queue if item.lane is not lane)
        for item in items:
            self._remove(item)
            self._settle(item, unknown(error.message) if item.doubts else error)

    # --------------------------------------------------------------------------------------------- time

    def wake_at(self) -> float | None:
        """When `tick` has something to do, if nothing happens before."""
        times = [self._deadline_next] if self._deadline_next < inf else []
        if self.retry_at is not None:
            if self.stream or self.queue or self.opening:
                times.append(self.retry_at)
        elif self.stream and not self.is_ready:
            times.append(self._dialed_at + self._patience_s)
        elif self.stream and self._outstanding:
            times.append(self._heard_at + self._patience_s)
        return min(times, default=None)

    def tick(self, now: float, chance: float) -> None:
        if now >= self._deadline_next:
            self._expire(now)
        if not self.stream:
            return
        if self.retry_at is not None:
            if now >= self.retry_at and not self._go_on_here():
                self._drop()
        elif not self.is_ready:
            if now >= self._dialed_at + self._patience_s:
                self._patience_s = min(self._patience_s * 2, PATIENCE_S_MAX)
                self.lost(self.stream, Unavailable("the gateway does not answer"), now, chance)
        elif self._outstanding and now >= self._heard_at + self._patience_s:
            self._patience_s = min(self._patience_s * 2, PATIENCE_S_MAX)
            self.lost(self.stream, Unavailable("the gateway fell silent"), now, chance)

    def _expire(self, now: float) -> None:
        """What may be stored is repeated until that is known, for a gap would refuse all that follows."""
        reason = f": {self.trouble.message}" if self.trouble else ""
        late = DeadlineExceeded(f"could not be sent within the timeout{reason}")
        overdue: list[tuple[Item[H], OrdercastError]] = []
        self._deadline_next = inf
        for item in (*self.sent.values(), *self.queue):
            if item.handle is None:
                continue
            if item.deadline > now:
                self._deadline_next = min(self._deadline_next, item.deadline)
            elif item.doubts:
                self._settle(item, unknown("no receipt within the timeout"))
                item.handle = None
            else:
                overdue.append((item, item.refusal or late))
        self._give_up(overdue)
        if self._has_given_up and self.stream and self.retry_at is None:
            self.retry_at = now

    def _give_up(self, outcomes: list[tuple[Item[H], OrdercastError]]) -> None:
        """These are certainly not stored. Those behind them close up."""
        gone = {item.ticket for item, _ in outcomes}
        self.queue = deque(item for item in self.queue if item.ticket not in gone)
        holes: dict[Groups, int] = {}
        for item, error in outcomes:
            self._has_given_up |= item.alone or item.sequence > 0
            if item.sequence:
                cells = item.lane.cells
                holes[cells] = min(item.sequence, holes.get(cells, item.sequence))
            self._remove(item)
            self._settle(item, error)
        for cells, first in holes.items():
            self._mend(self.lanes[cells], first)
        # Nobody waits for these any more. The next publish goes on with the opening, under the same token.
        self.opening = {cells: lane for cells, lane in self.opening.items() if lane.pending}

    def close(self) -> None:
        """Nothing is repeated from here on."""
        items = [*self.sent.values(), *self.queue]
        self.sent.clear()
        self.queue.clear()
        self.opening.clear()
        self.stream = 0
        self.is_ready = False
        for item in items:
            self._remove(item)
            closed = "the connection was closed"
            self._settle(item, unknown(closed) if item.doubts else Unavailable(closed))

    # ----------------------------------------------------------------------------------------- outcomes

    def take_settled(self) -> list[tuple[H, Receipt | OrdercastError]]:
        """What became of messages since the last call."""
        settled, self._settled = self._settled, []
        return settled

    def _settle(self, item: Item[H], outcome: Receipt | OrdercastError) -> None:
        if item.handle is not None:
            # Each caller raises an error of its own: a shared one would gather everybody's tracebacks.
            own = outcome.copy() if isinstance(outcome, OrdercastError) else outcome
            self._settled.append((item.handle, own))

    def _remove(self, item: Item[H]) -> None:
        """From everywhere but the queue, which is filtered once for many."""
        self.sent.pop(item.ticket, None)
        if item.sequence:
            item.lane.items.pop(item.sequence, None)
        item.lane.pending -= 1
        self.bytes -= item.size
