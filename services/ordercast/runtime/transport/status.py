"""How a call fails: with a google.rpc.Status that says why, and perhaps when to come back.

A service raises `Refused`; the `Guard` turns it into the status. Whatever else a service raises is our own
mistake: the caller is told no more than that, the log has the traceback, and the server goes on.
"""

import asyncio
import contextlib
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import grpc
import structlog
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from grpc_status import rpc_status  # type: ignore[import-untyped]

from ordercast.core.limits import Limits
from ordercast.runtime.transport.debts import Debts
from ordercast.runtime.transport.turnstile import Turnstile

log = structlog.get_logger("status")

DOMAIN = "ordercast"
#: A status travels in the trailer, twice, and a trailer above 8 KiB may be dropped, with the call's true outcome.
MESSAGE_CHARS_MAX = 512
VALUE_CHARS_MAX = 256
METADATA_MAX = 8

#: What reading and writing raise when the caller or its connection has gone: a matter of course, for nobody's log.
GONE = (grpc.aio.InternalError, grpc.aio.UsageError)

Context = grpc.aio.ServicerContext[Any, Any]


class Refused(Exception):  # noqa: N818 (it names what happened, not a kind of error)
    """The call ends with this status. `reason` is for programs: UPPER_SNAKE_CASE, and never changes."""

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        reason: str,
        metadata: dict[str, str] | None = None,
        retry_after_s: float | None = None,
        details: Sequence[Message] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason
        self.metadata = metadata or {}
        self.retry_after_s = retry_after_s
        self.details = tuple(details)

    def status(self) -> Status:
        """As it goes over the wire, with bounded texts."""
        info = ErrorInfo(domain=DOMAIN, reason=self.reason)
        for key, value in list(self.metadata.items())[:METADATA_MAX]:
            info.metadata[_cut(key, VALUE_CHARS_MAX)] = _cut(value, VALUE_CHARS_MAX)
        parts: list[Message] = [info]
        if self.retry_after_s is not None:
            retry = RetryInfo()
            retry.retry_delay.FromNanoseconds(round(self.retry_after_s * 1e9))
            parts.append(retry)
        status = Status(code=self.code.value[0], message=_cut(self.message, MESSAGE_CHARS_MAX))
        for part in (*parts, *self.details):
            packed = AnyMessage()
            packed.Pack(part)
            status.details.append(packed)
        return status


def _cut(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else text[: chars_max - 3] + "..."


Admit: TypeAlias = Callable[[Context], None]


def _admit_all(context: Context) -> None:
    pass


class Entrance:
    """Where a call waits for its turn, and is turned away if its caller may call nothing here."""

    def __init__(self, admit: Admit) -> None:
        self._admit = admit
        self._turnstile = Turnstile()
        self._debts = Debts()

    @contextlib.asynccontextmanager
    async def passed(self, context: Context) -> AsyncIterator[None]:
        """What is done within is the call, once it may begin."""
        client = context.peer()
        try:
            await self._debts.wait(client)
            await self._turnstile.enter(client)
            self._admit(context)
            yield
        except BaseException:
            # That the caller has gone comes as a CancelledError, or as a generator's end.
            self._debts.came_to_nothing(client)
            raise


# As text: at run time the class takes no parameters.
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any] | None"


