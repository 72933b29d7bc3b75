"""The replies for an envelope that all of its cells have delivered."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from ordercast.core.cells import Placed, Tally, placed, runs_of, targets_of, told_cells, within
from ordercast.core.errors import InvariantBroken
from ordercast.core.submission import Groups, Submission
from ordercast.gateway.opened import Open
from ordercast.v1.common_pb2 import REFUSAL_FENCED, REFUSAL_UNSPECIFIED, ProducerRange, RangeOutcome
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_FENCED,
    PUBLISH_STATUS_OK,
    PUBLISH_STATUS_SEQUENCE_GAP,
    PublishReply,
)


class AnsweredRun(NamedTuple):
    """Messages of one range, one after the other, for the same groups."""

    first_sequence: int
    messages: int
    groups: Groups


class Answers:
    """What became of an envelope's ranges, told one after the other."""

    def __init__(self, opened: Open, submission: Submission) -> None:
        self.opened = opened
        self.submission = submission
        header = opened.envelope.header
        self._targets = targets_of(header)
        #: What has been counted in each cell so far, if the envelope says for which of its groups messages are.
        self._tallies = {
            cell: Tally.of(cell, header, delivered.bases) if header.targets else None
            for cell, delivered in opened.delivered.items()
        }

    def replies(self, index: int, session: bytes, credit: int) -> list[PublishReply]:
        """Of the next range: the cells' refusal, or where its messages went."""
        opened = self.opened
        range_ = opened.envelope.header.ranges[index]
        outcomes = {cell: opened.delivered[cell].outcomes[index] for cell in opened.groups}
        if self._is_told_at_once(index, range_, outcomes.values()):
            return [self._receipt_of_all(index, range_, session, credit)]
        there = {cell: self._placed(cell, range_, outcome) for cell, outcome in outcomes.items()}
        first = next((o for o in outcomes.values() if o.refusal), outcomes[opened.groups[0]])
        base = _reply(range_, first, session, credit)
        if first.refusal != REFUSAL_UNSPECIFIED:
            fenced = first.refusal == REFUSAL_FENCED
            base.status = PUBLISH_STATUS_FENCED if fenced else PUBLISH_STATUS_SEQUENCE_GAP
            return [_about(base, run) for run in self._runs(index)]
        base.status = PUBLISH_STATUS_OK
        if range_.open_token:
            base.order_key = opened.delivered[opened.groups[0]].order_key
            return [_about(base, run) for run in self._runs(index)]
        return [self._receipt(base, run, there) for run in self._runs(index) for run in _split(run, there)]

    def _is_told_at_once(self, index: int, range_: ProducerRange, outcomes: Iterable[RangeOutcome]) -> bool:
        """One receipt says of all of it where it went, to a client that has all of it and knows for whom it is."""
        requests = self.opened.requests[index]
        if not any(item.is_mixed for item in requests) or any(item.is_repeated for item in requests):
            return False
        whole = (range_.first_sequence, range_.count, False)
        return all(
            [(span.first_sequence, span.count, span.duplicate) for span in outcome.spans] == [whole]
            for outcome in outcomes
        )

    def _receipt_of_all(self, index: int, range_: ProducerRange, session: bytes, credit: int) -> PublishReply:
        """Where its first message for each group went."""
        opened = self.opened
        first = opened.delivered[opened.groups[0]].outcomes[index]
        reply = _reply(range_, first, session, credit)
        reply.status, reply.order_key = PUBLISH_STATUS_OK, first.spans[0].order_key
        reply.first_sequence, reply.count = range_.first_sequence, range_.count
        groups = sorted({group for item in opened.requests[index] for group in item.groups})
        bases: dict[str, int] = {}
        for tally in self._tallies.values():
            assert tally is not None  # Requests with several targets are in an envelope with several.
            bases.update(zip(tally.groups, tally.ends, strict=True))
            tally.take(range_, range_.first_sequence, range_.first_sequence + range_.count)
        reply.groups[:] = groups
        reply.cells[:] = opened.groups
        reply.bases[:] = [bases[group] for group in groups]
        return reply

    def _runs(self, index: int) -> Iterator[AnsweredRun]:
        range_ = self.opened.envelope.header.ranges[index]
        at = range_.first_sequence
        if not range_.runs:
            groups = self.opened.requests[index][0].groups
            yield AnsweredRun(at, range_.count, groups)
        for target, count in runs_of(range_):
            yield AnsweredRun(at, count, self._targets[target])
            at += count

    def _placed(self, cell: str, range_: ProducerRange, outcome: RangeOutcome) -> list[Placed]:
        tally = self._tallies[cell]
        if tally is not None:
            return placed(tally, range_, outcome)
        return [
            Placed(s.first_sequence, s.count, 0, (s.first_offset,), s.order_key, s.duplicate)
            for s in outcome.spans
        ]

    def _receipt(self, base: PublishReply, run: AnsweredRun, there: dict[str, list[Placed]]) -> PublishReply:
        receipt = _about(base, run)
        parts = {cell: _part(places, run.first_sequence) for cell, places in there.items()}
        duplicates = [part.duplicate for part in parts.values()]
        if self.submission.duplicates_agree and any(duplicates) != all(duplicates):
            raise InvariantBroken(f"the cells {', '.join(parts)} disagree about what is a duplicate")
        receipt.order_key = parts[self.opened.groups[0]].order_key
        receipt.duplicate = all(duplicates)
        for cell, part in parts.items():
            # Of what is older than the window the place is not known.
            ahead = run.first_sequence - part.first_sequence if part.order_key else 0
            groups = within(cell, run.groups)
            for group, offset in zip(groups, part.offsets or (0,) * len(groups), strict=True):
                receipt.offsets.add(group=group, first_offset=offset + ahead)
        return receipt


def _split(run: AnsweredRun, there: dict[str, list[Placed]]) -> Iterator[AnsweredRun]:
    """Where one of the cells has another place, another receipt begins.

    If there is no order across cells, what came first in one may be the repetition in another.
    """
    end = run.first_sequence + run.messages
    starts = {place.first_sequence for places in there.values() for place in places}
    starts = {start for start in starts if run.first_sequence < start < end} | {run.first_sequence}
    bounds = [*sorted(starts), end]
    for low, high in pairwise(bounds):
        yield AnsweredRun(low, high - low, run.groups)


def _part(places: list[Placed], sequence: int) -> Placed:
    """The one that it is in: they follow on each other."""
    return places[bisect_right(places, sequence, key=lambda place: place.first_sequence) - 1]


def _about(base: PublishReply, run: AnsweredRun) -> PublishReply:
    reply = PublishReply()
    reply.CopyFrom(base)
    reply.groups[:] = run.groups
    reply.cells[:] = told_cells(run.groups)
    reply.first_sequence, reply.count = run.first_sequence, run.messages
    return reply


def _reply(range_: ProducerRange, outcome: RangeOutcome, session: bytes, credit: int) -> PublishReply:
    return PublishReply(
        producer=range_.producer,
        epoch=outcome.epoch,
        last_sequence=outcome.last_sequence,
        session=session,
        credits=credit,
        open_token=range_.open_token,
    )
