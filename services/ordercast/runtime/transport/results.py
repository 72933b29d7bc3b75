"""From the answers of other services to what this one tells its caller."""

import grpc
from google.rpc.error_details_pb2 import ErrorInfo  # type: ignore[import-untyped]
from grpc_status import rpc_status  # type: ignore[import-untyped]

from ordercast.runtime.transport.status import Refused
from ordercast.v1.membership_pb2 import CommandResult

CODES = {code.value[0]: code for code in grpc.StatusCode}


def check_result(result: CommandResult) -> CommandResult:
    """What membership refused is refused to the caller, in the same words."""
    code = CODES.get(result.code, grpc.StatusCode.UNKNOWN)
    if code != grpc.StatusCode.OK:
        raise Refused(code, result.message, f"MEMBERSHIP_{code.name}")
    return result


def refused_from(error: grpc.aio.AioRpcError) -> Refused:
    """The same refusal, as if it were our own."""
    reason, metadata = error.code().name, {}
    status = rpc_status.from_call(error)
    for detail in status.details if status is not None else ():
        info = ErrorInfo()
        if detail.Unpack(info):
            reason, metadata = info.reason, dict(info.metadata)
    return Refused(error.code(), error.details() or error.code().name, reason, metadata)