class Guard(grpc.aio.ServerInterceptor):
    """Stands before every service of a server. Services have to be asynchronous."""

    def __init__(self, limits: Limits, admit: Admit | None = None) -> None:
        """`admit` raises Refused for a caller that may not call anything."""
        self._limits = limits
        self._entrance = Entrance(admit or _admit_all)
        #: By method: a handler and what it became, for a server asks with every call.
        self._guarded: dict[str, tuple[Any, Handler]] = {}

    async def intercept_service(  # type: ignore[override]
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        method = str(handler_call_details.method)
        known = self._guarded.get(method)
        if known is None or known[0] is not handler:
            known = self._guarded[method] = (handler, _guarded(handler, method, self._limits, self._entrance))
        return known[1]


def _guarded(handler: Any, method: str, limits: Limits, entrance: Entrance) -> Handler:
    """The same handler, whose one behaviour is wrapped."""
    kind = {
        (False, False): ("unary_unary", grpc.unary_unary_rpc_method_handler),
        (False, True): ("unary_stream", grpc.unary_stream_rpc_method_handler),
        (True, False): ("stream_unary", grpc.stream_unary_rpc_method_handler),
        (True, True): ("stream_stream", grpc.stream_stream_rpc_method_handler),
    }
    name, make = kind[bool(handler.request_streaming), bool(handler.response_streaming)]
    behaviour = getattr(handler, name)
    # gRPC parses a single request before it calls us, and a failure would pass us by: so we parse it. Those of a
    # stream are parsed while the behaviour reads them.
    parse = _parser(handler.request_deserializer, limits)
    by_us, by_grpc = (_unchanged, parse) if handler.request_streaming else (parse, None)
    # gRPC tells by the function how responses come: as a generator's items, or written to the context.
    if inspect.isasyncgenfunction(behaviour):
        wrapped: Any = _guard_generator(behaviour, by_us, method, entrance)
    elif inspect.iscoroutinefunction(behaviour):
        wrapped = _guard_coroutine(behaviour, by_us, method, entrance)
    else:
        # Such is what generated code has for methods that a service leaves out, as gRPC's own health service does.
        log.warning("a method that is not asynchronous is not served", method=method)
        return None
    return make(wrapped, by_grpc, handler.response_serializer)


Parse = Callable[[Any], Any]


def _unchanged(request: Any) -> Any:
    return request


def _parser(deserializer: Parse | None, limits: Limits) -> Parse:
    """Nobody gets to see a request that has more of anything than it may have."""
    if deserializer is None:
        return _unchanged
    # What generated code hands over is FromString of a class.
    of_type = limits.of(deserializer.__self__.DESCRIPTOR)  # type: ignore[attr-defined]

    def parse(data: bytes) -> Any:
        size = len(data)
        if size > of_type.size_max:
            raise too_much(f"{of_type.name} has {size} bytes; at most {of_type.size_max}")
        try:
            request = deserializer(data)
        except DecodeError as error:
            code = grpc.StatusCode.INVALID_ARGUMENT
            raise Refused(code, "the request cannot be parsed", "MALFORMED_REQUEST") from error
        violation = of_type.violation(request, size)
        if violation:
            raise too_much(violation)
        return request

    return parse


def too_much(violation: str) -> Refused:
    return Refused(grpc.StatusCode.INVALID_ARGUMENT, violation, "LIMIT_EXCEEDED")


def _guard_coroutine(
    behaviour: Callable[[Any, Context], Awaitable[Any]], parse: Parse, method: str, entrance: Entrance
) -> Any:
    async def call(request: Any, context: Context) -> Any:
        try:
            async with entrance.passed(context):
                return await behaviour(parse(request), context)
        except Exception as error:
            await _end(context, error, method)

    return call


def _guard_generator(
    behaviour: Callable[[Any, Context], AsyncGenerator[Any, None]], parse: Parse, method: str, entrance: Entrance
) -> Any:
    async def call(request: Any, context: Context) -> AsyncGenerator[Any, None]:
        try:
            # A call that ends early leaves the generator where it stands: it has to clean up now, not some day.
            async with (
                entrance.passed(context),
                contextlib.aclosing(behaviour(parse(request), context)) as responses,
            ):
                async for response in responses:
                    yield response
        except Exception as error:
            await _end(context, error, method)

    return call


async def _end(context: Context, error: Exception, method: str) -> None:
    """Sends the status, and returns: then gRPC raises its AbortError again, where no frame of ours sees it.

    gRPC keeps the AbortError with the call. If the error's traceback kept our frames, these the request and the
    context, and the context the call, they would be a ring: freed when Python's collector looks at old objects,
    which with requests of a megabyte is hundreds of megabytes too late. Our own errors would be kept likewise, by
    tasks that failed with them and that a frame of the traceback still names. So no error here keeps its frames.
    """
    if isinstance(error, GONE):
        _forget_frames(error)
        raise asyncio.CancelledError
    if not isinstance(error, grpc.aio.AbortError):
        refused = error if isinstance(error, Refused) else _mistake(error, method)
        try:
            await context.abort_with_status(rpc_status.to_status(refused.status()))
        except grpc.aio.AbortError as aborted:
            _forget_frames(aborted)
        except GONE as gone:
            _forget_frames(gone)
            raise asyncio.CancelledError from None
    _forget_frames(error)


def _mistake(error: Exception, method: str) -> Refused:
    log.error("a call failed", method=method, exc_info=error)
    return Refused(grpc.StatusCode.INTERNAL, "internal error; the server's log has more", "INTERNAL")


def _forget_frames(error: BaseException) -> None:
    """Drops the tracebacks of an error and of those that it came from; none of them is raised any further."""
    errors: list[BaseException | None] = [error]
    met: set[int] = set()
    while errors:
        one = errors.pop()
        if one is not None and id(one) not in met:
            met.add(id(one))
            one.__traceback__ = None
            errors += (one.__cause__, one.__context__)
