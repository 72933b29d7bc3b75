"""The main function of every process: settings, logs, one event loop, one node."""

import asyncio
import gc
import sys
from collections.abc import Sequence

import structlog

from ordercast.runtime.kubernetes.endpoint_slices import DiscoveryError
from ordercast.runtime.process import logs
from ordercast.runtime.process.exits import EXIT_REFUSED
from ordercast.runtime.process.node import Node, Service
from ordercast.runtime.process.setting_sources import SettingsError
from ordercast.runtime.process.settings import ProcessSettings, parse
from ordercast.runtime.storage.damage_advice import of_refused_start
from ordercast.runtime.storage.store import StorageError
from ordercast.runtime.transport.server import ListenError
from ordercast.runtime.transport.tls import TlsError

log = structlog.get_logger("main")


def main(services: Sequence[type[Service]], argv: list[str] | None = None) -> None:
    """Runs until it is told to stop, and exits."""
    try:
        settings = parse(sys.argv[1:] if argv is None else argv, tuple(service.name for service in services))
    except SettingsError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    logs.configure(settings.name, settings.log)
    logs.say_exposed(settings.exposed)
    # What a process needs for good was made by now: the collector need not look at it again and again.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    sys.exit(asyncio.run(_run(settings, services)))


async def _run(settings: ProcessSettings, services: Sequence[type[Service]]) -> int:
    try:
        node = Node(settings)
        return await node.run(services)
    except (StorageError, ListenError, TlsError, DiscoveryError) as error:
        log.critical("cannot start", why=of_refused_start(error))
        return EXIT_REFUSED
