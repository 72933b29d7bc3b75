"""What callers are told when a message has no receipt."""

from ordercast.client.errors import OrdercastError, OutcomeUnknown, of_status
from ordercast.v1.gateway_pb2 import PublishReply


def refusal_of(reply: PublishReply) -> OrdercastError:
    told = reply.retry_after_ms / 1000 if reply.retry_after_ms else None
    return of_status(reply.status, reply.detail, retry_after=told)


def unknown(why: str) -> OutcomeUnknown:
    return OutcomeUnknown(f"the message may be stored, or still become so: {why}")
