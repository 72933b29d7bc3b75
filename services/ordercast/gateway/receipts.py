"""The replies for an envelope that all of its groups have delivered."""

from ordercast.core.submission import Submission
from ordercast.gateway.opened import Open
from ordercast.v1.common_pb2 import REFUSAL_FENCED, REFUSAL_UNSPECIFIED, ProducerRange, RangeOutcome
from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_FENCED,
    PUBLISH_STATUS_OK,
    PUBLISH_STATUS_SEQUENCE_GAP,
    PublishReply,
)


def replies_for(
    opened: Open, index: int, submission: Submission, session: bytes, credit: int
) -> list[PublishReply]:
    """Of one of its ranges: the groups' refusal, or where its messages went."""
    range_ = opened.envelope.header.ranges[index]
    outcomes = [opened.delivered[group].outcomes[index] for group in opened.groups]
    first = next((outcome for outcome in outcomes if outcome.refusal), outcomes[0])
    reply = _reply(opened, range_, first, session, credit)
    if first.refusal != REFUSAL_UNSPECIFIED:
        fenced = first.refusal == REFUSAL_FENCED
        reply.status = PUBLISH_STATUS_FENCED if fenced else PUBLISH_STATUS_SEQUENCE_GAP
        return [reply]
    reply.status = PUBLISH_STATUS_OK
    replies = []
    if range_.open_token:
        reply.order_key = opened.delivered[opened.groups[0]].order_key
        replies.append(reply)
    for spans in submission.places_of(opened, index):
        receipt = PublishReply()
        receipt.CopyFrom(reply)
        receipt.first_sequence, receipt.count = spans[0].first_sequence, spans[0].count
        receipt.order_key, receipt.duplicate = spans[0].order_key, all(span.duplicate for span in spans)
        for group, there in zip(opened.groups, spans, strict=True):
            receipt.offsets.add(group=group, first_offset=there.first_offset)
        replies.append(receipt)
    return replies


def _reply(
    opened: Open, range_: ProducerRange, outcome: RangeOutcome, session: bytes, credit: int
) -> PublishReply:
    return PublishReply(
        producer=range_.producer,
        groups=opened.groups,
        first_sequence=range_.first_sequence,
        count=range_.count,
        epoch=outcome.epoch,
        last_sequence=outcome.last_sequence,
        session=session,
        credits=credit,
        open_token=range_.open_token,
    )
