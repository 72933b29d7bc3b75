"""Logs: to stderr, as JSON or for people, each line with the name of the process.

The standard library's loggers (gRPC's, asyncio's) come out the same way. Payloads stay out: bytes are logged as
their number, messages as their type, and tracebacks do not show the values of variables.
"""

import logging
import sys
from collections.abc import Sequence
from typing import Any, TextIO

import structlog
from google.protobuf.message import Message
from structlog.typing import EventDict, Processor

from ordercast.runtime.process.settings import LoggingSettings

#: A longer text is cut; the beginning and end of a traceback tell most.
TEXT_CHARS_MAX = 8192
#: How deep lists and dicts are followed, and how many of their items.
DEPTH_MAX = 3
ITEMS_MAX = 64


def say_exposed(exposed: Sequence[str]) -> None:
    """At each start: whoever set `insecure` to try something may have forgotten it."""
    if exposed:
        structlog.get_logger("settings").warning(
            "insecure: without TLS, whoever can connect may do everything", listening=list(exposed)
        )


def configure(process: str, settings: LoggingSettings, stream: TextIO | None = None) -> None:
    """Sets up logging for this process; may be called again, and then replaces what was set up before."""

    def name_process(_logger: Any, _method: str, event: EventDict) -> EventDict:
        event["process"] = process
        return event

    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        name_process,
        structlog.processors.format_exc_info,
        without_payloads,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        # Loggers are made when modules are imported, which is before this runs.
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _renderer(settings)],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    # These would log every step that they take.
    for chatty in ("asyncio", "grpc"):
        logging.getLogger(chatty).setLevel(max(root.level, logging.INFO))


def _renderer(settings: LoggingSettings) -> Processor:
    if settings.format == "console":
        return structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback, sort_keys=False
        )
    return structlog.processors.JSONRenderer(default=lambda value: f"<{type(value).__name__}>")


def without_payloads(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Replaces what may hold a payload, and bounds what remains."""
    for key, value in event.items():
        # structlog keeps its own notes under names that begin so.
        if not key.startswith("_"):
            event[key] = _bounded(value, DEPTH_MAX)
    return event


def _bounded(value: Any, depth: int) -> Any:
    match value:
        case bytes() | bytearray() | memoryview():
            return f"<{len(value)} bytes>"
        case Message():
            return f"<{value.DESCRIPTOR.name}>"
        case str() if len(value) > TEXT_CHARS_MAX:
            half = TEXT_CHARS_MAX // 2
            return f"{value[:half]} ... {value[-half:]}"
        case dict() | list() | tuple() if depth == 0:
            return f"<{type(value).__name__} of {len(value)}>"
        case dict():
            items = list(value.items())[:ITEMS_MAX]
            return {str(_bounded(key, depth - 1)): _bounded(item, depth - 1) for key, item in items}
        case list() | tuple():
            return [_bounded(item, depth - 1) for item in value[:ITEMS_MAX]]
        case _:
            return value
