"""TLS in front of a server that has none, as a gateway with certificates looks to whoever dials it."""

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.unit.certificates import Pair

HOST = "127.0.0.1"


@contextlib.contextmanager
def tls_front(behind: str, pair: Pair, folder: Path) -> Iterator[tuple[str, int]]:
    """Where it listens."""
    cert, key = folder / "front.pem", folder / "front.key"
    pair.write(cert, key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.set_alpn_protocols(["h2"])  # gRPC insists on it.
    host, _, port = behind.rpartition(":")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(host, int(port))
        await asyncio.gather(_carry(reader, inner_writer), _carry(inner_reader, writer))

    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(answer, HOST, 0, ssl=context))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield HOST, server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
        loop.close()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()
