"""What can go wrong, as types. Every error says what to do next: `retry_after`, or why repeating does not help.

Errors of the cluster carry `google.rpc.ErrorInfo` (domain "ordercast"): its reason and metadata are in `details`.
"""

# ruff: noqa: N818 (the names are those of the statuses that they come as)

from collections.abc import Mapping
from typing import ClassVar, Self

from ordercast.v1.gateway_pb2 import (
    PUBLISH_STATUS_FENCED,
    PUBLISH_STATUS_INVALID_ARGUMENT,
    PUBLISH_STATUS_MOVED,
    PUBLISH_STATUS_NOT_FOUND,
    PUBLISH_STATUS_RESOURCE_EXHAUSTED,
    PUBLISH_STATUS_SEQUENCE_GAP,
    PUBLISH_STATUS_UNAVAILABLE,
    PublishStatus,
)


class OrdercastError(Exception):
    """The base of all errors of this package.

    >>> error = NotFound("unknown group 'x'", details={"group": "x"})
    >>> error.code, error.details["group"], error.retry_after
    ('NOT_FOUND', 'x', None)
    """

    #: The name of the gRPC status that it comes as.
    code: ClassVar[str] = "UNKNOWN"
    #: The same request may succeed later, or through another gateway.
    is_retryable: ClassVar[bool] = False

    def __init__(
        self, message: str, *, details: Mapping[str, str] | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details or {})
        #: Seconds after which it is worth trying again, if the cluster said so.
        self.retry_after = retry_after

    def copy(self) -> Self:
        return type(self)(self.message, details=self.details, retry_after=self.retry_after)


class InvalidArgument(OrdercastError):
    """The request itself is wrong. Nothing was stored."""

    code = "INVALID_ARGUMENT"


class NotFound(OrdercastError):
    """There is no such group, domain or cursor. Nothing was stored."""

    code = "NOT_FOUND"


class AlreadyExists(OrdercastError):
    """The name is taken. Also what a repeated creation gets whose first answer was lost."""

    code = "ALREADY_EXISTS"


class OutOfRange(OrdercastError):
    """The log has no such offset: it was removed by retention, or lies beyond the end."""

    code = "OUT_OF_RANGE"

    @property
    def first_offset(self) -> int | None:
        """The first offset that exists, if the cluster said so."""
        return self._offset("first_offset")

    @property
    def next_offset(self) -> int | None:
        """The offset of the next delivery, if the cluster said so."""
        return self._offset("next_offset")

    def _offset(self, name: str) -> int | None:
        text = self.details.get(name, "")
        return int(text) if text.isdecimal() else None


class FailedPrecondition(OrdercastError):
    """Something has to be changed first; the message says what."""

    code = "FAILED_PRECONDITION"


class Fenced(FailedPrecondition):
    """Another client opened the same named producer later: this one may not publish any more."""


class PermissionDenied(OrdercastError):
    """The cluster knows who asks, and does not allow it."""

    code = "PERMISSION_DENIED"


class Unauthenticated(OrdercastError):
    """The cluster does not know who asks."""

    code = "UNAUTHENTICATED"


class Unimplemented(OrdercastError):
    """The other side does not know this request: not a gateway, or an older one."""

    code = "UNIMPLEMENTED"


class ResourceExhausted(OrdercastError):
    """A limit was reached. Nothing was stored."""

    code = "RESOURCE_EXHAUSTED"
    is_retryable = True


class Unavailable(OrdercastError):
    """No gateway could be reached, or a destination group lacks a quorum. Nothing was stored."""

    code = "UNAVAILABLE"
    is_retryable = True


class Aborted(OrdercastError):
    """The cluster gave up on it half-way, as another request came in between."""

    code = "ABORTED"
    is_retryable = True


class DeadlineExceeded(OrdercastError):
    """The time was over. A message that gets this was not sent, and is not stored."""

    code = "DEADLINE_EXCEEDED"
    is_retryable = True


class OutcomeUnknown(OrdercastError):
    """The message was sent, and then the time was over or the connection closed: it may be stored, or become so.

    It is not withdrawn. While the connection is open the message is repeated, and still stored at most once.
    """

    code = "DEADLINE_EXCEEDED"


class Internal(OrdercastError):
    """The cluster broke a promise, or reported that it did."""

    code = "INTERNAL"
    is_retryable = True


_KINDS: tuple[type[OrdercastError], ...] = (
    InvalidArgument,
    NotFound,
    AlreadyExists,
    OutOfRange,
    FailedPrecondition,
    PermissionDenied,
    Unauthenticated,
    Unimplemented,
    ResourceExhausted,
    Unavailable,
    Aborted,
    DeadlineExceeded,
    Internal,
)
_OF_CODE = {kind.code: kind for kind in _KINDS} | {"CANCELLED": Unavailable}

_OF_STATUS: dict[PublishStatus, type[OrdercastError]] = {
    PUBLISH_STATUS_INVALID_ARGUMENT: InvalidArgument,
    PUBLISH_STATUS_MOVED: NotFound,
    PUBLISH_STATUS_NOT_FOUND: NotFound,
    PUBLISH_STATUS_RESOURCE_EXHAUSTED: ResourceExhausted,
    PUBLISH_STATUS_UNAVAILABLE: Unavailable,
    PUBLISH_STATUS_SEQUENCE_GAP: Unavailable,
    PUBLISH_STATUS_FENCED: Fenced,
}


def of_code(
    code: str, message: str, *, details: Mapping[str, str] | None = None, retry_after: float | None = None
) -> OrdercastError:
    """The error for the name of a gRPC status. The reason "FENCED" is told apart from other preconditions."""
    kind = _OF_CODE.get(code, Internal)
    if kind is FailedPrecondition and (details or {}).get("reason") == "FENCED":
        kind = Fenced
    return kind(message, details=details, retry_after=retry_after)


def of_status(status: PublishStatus, message: str, *, retry_after: float | None = None) -> OrdercastError:
    """The error for the status of a reply that is not OK."""
    return _OF_STATUS.get(status, Internal)(message or PublishStatus.Name(status), retry_after=retry_after)
