"""Exactly once, decided at delivery.

Two gateways batch the same messages differently, so no gateway can tell a repetition. Every destination group
sees the same subsequence of a (producer, set), in the same order, so every group and every replica reaches the
same verdict about each range: next, deliver; at or below the last, duplicate; beyond, refused.
"""

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache

from ordercast.core.ids import pack_u64
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


@dataclass(slots=True)
class ProducerState:
    epoch: int = 0
    last_sequence: int = 0
    #: The latest, newest last: a late copy of an older request must not raise the epoch again.
    open_tokens: list[bytes] = field(default_factory=list)
    last_sn: int = 0
    #: Where the latest sequences went, oldest first.
    spans: list[Span] = field(default_factory=list)


class ProducerTable:
    """One group's idempotence state: a function of the group's log, and of nothing else."""

    def __init__(self, group: str, distance: int, window: int) -> None:
        self.group = group
        self.distance = distance
        self.window = window
        #: Least recently heard of first.
        self.states: dict[SetKey, ProducerState] = {}
        #: What the last verdicts changed on disk.
        self._changes: list[Record] = []

    def __len__(self) -> int:
        return len(self.states)

    def key_of(self, producer: bytes, groups: tuple[str, ...]) -> SetKey:
        """Sequences are contiguous per producer *and* destination set: other groups see other subsets."""
        return (producer, groups)

    def judge(
        self, range_: ProducerRange, groups: tuple[str, ...], sn: int, order_key: bytes, offset: int
    ) -> RangeOutcome:
        """The verdict on a range that is delivered at sn, its new messages from this offset on."""
        key = self.key_of(range_.producer, groups)
        state = self.states.pop(key, None)
        if state is not None and sn - state.last_sn > self.distance:
            # All groups of the set compare the same two numbers, so all of them forget at the same point.
            self._changes += self._deletions(key, state)
            state = None
        if state is None:
            state = ProducerState()
        self.states[key] = state
        state.last_sn = sn
        outcome = RangeOutcome()
        if range_.open_token:
            if range_.open_token not in state.open_tokens:
                state.epoch += 1
                state.open_tokens = [*state.open_tokens, range_.open_token][-OPEN_TOKENS_MAX:]
            elif range_.open_token != state.open_tokens[-1]:
                # Repeated after somebody else opened: the epoch that it would be told is not its own.
                outcome.refusal = REFUSAL_FENCED
        elif range_.epoch != state.epoch:
            outcome.refusal = REFUSAL_FENCED
        elif range_.first_sequence > state.last_sequence + 1:
            outcome.refusal = REFUSAL_GAP
        else:
            self._take(key, range_, order_key, offset, outcome)
        outcome.epoch, outcome.last_sequence = state.epoch, state.last_sequence
        self._changes.append((self._record_key(key), self._head(key).SerializeToString()))
        return outcome

    def _take(
        self, key: SetKey, range_: ProducerRange, order_key: bytes, offset: int, outcome: RangeOutcome
    ) -> None:
        state = self.states[key]
        first, end = range_.first_sequence, range_.first_sequence + range_.count
        fresh = max(first, state.last_sequence + 1)
        # Almost nothing is a repetition: then there is no need to look where the window's thousands went.
        for span in state.spans if first < fresh else ():
            low = max(first, span.first_sequence)
            high = min(end, fresh, span.first_sequence + span.count)
            if low < high:
                outcome.spans.add(
                    first_sequence=low,
                    count=high - low,
                    first_offset=span.first_offset + low - span.first_sequence,
                    order_key=span.order_key,
                    duplicate=True,
                )
        known = outcome.spans[0].first_sequence if outcome.spans else fresh
        if first < min(known, end):
            # Older than the window: certainly a duplicate, but its place is no longer known.
            outcome.spans.insert(0, Span(first_sequence=first, count=min(known, end) - first, duplicate=True))
        if fresh < end:
            span = Span(
                first_sequence=fresh,
                count=end - fresh,
                first_offset=offset,
                order_key=order_key,
                duplicate=False,
            )
            outcome.spans.append(span)
            self._remember(key, state, span)

    def _remember(self, key: SetKey, state: ProducerState, span: Span) -> None:
        """The latest sequences keep their places; one record per span, so that a delivery writes little."""
        record_key = self._record_key(key)
        state.spans.append(span)
        self._changes.append((span_record(record_key, span.first_sequence), span.SerializeToString()))
        state.last_sequence = span.first_sequence + span.count - 1
        while state.last_sequence - (state.spans[0].first_sequence + state.spans[0].count) >= self.window:
            self._changes.append((span_record(record_key, state.spans.pop(0).first_sequence), None))

    def expire(self, sn: int) -> list[Record]:
        """Drop what no later envelope could find unexpired: those have a higher sn."""
        gone: list[SetKey] = []
        for key, state in self.states.items():
            if sn - state.last_sn <= self.distance:
                break
            gone.append(key)
        return [record for key in gone for record in self._deletions(key, self.states.pop(key))]

    def clear(self) -> list[Record]:
        """Forget everything: a snapshot replaces it."""
        gone, self.states = self.states, {}
        return [record for key, state in gone.items() for record in self._deletions(key, state)]

    def _deletions(self, key: SetKey, state: ProducerState) -> list[Record]:
        record_key = self._record_key(key)
        spans: list[Record] = [(span_record(record_key, span.first_sequence), None) for span in state.spans]
        return [(record_key, None), *spans]

    # ------------------------------------------------------------------------------------------- durable

    def changes(self) -> list[Record]:
        """What the verdicts since the last call changed on disk."""
        changes, self._changes = self._changes, []
        return changes

    def _record_key(self, key: SetKey) -> bytes:
        return producer_record(self.group, *key)

    def _head(self, key: SetKey) -> ProducerRecord:
        state = self.states[key]
        return ProducerRecord(
            producer=key[0],
            groups=key[1],
            epoch=state.epoch,
            last_sequence=state.last_sequence,
            open_tokens=state.open_tokens,
            last_sn=state.last_sn,
        )

    def messages(self) -> list[ProducerRecord]:
        """Everything, for a snapshot."""
        result = []
        for key, state in self.states.items():
            head = self._head(key)
            head.spans.extend(state.spans)
            result.append(head)
        return result

    def records(self) -> list[Record]:
        """Everything, as it is on disk."""
        result: list[Record] = []
        for key, state in self.states.items():
            record_key = self._record_key(key)
            result.append((record_key, self._head(key).SerializeToString()))
            result += [(span_record(record_key, s.first_sequence), s.SerializeToString()) for s in state.spans]
        return result

    def load(self, messages: list[ProducerRecord]) -> None:
        """In order of last_sn, which is the order they were heard of in."""
        self.states = {
            (m.producer, tuple(m.groups)): ProducerState(
                m.epoch, m.last_sequence, list(m.open_tokens), m.last_sn, list(m.spans)
            )
            for m in sorted(messages, key=lambda m: (m.last_sn, m.producer, tuple(m.groups)))
        }
