"""The process: settings, a place for records, and the server in front of it."""

import asyncio
import contextlib
import gc
import signal
import sys
from typing import Any

import structlog

from ordercast.runtime.process import logs
from ordercast.runtime.process.exits import EXIT_REFUSED
from ordercast.runtime.process.health import Health
from ordercast.runtime.process.setting_sources import SettingsError
from ordercast.runtime.telemetry import meters
from ordercast.runtime.telemetry.web import Server
from ordercast.runtime.transport.admission import Admission
from ordercast.runtime.transport.server import GrpcServer, ListenError
from ordercast.runtime.transport.tls import Credentials, TlsError
from ordercast.telemetry.meters import Meters
from ordercast.telemetry.reading import SpoolReading
from ordercast.telemetry.receiver import Receiver, Sink, UnusableError
from ordercast.telemetry.settings import Settable, parse
from ordercast.telemetry.sinks.spooling import SpoolSink
from ordercast.telemetry.spool.layout import SpoolDirectoryError

log = structlog.get_logger("telemetry")

#: Calls at a time on one connection: what each of them brings is in memory.
STREAMS_MAX = 64
#: So many times what is taken gRPC does not even read.
TOO_LARGE = 4
#: A batch with the largest request in it.
SEND_BYTES_MAX = 256 << 20


def main(argv: list[str] | None = None) -> None:
    """Runs until it is told to stop, and exits."""
    try:
        settings = parse(sys.argv[1:] if argv is None else argv)
    except SettingsError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    logs.configure(settings.name, settings.log)
    logs.say_exposed(settings.exposed)
    gc.freeze()
    try:
        asyncio.run(run(settings))
    except (SpoolDirectoryError, ListenError, TlsError, UnusableError) as error:
        log.critical("cannot start", why=str(error))
        sys.exit(EXIT_REFUSED)


async def run(settings: Settable) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with serving(settings) as port:
        log.info("ready", port=port, sink=settings.sink)
        await stopping.wait()
        log.info("stopping")


@contextlib.asynccontextmanager
async def serving(settings: Settable) -> Any:
    """Yields the port. At the end what was taken is safe, and everything closed."""
    told = meters.Meters()
    own = Meters(told)
    async with contextlib.AsyncExitStack() as stack:
        # What is only somewhat too large is refused by us, who count it; gRPC refuses what is far too large.
        far_bytes = TOO_LARGE * settings.request_bytes_max
        admit = Admission(settings.tls.uris) if settings.tls.uris else None
        # Collectors compress what they send unless they are told not to.
        server = GrpcServer(
            settings.connections_max, STREAMS_MAX, far_bytes, SEND_BYTES_MAX, takes_compressed=True, admit=admit
        )
        if settings.metrics_listen is not None:
            health = Health(lambda: server.phase)
            stack.callback(Server(told, health, settings.metrics_listen).stop)
        sink: Sink
        if settings.sink == "spool":
            sink = spooling = SpoolSink(settings, own)
            SpoolReading(spooling.spool, settings.reads_max).serve(server)
        else:
            sink = _kafka(settings)
        Receiver(sink, own, settings.request_bytes_max, settings.request_records_max).serve(server)
        sink.start()
        stack.push_async_callback(sink.stop)
        port = await server.start(settings.listen, Credentials(settings.tls.for_server()).for_clients())
        stack.push_async_callback(server.stop, settings.drain_s)
        await server.set_serving(True)
        yield port


def _kafka(settings: Settable) -> Sink:
    """Its client is installed only where it is wanted."""
    try:
        from ordercast.telemetry.sinks.kafka import KafkaSink
    except ModuleNotFoundError as error:
        if error.name != "confluent_kafka":
            raise
        raise UnusableError("--sink kafka needs the package confluent-kafka (ordercast[kafka])") from error
    return KafkaSink(settings)
