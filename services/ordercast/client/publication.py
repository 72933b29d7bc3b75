"""What a caller wants published: how it may be said, and what is left to do once it is checked.

The same for asyncio and for threads.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypedDict

from ordercast.client.types import Groups, checked_groups, checked_message, checked_timeout, checked_token
from ordercast.v1.common_pb2 import Message


class PublishOptions(TypedDict, total=False):
    """What may be said of a message besides its payload and its groups."""

    #: For consumers; it has no effect on the order.
    key: bytes | str
    headers: Mapping[str, bytes | str] | None
    #: False gives up the order towards this producer's messages to other sets.
    ordered: bool
    #: In seconds; that of the connection, if it is not given.
    timeout: float | None
    #: A session token: the message comes behind all that its owner has seen.
    after: bytes | None


class Publication(NamedTuple):
    """One message, checked."""

    message: Message
    groups: Groups
    within_s: float
    unordered: bool = False
    after: bytes = b""


def checked(
    payload: bytes,
    to: str | Iterable[str],
    usual_s: float,
    *,
    key: bytes | str = b"",
    headers: Mapping[str, bytes | str] | None = None,
    ordered: bool = True,
    timeout: float | None = None,
    after: bytes | None = None,
) -> Publication:
    """The arguments of `publish`; `usual_s` is the connection's timeout."""
    groups = checked_groups(to)
    message = checked_message(payload, key, headers)
    within_s = usual_s if timeout is None else checked_timeout(timeout)
    return Publication(message, groups, within_s, not ordered, checked_token(after))


def checked_many(
    payloads: Iterable[bytes], to: str | Iterable[str], usual_s: float, timeout: float | None
) -> list[Publication]:
    """The arguments of `publish_many`: all are checked before the first is published."""
    groups = checked_groups(to)
    messages = [checked_message(payload) for payload in payloads]
    within_s = usual_s if timeout is None else checked_timeout(timeout)
    return [Publication(message, groups, within_s) for message in messages]
