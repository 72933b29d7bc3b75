"""Mutants of messages that travel as rows: for different groups of the same cells, one behind the other."""

from collections.abc import Iterable, Sequence
from functools import partial

from ordercast.client.types import Placed
from ordercast.core.cells import Runs
from ordercast.core.submission import Groups
from ordercast.gateway import intake
from ordercast.gateway.receipts import Answers
from ordercast.gateway.rows import Rows
from ordercast.protocols.celllog import idempotence
from ordercast.protocols.celllog.group_log import GroupLog
from ordercast.protocols.celllog.places import Place
from ordercast.sim.mutant import Mutant, register
from ordercast.v1.common_pb2 import Batch, Header, Message, ProducerRange, RangeOutcome
from ordercast.v1.gateway_pb2 import PublishRequest

OF_ROWS: list[Mutant] = []
mutant = partial(register, OF_ROWS)


_rows_of = intake.rows_of


@mutant("rows-swapped-in-an-envelope", "a producer's messages stay in their order", (intake, "rows_of"))
def _swapped(request: PublishRequest, groups: Groups, messages: Sequence[Message]) -> Rows:
    rows = _rows_of(request, groups, messages)
    if rows.messages < 2:
        return rows
    first, second, *others = messages
    return rows._replace(batch=Batch(messages=[second, first, *others]).SerializeToString())


@mutant(
    "rows-told-as-new-that-came-again",
    "one receipt speaks of all only if all of it is new",
    (Answers, "_is_told_at_once"),
    seed=14,
)
def _told_at_once(self: Answers, index: int, range_: ProducerRange, outcomes: Iterable[RangeOutcome]) -> bool:
    is_mixed = any(item.is_mixed for item in self.opened.requests[index])
    return is_mixed and all(outcome.spans for outcome in outcomes)


@mutant("receipt-that-counts-no-rows", "each message has an offset of its own", (Placed, "_count"))
def _counts_nothing(self: Placed) -> None:
    first = dict(self.first_offsets)
    self._counted.extend({group: first[group] for group in groups} for groups in self.groups)


_judge_all = GroupLog.judge


@mutant("row-judged-otherwise-at-one-replica", "all replicas reach the same verdicts", (GroupLog, "judge"))
def _judged_otherwise(
    self: GroupLog, header: Header, groups: tuple[str, ...], sn: int, order_key: bytes
) -> list[RangeOutcome]:
    if self.process == min(self.group.replicas) and len(header.ranges) > 1:
        other = Header()
        other.CopyFrom(header)
        other.ranges[-1].epoch += 1
        header = other
    return _judge_all(self, header, groups, sn, order_key)


@mutant(
    "place-of-the-first-row-alone",
    "a repetition is told where each of its messages went",
    (idempotence, "place_in_groups"),
)
def _first_run(first_sequence: int, messages: int, first_offset: int, order_key: bytes, runs: Runs) -> Place:
    offsets = tuple(runs.offsets[: runs.sizes[0]])
    return Place(first_sequence, messages, first_offset, order_key, offsets)
