"""What no gateway takes, whatever its domain's protocol."""

from collections.abc import Sequence

from ordercast.core.limits import Limits, TypeLimits, request_bytes_max, table
from ordercast.core.tracing import CONTEXT_BYTES
from ordercast.gateway.producer import Groups
from ordercast.gateway.settings import GatewaySettings
from ordercast.v1.common_pb2 import Message
from ordercast.v1.gateway_pb2 import PublishRequest

NO_GROUP = "a message needs at least one destination group"


def what_is_wrong(request: PublishRequest, groups: Groups, settings: GatewaySettings) -> str:
    """A clear error for every bad input, before anything is stored."""
    if not groups:
        return NO_GROUP
    if len(groups) > settings.groups_max and not request.targets:
        return f"{len(groups)} destination groups; at most {settings.groups_max}"
    if "" in groups:
        return "a destination group has no name"
    if len(dict.fromkeys(groups)) < len(groups):
        return "a destination group is named twice"
    if not request.producer:
        return "a producer needs an id"
    if request.batch and request.messages:
        return "a request has messages, or a batch of them"
    if bool(request.messages or request.batch) == bool(request.open_token):
        return "a request has messages, or opens the producer"
    if not request.open_token and request.first_sequence == 0:
        return "sequences start at 1"
    if request.trace and len(request.trace) != CONTEXT_BYTES:
        return f"a trace context has {CONTEXT_BYTES} bytes"
    return ""


def limits_of_messages(settings: GatewaySettings) -> TypeLimits:
    return Limits(table(settings.payload_bytes_max)).of(Message.DESCRIPTOR)


def wrong_with_messages(
    messages: Sequence[Message], size: int, settings: GatewaySettings, of_one: TypeLimits
) -> str:
    """The same for what it carries: fewer messages of it, or some of them, may be all right."""
    if len(messages) > settings.envelope_messages_max:
        return f"{len(messages)} messages in one request; at most {settings.envelope_messages_max}"
    # Most requests are so short that nothing in them can be too long, so there is no need to look at each message.
    if size > of_one.floor:
        for message in messages:
            if said := of_one.violation(message, size):
                return said
    if size > request_bytes_max(settings.envelope_bytes_max, settings.groups_max):
        return f"a request has more than {settings.envelope_bytes_max} bytes beside keys, headers and token"
    return ""
