"""Exactly once, decided at delivery.

Two gateways batch the same messages differently, so no gateway can tell a repetition. Every destination group
sees the same subsequence of a (producer, set), in the same order, so every group and every replica reaches the
same verdict about each range: next, deliver; at or below the last, duplicate; beyond, refused.

**What is forgotten.** A producer is forgotten at a distance in the order from where it was last heard of, and when
its set has too many of them (`forgetting.py`). Both depend on nothing but the envelopes to that set, so all groups
of the set forget at the same point. Groups without an order in common do not count the producers of sets
that they share, since they would not forget at the same point.

**What a producer meets that was forgotten:**

* It goes on. Its sequence is beyond the first, so it is refused as a gap; if it had opened, as fenced, for an
  unknown producer has no epoch. It opens, is told that nothing is known of it, and tells its user that it does not
  know what became of what was in doubt.
* Somebody opens it anew. The epoch is higher than any that was forgotten, so earlier instances stay fenced.
* It repeats from its very first sequence on, and has never opened. That cannot be told from a new producer, and is
  delivered again. Such a repetition is recognised as long as its client had no more producers in the set since
  than its share of `idempotence_producers`.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from ordercast.core.cells import Tally
from ordercast.core.ids import pack_u64
from ordercast.protocols.celllog.forgetting import PRODUCERS_MAX, DestinationSet, Queue
from ordercast.protocols.celllog.places import (
    Place,
    Places,
    appended,
    each,
    end_of_first,
    first_of,
    place_in_groups,
    place_of,
    without_first,
)
from ordercast.v1.common_pb2 import REFUSAL_FENCED, REFUSAL_GAP, ProducerRange, RangeOutcome, Span
from ordercast.v1.sequencer_pb2 import ProducerRecord

Record = tuple[bytes, bytes | None]
SetKey = tuple[bytes, tuple[str, ...]]

#: The first byte of the keys of its records: a ProducerRecord without spans, and each Span.
PRODUCER, SPAN = b"s", b"w"

OPEN_TOKENS_MAX = 8


@lru_cache(maxsize=4096)
def producer_record(group: str, producer_id: bytes, groups: tuple[str, ...]) -> bytes:
    # Destination sets may be long and keys may not.
    digest = hashlib.blake2b("\0".join(groups).encode() + b"\0\0" + producer_id, digest_size=16).digest()
    return PRODUCER + group.encode() + b"\0" + digest


def span_record(producer_key: bytes, first_sequence: int) -> bytes:
    return SPAN + producer_key[1:] + pack_u64(first_sequence)


def producer_of_span(key: bytes) -> bytes:
    return PRODUCER + key[1:-8]


def set_record(group: str, groups: tuple[str, ...]) -> bytes:
    """What is kept about a set itself; no set has a group without a name."""
    return producer_record(group, b"", ("", *groups))


@dataclass(slots=True)
class ProducerState:
    epoch: int = 0
    last_sequence: int = 0
    #: The latest, newest last: a late copy of an older request must not raise the epoch again.
    open_tokens: tuple[bytes, ...] = ()
    last_sn: int = 0
    #: Where the latest sequences went, oldest first.
    places: Places = b""
    #: Where it stands among those that may be forgotten, once an envelope has named its client.
    queue: Queue | None = None
    turn: int = 0

    @property
    def says_nothing(self) -> bool:
        """It is as if the producer were unknown."""
        return not (self.last_sequence or self.epoch or self.open_tokens)


class ProducerTable:
    """One group's idempotence state: a function of the group's log, and of nothing else."""

    def __init__(
        self,
        group: str,
        distance: int,
        window: int,
        producers_max: int = PRODUCERS_MAX,
        *,
        counts_shared_sets: bool = True,
    ) -> None:
        """With `counts_shared_sets`, all groups of a set deliver its envelopes in the same order."""
        self.group = group
        self.distance = distance
        self.window = window
        self.producers_max = producers_max
        self.counts_shared_sets = counts_shared_sets
        #: Least recently heard of first.
        self.states: dict[SetKey, ProducerState] = {}
        self.sets: dict[tuple[str, ...], DestinationSet] = {}
        #: How many are in queues, and the highest turn of those.
        self._queued = 0
        self._turn = 0
        #: Nobody was last heard of before this.
        self._heard_since = 0
        #: What the last verdicts changed on disk.
        self._changes: list[Record] = []

    def __len__(self) -> int:
        return len(self.states)

    def key_of(self, producer: bytes, groups: tuple[str, ...]) -> SetKey:
        """Sequences are contiguous per producer *and* destination set: other groups see other subsets."""
        return (producer, groups)

    def judge(
        self,
        range_: ProducerRange,
        groups: tuple[str, ...],
        sn: int,
        order_key: bytes,
        offset: int,
        tally: Tally | None = None,
    ) -> RangeOutcome:
        """The verdict on a range that is delivered at sn, its new messages from this offset on.

        The tally counts the new ones into the logs of the cell's groups, if the envelope has targets.
        """
        # All groups of the set compare the same two numbers, so all of them forget at the same point. Those that
        # are too far away go before anybody is counted: in other groups, other envelopes have driven them out.
        self._changes += self.expire(sn)
        key = self.key_of(range_.producer, groups)
        state = self.states.pop(key, None)
        is_new = state is None
        if state is None:
            state = ProducerState()
        there = self._set_of(key[1])
        # With the one tuple of groups that all producers of the set share.
        key = (key[0], there.groups)
        outcome = RangeOutcome()
        if range_.open_token:
            self._open(range_.open_token, state, there, outcome)
        elif range_.epoch != state.epoch:
            outcome.refusal = REFUSAL_FENCED
        elif range_.first_sequence > state.last_sequence + 1:
            outcome.refusal = REFUSAL_GAP
        else:
            self._take(key, state, range_, order_key, offset, tally, outcome)
        outcome.epoch, outcome.last_sequence = state.epoch, state.last_sequence
        if state.says_nothing:
            self._drop_if_empty(there)
            return outcome
        state.last_sn = sn
        self.states[key] = state
        there.known += is_new
        self._queue(key, state, there, range_.client)
        self._changes.append((self._record_key(key), self._head(key, state).SerializeToString()))
        return outcome

    def _open(self, token: bytes, state: ProducerState, there: DestinationSet, outcome: RangeOutcome) -> None:
        if token not in state.open_tokens:
            state.epoch = there.first_epoch() if state.says_nothing else state.epoch + 1
            state.open_tokens = (*state.open_tokens, token)[-OPEN_TOKENS_MAX:]
        elif token != state.open_tokens[-1]:
            # Repeated after somebody else opened: the epoch that it would be told is not its own.
            outcome.refusal = REFUSAL_FENCED

    def _take(
        self,
        key: SetKey,
        state: ProducerState,
        range_: ProducerRange,
        order_key: bytes,
        offset: int,
        tally: Tally | None,
        outcome: RangeOutcome,
    ) -> None:
        first, end = range_.first_sequence, range_.first_sequence + range_.count
        fresh = max(first, state.last_sequence + 1)
        # Almost nothing is a repetition: then there is no need to look where the window's thousands went.
        for place in each(state.places) if first < fresh else ():
            low = max(first, place.first_sequence)
            high = min(end, fresh, place.end)
            if low < high:
                outcome.spans.extend(place.parts(low, high))
        known = outcome.spans[0].first_sequence if outcome.spans else fresh
        if first < min(known, end):
            # Older than the window: certainly a duplicate, but its place is no longer known.
            outcome.spans.insert(0, Span(first_sequence=first, count=min(known, end) - first, duplicate=True))
        if fresh < end:
            there = fresh, end - fresh, offset, order_key
            outcome.spans.add(first_sequence=fresh, count=end - fresh, first_offset=offset, order_key=order_key)
            if tally is None:
                self._remember(key, state, Place(*there))
            else:
                self._remember(key, state, place_in_groups(*there, tally.take(range_, fresh, end)))

    def _remember(self, key: SetKey, state: ProducerState, place: Place) -> None:
        """The latest sequences keep their places; one record per range, so that a delivery writes little."""
        record_key = self._record_key(key)
        state.places = appended(state.places, place)
        self._changes.append((span_record(record_key, place.first_sequence), place.span().SerializeToString()))
        state.last_sequence = place.end - 1
        while state.last_sequence - end_of_first(state.places) >= self.window:
            oldest = first_of(state.places)
            state.places = without_first(state.places)
            self._changes.append((span_record(record_key, oldest.first_sequence), None))

    # ---------------------------------------------------------------------------------------- forgetting

    def _queue(self, key: SetKey, state: ProducerState, there: DestinationSet, client: bytes) -> None:
        """It was heard of, and others may have to go for it."""
        before = state.queue
        if before is None and not (client and (self.counts_shared_sets or len(there.groups) == 1)):
            return
        self._queued += before is None
        self._turn += 1
        state.turn = self._turn
        client = client or (before.client if before is not None else b"")
        there.enter(key, state, client, established=before is not None)
        gone = there.surplus(self.producers_max)
        epoch = max((self.states[other].epoch for other in gone), default=0)
        for other in gone:
            self._changes += self._forget(other, self.states.pop(other))
        if epoch > there.epoch_forgotten:
            there.epoch_forgotten = epoch
            self._changes.append((self._set_key(there), self._set_head(there).SerializeToString()))

    def expire(self, sn: int) -> list[Record]:
        """Drop what no later envelope could find unexpired: those have a higher sn."""
        if sn - self._heard_since <= self.distance:
            return []
        gone: list[SetKey] = []
        self._heard_since = sn
        for key, state in self.states.items():
            if sn - state.last_sn <= self.distance:
                self._heard_since = state.last_sn
                break
            gone.append(key)
        return [record for key in gone for record in self._forget(key, self.states.pop(key))]

    def clear(self) -> list[Record]:
        """Forget everything: a snapshot replaces it."""
        gone, self.states = self.states, {}
        return [record for key, state in gone.items() for record in self._forget(key, state)]

    def _forget(self, key: SetKey, state: ProducerState) -> list[Record]:
        """One that is in the table no more."""
        there = self.sets[key[1]]
        self._queued -= state.queue is not None
        if not self._queued:
            self._turn = 0
        there.leave(key, state)
        there.known -= 1
        changes: list[Record] = [(record_key := self._record_key(key), None)]
        changes += [(span_record(record_key, place.first_sequence), None) for place in each(state.places)]
        if there.epoch_forgotten and not there.known:
            changes.append((self._set_key(there), None))
        self._drop_if_empty(there)
        return changes

    def _set_of(self, groups: tuple[str, ...]) -> DestinationSet:
        there = self.sets.get(groups)
        if there is None:
            there = self.sets[groups] = DestinationSet(groups)
        return there

    def _drop_if_empty(self, there: DestinationSet) -> None:
        if not there.known:
            del self.sets[there.groups]

    # ------------------------------------------------------------------------------------------- durable

    def changes(self) -> list[Record]:
        """What the verdicts since the last call changed on disk."""
        changes, self._changes = self._changes, []
        return changes

    def _record_key(self, key: SetKey) -> bytes:
        return producer_record(self.group, *key)

    def _set_key(self, there: DestinationSet) -> bytes:
        return set_record(self.group, there.groups)

    def _head(self, key: SetKey, state: ProducerState) -> ProducerRecord:
        head = ProducerRecord(
            producer=key[0],
            groups=key[1],
            epoch=state.epoch,
            last_sequence=state.last_sequence,
            open_tokens=state.open_tokens,
            last_sn=state.last_sn,
        )
        if state.queue is not None:
            head.client, head.established, head.turn = state.queue.client, state.queue.established, state.turn
        return head

    def _set_head(self, there: DestinationSet) -> ProducerRecord:
        return ProducerRecord(groups=there.groups, epoch_forgotten=there.epoch_forgotten)

    def _sets_with_records(self) -> list[DestinationSet]:
        return [there for _, there in sorted(self.sets.items()) if there.epoch_forgotten]

    def messages(self) -> list[ProducerRecord]:
        """Everything, for a snapshot."""
        result = [self._set_head(there) for there in self._sets_with_records()]
        for key, state in self.states.items():
            head = self._head(key, state)
            head.spans.extend(place.span() for place in each(state.places))
            result.append(head)
        return result

    def records(self) -> list[Record]:
        """Everything, as it is on disk."""
        result: list[Record] = [
            (self._set_key(there), self._set_head(there).SerializeToString())
            for there in self._sets_with_records()
        ]
        for key, state in self.states.items():
            record_key = self._record_key(key)
            result.append((record_key, self._head(key, state).SerializeToString()))
            for place in each(state.places):
                record = (span_record(record_key, place.first_sequence), place.span().SerializeToString())
                result.append(record)
        return result

    def load(self, messages: Iterable[ProducerRecord]) -> None:
        """In order of last_sn, which is the order they were heard of in."""
        self.states, self.sets, self._queued, self._turn, self._heard_since = {}, {}, 0, 0, 0
        about_sets = []
        for message in sorted(messages, key=lambda m: (m.last_sn, m.turn, m.producer, tuple(m.groups))):
            if message.epoch_forgotten:
                about_sets.append(message)
                continue
            tokens = tuple(message.open_tokens)
            state = ProducerState(message.epoch, message.last_sequence, tokens, message.last_sn)
            if state.says_nothing:
                continue  # Older software kept those.
            there = self._set_of(tuple(message.groups))
            key = (message.producer, there.groups)
            for span in message.spans:
                state.places = appended(state.places, place_of(span))
            self.states[key] = state
            there.known += 1
            if message.turn:
                state.turn = message.turn
                there.enter(key, state, message.client, established=message.established)
                self._turn = max(self._turn, message.turn)
                self._queued += 1
        for message in about_sets:
            if tuple(message.groups) in self.sets:
                self.sets[tuple(message.groups)].epoch_forgotten = message.epoch_forgotten

    def copy(self) -> "ProducerTable":
        """As it is now, for `messages` and for nothing else: it stands in no queue of its own."""
        copy = ProducerTable(self.group, self.distance, self.window)
        copy.states = {key: replace(state, places=bytes(state.places)) for key, state in self.states.items()}
        for there in self._sets_with_records():
            copy._set_of(there.groups).epoch_forgotten = there.epoch_forgotten
        return copy
