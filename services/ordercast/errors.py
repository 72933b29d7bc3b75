"""The errors of the SDK, as users import them: `from ordercast.errors import OutcomeUnknown`."""

from ordercast.client.errors import (
    Aborted,
    AlreadyExists,
    DeadlineExceeded,
    FailedPrecondition,
    Fenced,
    Internal,
    InvalidArgument,
    NotFound,
    OrdercastError,
    OutcomeUnknown,
    OutOfRange,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)

__all__ = [
    "Aborted",
    "AlreadyExists",
    "DeadlineExceeded",
    "FailedPrecondition",
    "Fenced",
    "Internal",
    "InvalidArgument",
    "NotFound",
    "OrdercastError",
    "OutOfRange",
    "OutcomeUnknown",
    "PermissionDenied",
    "ResourceExhausted",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
]
