"""Who takes part in a message, where a protocol is genuine, checked at every send.

Only the sender and the destinations take part in a multicast. An envelope, in whatever message it travels, is sent
by nobody and to nobody but those who are or were to be replicas of its groups, and its gateway.
What protocols say about an envelope by its id is their own to check.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor import FieldDescriptor as Field

from ordercast.core.view import names_of
from ordercast.sim.checkers.logs import LogChecker
from ordercast.sim.checkers.violation import Violation
from ordercast.sim.trace import describe
from ordercast.v1.common_pb2 import Envelope

ENVELOPE = Envelope.DESCRIPTOR.full_name
#: Messages in messages in messages: none of ours has its envelopes deeper.
DEPTH_MAX = 3


@cache
def _paths(descriptor: Descriptor, depth: int = 0) -> tuple[tuple[Field, ...], ...]:
    """The fields that lead to envelopes."""
    found: list[tuple[Field, ...]] = []
    for field in descriptor.fields:
        if field.message_type is None:
            continue
        if field.message_type.full_name == ENVELOPE:
            found.append((field,))
        elif depth < DEPTH_MAX:
            found += [(field, *path) for path in _paths(field.message_type, depth + 1)]
    return tuple(found)


def _follow(message: Any, path: Sequence[Field]) -> Iterator[Envelope]:
    if not path:
        yield message
        return
    field, rest = path[0], path[1:]
    if field.is_repeated:
        for one in getattr(message, field.name):
            yield from _follow(one, rest)
    elif message.HasField(field.name):
        yield from _follow(getattr(message, field.name), rest)


class GenuineChecker:
    def __init__(self, logs: LogChecker) -> None:
        self.logs = logs

    def on_send(self, source: str, to: Sequence[str], message: Any) -> None:
        for path in _paths(message.DESCRIPTOR):
            for envelope in _follow(message, path):
                self._check(source, to, message, envelope)

    def _check(self, source: str, to: Sequence[str], message: Any, envelope: Envelope) -> None:
        header = envelope.header
        groups = [self.logs.groups[name] for name in names_of(header.destinations)]
        for process in (source, *to):
            if process != header.gateway and not any(process in group.holders for group in groups):
                raise Violation(
                    "participants",
                    f"{source} sends {describe(header)} to {', '.join(to)} in a {type(message).__name__}, and "
                    f"{process} has no part in it",
                )
