"""How a command is refused."""

from enum import IntEnum


class Code(IntEnum):
    """Those of google.rpc.Code that a command is answered with."""

    OK = 0
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    UNAVAILABLE = 14


class Refused(Exception):  # noqa: N818 (it names what happened)
    """The text can be shown to users."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


def precondition(message: str) -> Refused:
    return Refused(Code.FAILED_PRECONDITION, message)


def bad_argument(message: str) -> Refused:
    return Refused(Code.INVALID_ARGUMENT, message)
